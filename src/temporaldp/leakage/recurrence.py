"""When what arrives through a correlation stays finite for ever: by the values that a chain of values returns to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

ROUNDING = 1e-12
"""Relative. A spectral radius is not known better; budgets so close to the threshold count as above it."""


def largest_lasting_epsilon(matrix: Any) -> float:
    """The threshold below which a constant budget has a finite exact supremum; inf: always, 0: never.

    ``-log lambda``, lambda the spectral radius of the matrix on its transient values, if there is one closed class of
    values and it is aperiodic; otherwise two values exist that no later observation confuses, and leakage about them
    adds up for ever (docs/theory.md, section 10). `matrix` has shape (n, n), dense or sparse. Rounded down.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array(matrix)
    count, label = connected_components(graph, directed=True, connection="strong")
    rows, columns = graph.nonzero()
    leaves = np.unique(label[rows[label[rows] != label[columns]]])
    closed = np.setdiff1d(np.arange(count), leaves)
    if len(closed) > 1:
        return 0.0
    inside = label == closed[0]
    if _period(graph[inside][:, inside]) > 1:
        return 0.0
    if inside.all():
        return math.inf
    radius = 0.0
    for one in leaves:  # the block of the transient values is triangular by classes
        members = label == one
        block = graph[members][:, members].toarray()
        radius = max(radius, float(np.abs(np.linalg.eigvals(block)).max()))
    return math.inf if radius == 0.0 else max(0.0, -math.log(radius) - ROUNDING)


def _period(graph: Any) -> int:
    """The greatest common divisor of the lengths of all cycles of a strongly connected graph."""
    from scipy.sparse.csgraph import breadth_first_order

    order, before = breadth_first_order(graph, 0, directed=True)
    level = np.zeros(graph.shape[0], np.int64)
    for node in order[1:]:
        level[node] = level[before[node]] + 1
    rows, columns = graph.nonzero()
    return int(np.gcd.reduce(level[rows] + 1 - level[columns]))
