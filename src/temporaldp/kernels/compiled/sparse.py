"""The screen for sparse matrices: for one row q, all rows d at once, through the columns that q is not zero in.

Notation
--------
heavy     columns with many entries, kept as dense vectors; the others are light
i, j      rows q and d: E_g(q || d) = q(light) + sum over heavy k of max((q_k - d_k) - h d_k, 0)
          + sum over light k that both have of [max((q_k - d_k) - h d_k, 0) - q_k]

In double precision, so that pairs which tie with a tangent are told from pairs above it. The light part is raised by two ulps
for every entry: its parts are taken away again, and what is left may be as small as their rounding.
"""

import numpy as np

from temporaldp.kernels.compiled.growth import longer
from temporaldp.kernels.compiled.options import kernel
from temporaldp.values import ULP


@kernel
def _add_heavy(out, q, column, h):
    for j in range(out.size):
        part = (q - column[j]) - h * column[j]
        out[j] += part if part > 0.0 else 0.0


@kernel
def _lift(over, left, share, right, rest, threshold):
    for j in range(over.size):
        gap = share * left[j] + rest * right[j] - threshold
        over[j] = max(over[j], gap)


@kernel
def screen_sparse(store, columns, heavy, vectors, first, last, slopes, ends, shares, levels):
    """Pairs (i, j), i in [first, last), above the tangents at a slope (`ends`) or between two (`levels`; -1: none).

    ``columns = (starts, rows, values)`` is the matrix by columns; ``heavy[k]`` numbers the row of `vectors` that holds column
    k densely, or is -1. Returns int32 arrays i, j.
    """
    _, indptr, indices, data = store
    starts, rows, values = columns
    n = indptr.size - 1
    found = np.empty((slopes.size, n))
    over = np.empty(n)
    out_i, out_j = np.empty(1024, np.int32), np.empty(1024, np.int32)
    size = 0
    for i in range(first, last):
        light, n_light = 0.0, 0
        for t in range(indptr[i], indptr[i + 1]):
            if heavy[indices[t]] < 0:
                light += data[t]
                n_light += 1
        light *= 1.0 + (2 * n_light + 4) * ULP
        over[:] = -1.0
        for s in range(slopes.size):
            out, h = found[s], slopes[s]
            out[:] = light
            for t in range(indptr[i], indptr[i + 1]):
                k, q = indices[t], data[t]
                if heavy[k] >= 0:
                    _add_heavy(out, q, vectors[heavy[k]], h)
                    continue
                for u in range(starts[k], starts[k + 1]):
                    part = (q - values[u]) - h * values[u]
                    out[rows[u]] += (part if part > 0.0 else 0.0) - q
            _lift(over, out, 1.0, out, 0.0, ends[s])
            if s > 0 and levels[s - 1] >= 0.0:
                _lift(over, found[s - 1], shares[s - 1], out, 1.0 - shares[s - 1], levels[s - 1])
        for j in range(n):
            if over[j] > 0.0 and i != j:
                out_i, out_j = longer(out_i, size + 1), longer(out_j, size + 1)
                out_i[size], out_j[size] = i, j
                size += 1
    return out_i[:size].copy(), out_j[:size].copy()
