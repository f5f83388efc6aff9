"""A dense matrix in single precision, as the screen wants it.

Notation
--------
low, reach    smallest entry of each column, and the largest entry minus that
scale         a power of two that brings the largest reach into [1/2, 1)
a             (P - low) scale, float32, padded with zeros to whole tiles and registers
at            the same by columns, in panels that lie together in memory: at[p, k, r] = a[p W + r, k], W rows a panel
total         for each row the sum of a, raised by the rounding of that row's screened divergence: one `U` per addition
              in whatever order, one for each rounding of an entry of a and of b, and `TINY` for each entry
"""

import numpy as np

from temporaldp.kernels.compiled.options import kernel

U = 2.0**-24
"""Half an ulp of single precision: the largest relative error of one rounding."""

TINY = 1.5e-38
"""Above the smallest normal number of single precision: what an entry below it can lose altogether."""

LANES = 16
"""Columns are padded to a multiple of this: the width of the widest registers, in single precision."""

TILE = 4
"""Rows q times rows d of a tile: 16 sums fit in the registers."""

PANEL = 1 << 17
"""Entries that fit beside others in a second-level cache: 512 KiB of one of 1 MiB."""

CHUNK = 1024
"""Columns of a panel worked on at a time where there are more."""

STRIP = 16
"""Rows transposed at a time: one cache line of the transpose."""


@kernel
def tabulate(dense):
    """The table ``(a, at, dense, low, reach, total, scale)`` of a square matrix."""
    n = dense.shape[0]
    low, high = dense[0].copy(), dense[0].copy()
    for i in range(1, n):
        row = dense[i]
        for k in range(n):
            low[k], high[k] = min(low[k], row[k]), max(high[k], row[k])
    reach = high - low
    widest = reach.max()
    scale = 2.0 ** -np.floor(np.log2(widest) + 1.0) if widest > 0.0 else 1.0
    reach *= scale
    width, height = -(-n // LANES) * LANES, -(-n // TILE) * TILE
    rows = min(-(-n // LANES) * LANES, PANEL // min(width, CHUNK) // LANES * LANES)
    a, at = np.zeros((height, width), np.float32), np.zeros((-(-n // rows), width, rows), np.float32)
    total = np.zeros(height, np.float32)
    raised = (1.0 + (width + 12) * U) * (1.0 + 4.0 * U)
    for first in range(0, n, STRIP):
        last = min(n, first + STRIP)
        for i in range(first, last):
            row, out = dense[i], a[i]
            for k in range(n):
                out[k] = np.float32((row[k] - low[k]) * scale)
            total[i] = np.float32(out.astype(np.float64).sum() * raised + width * TINY)
        for k in range(n):
            for i in range(first, last):
                at[i // rows, k, i % rows] = a[i, k]
    return a, at, dense, low, reach, total, scale
