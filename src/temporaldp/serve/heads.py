"""Requests whose head is too large are refused before it costs memory; slow clients are left to the proxy."""

from __future__ import annotations

from temporaldp.extras import needing

with needing("serve"):
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


LARGEST_HEAD = 32 << 10
"""Bytes of a request's line and headers."""

TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class BoundedHeads(HttpToolsProtocol):
    """HTTP/1.1 with a limit to how large the head of a request may be, whether it ends or not."""

    _n_unparsed = _n_head = 0

    def data_received(self, data: bytes) -> None:
        """More of a request. What the parser keeps of a line that does not end counts, too."""
        self._n_unparsed += len(data)
        super().data_received(data)
        if self._n_unparsed > LARGEST_HEAD and not self.transport.is_closing():
            self._refuse()

    def on_message_begin(self) -> None:
        """A request begins, on a connection that may have had others."""
        self._n_head = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """The address, or a part of it."""
        self._require_small_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._require_small_head(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is there: what follows is the body, which the application limits."""
        self._n_unparsed = -1 << 60
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is there; another one may follow."""
        self._n_unparsed = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be parsed, or was found too large while it was."""
        if self._n_head > LARGEST_HEAD:
            self._refuse()
        else:
            super().send_400_response(msg)

    def _require_small_head(self, n_bytes: int) -> None:
        """Stop the parser at a head that is too large, although it came at once."""
        self._n_head += n_bytes
        if self._n_head > LARGEST_HEAD:
            raise ValueError

    def _refuse(self) -> None:
        self.transport.write(TOO_LARGE)
        self.transport.close()
