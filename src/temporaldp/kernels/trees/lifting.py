"""All pairs of rows, each from the tree that it had one step before. Notation in `temporaldp.kernels.trees`."""

import math

import numpy as np

from temporaldp.kernels.trees.simplex import cut, solve, support

CLOSE = 1e-9
"""Nats between both bounds of a pair above which its search has not ended where it should."""


def same(rows, i, j):
    """Whether two rows are equal: nothing tells them apart."""
    for k in range(rows.shape[1]):  # noqa: SIM110
        if rows[i, k] != rows[j, k]:  # a plain loop: Numba compiles no generators
            return False
    return True


def restore(code, m, parent, sense):
    """A tree from ``2 parent + upper``."""
    for v in range(m):
        parent[v], sense[v] = (code[v] // 2, code[v] % 2 == 1) if code[v] >= 0 else (-1, False)


def lift(rows, metric, wide, level, trees, most_moves, first, last, upper):
    """Bounds for the pairs (i, j) of rows first <= i < last.

    ``trees[i, j]`` keeps a pair's tree, if it has room: ``2 parent + upper`` for each of its m values, and m at its end (0:
    none is known yet).
    """
    n = rows.shape[0]
    floats, ints = np.empty((5, n)), np.empty((4, n), np.int64)
    pair, b, b_wide = np.empty((2, n)), np.empty((n, n)), np.empty((n, n))
    values, parent, sense = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.bool_)
    keeps = trees.shape[2] == n + 1
    for i in range(first, last):
        for j in range(n):
            upper[i, j] = 0.0
            if i == j or same(rows, i, j):
                continue
            q, d, near, far = rows[i], rows[j], metric, wide
            m = support(q, d, n, values)
            if m < n:
                cut(rows, i, j, metric, wide, values, m, pair, b, b_wide)
                q, d, near, far = pair[0], pair[1], b, b_wide
            known = keeps and trees[i, j, n] == m
            if known:
                restore(trees[i, j], m, parent, sense)
            low, high = solve(q, d, near, far, level, m, parent, sense, known, most_moves, floats, ints)
            if known and not high - low <= CLOSE:  # a tree from elsewhere can lead astray: begin again, without it
                again = solve(q, d, near, far, level, m, parent, sense, False, most_moves, floats, ints)
                high = min(high, again[1])
            upper[i, j] = high
            if keeps:
                for v in range(m):
                    trees[i, j, v] = 2 * parent[v] + (1 if sense[v] else 0) if parent[v] >= 0 else -1
                trees[i, j, n] = m


def lift_constant(rows, level, first, last, upper):
    """The bounds for a metric that is `level` between any two values: the maximum is on two levels (Lemma 1), no tree needed.

    The values on the upper level are those of largest q / d (Lemma 2): every such set is tried, so that none is missed for an
    entry that a sum does not see and ``e^level`` makes large.
    """
    n = rows.shape[0]
    low = math.exp(-level)
    ratio, rest_q, rest_d = np.empty(n), np.empty(n + 1), np.empty(n + 1)
    for i in range(first, last):
        for j in range(n):
            upper[i, j] = 0.0
            if i == j or same(rows, i, j):
                continue
            for k in range(n):
                ratio[k] = -rows[i, k] / rows[j, k] if rows[j, k] > 0.0 else (-math.inf if rows[i, k] > 0.0 else 0.0)
            order = np.argsort(ratio)
            rest_q[n] = rest_d[n] = 0.0
            for k in range(n - 1, -1, -1):
                rest_q[k] = rest_q[k + 1] + rows[i, order[k]]
                rest_d[k] = rest_d[k + 1] + rows[j, order[k]]
            best = q_in = d_in = 0.0
            for k in range(n):
                q_in += rows[i, order[k]]
                d_in += rows[j, order[k]]
                q_sum = q_in + rest_q[k + 1] * low
                if d_in > 0.0:
                    best = max(best, math.log(q_sum / (d_in + rest_d[k + 1] * low)))
                elif rest_d[k + 1] > 0.0:
                    best = max(best, level + math.log(q_sum / rest_d[k + 1]))
            upper[i, j] = min(best + (n + 8.0 + 4.0 * level) * 2.0**-52, level)
