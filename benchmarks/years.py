"""A ledger of very many steps: how long it takes to open it, to release the next step, and to report on it; and an account.

    python benchmarks/years.py [STEPS [FOLDER]]

The steps are written as a release writes them, rows, hashes, leakage and checkpoints, but many in a transaction: else the disk
alone would take hours. All spend the same, so that after the first 3,000 the account's state repeats but for the numbers of
its steps; these are written without being counted again. What is measured afterwards is the package, a new process each.
"""

from __future__ import annotations

import copy
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from temporaldp import (
    Adversary,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    Ledger,
    TemporalAccountant,
    TransitionMatrix,
)
from temporaldp.publish.release.chain import (
    LEDGER,
    STEPS_BETWEEN_CHECKPOINTS,
    LedgerEvent,
    LedgerRow,
    canonical,
    digest_of,
    keep_checkpoint,
    sealed,
)
from temporaldp.publish.release.key_and_marks import keyed_digest
from temporaldp.publish.release.outputs import as_text
from temporaldp.publish.release.shared_account import SharedRelease
from temporaldp.publish.release.tables import tables

STEPS = 500_000
COUNTED = 3_000
AT_ONCE = 10_000
ALPHA = 1.0
MATRICES = (
    TransitionMatrix([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]], states=("A", "B", "C")),
    TransitionMatrix([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.4, 0.5]], states=("A", "B", "C")),
)
FIRST = datetime(2024, 1, 1)
TABLES, EVENTS = ("A", "B"), 100_000


def accountant() -> TemporalAccountant:
    return TemporalAccountant(Adversary(*MATRICES), alpha=ALPHA)


def opened(place: Path) -> ContinualRelease:
    return ContinualRelease(
        DiscreteLaplaceHistogram(3), ledger=place, accountant=accountant(), states=("A", "B", "C"), step="60 seconds"
    )


def of_account(place: Path, table: str) -> SharedRelease:
    """One of two tables, each of which has an event at every step."""
    shares = dict.fromkeys(TABLES, 0.5)
    return SharedRelease(
        table, DiscreteLaplaceHistogram(3), shares=shares, ledger=place, accountant=accountant(), step="60 seconds"
    )


def published(table: str, step: int, epsilon: float, rng: np.random.Generator) -> str:
    """What an event of a table contains."""
    output, found = as_text(rng.integers(0, 100, 3)), keyed_digest("data", [50, 30, step])
    mechanism = repr(DiscreteLaplaceHistogram(3))
    return canonical({"step": step, "epsilon": epsilon, "mechanism": mechanism, "output": output, "digest": found})


def label(step: int) -> str:
    return (FIRST + timedelta(minutes=step)).isoformat()


def build(place: Path, n_steps: int, tables_of_account: tuple[str, ...] = ()) -> float:
    """Write a ledger, by default of one release; gives how long counting took, in seconds a step."""
    (of_account(place, tables_of_account[0]) if tables_of_account else opened(place)).close()
    counting, rng, mechanism = accountant(), np.random.default_rng(0), DiscreteLaplaceHistogram(3)
    epsilon = counting.reserve if tables_of_account else mechanism.epsilon_spent(counting.reserve)
    took, leakage = 0.0, 0.0
    with Ledger(place) as ledger:
        head, made, before, checked = ledger.head, list[LedgerEvent](), "", 0
        for start in range(0, n_steps, AT_ONCE):
            rows: list[LedgerRow] = []
            events: list[LedgerEvent] = []
            for step in range(start, min(start + AT_ONCE, n_steps)):
                if step < COUNTED:
                    began = time.perf_counter()
                    leakage = counting.total(epsilon)
                    counting.spend(epsilon)
                    took += time.perf_counter() - began
                if (
                    step and step % STEPS_BETWEEN_CHECKPOINTS == 0
                ):  # the checkpoints of long ago: of them only the events are left
                    before, checked = digest_of(made, [len(made)], checked, before), len(made)
                    content = canonical({"digest": "gone", "events": before})
                    event = LedgerEvent(len(made), step, "checkpoint", label(step), "temporaldp", content, "")
                    events.append(sealed(event, head))
                    made.append(events[-1])
                    head = events[-1].hash
                output = as_text({"charged": epsilon} if tables_of_account else rng.integers(0, 100, 3))
                row = LedgerRow(step, label(step), epsilon, epsilon, leakage, False, output, None, None, "")
                rows.append(sealed(row, head))
                head = rows[-1].hash
                for table in tables_of_account:
                    content = published(table, step, 0.5 * epsilon, rng)
                    event = LedgerEvent(len(made), step + 1, "table", label(step), table, content, "")
                    events.append(sealed(event, head))
                    made.append(events[-1])
                    head = events[-1].hash
            with ledger.store.writing() as transaction:
                for table, entries in ((tables().steps, rows), (tables().events, events)):
                    values = [{"release": LEDGER, **one._asdict()} for one in entries]
                    transaction.connection.execute(table.insert(), values)
                end = {"n_steps": len(rows) + start, "head": head, "mac": keyed_digest("head", [LEDGER, head])}
                transaction.connection.execute(tables().releases.update().values(end))
        ledger.refresh()
        state = counting.kept_state()
        assert state is not None
        with ledger.writing() as writer:
            keep_checkpoint(ledger, writer, shifted(state, n_steps))
    return took / min(COUNTED, n_steps)


def shifted(state: dict[str, Any], n_steps: int) -> dict[str, Any]:
    """A kept state as it would be after so many steps."""
    by = n_steps - state["n_steps"]
    found = copy.deepcopy(state) | {"n_steps": n_steps}
    for one in (*found["odometers"], *found["filters"]):
        one["n_steps"] += by
    return found


ACCOUNT = """
import sys, time
sys.path.insert(0, {folder!r})
import years
from pathlib import Path
began = time.perf_counter()
with years.of_account(Path({place!r}), "A") as stream:
    opened = time.perf_counter() - began
    n, n_events, each = len(stream), len(stream.ledger.events), []
    stream.release([50, 30, 20], time=years.label(n))
    for step in range(n + 1, n + 101):
        began = time.perf_counter()
        stream.release([50, 30, 20], time=years.label(step))
        each.append(time.perf_counter() - began)
    print(n_events, opened, sorted(each)[50], max(each))
"""

OPEN = """
import sys, time
sys.path.insert(0, {folder!r})
import years
from pathlib import Path
began = time.perf_counter()
with years.opened(Path({place!r})) as stream:
    opened = time.perf_counter() - began
    n, each = len(stream), []
    stream.release([50, 30, 20], time=years.label(n))
    for step in range(n + 1, n + 101):
        began = time.perf_counter()
        stream.release([50, 30, 20], time=years.label(step))
        each.append(time.perf_counter() - began)
    began = time.perf_counter()
    stream.release([50, 30, 20], time=years.label(1234))
    again = time.perf_counter() - began
    print(opened, sorted(each)[50], max(each), again, n, stream.ledger.checkpoint.end.n_steps)
"""


def measure_account(place: Path) -> None:
    """Open an account and release one table of it, in a process of its own."""
    code = ACCOUNT.format(folder=str(Path(__file__).parent), place=str(place))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    n_events, opened_in, median, most = map(float, done.stdout.split())
    print(
        f"an account of {n_events:.0f} events: opened in {opened_in:.2f} s, a step {1e3 * median:.1f} ms in the median of 100, "
        f"{1e3 * most:.1f} ms at most"
    )


def measure(place: Path) -> None:
    """Open it, release, verify, export, report: each in a process of its own."""
    code = OPEN.format(folder=str(Path(__file__).parent), place=str(place))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    opened_in, median, most, again, n, checked = done.stdout.split()
    print(f"{n} steps, opened from step {checked} in {float(opened_in):.2f} s")
    print(
        f"a step: {1e3 * float(median):.1f} ms in the median of 100 after the first, which loads OpenDP, {1e3 * float(most):.1f} ms at most"
    )
    print(f"an old step given again: {1e3 * float(again):.1f} ms")
    for name, arguments in (
        ("ledger verify", ["ledger", "verify", str(place)]),
        ("ledger export", ["ledger", "export", str(place), "-o", str(place.with_suffix(".parquet")), "--overwrite"]),
        ("report --ledger", ["report", "--ledger", str(place), "-o", str(place.with_suffix(".html"))]),
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
        shared = folder / "account.db"
        if not shared.exists():
            build(shared, EVENTS // len(TABLES), TABLES)
        measure_account(shared)
