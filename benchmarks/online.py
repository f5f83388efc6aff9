"""What spending step by step costs: benchmarks/recorded/online.md, measured in one run.

Run with:  make bench NAME=online
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import diffprivlib
import numpy as np
from measure import ACCOUNTING, record, short, table

import temporaldp as tdp

STEPS = (1_000, 10_000, 100_000, 1_000_000)
AROUND = 1_000
"""Spends that are timed at each place."""

PEER_STEPS = (10, 100, 1_000, 4_000)
EXACT_STEPS = LEDGER_STEPS = (10, 100, 1_000)
ADVERSARIES = {
    "[[.8, .2], [.2, .8]]": [[0.8, 0.2], [0.2, 0.8]],
    "[[.99, .01], [.01, .99]]": [[0.99, 0.01], [0.01, 0.99]],
    "[[.999, .001], [.001, .999]]": [[0.999, 0.001], [0.001, 0.999]],
}


def adversary(rows: list[list[float]]) -> tdp.Adversary:
    """Both directions."""
    matrix = tdp.TransitionMatrix(rows)
    return tdp.Adversary(matrix, matrix)


def spend(accountant: tdp.TemporalAccountant, rng: random.Random, base: float, count: int) -> None:
    """Spend as the head says."""
    for _ in range(count):
        asked = 0.0 if rng.random() < 0.01 else base * rng.uniform(0.0, 1.2)
        accountant.spend(min(asked, accountant.remaining()))


def timed(act: Callable[[], object]) -> float:
    """Seconds."""
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def resident() -> int:
    """Bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def streams() -> Iterator[str]:
    """A million spends: time and memory at the beginning and at the end."""
    yield "\n\n## A million spends by the paper's bound\n\nMicroseconds a spend (a query of what remains, and the spend), and a question for the worst step so far"
    yield " after it, by the number of steps so far; bytes are what a step adds to the process's memory.\n\n"
    rows = []
    for name, matrix in ADVERSARIES.items():
        rng = random.Random(1)
        accountant = tdp.TemporalAccountant(adversary(matrix), alpha=1.0, accounting=tdp.PaperBound())
        base, cells, total = accountant.reserve, [], 0.0
        before = resident()
        for steps in STEPS:
            missing = steps - AROUND - len(accountant)
            total += timed(lambda m=missing, a=accountant, r=rng, b=base: spend(a, r, b, m))
            here = timed(lambda a=accountant, r=rng, b=base: spend(a, r, b, AROUND))
            cells.append(f"{1e6 * here / AROUND:.1f}")
            total += here
        grown = resident() - before
        accountant.total()
        asked = timed(lambda a=accountant, r=rng, b=base: [_spend_and_ask(a, r, b) for _ in range(100)]) / 100
        worst = tdp.temporal_leakage(adversary(matrix), accountant.spent, accounting=tdp.PaperBound()).worst
        assert worst <= 1.0
        rows.append([name, *cells, f"{grown / STEPS[-1]:.0f}", short(total), short(asked), f"{worst:.6f}"])
    head = [
        "correlation",
        *(f"at {steps:,}" for steps in STEPS),
        "bytes a step",
        "all",
        "and the worst step",
        "worst leakage",
    ]
    yield table(head, rows)


def _spend_and_ask(accountant: tdp.TemporalAccountant, rng: random.Random, base: float) -> None:
    spend(accountant, rng, base, 1)
    accountant.total()


def users() -> Iterator[str]:
    """Many correlations at once."""
    yield "\n\n## Many users by the paper's bound\n\nMilliseconds a spend with everybody's own random correlation of 5 states, after 100 steps.\n\n"
    rows = []
    for count in (1, 10, 100, 1_000):
        rng = np.random.default_rng(0)
        stack = rng.dirichlet(np.ones(5), (count, 5))
        people = [tdp.Adversary(tdp.TransitionMatrix(m), tdp.TransitionMatrix(m)) for m in stack]
        accountant = tdp.TemporalAccountant(people, alpha=1.0, accounting=tdp.PaperBound())
        base, source = accountant.reserve, random.Random(1)
        spend(accountant, source, base, 100)
        each = timed(lambda a=accountant, r=source, b=base: spend(a, r, b, 20)) / 20
        rows.append([f"{count:,}", f"{1e3 * each:.3f}"])
    yield table(["users", "a spend"], rows)


def against_diffprivlib() -> Iterator[str]:
    """The accountant that users know: its spend adds everything up anew."""
    yield "\n\n## Against diffprivlib\n\nMicroseconds a spend, by the number of spends so far. diffprivlib's `BudgetAccountant` accounts for plain\n"
    yield "composition, ours for temporal leakage by the paper's bound; the comparison is about what a stream can afford.\n\n"
    rows = []
    for steps in PEER_STEPS:
        theirs = diffprivlib.BudgetAccountant(epsilon=1e9, delta=0.0)
        for _ in range(steps):
            theirs.spend(0.01, 0.0)
        ours = tdp.TemporalAccountant(
            adversary(ADVERSARIES["[[.8, .2], [.2, .8]]"]), alpha=1.0, accounting=tdp.PaperBound()
        )
        for _ in range(steps):
            ours.spend(0.01)
        peer = timed(lambda t=theirs: [t.spend(0.01, 0.0) for _ in range(20)]) / 20
        own = timed(lambda o=ours: [o.spend(0.01) for _ in range(AROUND)]) / AROUND
        rows.append([f"{steps:,}", f"{1e6 * own:.1f}", f"{1e6 * peer:.1f}", f"{peer / own:.1f}"])
    yield table(["spends so far", "temporaldp", f"diffprivlib {diffprivlib.__version__}", "ratio"], rows)


def sample() -> tdp.Adversary:
    """What the bundled sample teaches, with a prior of 1: five states."""
    return next(tdp.estimate_adversaries(tdp.load_sample(), prior=1.0))


def exactly() -> Iterator[str]:
    """Spends by the exact leakage."""
    yield "## Spends by the exact leakage\n\nMilliseconds a spend (a query of what remains, and the spend) on the bundled sample (5 states), and a\n"
    yield "question for the worst step so far after it, by the number of steps so far.\n\n"
    rows = []
    accountant, rng = tdp.TemporalAccountant(sample(), alpha=1.0), random.Random(1)
    base = accountant.reserve
    for steps in EXACT_STEPS:
        spend(accountant, rng, base, steps - len(accountant))
        accountant.total()
        each = timed(lambda: spend(accountant, rng, base, 10)) / 10
        asked = timed(accountant.total)
        rows.append([f"{steps:,}", f"{1e3 * each:.1f}", f"{1e3 * asked:.1f}"])
    yield table(["steps so far", "a spend", "the worst step"], rows)


def ledgers() -> Iterator[str]:
    """A step on disk."""
    yield "\n\n## The ledger\n\nMilliseconds a step of a continual release of the five counts of the bundled sample (check, count, draw, store, commit with\n"
    yield "full synchronisation), and seconds to open the ledger, check the whole chain and release one more step, SQLite.\n\n"
    rows = []
    for bound in ("exact", "paper"):
        accountant = tdp.TemporalAccountant(sample(), alpha=1.0, accounting=ACCOUNTING[bound])
        with tempfile.TemporaryDirectory() as folder:
            for steps in LEDGER_STEPS:
                rows.append([f"{bound}", f"{steps:,}", *_ledger(Path(folder) / "release.db", accountant, steps)])
    yield table(["bound", "steps so far", "a step", "opening and one step", "bytes a step"], rows)


def _ledger(place: Path, accountant: tdp.TemporalAccountant, steps: int) -> list[str]:
    """What a step costs after so many, and going on in another process."""

    def opened() -> tdp.ContinualRelease:
        return tdp.ContinualRelease(tdp.DiscreteLaplaceHistogram(n_states=5), ledger=place, accountant=accountant)

    def one_more(stream: tdp.ContinualRelease) -> None:
        stream.release([50, 40, 30, 20, 10], time=len(stream))

    def resumed() -> None:
        with opened() as stream:
            one_more(stream)

    with opened() as stream:
        while len(stream) < steps:
            one_more(stream)
        each = timed(lambda: [one_more(stream) for _ in range(10)]) / 10
    opening = timed(resumed)
    return [f"{1e3 * each:.1f}", f"{opening:.2f}", f"{place.stat().st_size / steps:.0f}"]


def main() -> None:
    """Write the document."""
    target = Path(sys.argv[1])
    text = ""
    for part in (exactly, streams, users, against_diffprivlib, ledgers):
        for piece in part():
            text += piece
    record(target, text, "make bench NAME=online")


if __name__ == "__main__":
    main()
