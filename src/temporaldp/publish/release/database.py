"""Storage of releases: an SQLite file or a PostgreSQL database, the places that name them, and one release of a database."""

from __future__ import annotations

import os
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from temporaldp.base.errors import InputError, LedgerError, TemporaldpError
from temporaldp.data.files.atomic import brief
from temporaldp.publish.release.chain import LEDGER
from temporaldp.publish.release.tables import Transaction, selection, sqlalchemy, tables

if TYPE_CHECKING:
    import sqlalchemy as sa

    from temporaldp.publish.release.ledger import Ledger


SECONDS_TO_WAIT = 60
"""For another process to finish its step."""


class Database(ABC):
    """A place for releases, opened on first use.

    Parameters
    ----------
    place : str
        Name of the place, without secrets.
    served : bool
        Whether a service uses it.

    Attributes
    ----------
    identity : str
        Normalised name of the place, whatever its spelling.
    names : tuple of str
        All names of the place by which a lost ledger is recognised, the identity first.
    """

    is_file = False
    """Whether it is one file, which exists as a whole or not at all."""

    ONE_MOMENT: ClassVar[dict[str, Any]] = {}
    """Options of a connection for a transaction that sees one moment."""

    ONE_STATEMENT: ClassVar[dict[str, Any]] = {}
    """Options of a connection for one reading statement."""

    def __init__(self, place: str, *, served: bool) -> None:
        self.place, self.identity, self.served = place, place, served
        self.names: tuple[str, ...] = (place,)
        self._closed = False
        self._engine: Any = None
        self._pid = os.getpid()  # of the process that has the connections

    @abstractmethod
    def exists(self) -> bool:
        """Whether the tables are there."""

    @abstractmethod
    def make(self, fill: Callable[[sa.Connection], None]) -> None:
        """Make the tables with what `fill` writes, atomically; a file that was made meanwhile stays."""

    def reading(self) -> AbstractContextManager[sa.Connection]:
        """A transaction that sees one moment."""
        return self._transaction(**self.ONE_MOMENT)

    def asking(self) -> AbstractContextManager[sa.Connection]:
        """Connection for one reading statement."""
        return self._transaction(**self.ONE_STATEMENT)

    def writing(self) -> AbstractContextManager[sa.Connection]:
        """A transaction; durable when it ends, undone if it raises."""
        return self._transaction()

    @contextmanager
    def _transaction(self, **options: Any) -> Iterator[sa.Connection]:
        """A transaction of a connection with these options."""
        with (
            self._translated(),
            self._connected().connect() as connection,
            connection.execution_options(**options).begin(),
        ):
            yield connection

    @abstractmethod
    def _connected(self) -> Any:
        """The engine, made on first use."""

    def discard(self, is_unused: Callable[[sa.Connection], bool]) -> None:
        """Remove what `is_unused` deletes; the tables of a database stay."""
        with self.writing() as connection:
            is_unused(connection)

    def back_up(self, place: Path) -> None:
        """Make a consistent copy of a file while others write. `LedgerError` if that fails, or for a database."""
        raise LedgerError(
            f"{self.place} is a database: back it up with `pg_dump`, which sees one moment while others write, and restore it "
            "with `pg_restore`"
        )

    @abstractmethod
    def close(self) -> None:
        """Close the connections for good."""

    def require_open(self) -> None:
        """Raise `LedgerError` after the database was closed."""
        if self._closed:
            raise LedgerError(f"the ledger {self.place} was closed; open it again")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """The database's errors as ours; those of a mechanism in the block pass."""
        try:
            yield
        except (sqlalchemy().exc.SQLAlchemyError, sqlite3.Error) as error:
            # Not "from error": its parameters may hold noise that was drawn and not stored.
            stored = (
                "Nothing was published; a step that was stored all the same gives its stored output when you run again"
            )
            what, became = ("database", "") if self.served else ("ledger", f". {stored}")
            raise LedgerError(f"cannot use the {what} {self.place}: {_reason(error)}{became}") from None


def connect(place: str | os.PathLike[str], *, served: bool = False) -> Database:
    """The database of a place, with the connections of a service if it is `served`.

    Raises
    ------
    InputError
        The place is neither a file nor a URL of PostgreSQL.
    """
    from temporaldp.publish.release.file_store import FileDatabase
    from temporaldp.publish.release.postgres import PostgresDatabase

    path = file_of(place)
    if path is not None:
        return FileDatabase(path, shown=os.fspath(place), served=served)
    return PostgresDatabase(*database_of(place), served=served)


def database_of(place: str | os.PathLike[str]) -> tuple[str, Any]:
    """The URL of a database server: without the password for messages, and complete.

    Raises
    ------
    InputError
        The place is not a URL of PostgreSQL.
    """
    sa = sqlalchemy()
    try:
        url = sa.engine.make_url(re.sub(r"^postgres://", "postgresql://", os.fspath(place)))
    except (sa.exc.ArgumentError, ValueError):  # the text may hold a password: it is not repeated
        raise InputError(
            "expected a ledger's URL like postgresql://user@host:5432/database, got one that cannot be read"
        ) from None
    secrets = {
        key: "***" for key in url.query if re.search("password|secret|token|passfile|sslkey", key, re.IGNORECASE)
    }
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
    return None if "://" in text else Path(text).absolute()


ADVICE = {
    "SQLITE_FULL": "make room on the disk, then run again",
    "SQLITE_IOERR": "the disk reported an error; check it, then run again",
    "SQLITE_READONLY": "the file or its folder may not be written to; change its permissions, then run again",
    "SQLITE_CANTOPEN": "the file or its folder may not be read or written to",
    "SQLITE_BUSY": f"another process has been writing for {SECONDS_TO_WAIT} seconds; run again when it is done",
    "SQLITE_NOTADB": "it is not a ledger, or was truncated; restore it from a backup that holds every published step",
    "SQLITE_CORRUPT": "it is damaged or truncated; restore it from a backup that holds every published step",
    "SQLITE_ERROR": "its tables are of another version of temporaldp, or of another program; use the version that made them",
    "42501": "the user of its URL may not do this; grant that user the right, or use another URL",
    "42": "its tables are of another version of temporaldp, or of another program; use the version that made them",
}


def _reason(error: Exception) -> str:
    """The database's own words, and what to do."""
    original = getattr(error, "orig", None) or error
    code = str(getattr(original, "sqlite_errorname", None) or getattr(original, "sqlstate", None))
    advice = next((text for prefix, text in ADVICE.items() if code.startswith(prefix)), "correct that, then run again")
    return f"{brief(original)}; {advice}"


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
        """Remove the release if it has no steps; with the file, unless others share it. Errors as for `writing`."""
        if self._is_shared:
            with self.writing() as transaction:
                transaction.discard()
            return
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
