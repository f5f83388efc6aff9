"""The server: the application with its routes and middleware, and the process that answers until it is stopped."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from temporaldp.base.errors import InputError
from temporaldp.base.extras import needing

with needing("serve"):
    import uvicorn
    from fastapi import FastAPI
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    from temporaldp.apps.serve import operation, releases
    from temporaldp.apps.serve.failures import HANDLERS
    from temporaldp.apps.serve.observed import LARGEST_HEAD, Metrics, Observed, log_line
    from temporaldp.apps.serve.page.router import router as page_router
    from temporaldp.apps.serve.page.worker import Worker
    from temporaldp.apps.serve.service import Service, load_for_first_step

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
"""Names of this machine that no other machine's name service resolves."""


def create_app(
    store: str | None = None,
    *,
    page: bool = False,
    hosts: tuple[str, ...] = LOCAL_HOSTS,
    log: bool = False,
    patience: float = 10.0,
) -> FastAPI:
    """Return the application of a server. With a store it opens the database at once, and closes it at shutdown.

    Parameters
    ----------
    store : str, optional
        Database of releases: an SQLite file or a ``postgresql://`` URL. Without one there is only the page.
    page : bool
        Whether a service also serves the page, to browsers with a token.
    hosts : tuple of str
        Host names, without ports, of the server. Others are refused, as a protection against DNS rebinding.
    log : bool
        Whether each request is logged as a line of JSON on standard error.
    patience : float
        Seconds to wait for the body of a request.

    Raises
    ------
    InputError, LedgerError
        The store is not admissible, or cannot be used.
    """
    service = None if store is None else Service(store)
    app = FastAPI(
        title="temporaldp",
        summary="Bound what a continual release leaks, and keep releases at or below a level.",
        version="1",
        docs_url=None,
        redoc_url=None,
        lifespan=_until_stopped,
        exception_handlers=HANDLERS,
    )
    app.state.service, app.state.metrics = service, Metrics()
    app.state.worker, app.state.quick = Worker(), Worker(seconds=20.0)
    app.state.patience, app.state.in_flight = patience, Counter()
    app.include_router(operation.router)
    if service is not None:
        app.include_router(releases.router)
    if page or service is None:
        app.include_router(page_router)
    names = [f"[{host}]" if ":" in host else host for host in hosts]
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=names, www_redirect=False)
    app.add_middleware(Observed, metrics=app.state.metrics, log=sys.stderr if log else None)
    return app


@asynccontextmanager
async def _until_stopped(app: FastAPI) -> AsyncIterator[None]:
    loading = None if app.state.service is None else asyncio.create_task(asyncio.to_thread(load_for_first_step))
    yield
    if loading is not None:
        await loading
    for worker in (app.state.worker, app.state.quick):
        await worker.stop()
    if app.state.service is not None:
        app.state.service.database.close()


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


UVICORN_OPTIONS: dict[str, Any] = {
    "http": BoundedHeads,
    "log_config": None,
    "server_header": False,
    "proxy_headers": False,
    "ws": "none",
    "limit_concurrency": 1_000,  # connections; more are answered with 503
    "timeout_keep_alive": 30,
    "timeout_graceful_shutdown": 30,  # a step that takes longer is left to the database, which undoes it
}


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
            uvicorn.Server(uvicorn.Config(app, **UVICORN_OPTIONS)).run(sockets=[listener])
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
        return socket.create_server((address, port), family=family, backlog=UVICORN_OPTIONS["limit_concurrency"])
    except OSError as error:
        raise InputError(
            f"cannot listen on {address}, port {port}: {error.strerror or error}; choose another --port or --address"
        ) from None
