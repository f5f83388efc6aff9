"""Sums over one pair of rows, dense or sparse, in double precision.

Notation
--------
i, j    the rows q and d; x = q - d entry by entry
h       slope g - 1 >= 0, so that E_g(q || d) = sum_k max((q_k - d_k) - h d_k, 0) without cancellation at g near 1
S       the set {k : q_k - d_k > limit d_k}

`store` is the matrix: ``(dense, indptr, indices, data)``. One form is filled, the other empty: a dense matrix has an empty
`indptr`.
"""

import numpy as np

from temporaldp.kernels.compilation import inlined_kernel, kernel, summing_kernel
from temporaldp.values import ULP


@kernel
def steeper(store):
    """A factor by which a slope is raised before pairs are compared at it: n / 8 ulps, at most 200.

    More than the rounding of sums of n terms, eight at a time, from which the slope comes. Entries whose ratio is the slope
    then round to nothing instead of to a few ulps, which could hide entries that are trillions of times smaller. The
    loss changes by less than the same relative amount, 5e-14 at most.
    """
    return 1.0 + min(6.0 + max(store[0].shape[0], store[1].size - 1) / 8.0, 200.0) * ULP


@kernel
def longer(table, size):
    """The table itself if it has room for `size` rows, else a copy with twice as many; the rest is not set."""
    if size <= table.shape[0]:
        return table
    grown = np.empty((2 * size, table.shape[1]), table.dtype)
    for v in range(table.shape[0]):  # assigning a slice takes Numba a second to compile
        for k in range(table.shape[1]):
            grown[v, k] = table[v, k]
    return grown


@kernel
def _parts(q, d, limit, h):
    """Contributions of one entry to d(S), x(S) and x(S) - h d(S)."""
    x = q - d
    inside = x > 0.0 and x > limit * d
    return (d, x, x - h * d) if inside else (0.0, 0.0, 0.0)


@kernel
def _above(q, d, h):
    """One entry's part of E. A function of its own, so that no sum's licence to reorder reaches this difference."""
    part = (q - d) - h * d
    return part if part > 0.0 else 0.0


@summing_kernel
def dense_excess(dense, i, j, h):
    """E_(1 + h)(row i || row j) of a dense matrix."""
    total = 0.0
    for k in range(dense.shape[1]):
        total += _above(dense[i, k], dense[j, k], h)
    return total


@summing_kernel
def _dense_set_sums(q, d, limit, h):
    d_sum, x_sum, level = 0.0, 0.0, 0.0
    for k in range(q.size):
        parts = _parts(q[k], d[k], limit, h)
        d_sum += parts[0]
        x_sum += parts[1]
        level += parts[2]
    return d_sum, x_sum, level


@kernel
def add(pair, value):
    """Add to an unevaluated sum of two doubles, which holds 106 bits (Knuth's TwoSum)."""
    high, low = pair
    total = high + value
    other = total - high
    return total, low + ((high - (total - other)) + (value - other))


@kernel
def _sparse_set_sums(q_at, q, d_at, d, limit, h):
    d_sum, x_sum, level = (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)  # entries come one at a time, and equal ones would drift
    t = 0
    for s in range(q.size):
        while t < d.size and d_at[t] < q_at[s]:
            t += 1
        parts = _parts(q[s], d[t] if t < d.size and d_at[t] == q_at[s] else 0.0, limit, h)
        d_sum, x_sum, level = add(d_sum, parts[0]), add(x_sum, parts[1]), add(level, parts[2])
    return d_sum[0] + d_sum[1], x_sum[0] + x_sum[1], level[0] + level[1]


@kernel
def set_sums(store, i, j, limit, h):
    """(d, x, x - h d) summed over S; for h <= limit no term is negative."""
    dense, indptr, indices, data = store
    if indptr.size == 0:
        return _dense_set_sums(dense[i], dense[j], limit, h)
    a, b, u, v = indptr[i], indptr[i + 1], indptr[j], indptr[j + 1]
    return _sparse_set_sums(indices[a:b], data[a:b], indices[u:v], data[u:v], limit, h)


@inlined_kernel
def excess(store, i, j, h):
    """E_(1 + h)(row i || row j); relative error n ulps at most, 2e-15 at n = 1,000 in practice."""
    return dense_excess(store[0], i, j, h) if store[1].size == 0 else set_sums(store, i, j, h, h)[2]


@kernel
def _entry(store, row, start, k):
    """Entry k of a row, and where to look for the next one: sparse rows are walked from left to right."""
    dense, indptr, indices, data = store
    if indptr.size == 0:
        return dense[row, k], start
    end = indptr[row + 1]
    while start < end and indices[start] < k:
        start += 1
    return (data[start] if start < end and indices[start] == k else 0.0), start


@kernel
def vertex_sums(store, found):
    """d, x = q - d, q and c = 1 - q of the vertices (row, other row, limit), shape (m, 4).

    1 - q by the entries inside or outside the set: they differ by what rounding left of the row's sum. The smaller is
    the safe one, and it is 0 where the set holds the whole row.
    """
    dense, indptr, indices, data = store
    sums = np.empty((len(found), 4))
    for v in range(len(found)):
        i, j, limit = int(found[v, 0]), int(found[v, 1]), found[v, 2]
        low, high = (0, dense.shape[1]) if indptr.size == 0 else (indptr[i], indptr[i + 1])
        at = 0 if indptr.size == 0 else indptr[j]
        d_sum, x_sum, q_sum, inside, outside = (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (1.0, 0.0), (0.0, 0.0)
        for t in range(low, high):
            k = t if indptr.size == 0 else int(indices[t])
            q = dense[i, t] if indptr.size == 0 else data[t]
            d, at = _entry(store, j, at, k)
            x = q - d
            if x > 0.0 and x > limit * d:
                d_sum, x_sum, q_sum, inside = add(d_sum, d), add(x_sum, x), add(q_sum, q), add(inside, -q)
            else:
                outside = add(outside, q)
        sums[v, 0], sums[v, 1] = min(d_sum[0] + d_sum[1], 1.0), x_sum[0] + x_sum[1]
        sums[v, 2] = min(q_sum[0] + q_sum[1], 1.0)
        sums[v, 3] = max(0.0, min(inside[0] + inside[1], outside[0] + outside[1]))
        if sums[v, 0] == 0.0 and sums[v, 3] == 0.0:
            sums[v, 1] = sums[v, 2] = 1.0  # disjoint rows
    return sums
