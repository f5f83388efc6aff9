"""What a running service consists of."""

from __future__ import annotations

import os
from copy import copy

from temporaldp.errors import LedgerError
from temporaldp.extras import needing
from temporaldp.planning.histogram_noise import HISTOGRAM_SENSITIVITY
from temporaldp.release.database import Database, connect
from temporaldp.release.histogram import granted_scale
from temporaldp.release.tables import tables
from temporaldp.serve.definition import PROMISED, Definition, proved
from temporaldp.serve.metrics import Metrics
from temporaldp.serve.registry import Registry
from temporaldp.serve.tokens import Tokens
from temporaldp.serve.workers import Workers

ROWS = [[0.6, 0.4], [0.4, 0.6]]

SMALL = Definition.model_validate({"alpha": 1.0, "backward": ROWS, "forward": ROWS, "mechanism": PROMISED})


def database_at(place: str | os.PathLike[str], *, make: bool = True) -> Database:
    """The database of a service, with its tables, which are made if there are none unless `make` is False.

    Raises
    ------
    InputError
        The place is neither a file nor a URL of PostgreSQL.
    LedgerError
        It cannot be used, or holds something else.
    """
    database = connect(place, served=True)
    try:
        _prepare(database, make=make)
    except LedgerError:
        database.close()
        raise
    return database


def _prepare(database: Database, *, make: bool) -> None:
    if not database.exists():
        if not make:
            raise LedgerError(f"there is no database of a service at {database.place}")
        database.make(lambda _: None)
    with database.asking() as connection:
        connection.execute(tables().tokens.select().limit(1))


def load_for_first_step() -> None:
    """The filter's machine code, and OpenDP."""
    accountant = copy(proved(SMALL.promise, None))
    accountant.spend(0.5 * accountant.remaining())
    granted_scale(HISTOGRAM_SENSITIVITY, 1.0)


class Service:
    """The releases of a database, who may ask for them, and the threads that do it.

    Parameters
    ----------
    place : str
        An SQLite file or a ``postgresql://`` URL; tables are made if there are none.
    metrics : Metrics

    Raises
    ------
    InputError, LedgerError
        The place is none, or cannot be used.
    """

    def __init__(self, place: str, metrics: Metrics) -> None:
        self.database: Database = database_at(place)
        self.registry, self.tokens = Registry(self.database), Tokens(self.database)
        self.workers, self.metrics = Workers(), metrics
        self._is_loaded = False

    def get_ready(self) -> None:
        """Begin to load what the first step needs, which takes a second or two, while the page can be asked for."""
        self.workers.begin(self._load)

    @property
    def is_loaded(self) -> bool:
        """Whether the first step need not wait for that."""
        return self._is_loaded

    def _load(self) -> None:
        load_for_first_step()
        self._is_loaded = True

    def require_answer(self) -> None:
        """`LedgerError` if the database does not answer."""
        with needing("ledger"):
            import sqlalchemy as sa

        with self.database.asking() as connection:
            connection.execute(sa.text("SELECT 1"))

    def close(self) -> None:
        """Finish what was begun, and let go of the database."""
        self.workers.close()
        self.database.close()
