"""What simulated likelihood ratios add to the averages of their values, in machine code."""

import math

from temporaldp.leakage.compiled.options import kernel


@kernel
def add_values(known, value, own, epsilons, cut, most, caps, sums):
    """Add to ``sums[w, :, b]`` values from above and their squares, then those from below for each cap, at each epsilon w.

    `known` are log likelihoods of all values for m draws given `value`, shape (m, n). `own` are the lowest epsilon, the spacing
    and the two tables of a release's curve. From above a ratio s is cut off at ``cut[w, b]``, whose value is ``most[w, b]``;
    from below values are cut off at each of ``caps[w, b]``. The value at ``epsilons[w] - s`` is taken from the point of the
    table below or above, on the safe side.
    """
    lowest, h, above, below = own
    n_alike, last = above.shape[0], above.shape[2] - 1
    for b in range(known.shape[1]):
        if b == value:
            continue
        high_at, low_at = above[value % n_alike, b % n_alike], below[value % n_alike, b % n_alike]
        for w in range(epsilons.size):
            limit, top = cut[w, b], most[w, b]
            for r in range(known.shape[0]):
                s = math.inf
                if known[r, b] > -math.inf:
                    s = known[r, value] - known[r, b]
                at = (epsilons[w] - min(s, limit) - lowest) / h
                high = min(high_at[min(max(math.floor(at), 0), last)], top)
                at = max((epsilons[w] - s - lowest) / h, 0.0)
                low = 0.0
                if at <= last:
                    low = low_at[math.ceil(at)]
                sums[w, 0, b] += high
                sums[w, 1, b] += high * high
                for c in range(caps.shape[2]):
                    capped = min(low, caps[w, b, c])
                    sums[w, 2 + 2 * c, b] += capped
                    sums[w, 3 + 2 * c, b] += capped * capped
