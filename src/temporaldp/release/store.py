"""Where a ledger is kept: an SQLite file, or a PostgreSQL database behind a URL."""

from __future__ import annotations

import os
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporaldp.errors import InputError, LedgerError
from temporaldp.extras import needing
from temporaldp.files.atomic import brief
from temporaldp.release.tables import Transaction, tables

if TYPE_CHECKING:
    import sqlalchemy as sa

SECONDS_TO_WAIT = 60
"""For another process to finish its step."""

ADVISORY_LOCK = 0x7DB_1ED6E2
"""PostgreSQL's lock of that number is held by whoever writes."""

PRIVATE_TABLE = "CREATE TABLE IF NOT EXISTS temporaldp_private (name TEXT PRIMARY KEY, content TEXT NOT NULL)"

SECRET = re.compile("password|secret|token|passfile|sslkey", re.IGNORECASE)
"""Parameters of a URL that are not shown."""


class Store(ABC):
    """A place for one ledger. Opens nothing before it is asked to.

    Parameters
    ----------
    place : str
        In words that may be shown.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self._closed = False

    @abstractmethod
    def exists(self) -> bool:
        """Whether a ledger is there."""

    @abstractmethod
    def create(self, configuration: str, head: str) -> None:
        """Make an empty ledger, whole or not at all; if another process made one meanwhile, that one stays."""

    @abstractmethod
    def reading(self) -> Any:
        """A context: a `Transaction` that sees one moment."""

    @abstractmethod
    def writing(self) -> Any:
        """A context: a `Transaction` that nobody else writes beside; durable when it ends, undone if it raises."""

    @abstractmethod
    def read_private(self, name: str) -> str | None:
        """Something kept beside the ledger that is no part of it: a key, a matrix. None if it is not there."""

    @abstractmethod
    def write_private(self, name: str, content: str) -> str:
        """Keep something beside the ledger, unless it is there already; gives what is kept.

        Raises
        ------
        LedgerError
            It cannot be kept.
        """

    @abstractmethod
    def remove_private(self, name: str) -> None:
        """Remove something kept beside the ledger; nothing if it is not there. `LedgerError` if it cannot be removed."""

    @abstractmethod
    def back_up(self, place: Path) -> None:
        """A copy of the ledger as of one moment, with what is kept beside it, while others write. `LedgerError` if it fails."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the connections; nothing can be done any more."""

    @property
    def _first_table(self) -> str:
        """Where there is a table of this name, something is kept."""
        return str(tables().heading.name)

    def _make(self, connection: sa.Connection, configuration: str, head: str) -> None:
        """The tables of something new, unless they are there."""
        Transaction(connection).make(configuration, head)

    def require_open(self) -> None:
        """`LedgerError` once it was closed."""
        if self._closed:
            raise LedgerError(f"the ledger {self.place} was closed; open it again to go on")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """The database's errors as ours; those of a mechanism in the block pass."""
        with needing("ledger"):
            from sqlalchemy import exc

        try:
            yield
        except (exc.SQLAlchemyError, sqlite3.Error) as error:
            # Not "from error": its parameters may hold noise that was drawn and not stored.
            raise LedgerError(f"cannot use the ledger {self.place}: {_reason(error)}") from None


class PostgresStore(Store):
    """PostgreSQL: an advisory lock keeps other writers out, and commits are synchronous whatever the server's default is."""

    def __init__(self, place: str, url: Any) -> None:
        super().__init__(place)
        self._url = url
        self._engine: Any = None
        self._trial: sa.Connection | None = None
        self._pid = os.getpid()

    @contextmanager
    def trial(self) -> Iterator[None]:
        """A block after which nothing that was written in it has happened: one transaction, which is rolled back."""
        with self._translated(), self._connected().connect() as connection, connection.begin() as everything:
            self._trial = connection
            try:
                yield
            finally:
                self._trial = None
                everything.rollback()

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        """A transaction: durable when it ends, undone if it raises."""
        with self._translated():
            if self._trial is None:
                with self._connected().begin() as connection:
                    yield connection
            else:
                with self._trial.begin_nested():
                    yield self._trial

    def exists(self) -> bool:
        """Whether a ledger is there."""
        with needing("ledger"):
            import sqlalchemy as sa

        with self._transaction() as connection:
            return bool(sa.inspect(connection).has_table(self._first_table))

    def create(self, configuration: str, head: str) -> None:
        """Make an empty ledger, whole or not at all."""
        with self._transaction() as connection:
            self._prepare(connection)
            self._make(connection, configuration, head)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction that sees one moment."""
        if self._trial is not None:
            yield Transaction(self._trial)
            return
        with self._translated(), self._connected().connect() as connection:
            moment = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with moment.begin():
                yield Transaction(moment)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """A transaction that nobody else writes beside."""
        with self._transaction() as connection:
            self._prepare(connection)
            yield Transaction(connection)

    def read_private(self, name: str) -> str | None:
        """From a table of its own."""
        with self._transaction() as connection:
            return _private_of(connection, name)

    def write_private(self, name: str, content: str) -> str:
        """Into a table of its own."""
        with self._transaction() as connection:
            connection.exec_driver_sql(PRIVATE_TABLE)
            connection.exec_driver_sql(
                "INSERT INTO temporaldp_private (name, content) VALUES (%s, %s) ON CONFLICT DO NOTHING", (name, content)
            )
            return _private_of(connection, name) or content

    def remove_private(self, name: str) -> None:
        """From that table."""
        with self._transaction() as connection:
            if _private_of(connection, name) is not None:
                connection.exec_driver_sql("DELETE FROM temporaldp_private WHERE name = %s", (name,))

    def back_up(self, place: Path) -> None:
        """A database server has tools of its own for that."""
        raise LedgerError(
            f"{self.place} is a database: back it up with `pg_dump`, which sees one moment while others write, and restore it "
            "with `pg_restore`"
        )

    def close(self) -> None:
        """Close the connections, for good."""
        if self._engine is not None:
            self._engine.dispose(close=self._pid == os.getpid())
        self._engine, self._closed = None, True

    @property
    def _pool(self) -> dict[str, Any]:
        """Of how many connections, and how they are looked after."""
        return {"pool_pre_ping": True}

    def _prepare(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{SECONDS_TO_WAIT}s'")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")

    def _connected(self) -> Any:
        with needing("ledger"):
            import sqlalchemy as sa

        self.require_open()
        if self._pid != os.getpid():  # a connection is not to be used on both sides of a fork
            if self._engine is not None:
                self._engine.dispose(close=False)
            self._engine, self._pid = None, os.getpid()
        if self._engine is None:
            with needing("postgresql"):
                self._engine = sa.create_engine(
                    self._url, isolation_level="READ COMMITTED", hide_parameters=True, **self._pool
                )
            sa.event.listen(self._engine, "connect", _plainly)
        return self._engine


def _private_of(connection: sa.Connection, name: str) -> str | None:
    with needing("ledger"):
        import sqlalchemy as sa

    if not sa.inspect(connection).has_table("temporaldp_private"):
        return None
    asked = "SELECT content FROM temporaldp_private WHERE name = %s"
    found: str | None = connection.exec_driver_sql(asked, (name,)).scalar()
    return found


def _plainly(connection: Any, _: Any) -> None:
    """Text as UTF-8 and numbers with all their digits, whatever the database's defaults are."""
    connection.execute("SET client_encoding = 'UTF8'")
    connection.execute("SET extra_float_digits = 3")
    connection.commit()


def store_at(place: str | os.PathLike[str] | Store) -> Store:
    """The store of a place that a user names; a store itself.

    Raises
    ------
    InputError
        It is neither a file nor a URL of PostgreSQL.
    """
    from temporaldp.release.file_store import FileStore

    if isinstance(place, Store):
        return place
    path = file_of(place)
    if path is not None:
        return FileStore(path, shown=shown_file(place))
    return PostgresStore(*database_of(place))


def shown_file(place: str | os.PathLike[str]) -> str:
    """A file as its user wrote it."""
    text = os.fspath(place)
    return text if "://" not in text else str(file_of(place))


def database_of(place: str | os.PathLike[str]) -> tuple[str, Any]:
    """A database server's URL: as it may be shown, and as it is connected to.

    Raises
    ------
    InputError
        It is no URL of PostgreSQL.
    """
    url = _url(os.fspath(place))
    secrets = {key: "***" for key in url.query if SECRET.search(key)}
    shown = url.update_query_dict(secrets).render_as_string(hide_password=True)
    if url.get_backend_name() != "postgresql":
        raise InputError(f"expected an SQLite file or a postgresql:// URL for the ledger, got {shown}")
    return shown, url.set(drivername="postgresql+psycopg") if "+" not in url.drivername else url


def file_of(place: str | os.PathLike[str]) -> Path | None:
    """The file that a place names, absolute; None if it names a database server."""
    text = os.fspath(place)
    if not text or text == ":memory:" or text.startswith("file:") or re.match(r"\w+:/[^/\\]", text):
        raise InputError(
            "expected a file or a postgresql:// URL for the ledger, got "
            + (repr(text) if "@" not in text else "something like a URL with one slash after the colon")
        )
    if "://" not in text:
        return Path(text).absolute()
    url = _url(text)
    if url.get_backend_name() == "sqlite" and url.query:
        raise InputError("expected an SQLite URL without parameters for the ledger: sqlite:///FILE")
    return Path(url.database or "").absolute() if url.get_backend_name() == "sqlite" and url.database else None


def _url(text: str) -> Any:
    with needing("ledger"):
        from sqlalchemy import exc
        from sqlalchemy.engine import make_url

    try:
        return make_url(re.sub(r"^postgres://", "postgresql://", text))
    except (exc.ArgumentError, ValueError):  # the text may hold a password: it is not repeated
        raise InputError(
            "expected a ledger's URL like postgresql://user@host:5432/database, got one that cannot be read"
        ) from None


ADVICE = {
    "SQLITE_FULL": "make room on the disk, then run again",
    "SQLITE_IOERR": "the disk refused; look at it, then run again",
    "SQLITE_READONLY": "the file or its folder may not be written to; change its permissions, then run again",
    "SQLITE_CANTOPEN": "the file or its folder may not be read or written to",
    "SQLITE_BUSY": f"another process has been writing for {SECONDS_TO_WAIT} seconds; run again when it is done",
    "SQLITE_NOTADB": "it is no ledger, or was truncated; restore it from a backup that holds every published step",
    "SQLITE_CORRUPT": "it is damaged or truncated; restore it from a backup that holds every published step",
}


def _reason(error: Exception) -> str:
    """The database's own words, what to do, and what became of the step."""
    original = getattr(error, "orig", None) or error
    code = str(getattr(original, "sqlite_errorname", ""))
    advice = next((text for prefix, text in ADVICE.items() if code.startswith(prefix)), "mend that, then run again")
    return (
        f"{brief(original)}; {advice}. Nothing was published; a step that was stored all the same gives its stored output "
        "when you run again"
    )
