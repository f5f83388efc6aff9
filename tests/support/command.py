"""The command as a process of its own, for the tests of cli/."""

from __future__ import annotations

import atexit
import csv
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from importlib.resources import files
from pathlib import Path

SAMPLE = str(files("temporaldp.data.sample") / "sleep_5min.csv")

KEYWORD = re.compile(
    r"\b(epsilon|accounting|horizon|delta|alpha|mechanism|method|reserve)=|\b(Exact|PaperBound|MetricPrivacy|ApproximateDP)\("
)
"""How Python's callers give an argument; people at a shell give options."""

ONE_AT_A_TIME = threading.Lock()


@functools.cache
def _server():
    """The process that forks; one for every process of pytest, ended with it."""
    script = Path(__file__).with_name("forking.py")
    process = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return process


def temporaldp(*arguments, cwd=None, columns="200"):
    """Run the command in a process of its own, which a process that has loaded its libraries forks."""
    words = list(map(str, arguments))
    with ONE_AT_A_TIME, tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / name for name in ("out", "err")]
        request = {
            "arguments": words,
            "cwd": str(cwd or Path.cwd()),
            "environment": os.environ | {"COLUMNS": columns, "NO_COLOR": "1"},
            "out": str(outputs[0]),
            "err": str(outputs[1]),
        }
        server = _server()
        print(json.dumps(request), file=server.stdin, flush=True)
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(words, code, *(path.read_text() for path in outputs))


def write_sample(folder, **files):
    """Files NAME.csv of some people of the sample (a part of all) at some of its five-minute steps, from midnight on."""
    with Path(SAMPLE).open(newline="") as file:
        _, *rows = csv.reader(file)
    for name, (part, steps) in files.items():
        lines = ["user,time,state"]
        lines += [f"{r[0]},2024-01-01 {t // 12:02d}:{5 * t % 60:02d},{r[1 + t]}" for t in steps for r in rows[part]]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


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
