"""Releases in a PostgreSQL database, each locked by its own row, so that many are written concurrently."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from temporaldp.base.extras import needing
from temporaldp.publish.release.database import SECONDS_TO_WAIT, Database
from temporaldp.publish.release.tables import sqlalchemy, tables

if TYPE_CHECKING:
    import sqlalchemy as sa


class PostgresDatabase(Database):
    """A PostgreSQL database.

    Parameters
    ----------
    place : str
        Name of the database, without the password.
    url : sqlalchemy.URL
    served : bool
        Whether a service uses it, with many connections and short waits.
    """

    ONE_MOMENT: ClassVar[dict[str, Any]] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    ONE_STATEMENT: ClassVar[dict[str, Any]] = {"isolation_level": "AUTOCOMMIT"}

    def __init__(self, place: str, url: Any, *, served: bool = False) -> None:
        super().__init__(place, served=served)
        self._url = url
        self.identity = _identity_of(url)
        self.names = (self.identity,)
        self._trial: sa.Connection | None = None

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Context whose writes are rolled back at its end, for dry runs."""
        with self._translated(), self._connected().connect() as connection, connection.begin() as everything:
            self._trial = connection
            try:
                yield
            finally:
                self._trial = None
                everything.rollback()

    def exists(self) -> bool:
        """Whether the tables are there."""
        with self.writing() as connection:
            return bool(sqlalchemy().inspect(connection).has_table(tables().releases.name))

    def make(self, fill: Callable[[sa.Connection], None]) -> None:
        """Make the tables with what `fill` writes, whole or not at all."""
        with self.writing() as connection:
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(33741002466)")  # one process makes the tables
            tables().releases.metadata.create_all(connection)
            fill(connection)

    @contextmanager
    def _transaction(self, **options: Any) -> Iterator[sa.Connection]:
        """A transaction of a connection with these options; within a trial, a part of the trial."""
        if self._trial is None:
            with super()._transaction(**options) as connection:
                yield connection
        else:
            with self._translated(), self._trial.begin_nested():
                yield self._trial

    def close(self) -> None:
        """Close the connections, for good."""
        if self._engine is not None:
            self._engine.dispose(close=self._pid == os.getpid())
        self._engine, self._closed = None, True

    def _connected(self) -> Any:
        self.require_open()
        if self._pid != os.getpid():  # a connection is not to be used on both sides of a fork
            if self._engine is not None:
                self._engine.dispose(close=False)
            self._engine, self._pid = None, os.getpid()
        if self._engine is None:
            pool: dict[str, Any] = (
                # one for each worker of a server, and some for what they read beside their step
                {"pool_size": 24, "max_overflow": 24, "pool_timeout": 5.0, "pool_recycle": 600}
                if self.served
                else {"pool_pre_ping": True}
            )
            with needing("postgresql"):
                self._engine = sqlalchemy().create_engine(
                    self._url, isolation_level="READ COMMITTED", hide_parameters=True, **pool
                )
            sqlalchemy().event.listen(self._engine, "connect", self._begin_session)
        return self._engine

    def _begin_session(self, connection: Any, _: Any) -> None:
        # Text as UTF-8, numbers with all their digits and durable commits, whatever the database's defaults are.
        lines = ["client_encoding = 'UTF8'", "extra_float_digits = 3", "synchronous_commit = on"]
        if self.served:  # a server that hangs in the middle of a step loses its lock on the release
            lines += [
                "lock_timeout = '5s'",
                "statement_timeout = '60s'",
                "idle_in_transaction_session_timeout = '30s'",
            ]
        else:
            lines += [f"lock_timeout = '{SECONDS_TO_WAIT}s'"]
        for line in lines:
            connection.execute(f"SET {line}")
        connection.commit()


def _identity_of(url: Any) -> str:
    """Server and database of a URL, without the user: the same for all spellings that the client takes for one place."""
    given = {**url.translate_connect_args(database="dbname"), **url.query}
    where = given.get("hostaddr") or given.get("host") or os.environ.get("PGHOST") or "localhost"
    hosts = [host if host.startswith("/") else host.lower() for host in ([where] if isinstance(where, str) else where)]
    named = ",".join("localhost" if host in {"127.0.0.1", "::1"} else host for host in hosts)
    port = given.get("port") or os.environ.get("PGPORT") or 5432
    name = given.get("dbname") or os.environ.get("PGDATABASE") or given.get("username")
    return f"postgresql://{named}:{port}/{name}"
