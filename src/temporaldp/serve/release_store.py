"""One release among the many of a database, as a store that a `Ledger` works on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from temporaldp.errors import LedgerError
from temporaldp.release.chain import LedgerEvent, LedgerRow
from temporaldp.release.store import Store
from temporaldp.release.tables import Transaction
from temporaldp.serve.database import Database
from temporaldp.serve.tables import statements, tables

if TYPE_CHECKING:
    import sqlalchemy as sa

STEP_FIELDS = LedgerRow._fields

DEFINITION = "definition"
"""The private thing that says what a release was created with."""

RESERVE = "reserve"
"""The one that says which reserve was found then."""


@dataclass(frozen=True, slots=True)
class Heading:
    """What a release is for, and where its chain ends."""

    configuration: str
    n_steps: int
    head: str


@dataclass(frozen=True, slots=True)
class Creation:
    """What a new release is created with, kept with it in one transaction.

    Parameters
    ----------
    definition : str
    reserve : float
        What every step can spend, as it was found.
    request_key : str or None
        Of the request that creates it.
    """

    definition: str
    reserve: float
    request_key: str | None


class ReleaseStore(Store):
    """One release of a database.

    Parameters
    ----------
    database : Database
    release : str
        Its identifier.
    creation : Creation, optional
        What a new one is created with.
    """

    def __init__(self, database: Database, release: str, creation: Creation | None = None) -> None:
        super().__init__(f"{database.place}, release {release}")
        self._database, self._release, self._creation = database, release, creation
        self._created: dict[str, str] | None = None
        self.next_key: str | None = None
        self.keys_read: dict[str, int] = {}

    def exists(self) -> bool:
        """Whether the release is there; one that is about to be created is not."""
        return self._creation is None and self.read_private(DEFINITION) is not None

    def create(self, configuration: str, head: str) -> None:
        """Make its row and its definition, all or nothing."""
        releases, private, new = tables().releases, tables().private, self._creation
        if new is None:
            raise LedgerError(f"{self.place}: there is no such release")
        with self._database.writing() as connection:
            connection.execute(
                releases.insert().values(
                    release=self._release,
                    configuration=configuration,
                    n_steps=0,
                    head=head,
                    request_key=new.request_key,
                )
            )
            kept = {DEFINITION: new.definition, RESERVE: repr(new.reserve)}
            rows = [{"release": self._release, "name": name, "content": content} for name, content in kept.items()]
            connection.execute(private.insert(), rows)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction that sees one moment."""
        with self._database.reading() as connection:
            yield ReleaseTransaction(connection, self, lock=False)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """A transaction that has the release's row, or the whole file, to itself."""
        self.keys_read = {}
        with self._database.writing() as connection:
            yield ReleaseTransaction(connection, self, lock=self._database.row_locks)

    @property
    def release(self) -> str:
        """Its identifier."""
        return self._release

    @property
    def expected_reserve(self) -> float:
        """The reserve that was found when the release was created."""
        return float(self.read_private(RESERVE) or 0.0) if self._creation is None else self._creation.reserve

    def step_of(self, request_key: str) -> int | None:
        """The step that a request was answered with; None if none was."""
        with self._database.asking() as connection:
            asked = {"of": self._release, "key": request_key}
            found: int | None = connection.execute(statements().step_of_key, asked).scalar()
            return found

    def read_private(self, name: str) -> str | None:
        """From a table beside the ledger. What a release was created with never changes, and is read once, all of it."""
        if self._created is None:
            with self._database.asking() as connection:
                found = connection.execute(statements().private, {"of": self._release}).all()
            self._created = {row.name: row.content for row in found} or None
        return None if self._created is None else self._created.get(name)

    def write_private(self, name: str, content: str) -> NoReturn:
        """Nothing is added after a release was created."""
        raise LedgerError(
            f"{self.place}: {name!r} was lost, which it was created with; restore the database from a backup"
        )

    def remove_private(self, name: str) -> None:
        """Nothing is removed: there are no checkpoints."""

    def back_up(self, place: Path) -> NoReturn:
        """A database is backed up whole."""
        raise LedgerError(f"{self.place} is one of many in a database: back up the database")

    def close(self) -> None:
        """Nothing more can be done; the database stays open for others."""
        self._closed = True


class ReleaseTransaction(Transaction):
    """A ledger's transaction on the rows of one release. Its heading is read once, and locked where rows can be."""

    def __init__(self, connection: sa.Connection, store: ReleaseStore, *, lock: bool) -> None:
        super().__init__(connection)
        self._store, self._release = store, store.release
        self._heading = _heading(connection, self._release, lock=lock)

    def heading(self) -> tuple[str, int, str] | None:
        """As it was when the transaction began."""
        found = self._heading
        return None if found is None else (found.configuration, found.n_steps, found.head)

    def remake(self, configuration: str, head: str) -> NoReturn:
        """Not a release of a service: what it is for was fixed when it was created."""
        raise LedgerError(f"{self._store.place}: what it is for was changed after it was created")

    def rows(self, start: int = 0, end: int | None = None) -> list[LedgerRow]:
        """The rows from step `start` on; nothing is asked where the heading says that there are none."""
        if end is None and self._heading is not None and start == self._heading.n_steps:
            return []
        steps = tables().steps
        chosen = steps.select().where(steps.c.release == self._release, steps.c.step >= start).order_by(steps.c.step)
        if end is not None:
            chosen = chosen.where(steps.c.step < end)
        found = self.connection.execute(chosen).all()
        self._store.keys_read |= {r.request_key: r.step for r in found if r.request_key is not None}
        return [LedgerRow(*(getattr(r, field) for field in STEP_FIELDS)) for r in found]

    def events(self, start: int = 0) -> list[LedgerEvent]:
        """None: nothing happens between the steps of a service's release."""
        return []

    def append(self, row: LedgerRow) -> None:
        """Add a row, and move the head to it from where it was when the transaction began. Errors as for a ledger."""
        values = {field: getattr(row, field) for field in STEP_FIELDS}
        values |= {"release": self._release, "request_key": self._store.next_key}
        stored = self.connection.execute(statements().append, values).one()
        head = {"of": self._release, "after": self._known.head, "to_steps": row.step + 1, "to_head": row.hash}
        self._require_moved(self.connection.execute(statements().move_head, head))
        self._require_stored(LedgerRow(*stored) == row)

    def append_event(self, event: LedgerEvent) -> NoReturn:
        """Refused, for the same reason."""
        raise LedgerError(f"{self._store.place}: a release of a service has steps alone, and no {event.kind!r}")

    @property
    def _known(self) -> Heading:
        if self._heading is None:
            raise LedgerError(f"{self._store.place}: there is no such release")
        return self._heading

    def _require_moved(self, done: Any) -> None:
        if done.rowcount != 1:
            raise LedgerError(f"{self._store.place}: somebody wrote without the release's lock; nothing was stored")


def _heading(connection: sa.Connection, release: str, *, lock: bool) -> Heading | None:
    asked = statements().locked_heading if lock else statements().heading
    found = connection.execute(asked, {"of": release}).first()
    return None if found is None else Heading(*found)
