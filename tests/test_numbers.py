"""Numbers in the prose of the pages are those that the package computes today."""

from __future__ import annotations

import subprocess
import sys

import pytest

from places import REPOSITORY


@pytest.mark.long
def test_numbers_in_prose_are_recomputed():
    script = REPOSITORY / "tools" / "check_numbers.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
