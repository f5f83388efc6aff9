"""Oracles for sets of matrices: random sets, their extreme matrices, and what members leak, by code of the tests' own."""

from __future__ import annotations

import itertools

import numpy as np


def random_bounds(rng, n, *, width=None, zeros=False):
    """Bounds around a random matrix; some lower bounds 0."""
    P = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 3.0])), n)
    width = rng.choice([0.01, 0.05, 0.2, 0.6]) if width is None else width
    low = np.maximum(P - width * rng.random((n, n)), 0.0)
    high = np.minimum(P + width * rng.random((n, n)), 1.0)
    if zeros:
        low[rng.random((n, n)) < 0.3] = 0.0
    return low, high


def tight_bounds(low, high):
    """The bounds that the other entries of the row leave."""
    others_low, others_high = (bound.sum(axis=1, keepdims=True) - bound for bound in (low, high))
    return np.maximum(low, 1.0 - others_high), np.minimum(high, 1.0 - others_low)


def extreme_rows(low, high):
    """Every extreme distribution between the bounds of one row: all entries but one at a bound."""
    n, found = len(low), set()
    for free in range(n):
        for ends in itertools.product((0, 1), repeat=n - 1):
            row = np.insert(np.where(ends, np.delete(high, free), np.delete(low, free)), free, 0.0)
            row[free] = 1.0 - row.sum()
            if low[free] - 1e-12 <= row[free] <= high[free] + 1e-12:
                found.add(tuple(np.clip(row, low, high).round(14)))
    return [np.array(row) for row in found]


def members(rng, low, high, count):
    """Matrices of the set, shape (count, n, n): extreme ones first, then between two extreme ones."""
    rows = [extreme_rows(*row) for row in zip(low, high, strict=True)]

    def extreme():
        picks = [np.array(row)[rng.integers(len(row), size=count)] for row in rows]
        return np.stack(picks, axis=1)

    share = np.where(np.arange(count)[:, None, None] < count // 2, 1.0, rng.random((count, len(low), 1)))
    return share * extreme() + (1.0 - share) * extreme()


def corners(rng, low, high, count):
    """Extreme matrices of a set of any size, shape (count, n, n): rows give all they can to entries in a random order."""
    n = len(low)
    found = np.repeat(low[None], count, axis=0)
    for matrix in found:
        for row, reach in zip(matrix, high - low, strict=True):
            free = 1.0 - row.sum()
            for k in rng.permutation(n):
                given = min(free, reach[k])
                row[k] += given
                free -= given
    return found


def backward_leakage(matrices, epsilons):
    """BPL at the last step for each matrix, constant over time, by the sign rule and Dinkelbach's iteration; shape (count,)."""
    n = matrices.shape[1]
    worst = np.zeros(len(matrices))
    for i, j in itertools.permutations(range(n), 2):
        r = np.ones(len(matrices))
        for _ in range(30):
            N, D = matrices[:, i], matrices[:, j]
            for s in range(len(epsilons) - 2, -1, -1):
                m = np.where(r[:, None] * D < N, np.exp(epsilons[s]), 1.0)
                N, D = N * m, D * m
                if s:
                    N, D = (np.einsum("mk,mkl->ml", one, matrices) for one in (N, D))
            better = N.sum(axis=1) / D.sum(axis=1)
            if (np.abs(better - r) <= 1e-14 * r).all():
                break
            r = np.maximum(r, better)
        worst = np.maximum(worst, np.log(r))
    return worst + epsilons[-1]


def worst_of_changing_matrices(low, high, epsilons):
    """The largest BPL at the last step over all matrices, changing at every step, and all observations: by enumeration."""
    n = len(low)
    rows = [np.array(extreme_rows(*row)) for row in zip(low, high, strict=True)]
    signs = np.array(list(itertools.product((0, 1), repeat=n)))
    x = np.where(signs, np.exp(epsilons[0]), 1.0)
    for epsilon in epsilons[1:-1]:
        # Every row by itself: the products of all its extreme distributions with all likelihoods.
        each = [x @ row.T for row in rows]
        after = []
        for picks in itertools.product(*(range(len(row)) for row in rows)):
            after.append(np.stack([one[:, k] for one, k in zip(each, picks, strict=True)], axis=1))
        x = np.unique(np.concatenate(after).round(13), axis=0)
        x = (x[:, None] * np.where(signs, np.exp(epsilon), 1.0)).reshape(-1, n)
    best = 0.0
    for i, j in itertools.permutations(range(n), 2):
        best = max(best, float(((x @ rows[i].T).max(axis=1) / (x @ rows[j].T).min(axis=1)).max()))
    return np.log(best) + epsilons[-1]
