"""How long the package and the command line take to start, as processes of their own: a table on standard output.

Run with:  make bench-startup
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.resources import as_file, files
from pathlib import Path
from shutil import which

from measure import machine, short, table

RUNS = 5

HEAD = """# How long it takes to start

Made by `make bench-startup`: whole processes from start to exit, the median of {runs}, on modules that are compiled to bytecode. NumPy
alone is the part that cannot be saved. *Empty*: no kernel has been compiled yet, as after installation; *warm*: an earlier run has.

"""


def seconds(command: list[str], kernels: str) -> float:
    """Of one process that keeps its compiled kernels in this folder."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": kernels}
    # Where this is set, Python compiles every module of an editable installation anew: that is not what users see.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.perf_counter()
    subprocess.run(command, env=environment, capture_output=True, check=True)
    return time.perf_counter() - started


def empty(command: list[str]) -> float:
    """The median where each process finds no compiled kernel."""
    found = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as kernels:
            found.append(seconds(command, kernels))
    return statistics.median(found)


def warm(command: list[str]) -> float:
    """The median where a process before, which does not count, has compiled what it needed."""
    with tempfile.TemporaryDirectory() as kernels:
        seconds(command, kernels)
        return statistics.median(seconds(command, kernels) for _ in range(RUNS))


def commands(sample: Path) -> dict[str, list[str]]:
    """What is measured, by the name that the table shows."""
    temporaldp = which("temporaldp", path=Path(sys.executable).parent)
    if temporaldp is None:
        raise SystemExit(
            "expected the command temporaldp beside this Python; install the package into this environment"
        )
    return {
        'python -c "import numpy"': [sys.executable, "-c", "import numpy"],
        'python -c "import temporaldp"': [sys.executable, "-c", "import temporaldp"],
        "temporaldp --version": [temporaldp, "--version"],
        "temporaldp audit --help": [temporaldp, "audit", "--help"],
        "temporaldp audit traces.csv --epsilon 0.1": [temporaldp, "audit", str(sample), "--epsilon", "0.1"],
    }


def main() -> None:
    """Print the table."""
    with as_file(files("temporaldp.sample") / "sleep_5min.csv") as sample:
        # The warm runs come first: their uncounted run is also the one that reads every file from the disk.
        found = [(name, warm(command), empty(command)) for name, command in commands(sample).items()]
    rows = [[f"`{name}`", short(first), short(second)] for name, second, first in found]
    print(HEAD.format(runs=RUNS) + machine())
    print(table(["process", "empty kernel cache", "warm kernel cache"], rows))


if __name__ == "__main__":
    main()
