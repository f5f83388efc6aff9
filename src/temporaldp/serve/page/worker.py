"""One process beside the server that computes what takes seconds, so that nobody else waits, and that can be stopped.

A computation ends with its answer, with its time, or when nobody waits for it any more: then the process is ended, and the
next question starts another. Questions and answers pass through pipes and are written nowhere.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from temporaldp.errors import InputError
from temporaldp.serve.page.exchange import HEAD, TOO_MUCH, FaultError
from temporaldp.serve.workers import BusyError

LONGEST = 60.0
"""Seconds."""

LONGEST_BEFORE_OTHERS = 10.0
"""Seconds, while another question waits."""

MOST_WAITING = 8
"""Questions that are answered or wait; more are refused at once."""

LOOKED_AFTER = 0.1
"""Seconds between looks whether somebody still waits."""

COMMAND = (sys.executable, "-P", "-m", "temporaldp.serve.page.work")


class TooLongError(InputError):
    """A computation that the page does not wait for, or that takes more memory than it may."""


class Worker:
    """Answers one question at a time; several wait for one another."""

    def __init__(self, *, seconds: float = LONGEST) -> None:
        self._seconds, self._n_waiting = seconds, 0
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None

    async def answer(self, function: Callable[..., Any], *arguments: Any, wanted: Callable[[], Awaitable[bool]]) -> Any:
        """`function(*arguments)`, computed by the process; None if `wanted` said meanwhile that nobody waits for it.

        Raises
        ------
        BusyError
            Too many questions wait.
        TooLongError
            It took longer than the limit, which is shorter while others wait, or the process ended, as one does that gets no
            more memory.
        TemporaldpError, FaultError
            What the function raises.
        """
        if self._n_waiting >= MOST_WAITING:
            raise BusyError
        self._n_waiting += 1
        try:
            return await self._in_turn(function, arguments, wanted)
        finally:
            self._n_waiting -= 1

    async def _in_turn(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], wanted: Callable[[], Awaitable[bool]]
    ) -> Any:
        async with self._turn:
            if not await wanted():
                return None
            task = asyncio.create_task(self._exchange(pickle.dumps((function, arguments))))
            began = asyncio.get_running_loop().time()
            try:
                while not (await asyncio.wait({task}, timeout=LOOKED_AFTER))[0]:
                    if not await wanted():
                        return None
                    alone = self._n_waiting == 1
                    longest = self._seconds if alone else min(self._seconds, LONGEST_BEFORE_OTHERS)
                    if asyncio.get_running_loop().time() - began > longest:
                        raise TooLongError(
                            f"this takes more than {longest:g} seconds{'' if alone else ', and other questions wait'}: "
                            "the command line below computes it"
                        )
                found, error = pickle.loads(task.result())
                if isinstance(error, FaultError):
                    await self.stop()  # a library that failed may not work any more: DuckDB invalidates its database
            except (asyncio.IncompleteReadError, BrokenPipeError):
                raise TooLongError(TOO_MUCH) from None
            finally:
                if not task.done() or task.cancelled() or task.exception() is not None:
                    task.cancel()
                    await self.stop()
        if error is not None:
            raise error
        return found

    async def stop(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        await process.communicate()  # to the end of its pipes

    async def _exchange(self, question: bytes) -> bytes:
        """One question and its answer, each after its length."""
        if self._process is None or self._process.returncode is not None:
            pipe = asyncio.subprocess.PIPE
            self._process = await asyncio.create_subprocess_exec(
                *COMMAND, stdin=pipe, stdout=pipe, env={**os.environ, "MALLOC_ARENA_MAX": "2"}
            )
        to, come = self._process.stdin, self._process.stdout
        assert to is not None
        assert come is not None
        to.write(HEAD.pack(len(question)) + question)
        await to.drain()
        (length,) = HEAD.unpack(await come.readexactly(HEAD.size))
        return await come.readexactly(length)
