"""Releases that the tests of release/ open, and the processes that they start."""

from __future__ import annotations

import functools
import json
import os
import sqlite3
import subprocess
import sys
import warnings
from contextlib import closing
from pathlib import Path

import numpy as np

import workers
from temporaldp import (
    Adversary,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    Exact,
    TemporalAccountant,
    TransitionMatrix,
    temporal_leakage,
)


def kept(place, kind):
    """What an SQLite ledger keeps beside its chain, of one kind: text by name."""
    with closing(sqlite3.connect(place)) as connection:
        rows = connection.execute("SELECT name, content FROM temporaldp_kept WHERE name GLOB ?", (f"{kind}-*",))
        return dict(rows.fetchall())


def keep_instead(place, name, content=None):
    """Replace or delete a text that an SQLite ledger keeps beside its chain."""
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("DELETE FROM temporaldp_kept WHERE name = ?", (name,))
        if content is not None:
            connection.execute("INSERT INTO temporaldp_kept VALUES ('ledger', ?, ?)", (name, content))


MATRIX = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])


ADVERSARY = Adversary(MATRIX, MATRIX)


MECHANISM = DiscreteLaplaceHistogram(n_states=2)


CERTAIN = TransitionMatrix(np.eye(2))


EXACT = Exact()


def opened(
    place,
    *,
    mechanism=MECHANISM,
    adversary=ADVERSARY,
    alpha=1.0,
    horizon=None,
    reserve=None,
    accounting=EXACT,
    **schema,
):
    terms = {"alpha": alpha, "horizon": horizon, "reserve": reserve, "accounting": accounting}
    accountant = (
        unspent(adversary, **terms) if isinstance(adversary, Adversary) else TemporalAccountant(adversary, **terms)
    )
    return ContinualRelease(mechanism, ledger=place, accountant=accountant, **schema)


@functools.cache
def unspent(adversary=ADVERSARY, **terms):
    """An accountant whose reserve is known, which takes longer than most releases; each release charges a copy of it."""
    made = TemporalAccountant(adversary, **terms)
    assert made.reserve >= 0.0
    return made


def worker(*arguments, script="workers.py"):
    """A script of forks, in a process of its own: pytest's is no place to fork from."""
    script = Path(workers.__file__).with_name(script)
    done = subprocess.run(
        [sys.executable, script, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def noted(path):
    """What a process wrote down before it was killed, perhaps nothing."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def require_level_held(epsilons, adversary, alpha, accounting=EXACT):
    assert temporal_leakage(adversary, epsilons, accounting=accounting).worst <= alpha


def in_a_child(act):
    """Exit code of a forked process that does this, which may change its own limits or user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: this child needs none
        child = os.fork()
    if child == 0:
        code = 1
        try:
            code = act()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
