"""What spending step by step costs: docs/online.md, measured in one run.

Run with:  make bench-online
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
from bench import machine
from measure import short, table

import temporaldp as tdp

STEPS = (1_000, 10_000, 100_000, 1_000_000)
AROUND = 1_000
"""Spends that are timed at each place."""

PEER_STEPS = (10, 100, 1_000, 4_000)
LEDGER_STEPS = (100, 10_000)
ADVERSARIES = {
    "[[.8, .2], [.2, .8]]": [[0.8, 0.2], [0.2, 0.8]],
    "[[.99, .01], [.01, .99]]": [[0.99, 0.01], [0.01, 0.99]],
    "[[.999, .001], [.001, .999]]": [[0.999, 0.001], [0.001, 0.999]],
}

HEAD = """# What spending step by step costs

Made by `make bench-online`, in one run on one machine. A spend's budget is a random share, from 0 to 1.2, of what the accountant keeps
in reserve, or all that remains, whichever is less; every hundredth step is not published.

"""


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
    yield "## A million spends\n\nMicroseconds a spend (a query of what remains, and the spend), and a question for the worst step so far"
    yield " after it, by the number of steps so far; bytes are what a step adds to the process's memory.\n\n"
    rows = []
    for name, matrix in ADVERSARIES.items():
        rng = random.Random(1)
        accountant = tdp.TemporalAccountant(adversary(matrix), alpha=1.0)
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
        worst = tdp.temporal_leakage(adversary(matrix), epsilons=accountant.ledger).worst
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
    yield "\n\n## Many users\n\nMilliseconds a spend with everybody's own random correlation of 5 states, after 100 steps.\n\n"
    rows = []
    for count in (1, 10, 100, 1_000):
        rng = np.random.default_rng(0)
        stack = rng.dirichlet(np.ones(5), (count, 5))
        people = [tdp.Adversary(tdp.TransitionMatrix(m), tdp.TransitionMatrix(m)) for m in stack]
        accountant = tdp.TemporalAccountant(people, alpha=1.0)
        base, source = accountant.reserve, random.Random(1)
        spend(accountant, source, base, 100)
        each = timed(lambda a=accountant, r=source, b=base: spend(a, r, b, 20)) / 20
        rows.append([f"{count:,}", f"{1e3 * each:.3f}"])
    yield table(["users", "a spend"], rows)


def against_diffprivlib() -> Iterator[str]:
    """The accountant that users know: its spend adds everything up anew."""
    yield "\n\n## Against diffprivlib\n\nMicroseconds a spend, by the number of spends so far. diffprivlib's `BudgetAccountant` accounts for plain\n"
    yield "composition, ours for temporal leakage; the comparison is about what a stream can afford.\n\n"
    rows = []
    for steps in PEER_STEPS:
        theirs = diffprivlib.BudgetAccountant(epsilon=1e9, delta=0.0)
        for _ in range(steps):
            theirs.spend(0.01, 0.0)
        ours = tdp.TemporalAccountant(adversary(ADVERSARIES["[[.8, .2], [.2, .8]]"]), alpha=1.0)
        for _ in range(steps):
            ours.spend(0.01)
        peer = timed(lambda t=theirs: [t.spend(0.01, 0.0) for _ in range(20)]) / 20
        own = timed(lambda o=ours: [o.spend(0.01) for _ in range(AROUND)]) / AROUND
        rows.append([f"{steps:,}", f"{1e6 * own:.1f}", f"{1e6 * peer:.1f}", f"{peer / own:.1f}"])
    yield table(["spends so far", "temporaldp", f"diffprivlib {diffprivlib.__version__}", "ratio"], rows)


def ledgers() -> Iterator[str]:
    """A step on disk."""
    yield "\n\n## The ledger\n\nMilliseconds a step of a continual release of five counts (check, draw, store, commit with full synchronisation), and\n"
    yield "seconds to open and check the whole chain, SQLite.\n\n"
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "release.db"
        matrix = tdp.random_correlation(5, rng=0)

        def opened() -> tdp.ContinualRelease:
            accountant = tdp.TemporalAccountant(tdp.Adversary(matrix, matrix), alpha=1.0)
            mechanism = tdp.DiscreteLaplaceHistogram(n_states=5)
            return tdp.ContinualRelease(mechanism, ledger=place, accountant=accountant)

        for steps in LEDGER_STEPS:
            with opened() as stream:
                while len(stream) < steps - 100:
                    stream.release([50, 40, 30, 20, 10], time=len(stream))
                each = timed(lambda s=stream: _hundred(s)) / 100
            opening = timed(lambda: opened().close())
            size = place.stat().st_size / steps
            rows.append([f"{steps:,}", f"{1e3 * each:.2f}", f"{opening:.2f}", f"{size:.0f}"])
    yield table(["steps so far", "a step", "opening", "bytes a step"], rows)


def _hundred(stream: tdp.ContinualRelease) -> None:
    for _ in range(100):
        stream.release([50, 40, 30, 20, 10], time=len(stream))


def main() -> None:
    """Write the document."""
    target = Path(sys.argv[1])
    text = HEAD + machine() + "\n"
    for part in (streams, users, against_diffprivlib, ledgers):
        for piece in part():
            text += piece
    target.write_text(text.rstrip("\n") + "\n")


if __name__ == "__main__":
    main()
