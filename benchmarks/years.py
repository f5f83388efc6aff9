"""A ledger of very many steps: how long it takes to open it, to release the next step, and to report on it.

    python benchmarks/years.py [STEPS [FOLDER]]

The steps are written as a release writes them, rows, hashes, leakage and checkpoints, but many in a transaction: else the disk
alone would take hours. What is measured afterwards is the package, a new process each.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from temporaldp import (
    Adversary,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    Ledger,
    TemporalAccountant,
    TransitionMatrix,
)
from temporaldp.release.chain import LedgerRow, chained
from temporaldp.release.checkpoints import CHECKPOINT, EVERY, Checkpoint, keep_checkpoint
from temporaldp.release.ledger import LedgerWriter
from temporaldp.release.migrations import CURRENT
from temporaldp.release.outputs import as_text
from temporaldp.release.tables import tables

STEPS = 500_000
ALPHA = 1.0
MATRICES = (
    TransitionMatrix([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]], states=("A", "B", "C")),
    TransitionMatrix([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.4, 0.5]], states=("A", "B", "C")),
)
FIRST = datetime(2024, 1, 1)


def accountant() -> TemporalAccountant:
    return TemporalAccountant(Adversary(*MATRICES), alpha=ALPHA)


def opened(place: Path) -> ContinualRelease:
    return ContinualRelease(
        DiscreteLaplaceHistogram(3), ledger=place, accountant=accountant(), states=("A", "B", "C"), step="60 seconds"
    )


def label(step: int) -> str:
    return (FIRST + timedelta(minutes=step)).isoformat()


def build(place: Path, n_steps: int) -> float:
    """Write a ledger; gives how long counting took, in seconds a step."""
    opened(place).close()
    counting, rng, mechanism = accountant(), np.random.default_rng(0), DiscreteLaplaceHistogram(3)
    epsilon = mechanism.epsilon_spent(counting.reserve)
    took = 0.0
    with Ledger(place) as ledger:
        for start in range(0, n_steps, EVERY):
            rows, head = [], ledger.head
            for step in range(start, min(start + EVERY, n_steps)):
                began = time.perf_counter()
                leakage = counting.total_after(epsilon)
                counting.spend(epsilon)
                took += time.perf_counter() - began
                output = as_text(rng.integers(0, 100, 3))
                row = LedgerRow(step, label(step), epsilon, epsilon, leakage, False, output, None, CURRENT, "")
                head = chained(head, row.content)
                rows.append(replace(row, hash=head))
            with ledger.store.writing() as transaction:
                names = LedgerRow.__slots__
                transaction.connection.execute(
                    tables().steps.insert(), [{name: getattr(row, name) for name in names} for row in rows]
                )
                transaction.connection.execute(tables().heading.update().values(n_steps=rows[-1].step + 1, head=head))
            ledger.refresh()
            with ledger.writing() as writer:
                _checkpoint(ledger, writer, counting)
    return took / n_steps


def _checkpoint(ledger: Ledger, writer: LedgerWriter, counting: TemporalAccountant) -> None:
    calendar = {"kind": "date", "last": ledger[-1].time}
    found = Checkpoint(len(ledger), len(ledger.events), ledger.head, calendar, counting.kept_state())
    details = keep_checkpoint(ledger.store, found.text(ledger.began, ledger.events))
    assert details is not None
    older = [event for event in ledger.events if event.kind == CHECKPOINT][-1:]
    for event in older:
        ledger.store.remove_private(f"checkpoint-{event.details['digest'][:32]}")
    writer.note(CHECKPOINT, by="temporaldp", details=details)


OPEN = """
import sys, time
sys.path.insert(0, {folder!r})
import years
from pathlib import Path
began = time.perf_counter()
with years.opened(Path({place!r})) as stream:
    opened = time.perf_counter() - began
    n, each = len(stream), []
    for step in range(n, n + 100):
        began = time.perf_counter()
        stream.release([50, 30, 20], time=years.label(step))
        each.append(time.perf_counter() - began)
    began = time.perf_counter()
    stream.release([50, 30, 20], time=years.label(1234))
    again = time.perf_counter() - began
    print(opened, sorted(each)[50], max(each), again, n, stream.ledger.checkpoint.n_steps)
"""


def measure(place: Path) -> None:
    """Open it, release, verify, export, report: each in a process of its own."""
    code = OPEN.format(folder=str(Path(__file__).parent), place=str(place))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    opened_in, median, most, again, n, checked = done.stdout.split()
    print(f"{n} steps, opened from step {checked} in {float(opened_in):.2f} s")
    print(f"a step: {1e3 * float(median):.1f} ms in the median of 100, {1e3 * float(most):.1f} ms at most")
    print(f"an old step given again: {1e3 * float(again):.1f} ms")
    for name, arguments in (
        ("ledger verify", ["ledger", "verify", str(place)]),
        ("ledger export", ["ledger", "export", str(place), "-o", str(place.with_suffix(".parquet")), "--overwrite"]),
        ("report --ledger", ["report", "--ledger", str(place), "-o", str(place.with_suffix(".html")), "--overwrite"]),
    ):
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "temporaldp", *arguments], capture_output=True, text=True, check=False
        )
        said = done.stderr.strip()[-200:] if done.returncode else ""
        print(f"{name}: {time.perf_counter() - began:.1f} s {said}", flush=True)


if __name__ == "__main__":
    n_steps = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(temporary)
        where = folder / "release.db"
        if not where.exists():
            print(f"counting: {1e3 * build(where, n_steps):.2f} ms a step", flush=True)
        measure(where)
