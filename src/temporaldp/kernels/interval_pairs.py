"""The largest hockey-stick divergence between two rows that are known up to intervals, from above.

Plain loops over arrays and numbers, so that `temporaldp.kernels.compiled.intervals` can compile these very functions, and an
installation without Numba runs them slowly.

Notation
--------
low, high   bounds of each entry, shape (n, n); reach = high - low
slack_i     1 - sum of low_i: the mass of row i that its lower bounds leave free;  over_j = sum of high_j - 1
g, h        slope of the divergence, and g - 1
qmax(S)     min(high_i(S), 1 - low_i(not S)), the largest probability of a set S in row i
dmin(S)     max(low_j(S), 1 - high_j(not S)), the smallest in row j
lam, mu     weights in [0, 1] of the second terms:
            ``qmax(S) - g dmin(S) <= lam slack_i + g mu over_j + sum over S of (high_i - lam reach_i - g (low_j + mu reach_j))``
            for every S, so that the largest right-hand side bounds the left-hand side, whatever the weights
"""

TURNS = 2
"""Times that one weight after the other is made best, before their pairs are searched."""

NEARLY = 1.001
"""A bound above the largest of those that were made small by no more than this factor is small enough."""

HALVINGS = 8
"""Of the interval in which a best weight lies: the bound is convex, and flat near its least value."""


def divergence(low, high, slack, over, i, j, g, lam, mu):
    """The bound of one pair of rows for given weights."""
    total = lam * slack[i] + g * mu * over[j]
    for k in range(low.shape[0]):
        part = (high[i, k] - lam * (high[i, k] - low[i, k])) - g * (low[j, k] + mu * (high[j, k] - low[j, k]))
        total += max(part, 0.0)
    return total


def reached(low, high, i, j, g, lam, mu):
    """Sums of the reaches of both rows over the set that is best for given weights: they decide the way to better weights."""
    of_i, of_j = 0.0, 0.0
    for k in range(low.shape[0]):
        reach_i, reach_j = high[i, k] - low[i, k], high[j, k] - low[j, k]
        if (high[i, k] - lam * reach_i) - g * (low[j, k] + mu * reach_j) > 0.0:
            of_i += reach_i
            of_j += reach_j
    return of_i, of_j


def extremes(low, high, i, j, g, lam, mu):
    """Give dmin and qmax of the set that is best for given weights."""
    high_i, rest_i, low_j, rest_j = 0.0, 0.0, 0.0, 0.0
    for k in range(low.shape[0]):
        if (high[i, k] - lam * (high[i, k] - low[i, k])) - g * (low[j, k] + mu * (high[j, k] - low[j, k])) > 0.0:
            high_i += high[i, k]
            low_j += low[j, k]
        else:
            rest_i += low[i, k]
            rest_j += high[j, k]
    return max(low_j, 1.0 - rest_j, 0.0), min(high_i, 1.0 - rest_i)


def best_mu(low, high, slack, over, i, j, g, lam):
    """The weight of row j that makes the bound least for a given weight of row i, and that bound."""
    first, last = 0.0, 1.0
    for _ in range(HALVINGS):
        mu = 0.5 * (first + last)
        if reached(low, high, i, j, g, lam, mu)[1] > over[j]:
            first = mu
        else:
            last = mu
    least, best = divergence(low, high, slack, over, i, j, g, lam, first), first
    for mu in (last, 0.0, 1.0):
        value = divergence(low, high, slack, over, i, j, g, lam, mu)
        if value < least:
            least, best = value, mu
    return best, least


def best_lam(low, high, slack, over, i, j, g, mu):
    """The weight of row i that makes the bound least for a given weight of row j, and that bound."""
    first, last = 0.0, 1.0
    for _ in range(HALVINGS):
        lam = 0.5 * (first + last)
        if reached(low, high, i, j, g, lam, mu)[0] > slack[i]:
            first = lam
        else:
            last = lam
    lam = 0.5 * (first + last)
    return lam, divergence(low, high, slack, over, i, j, g, lam, mu)


def least_divergence(low, high, slack, over, i, j, g, enough, start):
    """Weights with a small bound for a pair, and that bound; the search ends where the bound is `enough` or less.

    One weight after the other from `start`, which is cheap and mostly enough; then the least over all weights of row i.
    """
    kept_mu, least = best_mu(low, high, slack, over, i, j, g, start)
    kept_lam = start
    for _ in range(TURNS):
        if least <= enough:
            return kept_lam, kept_mu, least
        lam, value = best_lam(low, high, slack, over, i, j, g, kept_mu)
        if value < least:
            kept_lam, least = lam, value
        mu, value = best_mu(low, high, slack, over, i, j, g, kept_lam)
        if value < least:
            kept_mu, least = mu, value
    first, last = 0.0, 1.0
    for _ in range(HALVINGS):
        if least <= enough:
            break
        lam = 0.5 * (first + last)
        mu, value = best_mu(low, high, slack, over, i, j, g, lam)
        if value < least:
            kept_lam, kept_mu, least = lam, mu, value
        if reached(low, high, i, j, g, lam, mu)[0] > slack[i]:
            first = lam
        else:
            last = lam
    return kept_lam, kept_mu, least


def easy_divergence(u, v, g):
    """Sum of the positive parts of u - g v."""
    total = 0.0
    for k in range(u.size):
        total += max(u[k] - g * v[k], 0.0)
    return total


def largest_divergence(low, high, middle, slack, over, h, start_i, start_j, bounds, found):
    """The largest bound over ordered pairs of different rows at the slope 1 + h.

    `found` becomes (bound, i, j, lam, mu, dmin, qmax), weights and set being those of the pair (i, j).

    Every pair brings what is known of it, `bounds` (n, n), and leaves there what was proved. A pair whose bound that is, or the
    one at the weights 0, or at the weights 1/2, which lead to the `middle`, or at the best pair's weights, is not above the
    largest so far needs no better one; the others come by falling bounds. The pair (start_i, start_j) comes first.
    """
    n, g = low.shape[0], 1.0 + h
    lam, mu, most = least_divergence(low, high, slack, over, start_i, start_j, g, -1.0, 0.0)
    found[0], found[1], found[2], found[3], found[4] = most, start_i, start_j, lam, mu
    bounds[start_i, start_j] = most
    for i in range(n):
        for j in range(n):
            if i == j or bounds[i, j] <= most * NEARLY:
                continue
            bound = min(bounds[i, j], easy_divergence(high[i], low[j], g))
            if bound > most * NEARLY:
                bound = min(bound, easy_divergence(middle[i], middle[j], g) + 0.5 * (slack[i] + g * over[j]))
            if bound > most * NEARLY:
                bound = min(bound, divergence(low, high, slack, over, i, j, g, lam, mu))
            bounds[i, j] = bound
    flat = bounds.reshape(n * n)
    pair = int(flat.argmax())
    while flat[pair] > found[0] * NEARLY:
        i, j = pair // n, pair % n
        lam, mu, bound = least_divergence(low, high, slack, over, i, j, g, found[0] * NEARLY, found[3])
        bound = min(bound, flat[pair])
        if bound > found[0] * NEARLY:
            found[0], found[1], found[2], found[3], found[4] = bound, i, j, lam, mu
        flat[pair] = bound
        pair = int(flat.argmax())
    i, j = int(found[1]), int(found[2])
    found[5], found[6] = extremes(low, high, i, j, g, found[3], found[4])
    found[0] = flat[pair]
