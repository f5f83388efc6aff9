"""Threads for kernels, and blocks of work between which Python handles signals.

``TEMPORALDP_THREADS`` bounds their number (the default is one for every core that the process may use). The thread that waits
for them can be interrupted; blocks that have begun then run to their end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TypeVar

from temporaldp.errors import InputError
from temporaldp.kernels.compilation import share_arrays
from temporaldp.progress import watched

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST_BLOCKS = 128
"""Blocks that much work is divided into: an interrupt waits for one of them. If doubled, it waits half as long."""


def n_threads() -> int:
    """Threads to use: ``TEMPORALDP_THREADS``, or one for every core that this process may run on."""
    asked = os.environ.get("TEMPORALDP_THREADS")
    if asked is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not asked.isdecimal() or int(asked) < 1:
        raise InputError(f"expected TEMPORALDP_THREADS to be a whole number from 1, got {asked!r}")
    return int(asked)


def spread(function: Callable[[int, int], Result], n_items: int, *, step: int, work: int) -> list[Result]:
    """Return ``function(first, last)`` of consecutive blocks of the items 0 .. n_items - 1; one block for little work."""
    # Entries of work below which one thread is faster than several: starting one takes 0.1 ms
    if work < (1 << 22):
        return [function(0, n_items)]
    threads = min(n_threads(), 1 + work // (1 << 22))
    length = step * -(-n_items // (max(4 * threads, MOST_BLOCKS) * step))
    blocks = [(first, min(first + length, n_items)) for first in range(0, n_items, length)]
    if threads == 1:
        return [function(*block) for block in blocks]
    with workers(threads) as pool:
        return list(pool.map(lambda block: function(*block), blocks))


@contextmanager
def workers(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Threads for what is waited for within the block. After an interrupt nothing begins, and nothing is waited for."""
    pool = ThreadPoolExecutor(threads, initializer=share_arrays)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def together(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The results for all items, side by side. After an interrupt each ends where it next reports its progress."""
    stopped = Event()

    def stop(doing: str, share: float) -> None:
        if stopped.is_set():
            raise CancelledError(doing)

    def one(item: Item) -> Result:
        with watched(stop):
            return function(item)

    with workers(n_threads()) as pool:
        try:
            return list(pool.map(one, items))
        finally:
            stopped.set()
