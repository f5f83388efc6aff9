"""The tables of releases, and operations on a release within a transaction.

The schema is the same in the file of a ledger, in PostgreSQL and for a service. A ledger is the release called `LEDGER`.
"""

from __future__ import annotations

from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from temporaldp.base.errors import LedgerError
from temporaldp.base.extras import needing
from temporaldp.publish.release.chain import LEDGER, LedgerEvent, LedgerRow
from temporaldp.publish.release.key_and_marks import key_file, keyed_digest, matches

if TYPE_CHECKING:
    import sqlalchemy as sa


class Tables(NamedTuple):
    """Tables with one row per release, step, event, text stored beside a release, and token."""

    releases: sa.Table
    steps: sa.Table
    events: sa.Table
    kept: sa.Table
    tokens: sa.Table


def sqlalchemy() -> Any:
    """The library, which is loaded on first use; `MissingExtraError` without it."""
    with needing("ledger"):
        import sqlalchemy

    return sqlalchemy


@cache
def tables() -> Tables:
    """The tables; columns of steps and events are in the order of the fields of `LedgerRow` and `LedgerEvent`."""
    sql = sqlalchemy()
    metadata = sql.MetaData()
    column = partial(sql.Column, type_=sql.Text, autoincrement=False, nullable=False)
    return Tables(
        releases=sql.Table(
            "temporaldp_releases",
            metadata,
            column("release", primary_key=True),
            column("configuration"),
            column("n_steps", type_=sql.Integer),
            column("head"),
            column("mac", nullable=True),
            column("definition", nullable=True),
        ),
        steps=sql.Table(
            "temporaldp_steps",
            metadata,
            column("release", primary_key=True),
            column("step", type_=sql.Integer, primary_key=True),
            column("time"),
            column("parameter", type_=sql.Double),
            column("epsilon", type_=sql.Double),
            column("leakage", type_=sql.Double, nullable=True),
            column("last", type_=sql.Boolean),
            column("output", nullable=True),
            column("digest", nullable=True),
            column("request_key", nullable=True),
            column("hash"),
            sql.UniqueConstraint("release", "time"),
            sql.UniqueConstraint("release", "request_key"),
        ),
        events=sql.Table(
            "temporaldp_events",
            metadata,
            column("release", primary_key=True),
            column("number", type_=sql.Integer, primary_key=True),
            column("step", type_=sql.Integer),
            *map(column, ("kind", "at", "by", "content", "hash")),
        ),
        kept=sql.Table(
            "temporaldp_kept",
            metadata,
            column("release", primary_key=True),
            column("name", primary_key=True),
            column("content"),
        ),
        tokens=sql.Table(
            "temporaldp_tokens",
            metadata,
            column("token", primary_key=True),
            column("release", nullable=True),
            column("role"),
            column("hash"),
            column("made", type_=sql.Double),
            column("expires", type_=sql.Double),
            column("revoked", type_=sql.Boolean),
            column("note"),
        ),
    )


@cache
def selection(table: sa.Table, *names: str) -> sa.Select[Any]:
    """Selection of the rows with given values of these columns. Built once: building takes as long as running it."""
    return table.select().where(*(table.c[name] == sqlalchemy().bindparam(name) for name in names))


@cache
def addition(table: sa.Table) -> tuple[sa.Insert, sa.Update]:
    """Insertion of an entry that returns its stored values, and the update that moves the head of its release to it."""
    releases, named = tables().releases, sqlalchemy().bindparam
    return (
        table.insert().returning(*list(table.c)[1:]),
        releases.update().where(releases.c.release == named("of"), releases.c.head == named("after")),
    )


class Transaction:
    """Operations on a release within a transaction.

    Parameters
    ----------
    connection : sa.Connection
    release : str
    lock : bool
        Whether to lock the row of the release until the transaction ends (SQLite locks the whole file).

    Attributes
    ----------
    heading : sa.Row or None
        Row of the release in the table of releases, as of the beginning of the transaction; None if there is none.
    signs : bool
        Whether the next head gets a MAC although the previous one has none of this machine's key.
    """

    def __init__(self, connection: sa.Connection, release: str, *, lock: bool) -> None:
        self.connection, self._release, self.signs = connection, release, False
        asked = selection(tables().releases, "release")
        self.heading = connection.execute(asked.with_for_update() if lock else asked, {"release": release}).first()

    @cached_property
    def is_authentic(self) -> bool | None:
        """Whether the MAC of the head is right; None without a MAC of this machine's key."""
        return None if self.heading is None else matches(self.heading.mac, "head", [self._release, self.heading.head])

    def _mac(self, head: str) -> str | None:
        """MAC of the next head; None without a key, and where the previous head has no MAC of it: this stays visible.

        Raises
        ------
        LedgerError
            The previous head of a ledger has the MAC of another key, so the next one would end its authentication; or
            there is a key that cannot be used.
        """
        made = keyed_digest("head", [self._release, head])
        if self.signs or self.heading is None or self.is_authentic:
            return made
        if self.heading.mac is not None and self._release == LEDGER:
            raise LedgerError(
                f"the head of the ledger was authenticated with another key than that of this machine (TEMPORALDP_KEY_FILE, "
                f"now {key_file()}), and an entry without that key would end its authentication; nothing was stored. Use the "
                "key of the ledger; if it is lost, check the ledger against a noted head and sign it with the key of this "
                "machine: `temporaldp ledger verify LEDGER --head HEAD --sign`"
            )
        return None

    def create(self, configuration: str, head: str, definition: str | None) -> None:
        """Add the heading of a release without steps, unless there is one."""
        if self.heading is None:
            self.connection.execute(
                tables()
                .releases.insert()
                .values(
                    release=self._release,
                    configuration=configuration,
                    n_steps=0,
                    head=head,
                    mac=self._mac(head),
                    definition=definition,
                )
            )

    def discard(self) -> bool:
        """Delete the rows of a release without steps; whether there are none of the release then."""
        if self.heading is not None and self.heading.n_steps:
            return False
        for table in (tables().events, tables().kept, tables().releases):
            self.connection.execute(table.delete().where(table.c.release == self._release))
        return True

    def remake(self, configuration: str, head: str) -> None:
        """Replace the heading of a ledger without steps, and delete its events."""
        events, releases = tables().events, tables().releases
        self.connection.execute(events.delete().where(events.c.release == self._release))
        changed = releases.update().where(releases.c.release == self._release)
        self.connection.execute(changed.values(configuration=configuration, n_steps=0, head=head, mac=self._mac(head)))

    def rows(self, start: int = 0, end: int | None = None) -> list[LedgerRow]:
        """The rows of steps ``start:end``, in order; from 0 on also rows with negative numbers, which reveal a change."""
        found, make = self._read(tables().steps, "step", start, end), tuple.__new__
        # SQLite has no booleans; anything but 0 and 1 was not written by this package, and stays what it is
        flags = {0: False, 1: True}
        return [make(LedgerRow, (*row[1:6], flags.get(row[6], row[6]), *row[7:])) for row in found]

    def events(self, start: int = 0) -> list[LedgerEvent]:
        """The events from number `start` on, in order."""
        make = tuple.__new__
        return [make(LedgerEvent, row[1:]) for row in self._read(tables().events, "number", start, None)]

    def _read(self, table: sa.Table, position: str, start: int, end: int | None) -> list[tuple[Any, ...]]:
        """Rows of the database's own: not SQLAlchemy's, as there may be half a million."""
        at = table.c[position]
        chosen = table.select().where(table.c.release == self._release).order_by(at)
        if start:
            chosen = chosen.where(at >= start)
        if end is not None:
            chosen = chosen.where(at < end)
        with self.connection.execute(chosen) as result:
            cursor: Any = result.cursor
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def kept(self, name: str) -> str | None:
        """Return the text stored beside the release under this name; None if there is none."""
        asked = selection(tables().kept, "release", "name")
        found = self.connection.execute(asked, {"release": self._release, "name": name}).first()
        return None if found is None else str(found.content)

    def keep(self, name: str, content: str) -> None:
        """Store a text beside the release, outside of its chain: matrices, a checkpoint."""
        beside = tables().kept
        before = beside.delete().where(beside.c.release == self._release, beside.c.name == name)
        self.connection.execute(before)
        self.connection.execute(beside.insert().values(release=self._release, name=name, content=content))

    def append(self, entry: LedgerRow | LedgerEvent, *, after: str, n_steps: int) -> None:
        """Add a row or an event, and move the head to it; the written row is read back and compared.

        Raises
        ------
        LedgerError
            The database does not return the row as written, or another process wrote without the lock.
        """
        insertion, move = addition(tables().steps if isinstance(entry, LedgerRow) else tables().events)
        stored = self.connection.execute(insertion, {"release": self._release, **entry._asdict()}).one()
        end = {
            "of": self._release,
            "after": after,
            "n_steps": n_steps,
            "head": entry.hash,
            "mac": self._mac(entry.hash),
        }
        if self.connection.execute(move, end).rowcount != 1:
            raise LedgerError("another process wrote without the lock of the release; nothing was stored here")
        if tuple(stored) != tuple(entry):
            raise LedgerError("the database does not return what was stored, so the step could not be checked later")
