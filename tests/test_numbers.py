"""Numbers in the prose of the pages are those that the package computes today."""

from __future__ import annotations

import subprocess
import sys

from places import REPOSITORY


def test_numbers_in_prose_are_recomputed():
    script = REPOSITORY / "tools" / "check_numbers.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
