"""Where a service keeps its releases: an SQLite file for one server, a PostgreSQL database for several.

Connections, permissions, what is done when a file is replaced and what an error says are those of a single ledger's store. Only
the lock differs: on PostgreSQL a release is locked by its own row, so that many are written at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from temporaldp.errors import LedgerError
from temporaldp.extras import needing
from temporaldp.release.file_store import FileStore
from temporaldp.release.store import PostgresStore, database_of, file_of, shown_file
from temporaldp.serve.tables import tables

if TYPE_CHECKING:
    import sqlalchemy as sa

FORMAT = "temporaldp service 3"

CONNECTIONS = 24
"""To PostgreSQL, of one server: one for each of its workers, and some for what they read beside their step."""

SESSION = (
    "SET synchronous_commit = on",
    "SET lock_timeout = '5s'",
    "SET statement_timeout = '60s'",
    "SET idle_in_transaction_session_timeout = '30s'",
)
"""A commit is durable, and nobody holds a release for long: a server that hangs in the middle of a step loses it."""


class FileDatabase:
    """An SQLite file, its owner's only: one writer at a time."""

    row_locks = False  # a writer has all of it

    def __init__(self, store: FileStore) -> None:
        self._store, self.place = store, store.place

    def prepare(self) -> None:
        """Make the tables, unless they are there. `LedgerError` if they are of another version."""
        if not self._store.exists():
            self._store.create(FORMAT, "")
        with self.reading() as connection:
            _require_format(connection, self.place)

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction; durable when it ends, undone if it raises."""
        with self._store.writing() as transaction:
            yield transaction.connection

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that sees one moment."""
        with self._store.reading() as transaction:
            yield transaction.connection

    asking = reading

    def close(self) -> None:
        """Close the connections."""
        self._store.close()


class _ServiceFile(FileStore):
    """A file with the tables of a service."""

    def _make(self, connection: sa.Connection, configuration: str, head: str) -> None:
        _make(connection)


class ServerDatabase(PostgresStore):
    """A PostgreSQL database: any number of servers, each release locked by its row."""

    row_locks = True

    def prepare(self) -> None:
        """Make the tables, unless they are there. `LedgerError` if they are of another version."""
        if not self.exists():
            self.create(FORMAT, "")
        with self.asking() as connection:
            _require_format(connection, self.place)

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A transaction; durable when it ends, undone if it raises."""
        with self._transaction() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """A transaction that sees one moment."""
        with super().reading() as transaction:
            yield transaction.connection

    @contextmanager
    def asking(self) -> Iterator[Any]:
        """For one statement that reads."""
        with self._translated(), self._connected().connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    @property
    def _first_table(self) -> str:
        return str(tables().service.name)

    def _make(self, connection: sa.Connection, configuration: str, head: str) -> None:
        _make(connection)

    @property
    def _pool(self) -> dict[str, Any]:
        return {"pool_size": CONNECTIONS, "max_overflow": CONNECTIONS, "pool_timeout": 5.0, "pool_recycle": 600}

    def _connected(self) -> Any:
        with needing("ledger"):
            import sqlalchemy as sa

        fresh = self._engine is None
        engine = super()._connected()
        if fresh:
            sa.event.listen(engine, "connect", _patiently)
        return engine


Database: TypeAlias = FileDatabase | ServerDatabase


def _patiently(connection: Any, _: Any) -> None:
    for line in SESSION:
        connection.execute(line)
    connection.commit()


def _make(connection: sa.Connection) -> None:
    service = tables().service
    service.metadata.create_all(connection)
    if connection.execute(service.select()).first() is None:
        connection.execute(service.insert().values(id=1, format=FORMAT))


def _require_format(connection: sa.Connection, place: str) -> None:
    found = connection.execute(tables().service.select()).first()
    if found is None or found.format != FORMAT:
        told = "nothing" if found is None else repr(str(found.format)[:40])
        raise LedgerError(f"{place}: expected a service's database of format {FORMAT!r}, got {told}")


def database_at(place: str | os.PathLike[str]) -> Database:
    """The database of a place that a user names, with its tables.

    Raises
    ------
    InputError
        It is neither a file nor a URL of PostgreSQL.
    LedgerError
        It cannot be used, or holds something else.
    """
    path = file_of(place)
    made: Database
    made = (
        ServerDatabase(*database_of(place))
        if path is None
        else FileDatabase(_ServiceFile(path, shown=shown_file(place)))
    )
    try:
        made.prepare()
    except LedgerError:
        made.close()
        raise
    return made
