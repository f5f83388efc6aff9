"""A process that has loaded what the command needs, and forks itself for every command that a test runs.

Loading libraries takes longer than most commands do. A forked process begins with them, and shares nothing else: the command
line itself, with its consoles, is imported after the fork, under the test's own environment and folder. Requests are
lines of JSON on standard input, exit codes lines on standard output.
"""

import atexit
import gc
import importlib
import json
import os
import sys
import traceback
from pathlib import Path

LIBRARIES = (
    "jinja2", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "matplotlib.figure", "narwhals", "numpy",
    "opendp.prelude", "pyarrow.parquet", "pydantic.fields", "pydantic.types", "rich.console", "rich.markdown", "rich.table",
    "scipy.optimize", "scipy.sparse.csgraph", "scipy.stats", "sqlalchemy.dialects.sqlite", "typer",
)  # fmt: skip
"""Of other people, which commands import when they need them. Not DuckDB, which objects to being forked."""

ROOMS = (
    "temporaldp.publish.release",
    "temporaldp.publish.report",
    "temporaldp.data.smoothing",
    "temporaldp.lab.studies",
    "temporaldp.publish.deployment",
)
"""Ours, beneath the command line, which is imported after the fork."""


def load():
    """Import what commands import."""
    for name in (*LIBRARIES, *ROOMS):
        importlib.import_module(name)


def become(request):
    """In the forked process: the arguments, the folder, the environment and the outputs of the command."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["temporaldp", *request["arguments"]]
    for number, name in ((1, "out"), (2, "err")):
        with Path(request[name]).open("wb") as file:
            os.dup2(file.fileno(), number)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)


def end():
    """Run the command and what it left to be done at the end; taking the interpreter apart would copy all of its memory."""
    from temporaldp.apps.cli import main

    try:
        main()
        code = 0
    except SystemExit as exit:
        code = exit.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120  # as the interpreter's own end says it
    os._exit(code if isinstance(code, int) else 1)


def served():
    """Fork for each request. True in a forked process, which has become the command; False once there are no more requests."""
    answers = os.fdopen(os.dup(1), "w")
    requests = os.fdopen(os.dup(0), "r")
    for line in requests:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            become(request)
            os.close(requests.fileno())
            os.close(answers.fileno())
            return True
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)
    return False


if __name__ == "__main__":
    load()
    gc.freeze()  # what is there is not looked at again, in no process
    if served():
        end()
