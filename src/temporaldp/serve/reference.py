"""The description of everything that can be asked for, as one page that fetches nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from temporaldp.extras import needing
from temporaldp.serve.messages import Problem

with needing("serve"):
    from fastapi import APIRouter, Request
    from fastapi.responses import HTMLResponse, Response

router = APIRouter(include_in_schema=False)


@router.get("/docs", response_class=HTMLResponse)
def docs(request: Request) -> Any:
    """The page."""
    with needing("report"):
        from jinja2 import Environment, PackageLoader

    page = Environment(loader=PackageLoader("temporaldp.serve", "."), autoescape=True).get_template("reference.html.j2")
    return page.render(description=request.app.openapi(), problem=Problem.model_json_schema())


@router.get("/docs/style.css")
def style() -> Response:
    """Its style."""
    from importlib.resources import files

    return Response((files("temporaldp.serve") / "reference.css").read_bytes(), media_type="text/css")
