"""The application: its routes and middleware."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware.trustedhost import TrustedHostMiddleware

from temporaldp.apps.serve import operation, releases
from temporaldp.apps.serve.failures import HANDLERS
from temporaldp.apps.serve.observed import Metrics, Observed
from temporaldp.apps.serve.page.router import router as page_router
from temporaldp.apps.serve.page.worker import Worker
from temporaldp.apps.serve.service import Service, load_for_first_step

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
"""Names of this machine that no other machine's name service resolves."""


def create_app(
    store: str | None = None,
    *,
    page: bool = False,
    hosts: tuple[str, ...] = LOCAL_HOSTS,
    log: bool = False,
    patience: float = 10.0,
) -> FastAPI:
    """Return the application of a server. With a store it opens the database at once, and closes it at shutdown.

    Parameters
    ----------
    store : str, optional
        Database of releases: an SQLite file or a ``postgresql://`` URL. Without one there is only the page.
    page : bool
        Whether a service also serves the page, to browsers with a token.
    hosts : tuple of str
        Host names, without ports, of the server. Others are refused, as a protection against DNS rebinding.
    log : bool
        Whether each request is logged as a line of JSON on standard error.
    patience : float
        Seconds to wait for the body of a request.

    Raises
    ------
    InputError, LedgerError
        The store is not admissible, or cannot be used.
    """
    service = None if store is None else Service(store)
    app = FastAPI(
        title="temporaldp",
        summary="Bound what a continual release leaks, and keep releases at or below a level.",
        version="1",
        docs_url=None,
        redoc_url=None,
        lifespan=_until_stopped,
        exception_handlers=HANDLERS,
    )
    app.state.service, app.state.metrics = service, Metrics()
    app.state.worker, app.state.quick = Worker(), Worker(seconds=20.0)
    app.state.patience, app.state.in_flight = patience, Counter()
    app.include_router(operation.router)
    if service is not None:
        app.include_router(releases.router)
    if page or service is None:
        app.include_router(page_router)
    names = [f"[{host}]" if ":" in host else host for host in hosts]
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=names, www_redirect=False)
    app.add_middleware(Observed, metrics=app.state.metrics, log=sys.stderr if log else None)
    return app


@asynccontextmanager
async def _until_stopped(app: FastAPI) -> AsyncIterator[None]:
    loading = None if app.state.service is None else asyncio.create_task(asyncio.to_thread(load_for_first_step))
    yield
    if loading is not None:
        await loading
    for worker in (app.state.worker, app.state.quick):
        await worker.stop()
    if app.state.service is not None:
        app.state.service.database.close()
