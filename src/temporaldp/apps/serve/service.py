"""The releases of a database, opened on request and cached."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, to_thread
from starlette.exceptions import HTTPException

from temporaldp.apps.serve.definition import Definition, reserve_of
from temporaldp.apps.serve.failures import BusyError
from temporaldp.apps.serve.messages import Created, Listed
from temporaldp.apps.serve.served_release import RepeatedDifferentlyError, ServedRelease
from temporaldp.apps.serve.tokens import Tokens
from temporaldp.base.errors import LedgerChangedError, LedgerError, LedgerMismatchError
from temporaldp.core.accounting import TemporalAccountant
from temporaldp.core.correlation import Adversary, TransitionMatrix
from temporaldp.core.planning.histogram_noise import HISTOGRAM_SENSITIVITY
from temporaldp.data.counts.histogram import granted_scale
from temporaldp.publish.release.database import Database, Store, connect
from temporaldp.publish.release.tables import sqlalchemy, tables

Result = TypeVar("Result")


def database_at(place: str | os.PathLike[str], *, make: bool = True) -> Database:
    """Return the database of a service; missing tables are made unless `make` is False.

    Raises
    ------
    InputError
        The place is neither a file nor a URL of PostgreSQL.
    LedgerError
        The database cannot be used, or has other tables.
    """
    database = connect(place, served=True)
    with ExitStack() as after_an_error:
        after_an_error.callback(database.close)
        if not database.exists():
            if not make:
                raise LedgerError(f"there is no database of a service at {database.place}")
            database.make(lambda _: None)
        with database.asking() as connection:
            connection.execute(tables().tokens.select().limit(1))  # there is an answer, and there are the tables
        after_an_error.pop_all()
    return database


def require_writable(database: Database) -> None:
    """Raise `LedgerError` if a step could not be stored: no answer, a read-only database, or a user without the rights."""
    with database.writing() as connection:
        for table in (tables().steps, tables().events):
            nothing = sqlalchemy().select(table).where(sqlalchemy().false())
            connection.execute(table.insert().from_select(table.columns.keys(), nothing))
        connection.execute(tables().releases.update().where(sqlalchemy().false()).values(n_steps=0))


def load_for_first_step() -> None:
    """Load SciPy's optimisers and OpenDP, which takes a second or two, before the first step."""
    chain = TransitionMatrix([[0.6, 0.4], [0.4, 0.6]])
    accountant = TemporalAccountant(Adversary(chain, chain), alpha=1.0)
    accountant.spend(0.5 * accountant.remaining())
    granted_scale(HISTOGRAM_SENSITIVITY, 1.0)


class Service:
    """The releases and tokens of a database, and the threads of requests.

    Two threads may have separate objects of one release, if both open it, or it was evicted and opened again. The database
    serialises them, as it does two servers.

    Parameters
    ----------
    place : str
        An SQLite file or a ``postgresql://`` URL; tables are made if there are none.

    Raises
    ------
    InputError, LedgerError
        The place is not admissible, or cannot be used.
    """

    def __init__(self, place: str) -> None:
        self.database = database_at(place)
        self.tokens = Tokens(self.database)
        self.open: OrderedDict[str, ServedRelease] = OrderedDict()
        self._lock = threading.Lock()
        # Steps wait for the database most of their time. Questions and creations compute, and keep no step waiting.
        self.quick, self.creations, self.questions = CapacityLimiter(12), CapacityLimiter(2), CapacityLimiter(2)
        self.checks = CapacityLimiter(4)  # of tokens, which anybody may send
        self._turns: WeakValueDictionary[str, CapacityLimiter] = WeakValueDictionary()

    async def of(self, release: str, act: Callable[[ServedRelease], Result]) -> Result:
        """Return the result of a step of a release, or of what is read from memory; errors as for `find` and `run`."""
        return await self.run(lambda: act(self.find(release)), self.quick)

    async def ask(self, release: str, act: Callable[[ServedRelease], Result]) -> Result:
        """Return the answer to a question about a release that takes long, of which one at a time is answered."""
        turn = self._turns.setdefault(release, CapacityLimiter(1))
        if turn.statistics().tasks_waiting >= 32:
            raise BusyError
        async with turn:
            return await self.run(lambda: act(self.find(release)), self.questions)

    async def run(self, act: Callable[[], Result], limiter: CapacityLimiter) -> Result:
        """Return the result of an operation, in a thread that outlives a disconnected client. `BusyError` if too many wait."""
        if limiter.statistics().tasks_waiting >= 256:
            raise BusyError
        return await to_thread.run_sync(act, limiter=limiter)

    def create(self, definition: Definition, request_key: str) -> Created:
        """Create a release, whose identifier is a digest of the key; a repeated request finds the one that it created.

        Raises
        ------
        RepeatedDifferentlyError
            The key was used to create another release.
        """
        release = hashlib.sha256(request_key.encode("ascii")).hexdigest()[:32]
        store = Store(self.database, release, is_shared=True)
        if store.heading() is None:
            definition.require_fitting()
            reserve = reserve_of(definition)
            with suppress(LedgerMismatchError):  # of another request, which created it meanwhile
                self._keep(release, ServedRelease(store, definition, reserve))
        found = self.find(release)
        if found.definition != definition:
            raise RepeatedDifferentlyError(
                "this key was used to create another release; nothing was created. Repeat a request as it was, or give a new "
                "one a key of its own"
            )
        return Created(
            release=release,
            alpha=definition.alpha,
            reserve=found.reserve,
            head=found.ledger.began,
            **found.stated,
        )

    def find(self, release: str) -> ServedRelease:
        """Return a release; 404 if there is none."""
        with self._lock:
            if release in self.open:
                self.open.move_to_end(release)
                return self.open[release]
        store = Store(self.database, release, is_shared=True)
        heading = store.heading()
        if heading is None:
            raise HTTPException(404, "there is no such release")
        return self._keep(release, ServedRelease(store, *terms_of(heading, store.place)))

    def known(self, after: str, limit: int) -> list[Listed]:
        """Return releases after this identifier, in order."""
        releases = tables().releases
        asked = releases.select().where(releases.c.definition.is_not(None), releases.c.release > after)
        with self.database.asking() as connection:
            return [
                Listed(release=r.release, name=terms_of(r, r.release)[0].name, n_steps=r.n_steps, head=r.head)
                for r in connection.execute(asked.order_by(releases.c.release).limit(limit))
            ]

    def _keep(self, release: str, opened: ServedRelease) -> ServedRelease:
        """Keep a release open, some 15 kB and some hundred bytes a step; those that were asked for longest ago go first."""
        with self._lock:
            self.open[release] = opened
            n_steps = sum(len(one.ledger) for one in self.open.values()) if len(self.open) % 16 == 0 else 0
            while len(self.open) > 1 and (len(self.open) > 10_000 or n_steps > 400_000):
                _, closed = self.open.popitem(last=False)
                n_steps -= len(closed.ledger)
        return opened


def terms_of(heading: Any, place: str) -> tuple[Definition, float]:
    """Return the stored definition of a release and the reserve of its steps; `LedgerChangedError` if they are invalid."""
    try:
        reserve = float(json.loads(heading.configuration)["every_step"])
        return Definition.model_validate_json(heading.definition or ""), reserve
    except (ValueError, KeyError, TypeError, RecursionError):
        raise LedgerChangedError(place, "its definition was changed") from None
