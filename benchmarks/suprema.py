"""The exact leakage for ever of many people with 10 values each, and matrices of their own.

Run with:  python benchmarks/suprema.py 100000            (random rows: 20 seconds)
           python benchmarks/suprema.py 20000 staying     (chains that mostly stay where they are)
           python benchmarks/suprema.py 1000000 traces    (learnt from a Parquet file with 100 rows each: five minutes)
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from scale import STEPS, made

import temporaldp as tdp

STATES = tuple("abcdefghij")
EPSILON = 0.1
AT_ONCE = 1000


def people(count: int, kind: str) -> Iterator[tdp.Adversary]:
    """People whose rows are drawn at random; "staying": who stay with a probability from 0.8 to 0.99, drawn row by row."""
    rng, n = np.random.default_rng(0), len(STATES)
    for first in range(0, count, AT_ONCE):
        rows = rng.dirichlet(np.ones(n), size=(min(AT_ONCE, count - first), 2, n))
        if kind == "staying":
            stays = rng.uniform(0.8, 0.99, size=(*rows.shape[:3], 1))
            rows = stays * np.eye(n) + (1.0 - stays) * rows
        for k, (backward, forward) in enumerate(rows, first):
            yield tdp.Adversary(
                tdp.TransitionMatrix(backward, STATES), tdp.TransitionMatrix(forward, STATES), name=str(k)
            )


def learnt(path: Path) -> Iterator[tdp.Adversary]:
    """Everybody in a file, each learnt from their own rows."""
    return tdp.estimate_adversaries(tdp.read_traces(path), prior=1.0, per_user=True)


def main() -> None:
    count, kind = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "random"
    tdp.studies.leakage_distribution(people(1, "random"), epsilon=EPSILON)  # libraries are loaded
    if kind != "traces":
        measure(count, kind, partial(people, count, kind))
        return
    with tempfile.TemporaryDirectory(prefix="lasting-") as scratch:
        path = made(Path(scratch), STEPS * count, "sorted", states=len(STATES))
        measure(count, kind, partial(learnt, path))


def measure(count: int, kind: str, adversaries: Callable[[], Iterator[tdp.Adversary]]) -> None:
    """Print what it costs to make these adversaries, and to find their leakage."""
    started, worked = time.perf_counter(), time.process_time()
    found = tdp.studies.leakage_distribution(adversaries(), epsilon=EPSILON)
    taken, work = time.perf_counter() - started, time.process_time() - worked
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    each = f"{1e6 * taken / count:.0f} us each ({1e6 * work / count:.0f} us of processor time)"
    print(f"{count} people, {kind}: {taken:.1f} s, {each}, {largest:.2f} GiB; {found}")


if __name__ == "__main__":
    main()
