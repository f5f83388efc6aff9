"""Tokens: permissions on releases.

A token is a name and a secret of 256 random bits. The database stores the name and the SHA-256 of the secret; a fast hash
suffices, as 256 bits cannot be searched. Names are looked up, secrets compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from temporaldp.base.errors import InputError
from temporaldp.base.names import printable
from temporaldp.base.values import real_number
from temporaldp.publish.release.database import Database, Store
from temporaldp.publish.release.tables import selection, tables

if TYPE_CHECKING:
    import sqlalchemy as sa


class Role(StrEnum):
    """Permission of a token; each role includes those before it."""

    READ = "read"
    PUBLISH = "publish"
    OWN = "own"

    def includes(self, other: Role) -> bool:
        """Whether a token of this role may do what one of the other may."""
        return list(Role).index(self) >= list(Role).index(other)


class TokenRefusedError(Exception):
    """A token that gives no access; the message gives the reason."""


class Tokens:
    """The tokens of a database.

    Parameters
    ----------
    database : Database
    clock : callable, optional
        Seconds since 1970. If it is set back, the latest time seen is used.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database, self._clock, self._latest = database, clock, 0.0

    def make(self, *, release: str | None, role: Role, days: float, note: str = "") -> str:
        """Create a token. It is returned once, and cannot be retrieved later.

        Raises
        ------
        InputError
            There is no such release, the note has control characters, or the token would expire at once or in over ten years.
        """
        real_number(days, "number of days of a token", gt=0.0, le=3650.0)
        if release is not None and Store(self._database, release, is_shared=True).heading() is None:
            raise InputError(f"there is no release {release!r} in {self._database.place}")
        name, secret, now = secrets.token_hex(8), secrets.token_urlsafe(32), self._now()
        with self._database.writing() as connection:
            connection.execute(
                tables()
                .tokens.insert()
                .values(
                    token=name,
                    release=release,
                    role=role,
                    hash=_hash(secret),
                    made=now,
                    expires=now + days * 86_400.0,
                    revoked=False,
                    note=printable(note, "note"),
                )
            )
        return f"tdp_{name}_{secret}"

    def known(self) -> list[dict[str, Any]]:
        """All tokens, the newest last: the columns of their table except for the hash."""
        tokens = tables().tokens
        shown = tokens.select().with_only_columns(*(column for column in tokens.c if column.name != "hash"))
        with self._database.reading() as connection:
            return [dict(row) for row in connection.execute(shown.order_by(tokens.c.made)).mappings()]

    def revoke(self, name: str) -> None:
        """Revoke a token; `InputError` if there is none of this name."""
        tokens = tables().tokens
        with self._database.writing() as connection:
            done = connection.execute(tokens.update().where(tokens.c.token == name).values(revoked=True))
            if done.rowcount != 1:
                raise InputError(f"there is no token {name!r}; `temporaldp token list` shows their names")

    def check(self, given: str) -> sa.Row[Any]:
        """Return the row of the token of a request.

        Raises
        ------
        TokenRefusedError
            The token is unknown, revoked or expired.
        """
        shape = re.fullmatch("tdp_([0-9a-f]{16})_([0-9A-Za-z_-]{43})", given)
        if shape is None:
            raise TokenRefusedError("expected a token of this service")
        with self._database.asking() as connection:
            row = connection.execute(selection(tables().tokens, "token"), {"token": shape[1]}).first()
        kept = "0" * 64 if row is None else row.hash
        if not hmac.compare_digest(_hash(shape[2]), kept) or row is None:
            raise TokenRefusedError("expected a token of this service")
        now = self._now()
        if row.revoked:
            raise TokenRefusedError("this token was revoked")
        if now >= row.expires:
            raise TokenRefusedError("this token has expired")
        if now < row.made - 300.0:  # seconds by which the clock of the machine that made it may be ahead
            raise TokenRefusedError("the server's clock is before the time at which this token was made")
        return row

    def _now(self) -> float:
        self._latest = max(self._latest, self._clock())
        return self._latest


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("ascii")).hexdigest()
