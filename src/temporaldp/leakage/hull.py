"""The upper concave hull of a profile's points, in coordinates that keep their digits.

Notation
--------
d    Pr(S | other_value), the abscissa
x    q - d, the ordinate. The shear (d, q) -> (d, q - d) maps hulls to hulls and slopes g to g - 1, and its differences do
     not cancel where rows are nearly equal.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

TIE_TOLERANCE = 8.0 * float(np.finfo(np.float64).eps)
"""Relative difference below which two slopes, or a point and the hull, count as tied. Ties in exact arithmetic differ by
a few roundings; a point dropped as tied would change the loss by less than that same relative amount."""


def upper_hull(d: FloatArray, x: FloatArray) -> NDArray[np.intp]:
    """Indices of the hull's vertices with slope x / d > 0 on their left, by increasing d; (0, 0) is implied."""
    order = np.lexsort((-x, d))
    rising = x[order] > np.concatenate(([0.0], np.maximum.accumulate(x[order])))[:-1]
    chain: list[tuple[int, float]] = []  # (index, slope of the edge that ends there)
    for index in order[rising]:
        slope = _slope(d, x, chain, index)
        while chain and chain[-1][1] * (1.0 - TIE_TOLERANCE) <= slope:
            chain.pop()
            slope = _slope(d, x, chain, index)
        chain.append((int(index), slope))
    return np.array([index for index, _ in chain], dtype=np.intp)


def _slope(d: FloatArray, x: FloatArray, chain: list[tuple[int, float]], index: int) -> float:
    left_d, left_x = (float(d[chain[-1][0]]), float(x[chain[-1][0]])) if chain else (0.0, 0.0)
    run, rise = float(d[index]) - left_d, float(x[index]) - left_x
    return rise / run if run > 0.0 else np.inf


def hull_height(d: FloatArray, x: FloatArray, at: FloatArray) -> FloatArray:
    """Height of the hull with vertices (d, x), by increasing d, at the abscissas `at`: what a new point must exceed."""
    if d.size == 0:
        return np.zeros_like(at)
    starts_at_zero = d[0] == 0.0
    knots_d = d if starts_at_zero else np.concatenate(([0.0], d))
    knots_x = x if starts_at_zero else np.concatenate(([0.0], x))
    return np.asarray(np.interp(at, knots_d, knots_x))
