"""Threads for kernels.

``TEMPORALDP_THREADS`` bounds their number (the default is one for every core that the process may use).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from temporaldp.errors import InputError
from temporaldp.kernels.compilation import share_arrays

Result = TypeVar("Result")


def n_threads() -> int:
    """Threads to use: ``TEMPORALDP_THREADS``, or one for every core that this process may run on."""
    asked = os.environ.get("TEMPORALDP_THREADS")
    if asked is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not asked.isdecimal() or int(asked) < 1:
        raise InputError(f"expected TEMPORALDP_THREADS to be a whole number from 1, got {asked!r}")
    return int(asked)


def spread(function: Callable[[int, int], Result], n_items: int, *, step: int, work: int) -> list[Result]:
    """Return ``function(first, last)`` of consecutive blocks of the items 0 .. n_items - 1; one thread for little work."""
    # Entries of work below which one thread is faster than several: starting one takes 0.1 ms
    threads = min(n_threads(), 1 + work // (1 << 22))
    if threads == 1:
        return [function(0, n_items)]
    # Several blocks a thread, as some take longer; each a multiple of `step`.
    length = step * max(1, -(-n_items // (4 * threads * step)))
    blocks = [(first, min(first + length, n_items)) for first in range(0, n_items, length)]
    pool = ThreadPoolExecutor(threads, initializer=share_arrays)
    try:
        return list(pool.map(lambda block: function(*block), blocks))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # an interrupt does not wait for the remaining blocks
