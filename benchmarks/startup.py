"""How long the package and the command line take to start, as processes of their own: a table on standard output.

Run with:  make bench NAME=startup
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from importlib.resources import as_file, files
from pathlib import Path
from shutil import which

from measure import machine, short, table

RUNS = 5

HEAD = """# How long it takes to start

Made by `make bench NAME=startup`: whole processes from start to exit, the median of {runs}, on modules that are compiled to bytecode. NumPy
alone is the part that cannot be saved.

"""


def seconds(command: list[str]) -> float:
    """The median of several processes, after one that reads every file from the disk."""
    # Where this is set, Python compiles every module of an editable installation anew: that is not what users see.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    found = []
    for _ in range(RUNS + 1):
        started = time.perf_counter()
        subprocess.run(command, env=environment, capture_output=True, check=True)
        found.append(time.perf_counter() - started)
    return statistics.median(found[1:])


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
    with as_file(files("temporaldp.data.sample") / "sleep_5min.csv") as sample:
        rows = [[f"`{name}`", short(seconds(command))] for name, command in commands(sample).items()]
    print(HEAD.format(runs=RUNS) + machine())
    print(table(["process", "time"], rows))


if __name__ == "__main__":
    main()
