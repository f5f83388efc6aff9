"""The server process, which answers requests until it is stopped, and then completes those in progress."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from temporaldp.apps.serve.observed import LARGEST_HEAD, log_line
from temporaldp.apps.serve.service import Service
from temporaldp.base.errors import InputError

MOST_CONNECTIONS = 1_000
"""At once; more are answered with 503."""


class BoundedHeads(HttpToolsProtocol):
    """HTTP/1.1 protocol with at most `LARGEST_HEAD` bytes of an incomplete head, besides one read.

    A complete head is measured by `Observed`.
    """

    _n_unparsed = 0

    def data_received(self, data: bytes) -> None:
        """Parse a part of a request, or refuse it."""
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


SETTINGS: dict[str, Any] = {
    "http": BoundedHeads,
    "log_config": None,
    "server_header": False,
    "proxy_headers": False,
    "ws": "none",
    "limit_concurrency": MOST_CONNECTIONS,
    "timeout_keep_alive": 30,
    "timeout_graceful_shutdown": 30,  # a step that takes longer is left to the database, which undoes it
}
"""Settings of uvicorn."""


def serve(app: FastAPI, *, address: str, port: int, started: Callable[[str], None] | None = None) -> None:
    """Serve until the process receives SIGTERM or SIGINT. To be called in the main thread.

    Parameters
    ----------
    app : FastAPI
        Application of `create_app`.
    address, port
        Address and port to listen on; port 0 for a free one.
    started : callable, optional
        Called with the address of the page once connections are accepted.

    Raises
    ------
    InputError, LedgerError
        The store is a file that another server uses, or another process listens there.
    """
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # the log has lines of JSON alone
    # A server keeps many objects for long, and a full collection holds up every request.
    gc.set_threshold(20_000, 50, 100)
    gc.freeze()
    with _alone(app.state.service), _listening(address, port) as listener:
        if started is not None:
            host, port = listener.getsockname()[:2]
            started(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
        # uvicorn raises the signal again when it has stopped: a server that was stopped ends with code 0.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(uvicorn.Config(app, **SETTINGS)).run(sockets=[listener])
    log_line(sys.stderr, event="stopped")


@contextmanager
def _alone(service: Service | None) -> Iterator[None]:
    """A block in which no other server of this machine uses the file; PostgreSQL serves several."""
    if service is None or not service.database.is_file or os.name != "posix":
        yield
        return
    import fcntl

    with os.fdopen(
        os.open(f"{service.database.identity}.serving", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    ) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another server uses {service.database.place}: one server at a time serves a file; use a postgresql:// URL "
                "for several"
            ) from None
        yield  # the lock ends with the file, and with the process


def _listening(address: str, port: int) -> socket.socket:
    """A socket there; `InputError` if another process has it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family, backlog=MOST_CONNECTIONS)
    except OSError as error:
        raise InputError(
            f"cannot listen on {address}, port {port}: {error.strerror or error}; choose another --port or --address"
        ) from None
