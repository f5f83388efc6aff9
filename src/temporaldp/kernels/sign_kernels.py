"""Kept rollouts in machine code: signs, and the largest budget of a step; notation in `temporaldp.kernels.signs`."""

import math

import numpy as np

from temporaldp.kernels.compilation import inner_kernel, kernel
from temporaldp.kernels.exact import (
    LONGEST,
    RISE,
    UNIT,
    coefficients,
    dense_through,
    pair_value,
    roll,
    set_spread,
    stays_below,
)

RESOLUTION, LEAST = 1e-12, 1e-18
"""Relative distance from the largest budget at which halving ends, and nats below which a budget counts as none. If the first
is doubled, a step can spend a trillionth less."""

COARSE, MOST_COARSE = 4e-3, 12
"""Share of a pair's leakage within which an upper bound need not be close, and Newton's steps to it. If doubled, more pairs are
computed to rounding besides."""


@inner_kernel
def is_below(chain, start, kept, total, error, drift, depth, room, work):
    """Whether F <= 0 is proved, to `room` nats of the level, of an item whose coefficients have come to step `start`.

    Where the chain is endless, its step 0 repeats over an infinite horizon.
    """
    n = chain.n
    gamma, sums = (n + 5) * UNIT, (n + 4) * UNIT
    c, g, data, into = work[0], work[1], chain.data, chain.into
    spreads, factors, endless = chain.spreads, chain.factors, chain.endless
    for k in range(n):
        c[k] = kept[k]
    for taken in range(int(LONGEST) if endless else start):
        s = max(start - 1 - taken, 0)
        last = not endless and s == 0
        h = factors[s, 0, 0]
        p = w = 0.0
        for k in range(n):
            positive = max(c[k], 0.0)
            p += positive
            w += positive - c[k]
            g[k] = c[k] + h * positive
        larger, now = (1.0 + h) * p, total + h * p
        error += h * (drift + 2.0 * sums * (p + w))
        bound = error + 4.0 * UNIT * abs(total)
        high, summed = larger - w, now
        if not last:
            high = (spreads[s, 1] * p if p > 0.0 else 0.0) - w
            summed = total + (spreads[s, 2] * p if p > 0.0 else 0.0)
            bound += spreads[s, 2] * (drift + 2.0 * sums * p)
        trusted = 2.0 * (gamma * (depth + 1.0) + 2.0 * sums) <= room
        if summed + bound <= 0.0 or (high <= 0.0 and trusted):
            return True
        # F does not fall with further steps, and rounding only grows.
        if last or ((larger > w or not trusted) and now + error > 0.0):
            return False
        error += UNIT * abs(total)
        drift = (1.0 + h) * drift + 2.0 * gamma * (larger + w)
        total = now
        depth += 1.0
        dense_through(data, into[s] * n * n, n, g, c)
    return False


@inner_kernel
def is_pair_below(chain, t, i, j, level, room, work):
    """Whether K of a pair at step t is proved to be at most level + room."""
    rho = math.expm1(level)
    apart, balance = coefficients(chain, t, i, j, rho, work)
    scaled = rho / (1.0 + rho)
    drift = 4.0 * (chain.n + 5) * UNIT * (apart + scaled) + abs(balance)
    return level >= 0.0 and is_below(chain, t, work[0], -scaled, UNIT * scaled, drift, 0.0, room, work)


@inner_kernel
def fits(chain, epsilon, incoming, kept, total, error, drift, depth, room, work):
    """Whether F <= 0 is proved of an item if the last step of the chain, which is overwritten, spends a budget."""
    last = chain.factors.shape[0] - 1
    chain.factors[last, 0, 0] = math.expm1(epsilon)
    set_spread(chain, last, (epsilon + incoming) * (1.0 + 4.0 * UNIT))
    return is_below(chain, last + 1, kept, total, error, drift, depth, room, work)


@kernel
def largest_budget(chain, kept, totals, errors, drifts, depths, order, incoming, low, high, room):
    """The largest budget up to `high` of the chain's last step for which all items are proved; `low` is known to be.

    `incoming` is the log spread of what the steps before it in the chain contribute. A negative `low`, where nothing is known,
    is the answer if not even 0 is proved. In a random `order` few items lower the answer, and are halved for.
    """
    work = np.empty((2, chain.n))
    for item in order:
        of = kept[item], totals[item], errors[item], drifts[item], depths[item], room, work
        if fits(chain, high, incoming, *of):
            continue
        if low < 0.0 and not fits(chain, 0.0, incoming, *of):
            return low
        bottom, top = max(low, 0.0), high
        while top - bottom > RESOLUTION * top + LEAST:
            middle = 0.5 * (bottom + top)
            if fits(chain, middle, incoming, *of):
                bottom = middle
            else:
                top = middle
        high = bottom
    return high


@inner_kernel
def pair_bound(chain, t, i, j, guess, work):
    """An upper bound of K of a pair at step t within a `COARSE` share, the ratio less 1, and the depth; rollouts are short."""
    here, deepest, depth = guess, 0, 0
    for _ in range(MOST_COARSE):
        low, _, slope, _, _, _, _, _, depth, _ = roll(chain, t, i, j, here, LONGEST, work)
        deepest = max(deepest, depth)
        move = low / slope
        here = max(here + move, 0.0)
        if not abs(move) > 0.25 * COARSE * here:
            break
    level = math.log1p(here * (1.0 + 0.5 * COARSE))
    below, depth = stays_below(chain, t, i, j, level, work)
    if below:
        return level * RISE, here, max(depth, deepest)
    _, proved, rho, depth = pair_value(chain, t, i, j, here, work)
    return proved, rho, max(depth, deepest)


@kernel
def pair_values(chain, steps, i, j, guess, close, proved, rho):
    """Fill `proved` and `rho` with the incoming leakage of pairs at steps of a chain, to rounding if `close`, else coarsely.

    Return the depth of the deepest rollout.
    """
    work = np.empty((4, chain.n))
    deepest, depth = 0, 0
    for item in range(i.size):
        if close:
            _, proved[item], rho[item], depth = pair_value(chain, steps[item], i[item], j[item], guess[item], work)
        else:
            proved[item], rho[item], depth = pair_bound(chain, steps[item], i[item], j[item], guess[item], work)
        deepest = max(deepest, depth)
    return deepest


@inner_kernel
def largest_sum(chain, t, i, j, offset, known, guess, work):
    """Largest sum over pairs of an offset and K at step t. `known` holds K where it is computed already, else -1."""
    best, first = 0.0, np.argmax(offset + np.log1p(guess))
    for number in range(i.size):
        item = (first + number) % i.size
        if known[item] < 0.0:
            if number and stays_below(chain, t, i[item], j[item], best - offset[item], work)[0]:
                continue
            _, known[item], guess[item], _ = pair_value(chain, t, i[item], j[item], guess[item], work)
        best = max(best, offset[item] + known[item])
    return best * RISE


@kernel
def forward_leakage(chain, i, j, epsilons, arrived, guess, forward, temporal):
    """Fill FPL and TPL of every step of a chain of future steps, which has the last step first.

    `arrived` and `guess`, shape (steps, pairs), are the backward leakage of each pair, and ratios to begin the search with.
    """
    work = np.empty((4, chain.n))
    nothing = np.zeros(i.size)
    for k in range(epsilons.size):
        known = np.full(i.size, -1.0)
        forward[k] = (epsilons[k] + largest_sum(chain, k, i, j, nothing, known, guess[k], work)) * (1.0 + 4.0 * UNIT)
        temporal[k] = (epsilons[k] + largest_sum(chain, k, i, j, arrived[k], known, guess[k], work)) * (
            1.0 + 4.0 * UNIT
        )
        set_spread(chain, k, forward[k])


@kernel
def count_final(chain, i, j, epsilons, arrived, forward, temporal, share):
    """Number of steps, from the end of a chain on, whose FPL and TPL no later steps raise by more than a share of them.

    Or of a nat, where they are less than one. Step 0 of the chain stands for all later steps.
    """
    work = np.empty((4, chain.n))
    n_final = 0
    for k in range(epsilons.size - 1, -1, -1):
        room = 0.5 * share * max(forward[k], 1.0)
        ahead, both = forward[k] + room - epsilons[k], temporal[k] + room - epsilons[k]
        for item in range(i.size):
            level = min(ahead, both - arrived[k, item])
            if not is_pair_below(chain, k + 1, i[item], j[item], level, room, work):
                return n_final
        n_final += 1
    return n_final
