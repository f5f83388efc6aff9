"""Whether the server lives, whether it can serve, and its numbers."""

from __future__ import annotations

from temporaldp.extras import needing
from temporaldp.serve.failures import refusals
from temporaldp.serve.service import require_answer

with needing("serve"):
    from fastapi import APIRouter, Request, Response
    from fastapi.responses import PlainTextResponse
    from prometheus_client import generate_latest

router = APIRouter(tags=["operation"])


@router.get("/health")
async def health() -> dict[str, str]:
    """The process answers."""
    return {"status": "alive"}


@router.get("/ready", responses=refusals(503))
async def ready(request: Request) -> dict[str, str]:
    """It can do what it is asked for: its database answers."""
    service = request.app.state.service
    if service is not None:
        await service.run(lambda: require_answer(service.database))
    return {"status": "ready"}


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Counters and durations as Prometheus reads them."""
    state = request.app.state
    state.metrics.open_releases.set(0 if state.service is None else len(state.service.open))
    return PlainTextResponse(generate_latest(state.metrics.registry), media_type="text/plain; version=0.0.4")
