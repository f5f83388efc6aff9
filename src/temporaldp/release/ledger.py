"""The ledger: what was spent and what was published, step by step, so that nothing is spent or drawn twice."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from temporaldp.errors import InputError, LedgerError, LedgerMismatchError
from temporaldp.release.chain import FORMAT, LedgerRow, broken_link, canonical, chained, first_hash
from temporaldp.release.identity import difference
from temporaldp.release.outputs import from_text
from temporaldp.release.store import Store, store_at
from temporaldp.release.tables import Transaction

FloatArray = NDArray[np.float64]


LEAST_HEAD_DIGITS = 12
"""Of a noted head: fewer could fit a forgery by chance."""

Describe: TypeAlias = Callable[[dict[str, Any] | None], dict[str, Any]]


class Ledger:
    """The ledger of one release: its configuration, and one row a step in a chain of hashes.

    A row keeps the step's time, its budget and its published output; never true counts or traces. Every reading checks the
    whole chain. What a chain cannot show is a ledger that was exchanged for an older copy of itself: note the head (`head`)
    with what you publish, and check it with `verify`.

    Parameters
    ----------
    place : path or str
        An SQLite file (its owner's only), or a URL ``postgresql://user@host/database``, which holds one ledger.

    Raises
    ------
    LedgerError
        There is no ledger, it cannot be read, or it was changed.
    """

    def __init__(self, place: str | os.PathLike[str]) -> None:
        store = store_at(place)
        if not store.exists():
            store.close()
            raise LedgerError(
                f"there is no ledger at {store.place}; `ContinualRelease` or `temporaldp release` makes one"
            )
        self._start(store)

    @classmethod
    def open(cls, place: str | os.PathLike[str], describe: Describe) -> Self:
        """The ledger at `place`, made if there is none, for the release that `describe` describes.

        One without steps has spent nothing: it becomes that release's, whatever it was made for.

        Parameters
        ----------
        place : path or str
        describe : callable
            Gives the configuration as JSON values; takes the one that a ledger already has, or None.

        Raises
        ------
        LedgerMismatchError
            There is one of another configuration; says what differs.
        """
        store = store_at(place)
        if not store.exists():
            spelled = _spelled(describe(None))
            store.create(spelled, first_hash(spelled))
        ledger = cls.__new__(cls)
        ledger._start(store)
        ledger._require(describe(ledger.configuration))
        return ledger

    def _start(self, store: Store) -> None:
        self._store, self._lock = store, threading.RLock()
        self._rows: list[LedgerRow] = []
        try:
            with store.reading() as transaction:
                self._spelled, self.configuration = self._read_heading(transaction)
                self._rows = self._read_new(transaction, [])
        except LedgerError:
            store.close()
            raise

    @property
    def place(self) -> str:
        """Where it is, without any password."""
        return self._store.place

    @property
    def head(self) -> str:
        """Hash of the last row, which stands for the whole chain."""
        return self._head_of(self._rows)

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
        """The row of a step, or of several, as of the last reading or writing."""
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
            rows = self._read_new(transaction, [])
            if rows[: len(self._rows)] != self._rows:
                raise LedgerError(f"{self.place}: steps that this process has seen are missing or were changed since")
            self._rows = rows
        if head is None:
            return
        known = [first_hash(self._spelled), *(row.hash for row in self._rows)]
        if not any(one.startswith(head.lower()) for one in known):
            raise LedgerError(
                f"{self.place}: none of its {len(self)} steps has the noted head {head!r}: this is an older copy or another "
                "ledger, and steps that were published are missing from it"
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

    def _read_heading(self, transaction: Transaction) -> tuple[str, dict[str, Any]]:
        found = transaction.heading()
        if found is None:
            raise LedgerError(f"{self.place}: the row that says what the ledger is for was deleted")
        try:
            configuration = json.loads(found[0])
            known = configuration.pop("format")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise LedgerError(f"{self.place}: the row that says what the ledger is for was changed") from None
        if known != FORMAT:
            raise LedgerError(f"{self.place}: expected format {FORMAT!r}, got {str(known)[:40]!r}")
        return found[0], configuration

    def _require_same_heading(self, transaction: Transaction) -> None:
        heading = transaction.heading()
        if heading is None or heading[0] != self._spelled:
            raise LedgerError(f"{self.place}: what the ledger is for was changed while it was open")

    def _catch_up(self, transaction: Transaction) -> None:
        """Take in rows that were added since, after checking them."""
        self._require_same_heading(transaction)
        self._rows += self._read_new(transaction, self._rows)

    def _read_new(self, transaction: Transaction, known: list[LedgerRow]) -> list[LedgerRow]:
        """The rows after the known ones, checked."""
        heading = transaction.heading()
        _, n_steps, head = heading if heading is not None else ("", -1, "")
        rows = transaction.rows(len(known))
        total = len(known) + len(rows)
        problem = broken_link(rows, start=len(known), previous=self._head_of(known))
        if problem is None and n_steps != total:
            problem = f"it says that it has {n_steps} steps, but {total} are there: some were deleted or cut off"
        if problem is None and head != self._head_of(rows or known):
            problem = "its head is not the hash of its last step: steps were exchanged or cut off"
        if problem is not None:
            raise LedgerError(
                f"{self.place}: {problem}. Nothing vouches for it any more; restore it from a backup that holds "
                "every published step"
            )
        return rows

    def _head_of(self, rows: list[LedgerRow]) -> str:
        return rows[-1].hash if rows else first_hash(self._spelled)

    def _require(self, configuration: dict[str, Any]) -> None:
        """Refuse a ledger of another configuration, unless it has no steps yet: then it gets this one."""
        asked = json.loads(canonical(configuration))
        differing = [
            key for key in sorted({*asked, *self.configuration}) if asked.get(key) != self.configuration.get(key)
        ]
        if differing and not self._rows:
            with self._lock, self._store.writing() as transaction:
                self._catch_up(transaction)
                if not self._rows:
                    spelled = _spelled(configuration)
                    transaction.remake(spelled, first_hash(spelled))
            if not self._rows:
                self._spelled, self.configuration, differing = spelled, asked, []
        if not differing:
            return
        self.close()
        shown = "; ".join(_differs(key, self.configuration.get(key), asked.get(key)) for key in differing)
        raise LedgerMismatchError(
            f"{self.place} is the ledger of another release. {shown}. Go on with what it was made for, or begin another ledger "
            "(which knows nothing of what this one spent)"
        )


class LedgerWriter:
    """Adds one row inside `Ledger.writing`."""

    __slots__ = ("_ledger", "_transaction", "added")

    def __init__(self, ledger: Ledger, transaction: Transaction) -> None:
        self._ledger, self._transaction = ledger, transaction
        self.added: LedgerRow | None = None

    def append(
        self, *, time: str, parameter: float, epsilon: float, leakage: float | None, last: bool, output: str | None
    ) -> None:
        """Add the next step."""
        told = None if leakage is None else leakage + 0.0
        called, spent = parameter + 0.0, epsilon + 0.0  # 0.0 and not -0.0
        unsealed = LedgerRow(len(self._ledger), time, called, spent, told, bool(last), output, "")
        row = replace(unsealed, hash=chained(self._ledger.head, unsealed.content))
        self._transaction.append(row)
        self.added = row


def _spelled(configuration: dict[str, Any]) -> str:
    return canonical({"format": FORMAT, **configuration})


def _differs(key: str, kept: Any, asked: Any) -> str:
    if key == "correlations" and kept is not None and asked is not None:
        return f"correlations: {difference(kept, asked)} (other matrices, history, prior or order of states)"
    if key in {"correlations", "plan"}:
        what = "an accountant" if key == "correlations" else "a plan"
        if kept is not None and asked is not None:
            return "plan: another one"
        one, other = ("this release", "the ledger") if kept is None else ("the ledger", "this release")
        return f"{key}: {one} has {what}, {other} has none"
    return f"{key}: the ledger has {_brief(kept)}, this release {_brief(asked)}"


def _brief(value: Any) -> str:
    text = "none" if value is None else ", ".join(value) if isinstance(value, list) else str(value)
    return text if len(text) <= 120 else f"{text[:60]} ... {text[-40:]}"
