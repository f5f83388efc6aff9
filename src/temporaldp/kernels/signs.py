"""Rollouts that are continued step by step: what online accounting asks at every spend.

Notation
--------
c         coefficients of N - r D, divided by r, on the likelihoods of everything from a step on, away from the step in question
h         the largest factor of that step's output less 1, the same for all states; the smallest factor is 1
p, w      sums of the positive and of the negative entries of c, both >= 0
F         largest value of c times those likelihoods, as in `temporaldp.kernels.exact`; F <= 0 if and only if K <= log r

A rollout need not start again when one more release follows: its coefficients are kept, and take that step. Rounding is
bounded as in `exact` (docs/theory.md, section 10), backward and by sums; plain releases only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from temporaldp.values import ROUNDOFF as U

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

LARGEST_LEVEL = 300.0
"""Nats. Levels and spreads up to this keep all coefficients within the range of doubles."""


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """Rollouts of m items that have come to one and the same step.

    Parameters
    ----------
    c : array, shape (m, n)
    total, error, drift : array, shape (m,)
        The sum of c kept by itself, its error bound, and the error bound of all entries of c together.
    depth : array, shape (m,)
        Number of steps taken: the backward error of c.
    weight : array, shape (m,)
        Largest ratio of other items' coefficients, which this item represents, to c.
    """

    c: FloatArray
    total: FloatArray
    error: FloatArray
    drift: FloatArray
    depth: FloatArray
    weight: FloatArray

    @classmethod
    def start(cls, q: FloatArray, d: FloatArray, level: FloatArray) -> Coefficients:
        """Before the first step, for the levels log r; q and d, shape (m, n), are the rows of the two states."""
        rho = np.expm1(np.maximum(level, 0.0))
        gamma = rounding(q.shape[1])
        scale = 1.0 / (1.0 + rho)
        apart = q - d
        c = apart * scale[:, None] - (rho * scale)[:, None] * d
        drift = (4.0 * gamma * (np.abs(apart).sum(axis=1) + rho) + np.abs(apart.sum(axis=1))) * scale
        return cls(c, -rho * scale, U * rho * scale, drift, np.zeros(len(c)), np.ones(len(c)))

    @classmethod
    def none(cls, n: int) -> Coefficients:
        """No items."""
        return cls.start(np.zeros((0, n)), np.zeros((0, n)), np.zeros(0))

    def __len__(self) -> int:
        return len(self.c)

    def __getitem__(self, which: BoolArray | IntArray | slice) -> Coefficients:
        return Coefficients(*(one[which] for one in self.arrays))

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        """All fields."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @classmethod
    def joined(cls, parts: Sequence[Coefficients]) -> Coefficients:
        """The items of all parts."""
        return cls(*(np.concatenate(each) for each in zip(*(one.arrays for one in parts), strict=True)))

    def advanced(self, epsilon: float, matrix: FloatArray) -> Coefficients:
        """After one more step: its budget, and the matrix that leads on."""
        gamma, sums, up = rounding(self.c.shape[1]), (self.c.shape[1] + 4) * U, np.expm1(epsilon)
        positive, p, w = self.parts
        error = self.error + up * (self.drift + 2.0 * sums * (p + w)) + U * np.abs(self.total)
        drift = (1.0 + up) * self.drift + 2.0 * gamma * ((1.0 + up) * p + w)
        c = (self.c + up * positive) @ matrix
        return Coefficients(c, self.total + up * p, error, drift, self.depth + 1.0, self.weight)

    @property
    def parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The positive entries, p, and w."""
        positive = np.maximum(self.c, 0.0)
        p = positive.sum(axis=1)
        return positive, p, p - self.c.sum(axis=1)

    @np.errstate(over="ignore", invalid="ignore")  # inf bounds nothing, and the other bound counts
    def excess(self, spread: float) -> FloatArray:
        """Nats by which K can exceed log r at most, whatever follows within a spread; backward error included."""
        n = self.c.shape[1]
        sums = (n + 4) * U
        _, p, w = self.parts
        more = np.expm1(spread) if spread <= LARGEST_LEVEL else np.inf
        beyond = np.where(p > 0.0, more * p, 0.0)
        by_sums = self.total + beyond + self.error + more * (self.drift + 2.0 * sums * p) + 4.0 * U * np.abs(self.total)
        by_ratio = np.where(p > 0.0, (1.0 + more) * p, 0.0) - w
        # N - r D <= x r implies N / D <= r (1 + x), because D >= 1.
        first, second = (np.log1p(np.maximum(one * self.weight, 0.0)) for one in (by_sums, by_ratio))
        return np.fmin(first, second + backward(n, self.depth))

    def undominated(self, pairs: IntArray) -> tuple[IntArray, Coefficients]:
        """The pairs and items that are left once the tightest item of each pair represents those that it dominates.

        Where ``c <= factor c'`` everywhere, with a factor > 0, no observation raises the first above 0 before the second. The
        second then takes over the rounding of the first.
        """
        _, p, w = self.parts
        with np.errstate(divide="ignore", invalid="ignore"):
            tight = np.where(w > 0.0, p / w, np.inf)
        order = np.lexsort((tight, pairs))
        last = order[np.flatnonzero(np.diff(pairs[order], append=-1))]
        best = np.zeros(int(pairs.max(initial=0)) + 1, np.int64)
        best[pairs[last]] = last
        onto = best[pairs]
        factor, under = _factor(self.c, self.c[onto])
        under &= np.arange(len(self)) != onto
        # The first one's c is known to its drift, and at most `factor` times the second's; of that, the sum is kept by itself.
        apart = np.abs(p - w - self.total) + 2.0 * (self.c.shape[1] + 4) * U * (p + w)
        with np.errstate(over="ignore"):
            drift = self.drift / factor
        arrays = [one.copy() for one in self.arrays]
        taken_over = (drift + apart[onto], drift, self.depth, self.weight * factor)
        for at, found in enumerate(taken_over, start=2):
            np.maximum.at(arrays[at], onto[under], found[under])
        return pairs[~under], Coefficients(*arrays)[~under]


def rounding(n: int) -> float:
    """Relative error of an entry in one step, in whatever order sums are taken."""
    return (n + 5) * U


def backward(n: int, depth: FloatArray) -> FloatArray:
    """Nats by which the rounding of so many steps can move a root, at most."""
    return 2.0 * (rounding(n) * (depth + 1.0) + 2.0 * (n + 4) * U)


def _factor(c: FloatArray, other: FloatArray) -> tuple[FloatArray, BoolArray]:
    """The smallest factor > 0 with ``c <= factor other``, row by row, and whether there is one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = c / other
    low = np.where(other > 0.0, ratio, 0.0).max(axis=1) * (1.0 + 4.0 * U)
    high = np.where(other < 0.0, ratio, np.inf).min(axis=1) * (1.0 - 4.0 * U)
    low = np.maximum(low, np.finfo(np.float64).tiny)
    return low, (low <= high) & ~((other == 0.0) & (c > 0.0)).any(axis=1) & (low > 1e-100) & (low < 1e100)
