"""What an error looks like to who asked: what was expected and what came, and never a stack trace."""

from __future__ import annotations

from typing import Any

from temporaldp.errors import (
    LateDataError,
    LedgerChangedError,
    LedgerError,
    LedgerMismatchError,
    PlanError,
    SpentError,
    TemporaldpError,
)
from temporaldp.extras import needing
from temporaldp.serve.responses import PROBLEM, problem
from temporaldp.serve.served_release import RefusedBudgetError, RepeatedDifferentlyError
from temporaldp.serve.workers import BusyError

with needing("serve"):
    from fastapi import FastAPI, Request, Response
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

AGAIN = {"Retry-After": "1"}

UNCERTAIN = (
    "nothing was handed out; a step that was stored all the same is answered to the same request: repeat it as it was, with "
    "its key"
)


def install(app: FastAPI) -> None:
    """Answer every error of an application."""
    app.add_exception_handler(TemporaldpError, _of_ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(BusyError, _busy)


def answer(status: int, title: str, detail: str, headers: dict[str, str] | None = None, **more: Any) -> Response:
    """A problem document."""
    return Response(problem(status, title, detail, **more), status, headers, media_type=PROBLEM)


async def _of_ours(request: Request, error: Exception) -> Response:
    match error:
        case RefusedBudgetError():
            return answer(409, "The budget is refused", str(error), remaining=error.remaining)
        case PlanError() | SpentError():
            return answer(409, "The level does not allow it", str(error))
        case LateDataError() | RepeatedDifferentlyError():
            return answer(409, "It does not fit what was done before", str(error))
        case LedgerChangedError():
            return answer(409, "The ledger was changed", error.problem)
        case LedgerMismatchError():
            return answer(409, "The ledger was changed", "what the release is for is not what it was created with")
        case LedgerError():
            _tell_cause(request, error)
            return answer(503, "The database cannot be used", UNCERTAIN, AGAIN)
        case _:
            return answer(422, "The request cannot be used", str(error))


def _tell_cause(request: Request, error: BaseException) -> None:
    """Say in the log why a database cannot be used: the classes of the errors and the database's code, not what they say."""
    below = error.__context__
    origin = getattr(below, "orig", below)
    code = getattr(origin, "sqlite_errorname", None) or getattr(origin, "sqlstate", None)
    cause = [type(error).__name__, *([] if origin is None else [type(origin).__name__]), *([code] if code else [])]
    request.scope["told"] = request.scope.get("told", {}) | {"cause": " ".join(cause)}


async def _busy(_: Request, error: Exception) -> Response:
    return answer(429, "Too many wait", "nothing was done; ask again", AGAIN)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = [{"where": "/".join(map(str, one["loc"])), "what": one["msg"]} for one in error.errors()]
    detail = "; ".join(f"{one['where']}: {one['what']}" for one in wrong[:3])
    return answer(422, "The request cannot be used", detail, errors=wrong[:20])


async def _of_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error.__context__, LedgerError):
        _tell_cause(request, error.__context__)
    return answer(error.status_code, str(error.detail), str(error.detail), dict(error.headers or {}))
