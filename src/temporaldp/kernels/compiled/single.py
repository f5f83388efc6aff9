"""The loss at one alpha, without the profile: one slope, raised as better pairs are found.

Notation
--------
h     g - 1 of the best pair so far; L = log(1 + h) when nobody is better
w     1 / (e^a - 1): the pair (q, d) is better than h if and only if E_(1 + h)(q || d) > h w
S     {k : q_k - d_k > h' d_k}, h' some ulps above h: a column whose ratio is h but for rounding would hide columns that are a
      trillion times smaller and, at a large alpha, worth more. Newton's (Dinkelbach's) step is h <- x(S) / (w + d(S)),
      the paper's Algorithm 1 for one pair
"""

import numpy as np

from temporaldp.kernels.compiled.options import kernel
from temporaldp.kernels.compiled.pairs import n_rows, set_sums, steeper
from temporaldp.kernels.compiled.screening import open_all, raised_divergences, workspace
from temporaldp.values import ULP

GAIN = 1.0 + 4.0 * ULP
"""A step must raise h by this factor: less is the rounding of its sums."""

SAFE = 1.0 - 1e-12
"""Bounds are compared with a little less than what is needed: more than the rounding of a sum of thousands."""


@kernel
def climb(store, i, j, w, best):
    """Raise best = [h, i, j, limit] by Newton's steps on one pair, while they gain; whether they did."""
    gained = False
    while True:
        limit = best[0] * steeper(n_rows(store))
        d, x, _ = set_sums(store, i, j, limit, limit)
        h = x / (w + d) if x > 0.0 else 0.0
        if h <= best[0] * GAIN:
            return gained
        best[1], best[2], best[3] = i, j, limit
        best[0] = h
        gained = True


@kernel
def sampled(store, n, partner, w):
    """The best of the pairs (k, partner[k]) as [h, i, j, limit]."""
    best = np.zeros(4)
    best[2] = 1.0
    for k in range(n):
        climb(store, k, partner[k], w, best)
    return best


@kernel
def ascend(store, n, w, best):
    """Raise `best` over its row's pairs and its other row's pairs, until neither has a better one."""
    gained = best[0] > 0.0
    while gained:
        gained = False
        for other in range(n):
            if other != int(best[1]):
                gained |= climb(store, int(best[1]), other, w, best)
        for row in range(n):
            if row != int(best[2]):
                gained |= climb(store, row, int(best[2]), w, best)


@kernel
def row_bounds(dense, tall, h):
    """For each row d, sum_k max((tall_k - d_k) - h d_k, 0), tall_k the largest entry of column k: no pair (., d) has more.

    Also the number of columns that any pair of these rows could count: those with a positive part.
    """
    n = dense.shape[0]
    bounds, n_open = np.empty(n), np.empty(n, np.int64)
    for j in range(n):
        d, total, count = dense[j], 0.0, 0
        for k in range(n):
            part = (tall[k] - d[k]) - h * d[k]
            total += part if part > 0.0 else 0.0
            count += part > 0.0
        bounds[j], n_open[j] = total, count
    return bounds, n_open


@kernel
def column_maxima(dense):
    """The largest entry of each column."""
    tall = dense[0].copy()
    for i in range(1, dense.shape[0]):
        row = dense[i]
        for k in range(tall.size):
            tall[k] = max(tall[k], row[k])
    return tall


@kernel
def loss_by_rows(store, tall, order, bounds, w, best):
    """Raise `best` over all pairs (., j), by the columns that can count. The rows j come by falling bounds.

    Bounds fall as h rises: where one at a smaller h is too low, so is it now, and those that follow are lower.
    """
    dense, n = store[0], tall.size
    columns = np.empty(n, np.int64)
    for j in order:
        h, m, d = best[0] * steeper(n), 0, dense[j]
        if bounds[j] <= h * w * SAFE:
            break
        for k in range(n):
            columns[m] = k
            m += (tall[k] - d[k]) - h * d[k] > 0.0
        for i in range(n):
            q, total = dense[i], 0.0
            for t in range(m):
                k = columns[t]
                part = (q[k] - d[k]) - h * d[k]
                total += part if part > 0.0 else 0.0
            if total > h * w * SAFE and i != j:
                climb(store, i, j, w, best)


@kernel
def loss_among(store, table, first, last, w, best, shared):
    """Raise `best` over all pairs (i, j), j in [first, last); `shared` is a slope that other threads have reached."""
    n, scale = table[2].shape[0], table[6]
    work = workspace(table)
    band = work[2].size
    raised = np.empty((band, table[0].shape[0]), np.float32)
    for j in range(first, last, band):
        if shared[0] > best[0]:
            best[0], best[1] = shared[0], -1.0
        h = best[0]
        open_all(table, j, work)
        raised_divergences(table, j, h, work, raised)
        needed = np.float32(h * w * scale * (1.0 - 1e-6))
        for t in range(min(band, last - j)):
            values = raised[t]
            for i in range(n):
                if values[i] > needed and i != j + t:
                    climb(store, i, j + t, w, best)
        shared[0] = max(shared[0], best[0])
