"""The mechanism protocol: a privacy profile, the delta of every epsilon, when one person's state is replaced.

A profile is the largest hockey-stick divergence between the outputs for any two states, in both orders; it is equivalent to a
dominating pair of distributions, and to a privacy loss distribution (Zhu, Dong, Wang, AISTATS 2022). Exact to rounding;
`bounds` gives both sides.
"""

from __future__ import annotations

import math
from typing import Any, Protocol, TypeAlias

import numpy as np

from temporaldp.errors import InputError
from temporaldp.values import ULP, FloatArray

ROUNDED = 16.0 * ULP
"""Relative error of a handful of operations on doubles."""


class Mechanism(Protocol):
    """Protocol of the mechanism of one release; a subclass defines what differs."""

    __slots__ = ()

    @property
    def coordinates(self) -> int:
        """Number of independent outputs of this kind in one release; 1 by default."""
        return 1

    @property
    def pure_epsilon(self) -> float:
        """The epsilon of the release with delta = 0, in nats; inf if there is none, the default."""
        return math.inf

    @property
    def limit(self) -> float:
        """Infimum of delta over all epsilons, of one coordinate, rounded up; 0 by default."""
        return 0.0

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Delta of one coordinate at each epsilon >= 0, from below and from above."""


Mechanisms: TypeAlias = tuple[Mechanism, ...]
"""Those of one step. Given the data, their outputs are independent of each other."""


def epsilon_of_one(mechanism: Mechanism, *, delta: float) -> float:
    """Epsilon of one coordinate of a release at a delta, by bisection; an upper bound within 1e-6."""
    if mechanism.limit > delta:
        return math.inf
    low, high = 0.0, 1.0
    if holds_at(mechanism, 0.0, delta):
        return 0.0

    while not holds_at(mechanism, high, delta):
        low, high = high, 2.0 * high
        # Nats. Larger losses are not evaluated.
        if high > 1e6:
            return math.inf
    while high - low > 1e-6 * high and high >= 1e-12:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds_at(mechanism, middle, delta) else (middle, high)
    return float(high)


def holds_at(mechanism: Mechanism, epsilon: float, delta: float) -> bool:
    """Whether one coordinate is (epsilon, delta)-differentially private."""
    return bool(mechanism.bounds(np.array([epsilon]))[1][0] <= delta)


def probabilities_of(values: FloatArray) -> FloatArray:
    """The values clipped to [0, 1]."""
    return np.asarray(np.clip(values, 0.0, 1.0))


def both_sides(delta: FloatArray, gap: FloatArray, own: float) -> tuple[FloatArray, FloatArray]:
    """Both sides of a delta whose argument `gap` is a difference of numbers up to `own`, and so has an absolute error."""
    error = ROUNDED * np.where(gap > -ROUNDED * own, delta + own, 0.0)
    return probabilities_of(delta - error), probabilities_of(delta + error)


def require_positive(mechanism: Any, *names: str) -> None:
    """Raise an error for fields that are not finite numbers > 0."""
    for name in names:
        value = getattr(mechanism, name)
        if not (isinstance(value, int | float | np.integer | np.floating) and math.isfinite(value) and value > 0.0):
            raise InputError(f"expected {name} of {type(mechanism).__name__} to be a finite number > 0, got {value!r}")
