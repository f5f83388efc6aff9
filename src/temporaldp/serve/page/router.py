"""Where the page is, its files, and what it asks of the server.

These addresses are the page's own: they may change with it, and are no part of the interface for programs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from temporaldp.extras import needing
from temporaldp.serve.bodies import BoundedRoute
from temporaldp.serve.page import assets
from temporaldp.serve.page.questions import (
    DeltaQuestion,
    NoiseQuestion,
    PlanQuestion,
    Question,
    SupremumQuestion,
    correlation_of,
)
from temporaldp.serve.page.worker import Worker

with needing("serve"):
    from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
    from fastapi.responses import HTMLResponse


def page_router() -> APIRouter:
    """The routes of the page, with a worker of their own that ends with the application."""
    worker = Worker()

    @asynccontextmanager
    async def ending(_: FastAPI) -> AsyncIterator[None]:
        yield
        await worker.stop()

    router = APIRouter(include_in_schema=False, lifespan=ending, route_class=BoundedRoute)

    @router.get("/", response_class=HTMLResponse)
    def page() -> str:
        """The page."""
        return assets.front()

    @router.get("/page/{name}")
    def file(name: str) -> Response:
        """One of its files."""
        if name not in assets.FILES:
            raise HTTPException(404, "There is no such file")
        return Response(assets.text(name), media_type=assets.MEDIA_TYPES[name.rpartition(".")[2]])

    @router.get("/v1/view/alone", response_class=HTMLResponse)
    def page_alone() -> str:
        """The page as one file, into which a browser writes what it shows."""
        return assets.alone()

    async def answered(request: Request, function: Callable[..., Any], *arguments: Any) -> Any:
        async def wanted() -> bool:
            return not await request.is_disconnected()

        return await worker.answer(function, *arguments, wanted=wanted)

    @router.post("/v1/view/correlation")
    async def correlation(request: Request, kind: Literal["traces", "matrix"]) -> Any:
        """Matrices from an upload."""
        return await answered(request, correlation_of, await request.body(), kind)

    def ask(path: str, kind: type[Question]) -> None:
        """Answer one kind of question."""

        async def computed(request: Request, question: Any) -> Any:
            return await answered(request, kind.answer, question)

        computed.__annotations__ = {"request": Request, "question": kind, "return": Any}
        router.post(path)(computed)

    ask("/v1/view/supremum", SupremumQuestion)
    ask("/v1/view/plan", PlanQuestion)
    ask("/v1/view/delta", DeltaQuestion)
    ask("/v1/view/noise", NoiseQuestion)
    return router
