"""Incoming leakage of each step by the paper's recursion, for all users at once; the loss of one transition and its inverse.

``arrived_1 = 0``, ``arrived_t = L_t(arrived_{t-1} + e_{t-1})``, with the loss L_t of the transition into step t.

Notation
--------
d, x     vertices of a profile: Pr(S | other_state) and the excess q - d
a        incoming leakage with a step's budget, in nats; L(a) the part that passes the transition
u        unit roundoff, half an ulp of 1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from temporaldp.base.values import ROUNDOFF, FloatArray
from temporaldp.core.accounting.protocol import numbered
from temporaldp.core.correlation.protocol import Correlation
from temporaldp.core.correlation.transition import compute_missing_profiles
from temporaldp.core.kernels.hull import DIRECT_LIMIT, vertex_loss
from temporaldp.core.kernels.profile import LeakageProfile

RAISED_LOSS = 64.0 * ROUNDOFF
"""Share by which a loss is raised. Vertices are known to 8 ulps and a tie of the search for them (4e-15), the logarithm of
rounded operations to 4 ulps more. If doubled, so is what the bound of a step gives away."""

NO_LOSS = np.array([0.5]), np.zeros(1)


def added(a: Any, b: Any) -> Any:
    """A sum of two numbers or arrays, rounded up."""
    total = a + b
    back = total - a
    omitted = (a - (total - back)) + (b - back)
    return total * (1.0 + (omitted > 0.0) * (2.0 * ROUNDOFF))


def loss_above(d: FloatArray, x: FloatArray, a: FloatArray, at: Any = ...) -> FloatArray:
    """An upper bound of each vertex's L(a), rounding included; never above a. `a` broadcasts, or ``a[at]`` does."""
    loss, level = vertex_loss(d, x, a, at), a[at]
    with np.errstate(over="ignore"):
        loss *= 1.0 + RAISED_LOSS
    if (a > DIRECT_LIMIT).any():  # there, with d = 0, it is a difference of two large numbers
        loss += np.where((level > DIRECT_LIMIT) & (d == 0.0), 8.0 * ROUNDOFF * level, 0.0)
    return np.asarray(np.minimum(loss, level))


class TransitionLoss:
    """L, rounded up, and its inverse for one profile; None stands for an unknown correlation, with L = 0."""

    def __init__(self, profile: LeakageProfile | None) -> None:
        self.d, self.x = (np.zeros(0), np.zeros(0)) if profile is None else profile.curve

    def __call__(self, arrived: float, spent: float = 0.0) -> float:
        """Loss at the sum of incoming leakage and a budget, rounded up."""
        return self._above(added(arrived, spent))

    def _above(self, level: float) -> float:
        return float(loss_above(self.d, self.x, np.array(level)).max(initial=0.0))

    def inverse(self, level: float) -> float:
        """A lower bound on the largest a with L(a) <= level; inf where L stays below it, 0 for a level of 0.

        Safe against rounding: for every double b <= a (1 + 4 u), the double that `__call__` makes of L(b) is <= level.
        """
        if not len(self.d):
            return math.inf
        if level <= 0.0:
            return 0.0
        # Relative. A loss is a logarithm of a few rounded operations, wrong by 4 u or so each way; this is twice both
        goal = level * (1.0 - 16.0 * ROUNDOFF)
        a = self._formula(goal * (1.0 - RAISED_LOSS - 16.0 * ROUNDOFF))
        # The largest double
        if a == math.inf and self._above(math.inf if self.d[0] > 0.0 else 1.7976931348623157e308) <= goal:
            return math.inf
        # A loss with d > 0 (at least 1e-290) no longer changes 1,500 nats above its own values
        high = min(a, level + 1500.0) * (1.0 - 32.0 * ROUNDOFF)
        if self._above(high * (1.0 + 8.0 * ROUNDOFF)) <= goal:
            return high
        low = min(high, goal) * (1.0 - 8.0 * ROUNDOFF)  # L(a) <= a
        while high - low > 8.0 * ROUNDOFF * high:  # rare: the formula promised too much
            middle = 0.5 * (low + high)
            if self._above(middle * (1.0 + 8.0 * ROUNDOFF)) <= goal:
                low = middle
            else:
                high = middle
        return low

    def _formula(self, level: float) -> float:
        """The inverse by a formula, which is inaccurate for extreme a.

        ``L(a) <= level`` for a vertex means ``expm1(a) (x - d m) <= m`` with ``m = expm1(level)``.
        """
        if level > DIRECT_LIMIT:
            return level - math.log(self.x[0]) if self.d[0] == 0.0 else math.inf
        m = math.expm1(level)
        # Where L is nearly flat the difference cancels: what its rounding can be is given to the safe side.
        room = float((self.x - self.d * m + 4.0 * ROUNDOFF * (self.x + self.d * m)).max())
        return math.log1p(m / room) if room > 0.0 else math.inf


def arrivals_of_users(correlations: Sequence[Correlation], spent: FloatArray) -> FloatArray:
    """Incoming leakage at every step of every user, shape (users, T), through the correlations of one direction, in nats."""
    is_constant = all(correlation.is_constant for correlation in correlations)
    each = range(1 if is_constant else len(spent) - 1)
    matrices, which = numbered(correlation.at(k) for correlation in correlations for k in each)
    if not matrices or len(spent) == 1:
        return np.zeros((len(correlations), len(spent)))
    compute_missing_profiles(matrices)
    curves = [matrix.leakage_profile().curve for matrix in matrices]
    # One vertex without loss stands for an empty profile, and for the unknown correlation, which is number -1
    curves = [curve if len(curve[0]) else NO_LOSS for curve in [*curves, NO_LOSS]]
    d, x = (np.concatenate(parts) for parts in zip(*curves, strict=True))
    sizes = np.array([len(curve[0]) for curve in curves])
    starts = np.cumsum(sizes) - sizes
    # Users with equal matrices are one
    distinct, user = np.unique(which.reshape(len(correlations), -1), axis=0, return_inverse=True)
    arrived = np.zeros((len(distinct), len(spent)))
    changes = np.append(np.flatnonzero(np.diff(spent)) + 1, len(spent))
    t = 1
    while t < len(spent):
        if t == 1 or not is_constant:
            number = distinct[:, 0 if is_constant else t - 1]
            ends = np.cumsum(sizes[number])
            first = ends - sizes[number]
            at = np.repeat(np.arange(len(number)), sizes[number])
            vertex = np.arange(ends[-1]) + (starts[number] - first)[at]
            of_d, of_x = d[vertex], x[vertex]
        loss = loss_above(of_d, of_x, added(arrived[:, t - 1], spent[t - 1]), at)
        arrived[:, t] = np.maximum.reduceat(loss, first)
        if is_constant and np.array_equal(arrived[:, t], arrived[:, t - 1]):  # a fixed point, until the budget changes
            end = int(changes[np.searchsorted(changes, t, side="left")])
            arrived[:, t : end + 1] = arrived[:, t, None]
            t = max(t, end)
        t += 1
    return arrived[user.ravel()]
