"""How large the body of a request may be, and how long it may take to come."""

from __future__ import annotations

import asyncio
from typing import Any

from temporaldp.serve.responses import CLOSE, Message, send_problem

LARGEST_BODY = 1 << 20
"""Bytes. Two matrices of 100 states as JSON have less than half of that."""

LARGEST_UPLOAD = 32 << 20
"""Bytes, for what a page uploads (UPLOADS): traces, which stay in memory while they are looked at."""

UPLOADS = "/v1/view/"


class BodyLimits:
    """Reads the whole body before the application is asked: 413 if it is too large, 408 if it is too slow.

    So what an application has begun is never interrupted by a client that stops sending, and no more than the limit is kept.
    """

    def __init__(self, app: Any, *, seconds: float) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        largest = LARGEST_UPLOAD if scope["path"].startswith(UPLOADS) else LARGEST_BODY
        told = dict(scope["headers"]).get(b"content-length", b"0")
        if not told.isdigit() or int(told) > largest:
            await self._refuse_large(send, largest)
            return
        try:
            body = await asyncio.wait_for(_whole_body(receive, largest), self._seconds)
        except TimeoutError:
            await send_problem(
                send, 408, "The request came too slowly", f"its body took more than {self._seconds:g} seconds", CLOSE
            )
            return
        if body is None:
            return  # the client has gone
        if len(body) > largest:
            await self._refuse_large(send, largest)
            return
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        await self._app(scope, replay, send)

    async def _refuse_large(self, send: Any, largest: int) -> None:
        detail = f"expected a body of at most {largest} bytes"
        await send_problem(send, 413, "The request is too large", detail, CLOSE)


async def _whole_body(receive: Any, largest: int) -> bytes | None:
    """All of it, or the first bytes that are too many; None if the client went away."""
    body = bytearray()
    while len(body) <= largest:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return bytes(body)
