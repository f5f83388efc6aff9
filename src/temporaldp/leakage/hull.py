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
"""Relative height by which a point must rise above the hull without it. Ties in exact arithmetic differ by a few roundings; a
point dropped as tied would change the loss by less than that same relative amount."""


def upper_hull(d: FloatArray, x: FloatArray) -> NDArray[np.intp]:
    """Indices of the hull's vertices with slope x / d > 0 on their left, by increasing d; (0, 0) is implied."""
    if _is_hull(d, x):
        return np.arange(d.size)
    order = np.lexsort((-x, d))
    rising = x[order] > np.concatenate(([0.0], np.maximum.accumulate(x[order])))[:-1] * (1.0 + TIE_TOLERANCE)
    chain: list[tuple[float, float, int]] = []  # (d, x, index)
    for index in order[rising]:
        new_d, new_x = float(d[index]), float(x[index])
        while chain and chain[-1][0] > 0.0:
            left_d, left_x = chain[-2][:2] if len(chain) > 1 else (0.0, 0.0)
            last_d, last_x, _ = chain[-1]
            line = left_x + (new_x - left_x) * ((last_d - left_d) / (new_d - left_d))
            if last_x > line * (1.0 + TIE_TOLERANCE):
                break
            chain.pop()
        chain.append((new_d, new_x, int(index)))
    return np.array([index for _, _, index in chain], dtype=np.intp)


def _is_hull(d: FloatArray, x: FloatArray) -> bool:
    """Whether the points are their own hull in order, as those of a search are; saves the walk."""
    if not d.size or x[0] <= 0.0 or (np.diff(d) <= 0.0).any() or (x[1:] <= x[:-1] * (1.0 + TIE_TOLERANCE)).any():
        return False
    left_d, left_x = np.concatenate(([0.0], d[:-2])), np.concatenate(([0.0], x[:-2]))
    share = (d[:-1] - left_d) / (d[1:] - left_d)
    height = left_x + (x[1:] - left_x) * share
    return bool((x[:-1] > height * (1.0 + TIE_TOLERANCE))[d[:-1] > 0.0].all())


def hull_height(d: FloatArray, x: FloatArray, at: FloatArray) -> FloatArray:
    """Height of the hull with vertices (d, x), by increasing d, at the abscissas `at`: what a new point must exceed."""
    if d.size == 0:
        return np.zeros_like(at)
    starts_at_zero = d[0] == 0.0
    knots_d = d if starts_at_zero else np.concatenate(([0.0], d))
    knots_x = x if starts_at_zero else np.concatenate(([0.0], x))
    return np.asarray(np.interp(at, knots_d, knots_x))
