"""Leakage of a reserve: the same budget at every step that follows, over an infinite horizon or until the matrices end.

Notation
--------
t          the next step; steps before it are spent
K_B, K_F   incoming leakage about a pair of states from the past and from the future
c          coefficients of a rollout (`temporaldp.core.kernels.continued`)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from temporaldp.base.values import ROUNDOFF as U
from temporaldp.base.values import FloatArray
from temporaldp.core.accounting.exact.arrivals import pair_values
from temporaldp.core.accounting.exact.incoming import KEPT, LEAST_KEPT, MANY, Incoming, OnlineProblem, Transitions
from temporaldp.core.kernels.chain import Chain
from temporaldp.core.kernels.continued import Coefficients


@dataclass(frozen=True, slots=True, eq=False)
class Reserve:
    """A budget of every later step, over an infinite or a finite horizon, and its leakage.

    Parameters
    ----------
    epsilon : float
        Budget of each step, in nats.
    future : array, shape (1, pairs) or (T, pairs)
        Incoming leakage from the reserve, the same at every step or one for each.
    rollouts : Coefficients or None
        Over an infinite horizon, rollouts into the past from all later steps that the past may raise above the level.
    reach : int
        Over a finite horizon, number of later steps with such rollouts, at most.
    kept : int
        Over a finite horizon, number of later steps that the correlation remembers.
    """

    epsilon: float
    future: FloatArray
    rollouts: Coefficients | None = None
    reach: int = 0
    kept: int = 0

    def arriving(self, t: int) -> FloatArray:
        """Incoming leakage of step t about each pair, in nats, upper bounds."""
        return np.asarray(self.future[min(t, len(self.future) - 1)])

    def ahead(self, problem: OnlineProblem, side: Transitions, t: int) -> tuple[Chain, float]:
        """The steps after t, the furthest first, then t with nothing released there; and their incoming leakage at t."""
        largest = self.future.max(axis=1, initial=0.0)
        if self.epsilon == 0.0:
            return side.chain(np.array([side.number(t)]), np.zeros(1), np.zeros(1)), 0.0
        if len(self.future) == 1:
            number, both = side.number(t), np.array([math.expm1(self.epsilon), 0.0])
            spread = np.array([self._spread(problem, largest[0]), 0.0])
            return side.chain(np.array([number, number]), both, spread, infinite=True), float(largest[0])
        last = min(len(self.future) - 1, t + self.kept)
        steps = range(last, t, -1)
        into = np.array([side.number(s) for s in (*steps, t)])
        spread = np.array([*(self._spread(problem, largest[s]) for s in steps), 0.0])
        up = np.append(np.full(len(steps), math.expm1(self.epsilon)), 0.0)
        if last < len(self.future) - 1:
            up[0] = np.expm1(spread[0])
        return side.chain(into, up, spread), float(largest[t])

    def _spread(self, problem: OnlineProblem, largest: float) -> float:
        return min((self.epsilon + largest) * (1.0 + 4.0 * U), problem.alpha)

    def later(self, problem: OnlineProblem, t: int) -> Coefficients | None:
        """Rollouts into the past from all later steps, up to step t, that the past may raise above the level."""
        if self.reach:
            return _from_later(problem, self, min(len(self.future) - 1, t + self.reach), t)[0]
        return self.rollouts


def largest_close(problem: OnlineProblem, reserve: float) -> Reserve | None:
    """A reserve, or one smaller by some billionths, with its leakage; None if the level does not allow it."""
    if reserve > problem.level:
        return None
    if reserve <= 0.0 or problem.n < 2:
        return Reserve(max(reserve, 0.0), np.zeros((1, len(problem.pairs[0]))))
    make = _infinite if all(side is None or side.which is None for side in problem.sides) else _finite
    # Shares of a reserve that are given up, one after the other, until it lasts with room for rounding; the last is 7e-7
    for share in (0.0, *(1e-11 * 16.0**k for k in range(5))):
        found = make(problem, reserve * (1.0 - share))
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
    return math.inf if rollouts is None else Reserve(epsilon, future[None], rollouts)


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


def _finite(problem: OnlineProblem, epsilon: float) -> Reserve | float:
    """The reserve until the matrices end; or what it leaks, if that is too much."""
    n_steps = problem.horizon
    assert n_steps is not None
    side = problem.forward
    ahead = [Incoming.at_start(problem, side, n_steps - 1)]
    for step in range(n_steps - 1, 0, -1):
        ahead.append(ahead[-1].after(problem, side, epsilon, step - 1, close=True))
    future = np.array([one.leakage for one in reversed(ahead)])
    past, worst = Incoming.at_start(problem, problem.backward), 0.0
    for step in range(n_steps):
        worst = max(worst, float((past.leakage + future[step]).max()) + epsilon)
        past = past.after(problem, problem.backward, epsilon, step + 1, close=True)
    if not worst <= problem.level - problem.slack:
        return worst
    found = Reserve(epsilon, future, kept=KEPT * ahead[-1].depth + LEAST_KEPT)
    if problem.backward is None:
        return found
    return replace(found, reach=_from_later(problem, found, n_steps - 1, 0)[1])


def _from_later(problem: OnlineProblem, reserve: Reserve, last: int, step: int) -> tuple[Coefficients, int]:
    """Rollouts into the past from the steps up to `last`, come to `step`; and how far the furthest of them came anywhere."""
    side = problem.backward
    assert side is not None
    numbers, items, reach = np.zeros(0, np.int64), Coefficients.none(problem.n), 0
    every = np.arange(len(problem.pairs[0]))
    for s in range(last, step, -1):
        new = problem.rollouts(side, s, problem.level - reserve.epsilon - reserve.arriving(s))
        items = Coefficients.joined((items, new))
        # Numbers tell steps apart, so that no rollout is dominated by one from another step.
        numbers = np.concatenate((numbers, s * len(every) + every))
        kept = np.flatnonzero(~(items.excess(problem.alpha) <= problem.slack))
        numbers, items = numbers[kept], items[kept]
        reach = max(reach, int(numbers.max(initial=0)) // len(every) - (s - 1))
        if s > step + 1:
            items = items.advanced(reserve.epsilon, side.at(s - 1))
    return items, reach
