"""Running the application: one process, which answers until it is told to stop and then finishes what it has begun."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from temporaldp.errors import InputError
from temporaldp.extras import needing
from temporaldp.release.database import file_of
from temporaldp.serve.application import create_app
from temporaldp.serve.heads import BoundedHeads
from temporaldp.serve.observed import log_line
from temporaldp.serve.settings import Settings

with needing("serve"):
    import uvicorn

MOST_CONNECTIONS = 1_000
"""At once; more are answered with 503."""

RARELY = (20_000, 50, 100)
"""Of Python's collector: a server keeps many objects for long, and going through all of them holds up every request."""

SECONDS_TO_FINISH = 30
"""What was begun may take so long when the server is stopped; then it is left to the database, which undoes it."""


class StoppableServer(uvicorn.Server):
    """Stops on SIGTERM and SIGINT, and then ends like any program that has done its work."""

    def __init__(self, config: uvicorn.Config, app: Any, started: Callable[[str], None] | None = None) -> None:
        super().__init__(config)
        self._app, self._tell = app, started

    async def startup(self, sockets: Any = None) -> None:
        """Listen, and say where."""
        await super().startup(sockets)
        if self.started and self._tell is not None:
            host, port = sockets[0].getsockname()[:2]
            self._tell(f"http://{f'[{host}]' if ':' in host else host}:{port}/")

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Hear signals, and let nobody else hear them again. Only a process's first thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Take no more requests."""
        self._app.state.stopping = True
        super().handle_exit(sig, frame)


def serve(settings: Settings, *, address: str, port: int, started: Callable[[str], None] | None = None) -> None:
    """Serve until the process is told to stop (SIGTERM, SIGINT).

    Parameters
    ----------
    settings : Settings
    address, port
        Where to listen; port 0 for any that is free.
    started : callable, optional
        Is told the address of the page once it can be asked for.

    Raises
    ------
    InputError, LedgerError
        The store is none, cannot be used, or is a file that another server uses; or something else listens there.
    """
    app = create_app(settings)
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # what there is to say is said in lines of JSON
    gc.set_threshold(*RARELY)
    gc.freeze()  # libraries stay, and need not be looked at
    with _alone(settings.store), _listening(address, port) as listener:
        StoppableServer(configuration(app), app, started).run(sockets=[listener])
    log_line("stopped")


@contextmanager
def _alone(store: str | None) -> Iterator[None]:
    """A block in which no other server of this machine uses the file; PostgreSQL serves several."""
    path = None if store is None else file_of(store)
    if path is None or os.name != "posix":
        yield
        return
    import fcntl

    handle = os.open(f"{path}.serving", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another server uses {store}: one server at a time serves a file; use a postgresql:// URL for several"
            ) from None
        yield
    finally:
        os.close(handle)  # the lock ends with it, and with the process


def _listening(address: str, port: int) -> socket.socket:
    """A socket there; `InputError` if somebody else has it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family, backlog=MOST_CONNECTIONS)
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(
            f"cannot listen on {address}, port {port}: {why}; choose another --port or --address"
        ) from None


def configuration(app: Any) -> uvicorn.Config:
    """How an application is run."""
    return uvicorn.Config(
        app,
        http=BoundedHeads,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        ws="none",
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=SECONDS_TO_FINISH,
    )
