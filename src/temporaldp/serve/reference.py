"""The description of everything that can be asked for, as one page that fetches nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from temporaldp.extras import needing
from temporaldp.serve.responses import PROBLEM

with needing("serve"):
    from fastapi import APIRouter, FastAPI, Request
    from fastapi.responses import HTMLResponse, Response

router = APIRouter(include_in_schema=False)


def describe_refusals(app: FastAPI) -> None:
    """Have the description say that refusals are problem documents, which FastAPI cannot be told."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        fresh = app.openapi_schema is None
        made = plain()
        if fresh:
            for operation in (one for methods in made["paths"].values() for one in methods.values()):
                for status, answer in operation["responses"].items():
                    content = answer.get("content", {})
                    if int(status) >= 400 and "application/json" in content:
                        content[PROBLEM] = content.pop("application/json")
        return made

    app.openapi = described  # type: ignore[method-assign]


@router.get("/docs", response_class=HTMLResponse)
def docs(request: Request) -> Any:
    """The page."""
    with needing("report"):
        from jinja2 import Environment, PackageLoader

    page = Environment(loader=PackageLoader("temporaldp.serve", "."), autoescape=True).get_template("reference.html.j2")
    return page.render(description=request.app.openapi())


@router.get("/docs/style.css")
def style() -> Response:
    """Its style."""
    from importlib.resources import files

    return Response((files("temporaldp.serve") / "reference.css").read_bytes(), media_type="text/css")
