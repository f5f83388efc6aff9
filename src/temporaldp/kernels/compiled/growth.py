"""Arrays that grow: what is found is not known beforehand."""

import numpy as np

from temporaldp.kernels.compiled.options import kernel


@kernel
def longer(array, size):
    """The array itself if it has room for `size` rows, else a copy in one with twice as many; the rest is not set."""
    if size <= array.shape[0]:
        return array
    grown = np.empty((2 * size, *array.shape[1:]), array.dtype)
    grown[: array.shape[0]] = array
    return grown
