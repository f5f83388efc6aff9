"""What a running service consists of."""

from __future__ import annotations

from temporaldp.serve.database import Database, database_at
from temporaldp.serve.metrics import Metrics
from temporaldp.serve.registry import Registry
from temporaldp.serve.tokens import Tokens
from temporaldp.serve.workers import Workers


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

    def require_answer(self) -> None:
        """`LedgerError` if the database does not answer."""
        import sqlalchemy as sa

        with self.database.asking() as connection:
            connection.execute(sa.text("SELECT 1"))

    def close(self) -> None:
        """Finish what was begun, and let go of the database."""
        self.workers.close()
        self.database.close()
