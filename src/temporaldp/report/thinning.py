"""Points of a long line that are drawn: a figure has fewer columns than the line has points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST_POINTS = 4_000
"""Points of a line: twice the pixels across a page."""


def drawn_points(values: ArrayLike) -> NDArray[np.intp]:
    """Return positions of the points to draw: all, or the smallest and the largest value of each stretch of a long line.

    Parameters
    ----------
    values : array_like, shape (T,)

    Returns
    -------
    int array, shape (k,), increasing; k is at most `MOST_POINTS` and the ends, which are always among them
    """
    known = np.asarray(values)
    n = len(known)
    if n <= MOST_POINTS:
        return np.arange(n)
    length = -(-2 * n // MOST_POINTS)
    padded = np.concatenate((known, np.full(-n % length, known[-1]))).reshape(-1, length)
    starts = np.arange(0, n, length)
    found = np.concatenate(([0, n - 1], starts + padded.argmin(axis=1), starts + padded.argmax(axis=1)))
    return np.unique(np.minimum(found, n - 1))
