"""The search for a profile's vertices with whole arrays: NumPy and SciPy, or PyTorch for the pass over all pairs.

Notation
--------
q, d     two different rows, x = q - d entry by entry; h = g - 1
a        P less each column's smallest entry; b = min(a + h P, the largest a): sum max(q - g d, 0) = sum max(a_q - b_d, 0),
         which is half of sum a - sum b + the L1 distance of a and b: a compiled routine in every array library
S        {k : x_k > limit d_k}, a set of columns; its point (d, x) is (d(S), q(S) - d(S))

Pairs that can matter are found by passes at some slopes (`screens.py`). Their ROC curves, by falling x / d, are sorted,
accumulated and put on the hull. O(n^2) memory, but for blocks of `BLOCK` entries.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import fsum
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from temporaldp.kernels.hull import TIE_TOLERANCE, hull_height, upper_hull
from temporaldp.kernels.screens import Tangents, steeper, steepest_slope
from temporaldp.values import ULP

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Distance = Callable[[FloatArray, FloatArray], tuple[FloatArray, float]]

BLOCK = 1 << 20
"""Entries handled at once: 8 MiB a temporary."""

FEW = 40
"""Rows up to which the curves of all pairs are sorted without a screen."""

DEEPEST = 6
"""How often an interval of slopes is halved before its pairs are taken as they are."""

ENOUGH = 0.002
"""Share of pairs that may stay: sorting so many costs less than another pass over all."""

TIE = 1.0 + 4e-15
"""A pair must exceed a tangent by this factor: about the rounding of sums of a thousand terms."""


def numpy_distance(a: FloatArray, b: FloatArray) -> tuple[FloatArray, float]:
    """L1 distances between the rows of a and b, and half an ulp of the arithmetic."""
    from scipy.spatial.distance import cdist  # loaded for large matrices only

    return cdist(a, b, "cityblock"), ULP / 2.0


def torch_distance(a: FloatArray, b: FloatArray) -> tuple[FloatArray, float]:
    """The same by PyTorch in single precision, on an accelerator if it finds one."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    left, right = (torch.as_tensor(part, dtype=torch.float32, device=device) for part in (a, b))
    return torch.cdist(left, right, p=1.0).to(torch.float64).cpu().numpy(), 2.0**-24


class ArraySearch:
    """One matrix, dense (n, n) or ``csr_array``, and the pairs of rows that matter in it."""

    def __init__(self, matrix: Any, distance: Distance = numpy_distance) -> None:
        self.n = matrix.shape[0]
        self._matrix = matrix
        self._rows = matrix.toarray() if scipy.sparse.issparse(matrix) else np.asarray(matrix)
        self._distance = distance
        shifted = self._rows - self._rows.min(axis=0)
        reach = shifted.max(axis=0)
        used = reach > 0.0
        scale = 2.0 ** -np.floor(np.log2(reach.max()) + 1.0) if used.any() else 1.0
        self._a, self._reach, self._scale = shifted[:, used] * scale, reach[used] * scale, scale
        self._entries = self._rows[:, used] * scale

    @cached_property
    def steepest(self) -> float:
        """A bound of every finite ratio (q_k - d_k) / d_k."""
        return steepest_slope(self._matrix)

    def vertices(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Row, other row and limit of each vertex; its set is ``{k : q_k - d_k > limit d_k}``."""
        if self.n <= FEW:
            rows, others = np.nonzero(~np.eye(self.n, dtype=bool))
        else:
            rows, others = self._alive()
        return self._hull(rows, others)

    def contraction(self, slope: float) -> tuple[int, int]:
        """The pair with the largest hockey-stick divergence at 1 + slope."""
        found, error = self._divergences(slope)
        rows, others = np.nonzero(found >= found.max() - 2.0 * error)
        exact = self._exact(rows, others, slope)
        best = int(np.argmax(exact))
        return int(rows[best]), int(others[best])

    def best_at(self, weight: float) -> tuple[int, int, float]:
        """Row, other row and limit of the set with the largest x / (weight + d); weight = 1 / (e^alpha - 1)."""
        i, j, slope, limit = 0, 1, 0.0, 0.0
        while True:
            raised = slope * steeper(self.n)
            row, other = self.contraction(raised)
            d, x, _ = self._point(row, other, raised)
            reached = x / (weight + d) if x > 0.0 else 0.0
            if reached <= slope * (1.0 + 4.0 * ULP):
                return i, j, limit
            i, j, limit, slope = row, other, raised, reached

    def sums(self, rows: IntArray, others: IntArray, limits: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
        """d, x, q and c of each vertex, rounded once, shape (m, 4); the members of all sets in a row, and where each begins."""
        inside = [self._inside(i, j, limit) for i, j, limit in zip(rows, others, limits, strict=True)]
        exact = [_sums(self._rows[i], self._rows[j], set_) for i, j, set_ in zip(rows, others, inside, strict=True)]
        members = [np.flatnonzero(set_) for set_ in inside]
        ends = np.concatenate(([0], np.cumsum([len(part) for part in members], dtype=np.int64)))
        flat = np.concatenate(members) if members else np.zeros(0, dtype=np.int64)
        return np.array(exact, dtype=np.float64).reshape(-1, 4), flat, ends

    def _divergences(self, slope: float) -> tuple[FloatArray, float]:
        """E_(1 + slope) of all ordered pairs, shape (n, n), the diagonal -1; and a bound of its rounding."""
        with np.errstate(over="ignore"):
            b = np.minimum(self._a + slope * self._entries, self._reach)
        distance, unit = self._distance(self._a, b)
        found = (distance + self._a.sum(axis=1)[:, None] - b.sum(axis=1)[None, :]) / 2.0 / self._scale
        np.fill_diagonal(found, -1.0)
        return found, (self._reach.size + 12) * unit * 2.0 * float(self._reach.sum()) / self._scale

    def _alive(self) -> tuple[IntArray, IntArray]:
        """Pairs above the tangents somewhere, by halving the slopes where the tangents of an interval cross."""
        kept: list[tuple[IntArray, IntArray]] = []
        intervals = [(self._at(0.0), self._at(self.steepest), 0)]
        while intervals:
            left, right, depth = intervals.pop()
            d, x, ends = np.array([left[2], right[2]]).T
            tangents = Tangents.of_lines(np.array([left[0], right[0]]), d, x, ends)
            rows, others = np.nonzero(_above(tangents, left[1], right[1], 1.0))
            meets = tangents.levels[0] >= 0.0 and 0.0 < tangents.shares[0] < 1.0
            if meets and depth < DEEPEST and rows.size > max(8 * self.n, ENOUGH * self.n**2):
                share = tangents.shares[0]
                middle = self._at(share * left[0] + (1.0 - share) * right[0])
                intervals += [(left, middle, depth + 1), (middle, right, depth + 1)]
                continue
            exact = [self._exact(rows, others, end[0]) for end in (left, right)]
            above = _above(tangents, exact[0], exact[1], TIE)
            kept += [(rows[above], others[above]), (left[3][:1], left[3][1:]), (right[3][:1], right[3][1:])]
        pairs = np.unique(np.concatenate([np.stack(pair) for pair in kept], axis=1), axis=1)
        return pairs[0].astype(np.int64), pairs[1].astype(np.int64)

    def _at(self, slope: float) -> tuple[float, FloatArray, tuple[float, float, float], IntArray]:
        """A slope, upper bounds of all divergences there, and the line (d, x) of the largest with its level and its pair."""
        found, error = self._divergences(slope)
        i, j = divmod(int(np.argmax(found)), self.n)
        return slope, found + error, self._point(i, j, slope), np.array([i, j])

    def _inside(self, i: int, j: int, limit: float) -> NDArray[np.bool_]:
        x = self._rows[i] - self._rows[j]
        with np.errstate(over="ignore"):
            return np.asarray((x > 0.0) & (x > limit * self._rows[j]))

    def _point(self, i: int, j: int, limit: float) -> tuple[float, float, float]:
        """d, x and x - limit d of the set, the last without cancellation."""
        inside = self._inside(i, j, limit)
        q, d = self._rows[i][inside], self._rows[j][inside]
        return float(d.sum()), float((q - d).sum()), float(((q - d) - limit * d).sum())

    def _exact(self, rows: IntArray, others: IntArray, slope: float) -> FloatArray:
        """E_(1 + slope) of the listed pairs without cancellation."""
        found = np.empty(rows.size)
        step = max(1, BLOCK // self.n)
        for first in range(0, rows.size, step):
            block = slice(first, first + step)
            d = self._rows[others[block]]
            with np.errstate(over="ignore"):
                found[block] = np.maximum((self._rows[rows[block]] - d) - slope * d, 0.0).sum(axis=1)
        return found

    def _hull(self, rows: IntArray, others: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The hull of the listed pairs' ROC curves, block by block."""
        hull_d, hull_x = np.zeros(0), np.zeros(0)
        pair, limit = np.zeros(0, dtype=np.int64), np.zeros(0)
        step = max(1, BLOCK // self.n)
        for first in range(0, rows.size, step):
            block = slice(first, first + step)
            d, x, number, ratio = _points_above(self._rows[rows[block]], self._rows[others[block]], hull_d, hull_x)
            hull_d, hull_x = np.concatenate((hull_d, d)), np.concatenate((hull_x, x))
            pair, limit = np.concatenate((pair, number + first)), np.concatenate((limit, ratio))
            kept = upper_hull(hull_d, hull_x)
            hull_d, hull_x, pair, limit = hull_d[kept], hull_x[kept], pair[kept], limit[kept]
        return rows[pair].astype(np.int64), others[pair].astype(np.int64), limit


def _above(tangents: Tangents, left: FloatArray, right: FloatArray, factor: float) -> NDArray[np.bool_]:
    """Which values at the two slopes exceed a tangent by more than `factor`, at an end or on the chord."""
    above: NDArray[np.bool_] = (left > tangents.ends[0] * factor) | (right > tangents.ends[1] * factor)
    if tangents.levels[0] >= 0.0:
        share = tangents.shares[0]
        above |= share * left + (1.0 - share) * right > tangents.levels[0] * factor
    return above


def _points_above(
    q: FloatArray, d: FloatArray, hull_d: FloatArray, hull_x: FloatArray
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """Points (d, x) of the pairs' ROC curves above the hull so far, each with its pair and the limit of its set."""
    x = q - d
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(x > 0.0, x / d, 0.0)
    order = np.argsort(-ratio, axis=1, kind="stable")
    ratio = np.take_along_axis(ratio, order, axis=1)
    useful = ratio > 0.0
    points_x = np.cumsum(np.where(useful, np.take_along_axis(x, order, axis=1), 0.0), axis=1)
    points_d = np.cumsum(np.where(useful, np.take_along_axis(d, order, axis=1), 0.0), axis=1)
    above = useful & (points_x > hull_height(hull_d, hull_x, points_d) * (1.0 + TIE_TOLERANCE))
    # A set holds every column whose ratio is at least that of its last one: its limit lies just below.
    limit = np.nextafter(ratio[above] * (1.0 - 2.0 * ULP), 0.0)
    return points_d[above], points_x[above], np.nonzero(above)[0].astype(np.int64), limit


def _sums(q_row: FloatArray, d_row: FloatArray, inside: NDArray[np.bool_]) -> tuple[float, float, float, float]:
    """d, x, q and c = 1 - q of a set, rounded once.

    1 - q by the entries inside or outside the set: they differ by what rounding left of the row's sum. The smaller is the
    safe one, and it is 0 where the set holds the whole row.
    """
    d, x, q = fsum(d_row[inside]), fsum((q_row - d_row)[inside]), fsum(q_row[inside])
    c = max(0.0, min(fsum([1.0, *-q_row[inside]]), fsum(q_row[~inside])))
    if d == 0.0 and c == 0.0:
        q = x = 1.0  # disjoint rows are told apart with certainty
    return min(d, 1.0), x, min(q, 1.0), c
