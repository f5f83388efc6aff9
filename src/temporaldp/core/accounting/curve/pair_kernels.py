"""The largest values of linear functions over all tests that the curves of pairs allow: a dual simplex on many at once.

Notation
--------
t        a test: ``t[k]`` is the probability with which it accepts if the state is k
D        ``D[a, b, m]`` bounds the hockey-stick divergence of a against b at ``e^(m h)``, m = 0..K; below 0 by symmetry
line     ``t_a <= height + slope t_b`` with ``slope = e^(m h)``, one for each point m = -K..K of the grid; those of a pair are
         sorted by falling slope. ``ends[l]`` is the t_b from which line l + 1 is the lower one
c        ``p - g q``, the coefficients of a linear function; p and q are two rows of a transition matrix
basis    n constraints: ``sign t_one - slope t_other <= rhs``; with slope 0 they are ``t_k <= 1`` or ``-t_k <= 0``
X        inverse of the matrix of the basis, a row a constraint; the vertex is ``t = X rhs``
y        multipliers, ``c = sum of y[r] * constraint r``. None is below 0: only constraints outside the basis can be violated,
         and the vertex is the best test once none is. Each exchange lowers the value
B        number of problems that are searched together

Whether multipliers are below 0 does not depend on the heights of lines, but on slopes and c alone. So the bases that were best
for the curves of one step are where the search for those of the next step begins, and most of them are best again.
Whatever a search does, a value that is returned is proved: multipliers that are not below 0, times the right-hand sides, and
the rest of c at ``t_k <= 1``, bound the function from above (weak duality).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np

from temporaldp.base.values import ULP, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of one ordered pair of states."""

    point: IntArray
    slope: FloatArray
    height: FloatArray
    ends: FloatArray


Envelopes: TypeAlias = Mapping[tuple[int, int], Lines]
"""The lines of every ordered pair of states."""


def heights(D: FloatArray, h: float, a: Any, b: Any, m: IntArray) -> FloatArray:
    """The right-hand sides of the lines of pairs (a, b) at the points m of the grid, also beyond its end; they round up."""
    n, K = D.shape[0], D.shape[2] - 1
    bound = np.where(m >= 0, D[a, b, np.minimum(np.abs(m), K)], D[b, a, np.minimum(np.abs(m), K)])
    number = np.where(m >= 0, a * n + b + 1, b * n + a + 1)
    # Relative. Curves are raised by up to so much, each by its own share, so that constraints do not tie.
    bound = np.minimum(bound * (1.0 + 1e-7 * (number * 0.6180339887498949 % 1.0)), 1.0)
    falling = np.minimum(m, 0) * h
    return np.asarray((np.exp(falling) * bound - np.expm1(falling) * (1.0 + 4.0 * ULP)) * (1.0 + 4.0 * ULP))


def lowest_lines(D: FloatArray, h: float) -> Envelopes:
    """The lines of each pair that are the lowest for some t_b from 0 to 1. Leaving others out is sound: a relaxation."""
    found, every = {}, np.arange(D.shape[2] - 1, -D.shape[2], -1)
    for a, b in itertools.permutations(range(len(D)), 2):
        point, slope, height = every, np.exp(every * h), heights(D, h, a, b, every)
        while True:
            ends = np.diff(height) / -np.diff(slope)
            # Relative. A line that is the lowest for less than that is left out
            kept = np.append(ends, np.inf) > np.maximum(np.append(0.0, ends), 0.0) * (1.0 + 1e-10)
            if kept.all():
                break
            point, slope, height = point[kept], slope[kept], height[kept]
        size = 1 + int(np.count_nonzero(ends < 1.0))
        found[a, b] = Lines(point[:size], slope[:size], height[:size], ends[: size - 1])
    return found


@dataclass(slots=True)
class Searches:
    """Problems, shapes (B, n) and (B,), and their bases, shapes (B, n) and (B, n, n)."""

    p: FloatArray
    q: FloatArray
    g: FloatArray
    one: IntArray
    other: IntArray
    point: IntArray
    sign: FloatArray
    slope: FloatArray
    rhs: FloatArray
    X: FloatArray
    exchanges: IntArray

    @classmethod
    def begun(cls, p: FloatArray, q: FloatArray, g: FloatArray) -> Searches:
        """From the best test in the box alone: it accepts where c is above 0."""
        n, one = p.shape[1], np.broadcast_to(np.arange(p.shape[1]), p.shape)
        sign = np.where(p > g[:, None] * q, 1.0, -1.0)
        X, count = sign[:, :, None] * np.eye(n), np.zeros(len(p), dtype=np.int64)
        zero = np.zeros(p.shape)
        return cls(
            p, q, g, one.copy(), one.copy(), zero.astype(np.int64), sign, zero, np.maximum(sign, 0.0), X, count
        )  # fmt: skip

    def at(self, which: IntArray) -> Searches:
        """A copy of some of the problems."""
        return Searches(*(getattr(self, field.name)[which] for field in fields(self)))

    def put(self, which: IntArray, found: Searches) -> None:
        """Take over what was found for some of the problems."""
        for field in fields(self)[3:]:
            getattr(self, field.name)[which] = getattr(found, field.name)

    def multipliers(self) -> FloatArray:
        """Of the constraints of each basis, shape (B, n)."""
        c = self.p - self.g[:, None] * self.q
        return np.asarray((c[:, None, :] @ self.X)[:, 0])

    def moved_to(self, D: FloatArray, h: float) -> None:
        """Take the heights of other curves; compute inverses anew where many exchanges have changed them."""
        line = self.other != self.one
        self.rhs = np.where(line, heights(D, h, self.one, self.other, self.point), np.maximum(self.sign, 0.0))
        # Exchanges after which an inverse is computed anew before the next search: the error of each is some ulps
        old = np.flatnonzero(self.exchanges > 16)
        if old.size:
            A, (i, r) = np.zeros((old.size, *self.X.shape[1:])), np.ix_(range(old.size), range(self.X.shape[1]))
            A[i, r, self.one[old]] = self.sign[old]
            A[i, r, self.other[old]] -= self.slope[old]
            try:
                self.X[old], self.exchanges[old] = np.linalg.inv(A), 0
            except np.linalg.LinAlgError:
                self.restart(old)
        # Relative. A search whose multipliers have fallen below 0 by more begins anew.
        self.restart(np.flatnonzero(self.multipliers().min(axis=1) < -1e-9 * (1.0 + self.g)))

    def restart(self, which: IntArray) -> None:
        """Begin some of the problems anew."""
        if which.size:
            self.put(which, Searches.begun(self.p[which], self.q[which], self.g[which]))

    def solve(self, envelopes: Envelopes) -> None:
        """Exchange constraints until no constraint is violated."""
        rest, which = self.at(np.arange(len(self.g))), np.arange(len(self.g))
        t, y = (rest.X @ rest.rhs[:, :, None])[:, :, 0], np.maximum(rest.multipliers(), 0.0)
        # Exchanges after which a search stops; its value is an upper bound still
        for _ in range(400):
            violation, entering = most_violated(t, envelopes)
            v, leaving, far = rest.blocked(y, entering)
            # A constraint that is violated by less is met: what it would lower is rounding
            going = np.flatnonzero((violation > 1e-14) & np.isfinite(far))
            if going.size < which.size:
                self.put(which, rest)
                rest, which, t, y = rest.at(going), which[going], t[going], y[going]
                violation, v, leaving, far = violation[going], v[going], leaving[going], far[going]
                entering = tuple(one[going] for one in entering)
            if not going.size:
                return
            every = np.arange(which.size)
            moved = rest.exchange(leaving, entering, v)
            t -= violation[:, None] * moved
            y = np.maximum(y - far[:, None] * v, 0.0)
            y[every, leaving] = far
        self.put(which, rest)

    def blocked(self, y: FloatArray, entering: tuple[Any, ...]) -> tuple[FloatArray, IntArray, FloatArray]:
        """The entering constraint in terms of the basis; whose multiplier is the first to be 0, and after what increase."""
        one, other, _, sign, slope, _ = entering
        every = np.arange(one.size)
        v = sign[:, None] * self.X[every, one] - slope[:, None] * self.X[every, other]
        far = np.full(v.shape, np.inf)
        # A multiplier that falls by less than this share of the one that falls most stands still: the rest is rounding
        np.divide(y, v, out=far, where=v > 1e-11 * np.abs(v).max(axis=1, keepdims=True))
        leaving = far.argmin(axis=1)
        return v, leaving, far[every, leaving]

    def exchange(self, leaving: IntArray, entering: tuple[Any, ...], v: FloatArray) -> FloatArray:
        """Put constraints in the places of those that leave; return how the vertex moves for each unit of violation."""
        every = np.arange(leaving.size)
        moved = self.X[every, :, leaving] / v[every, leaving][:, None]
        self.X -= moved[:, :, None] * v[:, None, :]
        self.X[every, :, leaving] = moved
        for mine, new in zip(
            (self.one, self.other, self.point, self.sign, self.slope, self.rhs), entering, strict=True
        ):
            mine[every, leaving] = new
        self.exchanges += 1
        return np.asarray(moved)

    def proved_values(self) -> FloatArray:
        """Upper bounds of ``max (p - g q) t`` from the multipliers, whatever they are."""
        y, n = np.maximum(self.multipliers(), 0.0), self.p.shape[1]
        subtracted = self.g[:, None] * self.q
        left, size, every = self.p - subtracted, self.p + subtracted, np.arange(len(self.g))
        for r in range(n):
            one, other, steep = self.one[:, r], self.other[:, r], y[:, r] * self.slope[:, r]
            left[every, one] -= y[:, r] * self.sign[:, r]
            size[every, one] += y[:, r]
            left[every, other] += steep
            size[every, other] += steep
        total = (y * self.rhs).sum(axis=1) + np.maximum(left + (n + 4) * ULP * size, 0.0).sum(axis=1)
        return np.asarray(np.minimum(total * (1.0 + (n + 8) * ULP), 1.0))


def most_violated(t: FloatArray, envelopes: Envelopes) -> tuple[FloatArray, tuple[Any, ...]]:
    """By how much each vertex violates the constraint that it violates most, for a unit of its coefficients; and which."""
    every = np.arange(len(t))
    low, high = t.argmin(axis=1), t.argmax(axis=1)
    below, above = -t[every, low], t[every, high] - 1.0
    is_high = above > below
    most, one, sign = np.maximum(above, below), np.where(is_high, high, low), np.where(is_high, 1.0, -1.0)
    other, point, slope, rhs = (
        one.copy(),
        np.zeros(len(t), dtype=np.int64),
        np.zeros(len(t)),
        np.where(is_high, 1.0, 0.0),
    )
    columns = np.ascontiguousarray(t.T)
    for (a, b), lines in envelopes.items():
        line = np.searchsorted(lines.ends, columns[b], side="right")
        steep, height = lines.slope[line], lines.height[line]
        share = (columns[a] - height - steep * columns[b]) / (1.0 + steep)
        worse = np.flatnonzero(share > most)
        most[worse], one[worse], other[worse], sign[worse] = share[worse], a, b, 1.0
        point[worse], slope[worse], rhs[worse] = lines.point[line[worse]], steep[worse], height[worse]
    return most * (1.0 + slope), (one, other, point, sign, slope, rhs)


def made_convex(values: FloatArray, h: float) -> FloatArray:
    """The values at ``e^(k h)``; those that lie above a chord are lowered to it, as what they bound is convex.

    A search that stopped early would else leave a kink, which a composition takes for outputs that say much.
    """
    kept = np.arange(values.size)
    while kept.size > 2:
        at, outer = kept[1:-1], (kept[:-2], kept[2:])
        lower = np.append(np.append(True, values[at] < _chords(values, h, *outer, at)), True)
        if lower.all():
            break
        kept = kept[lower]
    if kept.size == values.size:
        return values
    every = np.arange(values.size)
    right = np.maximum(np.searchsorted(kept, every), 1)
    found = np.minimum(values, _chords(values, h, kept[right - 1], kept[right], every) * (1.0 + 16.0 * ULP))
    found[kept] = values[kept]
    return np.asarray(found)


def _chords(values: FloatArray, h: float, i: IntArray, k: IntArray, j: IntArray) -> FloatArray:
    """The chords from points i to points k of the grid, at points j."""
    right = np.exp((j - k) * h) * np.expm1((i - j) * h) / np.expm1((i - k) * h)
    return np.asarray((1.0 - right) * values[i] + right * values[k])
