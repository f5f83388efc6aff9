"""The hull's vertices among a list of pairs, by dichotomic search over its edges.

Notation
--------
A, B      neighbouring vertices found so far; h their edge's slope, d_A < d_B
list      the pairs that can lie above the edge

Evaluate every listed pair at slope h. The best one above the edge is a new vertex C; whatever lies above AC or CB also lies
above AB, so both inherit the pairs that were above AB and no others.

Slopes are raised by some ulps (`steeper`), more than the rounding of the sums that they come from, so that entries whose
ratio is exactly the edge's slope round to nothing: ties end the search, and do not hide smaller entries. A point dropped for
it changes the loss by less than that.
"""

import numpy as np

from temporaldp.kernels.compiled.growth import longer
from temporaldp.kernels.compiled.options import kernel
from temporaldp.kernels.compiled.pairs import excess, n_rows, set_sums, steeper

TIE = 1.0 + 4e-15
"""A pair must exceed an edge by this factor: about the rounding of sums of a thousand terms."""


FIELDS = 6
"""A vertex in a row of numbers: i, j, limit, d, x, and the number of the vertex at its right (-1: none)."""

ROW, OTHER, LIMIT, D, X, RIGHT = range(FIELDS)


@kernel
def _put(vertices, v, i, j, limit, d, x, right):
    vertices[v, ROW], vertices[v, OTHER], vertices[v, LIMIT], vertices[v, D], vertices[v, X] = i, j, limit, d, x
    vertices[v, RIGHT] = right


@kernel
def _put_edges(edges, n_edges, a, c, b, low, high):
    """AC on top of CB, with the same list."""
    edges[n_edges, 0], edges[n_edges, 1], edges[n_edges + 1, 0], edges[n_edges + 1, 1] = c, b, a, c
    edges[n_edges : n_edges + 2, 2], edges[n_edges : n_edges + 2, 3] = low, high


@kernel
def _best(store, rows, others, h):
    best, top = 0, -1.0
    for p in range(rows.size):
        value = excess(store, rows[p], others[p], h)
        if value > top:
            best, top = p, value
    return best, top


@kernel
def _list_above(store, rows, others, low, high, h, level):
    """Copy the pairs low .. high - 1 above `level` behind `high`; the best of the copies (-1: none), and where they end."""
    best, top, end = -1, level, high
    for p in range(low, high):
        value = excess(store, rows[p], others[p], h)
        if value > level:
            rows[end], others[end] = rows[p], others[p]
            if value > top:
                best, top = end, value
            end += 1
    return best, end


@kernel
def _is_between(vertices, a, b, d, x):
    return vertices[a, D] <= d < vertices[b, D] and vertices[a, X] < x


@kernel
def _best_between(store, rows, others, low, high, h, vertices, a, b):
    """The best of the listed pairs whose point lies between A and B (-1: none), and its point."""
    best, top, best_d, best_x = -1, 0.0, 0.0, 0.0
    for p in range(low, high):
        d, x, value = set_sums(store, rows[p], others[p], h, h)
        if value > top and _is_between(vertices, a, b, d, x):
            best, top, best_d, best_x = p, value, d, x
    return best, best_d, best_x


@kernel
def _from_left(vertices, n_vertices):
    """Row, other row and limit of the vertices by rising d; the first one may be the origin, which is none."""
    chosen = np.empty((n_vertices, 3))
    size, v = 0, 0
    while v >= 0:
        if vertices[v, X] > 0.0:
            chosen[size] = vertices[v, :3]
            size += 1
        v = int(vertices[v, RIGHT])
    return chosen[:size, ROW].astype(np.int64), chosen[:size, OTHER].astype(np.int64), chosen[:size, LIMIT].copy()


@kernel
def refine(store, rows, others, steepest):
    """Vertices (i, j, limit), by falling slope: row, other row, and the set {k : q_k - d_k > limit d_k}."""
    n_pairs = rows.size
    vertices, edges = np.empty((16, FIELDS)), np.empty((16, 4), np.int64)  # an edge: A, B and the bounds of its list
    left, left_x = _best(store, rows, others, steepest)
    right, right_x = _best(store, rows, others, 0.0)
    if right_x <= 0.0:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    # The vertex with d = 0: the part of a row that another row excludes. The origin, where no row excludes any.
    _put(vertices, 0, rows[left], others[left], steepest, 0.0, left_x, 1)
    d, x, _ = set_sums(store, rows[right], others[right], 0.0, 0.0)
    _put(vertices, 1, rows[right], others[right], 0.0, d, x, -1)
    edges[0, 0], edges[0, 1], edges[0, 2], edges[0, 3] = 0, 1, 0, n_pairs
    n_vertices, n_edges, raised = 2, 1, steeper(n_rows(store))
    rows, others = longer(rows, n_pairs + 1), longer(others, n_pairs + 1)
    while n_edges:
        n_edges -= 1
        a, b, low, high = edges[n_edges, 0], edges[n_edges, 1], edges[n_edges, 2], edges[n_edges, 3]
        run, rise = vertices[b, D] - vertices[a, D], vertices[b, X] - vertices[a, X]
        if run <= 0.0 or rise <= 0.0:
            continue
        h, level = rise / run * raised, 0.0
        if vertices[a, X] > 0.0:
            level = set_sums(store, int(vertices[a, ROW]), int(vertices[a, OTHER]), vertices[a, LIMIT], h)[2] * TIE
        rows, others = longer(rows, 2 * high - low), longer(others, 2 * high - low)
        best, end = _list_above(store, rows, others, low, high, h, level)
        if best < 0:
            continue
        d, x, _ = set_sums(store, rows[best], others[best], h, h)
        if not _is_between(
            vertices, a, b, d, x
        ):  # a tie with A or B that differs in its last digits: look at the others
            best, d, x = _best_between(store, rows, others, high, end, h, vertices, a, b)
            if best < 0:
                continue
        vertices, edges = longer(vertices, n_vertices + 1), longer(edges, n_edges + 2)
        _put(vertices, n_vertices, rows[best], others[best], h, d, x, vertices[a, RIGHT])
        vertices[a, RIGHT] = n_vertices
        _put_edges(edges, n_edges, a, n_vertices, b, high, end)
        n_vertices, n_edges = n_vertices + 1, n_edges + 2
    return _from_left(vertices, n_vertices)
