"""The largest and the smallest mean of many vectors over the rows that bounds allow, in machine code.

Notation
--------
x      vectors as columns, shape (n, m); order: its entries from the largest to the smallest
free   mass of each row that its lower bounds leave: it goes to the largest entries of x, or to the smallest
"""

from __future__ import annotations

import numpy as np

from temporaldp.kernels.compiled.options import kernel


@kernel
def extremes(low, high, more, less, x, first, last, largest, smallest):
    """U and L of every row for the vectors first <= v < last; free mass rounded up and down."""
    n = low.shape[0]
    order, reach, one = np.empty(n, np.int64), high - low, np.empty(n)
    for v in range(first, last):
        for k in range(n):
            one[k] = x[k, v]
            place = k
            while place > 0 and one[order[place - 1]] < one[k]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = k
        for k in range(n):
            base = 0.0
            for c in range(n):
                base += low[k, c] * one[c]
            up, down, room_up, room_down = base, base, more[k], less[k]
            for p in range(n):
                c = order[p]
                given = min(reach[k, c], room_up)
                up += given * one[c]
                room_up -= given
                c = order[n - 1 - p]
                given = min(reach[k, c], room_down)
                down += given * one[c]
                room_down -= given
            largest[k, v], smallest[k, v] = up, down
