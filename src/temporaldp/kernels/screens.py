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
import scipy
from numpy.typing import NDArray

from temporaldp.values import ULP

FloatArray = NDArray[np.float64]

CANCELLED = 16.0 * ULP
"""Times x, what the level of a crossing is lowered by: it is a difference of rounded terms of that size."""


@dataclass(frozen=True, slots=True, eq=False)
class Tangents:
    """Thresholds for a screen at slopes in rising order, each of shape (s,).

    ``ends[k]`` is a level of theta at slope k. Where the tangents of slopes k and k + 1 cross, the chord weighs the value at
    slope k by ``shares[k]``, and both tangents are at ``levels[k]`` or above; -1 where there is nothing to test.
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
    def of_lines(cls, slopes: FloatArray, d: FloatArray, x: FloatArray, ends: FloatArray) -> Tangents:
        """The tangent (d, x) at each slope, with its level there, summed without cancellation.

        A chord is tested where neighbouring tangents cross, or at the end next to that, against no more than either of them.
        """
        shares, levels = np.zeros(slopes.size), np.full(slopes.size, -1.0)
        run, rise, left, right = d[:-1] - d[1:], x[:-1] - x[1:], slopes[:-1], slopes[1:]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            meet = np.where(run > 0.0, rise / run, right)
        meet = np.clip(meet, left, right)
        shares[:-1] = (right - meet) / (right - left)
        lower = np.minimum(x[:-1] - meet * d[:-1], x[1:] - meet * d[1:]) - CANCELLED * np.maximum(x[:-1], x[1:])
        apart = (run != 0.0) | (rise != 0.0)  # one line at both ends: the ends are enough
        levels[:-1][apart] = np.maximum(lower[apart], 0.0)
        return cls(slopes, np.maximum(ends, 0.0), shares, levels)

    def scaled(self, factor: float) -> Tangents:
        """The same with every level multiplied by `factor`."""
        return Tangents(
            self.slopes, self.ends * factor, self.shares, np.where(self.levels < 0.0, -1.0, self.levels * factor)
        )


def steeper(n: int) -> float:
    """A slope is raised by this factor before pairs are compared at it: n / 8 ulps, at most 200.

    More than the rounding of sums of n terms, eight at a time, from which the slope comes. Entries whose ratio is the slope
    then round to nothing instead of to a few ulps, which could hide entries that are trillions of times smaller. The
    loss changes by less than the same relative amount, 5e-14 at most.
    """
    return 1.0 + min(6.0 + n / 8.0, 200.0) * ULP


def steepest_slope(matrix: Any) -> float:
    """A bound of every finite ratio (q_k - d_k) / d_k: from here on theta is constant."""
    if scipy.sparse.issparse(matrix):
        largest = matrix.max(axis=0).toarray().ravel()
        smallest = np.full(matrix.shape[1], np.inf)
        np.minimum.at(smallest, matrix.indices, matrix.data)
    else:
        largest = matrix.max(axis=0)
        smallest = np.where(matrix > 0.0, matrix, np.inf).min(axis=0)
    return float((largest / smallest).max()) * (1.0 + 1e-12)
