"""The profile as a user would build it in NumPy: sort every pair of rows by q / d, accumulate, take the hull.

Notation
--------
q, d    two different rows; x = q - d entry by entry
"""

from __future__ import annotations

import numpy as np


def pair_by_pair(rows: np.ndarray, first: int, last: int) -> np.ndarray:
    """Points (d, x) of the hull over the pairs (i, j), first <= i < last: a Python loop over pairs."""
    points = [np.zeros((1, 2))]
    for i in range(first, last):
        for j in range(len(rows)):
            if i == j:
                continue
            q, d = rows[i], rows[j]
            useful = q > d
            q, d = q[useful], d[useful]
            order = np.argsort(-(q / d))
            points.append(np.stack((np.cumsum(d[order]), np.cumsum((q - d)[order])), axis=1))
    return hull(np.concatenate(points))


def row_by_row(rows: np.ndarray, first: int, last: int) -> np.ndarray:
    """The same with all rows d at once for each q, and points below the hull so far thrown away at once."""
    found = np.zeros((1, 2))
    for i in range(first, last):
        x = rows[i] - rows
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(x > 0.0, x / rows, 0.0)
        order = np.argsort(-ratio, axis=1)
        useful = np.take_along_axis(ratio, order, axis=1) > 0.0
        x_sums = np.cumsum(np.where(useful, np.take_along_axis(x, order, axis=1), 0.0), axis=1)
        d_sums = np.cumsum(np.where(useful, np.take_along_axis(rows, order, axis=1), 0.0), axis=1)
        above = useful & (x_sums > np.interp(d_sums, found[:, 0], found[:, 1]))
        found = hull(np.concatenate((found, np.stack((d_sums[above], x_sums[above]), axis=1))))
    return found


def hull(points: np.ndarray) -> np.ndarray:
    """The rising part of the upper hull, from (0, 0)."""
    points = points[np.lexsort((-points[:, 1], points[:, 0]))]
    points = points[points[:, 1] >= np.maximum.accumulate(points[:, 1])]
    chain: list[np.ndarray] = []
    for point in points:
        while len(chain) > 1:
            (a, b), (c, d) = chain[-2], chain[-1]
            if (d - b) * (point[0] - a) > (point[1] - b) * (c - a):
                break
            chain.pop()
        if not chain or point[1] > chain[-1][1]:
            chain.append(point)
    return np.array(chain)
