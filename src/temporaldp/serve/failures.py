"""What an error looks like to who asked: what was expected and what came, and never a stack trace."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from temporaldp.errors import (
    LeakageBudgetError,
    LedgerError,
    PlanError,
    SpentError,
    TemporaldpError,
)
from temporaldp.serve.responses import PROBLEM, problem

SECONDS_TO_RETRY = 1


def install(app: FastAPI) -> None:
    """Answer every error of an application."""
    app.add_exception_handler(TemporaldpError, _of_ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(Exception, _unexpected)


def answer(status: int, title: str, detail: str, headers: dict[str, str] | None = None, **more: Any) -> Response:
    """A problem document."""
    return Response(problem(status, title, detail, **more), status, headers, media_type=PROBLEM)


async def _of_ours(_: Request, error: Exception) -> Response:
    match error:
        case LeakageBudgetError():
            told: dict[str, Any] = {
                "requested": error.requested,
                "remaining": error.largest,
                "alpha": error.alpha,
                "leakage": error.leakage,
            }
            return answer(409, "The budget is refused", str(error), **told)
        case PlanError() | SpentError():
            return answer(409, "The level does not allow it", str(error))
        case LedgerError():
            again = {"Retry-After": str(SECONDS_TO_RETRY)}
            return answer(503, "The ledger cannot be used", "nothing was spent or published; ask again", again)
        case _:
            return answer(422, "The request cannot be used", str(error))


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = [{"where": "/".join(map(str, one["loc"])), "what": one["msg"]} for one in error.errors()]
    detail = "; ".join(f"{one['where']}: {one['what']}" for one in wrong[:3])
    return answer(422, "The request cannot be used", detail, errors=wrong[:20])


async def _of_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return answer(error.status_code, str(error.detail), str(error.detail), dict(error.headers or {}))


async def _unexpected(_: Request, error: Exception) -> Response:
    return answer(
        500, "A fault of the server", "the fault was written to the server's log; what was asked may not have been done"
    )
