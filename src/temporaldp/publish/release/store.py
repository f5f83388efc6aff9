"""Storage of one release: a ledger's file or database, or one of many releases of a service."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporaldp.base.errors import TemporaldpError
from temporaldp.publish.release.database import Database, connect
from temporaldp.publish.release.tables import LEDGER, Transaction, selection, tables

if TYPE_CHECKING:
    import sqlalchemy as sa

    from temporaldp.publish.release.ledger import Ledger


class Store:
    """One release of a database, which is opened on first use.

    Parameters
    ----------
    database : Database
    release : str
        `LEDGER`, or the identifier of a release of a service.
    is_shared : bool
        Whether others use the database, so that closing the store leaves it open.
    output : path, optional
        Where the release is published: another name by which a lost ledger is recognised.
    lacking : callable, optional
        Returns the refusal of a ledger that lacks what that output has, or None.
    """

    def __init__(
        self,
        database: Database,
        release: str = LEDGER,
        *,
        is_shared: bool = False,
        output: Path | None = None,
        lacking: Callable[[Ledger], TemporaldpError | None] | None = None,
    ) -> None:
        self.lacking = lacking
        self.database, self.release, self._is_shared = database, release, is_shared
        self.names = database.names if output is None else (*database.names, f"output {os.path.realpath(output)}")
        self.place = database.place if release == LEDGER else f"{database.place}, release {release}"

    def exists(self) -> bool:
        """Whether the release exists; also if only its heading was deleted."""
        if not self.database.exists():
            return False
        if (self.database.is_file and self.release == LEDGER) or self.heading() is not None:
            return True
        with self.reading() as transaction:
            return bool(transaction.rows(0, 1))

    def heading(self) -> sa.Row[Any] | None:
        """Configuration of the release and the end of its chain; None if there is no such release."""
        with self.database.asking() as connection:
            return Transaction(connection, self.release, lock=False).heading

    def create(self, configuration: str, head: str, definition: str | None = None) -> None:
        """Create the release without steps, atomically; if another process created it meanwhile, that one stays."""

        def fill(connection: sa.Connection) -> None:
            Transaction(connection, self.release, lock=True).create(configuration, head, definition)

        if self._is_shared:
            with self.database.writing() as connection:
                fill(connection)
        else:
            self.database.make(fill)

    def discard(self) -> None:
        """Remove the release if it has no steps. Errors as for `writing`."""
        self.database.discard(lambda connection: Transaction(connection, self.release, lock=True).discard())

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Open a transaction that reads a consistent snapshot."""
        with self.database.reading() as connection:
            yield Transaction(connection, self.release, lock=False)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Exclusive write transaction on the release; durable when it ends, undone if it raises."""
        with self.database.writing() as connection:
            yield Transaction(connection, self.release, lock=True)

    def step_of(self, request_key: str) -> int | None:
        """The step of the request with this key; None if there is none."""
        asked = selection(tables().steps, "release", "request_key")
        with self.database.asking() as connection:
            found = connection.execute(asked, {"release": self.release, "request_key": request_key}).first()
        return None if found is None else int(found.step)

    def kept(self, name: str) -> str | None:
        """Return the text that was kept beside the release under this name; None if there is none."""
        with self.reading() as transaction:
            return transaction.kept(name)

    def keep(self, name: str, content: str) -> None:
        """Keep a text beside the release. Errors as for `writing`."""
        with self.writing() as transaction:
            transaction.keep(name, content)

    def close(self) -> None:
        """Close the database, unless others use it too."""
        if not self._is_shared:
            self.database.close()


def store_at(place: str | os.PathLike[str] | Store, release: str = LEDGER) -> Store:
    """The store of a release at a place; a store itself. `InputError` for another place."""
    return place if isinstance(place, Store) else Store(connect(place), release)
