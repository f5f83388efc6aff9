"""Progress of long computations: modules that compute report it to a watcher, if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Watcher = Callable[[str, float], None]

_watcher: ContextVar[Watcher | None] = ContextVar("temporaldp_progress", default=None)


def progressed(doing: str, share: float) -> None:
    """Report that a share (0 to 1) of a computation is done, if there is a watcher."""
    if watcher := _watcher.get():
        watcher(doing, share)


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
    with watched(lambda _, share: watcher(doing, first + share * (last - first))):
        yield
    watcher(doing, last)
