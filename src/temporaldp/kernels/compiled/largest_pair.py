"""The pair of values that leaks most at each step, by the past, by the future, and by both, in machine code.

Candidates are solved first. Every other pair is looked at until it is proved to stay below what they attain, or solved too.
Notation as in `temporaldp.kernels.compiled.pair_rollouts`; `store` has what is known of all pairs in both directions.
"""

import math

import numpy as np

from temporaldp.kernels.compiled.options import kernel
from temporaldp.kernels.compiled.pair_knowledge import ATTAINED, DONE, LOW, PROVED, forget, upper
from temporaldp.kernels.compiled.pair_rollouts import (
    SETTLED,
    VARIED,
    bound_at_all_steps,
    improve,
    set_spread,
    solve,
    solve_after,
    stays_below,
)  # fmt: skip

UNIT = 2.0**-53

WINS = 2
"""Where budgets are constant, a pair that leaks most at so many steps in a row is solved at all of them at once."""

BARELY = 1.0 + 1e-11
"""A pair must leak more by this factor to be named in place of another."""


@kernel
def place_of(store, way, pair):
    """A pair's S; an empty one if it has none yet."""
    S, slots, n_slots = store[:3]
    if slots[way, pair] < 0:
        slots[way, pair] = n_slots[way]
        forget(S[way, n_slots[way]])
        n_slots[way] += 1
    return S[way, slots[way, pair]]


@kernel
def known_bound(store, way, pair, t, most):
    """K of a pair at step t at most, by what is known without another rollout."""
    S, slots, _, bounds, until, level = store
    found = min(bounds[way, pair], most)
    if t <= until[way, pair]:
        found = min(found, level[way, pair])
    if slots[way, pair] >= 0:
        known = S[way, slots[way, pair], t]
        found = min(found, known[PROVED] if known[DONE] > 0.0 else upper(known))
    return found


@kernel
def begin(P, way, constant, ceiling, steps, store, gamma, scratch):
    """Bounds of all pairs, and the pair with the largest one; nothing else is known."""
    _, slots, n_slots, bounds, until, level = store
    n, n_steps = P.shape[0], ceiling.size
    widest, factor = 0.0, 0.0
    for t in range(n_steps):
        set_spread(steps, way, t, ceiling[t])
        if t < n_steps - 1 or constant >= SETTLED:
            widest, factor = max(widest, ceiling[t]), max(factor, steps[0][way, t])
    n_slots[way] = 0
    best, largest = 1, -1.0
    for pair in range(n * n):
        slots[way, pair] = until[way, pair] = -1
        bounds[way, pair] = level[way, pair] = 0.0
        if pair % (n + 1):
            bounds[way, pair] = bound_at_all_steps(P, pair // n, pair % n, factor, widest, gamma, scratch)
            if bounds[way, pair] > largest:
                best, largest = pair, bounds[way, pair]
    return best


@kernel
def largest_at(P, way, constant, steps, store, t, first, gamma, scratch):
    """The largest K at a step at which something arrives, both sides, and its pair; the search begins with the pair `first`."""
    bounds, until, level = store[3:]
    n = P.shape[0]
    known = place_of(store, way, first)
    guess = math.expm1(min(bounds[way, first], steps[1][way, t - 1]))
    solve(P, way, constant, steps, t, first, guess, known, gamma, scratch)
    attained, proved, best = known[t, ATTAINED], known[t, PROVED], first
    for pair in range(n * n):
        if bounds[way, pair] <= attained or t <= until[way, pair] or pair % (n + 1) == 0 or pair == first:
            continue
        if known_bound(store, way, pair, t, np.inf) <= attained:
            continue
        more, last = stays_below(P, way, constant, steps, t, pair, attained, gamma, scratch)
        if more < np.inf:
            until[way, pair], level[way, pair] = last, attained + more
            proved = max(proved, attained + more)
            continue
        known = place_of(store, way, pair)
        while known[t, DONE] == 0.0 and upper(known[t]) > attained:
            improve(P, way, constant, steps, t, pair, math.expm1(attained), known, gamma, scratch)
        if known[t, DONE] > 0.0:
            proved = max(proved, known[t, PROVED])
            if known[t, ATTAINED] > attained * BARELY:
                best = pair
            attained = max(attained, known[t, ATTAINED])
    return attained, proved, best


@kernel
def one_way(P, way, constant, epsilons, ceiling, steps, store, arrived, pairs, gamma, scratch):
    """The largest K at every row, both sides: `arrived` (2, rows), and the pair that has it, the first of `pairs` (T,)."""
    n_steps = ceiling.size
    best = begin(P, way, constant, ceiling, steps, store, gamma, scratch)
    arrived[0, 0] = arrived[1, 0] = 0.0
    pairs[0] = 1
    set_spread(steps, way, 0, epsilons[0])
    wins = 0
    for t in range(1, n_steps):
        arrived[0, t], arrived[1, t], pairs[t] = 0.0, 0.0, 1
        if steps[1][way, t - 1] > 0.0:
            low, high, pair = largest_at(P, way, constant, steps, store, t, best, gamma, scratch)
            wins, best = wins + 1 if pair == best else 0, pair
            if constant > VARIED:  # pairs that a rollout of an earlier step has ruled out at this one too
                high = max(high, arrived[1, t - 1])
            if wins == WINS:
                guess, known = math.expm1(store[3][way, best]), place_of(store, way, best)
                solve_after(P, way, constant, steps, t, best, guess, known, gamma, scratch)
            arrived[0, t], arrived[1, t], pairs[t] = low, high, best
        set_spread(steps, way, t, min(ceiling[t], (epsilons[t] + arrived[1, t]) * (1.0 + 4.0 * UNIT)))


@kernel
def test_of(matrices, own, ways, side, constant, steps, store, at, pair, level, gamma, scratch):
    """`stays_below` in one of two directions; what holds at all steps is kept."""
    bounds, way = store[3], ways[side]
    more, lasts = stays_below(matrices[own[side]], way, constant[way], steps, at[side], pair, level, gamma, scratch)
    if more < np.inf and lasts == steps[1].shape[1] - 1:
        bounds[way, pair] = min(bounds[way, pair], level + more)
    return more


@kernel
def stay_below_together(matrices, own, ways, constant, steps, store, at, pair, known, level, gamma, scratch):
    """As `stays_below`, of what arrives from both directions, each of which brings at most what is `known`."""
    near = 0 if at[0] <= at[1] else 1  # the shorter rollout first
    more = np.inf
    if level > known[1 - near]:
        more = test_of(
            matrices, own, ways, near, constant, steps, store, at, pair, level - known[1 - near], gamma, scratch
        )
    if more == np.inf:
        part = level * (known[near] / (known[0] + known[1]))
        more = test_of(matrices, own, ways, near, constant, steps, store, at, pair, part, gamma, scratch)
        if more < np.inf:
            more += test_of(
                matrices, own, ways, 1 - near, constant, steps, store, at, pair, level - part, gamma, scratch
            )
    return more + 16.0 * UNIT * level


@kernel
def solve_together(matrices, own, ways, constant, steps, store, at, pair, most, level, gamma, scratch):
    """Both sides of what arrives about a pair from both directions; -1 and no more than `level` as soon as that is seen."""
    past, future = place_of(store, ways[0], pair)[at[0]], place_of(store, ways[1], pair)[at[1]]
    while past[DONE] == 0.0 or future[DONE] == 0.0:
        high = (
            known_bound(store, ways[0], pair, at[0], most[0]),
            known_bound(store, ways[1], pair, at[1], most[1]),
        )
        if high[0] + high[1] <= level:
            return -1.0, level
        # The direction of which less is known.
        wider = 0 if high[0] - math.log1p(past[LOW]) >= high[1] - math.log1p(future[LOW]) else 1
        if (past[DONE] if wider == 0 else future[DONE]) > 0.0:
            wider = 1 - wider
        way, guess = ways[wider], math.expm1(high[wider])
        known = place_of(store, way, pair)
        improve(matrices[own[wider]], way, constant[way], steps, at[wider], pair, guess, known, gamma, scratch)
    return past[ATTAINED] + future[ATTAINED], past[PROVED] + future[PROVED]


@kernel
def largest_together(matrices, own, ways, constant, steps, store, at, most, first, gamma, scratch):
    """The largest over pairs of what arrives from both directions at a step, both sides, and its pair.

    At most `most` arrives from either; the search begins with the pairs `first`.
    """
    bounds, n = store[3], matrices.shape[1]
    best, attained, proved = -1, -1.0, 0.0
    for pair in first:
        if pair != best:
            low, high = solve_together(
                matrices, own, ways, constant, steps, store, at, pair, most, -1.0, gamma, scratch
            )
            proved = max(proved, high)
            if low > attained:
                best, attained = pair, low
    begun = best
    for pair in range(n * n):
        if bounds[ways[0], pair] + bounds[ways[1], pair] <= attained or pair % (n + 1) == 0 or pair == begun:
            continue
        known = (known_bound(store, ways[0], pair, at[0], most[0]), known_bound(store, ways[1], pair, at[1], most[1]))
        if known[0] + known[1] <= attained:
            continue
        more = stay_below_together(
            matrices, own, ways, constant, steps, store, at, pair, known, attained, gamma, scratch
        )
        if more < np.inf:
            proved = max(proved, attained + more)
            continue
        low, high = solve_together(
            matrices, own, ways, constant, steps, store, at, pair, most, attained, gamma, scratch
        )
        proved = max(proved, high)
        if low > attained * BARELY:
            best = pair
        attained = max(attained, low)
    return attained, proved, best


@kernel
def both_ways(matrices, own, ways, constant, steps, store, arrived, pairs, together, gamma, scratch):
    """The largest over pairs of what arrives from both directions: `together` (2, T), and `pairs` (3, T) at its last row.

    `arrived` (2, 2, rows) and the first rows of `pairs` have either direction's own, in its own order of steps; its last row
    is the answer of all steps beyond.
    """
    spread, n_steps, last = steps[1], pairs.shape[1], arrived.shape[2] - 1
    favourite, wins = -1, 0
    for k in range(n_steps):
        # The middle first: what holds for all steps there rules out most pairs elsewhere.
        t = (n_steps // 2 + k) % n_steps
        at = (min(t, last), min(n_steps - 1 - t, last))
        silent = -1
        for side in range(2):
            if at[side] == 0 or spread[ways[side], at[side] - 1] <= 0.0:
                silent = side
        if silent >= 0:
            for row in range(2):
                together[row, t] = arrived[row, 1 - silent, at[1 - silent]]
            pairs[2, t] = pairs[1 - silent, at[1 - silent]]
            continue
        first = (pairs[0, at[0]], pairs[1, at[1]]) if favourite < 0 else (favourite, favourite)
        most = (arrived[1, 0, at[0]], arrived[1, 1, at[1]])
        together[0, t], together[1, t], best = largest_together(
            matrices, own, ways, constant, steps, store, at, most, first, gamma, scratch
        )
        pairs[2, t] = best
        wins, favourite = wins + 1 if best == favourite else 0, best
        if wins == WINS:
            for side in range(2):
                way, known = ways[side], place_of(store, ways[side], best)
                guess = math.expm1(store[3][way, best])
                solve_after(matrices[own[side]], way, constant[way], steps, 0, best, guess, known, gamma, scratch)
