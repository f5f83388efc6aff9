"""Connections whose requests begin slowly, or never end their head: closed, before they cost memory or a place."""

from __future__ import annotations

import asyncio
from typing import Any

from temporaldp.extras import needing

with needing("serve"):
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


LARGEST_HEAD = 32 << 10
"""Bytes of a request's line and headers."""

PATIENCE = "patience"
"""In the state that the application makes when it starts: seconds."""

TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class PatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 with a limit to how large the head of a request may be, and how long it may take.

    The time counts from the connection, or from the first byte of a request that follows another one. It is `patience` of the
    settings in the application's state.
    """

    _head: asyncio.TimerHandle | None = None
    _n_bytes = 0
    _n_head = 0

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._head_is_complete()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """More of a request; refused if its head does not end."""
        if self._head is not None:
            self._n_bytes += len(data)
        super().data_received(data)
        if self._head is not None and self._n_bytes > LARGEST_HEAD and not self.transport.is_closing():
            self._refuse(TOO_LARGE)

    def on_message_begin(self) -> None:
        """A request begins, on a connection that may have had others."""
        self._n_head = 0
        super().on_message_begin()
        if self._head is None:
            self._wait_for_head()

    def on_url(self, url: bytes) -> None:
        """The address, or a part of it."""
        self._require_small_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._require_small_head(len(name) + len(value))
        super().on_header(name, value)

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be parsed, or was found too large while it was."""
        if self._n_head > LARGEST_HEAD:
            self._refuse(TOO_LARGE)
        else:
            super().send_400_response(msg)

    def _require_small_head(self, n_bytes: int) -> None:
        """Stop the parser at a head that is too large, although it came at once."""
        self._n_head += n_bytes
        if self._n_head > LARGEST_HEAD:
            raise ValueError

    def on_headers_complete(self) -> None:
        """Its head is there: what follows is the body, which the application waits for."""
        self._head_is_complete()
        super().on_headers_complete()

    def _wait_for_head(self) -> None:
        self._n_bytes = 0
        self._head = self.loop.call_later(self.app_state[PATIENCE], self._refuse, TOO_SLOW)

    def _head_is_complete(self) -> None:
        if self._head is not None:
            self._head.cancel()
        self._head = None

    def _refuse(self, answer: bytes) -> None:
        self._head_is_complete()
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()
