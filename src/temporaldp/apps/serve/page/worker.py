"""A worker process for computations that do not block the server and can be stopped.

A computation ends with its answer, at its time limit, or when no client waits for it any more: the process is then killed,
and the next question starts another. Questions and answers pass through a pipe and are not stored.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from anyio import Lock

from temporaldp.apps.serve.failures import BusyError
from temporaldp.apps.serve.page.work import TOO_MUCH, FaultError, work
from temporaldp.base.errors import InputError


class TooLongError(InputError):
    """A computation exceeds the limit of time or memory."""


class Worker:
    """Worker that answers one question at a time; others wait.

    Parameters
    ----------
    seconds : float
        Time limit of a computation.
    """

    seconds_before_others = 10.0  # that a computation may take while another question waits
    most_waiting = 8  # questions that are answered or wait; more are refused at once

    def __init__(self, *, seconds: float = 60.0) -> None:
        self._seconds = seconds
        self._turn = Lock()
        self._process: BaseProcess | None = None

    async def answer(
        self, function: Callable[..., Any], *arguments: Any, is_gone: Callable[[], Awaitable[bool]]
    ) -> Any:
        """`function(*arguments)`, computed by the process; None if by `is_gone` the client waits for it no longer.

        Raises
        ------
        BusyError
            Too many questions are waiting.
        TooLongError
            The computation took longer than the limit, which is shorter while others wait, or the process ended, as without
            memory.
        TemporaldpError, FaultError
            Raised by the function.
        """
        turn = self._turn.statistics()
        if turn.locked + turn.tasks_waiting >= self.most_waiting:
            raise BusyError
        async with self._turn:
            return None if await is_gone() else await self._computed((function, arguments), is_gone)

    async def _computed(self, question: tuple[Any, ...], is_gone: Callable[[], Awaitable[bool]]) -> Any:
        self.start()
        task = asyncio.create_task(asyncio.to_thread(_exchange, self._questions, question))
        began = time.monotonic()
        try:
            while not (await asyncio.wait({task}, timeout=0.1))[0]:
                if await is_gone():
                    return None
                alone = self._turn.statistics().tasks_waiting == 0
                longest = self._seconds if alone else min(self._seconds, self.seconds_before_others)
                if time.monotonic() - began > longest:
                    raise TooLongError(
                        f"this takes more than {longest:g} seconds{'' if alone else ', and other questions wait'}: "
                        "the command line computes it"
                    )
        finally:
            if not task.done():
                await self.stop()
        found = task.result()
        if isinstance(found, FaultError | TooLongError):
            # It has ended, or a library failed and may no longer work: DuckDB invalidates its database.
            await self.stop()
        if isinstance(found, Exception):
            raise found
        return found

    async def stop(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.join()

    def start(self) -> None:
        """Start the process, unless it runs."""
        if self._process is not None and self._process.is_alive():
            return
        os.environ.setdefault("MALLOC_ARENA_MAX", "2")  # of the process to come: each arena reserves addresses
        context = get_context("spawn")
        self._questions, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs,), daemon=True)
        process.start()
        self._process = process
        theirs.close()


def _exchange(questions: Connection, question: tuple[Any, ...]) -> Any:
    """Return the answer of the process, or the error that stands for its end."""
    try:
        questions.send(question)
        return questions.recv()
    except (EOFError, OSError):
        return TooLongError(TOO_MUCH)
