"""Which points of a long line are drawn: a picture has fewer columns than that."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST_POINTS = 4_000
"""Of a line: twice as many as a page has pixels across."""


def drawn_points(values: ArrayLike) -> NDArray[np.intp]:
    """The positions of a line's points that are drawn: all, or of each stretch of a long line its least and its largest value.

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
