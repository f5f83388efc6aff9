"""Releases in an SQLite file: a ledger, or all releases of one server.

Write-ahead log with full synchronisation, and a checkpoint after each step, so that the file alone holds everything. A
transaction that writes takes the only write lock before it reads.

SQLite keeps its locks by process and file, which has four consequences. Connections are closed before a fork, or the child
would believe that it holds its parent's locks. A file in use is never opened and closed by anything but SQLite, which would
drop the process's locks. A file with a second name (a hard link) would be locked under one and not the other, and is refused.
A file or a log that is replaced while it is open would be written without a name: each step checks that both still exist.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporaldp.base.errors import LedgerError
from temporaldp.base.extras import needing
from temporaldp.data.files.atomic import making
from temporaldp.publish.release.database import ADVICE, SECONDS_TO_WAIT, Database
from temporaldp.publish.release.tables import tables

if TYPE_CHECKING:
    import sqlalchemy as sa

SECONDS_WITH_TWO_NAMES = 2.0
"""How long a ledger that another process is making may have its temporary name besides its own."""

PRAGMAS = ("synchronous=FULL", "fullfsync=ON", "checkpoint_fullfsync=ON")


class FileDatabase(Database):
    """An SQLite file, accessible to its owner only."""

    is_file = True

    def __init__(self, path: Path, *, shown: str, served: bool = False) -> None:
        super().__init__(shown, served=served)
        self._path = Path(os.path.realpath(path))  # SQLite keeps the log beside what a link stands for
        self.identity = str(self._path)
        self.names = tuple(dict.fromkeys((self.identity, str(path))))  # a link may be removed with the file
        self._file: tuple[int, int] | None = None
        self._log: tuple[int, int] | None = None
        _open_stores.add(self)

    def exists(self) -> bool:
        """Whether the file exists."""
        return os.path.lexists(self._path)

    def make(self, fill: Callable[[sa.Connection], None]) -> None:
        """Make the file under a temporary name first, so that no crash leaves an empty ledger that looks like a new one."""
        for log in (Path(f"{self._path}-wal"), Path(f"{self._path}-shm")):
            # SQLite would replay it into the new file. The log of a ledger that another process has made is younger than that.
            if log.exists() and not self.exists():
                raise LedgerError(
                    f"cannot create the ledger {self.place}: {log.name} is left from one that was removed or moved; restore "
                    "that one, or remove this file too if the budget that it spent may be disregarded"
                )
        usable = _file_errors(f"use the ledger {self.place}")
        with usable, suppress(FileExistsError), making(self._path) as temporary, self._translated():
            try:
                engine = _engine(temporary, new=True)
                with engine.connect().execution_options(temporaldp_writes=True) as connection, connection.begin():
                    tables().releases.metadata.create_all(connection)
                    fill(connection)
                engine.dispose()  # the last connection folds the log into the file
            finally:
                for ending in ("-wal", "-shm"):
                    Path(f"{temporary}{ending}").unlink(missing_ok=True)

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Exclusive write transaction; durable when it ends, undone if it raises."""
        with self._translated(), self._connected().connect() as connection:
            writer = connection.execution_options(temporaldp_writes=True)
            with writer.begin():
                self._require_same_file()
                yield writer
                self._require_same_file()
            # The step is durable; the checkpoint only saves it from somebody who deletes the log beside the file.
            with suppress(sqlite3.Error):
                writer.connection.driver_connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def discard(self, is_unused: Callable[[sa.Connection], bool]) -> None:
        """Remove the file and its log, behind the lock of writers, who find at their next step that it is gone."""
        with self._translated(), self._connected().connect() as connection:
            writer = connection.execution_options(temporaldp_writes=True)
            with writer.begin():
                self._require_same_file()
                if is_unused(writer):
                    for ending in ("-wal", "-shm", ""):
                        Path(f"{self._path}{ending}").unlink(missing_ok=True)

    def back_up(self, place: Path) -> None:
        """Copy the file by SQLite's backup, consistently, while others write."""
        if os.path.lexists(place):
            raise LedgerError(f"{place} exists; a backup never replaces a file: name another one")
        with self.reading() as connection, _file_errors(f"write the backup {place}"), making(place) as temporary:
            source: Any = connection.connection.driver_connection
            with closing(sqlite3.connect(temporary)) as target:
                source.backup(target)

    def close(self) -> None:
        """Close the connections, for good."""
        self.disconnect()
        self._closed = True

    def disconnect(self) -> None:
        """Close the connections; the next transaction opens them again."""
        if self._engine is not None and self._pid == os.getpid():
            self._engine.dispose()
            self._engine = None

    @property
    def is_busy(self) -> bool:
        """Whether a transaction is in progress."""
        return self._engine is not None and self._engine.pool.checkedout() > 0

    def _connected(self) -> Any:
        self.require_open()
        if self._pid != os.getpid() and self.is_busy:
            raise LedgerError(
                f"the ledger {self.place} was in the middle of a step when this process was forked from another, and cannot be "
                "used here; fork between steps, or start the process afresh (multiprocessing's spawn)"
            )
        self._pid = os.getpid()
        if self._engine is None:
            with _file_errors(f"use the ledger {self.place}"):
                _require_ledger_file(self._path, self.place)
            self._file = _identity_at(self._path)
            self._engine = _engine(self._path, connected=self._forget_log)
        return self._engine

    def _forget_log(self) -> None:
        self._log = None

    def _require_same_file(self) -> None:
        found, log = _identity_at(self._path), _identity_at(Path(f"{self._path}-wal"))
        self._log = self._log or log  # a new connection may have made a new one
        if found != self._file or log != self._log:
            self.disconnect()
            raise LedgerError(
                f"the ledger {self.place} (or its log) was removed, moved or replaced while it was in use; nothing was "
                "published. Put it back, and open it again"
            )


_open_stores: weakref.WeakSet[FileDatabase] = weakref.WeakSet()


def _before_a_fork() -> None:
    for store in list(_open_stores):
        if not store.is_busy:
            store.disconnect()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_a_fork)


def _engine(path: Path, *, new: bool = False, connected: Callable[[], None] = lambda: None) -> Any:
    with needing("ledger"):
        import sqlalchemy as sa

    read_only = not new and not os.access(path, os.W_OK) and not Path(f"{path}-wal").exists()

    def connect() -> sqlite3.Connection:
        # "rw" never creates; a read-only file (a backup, say) needs no locks. as_uri quotes.
        mode = "mode=ro&immutable=1" if read_only else "mode=rw"
        connection = sqlite3.connect(
            f"{path.as_uri()}?{mode}", uri=True, timeout=SECONDS_TO_WAIT, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in ("journal_mode=WAL", *PRAGMAS) if new else PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
        except UnicodeDecodeError:  # SQLite's message quotes what is damaged
            raise sqlite3.DatabaseError("database disk image is malformed") from None
        connected()
        return connection

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.pool.QueuePool, hide_parameters=True)

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # sqlite3 begins nothing by itself. A writer takes its lock at once: what it reads then cannot be outdated.
        writes = connection.get_execution_options().get("temporaldp_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@contextmanager
def _file_errors(failing: str) -> Iterator[None]:
    """A block that raises an error of the operating system as a `LedgerError`."""
    try:
        yield
    except LedgerError:
        raise
    except OSError as error:
        raise LedgerError(f"cannot {failing}: {error.strerror or error}") from None


def _require_ledger_file(path: Path, place: str) -> None:
    """A file with one name that its owner alone may read: outputs that are not published yet are in it. It is not opened."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise LedgerError(f"cannot use the ledger {place}: it is not a regular file")
    if found.st_size < 512:  # bytes of SQLite's smallest page: it would take an empty file for a new database
        raise LedgerError(f"cannot use the ledger {place}: {ADVICE['SQLITE_NOTADB']}")
    if os.name == "posix" and stat.S_IMODE(found.st_mode) & 0o077:
        raise LedgerError(
            f"cannot use the ledger {place}: others than its owner may read or write it (mode "
            f"{stat.S_IMODE(found.st_mode):o}); if it is a ledger, say: chmod 600 {place}"
        )
    deadline = time.monotonic() + SECONDS_WITH_TWO_NAMES
    while found.st_nlink > 1:
        if time.monotonic() > deadline:
            raise LedgerError(
                f"cannot use the ledger {place}: the file has {found.st_nlink} names (hard links), and locks would not hold "
                "between them; remove the other one (a crash while it was made leaves one that begins with a dot beside it)"
            )
        time.sleep(0.01)
        found = path.stat()


def _identity_at(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
