"""The sums of a vertex, as if rounded once.

Notation
--------
i, j, limit    row q, row d, and S = {k : q_k - d_k > limit d_k}
(high, low)    an unevaluated sum of two doubles: 106 bits (Knuth's TwoSum)
"""

import numpy as np

from temporaldp.kernels.compiled.growth import longer
from temporaldp.kernels.compiled.options import kernel


@kernel
def _add(pair, value):
    high, low = pair
    total = high + value
    other = total - high
    return total, low + ((high - (total - other)) + (value - other))


@kernel
def _close(pair):
    return pair[0] + pair[1]


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
def vertex_sums(store, rows, others, limits):
    """d, x = q - d, q and c = 1 - q of each vertex, shape (m, 4), and its set.

    1 - q by the entries inside or outside the set: they differ by what rounding left of the row's sum. The smaller is the
    safe one, and it is 0 where the set holds the whole row.

    Returns
    -------
    sums : shape (m, 4);  members, ends : the set of vertex v is ``members[ends[v] : ends[v + 1]]``
    """
    dense, indptr, indices, data = store
    m = rows.size
    sums, ends = np.empty((m, 4)), np.zeros(m + 1, np.int64)
    members = np.empty(max(64, dense.shape[1]), np.int64)
    size = 0
    for v in range(m):
        i, j = rows[v], others[v]
        low, high = (0, dense.shape[1]) if indptr.size == 0 else (indptr[i], indptr[i + 1])
        at = 0 if indptr.size == 0 else indptr[j]
        d_sum, x_sum, q_sum, inside, outside = (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (1.0, 0.0), (0.0, 0.0)
        members = longer(members, size + high - low)
        for t in range(low, high):
            k = t if indptr.size == 0 else int(indices[t])
            q = dense[i, t] if indptr.size == 0 else data[t]
            d, at = _entry(store, j, at, k)
            x = q - d
            if x > 0.0 and x > limits[v] * d:
                members[size] = k
                size += 1
                d_sum, x_sum, q_sum, inside = _add(d_sum, d), _add(x_sum, x), _add(q_sum, q), _add(inside, -q)
            else:
                outside = _add(outside, q)
        ends[v + 1] = size
        sums[v, 0], sums[v, 1], sums[v, 2] = min(_close(d_sum), 1.0), _close(x_sum), min(_close(q_sum), 1.0)
        sums[v, 3] = max(0.0, min(_close(inside), _close(outside)))
        if sums[v, 0] == 0.0 and sums[v, 3] == 0.0:
            sums[v, 1] = sums[v, 2] = 1.0  # disjoint rows are told apart with certainty
    return sums, members[:size].copy(), ends
