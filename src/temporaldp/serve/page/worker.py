"""One process beside the server that computes what takes seconds, so that nobody else waits, and that can be stopped.

A computation ends with its answer, with its time, or when nobody waits for it any more: then the process is ended, and the
next question starts another. Questions and answers pass through a pipe and are written nowhere.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from temporaldp.errors import InputError, TemporaldpError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

LONGEST = 60.0
"""Seconds."""

LOOKED_AFTER = 0.05
"""Seconds between looks whether the answer is there and somebody still waits for it."""


class TooLongError(InputError):
    """A computation that the page does not wait for."""


class Worker:
    """Answers one question at a time; several wait for one another."""

    def __init__(self, *, seconds: float = LONGEST) -> None:
        self._seconds = seconds
        self._turn = asyncio.Lock()
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    async def answer(self, function: Callable[..., Any], *arguments: Any, wanted: Callable[[], Awaitable[bool]]) -> Any:
        """`function(*arguments)`, computed by the process; None if `wanted` said meanwhile that nobody waits for it.

        Raises
        ------
        TooLongError
            It took longer than the limit.
        TemporaldpError
            What the function raises.
        """
        async with self._turn:
            if not await wanted():
                return None
            pipe = self._started()
            pipe.send((function, arguments))
            deadline = asyncio.get_running_loop().time() + self._seconds
            try:
                while not pipe.poll():
                    if not await wanted():
                        self.stop()
                        return None
                    if asyncio.get_running_loop().time() > deadline:
                        self.stop()
                        raise TooLongError(
                            f"this takes more than {self._seconds:g} seconds; the command line below computes it"
                        )
                    await asyncio.sleep(LOOKED_AFTER)
                found, error = pipe.recv()
            except (EOFError, asyncio.CancelledError):
                self.stop()
                raise
        if error is not None:
            raise error
        return found

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process is not None and self._pipe is not None:
            self._pipe.close()
            self._process.kill()
            self._process.join()
        self._process = self._pipe = None

    def _started(self) -> Connection:
        """The end of a pipe to a process that lives."""
        if self._process is None or not self._process.is_alive() or self._pipe is None:
            self.stop()
            context = multiprocessing.get_context("spawn")
            self._pipe, other = context.Pipe()
            self._process = context.Process(target=_work, args=(other,), daemon=True, name="temporaldp page")
            self._process.start()
            other.close()
        return self._pipe


def _work(pipe: Connection) -> None:
    """Answer until the other end is closed."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when to end
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:
            return
        try:
            reply = function(*arguments), None
        except TemporaldpError as error:
            reply = None, type(error)(str(error)) if not hasattr(error, "requested") else InputError(str(error))
        pipe.send(reply)
