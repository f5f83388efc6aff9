"""Support for unattended releases: a place for dry runs, facts and warnings about a ledger, and log lines."""

from __future__ import annotations

import math
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from temporaldp import ContinualRelease, Ledger, TemporaldpError
from temporaldp.apps.cli.console import outcome, warn
from temporaldp.base.display import number
from temporaldp.base.documents import json_line
from temporaldp.base.errors import OutputError
from temporaldp.base.values import IntArray, plural
from temporaldp.data.files.spilled import remove_folder, temporary_folder
from temporaldp.data.tables import Traces
from temporaldp.data.tables.moments import INSTANT, moment, steps_between
from temporaldp.publish.project.recipe import recipes_of
from temporaldp.publish.project.release import named_times
from temporaldp.publish.release.database import Store, database_of, file_of
from temporaldp.publish.release.file_store import FileDatabase
from temporaldp.publish.release.postgres import PostgresDatabase
from temporaldp.publish.release.renewal import renewal_of
from temporaldp.publish.report.sentences import nats, renewed_line, steps


@contextmanager
def trial_place(ledger: str, output: Path | None) -> Iterator[Store]:
    """A ledger that can be opened without a change to the given one, and that messages call by its name.

    Of a file a copy, or a new one if there is none; of a database all of it in a transaction that is rolled back. A lost
    ledger is recognised by the given place and output.
    """
    file = file_of(ledger)
    if file is None:
        database = PostgresDatabase(*database_of(ledger))
        with database.trial():
            yield Store(database, output=output)
        return
    folder = temporary_folder()
    try:
        place = folder / file.name
        if file.exists():
            with Ledger(file) as known:
                known.back_up(place)
        trial = Store(FileDatabase(place, shown=ledger))
        trial.names = Store(FileDatabase(file, shown=ledger), output=output).names
        yield trial
    finally:
        remove_folder(folder)


class LedgerRun:
    """A run that adds steps to the ledger of a release: what it had before, and what it has now."""

    def __init__(self, stream: ContinualRelease[Any, Any], data: Traces) -> None:
        self.stream, self.data = stream, data
        self.n_before, self.is_first, self.gap = len(stream), not stream.n_published, gap_before(data, stream)
        self.n_again = sum(stream.published(time) is not None for time in data.times)

    @cached_property
    def stored(self) -> list[str]:
        """Times of the data that are published after the run."""
        return [time for time in self.data.times if self.stream.published(time) is not None]

    @property
    def facts(self) -> dict[str, Any]:
        """The ledger after the run, as JSON values."""
        stream = self.stream
        return {
            **({} if stream.table is None else {"table": stream.table}),
            "ledger": stream.ledger.place,
            "ledger_steps": len(stream),
            "new_steps": len(stream) - self.n_before,
            "new_published": len(self.stored) - self.n_again,
            "head": stream.ledger.head,
            "alpha": stream.guard.alpha,
            "alpha_of_epoch": stream.guard.alpha,
            "promise": stream.guard.promise,
            "worst_leakage": stream.leakage,
            "last_time": stream.ledger[-1].time if len(stream) else None,
            "steps_left": self.steps_left,
            "spent": None if stream.guard.delta else math.fsum(stream.ledger.epsilons),
            "remaining": self.remaining,
            "steps_behind": self.steps_behind,
        }

    @property
    def steps_left(self) -> int | None:
        """Steps that the horizon leaves; None without one."""
        horizon = self.stream.guard.horizon
        return None if horizon is None or renewal_of(self.stream.ledger) is not None else horizon - len(self.stream)

    @property
    def remaining(self) -> float | None:
        """Budget that the next step may spend, in nats, where an accountant knows; None elsewhere."""
        accountant = self.stream.guard.accountant
        return (
            None if accountant is None or accountant.alpha is None or self.steps_left == 0 else accountant.remaining()
        )

    @property
    def steps_behind(self) -> float | None:
        """How many steps the last time is behind the clock (of UTC); None for labels that are no dates, and at the horizon."""
        stream = self.stream
        step, last = stream.step or self.data.step, stream.ledger[-1].time if len(stream) else None
        when = None if last is None else moment(last)
        if when is None or when.clock is None or step is None or self.steps_left == 0:
            return None
        now = datetime.now(UTC).isoformat(timespec="seconds")
        found = steps_between(step, str(last), now if when.kind == INSTANT else now.partition("+")[0])
        return None if found is None else round(found, 2)

    def line(self, noise: float, half_width: float | None) -> str:
        """The run in one line of text: steps, what is spent and left, the error of a count, and how far behind the clock."""
        found, stream = self.facts, self.stream
        new, left, remaining = found["new_steps"], found["steps_left"], found["remaining"]
        parts = [
            f"{plural(new, 'new step')}, {len(stream)} in all{'' if left is None else f', {left} left'}",
            None
            if found["spent"] is None
            else f"budgets of all steps together: {number(found['spent'], up=True)} nats",
            None if remaining is None else f"the next step may spend {number(remaining, down=True)}",
            f"noise {number(noise)} people on a count"
            + ("" if half_width is None else f", typical interval of an estimate +- {number(half_width)}"),
            None if found["steps_behind"] is None else f"{found['steps_behind']:g} steps behind the clock",
        ]
        return "; ".join(part for part in parts if part)

    @property
    def rows(self) -> list[tuple[str, str | None]]:
        """The ledger after the run, as rows of a table."""
        stream, renewal = self.stream, renewal_of(self.stream.ledger)
        return [
            ("table", stream.table),
            ("ledger", f"{stream.ledger.place}: {steps(self.n_before)} before, {steps(len(stream))} now"),
            ("renewed", None if renewal is None else renewed_line(renewal)),
            ("largest leakage so far", None if stream.leakage is None else nats(stream.leakage) + of_tables(stream)),
            ("head", f"{stream.ledger.head[:16]} (note it for `temporaldp ledger verify --head`)"),
        ]

    @property
    def other_data(self) -> str | None:
        """Warning about published times whose data differ from those that were released, or for which that is unknown."""
        truth = dict(zip(self.data.times, self.data.histogram(), strict=True))
        same = {time: self._matches(truth[time], time) for time in self.stored}
        changed, unknown = ([time for time in same if same[time] is answer] for answer in (False, None))
        warnings = [
            (
                changed,
                f"the data of {named_times(changed)} differ from those that were released. What was published stays, and is "
                "given again; the new data of these times can no longer be released",
            ),
            (
                unknown,
                f"changed data of {named_times(unknown)} are not detected: the key that their digests need is missing or "
                "cannot be used (TEMPORALDP_KEY_FILE, or temporaldp/key in the user's configuration directory)",
            ),
        ]
        return "; ".join(warning for times, warning in warnings if times) or None

    @cached_property
    def _populations(self) -> set[int]:
        """Public numbers of people, the absent included, by which steps of the ledger were drawn."""
        noted = (recipe.settings.get("release", {}) for _, recipe in recipes_of(self.stream.ledger))
        return {known["population"] for known in noted if "population" in known}

    def _matches(self, counts: IntArray, time: str) -> bool | None:
        """Whether a step was drawn from these counts, also where the public number of people was another one then."""
        found, away = self.stream.input_matches(counts, time=time), self.data.absence
        if found is not False or away is None:
            return found
        others, place = counts.copy(), self.data.states.index(away)
        for population in self._populations:
            others[place] = counts[place] + population - counts.sum()
            if others[place] >= 0 and self.stream.input_matches(others, time=time):
                return True
        return False


def of_tables(stream: ContinualRelease[Any, Any]) -> str:
    """What a level and a leakage are about, where they are not about this release alone."""
    return "" if stream.table is None else ", of all tables together"


def nearly_used(stream: ContinualRelease[Any, Any], share: float | None) -> str | None:
    """Warning once a share of the steps, or of a level that is not spent as planned, is used; None before."""
    used, guard = None if share is None else used_share(stream), stream.guard
    if share is None or used is None or used < share:
        return None
    parts = []
    if stream.leakage is not None:
        parts.append(f"the leakage about some step is {nats(stream.leakage)} of {nats(guard.promise)}")
    if guard.horizon is not None:
        parts.append(f"{len(stream)} of {steps(guard.horizon)} have been taken")
    return f"{100.0 * used:.0f} % of the level or horizon is used (release.warn_at = {share:g}): {', and '.join(parts)}"


def used_share(stream: ContinualRelease[Any, Any]) -> float | None:
    """Share of the horizon that is over; without one, of alpha if a step exceeded the sustainable budget, otherwise None."""
    accountant, leakage = stream.guard.accountant, stream.leakage
    if stream.guard.horizon is not None:
        return len(stream) / stream.guard.horizon
    if accountant is None or accountant.alpha is None or leakage is None:
        return None
    adopted = max((event.step for event in stream.ledger.adoptions), default=0)
    as_foreseen = (accountant.spent[adopted:] <= accountant.reserve).all()
    return None if as_foreseen else leakage / accountant.alpha


@contextmanager
def logged(file: Path | None) -> Iterator[dict[str, Any]]:
    """Append a line about the block to a file: the entries that the block sets, its duration, and its outcome.

    Of an error the line contains the class, the exit code and what they mean: its message may contain protected data. A line
    that cannot be written after the block is a warning: what the block stored stays, and its own error is raised.

    Raises
    ------
    OutputError
        The file cannot be opened, or is no log; the block was not entered.
    """
    line: dict[str, Any] = {"at": datetime.now(UTC).isoformat(timespec="seconds")}
    if file is None:
        yield line
        return
    begun = time.monotonic()
    with opened_log(file) as log:
        try:
            yield line
            line |= {"ended": "done", "exit_code": 0}
        except TemporaldpError as error:
            code, refused = outcome(error)
            line |= {"ended": type(error).__name__, "exit_code": code, "refused": refused}
            raise
        finally:
            if "ended" in line:
                _append(log, line | {"seconds": round(time.monotonic() - begun, 3)})


def opened_log(file: Path) -> IO[bytes]:
    """A log to append to; `OutputError` where it cannot be opened, or is another file."""
    try:
        return open(file, "ab", buffering=0, opener=_log_only)
    except OSError as error:
        raise OutputError(f"cannot write the log {file}: {error.strerror or error}; nothing was drawn") from None


def _append(log: IO[bytes], line: dict[str, Any]) -> None:
    try:
        log.write(json_line(line).encode() + b"\n")
    except OSError as error:
        warn(f"cannot write this run's line in the log {log.name}: {error.strerror or error}; what was stored stays")


def _log_only(path: str, flags: int) -> int:
    """Open a log; not what a symbolic link leads to, and no file of another kind, such as one that a shell runs."""
    handle = os.open(path, flags & ~os.O_WRONLY | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o666)
    if stat.S_ISREG(os.fstat(handle).st_mode) and os.read(handle, 1) in {b"", b"{"}:
        return handle
    os.close(handle)
    raise OSError("expected an empty file or lines of JSON there, found something else; name another file")


def gap_before(data: Traces, stream: ContinualRelease[Any, Any]) -> str | None:
    """Warning where new steps do not directly follow the last released one; None if they do, or if that is unknown."""
    new = [time for time in data.times if not stream.has(time)]
    if not new or not len(stream):
        return None
    before, step = stream.ledger[-1].time, stream.step or data.step
    between = None if step is None else steps_between(step, before, new[0])
    if between is None or between < 1.5:
        return None
    return (
        f"{new[0]} is {between:.4g} steps after {before}, the last one released (one step is {step}): the times between "
        "were passed over, and can no longer be released"
    )
