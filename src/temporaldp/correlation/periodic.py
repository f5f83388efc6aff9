"""Matrices that depend on the clock: one for each phase of a period, which come again for ever."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from temporaldp.correlation.interval_matrix import IntervalMatrix
from temporaldp.correlation.transition import TransitionMatrix
from temporaldp.errors import InputError
from temporaldp.values import whole_number

Matrix: TypeAlias = TransitionMatrix | IntervalMatrix


@dataclass(frozen=True, slots=True, init=False)
class PeriodicMatrices:
    """What an adversary knows whose matrices depend on the clock; stands for a matrix in an `Adversary`.

    Parameters
    ----------
    matrices : sequence of at least two TransitionMatrix or IntervalMatrix
        One for each phase: element k is about the transition from phase k to the next one.
    phase : int
        Of the first step of the release; 0 is where element 0 leads on.

    Raises
    ------
    InputError
        Fewer than 2 phases, something that is no matrix, or a phase that is none.

    Examples
    --------
    >>> night, day = TransitionMatrix([[0.9, 0.1], [0.1, 0.9]]), TransitionMatrix([[0.6, 0.4], [0.4, 0.6]])
    >>> clock = PeriodicMatrices([night, day], phase=1)
    >>> clock.period, [matrix is day for matrix in clock.between(0, 3)]
    (2, [True, False, True])
    """

    matrices: tuple[Matrix, ...]
    phase: int

    def __init__(self, matrices: Iterable[Matrix], *, phase: int = 0) -> None:
        each = tuple(matrices)
        for position, matrix in enumerate(each):
            if not isinstance(matrix, TransitionMatrix | IntervalMatrix):
                raise InputError(
                    "expected one TransitionMatrix or IntervalMatrix for each phase, got "
                    f"{type(matrix).__name__} (item {position})"
                )
        if len(each) < 2:
            raise InputError(
                f"expected one matrix for each of at least 2 phases, got {len(each)}; a matrix that is always the same stands "
                "for itself"
            )
        if whole_number(phase, "the phase", least=0, error=InputError) >= len(each):
            raise InputError(f"expected a phase from 0 to {len(each) - 1}, got {phase}")
        object.__setattr__(self, "matrices", each)
        object.__setattr__(self, "phase", int(phase))

    @property
    def period(self) -> int:
        """Number of phases."""
        return len(self.matrices)

    def between(self, first: int, last: int) -> tuple[Matrix, ...]:
        """The matrices of the transitions `first`, ..., `last` - 1 of the release, counted from 0."""
        return tuple(self.matrices[(self.phase + k) % self.period] for k in range(first, last))
