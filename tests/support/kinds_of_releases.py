"""Two processes that release in one of several ways and are killed in turn; run as a script, which prints a JSON report.

python kinds_of_releases.py KIND LEDGER FOLDER N_KILLS SEED

KIND is shared (each process publishes a table of its own on one account), smoothed (both publish with filtered counts), renewed
(a plan that begins again), or adopting (one process releases, the other adopts other correlations).
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from temporaldp import (
    Adversary,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    Ledger,
    LedgerError,
    PublicCorrelation,
    TemporalAccountant,
    TransitionMatrix,
    plan_budget,
)
from temporaldp.base.errors import LedgerMismatchError
from temporaldp.core.correlation import independent_adversary
from temporaldp.publish.release import SharedRelease, adopt_correlation
from workers import _note

STAYS = TransitionMatrix([[0.6, 0.4], [0.4, 0.6]])
STAYS_LONGER = TransitionMatrix([[0.75, 0.25], [0.25, 0.75]])
ADVERSARIES = Adversary(STAYS, STAYS), Adversary(STAYS_LONGER, STAYS_LONGER)
TABLES = {"x": 0.5, "y": 0.5}
COUNTS = [50, 50]
PLANNED = 7

Released = Iterator[tuple[str, int, object]]


LONGEST_LIFE = {"adopting": 2.5}
"""Seconds; others live for 0.6. After an adoption it takes half a second to find what every step can spend."""

WHILE_RELEASING, PATIENCE = 0.8, 20.0
"""Share of the kills that wait until something more is published, however busy the machine is, and for how many seconds."""


@cache
def accountant(adversary):
    """Made once, before the forks: what every step can spend takes longer to find than a process lives."""
    made = TemporalAccountant(adversary, alpha=1.0)
    assert made.reserve > 0.0  # which looks for it
    return made


@cache
def both():
    return independent_adversary(*ADVERSARIES)


def histogram():
    return DiscreteLaplaceHistogram(n_states=2)


def shared(ledger, number) -> Released:
    table = sorted(TABLES)[number]
    release = SharedRelease(table, histogram(), shares=TABLES, ledger=ledger, accountant=accountant(both()))
    for step in steps_from(release.n_published):
        yield table, step, release.release(COUNTS, time=step).tolist()


def smoothed(ledger, number) -> Released:
    public = PublicCorrelation(STAYS, provenance="public")
    known = accountant(ADVERSARIES[0])
    stream = ContinualRelease(histogram(), ledger=ledger, accountant=known, correlation=public)
    for step in steps_from(len(stream)):
        output = stream.release(COUNTS, time=step).tolist()
        estimate = stream.filtered(step)
        yield "", step, [output, estimate.counts.tolist(), estimate.lower.tolist()]


def renewed(ledger, number) -> Released:
    plan = plan_budget(ADVERSARIES[0], alpha=1.0, horizon=PLANNED)
    odometer = TemporalAccountant(ADVERSARIES[0])
    stream = ContinualRelease(histogram(), ledger=ledger, accountant=odometer, plan=plan, renewed="steps")
    for step in steps_from(len(stream)):
        yield "", step, stream.release(COUNTS, time=step).tolist()


def adopting(ledger, number) -> Released:
    while True:
        known = accountant(ADVERSARIES[n_adopted(ledger) % 2])
        try:
            stream = ContinualRelease(histogram(), ledger=ledger, accountant=known)
        except LedgerMismatchError:  # adopted in between
            continue
        if number:
            stream.close()
            adopt_correlation(ledger, ADVERSARIES[(n_adopted(ledger) + 1) % 2], by="another process")
            time.sleep(0.05)
            continue
        start = max(len(stream) - 1, 0)
        for step in range(start, start + 5):
            yield "", step, stream.release(COUNTS, time=step).tolist()
        stream.close()


def n_adopted(ledger):
    try:
        with Ledger(ledger) as known:
            return len(known.adoptions)
    except LedgerError:  # there is none yet
        return 0


def steps_from(n_known):
    """The last step that is there, which is given again, and all that follow."""
    step = max(n_known - 1, 0)
    while True:
        yield step
        step += 1


KINDS = {"shared": shared, "smoothed": smoothed, "renewed": renewed, "adopting": adopting}


def size_of(file):
    return file.stat().st_size if file.exists() else 0


def begun(kind, ledger, folder, number):
    child = os.fork()
    if child == 0:
        try:
            for name, step, output in KINDS[kind](ledger, number):
                _note(folder / "published", {"name": name, "step": step, "output": output})
        except BaseException as error:
            _note(folder / "errors", {"error": repr(error)})
        os._exit(1)
    return child


def main(kind, ledger, folder, n_kills, seed):
    rng = random.Random(seed)
    warm = folder / "warm.db"
    _ = [accountant(adversary) for adversary in ADVERSARIES]
    for number in range(2 if kind == "shared" else 1):  # libraries are loaded before the forks
        for _, step, _ in KINDS[kind](str(warm), number):
            if step == 1:
                break
    children = [begun(kind, ledger, folder, number) for number in range(2)]
    for _ in range(n_kills):
        if rng.random() < WHILE_RELEASING:
            before, deadline = size_of(folder / "published"), time.monotonic() + PATIENCE
            while size_of(folder / "published") == before and time.monotonic() < deadline:
                time.sleep(0.01)
        time.sleep(rng.uniform(0.02, LONGEST_LIFE.get(kind, 0.6)))
        number = rng.randrange(2)
        os.kill(children[number], signal.SIGKILL)
        os.waitpid(children[number], 0)
        children[number] = begun(kind, ledger, folder, number)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *map(int, sys.argv[4:]))
    print(json.dumps({}))
