"""Three years of a release in little time: two writers that are killed, histories that are adopted, files that come late.

python years.py LEDGER FOLDER N_STEPS N_KILLS SEED      prints a JSON report

Run as a script, so that forks start from a small clean process. `reckoned` counts the exact leakage with code of its own.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

import workers
from temporaldp import (
    Adversary,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    Ledger,
    TemporalAccountant,
    TransitionMatrix,
)
from temporaldp.base.errors import LateDataError, LedgerMismatchError
from temporaldp.publish.release import adopt_correlation

ALPHA = 1.0
FIRST = datetime(2021, 1, 1)
N_WRITERS = 2
LONGEST_LIFE = 2.0
"""Seconds, of a writer that is going to be killed, once it has the ledger open."""

ROWS = (
    ([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]], [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.4, 0.5]]),
    ([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]),
    ([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]], [[0.5, 0.25, 0.25], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]]),
    ([[0.6, 0.2, 0.2], [0.1, 0.7, 0.2], [0.3, 0.1, 0.6]], [[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.3, 0.1, 0.6]]),
)
"""The matrices of the beginning, and of three histories that are adopted: backward and forward."""

ADVERSARIES = tuple(Adversary(TransitionMatrix(one), TransitionMatrix(two)) for one, two in ROWS)


def label(step):
    return (FIRST + timedelta(hours=step)).isoformat()


def counts(step):
    return [50 + step % 7, 30, 20 - step % 7]


def opened(place, number):
    mechanism = workers.NotedHistogram(DiscreteLaplaceHistogram(3), Path(os.devnull))
    accountant = TemporalAccountant(ADVERSARIES[number], alpha=ALPHA)
    return ContinualRelease(
        mechanism,
        ledger=place,
        accountant=accountant,
        description="hourly",
        states=("A", "B", "C"),
        step="3600 seconds",
    )


def adopted_so_far(place):
    with Ledger(place) as ledger:
        return sum(event.kind == "adopt" for event in ledger.events)


def write_for_ever(place, folder, number, n_steps, ready):
    """A job: it publishes what there is to publish, sees some of it again, and has a late file now and then."""
    rng = random.Random()
    note = folder / f"published{number}"
    while True:
        try:
            stream = opened(place, adopted_so_far(place))
            break
        except LedgerMismatchError:  # another history was adopted in between
            continue
    with stream:
        os.write(ready, b"!")
        while len(stream) < n_steps:
            step = len(stream)
            for asked in {step, max(step - 1, 0), rng.randrange(step + 1)} if step % 50 == 0 else {step}:
                output = stream.release(counts(asked), time=label(asked))
                workers._note(note, {"step": asked, "output": output.tolist()})
            if step and step % 40 == 0:
                late = (FIRST + timedelta(hours=step, minutes=-30)).isoformat()
                try:
                    stream.release(counts(step), time=late)
                    workers._note(folder / "wrong", {"late": late})
                except LateDataError:
                    workers._note(folder / "late", {"late": late})


def start(place, folder, number, n_steps):
    waiting, ready = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(waiting)
            write_for_ever(place, folder, number, n_steps, ready)
            code = 0
        finally:
            os._exit(code)
    os.close(ready)
    return child, waiting


def simulate(place, folder, n_steps, n_kills, seed):
    """Keep two writers going, kill one of them again and again, and adopt three histories on the way."""
    rng = random.Random(seed)
    # The first calls load OpenDP and SciPy's optimisers, so that the forks need not.
    DiscreteLaplaceHistogram(n_states=1)([0], 1.0)
    TemporalAccountant(ADVERSARIES[0], alpha=ALPHA).remaining()
    opened(place, 0).close()
    began, killed, adopted, done = time.monotonic(), 0, 0, set()
    running = {number: start(place, folder, number, n_steps) for number in range(N_WRITERS)}
    while len(done) < N_WRITERS:
        with Ledger(place) as ledger:
            n = len(ledger)
        if adopted < 3 and n >= (adopted + 1) * n_steps // 4:
            adopted += 1
            adopt_correlation(place, ADVERSARIES[adopted], by=f"year {adopted}")
        due = killed < n_kills and n >= killed * n_steps // (n_kills + 1)
        for number, (child, waiting) in list(running.items()):
            finished, status = os.waitpid(child, os.WNOHANG)
            if finished:
                assert os.waitstatus_to_exitcode(status) == 0, "a writer stopped by itself"
                os.close(waiting)
                done.add(number)
                del running[number]
        if due and running:
            number = rng.choice(sorted(running))
            child, waiting = running[number]
            if rng.random() < 0.8:
                os.read(waiting, 1)
            time.sleep(rng.uniform(0.0, LONGEST_LIFE if n_steps > 5000 else 0.1))
            os.kill(child, signal.SIGKILL)
            os.close(waiting)
            os.waitpid(child, 0)
            killed += 1
            running[number] = start(place, folder, number, n_steps)
        else:
            time.sleep(0.05)
    return {"killed": killed, "adopted": adopted, "seconds": time.monotonic() - began}


def reckoned(epsilons, starts, depth=90):
    """TPL of every step by the sign rule (THEORY 8), with matrices that change: bisected, whole arrays at a time.

    Parameters
    ----------
    epsilons : array, shape (T,)
    starts : sequence of int
        The first steps of the matrices in `ROWS`.
    depth : int
        Steps that are looked at in each direction: these matrices shrink differences by 0.7 a step at least, so that what lies
        further away moves nothing that a double shows.
    """
    n_steps = len(epsilons)
    valid = np.searchsorted(np.asarray(starts), np.arange(n_steps), side="right") - 1
    values = [(i, j) for i in range(3) for j in range(3) if i != j]
    matrices = [np.array([one[side] for one in ROWS]) for side in (0, 1)]
    arriving = []
    for side, sign in ((0, -1), (1, 1)):
        found = np.zeros((n_steps, len(values)))
        for k, (i, j) in enumerate(values):
            # The backward matrix of a step leads to the one before, the forward one to the one after.
            own = matrices[side][valid]
            low, high = np.zeros(n_steps), np.full(n_steps, 2.0 * ALPHA)
            for _ in range(44):
                middle = 0.5 * (low + high)
                c = own[:, i] - np.exp(middle)[:, None] * own[:, j]
                above = np.zeros(n_steps, bool)
                going = np.ones(n_steps, bool)
                for away in range(1, depth + 1):
                    at = np.arange(n_steps) + sign * away
                    inside = (at >= 0) & (at < n_steps)
                    here = np.clip(at, 0, n_steps - 1)
                    going &= inside
                    raised = np.where(c > 0.0, c * np.exp(epsilons[here])[:, None], c)
                    c = np.where(going[:, None], raised, c)
                    following = at + sign
                    more = going & (following >= 0) & (following < n_steps) & (away < depth)
                    moved = np.einsum("ti,tij->tj", c, matrices[side][valid[here]])
                    c = np.where(more[:, None], moved, c)
                    going = more
                above = c.sum(axis=1) > 0.0
                edge = np.arange(n_steps) + sign
                above &= (edge >= 0) & (edge < n_steps)
                low, high = np.where(above, middle, low), np.where(above, high, middle)
            found[:, k] = high
        arriving.append(found)
    return epsilons + (arriving[0] + arriving[1]).max(axis=1)


if __name__ == "__main__":
    where, at, *numbers = sys.argv[1:]
    print(json.dumps(simulate(where, Path(at), *map(int, numbers))))
