"""The correlation protocol: the transition matrix between any two consecutive steps, in one direction of time.

=====================  ==============================================================  ========================
correlation            the matrix of transition t (from step t to step t + 1)          number of steps
=====================  ==============================================================  ========================
a matrix               itself: `TransitionMatrix`, or the set of an `IntervalMatrix`    any
`PerStep`              one of its own                                                  one more than matrices
`Periodic`             that of its phase of the clock                                  any
`Changing`             that of the last change                                         any
`NoCorrelation`        none: nothing is learned in this direction                      any
=====================  ==============================================================  ========================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from temporaldp.base.errors import InputError
from temporaldp.base.values import assign, whole_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from temporaldp.core.correlation.adversary import Matrix


class Correlation(ABC):
    """The matrix of every transition in one direction; false if the correlation is unknown."""

    __slots__ = ()

    matrices: tuple[Matrix, ...]
    """The matrices, each as often as it was given; empty for an unknown correlation."""

    @property
    def n_steps(self) -> int | None:
        """Number of steps T that it covers; None for any number."""
        return None

    @property
    def period(self) -> int | None:
        """Number of phases after which matrices repeat; None if they do not depend on a clock."""
        return None

    @property
    def is_constant(self) -> bool:
        """Whether every transition has the same matrix, or none."""
        return False

    @abstractmethod
    def at(self, transition: int) -> Matrix | None:
        """The matrix of a transition, counted from 0 in the order of time; None if the correlation is unknown."""

    def between(self, first: int, last: int) -> Correlation:
        """The correlation of transitions `first`, ..., `last` - 1 alone, with a matrix for each unless it is constant."""
        if self.is_constant:
            return self
        return PerStep(tuple(map(self.at, range(first, last)))) if last > first else NoCorrelation()  # type: ignore[arg-type]

    def over(self, n_steps: int) -> Correlation:
        """The correlation of a release of `n_steps` steps, with a matrix for each transition unless it is constant."""
        return self if self.is_constant or self.n_steps is not None else self.between(0, n_steps - 1)

    def in_reverse(self) -> Correlation:
        """The correlation with its transitions in the opposite order; `InputError` where there is no last one."""
        if self.is_constant:
            return self
        raise InputError(
            f"expected matrices for a number of steps, got a correlation without an end ({self.kind}); restrict it by `between`"
        )

    @abstractmethod
    def mapped(self, change: Callable[[Matrix], Matrix]) -> Correlation:
        """The correlation with every matrix changed."""

    @property
    def current(self) -> Correlation:
        """The correlation after its last change."""
        return self

    def changed(self, transition: int, matrix: Matrix) -> Changing:
        """The correlation with another matrix from a transition on; for constant ones, and those that have changed before."""
        raise InputError(f"expected a constant correlation, got one of kind {self.kind}")

    @property
    @abstractmethod
    def kind(self) -> str:
        """Data beside the matrices that identify the correlation, for digests."""

    def document(self) -> dict[str, Any] | None:
        """The correlation as JSON values, for `correlation_from`; None of an unknown one.

        Raises
        ------
        InputError
            It is not one of this package: it cannot be made again from a file.
        """
        raise InputError(
            f"a correlation of the class {type(self).__name__} cannot be written to a file, because nothing in the file could "
            "make it again; write its matrices, or restrict it to a number of steps (`over`)"
        )


class Constant(Correlation):
    """One matrix for every transition: base class of matrices."""

    __slots__ = ()

    states: tuple[str, ...]
    is_set = False
    """Whether the matrix is known up to a set only."""
    is_constant = True
    kind = "constant"

    @property
    def n_states(self) -> int:
        """Number of states n."""
        return len(self.states)

    @property
    def matrices(self) -> tuple[Any, ...]:  # type: ignore[override]
        """The matrix itself, as a tuple of one."""
        return (self,)

    def changed(self, transition: int, matrix: Any) -> Changing:
        """Return the matrix until a transition, and another one from then on."""
        return Changing((self,), (0,)).changed(transition, matrix)  # type: ignore[arg-type]

    def at(self, transition: int) -> Any:
        """Return the matrix itself, which applies to every transition."""
        return self

    def mapped(self, change: Callable[[Any], Any]) -> Any:
        """Return the mapped matrix."""
        return change(self)


@dataclass(frozen=True, slots=True)
class NoCorrelation(Correlation):
    """An unknown correlation: each release is evidence of its own step alone."""

    matrices = ()
    is_constant = True
    kind = "none"

    def __bool__(self) -> bool:
        return False

    def document(self) -> None:
        """None."""

    def at(self, transition: int) -> None:
        """None: no matrix is known."""

    def mapped(self, change: Callable[[Matrix], Matrix]) -> NoCorrelation:
        """Return the same object."""
        return self


@dataclass(frozen=True, slots=True)
class Several(Correlation):
    """Several matrices: base class of correlations that vary with time.

    Parameters
    ----------
    matrices : tuple of TransitionMatrix or IntervalMatrix
    """

    matrices: tuple[Matrix, ...]

    def mapped(self, change: Callable[[Matrix], Matrix]) -> Self:
        """Return the same correlation of mapped matrices."""
        return replace(self, matrices=tuple(map(change, self.matrices)))


@dataclass(frozen=True, slots=True)
class PerStep(Several):
    """One matrix for each transition: T - 1 matrices cover T steps.

    Parameters
    ----------
    matrices : tuple of TransitionMatrix or IntervalMatrix
        At least one, in the order of time.
    """

    kind = "each"

    @property
    def n_steps(self) -> int:
        """One more than matrices."""
        return len(self.matrices) + 1

    def document(self) -> dict[str, Any]:
        """The distinct matrices, and their order, as JSON values."""
        each = {id(matrix): matrix for matrix in self.matrices}
        place = {one: k for k, one in enumerate(each)}
        return {"each": [one.document() for one in each.values()], "order": [place[id(one)] for one in self.matrices]}

    def at(self, transition: int) -> Matrix:
        """Return the matrix of a transition."""
        return self.matrices[transition]

    def between(self, first: int, last: int) -> Correlation:
        """The matrices of these transitions; no correlation where there is no transition."""
        last = max(first, last)
        if not 0 <= first <= last <= len(self.matrices):
            raise InputError(
                f"expected steps of the {len(self.matrices) + 1} that the matrices cover, got {last - first + 1} from step "
                f"{first} on (from 0)"
            )
        return PerStep(self.matrices[first:last]) if last > first else NoCorrelation()

    def in_reverse(self) -> PerStep:
        """The matrices with the last one first."""
        return PerStep(self.matrices[::-1])


@dataclass(frozen=True, slots=True, init=False)
class Periodic(Several):
    """Periodic correlation: one matrix for each phase of a clock.

    Parameters
    ----------
    matrices : sequence of at least two TransitionMatrix, IntervalMatrix or array_like, shape (n, n)
        One for each phase: element k is about the transition from phase k to the next one.
    phase : int
        Phase of the first step of the release; element 0 is the transition out of phase 0.

    Raises
    ------
    InputError
        There are fewer than two matrices, or the phase is not below the period; `MatrixError` for an element that is no matrix.

    Examples
    --------
    >>> from temporaldp import TransitionMatrix
    >>> night, day = TransitionMatrix([[0.9, 0.1], [0.1, 0.9]]), TransitionMatrix([[0.6, 0.4], [0.4, 0.6]])
    >>> clock = Periodic([night, day], phase=1)
    >>> clock.period, [matrix is day for matrix in clock.between(0, 3).matrices]
    (2, [True, False, True])
    """

    phase: int

    def __init__(self, matrices: Iterable[Matrix | ArrayLike], *, phase: int = 0) -> None:
        from temporaldp.core.correlation.transition import TransitionMatrix

        each = tuple(one if isinstance(one, Constant) else TransitionMatrix(one) for one in matrices)
        if len(each) < 2:
            raise InputError(
                f"expected one matrix for each of at least 2 phases, got {len(each)}; a matrix that is always the same stands "
                "for itself"
            )
        if whole_number(phase, "the phase", least=0, error=InputError) >= len(each):
            raise InputError(f"expected a phase from 0 to {len(each) - 1}, got {phase}")
        assign(self, matrices=each, phase=int(phase))

    @property
    def period(self) -> int:
        """Number of phases."""
        return len(self.matrices)

    @property
    def kind(self) -> str:
        """The clock and the first phase."""
        return f"clock from {self.phase}"

    def document(self) -> dict[str, Any]:
        """The matrix of each phase, and the phase of the first step."""
        return {"each": [one.document() for one in self.matrices], "phase": self.phase}

    def at(self, transition: int) -> Matrix:
        """Return the matrix of the transition's phase."""
        return self.matrices[(self.phase + transition) % len(self.matrices)]


@dataclass(frozen=True, slots=True)
class Changing(Several):
    """Piecewise constant correlation: each matrix is valid from its first transition on.

    Parameters
    ----------
    matrices : tuple of TransitionMatrix
    starts : tuple of int
        The first transition of each matrix, increasing; the first one is 0.
    """

    starts: tuple[int, ...]

    @property
    def current(self) -> Matrix:
        """The last matrix."""
        return self.matrices[-1]

    def changed(self, transition: int, matrix: Matrix) -> Changing:
        """The correlation with another matrix from a transition on, in place of one that begins there."""
        n = bisect_left(self.starts, transition)
        return Changing((*self.matrices[:n], matrix), (*self.starts[:n], transition))

    @property
    def kind(self) -> str:
        """The transitions at which it changes."""
        return f"changing at {self.starts}"

    def at(self, transition: int) -> Matrix:
        """Return the matrix of the last change up to the transition."""
        return self.matrices[bisect_right(self.starts, transition) - 1]
