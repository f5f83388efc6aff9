"""The vertices of a profile: where to cut the slopes, the hull's vertices among a list of pairs, the best pair at a level.

Notation
--------
h         slope g - 1
line      v(h) = x - h d of one set of one pair: a lower bound of the contraction curve theta everywhere
tangent   the best line known at a slope
A, B      neighbouring vertices found so far; h their edge's slope, d_A < d_B
list      the pairs that can lie above the edge
w         1 / (e^a - 1): at a level a, a pair (q, d) leaks more than log(1 + h) if and only if E_(1 + h)(q || d) > h w

**Slopes.** Between two slopes a pair's divergence, being convex in h, lies below its chord. A pair whose chord lies below the
tangents of both ends (at the ends, and where the tangents cross) can add nothing to the profile there: it is dead in that
interval. Intervals are cut where the tangents cross until few pairs of a sample are alive in any of them.

**Refinement** is a dichotomic search over the hull's edges. Evaluate every listed pair at slope h. The best one above the edge
is a new vertex C; whatever lies above AC or CB also lies above AB, so both inherit the pairs that were above AB and no others.

**One level.** S = {k : q_k - d_k > h' d_k}, h' some ulps above h: a column whose ratio is h but for rounding would hide
columns that are a trillion times smaller and, at a large level, worth more. Newton's (Dinkelbach's) step is
h <- x(S) / (w + d(S)), the paper's Algorithm 1 for one pair.

Slopes are raised by some ulps (`steeper`), more than the rounding of the sums that they come from, so that entries whose
ratio is exactly the edge's slope round to nothing: ties end the search, and do not hide smaller entries. A point dropped for
it changes the loss by less than that.
"""

import numpy as np

from temporaldp.kernels.compilation import kernel
from temporaldp.kernels.pairs import excess, longer, set_sums, steeper, vertex_sums
from temporaldp.values import ULP

ALIVE = 0.005
"""Share of sampled pairs that may stay alive in an interval: about where a further pass over all pairs costs as much."""

MOST_SLOPES = 48
"""Slopes at most; 10 to 20 are usual."""

TIE = 1.0 + 4e-15
"""A pair must exceed an edge by this factor: about the rounding of sums of a thousand terms."""

GAIN = 1.0 + 4.0 * ULP
"""A step must raise h by this factor: less is the rounding of its sums."""


@kernel
def best_pair(store, n, h, partner, known, found):
    """Fill `found` with the divergences of the pairs (k, partner[k]); the best of them and the `known` pairs, after ascents."""
    i, j, top = 0, 1, -1.0
    for v in range(known.shape[0]):
        value = excess(store, known[v, 0], known[v, 1], h)
        if value > top:
            i, j, top = known[v, 0], known[v, 1], value
    for k in range(n):
        value = excess(store, k, partner[k], h)
        found[k] = value
        if value > top:
            i, j, top = k, partner[k], value
    # Rows that are extreme are so in many pairs: one scan of the other row, then of the row.
    for other in range(n):
        value = excess(store, i, other, h)
        if value > top:
            j, top = other, value
    for row in range(n):
        value = excess(store, row, j, h)
        if value > top:
            i, top = row, value
    return i, j


@kernel
def crossing(line, right, h_left, h_right):
    """Where the tangents (d, x) of two slopes meet, if strictly between the slopes; else the left slope."""
    run, rise = line[0] - right[0], line[1] - right[1]
    if run <= 0.0 or rise <= 0.0:
        return h_left
    h = rise / run
    return h if h_left < h < h_right else h_left


@kernel
def _alive(left, right, t_left, t_right, share, level):
    count = 0
    for k in range(left.size):
        above = left[k] > t_left or right[k] > t_right
        if above or share * left[k] + (1.0 - share) * right[k] > level:
            count += 1
    return count


@kernel
def divergences(store, rows, others, h):
    """E_(1 + h) of each listed pair."""
    found = np.empty(rows.size)
    for p in range(rows.size):
        found[p] = excess(store, rows[p], others[p], h)
    return found


@kernel
def plan_slopes(store, n, partner, steepest):
    """Slopes from 0 to `steepest`, by size, with the pair and the line (d, x) found at each.

    Returns
    -------
    slopes : shape (s,);  pairs : shape (s, 2), int64;  tangents : shape (s, 3), d, x and level of the best line there
    """
    slopes = np.empty(MOST_SLOPES)
    pairs = np.empty((MOST_SLOPES, 2), np.int64)
    lines = np.empty((MOST_SLOPES, 2))
    values = np.empty((MOST_SLOPES, n))
    done = np.zeros(MOST_SLOPES, np.bool_)  # of the interval that begins at a slope
    size = 0
    for h in (0.0, steepest):
        i, j = best_pair(store, n, h, partner, pairs[:size], values[size])
        d, x, _ = set_sums(store, i, j, h, h)
        slopes[size], pairs[size, 0], pairs[size, 1], lines[size, 0], lines[size, 1] = h, i, j, d, x
        size += 1
    position = 0
    while position < size - 1:
        nxt = position + 1
        h = crossing(lines[position], lines[nxt], slopes[position], slopes[nxt])
        if size == MOST_SLOPES or done[position] or h <= slopes[position]:
            position += 1
            continue
        share = (slopes[nxt] - h) / (slopes[nxt] - slopes[position])
        level = lines[nxt, 1] - h * lines[nxt, 0]
        t_left = lines[position, 1] - slopes[position] * lines[position, 0]
        t_right = lines[nxt, 1] - slopes[nxt] * lines[nxt, 0]
        if _alive(values[position], values[nxt], t_left, t_right, share, level) <= max(1.0, ALIVE * n):
            position += 1
            continue
        for k in range(size, nxt, -1):
            slopes[k], pairs[k], lines[k], values[k] = slopes[k - 1], pairs[k - 1], lines[k - 1], values[k - 1]
            done[k] = done[k - 1]
        pairs[nxt] = pairs[position]  # until its own is found among the pairs known so far
        size += 1
        i, j = best_pair(store, n, h, partner, pairs[:size], values[nxt])
        d, x, gained = set_sums(store, i, j, h, h)
        slopes[nxt], pairs[nxt, 0], pairs[nxt, 1], lines[nxt, 0], lines[nxt, 1] = h, i, j, d, x
        flat = gained <= level * (1.0 + 64.0 * ULP)  # the tangents' own corner is the curve: nothing lies above it
        done[position] = flat
        done[nxt] = flat
    return slopes[:size], pairs[:size], _tangents(store, slopes[:size], pairs[:size])


@kernel
def _tangents(store, slopes, pairs):
    """At each slope the best of all pairs found: its line (d, x) and its level, summed without cancellation; shape (s, 3)."""
    tangents = np.empty((slopes.size, 3))
    for s in range(slopes.size):
        best, top = s, -1.0
        for v in range(slopes.size):
            value = excess(store, pairs[v, 0], pairs[v, 1], slopes[s])
            if value > top:
                best, top = v, value
        d, x, level = set_sums(store, pairs[best, 0], pairs[best, 1], slopes[s], slopes[s])
        tangents[s, 0], tangents[s, 1], tangents[s, 2] = d, x, level
    return tangents


@kernel
def _best(store, rows, others, h):
    best, top = 0, -1.0
    for p in range(rows.size):
        value = excess(store, rows[p], others[p], h)
        if value > top:
            best, top = p, value
    return best, top


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
def refine(store, rows, others, steepest):
    """Vertices (i, j, limit), by falling slope: row, other row, and the set {k : q_k - d_k > limit d_k}; shape (m, 3).

    The lists of pairs are reordered in place: that of an edge stands in one piece of its parent's.
    """
    vertices, edges = np.empty((16, 6)), np.empty((16, 4))  # an edge: A, B and the bounds of its list
    left, left_x = _best(store, rows, others, steepest)
    right, right_x = _best(store, rows, others, 0.0)
    # The vertex with d = 0: the part of a row that another row excludes. The origin, where no row excludes any.
    _put(vertices, 0, rows[left], others[left], steepest, 0.0, left_x)
    d, x, _ = set_sums(store, rows[right], others[right], 0.0, 0.0)
    _put(vertices, 1, rows[right], others[right], 0.0, d, x)
    vertices[0, 5], vertices[1, 5] = 1, -1
    edges[0, 0], edges[0, 1], edges[0, 2], edges[0, 3] = 0, 1, 0, rows.size
    n_vertices, n_edges, raised = 2, 1 if right_x > 0.0 else 0, steeper(store)
    while n_edges:
        n_edges -= 1
        a, b, low, high = int(edges[n_edges, 0]), int(edges[n_edges, 1]), int(edges[n_edges, 2]), int(edges[n_edges, 3])
        run, rise = vertices[b, 3] - vertices[a, 3], vertices[b, 4] - vertices[a, 4]
        if run <= 0.0 or rise <= 0.0:
            continue
        h, level = rise / run * raised, 0.0
        if vertices[a, 4] > 0.0:
            level = set_sums(store, int(vertices[a, 0]), int(vertices[a, 1]), vertices[a, 2], h)[2] * TIE
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
    found, size, v = np.empty((n_vertices, 3)), 0, 0
    while v >= 0:  # from the left; the first one may be the origin, which is no vertex
        if vertices[v, 4] > 0.0:
            found[size, 0], found[size, 1], found[size, 2] = vertices[v, 0], vertices[v, 1], vertices[v, 2]
            size += 1
        v = int(vertices[v, 5])
    return found[:size]


@kernel
def stack_vertices(stack, steepest, rows, others, first, last):
    """Vertices of the matrices first .. last - 1 of a stack (count, n, n), the listed pairs searched.

    Returns
    -------
    table : shape (m, 7), d, x, q, c, row, other row and limit;  sizes : int64, shape (last - first,)
    """
    m, rows, others = 0, rows.copy(), others.copy()
    sizes, table = np.empty(last - first, np.int64), np.empty((8 * (last - first), 7))
    nothing, unused = np.empty(0, np.int64), np.empty(0)
    for number in range(first, last):
        store = (stack[number], nothing, nothing, unused)
        found = refine(store, rows, others, steepest[number])
        sums, _, _ = vertex_sums(store, found)
        table = longer(table, m + len(found))
        for v in range(len(found)):
            for k in range(7):
                table[m + v, k] = sums[v, k] if k < 4 else found[v, k - 4]
        m += len(found)
        sizes[number - first] = len(found)
    return table[:m], sizes


@kernel
def climb(store, i, j, w, best):
    """Raise best = [h, i, j, limit] by Newton's steps on one pair, while they gain; whether they did."""
    gained = False
    while True:
        limit = best[0] * steeper(store)
        d, x, _ = set_sums(store, i, j, limit, limit)
        h = x / (w + d) if x > 0.0 else 0.0
        if h <= best[0] * GAIN:
            return gained
        best[1], best[2], best[3] = i, j, limit
        best[0] = h
        gained = True


@kernel
def sampled(store, n, partner, w):
    """The best of the pairs (k, partner[k]) as [h, i, j, limit]."""
    best = np.zeros(4)
    best[2] = 1.0
    for k in range(n):
        climb(store, k, partner[k], w, best)
    return best


@kernel
def ascend(store, n, w, best):
    """Raise `best` over its row's pairs and its other row's pairs, until neither has a better one."""
    gained = best[0] > 0.0
    while gained:
        gained = False
        for other in range(n):
            gained |= climb(store, int(best[1]), other, w, best)
        for row in range(n):
            if row != int(best[2]):
                gained |= climb(store, row, int(best[2]), w, best)
