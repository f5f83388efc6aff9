"""Incoming leakage through matrices known up to intervals, step by step: upper bounds for every matrix of the set.

Notation
--------
K      incoming leakage about every ordered pair of states, shape (n, n): `temporaldp.core.kernels.interval`, never above
       the loss of the profile of intervals (the paper's kind of bound)
a      spread: the log ratios of the likelihoods of everything up to a step are at most ``a = e + max K``

Incoming leakage is a claim about all steps before: K, and for some steps back what they spent and their spread. A claim that
holds of more holds of less, so that two of them can be compared number by number, and whatever is computed from the larger one
is an upper bound for both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from temporaldp.base.values import FloatArray
from temporaldp.core.accounting.protocol import Side
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.adversary import Matrix
from temporaldp.core.kernels.interval import MOST_ENUMERATED_STATES, arrival, depth, enumerates

PAIR_SUM_ROUNDING = 1.0 + 4.0 * float(np.finfo(np.float64).eps)
"""By which a sum of two numbers is raised, so that it is an upper bound."""


@dataclass(frozen=True, slots=True, eq=False)
class Before:
    """A step further back: the matrix of the transition from it, its budget, and the spread of everything up to it."""

    matrix: Matrix
    epsilon: float
    spread: float


@dataclass(frozen=True, slots=True, eq=False)
class IntervalArrival:
    """K, and the steps before, the nearest first; none at the first step."""

    pairs: FloatArray
    steps: tuple[Before, ...] = ()

    def spread_with(self, epsilon: float) -> float:
        """The spread of everything up to a step with this budget."""
        return (float(self.pairs.max()) + epsilon) * PAIR_SUM_ROUNDING


def arrived_through(steps: Sequence[Before]) -> FloatArray:
    """K at the other end of the first step's transition."""
    n, first = steps[0].matrix.n_states, steps[0]
    # Relative: the loss of a profile is exact to rounding, and an upper bound when raised by this
    uniform = min(float(first.matrix.leakage_profile().loss(first.spread)) * (1.0 + 1e-15), first.spread)
    if n > MOST_ENUMERATED_STATES:
        return np.where(np.eye(n, dtype=bool), 0.0, uniform)
    bounds = [one.matrix.bounds for one in steps]
    found = arrival(bounds, [one.epsilon for one in steps[:-1]], [one.spread for one in steps])
    return np.minimum(found, uniform)


def unraised_arrival(matrix: Matrix, epsilon: float, spread: float) -> IntervalArrival | None:
    """K of a step whose past has this spread, if the step does not raise it: then no later step does; else None.

    A shorter past is one whose first releases carry no information, so that every horizon is covered.
    """
    if not math.isfinite(spread):
        return None
    steps = (Before(matrix, epsilon, spread),) * (depth(matrix.n_states) + 1)
    found = IntervalArrival(arrived_through(steps), steps)
    return found if found.spread_with(epsilon) <= spread else None


class IntervalSteps:
    """One user's matrices, one transition at a time; a `temporaldp.core.accounting.stepwise.Steps` of claims.

    Parameters
    ----------
    user : Adversary
    distance : float
        Distance of the two states furthest apart, the factor of each epsilon.
    """

    def __init__(self, user: Adversary, distance: float = 1.0) -> None:
        self.user, self.distance = user, distance
        n = 1 if user.states is None else len(user.states)  # where nothing is known, nothing arrives about any pair
        self.nothing = IntervalArrival(np.zeros((n, n)))
        # What is kept is so much more than what was computed that nearly the same numbers hardly ever make more of it: a
        # hundred times what rounding makes of an enumeration, and of a search for a pair's ratio more
        self._raised = (1.0 + 1e-12) if enumerates(n) else (1.0 + 1e-9)
        self._known: dict[tuple[tuple[int, float, float], ...], IntervalArrival] = {}

    def arriving(self, side: Side, transition: int, release: float, before: IntervalArrival) -> IntervalArrival:
        """K through the transition, from some steps back."""
        matrix = getattr(self.user, side).at(transition)
        if matrix is None:
            return self.nothing
        spent = release * self.distance
        steps = (Before(matrix, spent, before.spread_with(spent)), *before.steps)[: depth(matrix.n_states) + 1]
        # A search for the largest budget asks for the same steps again and again.
        key = tuple((id(one.matrix), one.epsilon, one.spread) for one in steps)
        if key not in self._known:
            # Claims of one user that are kept, of some kilobytes each. If doubled: nothing where searches are short.
            if len(self._known) >= 4096:
                self._known.clear()
            self._known[key] = IntervalArrival(arrived_through(steps), steps)
        return self._known[key]

    def leakage(self, past: IntervalArrival, release: float, future: IntervalArrival) -> float:
        """Return the largest leakage of any pair of states, in nats, rounded up."""
        return (float((past.pairs + future.pairs).max()) + release * self.distance) * PAIR_SUM_ROUNDING

    def never_more(self, one: IntervalArrival, other: IntervalArrival) -> bool:
        """Whether the larger claim holds of all that the smaller one does."""
        return bool((one.pairs <= other.pairs).all()) and all(
            a.matrix is b.matrix and a.epsilon <= b.epsilon and a.spread <= b.spread
            for a, b in zip(one.steps, other.steps, strict=False)
        )

    def raised(self, arrived: IntervalArrival) -> IntervalArrival:
        """Raise the claim by more than searches can differ."""
        steps = tuple(Before(one.matrix, one.epsilon, one.spread * self._raised) for one in arrived.steps)
        return IntervalArrival(arrived.pairs * self._raised, steps)
