"""Leakage of a reserve: the same budget at every step that follows, over an infinite horizon.

Notation
--------
t          the next step; steps before it are spent
K_B, K_F   incoming leakage about a pair of states from the past and from the future
c          coefficients of a rollout (`temporaldp.core.kernels.continued`)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from temporaldp.base.values import ROUNDOFF as U
from temporaldp.base.values import FloatArray
from temporaldp.core.accounting.exact.arrivals import pair_values
from temporaldp.core.accounting.exact.incoming import MANY, OnlineProblem, Transitions
from temporaldp.core.kernels.chain import Chain
from temporaldp.core.kernels.continued import Coefficients


@dataclass(frozen=True, slots=True, eq=False)
class Reserve:
    """A budget of every later step, over an infinite horizon and with constant matrices, and its leakage.

    Parameters
    ----------
    epsilon : float
        Budget of each step, in nats.
    future : array, shape (pairs,)
        Incoming leakage of any step from the reserve about each pair, in nats, upper bounds.
    rollouts : Coefficients or None
        Rollouts into the past from all later steps that the past may raise above the level.
    """

    epsilon: float
    future: FloatArray
    rollouts: Coefficients | None = None

    def ahead(self, problem: OnlineProblem, side: Transitions, t: int) -> tuple[Chain, float]:
        """The steps after t, the furthest first, then t with nothing released there; and their incoming leakage at t."""
        number, largest = side.number(t), float(self.future.max(initial=0.0))
        if self.epsilon == 0.0:
            return side.chain(np.array([number]), np.zeros(1), np.zeros(1)), 0.0
        up = np.array([math.expm1(self.epsilon), 0.0])
        spread = np.array([min((self.epsilon + largest) * (1.0 + 4.0 * U), problem.alpha), 0.0])
        return side.chain(np.array([number, number]), up, spread, infinite=True), largest


def largest_close(problem: OnlineProblem, reserve: float) -> Reserve | None:
    """A reserve, or one smaller by some billionths, with its leakage; None if the level does not allow it."""
    if reserve > problem.level:
        return None
    if reserve <= 0.0 or problem.n < 2:
        return Reserve(max(reserve, 0.0), np.zeros(len(problem.pairs[0])))
    assert all(side is None or side.which is None for side in problem.sides), "matrices vary with time"
    # Shares of a reserve that are given up, one after the other, until it lasts with room for rounding; the last is 7e-7
    for share in (0.0, *(1e-11 * 16.0**k for k in range(5))):
        found = _infinite(problem, reserve * (1.0 - share))
        if not isinstance(found, float):
            return found
        # Share by which the level may be exceeded at most for that to be tried
        if found > problem.alpha * (1.0 + 1e-3):
            return None
    return None


def _infinite(problem: OnlineProblem, epsilon: float) -> Reserve | float:
    """The reserve over an infinite horizon; or what it leaks, if that is too much."""
    sides, steps = [], np.zeros(len(problem.pairs[0]), np.int64)
    for side in problem.sides:
        found = np.zeros(len(steps))
        if side is not None:
            # Suppose that no horizon's leakage exceeds alpha: what is proved then proves it (Theory, section 21).
            last, up = np.array([len(side.matrices) - 1]), np.array([math.expm1(epsilon)])
            chain = side.chain(last, up, np.array([problem.alpha]), infinite=True)
            found = pair_values(chain, steps, *problem.pairs, np.full(len(steps), up[0])).proved
        sides.append(found)
    past, future = sides
    worst = float((past + future).max()) + epsilon
    if not worst <= problem.level - problem.slack:
        return worst
    rollouts = _repeating_rollouts(problem, epsilon, problem.level - epsilon - future)
    # Where rollouts come to no end, a billionth less would not end them.
    return math.inf if rollouts is None else Reserve(epsilon, future, rollouts)


def _repeating_rollouts(problem: OnlineProblem, epsilon: float, level: FloatArray) -> Coefficients | None:
    """Rollouts into the past from every later step, through steps with the reserve; None if they do not end."""
    side = problem.backward
    if side is None:
        return Coefficients.none(problem.n)
    last = side.starts[-1] + 1 if side.starts else 0
    pairs, items = np.arange(len(level)), problem.rollouts(side, last, level)
    kept = [(pairs[:0], items[:0])]
    work = 0
    # Entries of coefficients that the search for a reserve over an infinite horizon advances before it is given up: a
    # second or two. If doubled, a few more chains that hardly forget have a reserve.
    while work <= (1 << 26):
        pairs, items = problem.unsealed(pairs, items)
        kept.append((pairs, items))
        if not len(items) or len(kept) > MANY:
            numbers, parts = zip(*kept, strict=True)
            kept = [problem.unsealed(np.concatenate(numbers), Coefficients.joined(parts))]
        if not len(items):
            return kept[0][1]
        items = items.advanced(epsilon, side.at(last))
        work += items.now.c.size * problem.n + 1000 * problem.n
    return None
