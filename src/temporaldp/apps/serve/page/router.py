"""Routes of the page, its files, and its questions.

These addresses belong to the page and may change with it; they are not part of the interface for programs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import TypeAdapter

from temporaldp.apps.serve.access import PageRoute
from temporaldp.apps.serve.page import assets
from temporaldp.apps.serve.page.questions import QUESTIONS, ConstantQuestion, LeakageQuestion, correlation_of

router = APIRouter(include_in_schema=False, route_class=PageRoute)


@router.get("/", response_class=HTMLResponse)
async def page(request: Request) -> str:
    """Return the page, and start the worker."""
    request.app.state.quick.start()
    return assets.front()


@router.get("/page/{name}")
def file(name: str) -> Response:
    """One of the page's files."""
    if name not in assets.MEDIA_TYPES:
        raise HTTPException(404, "There is no such file")
    return Response(assets.text(name), media_type=assets.MEDIA_TYPES[name])


@router.get("/v1/view/alone", response_class=HTMLResponse)
def page_alone() -> str:
    """The page as one file, into which a browser inserts its contents."""
    return assets.alone()


@router.post("/v1/view/correlation")
async def correlation(request: Request, kind: Literal["traces", "matrix"]) -> Response:
    """Matrices from an upload."""
    roles = {name: request.query_params[name] for name in ("user", "time", "state") if name in request.query_params}
    question = correlation_of, await request.body(), kind, roles
    return _answered(await request.app.state.worker.answer(*question, is_gone=request.is_disconnected))


def _answered(answer: Any) -> Response:
    """The response with an answer as JSON, which has no infinity: null stands for it."""
    return Response(TypeAdapter(Any).dump_json(answer, fallback=np.ndarray.tolist), media_type="application/json")


def _computed(kind: Any) -> Callable[..., Any]:
    """Return what answers one kind of question."""

    async def computed(request: Request, question: Any) -> Response:
        state = request.app.state
        worker = state.quick if kind in (LeakageQuestion, ConstantQuestion) else state.worker
        return _answered(await worker.answer(kind.answer, question, is_gone=request.is_disconnected))

    computed.__annotations__["question"] = kind
    return computed


for _path, _kind in QUESTIONS.items():
    router.post(f"/v1/view/{_path}")(_computed(_kind))
