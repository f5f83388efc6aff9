"""The exact leakage of many users for ever, one after the other, in machine code; notation as in `temporaldp.kernels.rollouts`.

*Certificate.* Suppose that what a direction and a step's own part say together never exceeds a level, at whatever horizon. Then
likelihoods of any number of steps are within that level of one another, and rollouts of d steps that end in such likelihoods
prove some K. If K and a step's own part are within the level, the supposition holds: up to d steps back because more outputs
never say less, and further back by induction, since a rollout from horizon t rests on the leakage at horizon t - d. All that
was proved under it then holds too. The paper's supremum needs no supposition where it is finite.
"""

import numpy as np

from temporaldp.kernels.compiled.endless_pairs import begin, largest
from temporaldp.kernels.compiled.endless_rollouts import side_for
from temporaldp.kernels.compiled.options import kernel
from temporaldp.kernels.compiled.population import LARGEST_SPREAD

UNIT = 2.0**-53

SMALL = 30.0
"""Nats. A bound of the paper's up to this is supposed at once, as in `temporaldp.accounting.exact.supremum`."""

TRIES, FIRST, RAISED = 12, 4.0, 2.5
"""Levels that are supposed; the first in units of a step's own part; each so many times what the last one led to."""

ROUGH_LEVEL = 2.0**-3
"""Share by which a level that is supposed may be above what is attained."""


@kernel
def level_that_holds(P, epsilon, ceiling, lows, highs, most, gamma, scratch):
    """A level that no horizon exceeds through one direction, inf where none is found; what was learnt of pairs is kept."""
    supposed = ceiling if ceiling <= SMALL else min(ceiling, FIRST * epsilon)
    for _ in range(TRIES):
        if supposed > LARGEST_SPREAD:
            break
        side = side_for(P, epsilon, supposed)
        begin(side, lows[0], highs[0])
        if supposed == ceiling:
            return supposed
        low, high = largest((side,), ROUGH_LEVEL, supposed - epsilon, lows, highs, most, gamma, scratch)
        proved = (epsilon + high) * (1.0 + 8.0 * UNIT)
        if proved <= supposed:
            return proved
        supposed = min(ceiling, RAISED * max(epsilon + low, supposed))
    return np.inf


@kernel
def one_user(matrices, own, epsilon, ceilings, lows, highs, most, gamma, scratch):
    """Both sides of what arrives about a value through all directions, at a step of which both ends are far away."""
    lows[:] = highs[:] = 0.0
    if own[0] == own[1] or min(own[0], own[1]) < 0:
        P, times = matrices[max(own[0], own[1])], 2.0 if own[0] == own[1] else 1.0
        level = level_that_holds(P, epsilon, ceilings[max(own[0], own[1])], lows, highs, most, gamma, scratch)
        if level == np.inf:
            return 0.0, np.inf
        low, high = largest((side_for(P, epsilon, level),), 0.0, np.inf, lows, highs, most, gamma, scratch)
        return times * low, times * high
    past, future = matrices[own[0]], matrices[own[1]]
    first = level_that_holds(past, epsilon, ceilings[own[0]], lows, highs, most, gamma, scratch)
    if first == np.inf:
        return 0.0, np.inf
    learnt, proved = lows[0].copy(), highs[0].copy()
    second = level_that_holds(future, epsilon, ceilings[own[1]], lows, highs, most, gamma, scratch)
    if second == np.inf:
        return 0.0, np.inf
    lows[1], highs[1] = learnt, proved
    low, high = largest(
        (side_for(future, epsilon, second), side_for(past, epsilon, first)), 0.0, np.inf, lows, highs, most, gamma,
        scratch,
    )  # fmt: skip
    return low, high


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
        Steps of a rollout; a user about whom more are needed is given up: 0 and inf.
    proved, attained : array, shape (users,)
        Filled with both sides of the supremum of TPL.
    """
    n = matrices.shape[1]
    scratch = (np.empty(n), np.empty(n), np.empty(n), np.empty(n))
    lows, highs = np.empty((2, n * n)), np.empty((2, n * n))
    for user in range(first, last):
        own = (past[user], future[user])
        paper = -epsilon
        for way in range(2):
            paper += epsilon if own[way] < 0 else ceilings[own[way]]
        low, high = 0.0, 0.0
        if max(own[0], own[1]) >= 0:
            low, high = one_user(matrices, own, epsilon, ceilings, lows, highs, most, gamma, scratch)
        if high == np.inf:
            proved[user], attained[user] = np.inf, 0.0
            continue
        proved[user] = min((epsilon + high) * (1.0 + 8.0 * UNIT), paper * (1.0 + 1e-12))
        attained[user] = min((epsilon + low) * (1.0 - 8.0 * UNIT), proved[user])
