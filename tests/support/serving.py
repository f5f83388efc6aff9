"""Servers that are started and killed; run as a script, so that each is forked from a process that has loaded everything.

python serving.py STORE FOLDER      reads lines "start PORT" and "kill PORT", and answers each with a line

Every draw of noise is written into FOLDER/drawn before it is handed on, as one line in one write.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from copy import copy
from pathlib import Path

from temporaldp import DiscreteLaplaceHistogram, LedgerError
from temporaldp.apps.serve import served_release
from temporaldp.apps.serve.definition import Definition, proved
from temporaldp.apps.serve.server import create_app, serve
from temporaldp.apps.serve.service import load_for_first_step
from temporaldp.publish.release.tables import tables

BACKWARD = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.4, 0.5]]
FORWARD = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]]
DEFINITION = {
    "alpha": 1.0,
    "backward": BACKWARD,
    "forward": FORWARD,
    "mechanism": {"kind": "histogram", "n_states": 3},
}


def warm():
    """Load what a server does when it begins to work: libraries, and what lasts for ever under DEFINITION."""
    for name in (
        "psycopg",
        "psycopg_binary",
        "sqlalchemy.dialects.postgresql.psycopg",
        "sqlalchemy.dialects.sqlite",
        "jinja2",
    ):
        importlib.import_module(name)
    create_app()
    tables()
    load_for_first_step()
    made = Definition.model_validate(DEFINITION)
    alone = proved(made.promise, None)
    accountant = copy(proved(made.promise, alone.reserve))
    for _ in range(3):
        accountant.spend(0.5 * accountant.remaining())
    DiscreteLaplaceHistogram(n_states=1)([0], 1.0)


def note_draws(folder):
    plain = served_release.ServedMechanism.__call__

    def noted(self, counts, epsilon):
        output = plain(self, counts, epsilon)
        if counts is not None:
            handle = os.open(folder / "drawn", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(handle, (json.dumps(output) + "\n").encode())
            os.close(handle)
        return output

    served_release.ServedMechanism.__call__ = noted


def started(store):
    """The application; made again while the database is down, as whoever supervises servers starts them again."""
    while True:
        try:
            return create_app(store)
        except LedgerError:
            time.sleep(0.1)


def main(store, folder):
    warm()
    note_draws(folder)
    children = {}
    print("ready", flush=True)
    for line in sys.stdin:
        act, port = line.split()
        if act == "kill":
            pid = children.pop(port)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        else:
            pid = os.fork()
            if pid == 0:
                serve(started(store), address="127.0.0.1", port=int(port))
                os._exit(0)
            children[port] = pid
        print(act, flush=True)
    for pid in children.values():
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
