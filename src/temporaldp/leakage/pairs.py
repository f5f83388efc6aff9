"""The leakage profile of a matrix: the hull over the ROC curves of all ordered pairs of rows.

Notation
--------
q, d     two different rows; S_g = {k : q_k > g d_k} are the only sets that matter (THEORY in docs/theory.md, section 1)
x        q - d, entry by entry

For each row q, all other rows d at once: sort the columns by x_k / d_k, falling, and accumulate; every prefix is a point.
O(n^3 log n) time, O(n * support) memory. Sums of the vertices that stay are repeated with exactly rounded summation.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from temporaldp.leakage.hull import TIE_TOLERANCE, hull_height, upper_hull
from temporaldp.leakage.profile import LeakageProfile
from temporaldp.leakage.witness import Witness

FloatArray = NDArray[np.float64]
IntpArray = NDArray[np.intp]
Vertex: TypeAlias = tuple[float, float, float, Witness]
Rows: TypeAlias = Any
"""The checked matrix: a dense array or a ``scipy.sparse.csr_array``. This room knows rows and names, not who made them."""


def compute_profile(matrix: Rows, states: Sequence[str]) -> LeakageProfile:
    """The exact leakage profile of a matrix: every vertex is attained by a pair of rows and a set of columns."""
    d, x = np.zeros(0), np.zeros(0)
    pairs = np.zeros((0, 2), dtype=np.intp)
    gamma = np.zeros(0)
    for row in range(matrix.shape[0]):
        new_d, new_x, others, ratio = _points_above(matrix, row, d, x)
        if new_d.size == 0:
            continue
        d, x = np.concatenate((d, new_d)), np.concatenate((x, new_x))
        pairs = np.concatenate((pairs, np.stack((np.full_like(others, row), others), axis=1)))
        gamma = np.concatenate((gamma, ratio))
        kept = upper_hull(d, x)
        d, x, pairs, gamma = d[kept], x[kept], pairs[kept], gamma[kept]
    exact = [_vertex(matrix, states, int(i), int(j), float(g)) for (i, j), g in zip(pairs, gamma, strict=True)]
    return LeakageProfile.from_points(
        d=[vertex[0] for vertex in exact],
        x=[vertex[1] for vertex in exact],
        c=[vertex[2] for vertex in exact],
        witnesses=[vertex[3] for vertex in exact],
    )


def _points_above(
    matrix: Rows, row: int, hull_d: FloatArray, hull_x: FloatArray
) -> tuple[FloatArray, FloatArray, IntpArray, FloatArray]:
    """Points (d, x) of the pairs (row, other) above the hull so far, each with its other row and its smallest ratio x/d."""
    q, others = _columns(matrix, row)
    x = q - others
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(x > 0.0, x / others, 0.0)
    order = np.argsort(-ratio, axis=1, kind="stable")
    ratio = np.take_along_axis(ratio, order, axis=1)
    useful = ratio > 0.0
    points_x = np.cumsum(np.where(useful, np.take_along_axis(x, order, axis=1), 0.0), axis=1)
    points_d = np.cumsum(np.where(useful, np.take_along_axis(others, order, axis=1), 0.0), axis=1)
    above = useful & (points_x > hull_height(hull_d, hull_x, points_d) * (1.0 + TIE_TOLERANCE))
    return points_d[above], points_x[above], np.nonzero(above)[0].astype(np.intp), ratio[above]


def _columns(matrix: Rows, row: int) -> tuple[FloatArray, FloatArray]:
    """Row q on its support, and all rows on that support: columns where q is 0 never speak for q."""
    if sparse.issparse(matrix):
        support = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        block = matrix[:, support].toarray()
        return block[row], block
    support = np.flatnonzero(matrix[row])
    return matrix[row, support], matrix[:, support]


def _vertex(matrix: Rows, states: Sequence[str], row: int, other: int, ratio: float) -> Vertex:
    """Exactly rounded (d, x, c) and witness of the set {k : x_k / d_k >= ratio}."""
    q_row, d_row = (matrix[[k]].toarray()[0] if sparse.issparse(matrix) else matrix[k] for k in (row, other))
    difference = q_row - d_row
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = (difference > 0.0) & (difference / d_row >= ratio)
    d, x, q = min(fsum(d_row[inside]), 1.0), fsum(difference[inside]), min(fsum(q_row[inside]), 1.0)
    # 1 - q by the entries inside or outside the set: they differ by what rounding left of the row's sum. The smaller is the
    # safe one, and it is 0 where the set holds the whole row.
    c = max(0.0, min(fsum([1.0, *-q_row[inside]]), fsum(q_row[~inside])))
    if d == 0.0 and c == 0.0:
        q = x = 1.0  # disjoint rows are told apart with certainty
    evidence = tuple(states[int(k)] for k in np.flatnonzero(inside))
    return d, x, c, Witness(states[row], states[other], evidence, q, d)
