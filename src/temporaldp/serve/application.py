"""The application: what is asked for under which address, and what every answer has in common."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporaldp.extras import needing
from temporaldp.serve import failures, health, reference, releases
from temporaldp.serve.access import require_page_token
from temporaldp.serve.bodies import BodyLimits
from temporaldp.serve.metrics import Metrics
from temporaldp.serve.observed import Observed
from temporaldp.serve.origins import OriginChecks
from temporaldp.serve.page.router import page_router
from temporaldp.serve.service import Service
from temporaldp.serve.settings import Settings

with needing("serve"):
    from fastapi import Depends, FastAPI

SUMMARY = "Measure and bound what a continual release gives away, and keep releases below a level."


def create_app(settings: Settings | None = None) -> FastAPI:
    """The application of a server. With a store it opens its database at once, and closes it when it is shut down.

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
    metrics = Metrics()
    service = None if known.store is None else Service(known.store, metrics)
    app = FastAPI(
        title="temporaldp", summary=SUMMARY, version="1", docs_url=None, redoc_url=None, lifespan=_until_stopped
    )
    app.state.service, app.state.metrics, app.state.stopping = service, metrics, False
    failures.install(app)
    app.include_router(health.router)
    app.include_router(reference.router)
    if service is not None:
        app.include_router(releases.router)
    if known.has_page:
        app.include_router(page_router(), dependencies=[] if service is None else [Depends(require_page_token)])
    reference.describe_refusals(app)
    app.add_middleware(BodyLimits, seconds=known.patience, takes_uploads=known.has_page)
    app.add_middleware(OriginChecks, hosts=known.hosts)
    app.add_middleware(Observed, metrics=metrics, log=sys.stderr if known.log else None)
    return app


@asynccontextmanager
async def _until_stopped(app: FastAPI) -> AsyncIterator[None]:
    if app.state.service is not None:
        app.state.service.get_ready()
    yield
    if app.state.service is not None:
        app.state.service.close()
