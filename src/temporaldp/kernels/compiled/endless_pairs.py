"""The pair of values that leaks most for ever, in machine code: branch and bound over pairs.

A user has one direction, or two whose leakage about a pair adds up. Notation as in
`temporaldp.kernels.compiled.endless_rollouts`. Of every pair in either direction are kept, in nats:

lows      what an observation attains, to rounding: it tells where to ask, and proves nothing; shape (2, n^2)
highs     what is proved that none exceeds, shape (2, n^2)
solved    whether nothing more is to be learnt, shape (2, n^2)

Pairs are taken by falling bound, until the next bound is no more than what some pair attains. Short rollouts of most pairs
prove that they stay below that; of the others, a step of Newton's method tells what they attain at least. Then the pair that
attains most is solved, and the others are looked at once more, against its leakage.
"""

import math

import numpy as np

from temporaldp.kernels.compiled.endless_rollouts import (
    ABOVE,
    BELOW,
    bound_without_rollout,
    climb,
    side_of,
)  # fmt: skip
from temporaldp.kernels.compiled.options import kernel

SLOWEST, SHORT = 0.25, 0.98
"""Share of the way to the root that a step of Newton's method makes, at least; how much of what is left is gone at once."""

CLOSE, SOLVED = 2.0**-32, 2.0**-34
"""Shares of the ratio. The method ends where so little is left, by what two steps tell of it; or where a step is so short."""

MOST_ROUNDS, MOST_LOOKS = 60, 200
"""Rollouts to a root, seven being usual; and of a pair in all, after which it is left with the bound that it has."""

ROOMS = (2.0**-32, 2.0**-31, 2.0**-29, 2.0**-20, 2.0**-10)
"""How far above and below what Newton's method finds a proof is looked for; further only where rounding blurs the sign."""

JUST_ABOVE, ROUNDED = 1.0 + 2.0**-32, 1.0 + 2.0**-31
"""Pairs are ruled out against so much more than what is attained, so that of two that leak the same only one is solved; and a
bound that is so much above a level is taken for one within it, as rounding adds a little to what a rollout proves."""


@kernel
def begin(side, lows, highs):
    """Bounds of all pairs in one direction; nothing else is known."""
    n = side[0].shape[0]
    lows[:] = highs[:] = 0.0
    for pair in range(n * n):
        if pair % (n + 1):
            highs[pair] = bound_without_rollout(side, pair // n, pair % n)


@kernel
def climb_once(side, pair, lows, most, scratch):
    """One step of Newton's method from what a pair attains."""
    n = side[0].shape[0]
    found = climb(side, pair // n, pair % n, math.expm1(lows[pair]), most, scratch)
    lows[pair] = max(lows[pair], math.log1p(found))


@kernel
def solve(side, pair, lows, most, scratch):
    """Newton's method from what a pair attains to the root.

    With a chain that mostly stays where it is the method converges linearly: its steps shrink by much the same factor each
    time, so that two of them tell where they lead to. Almost that far is gone at once.
    """
    n = side[0].shape[0]
    low, high = math.expm1(lows[pair]), np.inf
    rho, earlier, gain_earlier = low, 0.0, 0.0
    for _ in range(MOST_ROUNDS):
        found = climb(side, pair // n, pair % n, rho, most, scratch)
        gain, low = found - rho, max(low, found)
        if abs(gain) <= SOLVED * low or high - low <= SOLVED * low:
            break
        if gain < 0.0:  # the root is behind
            high = min(high, rho)
            rho = 0.5 * (low + high)
            continue
        ahead = found
        if gain < gain_earlier:
            made = max((gain_earlier - gain) / (rho - earlier), SLOWEST)  # share of the way to the root
            if made < 1.0:
                root = rho + gain / made
                if root < high and root - low <= CLOSE * low:
                    low = root
                    break
                ahead = rho + SHORT * (root - rho)
        earlier, gain_earlier = rho, gain
        rho = max(ahead, low) if ahead < high else 0.5 * (low + high)
    lows[pair] = math.log1p(low)


@kernel
def prove(side, pair, lows, highs, most, gamma, scratch):
    """Solve a pair, and prove a bound as close above it as rounding lets it be."""
    n = side[0].shape[0]
    solve(side, pair, lows, most, scratch)
    for room in ROOMS:
        level = lows[pair] * (1.0 + room)
        if level >= highs[pair]:
            break
        found, more = side_of(side, pair // n, pair % n, level, most, gamma, scratch)
        if found == BELOW:
            highs[pair] = min(highs[pair], level + more)
            break


@kernel
def attained_by(side, pair, lows, most, gamma, scratch):
    """What is proved to be attained by a pair, as close below what it is thought to attain as rounding lets it be."""
    n = side[0].shape[0]
    for room in ROOMS:
        level = lows[pair] * (1.0 - room)
        found, more = side_of(side, pair // n, pair % n, level, most, gamma, scratch)
        if found == ABOVE:
            return max(level - more, 0.0)
    return 0.0


@kernel
def less_known(n_ways, pair, lows, highs, solved):
    """The direction of which less is known, among those of which more can be learnt; -1 if there is none."""
    found = -1
    for way in range(n_ways):
        gap = highs[way, pair] - lows[way, pair]
        if not solved[way, pair] and (found < 0 or gap > highs[found, pair] - lows[found, pair]):
            found = way
    return found


@kernel
def try_below(sides, pair, first, level, lows, highs, solved, most, gamma, scratch):
    """Try to prove that a pair stays within a level, shared out by what is not known; else one step of Newton's method."""
    n_ways, n = len(sides), sides[0][0].shape[0]
    known = lows[0, pair] + lows[1, pair]
    gaps = highs[0, pair] + highs[1, pair] - known
    part = lows[first, pair] + (level - known) * ((highs[first, pair] - lows[first, pair]) / gaps)
    way = first
    for _ in range(n_ways):
        found, more = side_of(sides[way], pair // n, pair % n, part, most, gamma, scratch)
        if found != BELOW:
            before = lows[way, pair]
            if found == ABOVE:
                lows[way, pair] = max(before, part)
            climb_once(sides[way], pair, lows[way], most, scratch)
            if lows[way, pair] <= before * JUST_ABOVE:  # as high as it goes, or blurred by rounding
                prove(sides[way], pair, lows[way], highs[way], most, gamma, scratch)
                solved[way, pair] = True
            return
        highs[way, pair] = min(highs[way, pair], part + more)
        part, way = level - part, n_ways - 1 - way
        if solved[way, pair]:
            return


@kernel
def look_at(sides, pair, level, rough, lows, highs, solved, most, gamma, scratch):
    """Learn of a pair until it is proved to be within a level, or solved; if `rough`, until it is seen to be above."""
    for _ in range(MOST_LOOKS):
        first = less_known(len(sides), pair, lows, highs, solved)
        if first < 0 or highs[0, pair] + highs[1, pair] <= level * ROUNDED:
            return
        if level > lows[0, pair] + lows[1, pair]:
            try_below(sides, pair, first, level, lows, highs, solved, most, gamma, scratch)
            continue
        for way in range(len(sides)):
            if rough:
                climb_once(sides[way], pair, lows[way], most, scratch)
            elif not solved[way, pair]:
                prove(sides[way], pair, lows[way], highs[way], most, gamma, scratch)
                solved[way, pair] = True
        if rough:
            return


@kernel
def largest(sides, rough, enough, lows, highs, most, gamma, scratch):
    """The largest over pairs of what arrives from all directions together, both sides.

    The upper side is proved; it is within a share `rough` of the lower one, or as close as it comes where that is 0. As soon as
    more than `enough` is attained, nothing more is looked for: the upper side is then inf.
    """
    sums = highs[0] + highs[1]
    order = np.argsort(-sums)
    solved = np.zeros(highs.shape, np.bool_)
    slack = max(1.0 + rough, JUST_ABOVE)
    attained, best = 0.0, order[0]
    for pair in order:
        if sums[pair] <= attained * slack:
            break
        look_at(sides, pair, attained * slack, True, lows, highs, solved, most, gamma, scratch)
        found = lows[0, pair] + lows[1, pair]
        if found > attained:
            attained, best = found, pair
        if attained > enough:
            return attained, np.inf
    if rough == 0.0:
        look_at(sides, best, -1.0, False, lows, highs, solved, most, gamma, scratch)
        attained = lows[0, best] + lows[1, best]
    proved = attained
    for pair in order:
        if sums[pair] <= proved:
            break
        if pair != best or rough > 0.0:
            look_at(sides, pair, attained * slack, False, lows, highs, solved, most, gamma, scratch)
        proved = max(proved, highs[0, pair] + highs[1, pair])
        if lows[0, pair] + lows[1, pair] > attained:
            attained, best = lows[0, pair] + lows[1, pair], pair
    low = 0.0
    for way in range(len(sides)):
        low += attained_by(sides[way], best, lows[way], most, gamma, scratch)
    return low, proved
