"""The ledger: what was spent and what was published, step by step, so that nothing is spent or drawn twice."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from temporaldp.correlation.states import printable
from temporaldp.errors import InputError, LedgerChangedError, LedgerError, LedgerMismatchError
from temporaldp.release.chain import (
    FORMAT,
    LedgerEvent,
    LedgerRow,
    broken_link,
    canonical,
    chained,
    first_hash,
    in_order,
)
from temporaldp.release.checkpoints import CHECKPOINT, Checkpoint, keep_checkpoint, last_checkpoint
from temporaldp.release.high_water import keep_mark, require_mark
from temporaldp.release.identity import difference
from temporaldp.release.outputs import from_text
from temporaldp.release.rows import Rows, collector_paused
from temporaldp.release.store import Store, store_at
from temporaldp.release.tables import LEDGER, Transaction

FloatArray = NDArray[np.float64]


LEAST_HEAD_DIGITS = 12
"""Of a noted head: fewer could fit a forgery by chance."""

ADOPT = "adopt"
"""The kind of event that says from which step on another correlation is valid."""

Describe: TypeAlias = Callable[[dict[str, Any] | None], dict[str, Any]]


class Ledger:
    """The ledger of one release: its configuration, and one row a step in a chain of hashes.

    A row keeps the step's time, its budget and its published output; never true counts or traces. Whatever is read is checked:
    opening checks the chain from the last checkpoint on (`temporaldp.release.checkpoints`), `verify` from its start, and older
    rows are checked when they are asked for. What a chain cannot show is a ledger that was exchanged for an older copy of
    itself: on a machine that wrote the missing steps a mark outside of the ledger does (`temporaldp.release.high_water`);
    elsewhere, note the head (`head`) with what you publish, and check it with `verify`.

    Parameters
    ----------
    place : path or str
        An SQLite file (its owner's only), or a URL ``postgresql://user@host/database``, which holds one ledger. Or a store.
    release : str, optional
        The identifier of a release of a service, whose database this is.

    Raises
    ------
    LedgerError
        There is no ledger, it cannot be read, or it was changed.
    """

    def __init__(self, place: str | os.PathLike[str] | Store, release: str = LEDGER) -> None:
        store = store_at(place, release)
        if not store.exists():
            store.close()
            raise LedgerError(
                f"there is no ledger at {store.place}; `ContinualRelease` or `temporaldp release` makes one, "
                "`temporaldp ledger share` one for several tables"
            )
        self._start(store)

    @classmethod
    def open(cls, place: str | os.PathLike[str] | Store, describe: Describe, **created: str | None) -> Self:
        """The ledger at `place`, made if there is none, for the release that `describe` describes.

        One without steps has spent nothing: it becomes that release's, whatever it was made for.

        Parameters
        ----------
        place : path, str, or a store
        describe : callable
            Gives the configuration as JSON values; takes the one that a ledger already has, or None.
        **created : str or None
            What a service keeps with a new release (`Store.create`).

        Raises
        ------
        LedgerMismatchError
            There is one of another configuration; says what differs.
        """
        store = store_at(place)
        if not store.exists():
            spelled = _spelled(describe(None))
            store.create(spelled, first_hash(spelled), **created)
        ledger = cls.__new__(cls)
        ledger._start(store)
        ledger._require(describe(ledger.configuration))
        return ledger

    def _start(self, store: Store) -> None:
        self._store, self._lock = store, threading.RLock()
        self._rows = Rows()
        self._checkpoint: Checkpoint | None = None
        self._events: list[LedgerEvent] = []
        self._adoptions: tuple[list[LedgerEvent], int] = [], 0
        try:
            with store.reading() as transaction:
                self._spelled, self.configuration = self._read_heading(transaction)
                if not self._go_on_from_checkpoint(transaction):
                    self._rows, self._events = Rows(), []
                    self._catch_up(transaction)
            require_mark(self)
        except LedgerError:
            store.close()
            raise

    @collector_paused()
    def _go_on_from_checkpoint(self, transaction: Transaction) -> bool:
        """Take in what follows the last checkpoint; False if there is none that fits."""
        events = transaction.events()
        found = last_checkpoint(self._store, first_hash(self._spelled), events)
        if found is None:
            return False
        checkpoint, event = found
        n, number = checkpoint.n_steps, event.number

        def read_all() -> list[LedgerRow]:
            with self._store.reading() as reading:
                return self._checked_until(reading, checkpoint)

        self._rows, self._events = Rows((), n, self._read_older, read_all), events[: number + 1]
        if self._last_before(transaction, n, events[:number]) != checkpoint.head:
            return False
        self._catch_up(transaction)
        self._checkpoint = checkpoint
        return True

    def _last_before(self, transaction: Transaction, step: int, events: list[LedgerEvent]) -> str:
        """The hash that the entry before a step has, these being the events before it."""
        if events and events[-1].step >= step:
            return events[-1].hash
        return next((row.hash for row in transaction.rows(step - 1, step)), "") if step else first_hash(self._spelled)

    def _read_older(self, step: int) -> LedgerRow:
        """The row of a step before the checkpoint, checked against the entry before it."""
        events = [event for event in self._events if event.step <= step]
        with self._store.reading() as transaction:
            rows: list[LedgerRow] = transaction.rows(step, step + 1)
            problem = broken_link(rows, start=step, n_events=0, previous=self._last_before(transaction, step, events))
        if problem is not None or not rows:
            raise self._untrusted(problem or f"step {step} is missing")
        return rows[0]

    @collector_paused()
    def _checked_until(self, transaction: Transaction, checkpoint: Checkpoint) -> list[LedgerRow]:
        """The rows before a checkpoint, checked from the first one on."""
        rows, events = transaction.rows(0, checkpoint.n_steps), self._events[: checkpoint.n_events]
        entries, began = list(in_order(rows, events)), first_hash(self._spelled)
        problem = broken_link(entries, start=0, n_events=0, previous=began)
        if problem is None and (entries[-1].hash if entries else began) != checkpoint.head:
            problem = "steps were exchanged or cut off"
        if problem is not None:
            raise self._untrusted(problem)
        return rows

    @property
    def checkpoint(self) -> Checkpoint | None:
        """What the ledger was opened from; None if all of it was read."""
        return self._checkpoint

    @property
    def store(self) -> Store:
        """What keeps it."""
        return self._store

    @property
    def events(self) -> Sequence[LedgerEvent]:
        """What happened between steps, in order. Not copied: an account of several tables has one for each table and step."""
        return self._events

    @property
    def adoptions(self) -> Sequence[LedgerEvent]:
        """The events by which other correlations were adopted, in order."""
        known, n_events = self._adoptions if self._adoptions[1] <= len(self._events) else ([], 0)
        known = known + [event for event in self._events[n_events:] if event.kind == ADOPT]
        self._adoptions = known, len(self._events)
        return known

    @property
    def place(self) -> str:
        """Where it is, without any password."""
        return self._store.place

    @property
    def head(self) -> str:
        """Hash of the last row, which stands for the whole chain."""
        return self._head_of(self._rows, self._events)

    @property
    def began(self) -> str:
        """The head that it had before its first row, which stands for what it is for."""
        return first_hash(self._spelled)

    @property
    def epsilons(self) -> FloatArray:
        """What each step spent, in nats, shape (T,)."""
        return np.array([row.epsilon for row in self._rows], dtype=np.float64)

    @property
    def times(self) -> tuple[str, ...]:
        """The steps' labels."""
        return tuple(row.time for row in self._rows)

    @property
    def outputs(self) -> tuple[Any, ...]:
        """What was published, in order; None for a step that was not."""
        return tuple(None if row.output is None else from_text(row.output) for row in self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, step: int) -> LedgerRow: ...
    @overload
    def __getitem__(self, step: slice) -> list[LedgerRow]: ...
    def __getitem__(self, step: int | slice) -> LedgerRow | list[LedgerRow]:
        """The row of a step, or of several, as of the last reading or writing.

        Raises
        ------
        LedgerError
            It was written before the last checkpoint, and was changed since.
        """
        return self._rows[step]

    def __repr__(self) -> str:
        return f"Ledger({self.place}, {len(self)} steps, head {self.head[:12]})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file or the connections."""
        self._store.close()

    def back_up(self, place: str | os.PathLike[str]) -> None:
        """Copy an SQLite ledger as of one moment, with what is kept beside it, while others write.

        Raises
        ------
        LedgerError
            Something is there already, the copy cannot be written, or the ledger is a database (`pg_dump` copies that).
        """
        try:
            self._store.back_up(Path(place))
        except OSError as error:
            if isinstance(error, LedgerError):
                raise
            raise LedgerError(f"cannot write the backup {os.fspath(place)}: {error.strerror or error}") from None

    def require_open(self) -> None:
        """`LedgerError` once it was closed."""
        self._store.require_open()

    def refresh(self) -> None:
        """Read what other processes added.

        Raises
        ------
        LedgerError
            The ledger cannot be read, or was changed.
        """
        with self._lock, self._store.reading() as transaction:
            self._catch_up(transaction)

    def verify(self, *, head: str | None = None) -> None:
        """Read everything anew and check the chain from its start; with `head`, that this hash is one of its rows'.

        Parameters
        ----------
        head : str, optional
            A head that was noted earlier, or at least its first 12 digits: the ledger must contain it.

        Raises
        ------
        LedgerError
            A row was edited, deleted or cut off, or the noted head is missing: this is an older or another ledger.
        InputError
            `head` is no 12 or more hexadecimal digits.
        """
        if head is not None and not re.fullmatch(f"[0-9a-fA-F]{{{LEAST_HEAD_DIGITS},64}}", head):
            raise InputError(f"expected a head of at least {LEAST_HEAD_DIGITS} hexadecimal digits, got {head!r}")
        with self._lock, self._store.reading() as transaction:
            self._require_same_heading(transaction)
            rows, events = self._read_new(transaction, Rows(), [])
            seen = rows[self._rows.n_before : len(self._rows)]
            if seen != self._rows.recent or events[: len(self._events)] != self._events:
                raise LedgerChangedError(
                    self.place, "steps that this process has seen are missing or were changed since"
                )
            self._rows, self._events = Rows(rows), events
        if head is None:
            return
        known = [first_hash(self._spelled), *(row.hash for row in self._rows), *(event.hash for event in self._events)]
        if not any(one.startswith(head.lower()) for one in known):
            raise LedgerChangedError(
                self.place,
                f"none of its {len(self)} steps has the noted head {head!r}: this is an older copy or another ledger, and "
                "steps that were published are missing from it",
            )

    @contextmanager
    def writing(self) -> Iterator[LedgerWriter]:
        """A block in which this thread of this process alone may add a row; durable when it ends, undone if it raises."""
        with self._lock:
            with self._store.writing() as transaction:
                self._catch_up(transaction)
                writer = LedgerWriter(self, transaction)
                yield writer
            if writer.added is not None:
                self._rows.append(writer.added)
            if writer.noted is not None:
                self._events.append(writer.noted)
            if writer.added or writer.noted:
                keep_mark(self)

    def _read_heading(self, transaction: Transaction) -> tuple[str, dict[str, Any]]:
        found = transaction.heading
        if found is None:
            raise LedgerError(f"{self.place}: the row that says what the ledger is for was deleted, or never made")
        return found.configuration, _read_configuration(found.configuration, self.place)

    def _require_same_heading(self, transaction: Transaction) -> None:
        heading = transaction.heading
        if heading is None or heading.configuration != self._spelled:
            raise LedgerChangedError(self.place, "what the ledger is for was changed while it was open")

    def _catch_up(self, transaction: Transaction) -> None:
        """Take in rows that were added since, after checking them."""
        self._require_same_heading(transaction)
        rows, events = self._read_new(transaction, self._rows, self._events)
        self._rows.extend(rows)
        self._events += events

    @collector_paused()
    def _read_new(
        self, transaction: Transaction, known: Rows, happened: list[LedgerEvent]
    ) -> tuple[list[LedgerRow], list[LedgerEvent]]:
        """The rows after the known ones, checked."""
        n_steps, head = (-1, "") if transaction.heading is None else transaction.heading[1:3]
        rows, events = transaction.rows(len(known)), transaction.events(len(happened))
        total = len(known) + len(rows)
        previous = self._head_of(known, happened)
        entries = list(in_order(rows, events))
        problem = broken_link(entries, start=len(known), n_events=len(happened), previous=previous)
        if problem is None and n_steps != total:
            problem = f"it says that it has {n_steps} steps, but {total} are there: some were deleted or cut off"
        if problem is None and head != (entries[-1].hash if entries else previous):
            problem = "its head is not the hash of its last step: steps were exchanged or cut off"
        if problem is not None:
            raise self._untrusted(problem)
        return rows, events

    def _untrusted(self, problem: str) -> LedgerError:
        return LedgerChangedError(
            self.place,
            f"{problem}. Nothing vouches for it any more; restore it from a backup that holds every published step",
        )

    def _head_of(self, rows: Rows, events: list[LedgerEvent]) -> str:
        if events and events[-1].step >= len(rows):
            return events[-1].hash
        return rows[-1].hash if rows else first_hash(self._spelled)

    @property
    def correlations(self) -> dict[str, Any] | None:
        """Salted digests of the correlations that are valid now: the last ones adopted; None without an accountant."""
        known: dict[str, Any] | None = self.configuration.get("correlations")
        adopted = [event.details["users"] for event in self.adoptions]
        return {**known, "users": adopted[-1]} if known is not None and adopted else known

    @property
    def plan(self) -> str | None:
        """The digest of the plan that is valid now: the last one adopted; None without one."""
        known: str | None = self.configuration.get("plan")
        adopted = [event.details["plan"] for event in self.adoptions if "plan" in event.details]
        return adopted[-1] if adopted else known

    def _require(self, configuration: dict[str, Any]) -> None:
        """Refuse a ledger of another configuration, unless it has no steps yet: then it gets this one."""
        asked = json.loads(canonical(configuration))
        kept = {**self.configuration, "correlations": self.correlations, "plan": self.plan}
        differing = [key for key in sorted({*asked, *kept}) if asked.get(key) != kept.get(key)]
        if differing and not self._rows and self._store.release == LEDGER:
            with self._lock, self._store.writing() as transaction:
                self._catch_up(transaction)
                if not self._rows:
                    spelled = _spelled(configuration)
                    transaction.remake(spelled, first_hash(spelled))
            if not self._rows:
                self._spelled, self.configuration, self._events, differing = spelled, asked, [], []
                self._adoptions = [], 0
        if not differing:
            return
        self.close()
        shown = "; ".join(_differs(key, kept.get(key), asked.get(key)) for key in differing)
        raise LedgerMismatchError(
            f"{self.place} is the ledger of another release. {shown}. Go on with what it was made for, or begin another ledger "
            "(which knows nothing of what this one spent)"
        )


class LedgerWriter:
    """Adds one step, and one event after it, inside `Ledger.writing`."""

    __slots__ = ("_ledger", "_transaction", "added", "noted")

    def __init__(self, ledger: Ledger, transaction: Transaction) -> None:
        self._ledger, self._transaction = ledger, transaction
        self.added: LedgerRow | None = None
        self.noted: LedgerEvent | None = None

    def append(
        self,
        *,
        time: str,
        parameter: float,
        epsilon: float,
        leakage: float | None,
        last: bool,
        output: str | None,
        digest: str | None,
        request_key: str | None = None,
    ) -> LedgerRow:
        """Add the next step; gives its row."""
        told = None if leakage is None else leakage + 0.0
        called, spent = parameter + 0.0, epsilon + 0.0  # 0.0 and not -0.0
        unsealed = LedgerRow(len(self._ledger), time, called, spent, told, bool(last), output, digest, request_key, "")
        row = unsealed._replace(hash=chained(self._ledger.head, unsealed.signed))
        self._transaction.append(row, after=self._ledger.head)
        self.added = row
        return row

    def note(self, kind: str, *, by: str, details: dict[str, Any]) -> LedgerEvent:
        """Add an event after the last step; gives it. `StateError` where a name has control characters."""
        by = printable(by, "name")
        at = datetime.now(UTC).isoformat(timespec="seconds")
        n_steps, head = len(self._ledger), self._ledger.head
        if self.added is not None:
            n_steps, head = n_steps + 1, self.added.hash
        unsealed = LedgerEvent(len(self._ledger.events), n_steps, kind, at, by, canonical(details), "")
        event = unsealed._replace(hash=chained(head, unsealed.signed))
        self._transaction.append_event(event, after=head)
        self.noted = event
        return event

    def note_checkpoint(self, calendar: dict[str, Any] | None, accountant: dict[str, Any]) -> bool:
        """Keep a checkpoint here; False where it is too large."""
        ledger = self._ledger
        found = Checkpoint(len(ledger), len(ledger.events), ledger.head, calendar, accountant)
        details = keep_checkpoint(ledger.store, found.text(ledger.began, ledger.events))
        if details is not None:
            self.note(CHECKPOINT, by="temporaldp", details=details)
        return details is not None


def _spelled(configuration: dict[str, Any]) -> str:
    return canonical({"format": FORMAT, **configuration})


def _read_configuration(spelled: str, place: str) -> dict[str, Any]:
    """Read the configuration of a ledger of this format; `LedgerError` for any other format."""
    try:
        configuration: dict[str, Any] = json.loads(spelled)
        found = configuration.pop("format")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise LedgerError(f"{place}: the row that says what the ledger is for was changed") from None
    if found != FORMAT:
        raise LedgerError(
            f"{place}: expected a ledger of format {FORMAT!r}, got {str(found)[:40]!r}; open it with the version of temporaldp "
            "that wrote it. Nothing was read or published"
        )
    return configuration


def _differs(key: str, kept: Any, asked: Any) -> str:
    if key == "correlations" and kept is not None and asked is not None:
        return (
            f"correlations: {difference(kept, asked)} (other matrices, history, prior or order of states); if what the "
            "adversary knows has changed, `temporaldp ledger adopt` goes on with the new one"
        )
    if key in {"correlations", "plan"}:
        what = "an accountant" if key == "correlations" else "a plan"
        if kept is not None and asked is not None:
            return "plan: another one"
        one, other = ("this release", "the ledger") if kept is None else ("the ledger", "this release")
        return f"{key}: {one} has {what}, {other} has none"
    return f"{key}: the ledger has {_brief(kept)}, this release {_brief(asked)}"


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        value = [f"{key} {each}" for key, each in value.items()]
    text = "none" if value is None else ", ".join(value) if isinstance(value, list) else str(value)
    return text if len(text) <= 120 else f"{text[:60]} ... {text[-40:]}"
