"""Interruption of a command: it unwinds, reports its progress, and exits within a second."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from types import FrameType
from typing import NoReturn


class Interrupted(SystemExit):
    """The command was interrupted; `message` reports its progress."""

    def __init__(self, number: int) -> None:
        self.exit_code = 128 + number
        super().__init__(self.exit_code)
        self.message = "interrupted"


_computing: list[Callable[[], str]] = []
_sockets: list[socket.socket] = []  # kept open as long as the process lives


def handle_signals() -> None:
    """Unwind on SIGINT, SIGTERM and SIGHUP as on an error, so that temporary files are deleted.

    Python handles a signal between two of its own instructions. If a computation stays in machine code for longer, or waits
    for its threads, a thread of this module ends the process.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}:
            signal.signal(number, _interrupt)
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    _sockets[:] = reader, writer
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    Thread(target=_end, args=(reader,), daemon=True).start()


def _interrupt(number: int, _: FrameType | None) -> None:
    raise Interrupted(number)


def _end(reader: socket.socket) -> None:
    while True:
        number = reader.recv(1)[0]
        time.sleep(0.6)  # in which an interrupted computation may unwind by itself
        if _computing:
            leave(_computing[-1](), 128 + number)


def leave(message: str, code: int) -> NoReturn:
    """Print the progress and end the process, whatever its other threads do."""
    from temporaldp.data.files.spilled import remove_temporary_files

    remove_temporary_files()
    print(message, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # its reader may have gone
            stream.flush()
    os._exit(code)


@contextmanager
def computing(how_far: Callable[[], str]) -> Iterator[None]:
    """Within the block no file is partly written, so that the process may end at any moment; it then prints `how_far`."""
    _computing.append(how_far)
    try:
        yield
    finally:
        _computing.pop()
