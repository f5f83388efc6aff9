"""All pairs of rows, each from the tree that it had one step before. Notation in `temporaldp.leakage.trees`."""

import math

import numpy as np

from temporaldp.leakage.trees.simplex import cut, solve, support


def same(rows, i, j):
    """Whether two rows are equal: nothing tells them apart."""
    for k in range(rows.shape[1]):  # noqa: SIM110
        if rows[i, k] != rows[j, k]:  # a plain loop: Numba compiles no generators
            return False
    return True


def lift(rows, metric, wide, level, trees, most_moves, first, last, lower, upper):
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
            lower[i, j] = upper[i, j] = 0.0
            if i == j or same(rows, i, j):
                continue
            m = support(rows[i], rows[j], n, values)
            if m < n:
                cut(rows, i, j, metric, wide, values, m, pair, b, b_wide)
            known = keeps and trees[i, j, n] == m
            if known:
                for v in range(m):
                    code = trees[i, j, v]
                    parent[v], sense[v] = (code // 2, code % 2 == 1) if code >= 0 else (-1, False)
            if m < n:
                lower[i, j], upper[i, j] = solve(
                    pair[0], pair[1], b, b_wide, level, m, parent, sense, known, most_moves, floats, ints
                )
            else:
                lower[i, j], upper[i, j] = solve(
                    rows[i], rows[j], metric, wide, level, m, parent, sense, known, most_moves, floats, ints
                )
            if keeps:
                for v in range(m):
                    trees[i, j, v] = 2 * parent[v] + (1 if sense[v] else 0) if parent[v] >= 0 else -1
                trees[i, j, n] = m


def lift_constant(rows, level, first, last, upper):
    """The bounds for a metric that is `level` between any two values: the maximum is on two levels (Lemma 1), no tree needed.

    Newton's iteration over the sets ``{k : q_k > g d_k}`` from g = 1; it rises, and stops where the set stays the same.
    """
    n = rows.shape[0]
    low = math.exp(-level)
    for i in range(first, last):
        for j in range(n):
            upper[i, j] = 0.0
            if i == j or same(rows, i, j):
                continue
            g = best = 0.0
            for _ in range(n + 2):
                q_in = q_out = d_in = d_out = 0.0
                for k in range(n):
                    if rows[i, k] > math.exp(min(best, 700.0)) * rows[j, k]:
                        q_in += rows[i, k]
                        d_in += rows[j, k]
                    else:
                        q_out += rows[i, k]
                        d_out += rows[j, k]
                if q_in == 0.0:
                    break
                if d_in > 0.0:
                    g = math.log((q_in + q_out * low) / (d_in + d_out * low))
                else:
                    g = level + math.log((q_in + q_out * low) / d_out) if d_out > 0.0 else level
                if not g > best:
                    break
                best = g
            upper[i, j] = min(best + (n + 8.0) * 2.0**-52, level)
