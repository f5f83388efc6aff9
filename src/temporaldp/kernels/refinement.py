"""The vertices of a profile: the upper hull's vertices among a list of pairs.

Notation
--------
h         slope g - 1
A, B      neighbouring vertices found so far; h their edge's slope, d_A < d_B
list      the pairs that can lie above the edge

Refinement is a dichotomic search over the hull's edges. Evaluate every listed pair at slope h. The best one above the edge is a
new vertex C; whatever lies above AC or CB also lies above AB, so both inherit the pairs that were above AB and no others.

Slopes are raised by some ulps (`steeper`), more than the rounding of the sums that they come from, so that entries whose
ratio is exactly the edge's slope round to nothing: ties end the search, and do not hide smaller entries. A point dropped for
it changes the loss by less than that.
"""

import numpy as np

from temporaldp.kernels.compilation import kernel
from temporaldp.kernels.pairs import excess, longer, set_sums, steeper

TIE = 1.0 + 4e-15
"""A pair must exceed an edge by this factor: about the rounding of sums of a thousand terms."""


@kernel
def _pairs_above(store, rows, others, low, high, h, level):
    """Move the pairs low .. high - 1 above `level` to the front; the best of them (-1: none), and where they end."""
    best, top, end = -1, level, low
    for p in range(low, high):
        value = excess(store, rows[p], others[p], h)
        if value > level:
            rows[p], rows[end] = rows[end], rows[p]
            others[p], others[end] = others[end], others[p]
            if value > top:
                best, top = end, value
            end += 1
    return best, end


@kernel
def _best_between(store, rows, others, low, high, h, left, right):
    """The best of the listed pairs whose point lies between two vertices (-1: none)."""
    best, top = -1, 0.0
    for p in range(low, high):
        d, x, value = set_sums(store, rows[p], others[p], h, h)
        if value > top and left[3] <= d < right[3] and left[4] < x:
            best, top = p, value
    return best


@kernel
def _put(vertices, v, i, j, limit, d, x):
    """A vertex in a row of numbers. The last column is the number of the vertex at its right (-1: none)."""
    vertices[v, 0], vertices[v, 1], vertices[v, 2], vertices[v, 3], vertices[v, 4] = i, j, limit, d, x


@kernel
def refine(store, rows, others, steepest, gain):
    """Vertices (i, j, limit, d, x) by falling slope, shape (m, 5): rows, the set {k : q_k - d_k > limit d_k}, and its sums.

    The lists of pairs are reordered in place: that of an edge stands in one piece of its parent's.
    """
    vertices, edges = np.empty((16, 6)), np.empty((16, 4))  # an edge: A, B and the bounds of its list
    left, _ = _pairs_above(store, rows, others, 0, rows.size, steepest, -1.0)
    right, _ = _pairs_above(store, rows, others, 0, rows.size, 0.0, -1.0)
    # The vertex with d = 0: the part of a row that another row excludes. The origin, where no row excludes any.
    _put(vertices, 0, rows[left], others[left], steepest, 0.0, excess(store, rows[left], others[left], steepest))
    d, x, _ = set_sums(store, rows[right], others[right], 0.0, 0.0)
    _put(vertices, 1, rows[right], others[right], 0.0, d, x)
    vertices[0, 5], vertices[1, 5] = 1, -1
    edges[0, 0], edges[0, 1], edges[0, 2], edges[0, 3] = 0, 1, 0, rows.size
    n_vertices, n_edges, raised = 2, 1 if x > 0.0 else 0, steeper(store)
    while n_edges:
        n_edges -= 1
        a, b, low, high = int(edges[n_edges, 0]), int(edges[n_edges, 1]), int(edges[n_edges, 2]), int(edges[n_edges, 3])
        run, rise = vertices[b, 3] - vertices[a, 3], vertices[b, 4] - vertices[a, 4]
        if run <= 0.0 or rise <= 0.0:
            continue
        h, level = rise / run * raised, 0.0
        if vertices[a, 4] > 0.0:
            level = set_sums(store, int(vertices[a, 0]), int(vertices[a, 1]), vertices[a, 2], h)[2] * gain
        best, end = _pairs_above(store, rows, others, low, high, h, level)
        if best < 0:
            continue
        d, x, _ = set_sums(store, rows[best], others[best], h, h)
        if not (vertices[a, 3] <= d < vertices[b, 3] and vertices[a, 4] < x):
            # A tie with A or B that differs in its last digits: look at the others.
            best = _best_between(store, rows, others, low, end, h, vertices[a], vertices[b])
            if best < 0:
                continue
            d, x, _ = set_sums(store, rows[best], others[best], h, h)
        vertices, edges = longer(vertices, n_vertices + 1), longer(edges, n_edges + 2)
        _put(vertices, n_vertices, rows[best], others[best], h, d, x)
        vertices[n_vertices, 5], vertices[a, 5] = vertices[a, 5], n_vertices
        for start, stop in ((n_vertices, b), (a, n_vertices)):
            edges[n_edges, 0], edges[n_edges, 1], edges[n_edges, 2], edges[n_edges, 3] = start, stop, low, end
            n_edges += 1
        n_vertices += 1
    found, size, v = np.empty((n_vertices, 5)), 0, 0
    while v >= 0:  # from the left; the first one may be the origin, which is not a vertex
        if vertices[v, 4] > 0.0:
            found[size] = vertices[v, :5]
            size += 1
        v = int(vertices[v, 5])
    return found[:size]
