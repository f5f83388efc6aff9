"""A limit to the head of a request that does not end; slow clients are left to the proxy."""

from __future__ import annotations

from temporaldp.extras import needing

with needing("serve"):
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST_HEAD = 32 << 10
"""Bytes of a request's line and headers."""


class BoundedHeads(HttpToolsProtocol):
    """HTTP/1.1 that keeps at most `LARGEST_HEAD` bytes of a head that has not ended, beyond what one read brings.

    A head that ended is measured by `temporaldp.serve.observed.Observed`.
    """

    _n_unparsed = 0

    def data_received(self, data: bytes) -> None:
        """Parse more of a request, or refuse it."""
        self._n_unparsed += len(data)
        super().data_received(data)
        if self._n_unparsed > LARGEST_HEAD and not self.transport.is_closing():
            self.transport.write(
                b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            )
            self.transport.close()

    def on_headers_complete(self) -> None:
        """Stop counting: the body follows, which the application limits."""
        self._n_unparsed = -1 << 60
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Count the head of the next request."""
        self._n_unparsed = 0
        super().on_message_complete()
