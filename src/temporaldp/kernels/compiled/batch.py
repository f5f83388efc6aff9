"""The vertices of many small matrices, one after the other."""

import numpy as np

from temporaldp.kernels.compiled.growth import longer
from temporaldp.kernels.compiled.options import kernel
from temporaldp.kernels.compiled.refinement import refine
from temporaldp.kernels.compiled.sums import vertex_sums


@kernel
def _steepest(matrix):
    n, slope = matrix.shape[0], 0.0
    for k in range(n):
        largest, smallest = 0.0, np.inf
        for i in range(n):
            if matrix[i, k] > 0.0:
                largest, smallest = max(largest, matrix[i, k]), min(smallest, matrix[i, k])
        slope = max(slope, largest / smallest)
    return slope * (1.0 + 1e-12)


@kernel
def stack_vertices(stack, first, last):
    """Vertices of the matrices first .. last - 1 of a stack (count, n, n), all pairs searched.

    Returns
    -------
    sums : shape (m, 4), d, x, q, c;  sets : shape (m, 3), row, other row, limit;  sizes : int64, shape (last - first,)
    """
    n = stack.shape[1]
    rows, others = np.empty(n * (n - 1), np.int64), np.empty(n * (n - 1), np.int64)
    size = 0
    for i in range(n):
        for j in range(n):
            if i != j:
                rows[size], others[size] = i, j
                size += 1
    sizes = np.empty(last - first, np.int64)
    sums, sets = np.empty((8 * (last - first), 4)), np.empty((8 * (last - first), 3))
    nothing, unused = np.empty(0, np.int64), np.empty(0)
    m = 0
    for number in range(first, last):
        store = (stack[number], nothing, nothing, unused)
        i, j, limits = refine(store, rows, others, _steepest(stack[number]))
        found, _, _ = vertex_sums(store, i, j, limits)
        sums, sets = longer(sums, m + i.size), longer(sets, m + i.size)
        sums[m : m + i.size] = found
        sets[m : m + i.size, 0], sets[m : m + i.size, 1], sets[m : m + i.size, 2] = i, j, limits
        m += i.size
        sizes[number - first] = i.size
    return sums[:m], sets[:m], sizes
