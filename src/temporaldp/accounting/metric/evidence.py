"""The leakage of every pair of values at every step, and why the worst pair leaks what it does: what a metric can tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.protocol import Direction, Evidence, largest_pair
from temporaldp.correlation import TransitionMatrix
from temporaldp.correlation.adversary import NONE
from temporaldp.correlation.protocol import Correlation
from temporaldp.errors import InputError
from temporaldp.kernels.lifting import flow_of
from temporaldp.values import compared_by_value, whole_number

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PairLink:
    """One link of the chain of pairs that makes a leakage: two values at one step, and how much is known of which it was.

    Parameters
    ----------
    step : int
        Index of the step, from 0.
    value, other_value : str
        The two values told apart.
    leakage : float
        Log ratio by which they are told apart, in nats: by the releases up to this step for links before the pair in question,
        by those from it on for links after it, by all for the pair itself. An upper bound.
    share : float
        How much of a small change here reaches the next link towards the pair in question; 1 for the pair itself.
    """

    step: int
    value: str
    other_value: str
    leakage: float
    share: float


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PairwiseLeakage(Evidence):
    """The leakage of every ordered pair of values, one metric a step; in nats, upper bounds.

    Parameters
    ----------
    states : tuple of str
        The values that rows and columns of a metric stand for.
    epsilons : array, shape (T,)
        What multiplies D at each step.
    guarantee : array, shape (n, n)
        D, closed under the triangle inequality.
    past, future : tuple of T arrays, shape (n, n)
        What arrives at each step from the releases before and after it. Steps at which nothing changes any more share one.
    backward_matrices, forward_matrices : Correlation
        What the adversary knows.
    """

    states: tuple[str, ...]
    epsilons: FloatArray
    guarantee: FloatArray
    past: tuple[FloatArray, ...]
    future: tuple[FloatArray, ...]
    backward_matrices: Correlation = NONE
    forward_matrices: Correlation = NONE

    def __post_init__(self) -> None:
        for array in (self.epsilons, self.guarantee, *self.past, *self.future):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.past)

    def __repr__(self) -> str:
        return f"PairwiseLeakage({len(self)} steps, {len(self.states)} states)"

    def metric(self, step: int, direction: Direction = "temporal") -> FloatArray:
        """Leakage of every ordered pair at a step, shape (n, n): row = the value, column = the one it is told from.

        A quasi-metric: zero on the diagonal, and the triangle inequality holds. Row and column follow `states`.

        Raises
        ------
        InputError
            There is no such step or direction.
        """
        at = self.checked_step(step, direction)
        parts = [self.epsilons[at] * self.guarantee]
        if direction != "forward":
            parts.append(self.past[at])
        if direction != "backward":
            parts.append(self.future[at])
        return np.asarray(sum(parts))

    def path(self, step: int, *, reach: int = 10) -> tuple[PairLink, ...]:
        """How the worst pair at a step comes about: pairs at earlier and later steps, in order of time.

        Each pair rests on several pairs one step further away; the one that matters most to it is followed, for at most `reach`
        steps in each direction and while anything arrives. A derivative at the present values, not a decomposition.
        """
        at = self.checked_step(step)
        if whole_number(reach, "a reach") < 0:
            raise InputError(f"expected a reach of 0 steps or more, got {reach}")
        here = self.metric(at)
        i, j = largest_pair(here)
        before = self._follow(self.backward_matrices, at, i, j, -1, reach)
        after = self._follow(self.forward_matrices, at, i, j, 1, reach)
        middle = PairLink(at, self.states[i], self.states[j], float(here[i, j]), 1.0)
        return (*reversed(before), middle, *after)

    def _follow(self, known: Correlation, at: int, i: int, j: int, way: int, reach: int) -> list[PairLink]:
        links: list[PairLink] = []
        for _ in range(reach):
            there = at + way
            if not known or not 0 <= there < len(self):
                break
            matrix = known.at(min(at, there))
            assert isinstance(matrix, TransitionMatrix)
            metric = self.metric(there, "backward" if way < 0 else "forward")
            flow = flow_of(matrix.dense(), metric, i, j)
            if not flow.shares.size or flow.shares[0] <= 0.0:
                break
            at, (i, j) = there, (int(k) for k in flow.pairs[0])
            leakage = float(metric[i, j])
            links.append(PairLink(there, self.states[i], self.states[j], leakage, min(1.0, float(flow.shares[0]))))
        return links
