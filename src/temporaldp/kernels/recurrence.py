"""When what arrives through a correlation stays finite for ever: by the values that a chain of values returns to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.values import ROUNDOFF as U

FloatArray = NDArray[np.float64]


SOLVED = 3
"""Systems that are solved for a proof, each from what the last one led to."""

LARGEST_FACTOR = 700.0
"""Nats. Larger budgets outweigh every probability there is of coming back to a value that is left for good in the end."""


def has_supremum(matrix: Any, epsilon: float) -> bool:
    """Whether the exact leakage of releases that spend epsilon each is proved to have a supremum over all horizons.

    It has one if and only if there is one closed class of values, it is aperiodic, and ``epsilon < -log lambda``, lambda the
    spectral radius of the matrix on its other values (docs/theory.md, section 10). Otherwise two values exist that no later
    observation confuses, and leakage about them adds up for ever. Classes and periods depend on which entries are 0 alone; the
    inequality is proved, rounding included, and counts as false where rounding leaves it open.

    Parameters
    ----------
    matrix : array or sparse array, shape (n, n)
        Rows sum to 1, to rounding.
    epsilon : float, > 0
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array(matrix)
    count, label = connected_components(graph, directed=True, connection="strong")
    rows, columns = graph.nonzero()
    leaves = np.unique(label[rows[label[rows] != label[columns]]])
    closed = np.setdiff1d(np.arange(count), leaves)
    if len(closed) > 1:
        return False
    inside = label == closed[0]
    if _period(graph[inside][:, inside]) > 1:
        return False
    # The block of the transient values is triangular by classes.
    blocks = (graph[members][:, members].toarray() for members in (label == one for one in leaves))
    return all(_stays_below_one(block, epsilon) for block in blocks)


def _stays_below_one(block: FloatArray, epsilon: float) -> bool:
    """Whether ``e^epsilon`` times the spectral radius of a block is proved to be below 1.

    By Collatz and Wielandt it is if some v > 0 is above ``e^epsilon block v`` everywhere. The solution of
    ``v - e^epsilon block v = 1`` is one, if there is one, and so is that with v in place of 1, where entries are of different
    sizes; they are tried as they were computed. Eigenvalues would not do: of a class that hardly holds together they are known
    to half of their digits.
    """
    n = len(block)
    if not block.any():
        return True
    if epsilon > LARGEST_FACTOR:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        raised: FloatArray = math.exp(epsilon) * block
        v: FloatArray = np.ones(n)
        for _ in range(SOLVED):
            try:
                v[:] = np.linalg.solve(np.eye(n) - raised, v)
            except np.linalg.LinAlgError:
                return False
            if not (v > 0.0).all():
                return False
            v /= v.max()
            passed_on = raised @ v
            # n products and sums; what e^epsilon is known to, and rows are divided by: a few roundings more.
            if (v - passed_on > U * (2.0 * n + 16.0) * (v + passed_on)).all():
                return True
    return False


def _period(graph: Any) -> int:
    """The greatest common divisor of the lengths of all cycles of a strongly connected graph."""
    from scipy.sparse.csgraph import breadth_first_order

    order, before = breadth_first_order(graph, 0, directed=True)
    level = np.zeros(graph.shape[0], np.int64)
    for node in order[1:]:
        level[node] = level[before[node]] + 1
    rows, columns = graph.nonzero()
    return int(np.gcd.reduce(level[rows] + 1 - level[columns]))
