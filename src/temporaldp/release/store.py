"""Where a ledger's rows are kept: an SQLite file, or a PostgreSQL database behind a URL.

SQLite: write-ahead log with full synchronisation, and a checkpoint after each step, so that the file alone holds everything. A
transaction that writes takes the only write lock before it reads. PostgreSQL: an advisory lock does the same, and commits
are synchronous whatever the server's default is.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporaldp.errors import InputError, LedgerError
from temporaldp.files.atomic import brief
from temporaldp.release.chain import LedgerRow

if TYPE_CHECKING:
    import sqlalchemy as sa

SECONDS_TO_WAIT = 60.0
"""For another process to finish its step."""

ADVISORY_LOCK = 0x7DB_1ED6E2
"""PostgreSQL's lock of that number is held by whoever writes."""

SQLITE_MAGIC = b"SQLite format 3\0"


@lru_cache(maxsize=1)
def _tables() -> tuple[sa.Table, sa.Table]:
    """The tables: one row that says what the ledger is for and where its chain ends, and one row a step."""
    import sqlalchemy as sa

    metadata = sa.MetaData()
    heading = sa.Table(
        "temporaldp_ledger",
        metadata,
        sa.Column("id", sa.Integer, sa.CheckConstraint("id = 1"), primary_key=True),
        sa.Column("configuration", sa.Text, nullable=False),
        sa.Column("n_steps", sa.Integer, nullable=False),
        sa.Column("head", sa.Text, nullable=False),
    )
    steps = sa.Table(
        "temporaldp_steps",
        metadata,
        sa.Column("step", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("time", sa.Text, nullable=False, unique=True),
        sa.Column("epsilon", sa.Double, nullable=False),
        sa.Column("leakage", sa.Double),
        sa.Column("last", sa.Boolean, nullable=False),
        sa.Column("output", sa.Text),
        sa.Column("hash", sa.Text, nullable=False),
    )
    return heading, steps


class Store:
    """A place for one ledger. Opens nothing before it is asked to."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self.place, self._path, self._url = _located(place)
        self._engine: Any = None
        self._pid = os.getpid()

    def exists(self) -> bool:
        """Whether a ledger is there."""
        if self._path is not None:
            return os.path.lexists(self._path)
        import sqlalchemy as sa

        with self._translated(), self._connected().connect() as connection:
            return bool(sa.inspect(connection).has_table(_tables()[0].name))

    def create(self, configuration: str, head: str) -> None:
        """Make an empty ledger, whole or not at all; if another process made one meanwhile, that one stays."""
        if self._path is not None:
            self._create_file(configuration, head)
            return
        with self._translated(), self._connected().begin() as connection:
            self._lock(connection)
            _fill(connection, configuration, head)

    def close(self) -> None:
        """Let go of the connections."""
        if self._engine is not None:
            self._engine.dispose(close=self._pid == os.getpid())
            self._engine = None

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction that sees one moment."""
        with self._translated(), self._connected().connect() as connection, connection.begin():
            yield Transaction(connection)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """A transaction that nobody else writes beside; durable when the block ends, undone if it raises."""
        with self._translated(), self._connected().connect() as connection:
            writer = connection.execution_options(temporaldp_writes=True)
            with writer.begin():
                self._lock(writer)
                yield Transaction(writer)
            if self._path is not None:
                # The step is durable; the checkpoint only saves it from somebody who deletes the log beside the file.
                with suppress(sqlite3.Error):
                    writer.connection.driver_connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _lock(self, connection: sa.Connection) -> None:
        if self._path is None:
            connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{SECONDS_TO_WAIT:.0f}s'")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")

    def _connected(self) -> Any:
        import sqlalchemy as sa

        if self._pid != os.getpid():  # a connection is not to be used on both sides of a fork
            if self._engine is not None:
                self._engine.dispose(close=False)
            self._engine, self._pid = None, os.getpid()
        if self._engine is None:
            if self._path is None:
                self._engine = sa.create_engine(self._url, isolation_level="READ COMMITTED")
            else:
                _require_ledger_file(self._path)
                self._engine = _sqlite_engine(self._path)
        return self._engine

    def _create_file(self, configuration: str, head: str) -> None:
        """Complete under another name first, so that no crash leaves an empty ledger that looks like a new one."""
        assert self._path is not None
        with self._translated():
            handle, name = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)  # the owner's only
            os.close(handle)
            temporary = Path(name)
            try:
                engine = _sqlite_engine(temporary)
                with engine.connect().execution_options(temporaldp_writes=True) as connection, connection.begin():
                    _fill(connection, configuration, head)
                engine.dispose()  # the last connection folds the log into the file
                _synchronised(temporary)
                with suppress(FileExistsError):
                    os.link(temporary, self._path)  # never replaces a file
                _synchronised(self._path.parent)
            finally:
                for left in (temporary, Path(f"{name}-wal"), Path(f"{name}-shm")):
                    left.unlink(missing_ok=True)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Other libraries' errors as ours."""
        from sqlalchemy import exc

        try:
            yield
        except exc.NoSuchModuleError as error:
            raise InputError(f"{self.place}: expected an SQLite file or a PostgreSQL URL, got {brief(error)}") from None
        except (exc.SQLAlchemyError, sqlite3.Error) as error:
            raise LedgerError(f"cannot use the ledger {self.place}: {_reason(error)}") from error
        except ImportError as error:
            raise LedgerError(
                f"cannot use the ledger {self.place}: {error}; install the driver: pip install 'temporaldp[postgresql]'"
            ) from None
        except OSError as error:
            if isinstance(error, LedgerError):
                raise
            raise LedgerError(f"cannot use the ledger {self.place}: {error.strerror or error}") from error


class Transaction:
    """What can be done inside one."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def heading(self) -> tuple[str, int, str] | None:
        """The configuration, the number of steps and the head of the chain; None where there is no ledger."""
        heading, _ = _tables()
        found = self._connection.execute(heading.select()).first()
        return None if found is None else (found.configuration, found.n_steps, found.head)

    def rows(self, start: int = 0) -> list[LedgerRow]:
        """The rows from step `start` on, in order."""
        _, steps = _tables()
        found = self._connection.execute(steps.select().where(steps.c.step >= start).order_by(steps.c.step))
        return [LedgerRow(r.step, r.time, r.epsilon, r.leakage, bool(r.last), r.output, r.hash) for r in found]

    def append(self, row: LedgerRow) -> None:
        """Add a row and move the head to it."""
        heading, steps = _tables()
        values = {name: getattr(row, name) for name in LedgerRow.__slots__}
        self._connection.execute(steps.insert().values(**values))
        self._connection.execute(heading.update().values(n_steps=row.step + 1, head=row.hash))


def _located(place: str | os.PathLike[str]) -> tuple[str, Path | None, Any]:
    """A place in words that may be shown, and the path or the URL."""
    text = os.fspath(place)
    if "://" not in text:
        return str(place), Path(text), None
    from sqlalchemy import exc
    from sqlalchemy.engine import make_url

    try:
        url = make_url(text)
    except exc.ArgumentError:
        raise InputError(
            "expected a ledger's URL like postgresql://user@host/database, got one that cannot be read"
        ) from None
    shown = url.render_as_string(hide_password=True)
    if url.get_backend_name() == "sqlite":
        return shown, Path(url.database or ""), None
    if url.get_backend_name() != "postgresql":
        raise InputError(f"expected an SQLite file or a postgresql:// URL for the ledger, got {shown}")
    return shown, None, url.set(drivername="postgresql+psycopg") if "+" not in url.drivername else url


def _sqlite_engine(path: Path) -> Any:
    import sqlalchemy as sa

    def connect() -> sqlite3.Connection:
        # "rw": never creates; a path with odd characters is quoted by as_uri.
        uri = f"{path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(
            uri, uri=True, timeout=SECONDS_TO_WAIT, isolation_level=None, check_same_thread=False
        )
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "fullfsync=ON", "checkpoint_fullfsync=ON"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.pool.QueuePool)

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # sqlite3 begins nothing by itself. A writer takes its lock at once: what it reads then cannot be outdated.
        writes = connection.get_execution_options().get("temporaldp_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _fill(connection: sa.Connection, configuration: str, head: str) -> None:
    heading, _ = _tables()
    heading.metadata.create_all(connection)
    if connection.execute(heading.select()).first() is None:
        connection.execute(heading.insert().values(id=1, configuration=configuration, n_steps=0, head=head))


def _require_ledger_file(path: Path) -> None:
    """A database, which its owner alone may read: outputs that are not published yet are in it."""
    try:
        found = path.stat()
    except FileNotFoundError:
        raise LedgerError(f"cannot use the ledger {path}: it does not exist") from None
    if not stat.S_ISREG(found.st_mode):
        raise LedgerError(f"cannot use the ledger {path}: it is no regular file")
    if os.name == "posix" and stat.S_IMODE(found.st_mode) & 0o077:
        raise LedgerError(
            f"cannot use the ledger {path}: others than its owner may read or write it (mode "
            f"{stat.S_IMODE(found.st_mode):o}); say: chmod 600 {path}"
        )
    with path.open("rb") as file:
        if file.read(len(SQLITE_MAGIC)) != SQLITE_MAGIC:  # SQLite would take an empty file for a new database
            raise LedgerError(f"cannot use the ledger {path}: {ADVICE['SQLITE_NOTADB']}")


def _synchronised(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


ADVICE = {
    "SQLITE_FULL": "make room on the disk, then run again",
    "SQLITE_IOERR": "the disk refused; look at it, then run again",
    "SQLITE_READONLY": "the file or its folder may not be written to; change its permissions, then run again",
    "SQLITE_CANTOPEN": "the file or its folder may not be read or written to",
    "SQLITE_BUSY": f"another process has been writing for {SECONDS_TO_WAIT:.0f} seconds; run again when it is done",
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
