"""The worker process: answers questions from a pipe until its other end is closed."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from temporaldp.base.errors import InputError, TemporaldpError

TOO_MUCH = "this takes more memory than the page may use: the command line computes it"


class FaultError(Exception):
    """An unexpected error, by the name of its class alone: its message may contain data, which the server must not log."""


def work(questions: Connection) -> None:
    """Answer questions in a worker process, with a limited address space where the platform supports it."""
    if sys.platform != "win32":
        import resource

        # Libraries reserve 1.5 GiB, and use little of it. Each core has threads, whose stacks count too.
        most = (3 << 30) + (os.cpu_count() or 1) * (64 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when to end
    os.dup2(2, 1)  # standard output is the server's
    with suppress(EOFError):
        while True:
            function, arguments = questions.recv()
            questions.send(_answered(function, arguments))


def _answered(function: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the result of a function, or the error that it raises as one that can be sent."""
    try:
        return function(*arguments)
    except TemporaldpError as error:
        return InputError(str(error))
    except MemoryError:
        return InputError(TOO_MUCH)
    except Exception as error:
        return FaultError(type(error).__name__)
