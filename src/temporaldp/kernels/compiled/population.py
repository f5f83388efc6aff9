"""The exact leakage of many users, one after the other, in machine code; notation as in `temporaldp.kernels.rollouts`.

Plain differential privacy: at step s every value's factor is anything from 1 to 1 + h_s, whoever the user is.

Where all budgets are equal and there are many steps, leakage settles: steps far from both ends share a row, which stands for
any number of steps (`temporaldp.kernels.compiled.pair_rollouts`). How many rows that takes is tried out; where both sides of
the last row are not close, there were too few.
"""

import math

import numpy as np

from temporaldp.kernels.compiled.largest_pair import both_ways, one_way
from temporaldp.kernels.compiled.options import kernel
from temporaldp.kernels.compiled.pair_knowledge import FIELDS
from temporaldp.kernels.compiled.pair_rollouts import ABOVE_SPREAD, CONSTANT, SETTLED, VARIED, memory

UNIT = 2.0**-53

WORTH_SETTLING = 64
"""Steps from which on fewer rows than steps are looked for; as in `temporaldp.accounting.exact.population`."""

LARGEST_SPREAD = 300.0
"""Nats of the paper's bound up to which they are."""

CLOSE_SIDES, AS_BLURRED = 2.0**-40, 4.0
"""The last row has settled where its two sides are within this share of the leakage, or so many times as far apart as those of
the row before, which ends where its rollouts do."""


@kernel
def paper_bound(d, x, epsilons, bound):
    """The paper's bound of every step by the vertices of a leakage profile, rounded up: ``L(BPL_{t-1}) + e_t``."""
    arrived = 0.0
    for t in range(epsilons.size):
        if t > 0:
            a = arrived + epsilons[t - 1]
            left = math.exp(-a)
            gain = 0.0
            for vertex in range(d.size):
                gain = max(gain, x[vertex] / (d[vertex] + (1.0 - d[vertex]) * left))
            arrived = min(math.log1p(gain * -math.expm1(-a)), a)
        bound[t] = (arrived + epsilons[t]) * (1.0 + 4.0 * UNIT * (2.0 + t))


@kernel
def rows_to_settle(P, h, spread, most, scratch):
    """Rows after which leakage has probably settled, by the pair of rows of P that are furthest apart."""
    n = P.shape[0]
    best, furthest = 0, -1.0
    for pair in range(n * n):
        apart = 0.0
        for k in range(n):
            apart += abs(P[pair // n, k] - P[pair % n, k])
        if apart > furthest:
            best, furthest = pair, apart
    depth = memory(P, best // n, best % n, h, math.exp(spread * ABOVE_SPREAD), most, scratch)
    return depth + depth // 4 + 8


@kernel
def is_close(last, before, own):
    """Whether both sides of a row are close, given those of the row before; each has what arrives at least and at most."""
    return last[1] - last[0] <= max(CLOSE_SIDES * (own + last[1]), AS_BLURRED * (before[1] - before[0]))


@kernel
def has_settled(arrived, together, own):
    """Whether both sides are close in the last row of either direction, and of both, where each step's own part is `own`."""
    rows = arrived.shape[2]
    return (
        is_close(arrived[:, 0, rows - 1], arrived[:, 0, rows - 2], own)
        and is_close(arrived[:, 1, rows - 1], arrived[:, 1, rows - 2], own)
        and is_close(together[:, rows - 1], together[:, rows - 2], own)
    )


@kernel
def one_user(matrices, own, same, constant, own_part, h, ceiling, kept, arrived, together, found, gamma, scratch):
    """Both sides of one user: `arrived` (2, 2, rows) and, in order of time, `together` (2, T'); pairs in `found` (3, T').

    `ceiling` (2, rows) has bounds that are known. `kept` has room for what is known of pairs.
    """
    n, rows, n_steps = matrices.shape[1], arrived.shape[2], together.shape[1]
    steps = (h[:, :rows].copy(), np.empty((2, rows)), np.empty((2, rows)), np.empty((2, rows)))
    n_pairs = n * (n - 1)
    store = (
        kept[: 2 * n_pairs * rows * FIELDS].reshape((2, n_pairs, rows, FIELDS)),
        np.empty((2, n * n), np.int64),
        np.empty(2, np.int64),
        np.empty((2, n * n)),
        np.empty((2, n * n), np.int64),
        np.empty((2, n * n)),
    )
    for way in range(2):
        if own[way] < 0:
            arrived[:, way] = 0.0
            found[way] = 1
        elif way == 1 and same:
            arrived[:, 1], found[1] = arrived[:, 0], found[0]
        else:
            one_way(matrices[own[way]], way, constant[way], own_part[way], ceiling[way], steps, store, arrived[:, way],
                    found[way], gamma, scratch)  # fmt: skip
    if own[0] >= 0 and own[1] >= 0:
        ways = (0, 0 if same else 1)
        both_ways(matrices, own, ways, constant, steps, store, arrived, found, together, gamma, scratch)
    else:
        way = 0 if own[1] < 0 else 1
        for t in range(n_steps):
            at = min(t if way == 0 else n_steps - 1 - t, rows - 1)
            together[0, t], together[1, t], found[2, t] = arrived[0, way, at], arrived[1, way, at], found[way, at]


@kernel
def write_down(epsilons, arrived, together, found, ceiling, proved, attained, pairs):
    """One user's answers in order of time: each step's own part and what arrives, rounded to the safe side."""
    n_steps, last = epsilons.size, arrived.shape[2] - 1
    left_out = n_steps - together.shape[1]
    for kind in range(3):
        for t in range(n_steps):
            ahead = n_steps - 1 - t
            if kind == 2:
                at = min(t, max(last, t - left_out))
                low, high = together[0, at], together[1, at]
                most = (ceiling[0, t] + ceiling[1, ahead] - epsilons[t]) * (1.0 + 8.0 * UNIT)
            else:
                step = ahead if kind == 1 else t
                at = min(step, last)
                low, high, most = arrived[0, kind, at], arrived[1, kind, at], ceiling[kind, step]
            if high <= 0.0:  # nothing arrives
                proved[kind, t] = attained[kind, t] = epsilons[t]
            else:
                proved[kind, t] = min((epsilons[t] + high) * (1.0 + 8.0 * UNIT), most)
                attained[kind, t] = min((epsilons[t] + low) * (1.0 - 8.0 * UNIT), proved[kind, t])
            pairs[kind, t] = found[kind, at]


@kernel
def give_up(epsilons, ceiling, proved, attained, pairs):
    """What is known beforehand: the paper's bound, and each step by itself."""
    n_steps = epsilons.size
    for t in range(n_steps):
        ahead = n_steps - 1 - t
        proved[0, t], proved[1, t] = ceiling[0, t], ceiling[1, ahead]
        proved[2, t] = (ceiling[0, t] + ceiling[1, ahead] - epsilons[t]) * (1.0 + 8.0 * UNIT)
    attained[:], pairs[:] = epsilons, 1


@kernel
def population(matrices, d, x, starts, past, future, epsilons, gamma, most, first, last, proved, attained, pairs):
    """Users first .. last - 1.

    Parameters
    ----------
    matrices : array, shape (m, n, n)
        Rows sum to 1, to rounding.
    d, x : array
        Vertices d and q - d of the leakage profiles of all matrices; those of matrix k are ``starts[k] .. starts[k + 1] - 1``.
    starts : int array, shape (m + 1,)
    past, future : int array, shape (users,)
        Number of each user's matrix, -1 where it is unknown.
    epsilons : array, shape (T,)
    gamma : float
        Relative error of an entry in one step.
    most : int
        Rows that may be kept of a user; one whose leakage does not settle within so many, where there are more steps, is
        given up: both sides are then what is known beforehand.
    proved, attained : array, shape (users, 3, T)
        Filled with both sides of BPL, FPL and TPL.
    pairs : int array, shape (users, 3, T)
        Filled with the pairs that attain them.
    """
    n, n_steps = matrices.shape[1], epsilons.size
    most = min(most, n_steps)
    scratch = (np.empty(n), np.empty(n), np.empty(n), np.empty(n))
    own_part, h = np.empty((2, n_steps)), np.empty((2, n_steps))
    constant = np.full(2, CONSTANT)
    for way in range(2):
        for t in range(n_steps):
            own_part[way, t] = epsilons[t if way == 0 else n_steps - 1 - t]
            h[way, t] = math.expm1(own_part[way, t])
            if t < n_steps - 1 and own_part[way, t] != own_part[way, 0]:
                constant[way] = VARIED
    turnable = constant[0] == CONSTANT and own_part[0, 0] == own_part[1, 0]
    settled = np.full(2, SETTLED)
    kept = np.empty(2 * n * (n - 1) * most * FIELDS)
    ceiling = np.empty((2, n_steps))
    for user in range(first, last):
        own = (past[user], future[user])
        same = own[0] == own[1] and turnable  # forwards is backwards
        rows = 2 if turnable and n_steps >= WORTH_SETTLING else n_steps
        for way in range(2):
            if own[way] < 0:
                ceiling[way] = own_part[way]
                continue
            vertices = slice(starts[own[way]], starts[own[way] + 1])
            paper_bound(d[vertices], x[vertices], own_part[way], ceiling[way])
            if rows < n_steps:
                largest, needed = ceiling[way, n_steps - 1], n_steps
                if largest <= LARGEST_SPREAD:
                    needed = rows_to_settle(matrices[own[way]], h[way, 0], largest, most, scratch)
                rows = max(rows, needed)
        while True:
            if 2 * rows - 1 > n_steps or rows > most:
                rows = n_steps
            if rows > most:
                give_up(epsilons, ceiling, proved[user], attained[user], pairs[user])
                break
            n_shown = min(n_steps, 2 * rows - 1)
            arrived, together = np.zeros((2, 2, rows)), np.zeros((2, n_shown))
            found = np.zeros((3, n_shown), np.int64)
            known = ceiling[:, :rows].copy()
            known[:, rows - 1] = ceiling[:, n_steps - 1]  # of the last row's steps the last has the largest
            kinds = constant if rows == n_steps else settled
            one_user(matrices, own, same, kinds, own_part, h, known, kept, arrived, together, found, gamma, scratch)
            if rows == n_steps or has_settled(arrived, together, epsilons[0]):
                write_down(epsilons, arrived, together, found, ceiling, proved[user], attained[user], pairs[user])
                break
            rows = 2 * rows - 1
