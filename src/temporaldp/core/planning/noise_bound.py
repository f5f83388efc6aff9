"""The least noise that can satisfy a level at a delta over a horizon, by the accounting of a plan: a certified lower bound.

Leakage falls where a release is left out, or has more noise. So every two consecutive steps satisfy the level as if
there were no others, and every step does alone: T steps have at least T // 2 times the least noise of two steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from temporaldp.core.accounting.monotone_search import bisected

FINER = 1.08
"""Ratio of neighbouring scales at which the noise of the first of two steps is looked at."""

COARSELY_CLOSE = 0.01
"""Relative distance at which a search for the scale of the other one ends, on the side that does not satisfy alpha."""


def least_mean_noise(
    horizon: int,
    alpha: float,
    alone: Callable[[float], float],
    both: Callable[[float, float], float] | None,
    amount: Callable[[float], float],
) -> float:
    """A lower bound of the mean amount of noise of T steps that satisfy alpha.

    `alone` is the leakage of one release by its scale, `both` that of two, or None where it depends on which two they are;
    `amount` the noise by its scale. All must be monotone.
    """
    least = _not_enough(alone, alpha, 1.0, 0.0)
    one = amount(least)
    if both is None or horizon < 2:
        return one
    two, first = math.inf, least
    other = _not_enough(lambda scale: both(first * FINER, scale), alpha, 2.0 * least, least)
    # Scales of the first step, at most; whatever lies beyond needs the noise of one release beside it, as everything
    # does
    for _ in range(40):
        two = min(two, amount(first) + amount(other))
        first *= FINER
        if other <= least * (1.0 + COARSELY_CLOSE) or amount(first) + one >= two:
            break
        other = _not_enough(lambda scale, at=first * FINER: both(at, scale), alpha, other, least)  # type: ignore[misc]
    two = min(two, amount(first) + one)
    return (horizon // 2 * two + horizon % 2 * one) / horizon


def _not_enough(leakage: Callable[[float], float], alpha: float, start: float, floor: float) -> float:
    """A scale from `floor` on up to which alpha is exceeded; `floor` where that satisfies alpha."""
    # Relative: a level that is exceeded by less counts as satisfied, which makes the bound smaller
    level = alpha * (1.0 + 1e-5)
    low, high = floor, start
    while leakage(high) > level:
        low, high = high, 2.0 * high
    return bisected(lambda scale: leakage(scale) > level, low, high, COARSELY_CLOSE)
