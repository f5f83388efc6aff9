"""The application: what is asked for under which address, and what every answer has in common."""

from __future__ import annotations

from fastapi import FastAPI

from temporaldp.serve import failures, health, reference
from temporaldp.serve.bodies import BodyLimits
from temporaldp.serve.origins import OriginChecks
from temporaldp.serve.page.router import page_router
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
    app.include_router(page_router())
    app.add_middleware(BodyLimits)
    app.add_middleware(OriginChecks, hosts=known.hosts)
    return app
