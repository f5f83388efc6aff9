"""Sums of logarithms of bets on the means of simulated values (compiled)."""

import math

from temporaldp.kernels.compilation import kernel

SMALL = 1e-5
"""Below it a logarithm is replaced by three terms of its series, on the safe side."""


@kernel
def add_values(known, value, own, epsilons, cut, most, stakes, n_above, sums):
    """Add to ``sums[w, :, b]`` the logarithms of bets on the mean of a value and b at epsilon w.

    `known` are log likelihoods of all values for m draws given `value`, shape (m, n). `own` are the lowest epsilon, the spacing
    and the two tables of a release's curve. From above, with the first `n_above` of ``stakes[w, b]``, a ratio s is cut off at
    ``cut[w, b]``, whose value is ``most[w, b]``. The value at ``epsilons[w] - s`` is taken from the point of the table below or
    above, on the safe side.
    """
    lowest, h, above, below = own
    n_alike, last = above.shape[0], above.shape[2] - 1
    for b in range(known.shape[1]):
        if b == value:
            continue
        high_at, low_at = above[value % n_alike, b % n_alike], below[value % n_alike, b % n_alike]
        for w in range(epsilons.size):
            for r in range(known.shape[0]):
                s = math.inf
                if known[r, b] > -math.inf:
                    s = known[r, value] - known[r, b]
                at = (epsilons[w] - min(s, cut[w, b]) - lowest) / h
                high = min(high_at[min(max(math.floor(at), 0), last)], most[w, b])
                at = max((epsilons[w] - s - lowest) / h, 0.0)
                low = 0.0
                if at <= last:
                    low = low_at[math.ceil(at)]
                for c in range(n_above):
                    x = stakes[w, b, c] * high
                    sums[w, c, b] += math.log1p(-x) if x > SMALL else -x * (1.0 + 0.5 * x * (1.0 + x))
                for c in range(n_above, stakes.shape[2]):
                    x = stakes[w, b, c] * low
                    sums[w, c, b] += math.log1p(x) if x > SMALL else x * (1.0 - 0.5 * x)
