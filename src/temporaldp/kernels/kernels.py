"""Which kernels compute: Numba's machine code, or whole arrays through NumPy and SciPy, or through PyTorch on an accelerator.

``TEMPORALDP_KERNELS`` chooses: ``auto`` (the default), ``numba``, ``numpy`` or ``torch``. All give the same vertices; the
tests run with numba and numpy. ``TEMPORALDP_THREADS`` bounds the threads (the default is one for every core that the
process may use).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TypeVar

from temporaldp.errors import InputError

Result = TypeVar("Result")

CHOICES = ("auto", "numba", "numpy", "torch")

SMALL = 40**3
"""Entries of all pairs of rows up to which `auto` uses arrays: a few milliseconds, less than it takes to load Numba."""

WORTH_A_THREAD = 1 << 22
"""Entries of work below which one thread is faster than several: starting one takes 0.1 ms."""


SEARCHED = 16
"""Times that a search for budgets asks what leaks, about: see `repeated`."""

_TIMES: ContextVar[int] = ContextVar("times", default=1)


@contextmanager
def repeated(times: int) -> Iterator[None]:
    """Work inside, or in a function that is decorated, comes so many times: machine code may pay for small problems too."""
    token = _TIMES.set(max(1, times) * _TIMES.get())
    try:
        yield
    finally:
        _TIMES.reset(token)


def chosen_kernels(work: int) -> str:
    """``numba``, ``numpy`` or ``torch``, for work on so many entries. By size alone, so that a number never depends on luck."""
    work *= _TIMES.get()
    choice = os.environ.get("TEMPORALDP_KERNELS", "auto")
    if choice not in CHOICES:
        raise InputError(f"expected TEMPORALDP_KERNELS to be one of {', '.join(CHOICES)}, got {choice!r}")
    if choice == "auto":
        return "numba" if work > SMALL and _loads("numba") is None else "numpy"
    problem = None if choice == "numpy" else _loads(choice)
    if problem is not None:
        raise InputError(
            f"TEMPORALDP_KERNELS is {choice}, but it cannot be loaded ({problem}); install it or choose numpy"
        )
    return choice


def compiles() -> bool:
    """Whether Numba can be loaded at all: for what is only ever computed in machine code."""
    return _loads("numba") is None


@cache
def _loads(library: str) -> str | None:
    """Why a library cannot be loaded (Numba, for one, refuses a NumPy newer than it knows); None if it can."""
    try:
        importlib.import_module(library)
    except ImportError as error:
        return str(error)
    return None


def n_threads() -> int:
    """Threads to use: ``TEMPORALDP_THREADS``, or one for every core that this process may run on."""
    asked = os.environ.get("TEMPORALDP_THREADS")
    if asked is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not asked.isdecimal() or int(asked) < 1:
        raise InputError(f"expected TEMPORALDP_THREADS to be a whole number from 1, got {asked!r}")
    return int(asked)


def spread(function: Callable[[int, int], Result], n_items: int, *, step: int, work: int) -> list[Result]:
    """``function(first, last)`` over blocks of the items 0 .. n_items - 1, in order, on as many threads as pay."""
    threads = min(n_threads(), 1 + work // WORTH_A_THREAD)
    if threads == 1:
        return [function(0, n_items)]
    # Several blocks a thread, as some take longer; each a multiple of `step`.
    length = step * max(1, -(-n_items // (4 * threads * step)))
    blocks = [(first, min(first + length, n_items)) for first in range(0, n_items, length)]
    pool = ThreadPoolExecutor(threads)
    try:
        return list(pool.map(lambda block: function(*block), blocks))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # whoever interrupts does not wait for blocks that nobody needs
