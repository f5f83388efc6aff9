"""The releases of a database: created once, opened when they are asked for, and kept open while they are used."""

from __future__ import annotations

import json
import secrets
import threading
from collections import OrderedDict

from temporaldp.errors import LedgerChangedError
from temporaldp.extras import needing
from temporaldp.release.database import Database
from temporaldp.release.store import Store
from temporaldp.release.tables import tables
from temporaldp.serve.definition import Definition, proved
from temporaldp.serve.served_release import RepeatedDifferentlyError, ServedRelease

MOST_OPEN = 10_000
"""Releases that are kept open, some 15 kB each; the one that was asked for longest ago goes first."""

MOST_STEPS_OPEN = 400_000
"""Steps that they have together, each some hundred bytes."""


class Registry:
    """The releases of a database.

    Two threads may come to hold two objects of one release, when it was put away and opened again: as if they were two servers,
    which the database keeps apart.
    """

    def __init__(self, database: Database, *, most_open: int = MOST_OPEN, most_steps: int = MOST_STEPS_OPEN) -> None:
        self._database, self._most_open, self._most_steps = database, most_open, most_steps
        self._open: OrderedDict[str, ServedRelease] = OrderedDict()
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}

    @property
    def n_open(self) -> int:
        """Releases that are open."""
        return len(self._open)

    def create(self, definition: Definition, request_key: str | None) -> tuple[str, ServedRelease, bool]:
        """A new release, its identifier, and whether the request was answered before.

        Raises
        ------
        RepeatedDifferentlyError
            The key was used to create another release.
        """
        if request_key is not None:
            known = self._created_by(request_key)
            if known is not None:
                return known, self._same(known, definition), True
        reserve = proved(definition.promise, None).reserve
        release = secrets.token_hex(16)
        opened = ServedRelease(self.store(release), definition, reserve, request_key)
        self._keep(release, opened)
        return release, opened, False

    def find(self, release: str) -> ServedRelease | None:
        """A release; None if there is none."""
        with self._lock:
            known = self._open.get(release)
            if known is not None:
                self._open.move_to_end(release)
                return known
            opening = self._opening.setdefault(release, threading.Lock())
        try:
            with opening:
                known = self._open.get(release)
                if known is not None:
                    return known
                store = self.store(release)
                heading = store.heading()
                if heading is None:
                    return None
                definition = definition_of(heading.definition, store.place)
                try:
                    reserve = float(json.loads(heading.configuration)["every_step"])
                except (ValueError, KeyError, TypeError):
                    raise LedgerChangedError(store.place, "what it is for was changed") from None
                opened = ServedRelease(store, definition, reserve)
                self._keep(release, opened)
                return opened
        finally:
            with self._lock:
                self._opening.pop(release, None)

    def known(self, after: str, limit: int) -> list[tuple[str, Definition, int, str]]:
        """Identifier, definition, number of steps and head of releases after this identifier, in order."""
        releases = tables().releases
        asked = releases.select().where(releases.c.definition.is_not(None), releases.c.release > after)
        with self._database.asking() as connection:
            found = connection.execute(asked.order_by(releases.c.release).limit(limit)).all()
        return [(r.release, definition_of(r.definition, r.release), r.n_steps, r.head) for r in found]

    def store(self, release: str) -> Store:
        """A store of a release, apart from that of the open one."""
        return Store(self._database, release, is_shared=True)

    def _keep(self, release: str, opened: ServedRelease) -> None:
        with self._lock:
            self._open[release] = opened
            n_steps = sum(map(len, self._open.values())) if len(self._open) % 16 == 0 else 0
            while len(self._open) > 1 and (len(self._open) > self._most_open or n_steps > self._most_steps):
                _, closed = self._open.popitem(last=False)
                n_steps -= len(closed)

    def _created_by(self, request_key: str) -> str | None:
        with needing("ledger"):
            import sqlalchemy as sa

        c = tables().releases.c
        with self._database.asking() as connection:
            found: str | None = connection.execute(sa.select(c.release).where(c.request_key == request_key)).scalar()
            return found

    def _same(self, release: str, definition: Definition) -> ServedRelease:
        found = self.find(release)
        if found is None or found.definition != definition:
            raise RepeatedDifferentlyError(
                "this key was used to create another release; nothing was created. Repeat a request as it was, or give a new "
                "one a key of its own"
            )
        return found


def definition_of(text: str | None, place: str) -> Definition:
    """What a release was created with, as it is stored; `LedgerChangedError` where it is nothing of the kind."""
    try:
        return Definition.model_validate_json(text or "")
    except ValueError:
        raise LedgerChangedError(place, "what it was created with was changed") from None
