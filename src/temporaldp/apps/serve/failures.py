"""Errors as problem documents (RFC 9457): expected and found, never a stack trace."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from temporaldp.apps.serve.messages import Problem
from temporaldp.apps.serve.served_release import RepeatedDifferentlyError
from temporaldp.base.errors import (
    LateDataError,
    LeakageBudgetError,
    LedgerChangedError,
    LedgerError,
    LedgerMismatchError,
    PlanError,
    SpentError,
    TemporaldpError,
)

PROBLEM = "application/problem+json"

CLOSE_CONNECTION = {"Connection": "close"}
"""After a refusal that leaves the rest of a request unread."""

RETRY_LATER = {"Retry-After": "1"}

STATUSES = {
    400: "The body is no JSON, or headers contradict one another.",
    401: "There is no token, or it is invalid, revoked or expired.",
    403: "The token is for another release, or for less.",
    404: "There is no such release.",
    408: "The body came too slowly.",
    409: "The level does not allow it, or the request does not fit what was done before.",
    413: "The body is too large.",
    415: "The content type of the body is not JSON.",
    422: "What was sent cannot be used.",
    429: "Too many requests are waiting: try again.",
    431: "The head is too large.",
    503: "The server or its database cannot be used now: try again.",
}

ANSWERS: dict[type, tuple[int, str]] = {
    LeakageBudgetError: (409, "The budget is refused"),
    PlanError: (409, "The level does not allow it"),
    SpentError: (409, "The level does not allow it"),
    LateDataError: (409, "It does not fit what was done before"),
    RepeatedDifferentlyError: (409, "It does not fit what was done before"),
    LedgerChangedError: (409, "The ledger was changed"),
    LedgerMismatchError: (409, "The ledger was changed"),
    LedgerError: (503, "The database cannot be used"),
    TemporaldpError: (422, "The request cannot be used"),
}
"""Status and title of each error; that of its nearest base class applies."""


class BusyError(HTTPException):
    """Too many requests are waiting; nothing was done."""

    def __init__(self, **headers: str) -> None:
        super().__init__(429, "too many requests are waiting; nothing was done: try again", RETRY_LATER | headers)


def answer(status: int, title: str, detail: str, headers: dict[str, str] | None = None, **more: Any) -> Response:
    """Return a problem document."""
    document = json.dumps({"status": status, "title": title, "detail": detail, **more})
    return Response(document, status, headers, media_type=PROBLEM)


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe these statuses, by default all, for the documentation of a route."""
    content = {PROBLEM: {"schema": Problem.model_json_schema()}}
    return {status: {"description": STATUSES[status], "content": content} for status in statuses or STATUSES}


async def _own_error(request: Request, error: TemporaldpError) -> Response:
    status, title = next(ANSWERS[kind] for kind in type(error).__mro__ if kind in ANSWERS)
    match error:
        case LeakageBudgetError():
            return answer(status, title, str(error), remaining=error.largest)
        case LedgerChangedError():
            return answer(status, title, error.problem)
        case LedgerMismatchError():
            return answer(status, title, "the definition of the release is not the one that it was created with")
        case LedgerError():
            request.scope["log_fields"]["cause"] = _cause(error)
            request.app.state.metrics.faults.labels(kind="LedgerError").inc()
            detail = (
                "nothing was handed out; a step that was stored all the same is answered to the same request: repeat it as it "
                "was, with its key"
            )
            return answer(status, title, detail, RETRY_LATER)
    return answer(status, title, str(error))


def _cause(error: BaseException) -> str:
    """Return why a database cannot be used: the classes of the errors and the database's code, not their messages."""
    below = error.__context__
    origin = getattr(below, "orig", below)
    code = getattr(origin, "sqlite_errorname", None) or getattr(origin, "sqlstate", None)
    return " ".join(
        [type(error).__name__, *([] if origin is None else [type(origin).__name__]), *([code] if code else [])]
    )


async def _invalid(_: Request, error: Any) -> Response:
    wrong = [{"where": "/".join(map(str, one["loc"])), "what": one["msg"]} for one in error.errors()]
    detail = "; ".join(f"{one['where']}: {one['what']}" for one in wrong[:3])
    return answer(422, "The request cannot be used", detail, errors=wrong[:20])


async def _http_error(_: Request, error: Any) -> Response:
    return answer(error.status_code, str(error.detail), str(error.detail), dict(error.headers or {}))


HANDLERS: dict[Any, Any] = {
    TemporaldpError: _own_error,
    RequestValidationError: _invalid,
    HTTPException: _http_error,
}
"""How an application answers every error."""
