"""How large the body of a request may be, and how long it may take to come."""

from __future__ import annotations

import asyncio
from typing import Any

from temporaldp.serve.responses import CLOSE, Message, send_problem

LARGEST_BODY = 1 << 20
"""Bytes. Two matrices of 100 states as JSON have less than half of that."""

LARGEST_UPLOAD = 32 << 20
"""Bytes, for what a page uploads (UPLOADS): traces, which stay in memory while they are looked at."""

MOST_IN_FLIGHT = 64 << 20
"""Bytes of bodies that a server holds, of uploads and of others, from their first byte to the answer; more are refused."""

UPLOADS = "/v1/view/"


class BodyLimits:
    """Read the whole body before the application is asked: 413 if it is too large, 408 if too slow, 429 if too many wait.

    So what an application has begun is never interrupted by a client that stops sending, and memory stays within the limits.
    """

    def __init__(self, app: Any, *, seconds: float, takes_uploads: bool) -> None:
        self._app, self._seconds, self._takes_uploads = app, seconds, takes_uploads
        self._in_flight = {LARGEST_BODY: 0, LARGEST_UPLOAD: 0}

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_upload = self._takes_uploads and scope["path"].startswith(UPLOADS)
        largest = LARGEST_UPLOAD if is_upload else LARGEST_BODY
        told = dict(scope["headers"]).get(b"content-length", b"0")
        if not told.isdigit() or int(told) > largest:
            await self._refuse_large(send, largest)
            return
        body = bytearray()
        try:
            await self._answer(scope, receive, send, body, largest)
        finally:
            self._in_flight[largest] -= len(body)

    async def _answer(self, scope: Message, receive: Any, send: Any, body: bytearray, largest: int) -> None:
        try:
            is_whole = await asyncio.wait_for(self._read(receive, body, largest), self._seconds)
        except TimeoutError:
            await send_problem(
                send, 408, "The request came too slowly", f"its body took more than {self._seconds:g} seconds", CLOSE
            )
            return
        if len(body) > largest:
            await self._refuse_large(send, largest)
        elif self._in_flight[largest] > MOST_IN_FLIGHT:
            await send_problem(send, 429, "Too many wait", "nothing was done; ask again", (b"retry-after", b"1"), CLOSE)
        elif is_whole:  # or the client has gone
            waiting = [{"type": "http.request", "body": bytes(body), "more_body": False}]

            async def replay() -> Message:
                return waiting.pop() if waiting else await receive()

            await self._app(scope, replay, send)

    async def _read(self, receive: Any, body: bytearray, largest: int) -> bool:
        """Read all of it, or the first bytes that are too many; False if the client went away."""
        is_whole = False
        while not is_whole and len(body) <= largest and self._in_flight[largest] <= MOST_IN_FLIGHT:
            message = await receive()
            if message["type"] != "http.request":
                return False
            part = message.get("body", b"")
            body += part
            self._in_flight[largest] += len(part)
            is_whole = not message.get("more_body", False)
        return is_whole

    async def _refuse_large(self, send: Any, largest: int) -> None:
        detail = f"expected a body of at most {largest} bytes"
        await send_problem(send, 413, "The request is too large", detail, CLOSE)
