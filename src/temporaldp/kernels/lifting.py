r"""Leakage of one step pair by pair: a metric on states, lifted through a transition matrix.

The multiplicative Kantorovich lifting of Chatzikokolakis, Gebler, Palamidessi and Xu (Generalized bisimulation metrics, CONCUR
2014): for every ordered pair (i, j) of rows of P,

    K(b)(i, j) = log max { P_i x / P_j x : x > 0, x_a <= e^b(a, c) x_c for all a, c }.

Notation
--------
q, d      two rows of P, restricted to the states that either can come from
u         log x; feasible if u_a - u_c <= b(a, c) for all a, c; a constraint is tight where both sides are equal
w         q_k x_k / q x - e^rise d_k x_k / d x: with rise = 0 it sums to 0
flow      flow[a, c] units of w shipped from a to c
level     largest entry of b for these states

With ``z_k = x'_k / x_k`` for any other feasible x', ``sum of w_k z_k`` is at most 0 if and only if the positive part of w can
be shipped to its negative part, where a unit from a uses ``exp(b(a, c) - u_a + u_c) >= 1`` units at c (a transport problem with
gains; the proof is in Theory, section 8). Such a shipment certifies that no x' has a log ratio above that of x plus `rise`,
whatever led to x. The search is a primal-dual method: ship as much as possible along tight pairs, where a unit uses a unit; the
states that what is left could still reach by tight pairs then rise together, relative to all others, until another constraint
becomes tight, which increases the ratio. The search ends when everything is shipped.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from temporaldp.kernels.compilation import kernel
from temporaldp.kernels.profile import LeakageProfile
from temporaldp.kernels.threads import spread
from temporaldp.values import ROUNDOFF, FloatArray

Trees = NDArray[np.int16]

TREE_STATES = 400
"""States up to which every pair keeps the tree of its shipment, 2 n^3 bytes (128 MB); with more, each search starts anew."""


def no_trees(n_states: int, n_rows: int | None = None) -> Trees:
    """An array for the trees of all pairs of rows, none of which is stored yet; empty for too many states.

    Default: as many rows as states.
    """
    kept, m = n_states if n_states <= TREE_STATES else 0, n_states if n_rows is None else n_rows
    return np.full((m, m, kept), -1, dtype=np.int16)


def off_diagonal(n_states: int) -> FloatArray:
    """1 off the diagonal, 0 on it: the metric of plain differential privacy, times epsilon."""
    return 1.0 - np.eye(n_states)


def closed(metric: FloatArray) -> FloatArray:
    """The largest metric below that obeys the triangle inequality (Floyd and Warshall): shortest paths, O(n^3)."""
    shortest = metric.copy()
    for k in range(len(metric)):
        np.minimum(shortest, shortest[:, k, None] + shortest[k], out=shortest)
    return shortest


def lifted(rows: FloatArray, metric: FloatArray, profile: LeakageProfile, trees: Trees) -> FloatArray:
    """K(metric) for all ordered pairs of rows, shape (m, m), zeros on the diagonal; in nats.

    Upper bounds, each certified by a shipment: usually ``8 n + 56 + 70 max(metric)`` ulps / 2 above the exact value;
    above ``profile.loss(metric.max())``, the bound for all pairs, by its rounding at most.

    Parameters
    ----------
    rows : array, shape (m, n)
        A transition matrix, or its different rows.
    metric : array, shape (n, n)
        ``b(a, c) >= 0`` bounds the log ratio of the likelihoods of a and c; zeros on the diagonal. Where going through a third
        state is shorter, that counts.
    profile : LeakageProfile
        Of the same matrix.
    trees : array, shape (m, m, n) or (m, m, 0)
        From `no_trees`. Used to start from, and left with the trees of this step.
    """
    (m, n), upper = rows.shape, np.zeros((len(rows), len(rows)))
    level = float(metric.max())
    if level == 0.0 or len(profile) == 0:
        return upper
    # Copies: Numba compiles anew for arrays that are read-only or not contiguous.
    rows, metric = np.array(rows, order="C"), closed(np.array(metric, order="C"))
    spread(
        lambda first, last: lift_rows(rows, metric, trees, first, last, upper),
        m,
        step=1,
        # Entries of a pass over pairs of rows that take as long as one state of one pair, for the choice of threads
        work=600 * m**2 * n,
    )
    # Relative: the loss of a profile is exact to rounding, and an upper bound when raised by this
    return np.minimum(upper, profile.loss(level) * (1.0 + 1e-15))


@kernel
def lift_rows(rows, metric, trees, first, last, upper):
    """Fill ``upper[i, j]`` for the rows first <= i < last; ``trees[i, j]`` is where the search for a pair starts and ended."""
    m, n = rows.shape
    for i in range(first, last):
        for j in range(m):
            if (rows[i] == rows[j]).all():
                continue
            states = np.flatnonzero((rows[i] > 0.0) | (rows[j] > 0.0))
            q, d, b = rows[i][states], rows[j][states], metric[states][:, states].copy()
            flow, tree = np.zeros(b.shape), np.full(states.size, -1, np.int16)
            if trees.shape[2] == n:
                tree = trees[i, j, : states.size]
            level = b.max()
            upper[i, j] = solve(q, d, b, level, potentials(q, d, b, level, tree), flow)
            store_tree(flow, tree)


@kernel
def potentials(q, d, b, level, tree):
    """A feasible u: along the tree, where one is stored, and `level` and 0 at its roots as for a metric of two levels.

    ``tree[v] = 2 p + 1`` where ``u_v = u_p + b(v, p)``, ``2 p`` where ``u_v = u_p - b(p, v)``, -1 at a root. Any numbers are
    sound: a tree of another matrix is only a worse start.
    """
    n = q.size
    guess = np.where(q > d, level, 0.0)
    waiting = (tree >= 0) & (tree < 2 * n)
    for _ in range(n):
        for v in range(n):
            p = tree[v] // 2
            if waiting[v] and not waiting[p]:
                guess[v] = guess[p] + b[v, p] if tree[v] % 2 else guess[p] - b[p, v]
                waiting[v] = False
        if not waiting.any():
            break
    guess -= guess.min()
    u = np.empty(n)
    for a in range(n):
        u[a] = (b[a] + guess).min()
    return u


@kernel
def store_tree(flow, tree):
    """Write a spanning forest of the pairs that a shipment uses, in the code of `potentials`."""
    n = tree.size
    queue, seen = np.empty(n, np.int64), np.zeros(n, np.bool_)
    tree[:] = -1
    for root in range(n):
        if seen[root]:
            continue
        first, last, queue[0], seen[root] = 0, 1, root, True
        while first < last:
            k = queue[first]
            first += 1
            for v in range(n):
                if not seen[v] and (flow[v, k] > 0.0 or flow[k, v] > 0.0):
                    tree[v] = 2 * k + (1 if flow[v, k] > 0.0 else 0)
                    queue[last], seen[v] = v, True
                    last += 1


@kernel
def solve(q, d, b, level, u, flow):
    """Upper bound of ``max log(q x / d x)`` from a feasible u, inf if none is certified; u and the shipment are left behind.

    A pair counts as tight within a `slack` of some roundings. `loss` bounds what a unit uses at its other end.
    """
    n = q.size
    w, error, source = np.empty(n), np.empty(n), np.empty(n, np.int64)
    slack, loss = 16.0 * ROUNDOFF * level, 1.0 + (32.0 * level + 4.0) * ROUNDOFF
    rise = (8.0 * n + 48.0 + 64.0 * level) * ROUNDOFF
    # Moves after which a search is stopped and the bound for all pairs is reported. It takes about one move a state without a
    # tree to start from, and hardly any from the tree of the step before
    for _ in range(20 * n):
        ratio = weigh(q, d, u, rise, w, error)
        left = w + 2.0 * error
        ship(b, u, slack, loss, left, flow, source)
        if left.max() <= 0.0:
            arrived, sent = flow.sum(axis=0), flow.sum(axis=1)
            # Directed rounding; a NaN certifies nothing.
            if (w + error + loss * arrived - sent + (n + 4.0) * ROUNDOFF * (arrived + sent) <= 0.0).all():
                return ratio + rise + 4.0 * ROUNDOFF * (abs(ratio) + level)
        inside = source >= -1
        if left.max() <= 0.0 or inside.all():
            rise *= 4.0
            # Nats above the ratio found up to which a certificate is looked for; beyond, the bound for all pairs is reported
            if rise > 1e-6:
                break
            continue
        room = np.inf
        for a in range(n):
            if inside[a]:
                for c in range(n):
                    if not inside[c]:
                        room = min(room, b[a, c] - u[a] + u[c])
        # Whichever side moves, u stays within the range of b.
        if u.max() + room > level:
            u -= np.where(inside, 0.0, room)
        else:
            u += np.where(inside, room, 0.0)
    return np.inf


@kernel
def weigh(q, d, u, rise, w, error):
    """Fill w and bounds of its rounding, and return ``log(q x / d x)``; each sum from its own largest term.

    A share of q that underflows stays above 0 by its error, so that it has to be shipped; one of d may vanish.
    """
    n = q.size
    top_q, top_d = u[q > 0.0].max(), u[d > 0.0].max()
    sum_q = sum_d = 0.0
    for k in range(n):
        sum_q += q[k] * math.exp(u[k] - top_q) if q[k] > 0.0 else 0.0
        sum_d += d[k] * math.exp(u[k] - top_d) if d[k] > 0.0 else 0.0
    log_q, log_d = top_q + math.log(sum_q), top_d + math.log(sum_d)
    for k in range(n):
        of_q = q[k] * math.exp(u[k] - log_q) if q[k] > 0.0 else 0.0
        of_d = d[k] * math.exp(u[k] - log_d + rise) if d[k] > 0.0 else 0.0
        roundings = abs(u[k] - log_q) + abs(u[k] - log_d) + 2.0 * n + 10.0
        w[k], error[k] = of_q - of_d, roundings * ROUNDOFF * (of_q + of_d) + (1e-300 if q[k] > 0.0 else 0.0)
    return log_q - log_d


@kernel
def ship(b, u, slack, loss, left, flow, source):
    """Ship what is positive in `left` to what is negative along tight pairs: first directly, then along augmenting paths.

    At the end ``source[k] >= -1`` marks the states that what is left can reach: by tight pairs, and by taking back flow.
    """
    n = left.size
    queue, gain = np.empty(n, np.int64), np.empty(n)
    flow[:] = 0.0
    for a in range(n):
        for c in range(n):
            if left[a] > 0.0 and left[c] < 0.0 and b[a, c] - u[a] + u[c] <= slack:
                amount = min(left[a], -left[c] / loss)
                flow[a, c] += amount
                left[a] -= amount
                left[c] = min(left[c] + amount * loss, 0.0)
    for _ in range(4 * n * n):
        end = path(b, u, slack, loss, left, flow, source, queue, gain)
        if end < 0:
            return
        amount, c = -left[end] / gain[end], end
        while source[c] >= 0:  # a path that takes flow back has less gain from there on
            if gain[c] < gain[source[c]]:
                amount = min(amount, flow[c, source[c]] / gain[c])
            c = source[c]
        amount = min(amount, left[c])
        left[c] -= amount
        left[end] = min(left[end] + amount * gain[end], 0.0)
        c = end
        while source[c] >= 0:
            k = source[c]
            if gain[c] < gain[k]:
                flow[c, k] = max(flow[c, k] - amount * gain[c], 0.0)
            else:
                flow[k, c] += amount * gain[k]
            c = k


@kernel
def path(b, u, slack, loss, left, flow, source, queue, gain):
    """Breadth-first search from what is left to a state with room: that state, or -1; `gain` is the share that arrives."""
    n, first, last = left.size, 0, 0
    for a in range(n):
        source[a] = -2
        if left[a] > 0.0:
            source[a], queue[last], gain[a] = -1, a, 1.0
            last += 1
    while first < last:
        k = queue[first]
        first += 1
        for c in range(n):
            tight = b[k, c] - u[k] + u[c] <= slack
            if source[c] == -2 and (tight or flow[c, k] > 0.0):
                source[c], queue[last], gain[c] = k, c, gain[k] * loss if tight else gain[k] / loss
                last += 1
                if left[c] < 0.0:
                    return c
    return -1
