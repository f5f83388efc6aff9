"""The hockey-stick divergence of one pair of rows, dense or sparse, in double precision.

Notation
--------
i, j    the rows q and d
h       slope g - 1 >= 0, so that E_g(q || d) = sum_k max((q_k - d_k) - h d_k, 0) without cancellation at g near 1

`store` is the matrix: ``(dense, indptr, indices, data)``. One form is filled, the other empty: a dense matrix has an empty
`indptr`.
"""

import numpy as np

from temporaldp.leakage.compiled.options import inlined_kernel, kernel, summing_kernel


@kernel
def _above(q, d, h):
    """One entry's part. A function of its own, so that no sum's licence to reorder reaches this difference."""
    part = (q - d) - h * d
    return part if part > 0.0 else 0.0


@summing_kernel
def _dense_excess(q, d, h):
    total = 0.0
    for k in range(q.size):
        total += _above(q[k], d[k], h)
    return total


@kernel
def _sparse_excess(q_at, q, d_at, d, h):
    total = 0.0
    t = 0
    for s in range(q.size):
        k = q_at[s]
        while t < d.size and d_at[t] < k:
            t += 1
        other = d[t] if t < d.size and d_at[t] == k else 0.0
        total += _above(q[s], other, h)
    return total


@inlined_kernel
def excess(store, i, j, h):
    """E_(1 + h)(row i || row j); relative error n ulps at most, 2e-15 at n = 1,000 in practice."""
    dense, indptr, indices, data = store
    if indptr.size == 0:
        return _dense_excess(dense[i], dense[j], h)
    a, b, u, v = indptr[i], indptr[i + 1], indptr[j], indptr[j + 1]
    return _sparse_excess(indices[a:b], data[a:b], indices[u:v], data[u:v], h)


@kernel
def _parts(q, d, limit, h):
    """What one entry adds to d(S), x(S) and x(S) - h d(S)."""
    x = q - d
    inside = x > 0.0 and x > limit * d
    return (d, x, x - h * d) if inside else (0.0, 0.0, 0.0)


@summing_kernel
def _dense_set_sums(q, d, limit, h):
    d_sum, x_sum, level = 0.0, 0.0, 0.0
    for k in range(q.size):
        parts = _parts(q[k], d[k], limit, h)
        d_sum += parts[0]
        x_sum += parts[1]
        level += parts[2]
    return d_sum, x_sum, level


@summing_kernel
def _sparse_set_sums(q_at, q, d_at, d, limit, h):
    d_sum, x_sum, level = 0.0, 0.0, 0.0
    t = 0
    for s in range(q.size):
        k = q_at[s]
        while t < d.size and d_at[t] < k:
            t += 1
        parts = _parts(q[s], d[t] if t < d.size and d_at[t] == k else 0.0, limit, h)
        d_sum += parts[0]
        x_sum += parts[1]
        level += parts[2]
    return d_sum, x_sum, level


@kernel
def set_sums(store, i, j, limit, h):
    """(d, x, x - h d) summed over S = {k : q_k - d_k > limit d_k}; for h <= limit no term is negative."""
    dense, indptr, indices, data = store
    if indptr.size == 0:
        return _dense_set_sums(dense[i], dense[j], limit, h)
    a, b, u, v = indptr[i], indptr[i + 1], indptr[j], indptr[j + 1]
    return _sparse_set_sums(indices[a:b], data[a:b], indices[u:v], data[u:v], limit, h)


@kernel
def divergences(store, rows, others, h):
    """E_(1 + h) of each listed pair."""
    found = np.empty(rows.size)
    for p in range(rows.size):
        found[p] = excess(store, rows[p], others[p], h)
    return found
