"""What the exact engine costs, in processor time and in loops: a loop is a plain Python loop of 20 million steps, in the same run.

Run with:  make bench NAME=engine
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from measure import record, table
from scipy import sparse

import temporaldp as tdp
from temporaldp.core.correlation import lazy_walk

EPSILON = 0.1
Case = tuple[str, Callable[[], object]]


def seconds(act: Callable[[], object]) -> float:
    """Processor time of this process."""
    begun = time.process_time()
    act()
    return time.process_time() - begun


def loop() -> None:
    """The unit."""
    total = 0
    for step in range(20_000_000):
        total += step


def both(matrix: tdp.TransitionMatrix) -> tdp.Adversary:
    """The same matrix in both directions."""
    return tdp.Adversary(matrix, matrix)


def series(adversary: tdp.Adversary | list[tdp.Adversary], steps: int) -> Callable[[], object]:
    """Leakage of every step of equal budgets."""
    return lambda: tdp.temporal_leakage(adversary, np.full(steps, EPSILON))


def cases() -> Iterator[Case]:
    """What is measured, from small to large."""
    rng = np.random.default_rng(0)
    sample = tdp.estimate_adversary(tdp.load_sample())
    yield "bundled sample (5 states), 47 steps", series(sample, 47)
    yield "the same, supremum", lambda: tdp.leakage_supremum(sample, EPSILON)
    yield "the same, sustainable budget", lambda: tdp.sustainable_budget(sample, 1.0)
    yield "the same, optimal plan of 47 steps", lambda: tdp.plan_budget(sample, 1.0, 47)
    accountant = tdp.TemporalAccountant(sample, alpha=1.0)
    for share in rng.uniform(0.0, 1.2, 200):
        accountant.spend(min(share * accountant.reserve, accountant.remaining()))
    yield "the same, a spend after 200 others, and what remains", lambda: accountant.spend(accountant.remaining())
    ten = both(tdp.TransitionMatrix(rng.dirichlet(np.ones(10), 10)))
    yield "10 states, 1,000 different budgets", lambda: tdp.temporal_leakage(ten, rng.uniform(0.05, 0.15, 1_000))
    rows = rng.dirichlet(np.ones(10), size=(2_000, 10))
    people = [tdp.Adversary(*map(tdp.TransitionMatrix, two)) for two in rows.reshape(1_000, 2, 10, 10)]
    yield "1,000 people with matrices of their own, 10 states, 50 steps", series(people, 50)
    for n, steps in ((100, 24), (150, 24)):
        yield f"{n} states, stay with 0.9, {steps} steps", series(both(lazy_walk(0.9, n)), steps)
    seventy = both(lazy_walk(0.9, 70))
    yield "70 states, stay with 0.9, supremum", lambda: tdp.leakage_supremum(seventy, EPSILON)
    yield "the same, sustainable budget", lambda: tdp.sustainable_budget(seventy, 1.0)
    yield (
        "100 states, rows from Dirichlet(1), 24 steps",
        series(both(tdp.TransitionMatrix(rng.dirichlet(np.ones(100), 100))), 24),
    )
    raised = np.eye(100) + 0.005
    strong = tdp.TransitionMatrix(raised / raised.sum(axis=1, keepdims=True))
    yield "100 states, the paper's smoothed strongest correlation (s = 0.005), 50 steps", series(both(strong), 50)
    shift = (
        sparse.eye_array(1_000, k=1)
        + sparse.eye_array(1_000, k=-1)
        + sparse.eye_array(1_000, k=999)
        + sparse.eye_array(1_000, k=-999)
    )
    ring = tdp.TransitionMatrix(0.6 * sparse.eye_array(1_000) + 0.2 * shift)
    yield "1,000 states on a sparse ring, 10 steps", series(both(ring), 10)
    yield (
        "user level at delta = 1e-6, 8,784 steps, Gaussian noise",
        lambda: tdp.plan_guarantee("user:8784", 1.0, delta=1e-6),
    )


def main() -> None:
    """Measure each case once, between two loops."""
    series(both(lazy_walk(0.5, 3)), 3)()  # loads libraries
    rows = []
    for name, act in cases():
        unit = seconds(loop)
        taken = seconds(act)
        unit = 0.5 * (unit + seconds(loop))
        rows.append([name, f"{taken:.3g}", f"{taken / unit:.2g}"])
        print(*rows[-1], flush=True, file=sys.stderr)
    text = "\n## The exact engine\n\n" + table(["case", "seconds", "loops"], rows) + "\n"
    record(Path(sys.argv[1]), text, "make bench NAME=engine")


if __name__ == "__main__":
    main()
