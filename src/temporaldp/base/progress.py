"""Progress of long computations, reported to a watcher if there is one, and the effort after which they stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Watcher = Callable[[str, float], None]

_watcher: ContextVar[Watcher | None] = ContextVar("temporaldp_progress", default=None)
_last: ContextVar[tuple[str, float, float]] = ContextVar("temporaldp_last_progress", default=("", 0.0, 0.0))
_end: ContextVar[float] = ContextVar("temporaldp_effort", default=math.inf)
_is_estimated: ContextVar[bool] = ContextVar("temporaldp_estimated", default=False)


class Estimate(str):
    """What is about to be done, and about how long it takes: what a watcher gets of `estimated`."""

    __slots__ = ()


@contextmanager
def effort(seconds: float = math.inf, *, share: float = 1.0) -> Iterator[None]:
    """Let computations within the block stop after so many seconds, in this thread or task, with the bounds that they have.

    Within another block, after a share of what is left of that one at most.
    """
    now = time.monotonic()
    token = _end.set(now + share * (min(_end.get(), now + seconds) - now))
    try:
        yield
    finally:
        _end.reset(token)


def effort_is_over() -> bool:
    """Whether the time for a computation is over; it must be `still_wanted`, too."""
    still_wanted()
    return time.monotonic() >= _end.get()


def still_wanted() -> None:
    """Report the last progress again, if that was a while ago: a watcher may end the computation by an exception."""
    doing, share, reported = _last.get()
    if doing and _watcher.get() and time.monotonic() - reported >= 0.1:
        progressed(doing, share)


def in_blocks(n: int, size: int) -> Iterator[slice]:
    """Slices of n items, so many at a time (at least one); a watcher may end the computation before each."""
    for first in range(0, n, max(size, 1)):
        still_wanted()
        yield slice(first, first + max(size, 1))


def progressed(doing: str, share: float) -> None:
    """Report that a share (0 to 1) of a computation is done, if there is a watcher."""
    if watcher := _watcher.get():
        _last.set((doing, share, time.monotonic()))
        watcher(doing, share)


@contextmanager
def estimated(doing: str, estimate: Callable[[], float]) -> Iterator[None]:
    """Report to a watcher before the block that it may take more than 10 seconds; at most those that the effort leaves.

    Computations within the block report no estimate of their own.
    """
    watcher = _watcher.get()
    if watcher is None or _is_estimated.get():
        yield
        return
    seconds = min(estimate(), _end.get() - time.monotonic())
    if seconds > 10.0:
        shown = f"{seconds:.0f} s" if seconds < 120.0 else f"{seconds / 60.0:.0f} min"
        watcher(Estimate(f"{doing}, about {shown}"), 0.0)
    progressed(doing, 0.0)
    token = _is_estimated.set(True)
    try:
        yield
    finally:
        _is_estimated.reset(token)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Report progress to `watcher` within the block, in this thread or task."""
    token = _watcher.set(watcher)
    _last.set(("", 0.0, 0.0))
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def part(first: float, last: float, doing: str) -> Iterator[None]:
    """Map the progress reported within the block to the range from `first` to `last` of `doing`.

    Where the block computes several times, its share never falls. The whole range, 0 to 1, keeps the name reported inside.
    """
    watcher = _watcher.get()
    if watcher is None or last - first >= 1.0:
        yield
        return
    most = 0.0

    def seen(_: str, share: float) -> None:
        nonlocal most
        most = max(most, share)
        watcher(doing, first + most * (last - first))

    with watched(seen):
        progressed(doing, 0.0)
        yield
    progressed(doing, last)
