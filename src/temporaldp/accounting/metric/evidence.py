"""Leakage of every pair of states at every step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temporaldp.accounting.protocol import Direction, Evidence
from temporaldp.values import FloatArray, compared_by_value


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PairwiseLeakage(Evidence):
    """Leakage of every ordered pair of states, one metric per step; in nats, upper bounds.

    Parameters
    ----------
    states : tuple of str
        In the order of rows and columns of a metric.
    epsilons : array, shape (T,)
        Factors of D at each step.
    guarantee : array, shape (n, n)
        D, closed under the triangle inequality.
    past, future : tuple of T arrays, shape (n, n)
        Incoming leakage at each step from the releases before and after it. Steps at which it has settled share one array.
    """

    states: tuple[str, ...]
    epsilons: FloatArray
    guarantee: FloatArray
    past: tuple[FloatArray, ...]
    future: tuple[FloatArray, ...]

    def __post_init__(self) -> None:
        for array in (self.epsilons, self.guarantee, *self.past, *self.future):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.past)

    def __repr__(self) -> str:
        return f"PairwiseLeakage({len(self)} steps, {len(self.states)} states)"

    def metric(self, step: int, direction: Direction = "temporal") -> FloatArray:
        """Leakage of every ordered pair at a step, shape (n, n): row = the state, column = the one it is compared with.

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
