"""Suprema where matrices depend on the clock: over all horizons, and over all phases.

Every step spends e. Let a be a spread at phase f that the releases of some whole periods do not raise: if the leakage of
everything up to a step of phase f is at most a, so is that of everything up to the step that many periods later. Then a bounds
every horizon: a shorter past is one whose first releases have constant likelihoods. A past of leakage at most a is a release
with budget a, so that the leakage of ``a, e, e, ...`` bounds that of every past (Theory, section 14), and incoming leakage
some periods later hardly depends on a. Only the series of an accounting method are needed.

Under approximate DP the leakage of a past is not a number but a curve. There the matrices of all phases form a set, any of
which may apply at every step: an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from temporaldp.base.values import FloatArray
from temporaldp.core.accounting.margins import CLOCK_MARGIN
from temporaldp.core.accounting.monotone_search import largest_in_few_tries
from temporaldp.core.accounting.protocol import DIRECTIONS, SIDES, Accounting, Leakage, Limits, Side, largest_limits
from temporaldp.core.correlation import Adversary, IntervalMatrix


def limits_of(method: Accounting[Any, Any], users: Sequence[Adversary], release: Any, *, close: float = 1e-6) -> Limits:
    """Suprema over an infinite horizon of one release, each the largest over users, whose matrices may be periodic.

    Blocks of steps are lengthened until both sides of a supremum are `close`, relatively; it then counts as certified.
    """
    if all(user.period is None for user in users):
        return method.limits(users, release)
    return largest_limits([_limits(method, user, release, close) for user in users])


def sustainable_epsilon_of(method: Accounting[Any, Any], users: Sequence[Adversary], alpha: float) -> float:
    """Return a sustainable budget at a level alpha, close to the largest; 0 if none is found."""
    if all(user.period is None for user in users):
        return method.sustainable_epsilon(users, alpha)

    def worst(epsilon: float) -> float:
        # If doubled, the share costs up to as large a one of the budget
        return limits_of(method, users, method.of_epsilons(np.array([epsilon])), close=1e-2).temporal

    most = alpha / float(method.release_epsilons(method.of_epsilons(np.ones(1)))[0])
    ceiling = alpha * (1.0 - CLOCK_MARGIN)
    # Below a millionth of alpha no sustainable budget is sought
    return largest_in_few_tries(worst, 1e-6 * most, most, ceiling)


def _limits(method: Accounting[Any, Any], user: Adversary, release: Any, close: float) -> Limits:
    if user.period is None:
        return method.limits([user], release)
    if method.delta:
        return method.limits([_all_phases(user)], release)
    # Leakage of a release about two states is no more than about the two furthest apart.
    epsilon, plain = float(method.release_epsilons(release)[0]), method.for_epsilons
    # Steps of a block of whole periods: the least that is tried first, and the most, after which no supremum is found
    length = user.period * -(-12 // user.period)
    best: Limits | None = None
    while length <= max(400, user.period):
        found = _bounded(plain, user, epsilon, length, close)
        best = found or best
        if found is not None and found.certified:
            return found
        length *= 2
    if best is not None:
        return replace(best, certified=not method.is_exact)
    past, future = (math.inf if known.matrices else epsilon for known in (user.backward, user.forward))
    return Limits(past, future, math.inf, certified=not method.is_exact)


def _all_phases(user: Adversary) -> Adversary:
    """Return the adversary of the sets that contain the matrices of all phases, at every step."""

    def hull(side: Side) -> IntervalMatrix | None:
        matrices = getattr(user, side).matrices
        if not matrices:
            return None
        lows, highs = zip(*(matrix.bounds for matrix in matrices), strict=True)
        return IntervalMatrix(np.min(lows, axis=0), np.max(highs, axis=0), matrices[0].states)

    return Adversary(hull("backward"), hull("forward"), name=user.name)


def _bounded(method: Accounting[Any, Any], user: Adversary, epsilon: float, length: int, close: float) -> Limits | None:
    """Suprema by blocks of so many steps, a multiple of the period; None if a block raises every spread that is tried."""
    assert user.period is not None
    spent = np.full(2 * length + 1, epsilon)
    plain = _series(method, user, spent)
    ends = [_spread(method, user, epsilon, length, plain, side) for side in SIDES]
    if None in ends:
        return None
    spent[0], spent[-1] = ends
    above = _series(method, user, spent)
    # Steps that are at least a block away from both ends, or from the one that counts.
    middle = slice(length - user.period // 2, length - user.period // 2 + user.period)
    last, first = slice(2 * length - user.period, 2 * length), slice(1, user.period + 1)
    past, future = float(above.backward[last].max()), float(above.forward[first].max())
    both = max(past, future, float(above.temporal[middle].max()))
    pairs = zip(DIRECTIONS, (past, future, both), strict=True)
    certified = all(float(getattr(plain, direction).max()) >= (1.0 - close) * high for direction, high in pairs)
    return Limits(past, future, both, certified=certified)


def _spread(
    method: Accounting[Any, Any], user: Adversary, epsilon: float, length: int, plain: Leakage, side: Side
) -> float | None:
    """A spread at one end of a block that the block does not raise; None if the one that is tried is raised."""
    backward = side == "backward"
    if not getattr(user, side):
        return epsilon
    first, last = (0, -1) if backward else (-1, 0)
    # A spread is looked for so much above what a long series reaches
    spread = 1.25 * float(getattr(plain, side)[last])
    spent = np.full(length + 1, epsilon)
    spent[first] = spread
    alone = Adversary(backward=user.backward) if backward else Adversary(forward=user.forward)
    after = float(getattr(_series(method, alone, spent), side)[last])
    return spread if after <= spread else None


def _series(method: Accounting[Any, Any], user: Adversary, spent: FloatArray) -> Leakage:
    (found,) = method.series([user.over(len(spent))], method.of_epsilons(spent))
    return found
