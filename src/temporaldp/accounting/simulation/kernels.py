"""What simulated likelihood ratios add to bets on the means of their values, in machine code."""

import math

import numpy as np

from temporaldp.kernels.compiled.options import kernel

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


@kernel
def add_shifted(rng, a, b, chains, means, chances, densities, kappa, ratios, weights):
    """Draw coupled walks and shifted outputs in one direction of time; add log likelihood ratios, and log weights.

    `chances` are cumulative. Likelihoods go from the nearest step away from it: ``rows of P``, times what each output says,
    times P again; those of the proposal by pairs of values.
    """
    n = chains.shape[1]
    said, lifted, sunk = np.empty(n), np.empty(n), np.empty(n)
    for r in range(ratios.size):
        pair = a * n + b
        of_a, of_b, of_both = np.zeros(n), np.zeros(n), np.zeros(n * n)
        of_a[a] = of_b[b] = of_both[pair] = 1.0
        for k in range(means.size):
            limits = chances[k, pair]
            u = rng.random() * limits[n * n - 1]
            pair = min(np.searchsorted(limits, u, side="right"), n * n - 1)
            x, y = pair // n, pair % n
            for z in range(n):
                said[z] = rng.standard_normal() * means[k] * math.sqrt(0.5)
            half = 0.5 * means[k] * means[k]
            said[x] += half
            if x != y:
                said[x] += kappa * half
                said[y] -= kappa * half
            top = said.max()
            for z in range(n):
                lifted[z], sunk[z] = math.exp((1.0 + kappa) * (said[z] - top)), math.exp(-kappa * (said[z] - top))
                said[z] = math.exp(said[z] - top)
            of_a = (of_a @ chains[k]) * said
            of_b = (of_b @ chains[k]) * said
            of_both = of_both @ densities[k]
            for x in range(n):
                for y in range(n):
                    of_both[x * n + y] *= said[x] if x == y else lifted[x] * sunk[y]
            sums = of_a.sum(), of_b.sum(), of_both.sum()
            ratios[r] += math.log(sums[0]) - math.log(sums[1])
            weights[r] += math.log(sums[0]) - math.log(sums[2])
            of_a /= sums[0]
            of_b /= sums[1]
            of_both /= sums[2]
