"""Progress of long computations, reported to a watcher if there is one, and the effort after which they stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Watcher = Callable[[str, float], None]

_watcher: ContextVar[Watcher | None] = ContextVar("temporaldp_progress", default=None)
_last: ContextVar[tuple[str, float]] = ContextVar("temporaldp_last_progress", default=("", 0.0))
_end: ContextVar[float] = ContextVar("temporaldp_effort", default=math.inf)


@contextmanager
def effort(seconds: float) -> Iterator[None]:
    """Let computations within the block stop after so many seconds, in this thread or task, with the bounds that they have."""
    token = _end.set(min(_end.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _end.reset(token)


def effort_is_over() -> bool:
    """Whether the time for a computation is over."""
    return time.monotonic() >= _end.get()


def progressed(doing: str, share: float) -> None:
    """Report that a share (0 to 1) of a computation is done, if there is a watcher."""
    if watcher := _watcher.get():
        _last.set((doing, share))
        watcher(doing, share)


def still_wanted() -> None:
    """Report again what was reported last: a watcher ends a computation by an exception."""
    if watcher := _watcher.get():
        watcher(*_last.get())


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Report progress to `watcher` within the block, in this thread or task."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def part(first: float, last: float, doing: str) -> Iterator[None]:
    """Map the progress reported within the block to the range from `first` to `last` of `doing`.

    The whole range, 0 to 1, keeps the name reported inside.
    """
    watcher = _watcher.get()
    if watcher is None or last - first >= 1.0:
        yield
        return
    watcher(doing, first)
    _last.set((doing, 0.0))
    with watched(lambda _, share: watcher(doing, first + share * (last - first))):
        yield
    watcher(doing, last)
