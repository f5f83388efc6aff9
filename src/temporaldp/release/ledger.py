"""The ledger: what was spent and what was published, step by step, so that nothing is spent or drawn twice."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from temporaldp.errors import LedgerError, LedgerMismatchError
from temporaldp.release.chain import FORMAT, LedgerRow, broken_link, canonical, chained, first_hash
from temporaldp.release.identity import difference
from temporaldp.release.outputs import from_text
from temporaldp.release.store import Store, Transaction

FloatArray = NDArray[np.float64]


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
        store = Store(place)
        if not store.exists():
            store.close()
            raise LedgerError(
                f"there is no ledger at {store.place}; `ContinualRelease` or `temporaldp release` makes one"
            )
        self._start(store)

    @classmethod
    def open(cls, place: str | os.PathLike[str], describe: Describe) -> Self:
        """The ledger at `place`, made if there is none, for the release that `describe` describes.

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
        store = Store(place)
        if not store.exists():
            spelled = canonical({"format": FORMAT, **describe(None)})
            store.create(spelled, first_hash(spelled))
        ledger = cls.__new__(cls)
        ledger._start(store)
        ledger._require(describe(ledger.configuration))
        return ledger

    def _start(self, store: Store) -> None:
        self._store = store
        self._rows: list[LedgerRow] = []
        try:
            with store.reading() as transaction:
                self._spelled, self.configuration = self._read_heading(transaction)
                self._head = first_hash(self._spelled)
                self._catch_up(transaction)
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
        return self._head

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

    def refresh(self) -> None:
        """Read what other processes added.

        Raises
        ------
        LedgerError
            The ledger cannot be read, or was changed.
        """
        with self._store.reading() as transaction:
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
        """
        with self._store.reading() as transaction:
            self._spelled, self.configuration = self._read_heading(transaction)
            self._rows, self._head = [], first_hash(self._spelled)
            self._catch_up(transaction)
        if head is not None:
            known = [first_hash(self._spelled), *(row.hash for row in self._rows)]
            if len(head) < 12 or not any(one.startswith(head.lower()) for one in known):
                raise LedgerError(
                    f"{self.place}: none of its {len(self)} steps has the noted head {head!r}: this is an older copy or "
                    "another ledger, and steps that were published are missing from it"
                )

    @contextmanager
    def writing(self) -> Iterator[LedgerWriter]:
        """A block in which this process alone may add a row; durable when it ends, undone if it raises."""
        writer: LedgerWriter | None = None
        with self._store.writing() as transaction:
            self._catch_up(transaction)
            writer = LedgerWriter(self, transaction)
            yield writer
        if writer.added is not None:
            self._rows.append(writer.added)
            self._head = writer.added.hash

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

    def _catch_up(self, transaction: Transaction) -> None:
        """Take in rows that were added since, after checking them."""
        heading = transaction.heading()
        if heading is None or heading[0] != self._spelled:
            raise LedgerError(f"{self.place}: what the ledger is for was changed while it was open")
        _, n_steps, head = heading
        rows = transaction.rows(len(self._rows))
        problem = broken_link(rows, start=len(self._rows), previous=self._head)
        total = len(self._rows) + len(rows)
        if problem is None and n_steps != total:
            problem = f"it says that it has {n_steps} steps, but {total} are there: some were deleted or cut off"
        if problem is None and head != (rows[-1].hash if rows else self._head):
            problem = "its head is not the hash of its last step: steps were exchanged or cut off"
        if problem is not None:
            raise LedgerError(
                f"{self.place}: {problem}. Nothing vouches for it any more; restore it from a backup that holds "
                "every published step"
            )
        self._rows += rows
        self._head = head

    def _require(self, configuration: dict[str, Any]) -> None:
        """Refuse a ledger of another configuration."""
        asked = json.loads(canonical(configuration))
        differing = [
            key for key in sorted({*asked, *self.configuration}) if asked.get(key) != self.configuration.get(key)
        ]
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

    def append(self, *, time: str, epsilon: float, leakage: float | None, last: bool, output: str | None) -> None:
        """Add the next step."""
        content = [len(self._ledger), time, epsilon, leakage, last, output]
        row = LedgerRow(len(self._ledger), time, epsilon, leakage, last, output, chained(self._ledger.head, content))
        self._transaction.append(row)
        self.added = row


def _differs(key: str, kept: Any, asked: Any) -> str:
    if key == "correlations" and kept is not None and asked is not None:
        return f"{key}: {difference(kept, asked)}"
    return f"{key}: the ledger has {_brief(kept)}, this release {_brief(asked)}"


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 120 else f"{text[:60]} ... {text[-40:]}"
