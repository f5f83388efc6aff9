"""Timing: medians of repeated runs, and children of their own for memory and first calls."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import temporaldp as tdp

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

ACCOUNTING = {"exact": tdp.Exact(), "paper": tdp.PaperBound()}
"""The accounting methods that tables compare, by the names of their rows."""

PATIENCE = 1.5
"""Seconds spent on one median, at least three runs and at most 25."""


def median(call: Callable[[], Any], *, warm: bool = True) -> float:
    """Seconds of a call: the median of at least three runs, after one that does not count."""
    if warm:
        call()
    seconds: list[float] = []
    while len(seconds) < 3 or (sum(seconds) < PATIENCE and len(seconds) < 25):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
        if seconds[0] > PATIENCE:
            break
    return statistics.median(seconds)


PEAK = """
def peak():
    # Of this process alone: what getrusage says would count the parent's memory before the child was its own.
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
"""


def in_a_child(code: str, **environment: str) -> dict[str, float]:
    """What `code` leaves in `result`, from a fresh process, with its seconds and its peak memory in MiB."""
    frame = (
        PEAK
        + "import json, time\nstarted = time.perf_counter()\nresult = {}\n"
        + code
        + "\nresult['seconds'] = time.perf_counter() - started"
        + "\nresult['mib'] = peak()"
        + "\nprint(json.dumps(result))"
    )
    done = subprocess.run(
        [sys.executable, "-c", frame], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return json.loads(done.stdout.splitlines()[-1])


def exponent(sizes: list[float], seconds: list[float]) -> float:
    """The slope of log seconds against log size, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def table(head: list[str], rows: list[list[str]], *, numbers: int | None = None) -> str:
    """A Markdown table: a column of words, so many of numbers (by default all others) to the right, and words again."""
    count = len(head) - 1 if numbers is None else numbers
    rule = ["---"] + ["---:"] * count + ["---"] * (len(head) - 1 - count)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *rows])


def short(seconds: float) -> str:
    """Seconds with a unit that suits them, three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"


def record(target: Path, text: str, command: str) -> None:
    """Write the headings and tables of a text below a line with the command, the commit, the date and the machine."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    lines = [line for line in text.splitlines() if line.startswith(("#", "|")) or not line]
    kept = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    today = datetime.date.today().isoformat()
    first = f"<!-- `{command}`; commit {commit.stdout.strip()}, {today}; {machine().rstrip('.')} -->"
    target.write_text(f"{first}\n\n{kept}\n", encoding="utf-8")


def machine() -> str:
    """What the numbers depend on."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy"))
    model = next(
        (line.split(":")[1].strip() for line in _processor() if line.startswith("model name")), platform.machine()
    )
    return f"{CORES} cores ({model}), Python {platform.python_version()}, {packages}."


def _processor() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []
