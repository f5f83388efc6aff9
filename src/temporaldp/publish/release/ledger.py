"""The ledger: budgets and outputs step by step, so that nothing is spent or drawn twice."""

from __future__ import annotations

import getpass
import json
import os
import re
import secrets
import threading
import warnings
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from temporaldp.base.errors import InputError, LedgerChangedError, LedgerError, LedgerMismatchError, TemporaldpError
from temporaldp.base.names import printable
from temporaldp.base.values import FloatArray
from temporaldp.publish.release.chain import (
    LEDGER,
    End,
    Entry,
    EventKind,
    LedgerEvent,
    LedgerRow,
    canonical,
    changed,
    contains,
    first_entry,
    first_hash,
    followed,
    last_checkpoint,
    read_first_entry,
    sealed,
)
from temporaldp.publish.release.closing import Closing
from temporaldp.publish.release.database import Store, store_at
from temporaldp.publish.release.key_and_marks import (
    Mark,
    expected_mark,
    keep_mark,
    missing_steps,
    require_decision,
)
from temporaldp.publish.release.outputs import from_text
from temporaldp.publish.release.tables import Transaction

if TYPE_CHECKING:
    import sqlalchemy as sa

ROWS_AT_ONCE = 256
"""Rows that are read and checked together where one of them is asked for."""

SETTING_OF_TERM = {
    "accounting": "privacy.bound",
    "alpha": "privacy.alpha",
    "filter": "release.estimates",
    "guarantee": "privacy.guarantee",
    "horizon": "privacy.horizon",
    "plan": "release.plan",
    "renewal": "privacy.renew",
    "states": "traces.states",
    "timezone": "traces.timezone",
}
"""Setting of a project file that determines an entry of a configuration."""

Describe: TypeAlias = Callable[[str | None], dict[str, Any]]


class Ledger(Closing):
    """Ledger of one release: its configuration and one row for each step, in a chain of hashes.

    A row keeps the step's time, its budget and its published output; never true counts or traces. Rows are checked when they
    are read: opening checks the chain from the last checkpoint on (`checkpoints`), and `verify` from its
    start. A chain cannot reveal that a ledger was replaced by an older copy of itself. A machine that wrote the missing steps
    detects this by a mark outside the ledger (`high_water`): such a ledger may be read, with a warning, and
    is not continued. Elsewhere, store `head` with what you publish and check it with `verify`.

    Parameters
    ----------
    place : path or str
        An SQLite file, readable by its owner only; a URL ``postgresql://user@host/database``, which holds one ledger;
        or a store.
    release : str, optional
        The identifier of a release of a service, whose database this is.

    Attributes
    ----------
    store : Store
        Storage of the rows.
    configuration : dict
        Settings of the release for which the ledger was created.
    identifier : str
        Random name in the first entry of the chain.
    checkpoint : Checkpoint or None
        Checkpoint from which the ledger was opened; None if it was read from its start.
    end : End
        End of the chain when it was last read or written.
    disregarded : dict or None
        Missing steps that an owner disregards, until this is recorded with the next step.
    is_authentic : bool or None
        Whether the head that was last read has a MAC of this machine's key (True); None without one, so a chain that was
        made anew is revealed only by a mark or a noted head, with a warning (`sign`). A false MAC is an error.
    events : list of LedgerEvent
        Events between steps, in order. Not copied: an account of several tables has one for each table and step.
    adoptions : list of LedgerEvent
        The events by which other correlations were adopted, in order.

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
                f"there is no ledger at {store.place}; `ContinualRelease` or `temporaldp release` creates one, "
                "`temporaldp ledger share` one for several tables"
            )
        self._start(store)
        if self._refusal is not None:
            warnings.warn(f"{self._refusal}. Until then, this ledger is only read", stacklevel=2)

    @classmethod
    def open(
        cls,
        place: str | os.PathLike[str] | Store,
        describe: Describe,
        definition: str | None = None,
        *,
        begin_anew: bool = False,
    ) -> Self:
        """Open the ledger at `place`, creating it if there is none, for the release that `describe` returns.

        A ledger without steps becomes that of the release, whatever its configuration was.

        Parameters
        ----------
        place : path, str, or a store
        describe : callable
            Returns the configuration as JSON values, given the salt of an existing ledger's digests, or None.
        definition : str, optional
            What a service created the release with, stored with a new one.
        begin_anew : bool
            Disregard published steps that the ledger lacks, also if it was lost. An event records it with the next step.

        Raises
        ------
        LedgerChangedError
            The ledger lacks steps that this machine wrote, or takes the place of one that was lost.
        LedgerError
            The ledger lacks steps of a published output, or a mark exists that cannot be used.
        InputError
            `begin_anew`, although no step is missing.
        LedgerMismatchError
            There is a ledger with another configuration; the message names the differences.
        """
        store = store_at(place)
        is_new = not store.exists()
        if is_new:
            spelled = first_entry(describe(None), secrets.token_hex(16))
            store.create(spelled, first_hash(spelled), definition)
        ledger = cls.__new__(cls)
        ledger._start(store, is_new=is_new)
        ledger._is_new = is_new and ledger._spelled == spelled  # or another process created it meanwhile
        try:
            ledger._decide(begin_anew)
            ledger._require(describe((ledger.configuration.get("correlations") or {}).get("salt")))
        except BaseException:
            ledger.discard_unused()
            ledger.close()
            raise
        return ledger

    def _start(self, store: Store, *, is_new: bool = False) -> None:
        """Read the ledger, and find out what it lacks."""
        self._is_new = is_new
        self._missing: Mark | None = None
        self._unmarked: LedgerError | None = None  # why a mark cannot be used
        self.disregarded: dict[str, Any] | None = None
        self.store, self._lock, self.end = store, threading.RLock(), End(0, 0, "")
        # The last rows, and some older ones that were asked for; each with the step of the first of them.
        self._recent: tuple[int, list[LedgerRow]] = 0, []
        self._older: tuple[int, list[LedgerRow]] = 0, []
        self.is_authentic: bool | None = True
        try:
            first = store.heading()
            # Before the rows, to which other processes may add meanwhile.
            expected = None if first is None or store.release != LEDGER else self._expected(first.configuration)
            with store.reading() as transaction:
                self._spelled = self._heading(transaction).configuration
                self.configuration, self.identifier = read_first_entry(self._spelled, self.place)
                events = transaction.events()
                self.checkpoint = last_checkpoint(transaction, self.began, events)
                self._forget_all()
                if self.checkpoint is not None:
                    self._take_in([], events[: self.checkpoint.end.n_events], self.checkpoint.end)
                self._take_in(*self._read_on(transaction, self.end))
        except LedgerError:
            store.close()
            raise
        self._missing = missing_steps(self, expected)

    def _expected(self, spelled: str) -> Mark | None:
        """The mark that the ledger must contain; None without one, and where it cannot be used."""
        identifier = read_first_entry(spelled, self.place)[1]
        try:
            return expected_mark(identifier, self.store.names)
        except LedgerError as error:
            self._unmarked = error
        return None

    @property
    def _refusal(self) -> LedgerError | None:
        """Why nothing may be added: a mark cannot be used, or steps are missing that no owner disregards."""
        if self._missing is None or self.disregarded is not None:
            return self._unmarked
        return self._missing.refusal(self.place, None if self._is_new else self.identifier)

    def _decide(self, begin_anew: bool) -> None:
        """Refuse a ledger that lacks published steps, unless an owner begins anew, and that where it lacks none."""
        missing: TemporaldpError | None = self._refusal
        if missing is None and self.store.lacking is not None:
            missing = self.store.lacking(self)
        require_decision(missing, begin_anew=begin_anew and self._unmarked is None)
        if begin_anew:
            steps, _, head = (None, None, None) if self._missing is None else self._missing.end
            self.disregarded = {"steps": steps, "head": head}

    def _heading(self, transaction: Transaction) -> sa.Row[Any]:
        if transaction.heading is None:
            raise LedgerError(
                f"{self.place}: the row with the configuration was deleted, or never written; if this is the database of a "
                "service, name one of its releases (`temporaldp ledger show DATABASE --release ID`)"
            )
        if transaction.heading.head != self.end.head:
            was, self.is_authentic = self.is_authentic, transaction.is_authentic
            if self.is_authentic is False:
                raise changed(self.place, "its head was not written with the key that its MAC names")
            if was and self.is_authentic is None and transaction.heading.n_steps and self.store.release == LEDGER:
                warnings.warn(
                    f"{self.place}: an entry was written without the key of this machine, or the key cannot be used, so "
                    "only a noted head reveals a chain that was made anew; give all machines that write to it one key "
                    "(TEMPORALDP_KEY_FILE), and sign it after a check (`temporaldp ledger verify LEDGER --head HEAD --sign`)",
                    stacklevel=2,
                )
        return transaction.heading

    def _forget_all(self) -> None:
        """Begin with a chain in which nothing is."""
        self.events: list[LedgerEvent] = []
        self.adoptions: list[LedgerEvent] = []
        self.end = End(0, 0, self.began)

    def _read_on(self, transaction: Transaction, start: End) -> tuple[list[LedgerRow], list[LedgerEvent], End]:
        """The rows and events after an end of the chain, checked, and the end with them."""
        heading = self._heading(transaction)
        if heading.configuration != self._spelled:
            raise LedgerChangedError(self.place, "the configuration of the ledger was changed while it was open")
        if start.n_steps and (heading.n_steps, heading.head) == (start.n_steps, start.head):
            return [], [], start
        rows, events = transaction.rows(start.n_steps), transaction.events(start.n_events)
        end = followed(start, rows, events, self.place)
        if heading.n_steps != end.n_steps:
            problem = f"it records {heading.n_steps} steps, but has {end.n_steps}: some were deleted or cut off"
            raise changed(self.place, problem)
        if heading.head != end.head:
            raise changed(self.place, "its head is not the hash of its last step: steps were exchanged or cut off")
        return rows, events, end

    def _read_older(self, start: int, stop: int) -> list[LedgerRow]:
        """The rows of some steps, checked against what stands before and after them."""
        until = min(stop + 1, len(self))
        first, last = (
            side(self.events, at, key=attrgetter("step")) for side, at in ((bisect_left, start), (bisect_right, until))
        )
        with self.store.reading() as transaction:
            rows = transaction.rows(max(start - 1, 0), until)
        before = self.began if start == 0 else rows.pop(0).hash if rows else ""
        end = followed(End(start, first, before), rows, self.events[first:last], self.place)
        if end.n_steps != until:
            raise changed(self.place, f"step {end.n_steps} is missing")
        if until == len(self) and end != self.end:
            raise changed(self.place, "steps were exchanged or cut off")
        return rows[: stop - start]

    def _take_in(self, rows: list[LedgerRow], events: list[LedgerEvent], end: End) -> None:
        """Go on to an end of the chain. Safe to be interrupted: what is not taken in yet is read again."""
        first, recent = self._recent
        self.events[self.end.n_events :] = events
        if any(event.kind == "adopt" for event in events):
            self.adoptions = [event for event in self.events if event.kind == "adopt"]
        if rows:
            follows = first + len(recent) == rows[0].step
            self._recent = (first, recent + rows) if follows and len(recent) < ROWS_AT_ONCE else (rows[0].step, rows)
        self.end = end

    @property
    def place(self) -> str:
        """Place of the ledger, without a password."""
        return self.store.place

    @property
    def head(self) -> str:
        """Hash of the last row, which depends on all rows before it."""
        return self.end.head

    @property
    def began(self) -> str:
        """The head before the first row, a digest of the configuration."""
        return first_hash(self._spelled)

    @property
    def epsilons(self) -> FloatArray:
        """Budget of each step, in nats, shape (T,)."""
        return np.array([row.epsilon for row in self[:]], dtype=np.float64)

    @property
    def times(self) -> tuple[str, ...]:
        """Labels of the steps."""
        return tuple(row.time for row in self[:])

    @property
    def outputs(self) -> tuple[Any, ...]:
        """Outputs in order; None for a step that was not published."""
        return tuple(None if row.output is None else from_text(row.output) for row in self[:])

    def __len__(self) -> int:
        return self.end.n_steps

    def __getitem__(self, step: int | slice) -> Any:
        """The row of a step, or of several, as of the last reading or writing.

        Raises
        ------
        LedgerError
            It was changed since it was written.
        """
        steps = range(len(self))[step]
        if isinstance(steps, int):
            return self._between(steps, steps + 1)[0]
        if not steps:
            return []
        return self._between(min(steps), max(steps) + 1)[:: steps.step]

    @property
    def held(self) -> list[range]:
        """The steps whose rows are in memory."""
        return [range(first, min(first + len(rows), len(self))) for first, rows in (self._recent, self._older)]

    def _between(self, start: int, stop: int) -> list[LedgerRow]:
        """The rows of some steps, at least one. Old ones that were read stay until others are."""
        for first, rows in (self._recent, self._older):
            if first <= start < stop <= first + len(rows):
                return rows[start - first : stop - first]
        first = start - start % ROWS_AT_ONCE
        until = max(stop, min(first + ROWS_AT_ONCE, len(self)))
        rows = self._read_older(first, until)
        if until == len(self):
            self._recent = first, rows
        else:
            self._older = first, rows
        return rows[start - first : stop - first]

    def __repr__(self) -> str:
        return f"Ledger({self.place}, {len(self)} steps, head {self.head[:12]})"

    def close(self) -> None:
        """Close the file or the connections."""
        self.store.close()

    def back_up(self, place: str | os.PathLike[str]) -> None:
        """Make a consistent copy of an SQLite ledger while others write.

        Raises
        ------
        LedgerError
            The file exists, the copy cannot be written, or the ledger is a database (`pg_dump` copies that).
        """
        self.store.database.back_up(Path(place))

    def refresh(self) -> None:
        """Read what other processes added.

        Raises
        ------
        LedgerError
            The ledger cannot be read, or was changed.
        """
        with self._lock, self.store.reading() as transaction:
            self._take_in(*self._read_on(transaction, self.end))

    def verify(self, *, head: str | None = None) -> None:
        """Read all rows again and check the chain from its start; with `head`, also that a row has this hash.

        Parameters
        ----------
        head : str, optional
            A head that was noted earlier, or at least its first 12 digits, which the ledger must contain.

        Raises
        ------
        LedgerError
            A row was edited, deleted or cut off, the noted head is missing, or steps that this machine wrote to a ledger at
            this place: this is an older or another ledger.
        InputError
            `head` is not 12 or more hexadecimal digits.
        """
        self._check(head)
        if self._refusal is not None and self._missing is not None and self._missing.place in self.store.names:
            raise self._refusal

    def _check(self, head: str | None) -> None:
        if head is not None and not re.fullmatch("[0-9a-fA-F]{12,64}", head):  # fewer could fit a forgery by chance
            raise InputError(f"expected a head of at least 12 hexadecimal digits, got {head!r}")
        with self._lock, self.store.reading() as transaction:
            rows, events, end = self._read_on(transaction, End(0, 0, self.began))
            if not contains(rows, events, self.end):
                raise LedgerChangedError(
                    self.place, "steps that this process has seen are missing or were changed since"
                )
            self._recent = 0, rows
            self._take_in([], events[self.end.n_events :], end)
        known = [self.began, *(row.hash for row in self[:]), *(event.hash for event in self.events)]
        if head is not None and not any(one.startswith(head.lower()) for one in known):
            raise LedgerChangedError(
                self.place,
                f"none of its {len(self)} steps has the noted head {head!r}: this is an older copy or another ledger, and "
                "steps that were published are missing from it",
            )

    def sign(self, *, head: str | None = None, by: str | None = None) -> LedgerEvent | None:
        """Check all rows as `verify` does, and authenticate the chain with the key of this machine.

        An event records who authenticated the entries before it, and their head; None if the chain is authentic already. An
        older copy may be signed, and is still not continued.

        Raises
        ------
        LedgerError
            As for `verify`, except for missing steps; the ledger cannot be written, or there is no key.
        """
        if self._unmarked is not None:
            raise self._unmarked
        self._check(head)
        with self._lock:
            with self.store.writing() as transaction:
                self._take_in(*self._read_on(transaction, self.end))
                if transaction.is_authentic:
                    return None
                transaction.signs = True
                writer = LedgerWriter(transaction, self.end)
                event = writer.note("sign", by=by, details={"head": self.head})
                if not Transaction(transaction.connection, self.store.release, lock=False).is_authentic:
                    raise LedgerError(
                        f"cannot sign {self.place}: no key can be made; name a file for it (TEMPORALDP_KEY_FILE)"
                    )
            self._take_in(writer.rows, writer.events, writer.end)
            self.is_authentic = True
            if self._missing is None:  # else it shows which steps are missing
                keep_mark(self)
        return event

    def discard_unused(self) -> None:
        """Remove the ledger if this process created it and it has no steps, where that is possible."""
        if self._is_new and not len(self):
            with suppress(LedgerError, OSError):
                self.store.discard()

    @contextmanager
    def writing(self) -> Iterator[LedgerWriter]:
        """Context in which this thread of this process alone may add rows; durable at its end, rolled back by an exception."""
        if self._refusal is not None:
            raise self._refusal
        with self._lock:
            with self.store.writing() as transaction:
                self._take_in(*self._read_on(transaction, self.end))
                writer = LedgerWriter(transaction, self.end, self.disregarded)
                yield writer
            if writer.end != self.end:
                self._take_in(writer.rows, writer.events, writer.end)
                if writer.disregarded is None:  # else the mark shows which steps are missing
                    self._missing = self.disregarded = None
                    keep_mark(self)

    @property
    def correlations(self) -> dict[str, Any] | None:
        """Salted digests of the current correlations, the last ones adopted; None without an accountant."""
        known: dict[str, Any] | None = self.configuration.get("correlations")
        adopted = [event.details["users"] for event in self.adoptions]
        return {**known, "users": adopted[-1]} if known is not None and adopted else known

    @property
    def plan(self) -> str | None:
        """Digest of the current plan, the last one adopted; None without one."""
        known: str | None = self.configuration.get("plan")
        adopted = [event.details["plan"] for event in self.adoptions if "plan" in event.details]
        return adopted[-1] if adopted else known

    def _require(self, configuration: dict[str, Any]) -> None:
        """Refuse a ledger of another configuration, unless it has no steps yet: then it gets this one."""
        asked = json.loads(canonical(configuration))
        kept = {**self.configuration, "correlations": self.correlations, "plan": self.plan}
        differing = [key for key in sorted({*asked, *kept}) if asked.get(key) != kept.get(key)]
        if differing and not len(self) and self.store.release == LEDGER:
            with self._lock, self.store.writing() as transaction:
                self._take_in(*self._read_on(transaction, self.end))
                if not len(self):
                    spelled = first_entry(configuration, self.identifier)
                    transaction.remake(spelled, first_hash(spelled))
            if not len(self):
                self._spelled, self.configuration, differing = spelled, asked, []
                self._forget_all()
        if not differing:
            return
        shown = "; ".join(_differs(key, kept.get(key), asked.get(key)) for key in differing)
        raise LedgerMismatchError(
            f"{self.place} is the ledger of another release. {shown}. Continue with the settings of the ledger, or start "
            "another ledger, which does not count the budget spent here"
        )


class LedgerWriter:
    """Adds steps and events inside `Ledger.writing`; `disregarded` are the missing steps that an owner disregards."""

    def __init__(self, transaction: Transaction, end: End, disregarded: dict[str, Any] | None = None) -> None:
        self.transaction, self.end, self.disregarded = transaction, end, disregarded
        self.rows: list[LedgerRow] = []
        self.events: list[LedgerEvent] = []

    def append(self, row: LedgerRow) -> LedgerRow:
        """Add the next step and return its row with its hash."""
        self.begin_anew()
        return self._add(row, self.rows, self.end.n_steps + 1, self.end.n_events)

    def begin_anew(self) -> None:
        """Record the missing steps that an owner disregards, if that is not recorded yet."""
        if self.disregarded is not None:
            self.note("begin anew", details=self.disregarded)
            self.disregarded = None

    def note(self, kind: EventKind, *, by: str | None = None, details: dict[str, Any]) -> LedgerEvent:
        """Add an event after the last step and return it, by default by this process's user. `StateError` for a bad name."""
        n_steps, n_events, _ = self.end
        at = datetime.now(UTC).isoformat(timespec="seconds")
        event = LedgerEvent(
            n_events, n_steps, kind, at, printable(by or _account_name(), "name"), canonical(details), ""
        )
        return self._add(event, self.events, n_steps, n_events + 1)

    def _add(self, entry: Entry, added: list[Entry], n_steps: int, n_events: int) -> Entry:
        """Store an entry, after which there are so many steps and events; gives it with its hash."""
        head = self.end.head
        stored = sealed(entry, head)
        self.transaction.append(stored, after=head, n_steps=n_steps)
        added.append(stored)
        self.end = End(n_steps, n_events, stored.hash)
        return stored


def configuration_at(place: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return the configuration of the ledger at a place; None if there is none. Errors as for `Ledger`."""
    with closing(store_at(place)) as store:
        heading = store.heading() if store.exists() else None
        return None if heading is None else read_first_entry(heading.configuration, store.place)[0]


def _account_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # an account without a name
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "somebody"


def _differs(key: str, kept: Any, asked: Any) -> str:
    if key == "correlations" and kept is not None and asked is not None:
        before, after = Counter(kept["users"]), Counter(asked["users"])
        gone, new = (before - after).total(), (after - before).total()
        return (
            f"correlations: {gone} of the ledger's {before.total()} are none of this release's {after.total()}, and {new} of "
            "those are new (other matrices, history, prior or order of states); if what the "
            "adversary knows has changed, `temporaldp ledger adopt` continues with the new one"
        )
    if key in {"correlations", "plan"}:
        what = "an accountant" if key == "correlations" else "a plan"
        if kept is not None and asked is not None:
            return "plan: another one"
        one, other = ("this release", "the ledger") if kept is None else ("the ledger", "this release")
        return f"{key}: {one} has {what}, {other} has none"
    if key == "filter" and asked is None:
        return (
            "filter (release.estimates): the ledger's estimates use a public correlation, and this release has none. A history "
            "smooths counts only if the people of TRACES are not in it"
        )
    setting = f" ({SETTING_OF_TERM[key]} in a project file, or --set)" if key in SETTING_OF_TERM else ""
    return f"{key}{setting}: the ledger has {_brief(kept)}, this release has {_brief(asked)}"


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        value = [f"{key} {each}" for key, each in value.items()]
    text = "none" if value is None else ", ".join(value) if isinstance(value, list) else str(value)
    return text if len(text) <= 120 else f"{text[:60]} ... {text[-40:]}"
