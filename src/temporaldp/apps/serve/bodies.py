"""Bodies of requests: limits of size and time, and strict JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from temporaldp.apps.serve.failures import CLOSE_CONNECTION, BusyError

LARGEST_BODY = 1 << 20
"""Bytes. Two matrices of 100 states as JSON have less than half of that."""

LARGEST_UPLOAD = 32 << 20
"""Bytes, for what a page uploads: traces, which stay in memory while they are looked at."""

MOST_IN_FLIGHT = 64 << 20
"""Bytes of bodies that a server holds, of uploads and of others, from their first byte to the answer; more are refused."""


class BoundedRequest(Request):
    """A request with a limited body, and strict JSON.

    The whole body is read before the request is processed, so that a client that stops sending interrupts nothing.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        super().__init__(scope, receive)
        self.largest = LARGEST_UPLOAD if scope["path"].startswith("/v1/view/") else LARGEST_BODY
        self.n_held = 0

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the parts of the body; 413 beyond the largest body, 429 if the server holds too many bytes."""
        in_flight = self.app.state.in_flight
        async for part in super().stream():
            self.n_held += len(part)
            in_flight[self.largest] += len(part)
            if self.n_held > self.largest:
                raise HTTPException(413, f"expected a body of at most {self.largest} bytes", CLOSE_CONNECTION)
            if in_flight[self.largest] > MOST_IN_FLIGHT:
                raise BusyError(**CLOSE_CONNECTION)
            yield part

    async def body(self) -> bytes:
        """Return the body; 408 if it comes too slowly."""
        patience = self.app.state.patience
        try:
            async with asyncio.timeout(patience):
                return await super().body()
        except TimeoutError:
            raise HTTPException(408, f"expected the whole body within {patience:g} seconds", CLOSE_CONNECTION) from None
        except ClientDisconnect:
            raise HTTPException(400, "expected the whole body") from None

    async def discard(self) -> None:
        """Receive the body without keeping it, so that a client that sends it all before it looks for the answer gets one."""
        with suppress(TimeoutError, ClientDisconnect):
            async with asyncio.timeout(self.app.state.patience):
                async for _ in super().stream():
                    pass

    async def json(self) -> Any:
        """Return the document; 400 if it is not JSON, as with NaN or infinity, or has a name twice."""
        try:
            text = (await self.body()).decode("utf-8")
            return json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)
        except (ValueError, RecursionError) as error:
            raise HTTPException(400, f"expected JSON in UTF-8: {error}") from None


class BoundedRoute(APIRoute):
    """A route whose requests are bounded, and whose bodies are read and validated only for those who may send them."""

    async def admit(self, request: Request) -> None:
        """Refuse a request by its head."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """Return the handler of a route, which counts the bytes of a body until the request is answered."""
        handler = super().get_route_handler()

        async def bounded(request: Request) -> Response:
            whole = BoundedRequest(request.scope, request.receive)
            try:
                await self.admit(request)
            except HTTPException:
                await whole.discard()
                raise
            try:
                return await handler(whole)
            finally:
                request.app.state.in_flight[whole.largest] -= whole.n_held

        return bounded


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a name twice")
    return found
