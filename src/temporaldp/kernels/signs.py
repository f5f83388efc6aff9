"""Signs of rollouts that are continued step by step: what online accounting asks at every spend.

Notation
--------
c         coefficients of N - r D, divided by r, on the likelihoods of everything from a step on, away from the step asked about
h         the largest factor of that step's output less 1, the same for all values; the smallest factor is 1
a         log spread of the likelihoods of everything from a step on
p, w      sums of the positive and of the negative entries of c, both >= 0
F         largest value of c times those likelihoods, as in `temporaldp.kernels.rollouts`; F <= 0 if and only if K <= log r

A rollout's coefficients need not be rolled again when one more release follows: they are kept, and take that step. Rounding is
accounted for as in `rollouts` (docs/theory.md, section 10), backward and by sums; plain releases only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temporaldp.kernels.kernels import chosen_kernels
from temporaldp.kernels.rollouts import LONGEST, ROUGH
from temporaldp.values import ROUNDOFF as U

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

LARGEST_LEVEL = 300.0
"""Nats. Levels and spreads up to this keep all coefficients within the range of doubles."""

STEP_OVERHEAD = 1 << 12
"""Entries whose work a step of whole arrays takes at least, however few there are."""

MOST_STEPS = 2_000
"""Steps of a rollout that are counted on at most."""

WORTH_COMPILING = 256
"""By how much more work than other kernels this one is worth loading machine code for: whole arrays take little longer."""


class Path(NamedTuple):
    """The steps that a rollout takes, the nearest first.

    Parameters
    ----------
    matrices : array, shape (k, n, n)
        Each row = a value at a step, column = the value one step further away.
    leads : int array, shape (L,)
        Number of the matrix that leads on from each step.
    up : array, shape (L,)
    spread : array, shape (L,)
        Bounds of a at each step, its own output included; at most `LARGEST_LEVEL`.
    ends : bool
        Whether nothing at all lies beyond the last step. Otherwise its spread is all that is known of it and of the rest.
    endless : bool
        Whether the last step repeats for ever.
    memory : int
        Steps that rollouts along a path without an end are expected to take at most.
    """

    matrices: FloatArray
    leads: IntArray
    up: FloatArray
    spread: FloatArray
    ends: bool = False
    endless: bool = False
    memory: int = 0

    @property
    def length(self) -> int:
        """Steps after which a rollout without an end is given up."""
        return LONGEST if self.endless else len(self.up)

    def after(self, up: float, spread: float, leads: int) -> Path:
        """The path with one more step before it."""
        return self._replace(
            leads=np.concatenate(([leads], self.leads)),
            up=np.concatenate(([up], self.up)),
            spread=np.concatenate(([spread], self.spread)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """Rollouts of m items that have come to one and the same step.

    Parameters
    ----------
    c : array, shape (m, n)
    total, error, drift : array, shape (m,)
        The sum of c kept by itself, how far it can be from the true one, and how far c can be, all entries together.
    depth : array, shape (m,)
        Number of steps taken: the backward error of c.
    weight : array, shape (m,)
        By how much more than c other items' coefficients are at most, for which these stand too.
    """

    c: FloatArray
    total: FloatArray
    error: FloatArray
    drift: FloatArray
    depth: FloatArray
    weight: FloatArray

    @classmethod
    def start(cls, q: FloatArray, d: FloatArray, rho: FloatArray) -> Coefficients:
        """Before the first step, for the ratios 1 + rho; q and d, shape (m, n), are the two values' rows."""
        gamma = rounding(q.shape[1])
        scale = 1.0 / (1.0 + rho)
        apart = q - d
        c = apart * scale[:, None] - (rho * scale)[:, None] * d
        drift = (4.0 * gamma * (np.abs(apart).sum(axis=1) + rho) + np.abs(apart.sum(axis=1))) * scale
        return cls(c, -rho * scale, U * rho * scale, drift, np.zeros(len(c)), np.ones(len(c)))

    def __len__(self) -> int:
        return len(self.c)

    def __getitem__(self, which: BoolArray | IntArray | slice) -> Coefficients:
        return Coefficients(*(one[which] for one in self.arrays))

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        """All fields."""
        return self.c, self.total, self.error, self.drift, self.depth, self.weight

    @classmethod
    def joined(cls, parts: Sequence[Coefficients]) -> Coefficients:
        """The items of all parts."""
        return cls(*(np.concatenate(each) for each in zip(*(one.arrays for one in parts), strict=True)))

    def advanced(self, up: float, matrix: FloatArray) -> Coefficients:
        """After one more step: its output's factor, and the matrix that leads on."""
        n = self.c.shape[1]
        gamma, sums = rounding(n), (n + 4) * U
        positive, p, w = _parts(self.c)
        error = self.error + up * (self.drift + 2.0 * sums * (p + w)) + U * np.abs(self.total)
        drift = (1.0 + up) * self.drift + 2.0 * gamma * ((1.0 + up) * p + w)
        c = (self.c + up * positive) @ matrix
        return Coefficients(c, self.total + up * p, error, drift, self.depth + 1.0, self.weight)

    def excess(self, spread: float) -> FloatArray:
        """Nats by which K can be above log r at most, whatever follows within a spread; backward error included."""
        n = self.c.shape[1]
        sums = (n + 4) * U
        _, p, w = _parts(self.c)
        more = np.expm1(min(spread, LARGEST_LEVEL)) if spread <= LARGEST_LEVEL else np.inf
        beyond = np.where(p > 0.0, more * p, 0.0)
        by_sums = self.total + beyond + self.error + more * (self.drift + 2.0 * sums * p) + 4.0 * U * np.abs(self.total)
        by_ratio = np.where(p > 0.0, (1.0 + more) * p, 0.0) - w
        # N - r D <= x r says N / D <= r (1 + x), because D >= 1.
        above = (np.log1p(np.maximum(one * self.weight, 0.0)) for one in (by_sums, by_ratio))
        first, second = above
        return np.fmin(first, second + backward(n, self.depth))


def rounding(n: int) -> float:
    """Relative error of an entry in one step, in whatever order sums are taken."""
    return (n + 5) * U


def backward(n: int, depth: FloatArray) -> FloatArray:
    """Nats by which the rounding of so many steps can move a root, at most."""
    return 2.0 * (rounding(n) * (depth + 1.0) + 2.0 * (n + 4) * U)


def _parts(c: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    positive = np.maximum(c, 0.0)
    p = positive.sum(axis=1)
    return positive, p, p - c.sum(axis=1)


def proved_below(items: Coefficients, path: Path, room: float) -> BoolArray:
    """Of which items F <= 0 is proved at the end of the path, to `room` nats of the level, shape (m,).

    False where F is above 0 and where rounding, or what lies beyond the path, leaves it open.
    """
    if not len(items):
        return np.zeros(0, bool)
    found = np.zeros(len(items), bool)
    growth, excess = _beyond(path)
    if _compiled(len(items), path):
        from temporaldp.kernels.compiled.signs import below

        below(*items.arrays[:5], *_arrays(path), growth, excess, path.ends, path.length, room, found)
    else:
        _below(items, path, growth, excess, room, found)
    return found


def _below(
    items: Coefficients, path: Path, growth: FloatArray, excess: FloatArray, room: float, found: BoolArray
) -> None:
    n = items.c.shape[1]
    gamma, sums = rounding(n), (n + 4) * U
    c, total, error, drift, depth = items.arrays[:5]
    at = np.arange(len(c))
    for k in range(path.length):
        s = min(k, len(path.up) - 1)
        h, last = float(path.up[s]), path.ends and k == path.length - 1
        positive, p, w = _parts(c)
        error = error + h * (drift + 2.0 * sums * (p + w))
        g, e = (1.0 + h, h) if last else (growth[s], excess[s])
        bound = error + (0.0 if last else e * (drift + 2.0 * sums * p)) + 4.0 * U * np.abs(total)
        below = total + e * p + bound <= 0.0
        below |= (g * p - w <= 0.0) & (backward(n, depth) <= room)
        found[at[below]] = True
        # F does not fall with further steps, as they may all say nothing, and rounding only grows.
        hopeless = ((1.0 + h) * p > w) | (backward(n, depth) > room)
        going = ~below & ~(hopeless & (total + h * p + error > 0.0))
        if last or not going.any():
            return
        if not going.all():
            at, c, positive, p, w = at[going], c[going], positive[going], p[going], w[going]
            total, error, drift, depth = total[going], error[going], drift[going], depth[going]
        error = error + U * np.abs(total)
        drift = (1.0 + h) * drift + 2.0 * gamma * ((1.0 + h) * p + w)
        total, depth = total + h * p, depth + 1.0
        c = (c + h * positive) @ path.matrices[path.leads[s]]


def values(
    c: FloatArray, z: FloatArray, total: FloatArray, path: Path, fine: FloatArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """F of each item at the end of the path, its derivative, and how many steps that took; nothing is proved.

    Parameters
    ----------
    c, z : array, shape (m, n)
        z is the derivative of c by some variable.
    total : array, shape (m,)
        The sum of c.
    path : Path
    fine : array, shape (m,)
        A rollout ends where what is left out moves the variable's root by less. What lies beyond says nothing.
    """
    m = len(c)
    value, slope, depths = np.zeros(m), np.ones(m), np.zeros(m, np.int64)
    growth, excess = _beyond(path)
    if _compiled(2 * m, path):
        from temporaldp.kernels.compiled.signs import roll

        roll(c, z, total, *_arrays(path), growth, excess, path.ends, path.length, ROUGH, fine, value, slope, depths)
    else:
        _values(c, z, total, path, excess, fine, value, slope, depths)
    return value, slope, depths


def _values(
    c: FloatArray, z: FloatArray, total: FloatArray, path: Path, excess: FloatArray, fine: FloatArray,
    value: FloatArray, slope: FloatArray, depths: IntArray,
) -> None:  # fmt: skip
    at = np.arange(len(c))
    for k in range(path.length):
        s = min(k, len(path.up) - 1)
        h = float(path.up[s])
        positive, p, w = _parts(c)
        z = z * np.where(c > 0.0, 1.0 + h, 1.0)
        now, tilt, unknown = total + h * p, z.sum(axis=1), (excess[s] - h) * p
        done = (unknown <= fine * np.abs(tilt)) | ((now > 0.0) & (w <= ROUGH * p)) | (unknown <= -ROUGH * now)
        if k == path.length - 1:
            done[:] = True
        if done.any():
            here = at[done]
            value[here], slope[here], depths[here] = now[done], tilt[done], k + 1
            if done.all():
                return
            going = ~done
            at, c, z, now, fine = at[going], c[going], z[going], now[going], fine[going]
            positive = positive[going]
        total, matrix = now, path.matrices[path.leads[s]]
        c, z = (c + h * positive) @ matrix, z @ matrix


def _beyond(path: Path) -> tuple[FloatArray, FloatArray]:
    spread = np.minimum(path.spread, LARGEST_LEVEL * 2.0)
    return np.exp(spread), np.expm1(spread)


def _arrays(path: Path) -> tuple[FloatArray, IntArray, FloatArray]:
    return path.matrices, path.leads, path.up


def _compiled(n_items: int, path: Path) -> bool:
    """Machine code for long paths of few values: products of whole matrices are as fast for many."""
    n = path.matrices.shape[1]
    if n > 16:
        return False
    steps = min(path.memory if path.endless else len(path.up), MOST_STEPS)
    return chosen_kernels(max(STEP_OVERHEAD, n_items * n * (n + 8)) * steps // WORTH_COMPILING) == "numba"
