"""The process beside the server: answers questions that come through its standard input until that is closed."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import Any

from temporaldp.errors import InputError, TemporaldpError
from temporaldp.serve.page.exchange import HEAD, TOO_MUCH, FaultError

MOST_MEMORY, MEMORY_A_CORE = 3 << 30, 64 << 20
"""Bytes of addresses, and bytes more for the stacks of a core's threads. Libraries reserve 1.5 GiB, and use little of it."""


def main() -> None:
    """Answer."""
    _limit_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when to end
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not get among the answers
    while head := sys.stdin.buffer.read(HEAD.size):
        (length,) = HEAD.unpack(head)
        function, arguments = pickle.loads(sys.stdin.buffer.read(length))
        reply = pickle.dumps(_answered(function, arguments))
        answers.write(HEAD.pack(len(reply)) + reply)
        answers.flush()


def _limit_memory() -> None:
    """Bound the address space of this process, where the system can."""
    if sys.platform != "win32":
        import resource

        most = MOST_MEMORY + (os.cpu_count() or 1) * MEMORY_A_CORE
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _answered(function: Any, arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    """What a function gives, or the error that it raises as one that can be sent."""
    try:
        return function(*arguments), None
    except TemporaldpError as error:
        return None, InputError(str(error))
    except MemoryError:
        return None, InputError(TOO_MUCH)
    except Exception as error:
        return None, FaultError(type(error).__name__)


if __name__ == "__main__":
    main()
