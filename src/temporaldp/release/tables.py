"""A ledger's two tables, and what can be done with them inside a transaction."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from temporaldp.errors import LedgerError
from temporaldp.release.chain import LedgerRow

if TYPE_CHECKING:
    import sqlalchemy as sa


@lru_cache(maxsize=1)
def tables() -> tuple[sa.Table, sa.Table]:
    """One row that says what the ledger is for and where its chain ends, and one row a step."""
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
        sa.Column("parameter", sa.Double, nullable=False),
        sa.Column("epsilon", sa.Double, nullable=False),
        sa.Column("leakage", sa.Double),
        sa.Column("last", sa.Boolean, nullable=False),
        sa.Column("output", sa.Text),
        sa.Column("hash", sa.Text, nullable=False),
    )
    return heading, steps


class Transaction:
    """What can be done inside one."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def make(self, configuration: str, head: str) -> None:
        """The tables, and the heading of an empty ledger, unless there is one."""
        heading, _ = tables()
        heading.metadata.create_all(self._connection)
        if self.heading() is None:
            self._connection.execute(heading.insert().values(id=1, configuration=configuration, n_steps=0, head=head))

    def remake(self, configuration: str, head: str) -> None:
        """Another heading for a ledger without steps."""
        self._connection.execute(tables()[0].update().values(configuration=configuration, n_steps=0, head=head))

    def heading(self) -> tuple[str, int, str] | None:
        """The configuration, the number of steps and the head of the chain; None if that row is missing."""
        heading, _ = tables()
        found = self._connection.execute(heading.select()).first()
        return None if found is None else (found.configuration, found.n_steps, found.head)

    def rows(self, start: int = 0) -> list[LedgerRow]:
        """The rows from step `start` on, in order."""
        _, steps = tables()
        chosen = steps.select().where(steps.c.step >= start).order_by(steps.c.step)
        return [
            LedgerRow(r.step, r.time, r.parameter, r.epsilon, r.leakage, bool(r.last), r.output, r.hash)
            for r in self._connection.execute(chosen)
        ]

    def append(self, row: LedgerRow) -> None:
        """Add a row and move the head to it; what was written must read as it was meant.

        Raises
        ------
        LedgerError
            The database keeps something else than it was given.
        """
        heading, steps = tables()
        values = {name: getattr(row, name) for name in LedgerRow.__slots__}
        self._connection.execute(steps.insert().values(**values))
        self._connection.execute(heading.update().values(n_steps=row.step + 1, head=row.hash))
        if self.rows(row.step) != [row]:
            raise LedgerError(
                "the database does not give back what was stored, so that the step could not be checked later"
            )
