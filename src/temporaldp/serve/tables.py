"""The tables of a service: many releases in one database, what is kept beside them, and tokens."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from temporaldp.extras import needing
from temporaldp.release.chain import LedgerRow

if TYPE_CHECKING:
    import sqlalchemy as sa


class Tables(NamedTuple):
    """One row a release, a step, a private thing of a release, a token; and one that says which format this is."""

    service: sa.Table
    releases: sa.Table
    steps: sa.Table
    private: sa.Table
    tokens: sa.Table


@lru_cache(maxsize=1)
def tables() -> Tables:
    """The tables of a service. `releases` and `steps` are a ledger's, with the release's name in every row."""
    with needing("ledger"):
        import sqlalchemy as sa

    metadata = sa.MetaData()

    def text(name: str, *, key: bool = False, nullable: bool = False, unique: bool = False) -> sa.Column[str]:
        return sa.Column(name, sa.Text, primary_key=key, nullable=nullable, unique=unique)

    service = sa.Table(
        "temporaldp_service",
        metadata,
        sa.Column("id", sa.Integer, sa.CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
        text("format"),
    )
    releases = sa.Table(
        "temporaldp_releases",
        metadata,
        text("release", key=True),
        text("configuration"),
        sa.Column("n_steps", sa.Integer, nullable=False),
        text("head"),
        text("request_key", nullable=True, unique=True),
    )
    steps = sa.Table(
        "temporaldp_release_steps",
        metadata,
        text("release", key=True),
        sa.Column("step", sa.Integer, primary_key=True, autoincrement=False),
        text("time"),
        sa.Column("parameter", sa.Double, nullable=False),
        sa.Column("epsilon", sa.Double, nullable=False),
        sa.Column("leakage", sa.Double),
        sa.Column("last", sa.Boolean, nullable=False),
        text("output", nullable=True),
        text("digest", nullable=True),
        text("hash"),
        text("request_key", nullable=True),
        sa.UniqueConstraint("release", "time"),
        sa.UniqueConstraint("release", "request_key"),
    )
    private = sa.Table(
        "temporaldp_release_private",
        metadata,
        text("release", key=True),
        text("name", key=True),
        text("content"),
    )
    tokens = sa.Table(
        "temporaldp_tokens",
        metadata,
        text("token", key=True),
        text("release", nullable=True),
        text("role"),
        text("hash"),
        sa.Column("made", sa.Double, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
        sa.Column("revoked", sa.Boolean, nullable=False),
        text("note"),
    )
    return Tables(service, releases, steps, private, tokens)


class Statements(NamedTuple):
    """What a step asks the database, made once: the parameters are given when it is executed."""

    heading: Any
    locked_heading: Any
    step_of_key: Any
    append: Any
    move_head: Any
    private: Any
    token: Any


@lru_cache(maxsize=1)
def statements() -> Statements:
    """The statements of a step.

    Parameters are `of` (the release), `key`, the fields of a step, `after` (the head that the chain had), `name` (of a token).
    """
    with needing("ledger"):
        import sqlalchemy as sa

    made = tables()
    r, s = made.releases.c, made.steps
    of: sa.BindParameter[str] = sa.bindparam("of")
    heading = sa.select(r.configuration, r.n_steps, r.head).where(r.release == of)
    fields = [s.c[field] for field in LedgerRow._fields]
    moved = made.releases.update().where(r.release == of, r.head == sa.bindparam("after"))
    return Statements(
        heading,
        heading.with_for_update(),
        sa.select(s.c.step).where(s.c.release == of, s.c.request_key == sa.bindparam("key")),
        s.insert().values({c.name: sa.bindparam(c.name) for c in s.c}).returning(*fields),
        moved.values(n_steps=sa.bindparam("to_steps"), head=sa.bindparam("to_head")),
        sa.select(made.private.c.name, made.private.c.content).where(made.private.c.release == of),
        made.tokens.select().where(made.tokens.c.token == sa.bindparam("name")),
    )
