"""Support for unattended releases: dry runs, log lines, and warnings about used budget."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from temporaldp import ContinualRelease, Ledger, TemporaldpError
from temporaldp.cli.released import of_tables
from temporaldp.cli.render import facts, listing, say_json
from temporaldp.correlation import Traces
from temporaldp.errors import OutputError
from temporaldp.release.database import database_of, file_of
from temporaldp.release.file_store import FileDatabase
from temporaldp.release.guards import Forecast
from temporaldp.release.ledger import ADOPT
from temporaldp.release.postgres import PostgresDatabase
from temporaldp.release.store import Store
from temporaldp.report.sentences import nats, number, steps

MOST_NAMED = 3
"""Times that a warning names."""

MOST_ROWS = 12
"""Steps that a forecast shows."""


@contextmanager
def trial_place(ledger: str) -> Iterator[str | Store]:
    """A ledger that can be opened without a change to the given one, and that messages call by its name.

    Of a file a copy, or a new one if there is none; of a database all of it in a transaction that is rolled back.
    """
    file = file_of(ledger)
    if file is None:
        database = PostgresDatabase(*database_of(ledger))
        with database.trial():
            yield Store(database)
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / file.name
        if file.exists():
            with Ledger(file) as known:
                known.back_up(place)
        yield Store(FileDatabase(place, shown=ledger))


def say_forecast(
    stream: ContinualRelease[Any, Any],
    found: Sequence[Forecast],
    as_json: bool,
    *,
    document: dict[str, Any],
    rows: list[tuple[str, str]],
) -> None:
    """Print the budgets and the leakage of new steps, in a dry run, and what else is reported of them."""
    guard, of = stream.guard, of_tables(stream)
    leakage = found[-1].leakage if found else stream.leakage
    if as_json:
        listed = [
            {"time": f.time, "parameter": f.parameter, "epsilon": f.epsilon, "worst_leakage": f.leakage} for f in found
        ]
        known = {"ledger_steps": len(stream), "alpha": guard.alpha, "worst_leakage": leakage, "steps": listed}
        say_json({"dry_run": True} | document | known)
        return
    worst = [] if leakage is None else [("worst leakage then", nats(leakage) + of)]
    all_epochs = f" within each epoch, {number(guard.promise, up=True)} nats with all of them"
    level = f"{guard.alpha:g} nats{'' if guard.promise == guard.alpha else all_epochs}{of}"
    facts("Dry run", [*rows, ("level", level), *worst])
    listing(
        [
            {
                "time": f.time,
                "epsilon": number(f.epsilon, up=True),
                "worst leakage": "" if f.leakage is None else number(f.leakage, up=True),
            }
            for f in found[-MOST_ROWS:]
        ]
    )


def other_data(release: ContinualRelease[Any, Any], data: Traces, times: Sequence[str]) -> str | None:
    """Warning about published times whose data differ from those that were released, or for which that is unknown."""
    truth = dict(zip(data.times, data.histogram(), strict=True))
    differs = {time: release.input_differs(truth[time], time=time) for time in times}
    changed, unknown = ([time for time in times if differs[time] is answer] for answer in (True, None))
    found = []
    if changed:
        found.append(
            f"the data of {_named(changed)} differ from those that were released. What was published stays, and is given "
            "again; the new data of these times cannot be released any more"
        )
    if unknown:
        found.append(
            f"changed data of {_named(unknown)} are not detected: the key that their digests need is missing, or others than "
            "its owner may read it (TEMPORALDP_KEY_FILE, or temporaldp/key in the user's configuration directory)"
        )
    return "; ".join(found) or None


def _named(times: Sequence[str]) -> str:
    return f"{steps(len(times))} ({', '.join(times[:MOST_NAMED])}{', ...' if len(times) > MOST_NAMED else ''})"


def nearly_used(stream: ContinualRelease[Any, Any], share: float | None) -> str | None:
    """Warning once a share of the steps, or of a level that is not spent as planned, is used; None before."""
    used = used_share(stream)
    if share is None or used is None or used < share:
        return None
    return f"{100.0 * used:.0f} % of what may be used is used, and --warn-at is {share:g}: {_used_of(stream)}"


def used_share(stream: ContinualRelease[Any, Any]) -> float | None:
    """Share of the horizon that is over; without one, of alpha if a step exceeded the sustainable budget, otherwise None."""
    accountant = stream.guard.accountant
    if stream.guard.horizon is not None:
        return len(stream) / stream.guard.horizon
    leakage = stream.leakage
    if accountant is None or accountant.alpha is None or leakage is None:
        return None
    adopted = max((event.step for event in stream.ledger.events if event.kind == ADOPT), default=0)
    as_foreseen = (accountant.spent[adopted:] <= accountant.reserve).all()
    return None if as_foreseen else leakage / accountant.alpha


def _used_of(stream: ContinualRelease[Any, Any]) -> str:
    leakage, parts = stream.ledger[-1].leakage, []
    if leakage is not None:
        parts.append(f"{number(leakage, up=True)} of {stream.guard.promise:.4g} nats leaked about some step")
    if stream.guard.horizon is not None:
        parts.append(f"{len(stream)} of {steps(stream.guard.horizon)} are over")
    return ", and ".join(parts)


def ledger_facts(stream: ContinualRelease[Any, Any]) -> dict[str, Any]:
    """Facts about the ledger for a line of the log."""
    return {
        **({} if stream.table is None else {"table": stream.table}),
        "ledger_steps": len(stream),
        "head": stream.ledger.head,
        "alpha": stream.guard.alpha,
        "promise": stream.guard.promise,
        "worst_leakage": stream.leakage,
    }


@contextmanager
def logged(file: Path | None) -> Iterator[dict[str, Any]]:
    """Append a line about the block to a file: the entries that the block sets, its duration, and its outcome.

    Of an error the line contains only the class: its message may contain protected data.
    """
    line: dict[str, Any] = {"at": datetime.now(UTC).isoformat(timespec="seconds")}
    begun = time.monotonic()
    try:
        yield line
    except TemporaldpError as error:
        _append(file, line | {"ended": type(error).__name__, "seconds": round(time.monotonic() - begun, 3)})
        raise
    _append(file, line | {"ended": "done", "seconds": round(time.monotonic() - begun, 3)})


def _append(file: Path | None, line: dict[str, Any]) -> None:
    if file is None:
        return
    try:
        with open(file, "a", encoding="utf-8", opener=_unlinked) as log:
            log.write(json.dumps(line, allow_nan=False) + "\n")
    except OSError as error:
        raise OutputError(f"cannot write the log {file}: {error.strerror or error}") from None


def _unlinked(path: str, flags: int) -> int:
    """Open a file; not what a symbolic link leads to."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
