"""The command as a process of its own, for the tests of cli/."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

SAMPLE = str(files("temporaldp.sample") / "sleep_5min.csv")

KEYWORD = re.compile(r"\b(epsilon|bound|horizon|delta|alpha|mechanism|method|reserve)=")
"""How Python's callers give an argument; people at a shell give options."""


def temporaldp(*arguments, cwd=None, columns="200"):
    """Run the installed command in a process of its own."""
    environment = os.environ | {"COLUMNS": columns, "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-c", "from temporaldp.cli import main; main()", *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd, env=environment, check=False,
    )  # fmt: skip


def refused(*arguments, cwd=None, code=2):
    """The message of a command that must fail cleanly."""
    before = sorted(Path(cwd).iterdir()) if cwd else None
    result = temporaldp(*arguments, cwd=cwd)
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert not KEYWORD.search(result.stderr), "the message speaks of Python's keywords, not of options"
    assert before is None or sorted(Path(cwd).iterdir()) == before, "something was written"
    return result.stderr
