"""What the steps so far spent, where the older ones need not be in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, overload


class PastBudgets(Sequence[Any]):
    """What each step spent; those before a kept state are read when somebody asks for them.

    Parameters
    ----------
    n_before : int
        Number of steps that are not in memory.
    read : callable, optional
        Gives what they spent, all of them.
    known : iterable
        What the steps after those spent.
    """

    def __init__(self, n_before: int = 0, read: Callable[[], Sequence[Any]] = tuple, known: Iterable[Any] = ()) -> None:
        self._n_before, self._read, self._known = n_before, read, list(known)

    def __len__(self) -> int:
        return self._n_before + len(self._known)

    @overload
    def __getitem__(self, step: int) -> Any: ...
    @overload
    def __getitem__(self, step: slice) -> list[Any]: ...
    def __getitem__(self, step: int | slice) -> Any:
        """What a step spent, or several."""
        if isinstance(step, slice):
            steps = range(len(self))[step]
            if len(steps) and min(steps[0], steps[-1]) < self._n_before:
                self._read_all()
            return [self._known[one - self._n_before] for one in steps]
        at = range(len(self))[step]
        if at < self._n_before:
            self._read_all()
        return self._known[at - self._n_before]

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])

    def __iadd__(self, more: Iterable[Any]) -> Self:
        self._known += list(more)
        return self

    def __copy__(self) -> PastBudgets:
        return PastBudgets(self._n_before, self._read, self._known)

    def __reduce__(self) -> tuple[Any, ...]:
        """Whole: who gets it elsewhere cannot read what is here."""
        return PastBudgets, (0, tuple, self[:])

    def _read_all(self) -> None:
        before = list(self._read())[: self._n_before]
        if len(before) != self._n_before:
            raise IndexError(f"expected what {self._n_before} steps spent, got {len(before)}")
        self._known, self._n_before = before + self._known, 0
