"""The exact leakage of many users for ever, one after the other, in machine code; notation as in `temporaldp.leakage.rollouts`.

Of either direction only the last row of `temporaldp.leakage.compiled.population` is solved: it stands for any number of steps.

*Certificate.* Suppose that what a direction and a step's own part say together never exceeds a level, at whatever horizon. Then
likelihoods of any number of steps are within that level of one another, and rollouts of d steps that end in such likelihoods
prove some K. If K and a step's own part are within the level, the supposition holds: up to d steps back because more outputs
never say less, and further back by induction, since a rollout from horizon t rests on the leakage at horizon t - d. The paper's
supremum needs no supposition where it is finite.
"""

import math

import numpy as np

from temporaldp.leakage.compiled.largest_pair import begin, largest_at, largest_together
from temporaldp.leakage.compiled.options import kernel
from temporaldp.leakage.compiled.pair_knowledge import FIELDS
from temporaldp.leakage.compiled.pair_rollouts import ENDLESS
from temporaldp.leakage.compiled.population import LARGEST_SPREAD, rows_to_settle

UNIT = 2.0**-53

SMALL = 30.0
"""Nats. A bound of the paper's up to this is supposed at once, as in `temporaldp.accounting.exact_supremum`."""

TRIES, FIRST, RAISED = 12, 4.0, 2.5
"""Levels that are supposed; the first in units of a step's own part; each so many times what the last one led to."""

CLOSE_SIDES = 2.0**-31
"""Share of the leakage that both sides may be apart: with more, more rows are tried."""


@kernel
def room(n, rows, kept):
    """Where what is known of pairs is kept: as in `temporaldp.leakage.compiled.population.one_user`."""
    n_pairs = n * (n - 1)
    return (
        kept[: 2 * n_pairs * rows * FIELDS].reshape((2, n_pairs, rows, FIELDS)),
        np.empty((2, n * n), np.int64),
        np.empty(2, np.int64),
        np.empty((2, n * n)),
        np.empty((2, n * n), np.int64),
        np.empty((2, n * n)),
    )


@kernel
def steps_for(epsilon, rows):
    """Factors less 1, spreads, and their growths, for so many rows of either direction."""
    return np.full((2, rows), math.expm1(epsilon)), np.empty((2, rows)), np.empty((2, rows)), np.empty((2, rows))


@kernel
def one_limit(P, way, level, steps, store, gamma, scratch):
    """What arrives from any number of steps, at least and at most, and its pair, supposing that no spread is above `level`."""
    rows = steps[0].shape[1]
    best = begin(P, way, ENDLESS, np.full(rows, level), steps, store, gamma, scratch)
    return largest_at(P, way, ENDLESS, steps, store, rows - 1, best, gamma, scratch)


@kernel
def level_that_holds(P, way, epsilon, ceiling, most, kept, gamma, scratch):
    """A level that no horizon exceeds, and rows after which what arrives has settled; inf where neither is found."""
    supposed = ceiling if ceiling <= SMALL else min(ceiling, FIRST * epsilon)
    for _ in range(TRIES):
        if supposed > LARGEST_SPREAD:
            return np.inf, 0
        rows = min(max(rows_to_settle(P, math.expm1(epsilon), supposed, most, scratch), 2), most)
        if supposed == ceiling:
            return supposed, rows
        _, high, _ = one_limit(P, way, supposed, steps_for(epsilon, rows), room(P.shape[0], rows, kept), gamma, scratch)
        proved = (epsilon + high) * (1.0 + 8.0 * UNIT)
        if proved <= supposed:
            return proved, rows
        supposed = min(ceiling, RAISED * max(proved, supposed))
    return np.inf, 0


@kernel
def is_close(low, high, epsilon):
    """Whether both sides are."""
    return high - low <= CLOSE_SIDES * (epsilon + high)


@kernel
def both_limits(matrices, own, same, epsilon, levels, rows, most, kept, gamma, scratch, low, high):
    """What arrives through either direction and through both: `low` and `high`, shape (3,); and whether both sides are close.

    `levels` are lowered to what is proved. Where either direction is not settled within so many rows, and there may be more,
    nothing is said of both.
    """
    steps, store = steps_for(epsilon, rows), room(matrices.shape[1], rows, kept)
    last, pairs = rows - 1, np.ones(2, np.int64)
    for way in range(2):
        low[way] = high[way] = 0.0
        if own[way] >= 0 and (way == 0 or not same):
            low[way], high[way], pairs[way] = one_limit(
                matrices[own[way]], way, levels[way], steps, store, gamma, scratch
            )
            levels[way] = min(levels[way], (epsilon + high[way]) * (1.0 + 8.0 * UNIT))
    if same:
        low[1], high[1], pairs[1], levels[1] = low[0], high[0], pairs[0], levels[0]
    settled = is_close(low[0], high[0], epsilon) and is_close(low[1], high[1], epsilon)
    if not settled and 2 * rows <= most:
        return False
    if own[0] < 0 or own[1] < 0 or min(high[0], high[1]) <= 0.0:
        way = 0 if high[0] >= high[1] else 1
        low[2], high[2] = low[way], high[way]
        return settled
    ways, constant = (0, 0 if same else 1), np.full(2, ENDLESS)
    bounds, first = (high[0], high[1]), (pairs[0], pairs[1])
    low[2], high[2], _ = largest_together(
        matrices, own, ways, constant, steps, store, (last, last), bounds, first, gamma, scratch
    )
    return is_close(low[2], high[2], epsilon)


@kernel
def lasting_population(matrices, ceilings, past, future, epsilon, gamma, most, first, last, proved, attained):
    """Users first .. last - 1.

    Parameters
    ----------
    matrices : array, shape (m, n, n)
        Rows sum to 1, to rounding.
    ceilings : array, shape (m,)
        The paper's suprema; may be inf.
    past, future : int array, shape (users,)
        Number of each user's matrix, -1 where it is unknown.
    epsilon : float
        What every step spends, in nats.
    gamma : float
        Relative error of an entry in one step.
    most : int
        Rows that may be kept of a user; one whose leakage does not settle within so many is given up: 0 and inf.
    proved, attained : array, shape (users,)
        Filled with both sides of the supremum of TPL.
    """
    n = matrices.shape[1]
    scratch = (np.empty(n), np.empty(n), np.empty(n), np.empty(n))
    kept = np.empty(2 * n * (n - 1) * most * FIELDS)
    levels, low, high = np.empty(2), np.empty(3), np.empty(3)
    for user in range(first, last):
        own = (past[user], future[user])
        same = own[0] == own[1]
        rows, paper = 2, -epsilon
        for way in range(2):
            levels[way] = epsilon
            if own[way] >= 0:
                ceiling = ceilings[own[way]]
                if way == 1 and same:
                    levels[1] = levels[0]
                else:
                    levels[way], needed = level_that_holds(
                        matrices[own[way]], way, epsilon, ceiling, most, kept, gamma, scratch
                    )
                    rows = max(rows, needed)
                paper += ceiling
            else:
                paper += epsilon
        proved[user], attained[user] = np.inf, 0.0
        if max(levels[0], levels[1]) == np.inf:
            continue
        while rows <= most:
            if both_limits(matrices, own, same, epsilon, levels, rows, most, kept, gamma, scratch, low, high):
                break
            rows = 2 * rows
        proved[user] = min((epsilon + high[2]) * (1.0 + 8.0 * UNIT), paper * (1.0 + 1e-12))
        attained[user] = min((epsilon + low[2]) * (1.0 - 8.0 * UNIT), proved[user])
