"""Print through how many files and functions of the package a command runs: an audit, and one step of a release.

Counted is every function of the package that is called, once, whichever thread calls it: methods, properties and nested
functions, also generators. Not counted are the bodies of modules and classes, what they call while they are imported
(decorators), comprehensions, generator expressions and lambdas, and methods that dataclasses generate. A file counts if a
function in it does. Every command runs in a process of its own, from its entry, so that nothing is in memory already.

With `--functions` each file is listed, with its functions.
"""

import contextlib
import csv
import inspect
import io
import multiprocessing
import sys
import tempfile
import threading
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "temporaldp"
SAMPLE = SOURCE / "data" / "sample" / "sleep_5min.csv"

# People of the sample whose traces are the public history, and steps that the ledger has when the measured one is drawn.
PUBLIC, STORED = 75, 24


def run(arguments):
    """Run a command; only an error is printed."""
    from temporaldp.__main__ import main

    sys.argv = ["temporaldp", *arguments]
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            main()
    except SystemExit as stop:
        if stop.code:
            raise RuntimeError(printed.getvalue()) from None


def functions_of(arguments):
    """Return the functions that a command runs through: for each its file in the package, its name and its first line."""
    found, local = set(), threading.local()

    def profile(frame, event, _):
        code = frame.f_code
        if code.co_name == "<module>" and event in {"call", "return"}:
            local.importing = getattr(local, "importing", 0) + (1 if event == "call" else -1)
        elif event == "call" and not getattr(local, "importing", 0):
            is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
            if is_function and code.co_filename.startswith(f"{SOURCE}/"):
                file = Path(code.co_filename).relative_to(SOURCE)
                found.add((str(file), code.co_qualname, code.co_firstlineno))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        run(arguments)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(found)


def audit():
    return in_a_process_of_its_own(functions_of, ["audit", str(SAMPLE), "--epsilon", "0.1"])


def release_step(folder):
    """One step as a job publishes it every night: the level with an accountant, a ledger, and a table to write."""
    header, *people = list(csv.reader(SAMPLE.read_text().splitlines()))

    def write(name, rows, n_steps):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows(row[: n_steps + 1] for row in (header, *rows))
        return str(folder / name)

    history = write("history.csv", people[:PUBLIC], len(header))
    stored, arrived = (write(f"{n}.csv", people[PUBLIC:], n) for n in (STORED, STORED + 1))
    kept = ["--alpha", "1", "--history", history, "--ledger", str(folder / "release.db"), "-o", str(folder / "out.csv")]
    in_a_process_of_its_own(run, ["release", stored, *kept])
    return in_a_process_of_its_own(functions_of, ["release", arrived, *kept, "--overwrite"])


def in_a_process_of_its_own(call, *arguments):
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(call, *arguments).result()


def main(with_functions):
    print(f"\n{'through':18s} {'files':>10s} {'functions':>9s}")
    with tempfile.TemporaryDirectory() as folder:
        measured = {"audit": audit(), "step of a release": release_step(Path(folder))}
    for name, functions in measured.items():
        wings = Counter(Path(file).parts[0] for file, _, _ in functions)
        where = ", ".join(f"{wing} {count}" for wing, count in sorted(wings.items()) if wing != "__main__.py")
        print(f"{name:18s} {len({file for file, _, _ in functions}):10d} {len(functions):9d}   {where}")
    for name, functions in measured.items() if with_functions else ():
        print(f"\n{name}")
        for file in sorted({file for file, _, _ in functions}):
            own = [qualified for place, qualified, _ in functions if place == file]
            print(f"  {file} ({len(own)}): {', '.join(own)}")


if __name__ == "__main__":
    main("--functions" in sys.argv[1:])
