"""The application: what is asked for under which address, and what every answer has in common."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse

from temporaldp.serve import failures, health, reference
from temporaldp.serve.bodies import BodyLimits
from temporaldp.serve.origins import OriginChecks
from temporaldp.serve.settings import Settings

SUMMARY = "Measure and bound what a continual release gives away, and keep releases below a level."


def create_app(settings: Settings | None = None) -> FastAPI:
    """The application of a server.

    Parameters
    ----------
    settings : Settings, optional
        Default: no store, for this machine alone.
    """
    known = settings or Settings()
    app = FastAPI(title="temporaldp", summary=SUMMARY, version="1", docs_url=None, redoc_url=None)
    failures.install(app)
    app.include_router(health.router)
    app.include_router(reference.router)
    # ---- The page. Where `temporaldp.serve.page` exists, its router takes the place of `_plain_front`, also for "/". ----
    app.include_router(_plain_front())
    # ---- End of the page. ----
    app.add_middleware(BodyLimits)
    app.add_middleware(OriginChecks, hosts=known.hosts)
    return app


def _plain_front() -> APIRouter:
    router = APIRouter()

    @router.get("/", include_in_schema=False, response_class=HTMLResponse)
    def front() -> Any:
        return '<!doctype html><html lang="en"><title>temporaldp</title><p><a href="/docs">What can be asked for</a></html>'

    return router
