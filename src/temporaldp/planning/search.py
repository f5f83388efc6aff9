"""Budgets enlarged as far as a level allows: all by one factor, or the smaller ones to one level."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from temporaldp.accounting.monotone_search import largest
from temporaldp.values import FloatArray


def stretched(shape: FloatArray, worst: Callable[[FloatArray], float], ceiling: float) -> FloatArray:
    """Budgets times the largest factor with which they satisfy the ceiling."""
    high = ceiling / float(shape.max())
    return shape * largest(lambda factor: worst(shape * factor), 1.0, max(1.0, high), ceiling)


def levelled(budgets: FloatArray, worst: Callable[[FloatArray], float], ceiling: float) -> FloatArray:
    """Budgets with the smaller ones of the published steps raised to one number, the largest that satisfies the ceiling."""
    low = float(budgets[budgets > 0.0].min())

    def raised(level: float) -> FloatArray:
        return np.where(budgets > 0.0, np.maximum(budgets, level), 0.0)

    return raised(largest(lambda level: worst(raised(level)), low, max(low, ceiling), ceiling))
