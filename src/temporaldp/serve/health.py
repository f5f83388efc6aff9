"""Whether the server lives, whether it can serve, and its numbers."""

from __future__ import annotations

from temporaldp.errors import LedgerError
from temporaldp.extras import needing
from temporaldp.serve.access import service_of
from temporaldp.serve.messages import Problem

with needing("serve"):
    from fastapi import APIRouter, HTTPException, Request, Response
    from fastapi.responses import PlainTextResponse

router = APIRouter(tags=["operation"])


@router.get("/health")
async def health() -> dict[str, str]:
    """The process answers."""
    return {"status": "alive"}


@router.get("/ready", responses={503: {"model": Problem, "description": "Not now."}})
async def ready(request: Request) -> dict[str, str]:
    """It can do what it is asked for: its database answers, and it is not being started or stopped."""
    state = request.app.state
    if state.stopping:
        raise HTTPException(503, "the server is being stopped")
    if state.service is not None:
        service = service_of(request)
        if not service.is_loaded:
            raise HTTPException(503, "the server is being started")
        try:
            await service.workers.quickly(service.require_answer)
        except LedgerError:
            raise HTTPException(503, "the database does not answer") from None
    return {"status": "ready"}


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Counters and durations as Prometheus reads them."""
    state = request.app.state
    state.metrics.open_releases.set(0 if state.service is None else state.service.registry.n_open)
    return PlainTextResponse(state.metrics.text(), media_type="text/plain; version=0.0.4")
