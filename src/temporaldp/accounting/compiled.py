"""The recursions of a series in machine code; `temporaldp.accounting.paper.arrivals` says what they compute."""

import math

from temporaldp.kernels.compiled.options import kernel
from temporaldp.kernels.vertex import DIRECT_LIMIT


@kernel
def _gain(d, x, left):
    return x / (d + (1.0 - d) * left)


@kernel
def loss_of(d, x, a):
    """Max over vertices of L(a). Vertices lie on a hull, so gains rise, then fall: binary search for the largest."""
    if d.size == 0:
        return 0.0
    left = math.exp(-a)
    if a > DIRECT_LIMIT and d[0] == 0.0:  # nothing leaks more: see leakage/vertex.py
        return min(a + math.log(x[0] + (1.0 - x[0]) * left), a)
    low, high = 0, d.size - 1
    while low < high:
        middle = (low + high) // 2
        if _gain(d[middle + 1], x[middle + 1], left) > _gain(d[middle], x[middle], left):
            low = middle + 1
        else:
            high = middle
    return min(math.log1p(x[low] * -math.expm1(-a) / (d[low] + (1.0 - d[low]) * left)), a)


@kernel
def carry(d, x, starts, which, spent, first, last, arrived):
    """Fill ``arrived[u, t] = L(arrived[u, t - 1] + spent[t - 1])`` for users first .. last - 1."""
    for u in range(first, last):
        arrived[u, 0] = 0.0
        before, level = -1, -1.0
        for t in range(1, spent.size):
            profile = which[u, t - 1]
            incoming = arrived[u, t - 1] + spent[t - 1]
            if profile == before and incoming == level:
                arrived[u, t] = arrived[u, t - 1]
            elif profile < 0:
                arrived[u, t] = 0.0
            else:
                vertices = slice(starts[profile], starts[profile + 1])
                arrived[u, t] = loss_of(d[vertices], x[vertices], incoming)
            before, level = profile, incoming
