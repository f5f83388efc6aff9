"""The application: what is asked for under which address, and what every answer has in common."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI

from temporaldp.serve import operation, releases
from temporaldp.serve.access import require_page_token
from temporaldp.serve.failures import HANDLERS
from temporaldp.serve.observed import Metrics, Observed
from temporaldp.serve.page import router as page
from temporaldp.serve.page.worker import Worker
from temporaldp.serve.service import Service
from temporaldp.serve.settings import Settings


def create_app(settings: Settings | None = None) -> FastAPI:
    """Return the application of a server. With a store it opens its database at once, and closes it when it is shut down.

    Parameters
    ----------
    settings : Settings, optional
        Default: no store, for this machine alone.

    Raises
    ------
    InputError, LedgerError
        The store is none, or cannot be used.
    """
    known = settings or Settings()
    service = None if known.store is None else Service(known.store)
    app = FastAPI(
        title="temporaldp",
        summary="Measure and bound what a continual release gives away, and keep releases below a level.",
        version="1",
        docs_url=None,
        redoc_url=None,
        lifespan=_until_stopped,
        exception_handlers=HANDLERS,
    )
    app.state.service, app.state.metrics = service, Metrics()
    app.state.worker, app.state.quick = Worker(), Worker(seconds=20.0, compiles=True)
    app.state.patience, app.state.in_flight = known.patience, Counter()
    app.include_router(operation.router)
    if service is not None:
        app.include_router(releases.router)
    if known.has_page:
        app.include_router(page.router, dependencies=[] if service is None else [Depends(require_page_token)])
    app.add_middleware(Observed, hosts=known.hosts, metrics=app.state.metrics, log=sys.stderr if known.log else None)
    return app


@asynccontextmanager
async def _until_stopped(app: FastAPI) -> AsyncIterator[None]:
    yield
    for worker in (app.state.worker, app.state.quick):
        await worker.stop()
    if app.state.service is not None:
        app.state.service.database.close()
