"""Post-processing of noisy counts: non-negative integers with the public total."""

from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.errors import InputError
from temporaldp.base.values import IntArray, refuse


def consistent_counts(noisy: ArrayLike, *, total: int) -> IntArray:
    """The non-negative integers with the given sum that are nearest to the noisy counts in Euclidean distance.

    Post-processing: it costs no privacy as long as `total` is public, which the number of people is when neighbouring
    databases differ in one person's state. A common amount is subtracted from every count (or added), stopping at zero; the
    remainder goes to the largest counts.

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
        `noisy` has entries that are not whole numbers, or `total` is negative.

    Examples
    --------
    >>> consistent_counts([5, -2, 3], total=7)
    array([5, 0, 2])
    """
    counts = np.asarray(noisy)
    refuse(
        (
            counts.ndim != 1 or counts.size == 0 or not np.issubdtype(counts.dtype, np.integer),
            InputError(
                f"expected a vector of noisy counts that are integers, got {counts.dtype} of shape {counts.shape}"
            ),
        ),
        (total < 0, InputError(f"expected a public total >= 0, got {total}")),
    )
    order = sorted(range(counts.size), key=lambda k: -int(counts[k]))
    # Python's integers: noise under a tiny budget would overflow sums of int64.
    falling = [int(counts[k]) for k in order]
    # Keeping the k largest, each loses (sum - total) / k; the right k is the last whose smallest count stays positive.
    excess = [running - total for running in accumulate(falling)]
    keep = max((k for k in range(1, len(falling) + 1) if falling[k - 1] * k > excess[k - 1]), default=0) if total else 0
    result = np.zeros(counts.size, dtype=np.int64)
    if keep:
        share, rest = divmod(excess[keep - 1], keep)
        for rank in range(keep):
            result[order[rank]] = falling[rank] - share - (1 if rank >= keep - rest else 0)
    return result
