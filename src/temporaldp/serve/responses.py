"""Answers that say what went wrong, as problem documents (RFC 9457): never a stack trace."""

from __future__ import annotations

import json
from typing import Any

PROBLEM = "application/problem+json"

CLOSE = (b"connection", b"close")
"""After a refusal that leaves the rest of a request unread."""

Message = dict[str, Any]
"""Of ASGI."""


def problem(status: int, title: str, detail: str, **more: Any) -> bytes:
    """The body of such an answer."""
    return json.dumps({"status": status, "title": title, "detail": detail, **more}).encode()


async def send_problem(send: Any, status: int, title: str, detail: str, *headers: tuple[bytes, bytes]) -> None:
    """Answer from outside of the application, before it was asked."""
    body = problem(status, title, detail)
    fixed = [(b"content-type", PROBLEM.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*fixed, *headers]})
    await send({"type": "http.response.body", "body": body})
