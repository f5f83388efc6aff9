"""What a pair of rows must exceed somewhere to matter: tangents of the contraction curve.

Notation
--------
h        slope g - 1; theta(1 + h) is convex in h, and so is the divergence of each pair
line     v(h) = x - h d of one set of one pair, a lower bound of theta; a tangent is the best known line at a slope

Between two slopes a pair's divergence lies below its chord. If that lies below both tangents at the slopes, and below the
point where the tangents cross, then it lies below them in between, and the pair adds nothing to the profile there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

FloatArray = NDArray[np.float64]

CANCELLED = 16.0 * float(np.finfo(np.float64).eps)
"""Times x, what the level of a crossing is lowered by: it is a difference of rounded terms of that size."""


@dataclass(frozen=True, slots=True, eq=False)
class Tangents:
    """Thresholds for a screen at slopes in rising order, each of shape (s,).

    ``ends[k]`` is a level of theta at slope k. Where the tangents of slopes k and k + 1 cross, the chord weighs the value at
    slope k by ``shares[k]``, and their level is ``levels[k]``; -1 where they do not cross.
    """

    slopes: FloatArray
    ends: FloatArray
    shares: FloatArray
    levels: FloatArray

    @classmethod
    def at(cls, slope: float, level: float) -> Tangents:
        """One slope, no chord."""
        return cls(np.array([slope]), np.array([level]), np.zeros(1), np.full(1, -1.0))

    @classmethod
    def of_lines(cls, slopes: FloatArray, lines: FloatArray) -> Tangents:
        """The best of the lines (d, x), shape (m, 2), at each slope, and where neighbouring ones cross."""
        values = lines[:, 1] - slopes[:, None] * lines[:, 0]
        best = values.argmax(axis=1)
        d, x = lines[best].T
        shares, levels = np.zeros(slopes.size), np.full(slopes.size, -1.0)
        run, rise = d[:-1] - d[1:], x[:-1] - x[1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            meet = rise / run
        inside = np.flatnonzero((run > 0.0) & (meet > slopes[:-1]) & (meet < slopes[1:]))
        left, right = slopes[:-1][inside], slopes[1:][inside]
        shares[inside] = (right - meet[inside]) / (right - left)
        levels[inside] = np.maximum(x[1:][inside] - meet[inside] * d[1:][inside] - CANCELLED * x[:-1][inside], 0.0)
        return cls(slopes, np.maximum(values.max(axis=1), 0.0), shares, levels)

    def scaled(self, factor: float) -> Tangents:
        """The same with every level multiplied by `factor`."""
        return Tangents(
            self.slopes, self.ends * factor, self.shares, np.where(self.levels < 0.0, -1.0, self.levels * factor)
        )


def steepest_slope(matrix: Any) -> float:
    """A bound of every finite ratio (q_k - d_k) / d_k: from here on theta is constant."""
    if sparse.issparse(matrix):
        largest = matrix.max(axis=0).toarray().ravel()
        smallest = np.full(matrix.shape[1], np.inf)
        np.minimum.at(smallest, matrix.indices, matrix.data)
    else:
        largest = matrix.max(axis=0)
        smallest = np.where(matrix > 0.0, matrix, np.inf).min(axis=0)
    return float((largest / smallest).max()) * (1.0 + 1e-12)
