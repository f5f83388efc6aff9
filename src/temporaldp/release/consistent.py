"""Post-processing of noisy counts: non-negative integers with the public total."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.errors import InputError

IntArray = NDArray[np.int64]


def consistent_counts(noisy: ArrayLike, *, total: int) -> IntArray:
    """The non-negative integers with the given sum that are nearest to the noisy counts in Euclidean distance.

    Post-processing: it costs no privacy as long as `total` is public, which the number of people is when neighbouring
    databases differ in one person's value. A common amount is taken from every count (or given), stopping at zero; what
    division leaves over goes to the largest counts.

    Parameters
    ----------
    noisy : integer array, shape (n,)
    total : int, >= 0

    Returns
    -------
    array of int64, shape (n,)

    Raises
    ------
    InputError
        `noisy` holds no whole numbers, or `total` is negative.

    Examples
    --------
    >>> consistent_counts([5, -2, 3], total=7)
    array([5, 0, 2])
    """
    counts = np.asarray(noisy)
    if counts.ndim != 1 or counts.size == 0 or not np.issubdtype(counts.dtype, np.integer):
        raise InputError(f"expected a vector of whole noisy counts, got {counts.dtype} of shape {counts.shape}")
    if total < 0:
        raise InputError(f"expected a public total >= 0, got {total}")
    order = np.argsort(-counts, kind="stable")
    falling = counts[order].astype(np.int64)
    # Keeping the k largest, each loses (sum - total) / k; the right k is the last whose smallest count stays positive.
    sizes = np.arange(1, counts.size + 1)
    excess = np.cumsum(falling) - total
    keep = int(np.flatnonzero(falling * sizes > excess)[-1]) + 1 if total > 0 else 0
    result = np.zeros(counts.size, dtype=np.int64)
    if keep:
        share, rest = divmod(int(excess[keep - 1]), keep)
        kept = falling[:keep] - share
        kept[keep - rest :] -= 1 if rest else 0
        result[order[:keep]] = kept
    return result
