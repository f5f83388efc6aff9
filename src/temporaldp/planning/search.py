"""The largest number that still holds a level, by evaluating what leaks and moving the number: always the side that holds."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

CLOSE = 1e-8
"""Relative distance from the largest number at which a search ends."""


def largest(worst: Callable[[float], float], low: float, high: float, ceiling: float) -> float:
    """The largest number up to `high` with ``worst <= ceiling``, to 1e-8; `low` has it, and worst increases.

    Halving (by ratio) down to where worst is finite, then Brent's method; the best point that holds is returned.
    """
    from scipy.optimize import brentq

    sure = low

    def excess(point: float) -> float:
        nonlocal sure
        value = worst(point) - ceiling
        if value <= 0.0:
            sure = max(sure, point)
        return value

    at_high = excess(high)
    while math.isinf(at_high) and high > sure * (1.0 + CLOSE):
        middle = math.sqrt(sure * high)
        value = excess(middle)
        if value > 0.0:
            high, at_high = middle, value
    if at_high > 0.0 and high > sure * (1.0 + CLOSE) and excess(sure) < 0.0:
        root = float(brentq(excess, sure, high, xtol=0.5 * CLOSE * max(sure, CLOSE * high), rtol=1e-12, maxiter=100))
        if root > sure:  # Brent may end on the far side
            excess(max(sure, root - CLOSE * sure))
    return sure


def stretched(shape: FloatArray, worst: Callable[[FloatArray], float], ceiling: float) -> FloatArray:
    """Budgets that hold the ceiling, times the largest factor that does."""
    high = ceiling / float(shape.max())
    return shape * largest(lambda factor: worst(shape * factor), 1.0, max(1.0, high), ceiling)


def levelled(budgets: FloatArray, worst: Callable[[FloatArray], float], ceiling: float) -> FloatArray:
    """Budgets that hold the ceiling, with every smaller one of the published steps raised to one level, as high as holds."""
    low = float(budgets[budgets > 0.0].min())

    def raised(level: float) -> FloatArray:
        return np.where(budgets > 0.0, np.maximum(budgets, level), 0.0)

    return raised(largest(lambda level: worst(raised(level)), low, max(low, ceiling), ceiling))
