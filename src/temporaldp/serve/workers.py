"""Threads that do what is asked for: many short acts, and few long ones, so that who computes keeps nobody else waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")

QUICK, LONG = 12, 2
"""Threads. Steps wait for the database most of their time; what is long computes."""

MOST_WAITING = 256
"""Acts of one kind that may wait; more are refused at once, which tells clients to come later."""


class BusyError(Exception):
    """Too many wait already; nothing was done."""


class Workers:
    """Two pools of threads, with queues that end."""

    def __init__(self) -> None:
        self._pools = {
            "quick": ThreadPoolExecutor(QUICK, thread_name_prefix="quick"),
            "long": ThreadPoolExecutor(LONG, thread_name_prefix="long"),
        }
        self._waiting = dict.fromkeys(self._pools, 0)

    async def quickly(self, act: Callable[[], Result]) -> Result:
        """The result of something short. `BusyError` if too many wait."""
        return await self._run("quick", act)

    async def slowly(self, act: Callable[[], Result]) -> Result:
        """The result of something that may take seconds. `BusyError` if too many wait."""
        return await self._run("long", act)

    def begin(self, act: Callable[[], None]) -> None:
        """Do something long that nobody waits for."""
        self._pools["long"].submit(act)

    async def _run(self, pool: str, act: Callable[[], Result]) -> Result:
        if self._waiting[pool] >= MOST_WAITING:
            raise BusyError
        self._waiting[pool] += 1
        try:
            # Shielded: who goes away does not stop what was begun.
            return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._pools[pool], act))
        finally:
            self._waiting[pool] -= 1

    def close(self) -> None:
        """Finish what was begun."""
        for pool in self._pools.values():
            pool.shutdown(wait=True)
