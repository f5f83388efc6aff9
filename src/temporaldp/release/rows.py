"""The rows of a ledger, of which the older ones are read when somebody asks for them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import overload

from temporaldp.release.chain import LedgerRow

MOST_SINGLE_READS = 256
"""Older rows that are read one by one, before all of them are."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """A block that makes very many objects, none of them in a cycle, without Python's search for cycles among them.

    Half a million rows are then read and checked in half the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Rows(Sequence[LedgerRow]):
    """The rows of all steps.

    Parameters
    ----------
    known : iterable of LedgerRow
    n_before : int
        Number of steps before those, which are not in memory.
    read_one, read_all : callable
        Give the row of such a step, and all of them, checked.
    """

    def __init__(
        self,
        known: Iterable[LedgerRow] = (),
        n_before: int = 0,
        read_one: Callable[[int], LedgerRow] | None = None,
        read_all: Callable[[], list[LedgerRow]] | None = None,
    ) -> None:
        self._known, self._n_before = list(known), n_before
        self._read_one, self._read_all, self._n_read = read_one, read_all, 0

    def __len__(self) -> int:
        return self._n_before + len(self._known)

    @property
    def n_before(self) -> int:
        """Number of steps that are not in memory."""
        return self._n_before

    @property
    def recent(self) -> list[LedgerRow]:
        """The rows that are in memory."""
        return self._known

    @overload
    def __getitem__(self, step: int) -> LedgerRow: ...
    @overload
    def __getitem__(self, step: slice) -> list[LedgerRow]: ...
    def __getitem__(self, step: int | slice) -> LedgerRow | list[LedgerRow]:
        """The row of a step, or of several."""
        if isinstance(step, slice):
            steps = range(len(self))[step]
            if len(steps) and min(steps[0], steps[-1]) < self._n_before:
                self._take_in_all()
            if not len(steps):
                return []
            if steps.step == 1:
                return self._known[steps[0] - self._n_before : steps[-1] + 1 - self._n_before]
            return [self._known[one - self._n_before] for one in steps]
        at = range(len(self))[step]
        if at >= self._n_before:
            return self._known[at - self._n_before]
        self._n_read += 1
        if self._n_read <= MOST_SINGLE_READS and self._read_one is not None:
            return self._read_one(at)
        self._take_in_all()
        return self._known[at]

    def __iter__(self) -> Iterator[LedgerRow]:
        return iter(self[:])

    def append(self, row: LedgerRow) -> None:
        """Add a row."""
        self._known.append(row)

    def extend(self, rows: Iterable[LedgerRow]) -> None:
        """Add rows."""
        self._known.extend(rows)

    def _take_in_all(self) -> None:
        if self._n_before and self._read_all is not None:
            older = self._read_all()
            self._known, self._n_before = older + self._known, 0
