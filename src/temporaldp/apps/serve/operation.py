"""Routes of every server: health, readiness, metrics, and the description of the interface."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse
from prometheus_client import generate_latest

from temporaldp.apps.serve.failures import refusals
from temporaldp.apps.serve.messages import Problem
from temporaldp.apps.serve.page import assets
from temporaldp.apps.serve.service import require_writable
from temporaldp.publish.report.page import template

router = APIRouter(tags=["operation"])


@router.get("/health")
async def health() -> dict[str, str]:
    """Report that the process is alive."""
    return {"status": "alive"}


@router.get("/ready", responses=refusals(503))
async def ready(request: Request) -> dict[str, str]:
    """Report that the database answers, and that steps can be written to it."""
    service = request.app.state.service
    if service is not None:
        await service.run(lambda: require_writable(service.database), service.quick)
    return {"status": "ready"}


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Counters and durations in the format of Prometheus."""
    state = request.app.state
    state.metrics.open_releases.set(0 if state.service is None else len(state.service.open))
    return PlainTextResponse(generate_latest(state.metrics.registry), media_type="text/plain; version=0.0.4")


@router.get("/docs", response_class=HTMLResponse, include_in_schema=False)
def docs(request: Request) -> str:
    """Return the page of the API documentation."""
    page = template("apps/serve/page/reference.html.j2")
    return str(page.render(description=request.app.openapi(), problem=Problem.model_json_schema()))


@router.get("/docs/style.css", include_in_schema=False)
def style() -> Response:
    """Return the style sheet of that page."""
    return Response(assets.text("reference.css"), media_type="text/css")
