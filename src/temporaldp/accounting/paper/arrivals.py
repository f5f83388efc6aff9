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

from temporaldp.accounting.protocol import numbered
from temporaldp.correlation.protocol import Correlation
from temporaldp.kernels.compilation import inner_kernel, kernel
from temporaldp.kernels.profile import LeakageProfile
from temporaldp.kernels.threads import spread
from temporaldp.kernels.vertex import DIRECT_LIMIT, loss_of
from temporaldp.values import ROUNDOFF, FloatArray

RAISED_LOSS = 64.0 * ROUNDOFF
"""Share by which a loss is raised. Vertices are known to 8 ulps and a tie of the search for them (4e-15), the logarithm of
rounded operations to 4 ulps more. If doubled, so is what the bound of a step gives away."""


def added(a: Any, b: Any) -> Any:
    """A sum of two numbers or arrays, rounded up."""
    total = a + b
    back = total - a
    omitted = (a - (total - back)) + (b - back)
    return total * (1.0 + (omitted > 0.0) * (2.0 * ROUNDOFF))


added_in_kernel = inner_kernel(added)


@kernel
def loss_above(d, x, a):
    """An upper bound of L(a), rounding included; never above a."""
    loss = loss_of(d, x, a) * (1.0 + RAISED_LOSS)
    if a > DIRECT_LIMIT and d.size > 0 and d[0] == 0.0:  # there it is a difference of two large numbers
        loss += 8.0 * ROUNDOFF * a
    return min(loss, a)


class TransitionLoss:
    """L, rounded up, and its inverse for one profile; None stands for an unknown correlation, with L = 0."""

    def __init__(self, profile: LeakageProfile | None) -> None:
        self.d, self.x = (np.zeros(0), np.zeros(0)) if profile is None else profile.curve

    def __call__(self, arrived: float, spent: float = 0.0) -> float:
        """Loss at the sum of incoming leakage and a budget, rounded up."""
        return float(loss_above(self.d, self.x, added(arrived, spent)))

    def inverse(self, level: float) -> float:
        """A lower bound on the largest a with L(a) <= level; inf where L stays below it, 0 for a level of 0.

        Safe against rounding: for every double b <= a (1 + 4 u), the double that `__call__` makes of L(b) is <= level.
        """
        return float(inverse_of(self.d, self.x, level))


@kernel
def inverse_of(d, x, level):
    """Largest incoming leakage with a loss up to `level`; see `TransitionLoss.inverse`."""
    if d.size == 0:
        return math.inf
    if level <= 0.0:
        return 0.0
    # Relative. A loss is a logarithm of a few rounded operations, wrong by 4 u or so each way; this is twice both
    goal = level * (1.0 - 16.0 * ROUNDOFF)
    a = inverse_formula(d, x, goal * (1.0 - RAISED_LOSS - 16.0 * ROUNDOFF))
    # The largest double
    if a == math.inf and loss_above(d, x, math.inf if d[0] > 0.0 else 1.7976931348623157e308) <= goal:
        return math.inf
    # A loss with d > 0 (at least 1e-290) no longer changes 1,500 nats above its own values
    high = min(a, level + 1500.0) * (1.0 - 32.0 * ROUNDOFF)
    if loss_above(d, x, high * (1.0 + 8.0 * ROUNDOFF)) <= goal:
        return high
    low = min(high, goal) * (1.0 - 8.0 * ROUNDOFF)  # L(a) <= a
    while high - low > 8.0 * ROUNDOFF * high:  # rare: the formula promised too much
        middle = 0.5 * (low + high)
        if loss_above(d, x, middle * (1.0 + 8.0 * ROUNDOFF)) <= goal:
            low = middle
        else:
            high = middle
    return low


@kernel
def inverse_formula(d, x, level):
    """The inverse of L by a formula, which is inaccurate for extreme a.

    ``L(a) <= level`` for a vertex means ``expm1(a) (x - d m) <= m`` with ``m = expm1(level)``; the vertex with the largest
    x - d m decides, and on a hull that is found by binary search.
    """
    if level > DIRECT_LIMIT:
        return level - math.log(x[0]) if d[0] == 0.0 else math.inf
    m = math.expm1(level)
    low, high = 0, d.size - 1
    while low < high:
        v = (low + high) // 2
        if x[v + 1] - x[v] > (d[v + 1] - d[v]) * m:
            low = v + 1
        else:
            high = v
    # Where L is nearly flat the difference cancels: what its rounding can be is given to the safe side.
    room = x[low] - d[low] * m + 4.0 * ROUNDOFF * (x[low] + d[low] * m)
    return math.log1p(m / room) if room > 0.0 else math.inf


@kernel
def carry(d, x, starts, which, spent, first, last, arrived):
    """Fill ``arrived[u, t] = L(arrived[u, t - 1] + spent[t - 1])``, rounded up, for users first .. last - 1."""
    for u in range(first, last):
        before, level, of_d, of_x = -1, -1.0, d[:0], x[:0]
        for t in range(1, spent.size):
            profile = which[u, t - 1 if which.shape[1] > 1 else 0]
            incoming = added_in_kernel(arrived[u, t - 1], spent[t - 1])
            if profile == before and incoming == level:  # the series has reached its fixed point
                arrived[u, t] = arrived[u, t - 1]
                continue
            if profile != before:
                low, high = (starts[profile], starts[profile + 1]) if profile >= 0 else (0, 0)
                of_d, of_x = d[low:high], x[low:high]
            arrived[u, t] = loss_above(of_d, of_x, incoming)
            before, level = profile, incoming


def arrivals_of_users(correlations: Sequence[Correlation], spent: FloatArray) -> FloatArray:
    """Incoming leakage at every step of every user, shape (users, T), through the correlations of one direction, in nats."""
    is_constant = all(correlation.is_constant for correlation in correlations)
    each = range(1 if is_constant else len(spent) - 1)
    matrices, which = numbered(correlation.at(k) for correlation in correlations for k in each)
    arrived = np.zeros((len(correlations), len(spent)))
    if not matrices or len(spent) == 1:
        return arrived
    profiles = [matrix.leakage_profile() for matrix in matrices]
    starts, which = np.cumsum([0, *map(len, profiles)]), which.reshape(len(correlations), -1)
    d, x = (np.concatenate(parts) for parts in zip(*(profile.curve for profile in profiles), strict=True))
    spent = np.array(spent, order="C")  # Numba compiles anew for arrays that are read-only or not contiguous
    spread(
        lambda first, last: carry(d, x, starts, which, spent, first, last, arrived),
        len(which),
        step=1,
        # Entries of a pass over pairs of rows that take as long as one step of one user, for the choice of threads
        work=arrived.size * 50,
    )
    return arrived
