"""Screens: the pairs of rows that rise above the hull of a few of them.

Notation
--------
h         slope g - 1
i, j      rows q and d
edge      of a hull: its slope, and the level x - h d of its line. The ends count as edges of slope 0 and of the steepest slope
heavy     columns of a sparse matrix with many entries, kept as dense vectors; the others are light

A point above a hull lies above the line of one of its edges, so that its pair has a divergence above the level at that edge's
slope. The divergence is convex in h: between two slopes it lies below its chord, and is not summed where the chord does not
exceed the levels.

The sparse screen takes one row q and all rows d at once, through the columns in which q is not zero: E_g(q || d) = q(light) +
sum over heavy k of max((q_k - d_k) - h d_k, 0) + sum over light k that both have of [max((q_k - d_k) - h d_k, 0) - q_k]. The
light part is raised by two ulps for every entry, as its parts are subtracted again, and the rest may be as small as their
rounding.
"""

import numpy as np

from temporaldp.kernels.compilation import kernel
from temporaldp.kernels.pairs import dense_excess, longer, set_sums, steeper
from temporaldp.kernels.refinement import TIE
from temporaldp.values import ULP


@kernel
def hull_edges(store, vertices, steepest):
    """Slopes, falling, and levels of the edges of a hull; `vertices`, shape (m, 5), are those of `refine`."""
    m = len(vertices)
    slopes, levels = np.zeros(m + 1), np.zeros(m + 1)
    for v in range(m):
        i, j, limit, d, x = vertices[v]
        if v == 0 and d == 0.0:
            slopes[0], levels[0] = steepest, x * TIE
            continue
        run, rise = (d - vertices[v - 1, 3], x - vertices[v - 1, 4]) if v else (d, x)
        slopes[v] = rise / run * steeper(store)
        if v:
            i, j, limit = vertices[v - 1, 0], vertices[v - 1, 1], vertices[v - 1, 2]
            levels[v] = set_sums(store, int(i), int(j), limit, slopes[v])[2] * TIE
    if m:
        levels[m] = vertices[m - 1, 4] * TIE
    return slopes, levels


@kernel
def is_chord_below(left, right, slopes, levels, values):
    """Whether the chord between two slopes exceeds no level between them."""
    rise, share = values[right] - values[left], 1.0 / (slopes[left] - slopes[right])
    for k in range(left + 1, right):  # noqa: SIM110  compiled
        if not values[left] + rise * ((slopes[left] - slopes[k]) * share) <= levels[k]:  # nor where slopes tie
            return False
    return True


@kernel
def screen(dense, first, last, slopes, levels):
    """Pairs (i, j), i in [first, last), of a dense matrix above an edge, shape (m, 2)."""
    n, size, deepest = dense.shape[0], 0, slopes.size - 1
    pairs, values, waiting = np.empty((1024, 2), np.int64), np.empty(slopes.size), np.empty(slopes.size, np.int64)
    # One loop: each call would count references to its arrays, which takes as long as a pair.
    for pair in range(first * n, last * n):
        i, j = pair // n, pair % n
        at, left, size_waiting = 0, 0, 0
        while True:
            values[at] = dense_excess(dense, i, j, slopes[at])
            if values[at] > levels[at]:
                pairs = longer(pairs, size + 1)
                pairs[size, 0], pairs[size, 1] = i, j
                size += 1
                break
            if at == 0 < deepest:
                at = deepest
                continue
            waiting[size_waiting] = at
            size_waiting += 1
            while size_waiting and is_chord_below(left, waiting[size_waiting - 1], slopes, levels, values):
                size_waiting -= 1
                left = waiting[size_waiting]
            if size_waiting == 0:
                break
            at = (left + waiting[size_waiting - 1]) // 2
    return pairs[:size].copy()


@kernel
def screen_sparse(store, columns, heavy, vectors, first, last, slopes, levels):
    """Pairs (i, j), i in [first, last), of a sparse matrix above an edge, shape (m, 2).

    ``columns = (starts, rows, values)`` is the matrix by columns; ``heavy[k]`` numbers the row of `vectors` that holds column
    k densely, or is -1.
    """
    _, indptr, indices, data = store
    starts, rows, values = columns
    n, size = indptr.size - 1, 0
    pairs, out, above = np.empty((1024, 2), np.int64), np.empty(n), np.empty(n, np.bool_)
    for i in range(first, last):
        light, n_light = 0.0, 0
        for t in range(indptr[i], indptr[i + 1]):
            if heavy[indices[t]] < 0:
                light += data[t]
                n_light += 1
        light *= 1.0 + (2 * n_light + 4) * ULP
        above[:] = False
        for s in range(slopes.size):
            h = slopes[s]
            out[:] = light
            for t in range(indptr[i], indptr[i + 1]):
                k, q = indices[t], data[t]
                if heavy[k] >= 0:
                    _add_heavy(out, q, vectors[heavy[k]], h)
                    continue
                for u in range(starts[k], starts[k + 1]):
                    part = (q - values[u]) - h * values[u]
                    out[rows[u]] += (part if part > 0.0 else 0.0) - q
            above |= out > levels[s]
        above[i] = False
        for j in np.flatnonzero(above):
            pairs = longer(pairs, size + 1)
            pairs[size, 0], pairs[size, 1] = i, j
            size += 1
    return pairs[:size].copy()


@kernel
def _add_heavy(out, q, column, h):
    for j in range(out.size):
        part = (q - column[j]) - h * column[j]
        out[j] += part if part > 0.0 else 0.0
