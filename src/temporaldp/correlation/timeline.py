"""A user whose correlation changed: from which step on which matrices are known."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from temporaldp.correlation.adversary import Adversary
from temporaldp.correlation.states import require_same_states
from temporaldp.correlation.transition import TransitionMatrix
from temporaldp.errors import InputError


@dataclass(frozen=True, slots=True)
class Timeline:
    """What is known about one user, each correlation from a step on until the next.

    The matrices of a step are those that were valid at it: the backward one says how its value comes from the one before, the
    forward one how it goes on to the next. So the last step before a change has its old forward matrix, and the first one after
    it the new backward matrix.

    Parameters
    ----------
    starts : tuple of int
        The first step (from 0) of each, increasing; the first one is 0.
    known : tuple of Adversary
        With constant matrices, all in the same directions and for the same states.

    Examples
    --------
    >>> from temporaldp import temporal_leakage
    >>> calm, busy = (TransitionMatrix([[p, 1.0 - p], [1.0 - p, p]]) for p in (0.6, 0.9))
    >>> changed = Timeline((0,), (Adversary(calm, calm),)).changed(2, Adversary(busy, busy))
    >>> [matrix is busy for matrix in changed.until(4).backward], [matrix is busy for matrix in changed.until(4).forward]
    ([False, True, True], [False, False, True])
    """

    starts: tuple[int, ...]
    known: tuple[Adversary, ...]

    @property
    def current(self) -> Adversary:
        """The last one."""
        return self.known[-1]

    def changed(self, step: int, adversary: Adversary) -> Timeline:
        """With another correlation from a step on.

        Raises
        ------
        InputError
            Its matrices vary with time, are for other states, or are known in other directions.
        """
        if not (is_constant(adversary) and is_constant(self.current)):
            raise InputError(
                "expected constant matrices before and after a change, known exactly: a sequence or a clock says already how "
                "the correlation changes, and for sets of matrices there is no exact leakage"
            )
        for side in ("backward", "forward"):
            before, now = getattr(self.current, side), getattr(adversary, side)
            if (before is None) != (now is None):
                raise InputError(
                    f"expected the same directions as before, but the {side} correlation was {_known(before)} and is now "
                    f"{_known(now)}; where nothing is learnt in a direction, give a matrix with equal rows"
                )
        if self.current.states is not None and adversary.states is not None:
            require_same_states(self.current.states, adversary.states, what="the new correlation")
        if step == self.starts[-1]:
            return Timeline(self.starts, (*self.known[:-1], adversary))
        return Timeline((*self.starts, step), (*self.known, adversary))

    def until(self, n_steps: int) -> Adversary:
        """The adversary of the first `n_steps` steps, with one matrix a transition."""
        if len(self.known) == 1:
            return self.current.between(0, n_steps)
        if n_steps < 2:
            return Adversary(name=self.current.name)
        each = [self.known[bisect_right(self.starts, step) - 1] for step in range(n_steps)]
        backward = None if self.current.backward is None else [_constant(one.backward) for one in each[1:]]
        forward = None if self.current.forward is None else [_constant(one.forward) for one in each[:-1]]
        return Adversary(backward, forward, name=self.current.name)


def is_constant(adversary: Adversary) -> bool:
    """Whether each direction is one matrix that is known exactly, or unknown."""
    return all(isinstance(one, TransitionMatrix | None) for one in (adversary.backward, adversary.forward))


def _constant(matrix: object) -> TransitionMatrix:
    assert isinstance(matrix, TransitionMatrix)
    return matrix


def _known(matrix: object) -> str:
    return "unknown" if matrix is None else "known"
