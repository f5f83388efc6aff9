"""A ledger's tables, and what can be done with them inside a transaction."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from temporaldp.errors import LedgerError
from temporaldp.extras import needing
from temporaldp.release.chain import LedgerEvent, LedgerRow

if TYPE_CHECKING:
    import sqlalchemy as sa


EVENT_TYPES = (int, int, str, str, str, str, str)
"""Of the fields of an event; SQLite stores whatever it is given."""

FLAGS = {0: False, 1: True}
"""SQLite has no booleans; anything else was not written by this package, and stays what it is."""


class Tables(NamedTuple):
    """One row that says what the ledger is for and where its chain ends; one row a step; one row an event."""

    heading: sa.Table
    steps: sa.Table
    events: sa.Table


@lru_cache(maxsize=1)
def tables() -> Tables:
    """The tables of a ledger; columns stand in the order of the fields of a `LedgerRow` and a `LedgerEvent`."""
    with needing("ledger"):
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
        sa.Column("digest", sa.Text),
        sa.Column("hash", sa.Text, nullable=False),
    )
    events = sa.Table(
        "temporaldp_events",
        metadata,
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    return Tables(heading, steps, events)


class Transaction:
    """What can be done inside one."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection

    def make(self, configuration: str, head: str) -> None:
        """The tables, and the heading of an empty ledger, unless there is one."""
        heading = tables().heading
        heading.metadata.create_all(self.connection)
        if self.heading() is None:
            self.connection.execute(heading.insert().values(id=1, configuration=configuration, n_steps=0, head=head))

    def remake(self, configuration: str, head: str) -> None:
        """Another heading for a ledger without steps, whose events are forgotten."""
        self.connection.execute(tables().events.delete())
        self.connection.execute(tables().heading.update().values(configuration=configuration, n_steps=0, head=head))

    def heading(self) -> tuple[str, int, str] | None:
        """The configuration, the number of steps and the head of the chain; None if that row is missing."""
        found = self.connection.execute(tables().heading.select()).first()
        return None if found is None else (found.configuration, found.n_steps, found.head)

    def rows(self, start: int = 0, end: int | None = None) -> list[LedgerRow]:
        """The rows from step `start` on, up to but without `end`, in order."""
        steps = tables().steps
        chosen = steps.select().where(steps.c.step >= start).order_by(steps.c.step)
        if end is not None:
            chosen = chosen.where(steps.c.step < end)
        make = tuple.__new__
        with self.connection.execute(chosen) as result:
            rows: Any = result.cursor  # not SQLAlchemy's rows, nor `LedgerRow._make`: there may be half a million
            return [
                make(LedgerRow, (step, time, asked, spent, leakage, FLAGS.get(last, last), output, digest, hashed))
                for step, time, asked, spent, leakage, last, output, digest, hashed in rows
            ]

    def events(self, start: int = 0) -> list[LedgerEvent]:
        """The events from number `start` on, in order."""
        events = tables().events
        chosen = events.select().where(events.c.number >= start).order_by(events.c.number)
        make = tuple.__new__
        with self.connection.execute(chosen) as result:
            rows: Any = result.cursor  # as for rows: an account of several tables has one for each table and step
            found = [make(LedgerEvent, row) for row in rows]
        changed = next((event for event in found if tuple(map(type, event)) != EVENT_TYPES), None)
        if changed is not None:
            raise LedgerError(
                f"event {changed[0]!r} of the ledger was changed after it was written: its fields are of other types; restore "
                "the ledger from a backup that holds every published step"
            )
        return found

    def append(self, row: LedgerRow) -> None:
        """Add a row and move the head to it; what was written must read as it was meant.

        Raises
        ------
        LedgerError
            The database keeps something else than it was given.
        """
        values = row._asdict()
        self.connection.execute(tables().steps.insert().values(**values))
        self.connection.execute(tables().heading.update().values(n_steps=row.step + 1, head=row.hash))
        self._require_stored(self.rows(row.step) == [row])

    def append_event(self, event: LedgerEvent) -> None:
        """Add an event and move the head to it. Errors as for `append`."""
        values = event._asdict()
        self.connection.execute(tables().events.insert().values(**values))
        self.connection.execute(tables().heading.update().values(head=event.hash))
        self._require_stored(self.events(event.number) == [event])

    def _require_stored(self, as_meant: bool) -> None:
        if not as_meant:
            raise LedgerError(
                "the database does not give back what was stored, so that the step could not be checked later"
            )
