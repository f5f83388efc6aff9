"""One transition's loss and its inverse at one level, in plain Python floats: faster than arrays of one element.

Notation
--------
d, x     vertices of the profile: Pr(S | other_value) and the excess q - d
a        leakage that comes in, nats; L(a) what of it passes
u        unit roundoff, half an ulp of 1
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from temporaldp.kernels.profile import LeakageProfile
from temporaldp.kernels.vertex import DIRECT_LIMIT

U = 0.5 * sys.float_info.epsilon

LOSS_ROUNDING = 16.0 * U
"""Relative. A loss is a logarithm of a few rounded operations, wrong by 4 u or so each way; this is twice both."""

SUM_ROUNDING = 8.0 * U
"""Relative. What one addition and one subtraction of levels can be wrong by, several times over."""

FLAT_BEYOND = 1500.0
"""A loss with d > 0 (at least 1e-290) no longer changes 1,500 nats above its own values."""


@dataclass(frozen=True, slots=True, eq=False)
class ScalarLoss:
    """L and its inverse for one profile; None is a correlation that nobody knows, with L = 0."""

    d: list[float]
    x: list[float]
    profile: LeakageProfile | None

    @classmethod
    def of(cls, profile: LeakageProfile | None) -> ScalarLoss:
        """The loss of a profile."""
        if profile is None:
            return cls([], [], None)
        return cls(profile.vertices[:, 0].tolist(), profile.excess.tolist(), profile)

    def __call__(self, a: float) -> float:
        """L(a). Vertices lie on a hull, so gains rise, then fall: binary search for the largest."""
        d, x = self.d, self.x
        if not d or self.profile is None:
            return 0.0
        if a > DIRECT_LIMIT:  # as good, and rare
            return self.profile.loss(a)
        left = math.exp(-a)
        low, high = 0, len(d) - 1
        while low < high:
            middle = (low + high) // 2
            rises = x[middle + 1] / (d[middle + 1] + (1.0 - d[middle + 1]) * left) > x[middle] / (
                d[middle] + (1.0 - d[middle]) * left
            )
            low, high = (middle + 1, high) if rises else (low, middle)
        return min(math.log1p(x[low] * -math.expm1(-a) / (d[low] + (1.0 - d[low]) * left)), a)

    def inverse(self, level: float) -> float:
        """A lower bound on the largest a with L(a) <= level; inf where L stays below it, 0 for a level of 0.

        Safe against rounding: for every double b <= a (1 + 4 u), the double that `__call__` makes of L(b) is <= level.
        """
        if not self.d:
            return math.inf
        if level <= 0.0:
            return 0.0
        goal = level * (1.0 - LOSS_ROUNDING)
        a = self._formula(goal)
        if a == math.inf and self(math.inf if self.d[0] > 0.0 else sys.float_info.max) <= goal:
            return math.inf
        high = min(a, level + FLAT_BEYOND) * (1.0 - 32.0 * U)
        if self(high * (1.0 + 8.0 * U)) <= goal:
            return high
        low = min(high, goal) * (1.0 - 8.0 * U)  # L(a) <= a
        while high - low > 8.0 * U * high:  # rare: the formula promised too much
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self(middle * (1.0 + 8.0 * U)) <= goal else (low, middle)
        return low

    def _formula(self, level: float) -> float:
        """The same, by a formula that may be wrong where a matters least.

        ``L(a) <= level`` for a vertex says ``expm1(a) (x - d m) <= m`` with ``m = expm1(level)``; the vertex with the largest
        x - d m decides, and on a hull that is found by binary search.
        """
        d, x = self.d, self.x
        if level > DIRECT_LIMIT:
            return level - math.log(x[0]) if d[0] == 0.0 else math.inf
        m = math.expm1(level)
        low, high = 0, len(d) - 1
        while low < high:
            middle = (low + high) // 2
            rises = x[middle + 1] - x[middle] > (d[middle + 1] - d[middle]) * m
            low, high = (middle + 1, high) if rises else (low, middle)
        # Where L is nearly flat the difference cancels: what its rounding can be is given to the safe side.
        room = x[low] - d[low] * m + 4.0 * U * (x[low] + d[low] * m)
        return math.log1p(m / room) if room > 0.0 else math.inf
