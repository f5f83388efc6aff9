"""Where to cut the slopes into intervals, by looking at a sample of pairs.

Notation
--------
h         slope g - 1
line      v(h) = x - h d of one set of one pair: a lower bound of the contraction curve theta everywhere
tangent   the best line known at a slope

Between two slopes a pair's divergence, being convex in h, lies below its chord. A pair whose chord lies below the tangents of
both ends (at the ends, and where the tangents cross) can add nothing to the profile there: it is dead in that interval.
Intervals are cut where the tangents cross until few pairs of the sample are alive in any of them.
"""

import numpy as np

from temporaldp.kernels.compiled.options import kernel
from temporaldp.kernels.compiled.pairs import excess, set_sums
from temporaldp.values import ULP

ALIVE = 0.005
"""Share of sampled pairs that may stay alive in an interval: about where a further pass over all pairs costs as much."""

MOST_SLOPES = 48

ASCENTS = 1
"""Scans of the other row, then of the row, from the best pair of the sample: rows that are extreme are so in many pairs."""


@kernel
def best_pair(store, n, h, partner, known, found):
    """Fill `found` with the divergences of the pairs (k, partner[k]); the best of them and the `known` pairs, after ascents."""
    i, j, top = 0, 1, -1.0
    for v in range(known.shape[0]):
        value = excess(store, known[v, 0], known[v, 1], h)
        if value > top:
            i, j, top = known[v, 0], known[v, 1], value
    for k in range(n):
        value = excess(store, k, partner[k], h)
        found[k] = value
        if value > top:
            i, j, top = k, partner[k], value
    for _ in range(ASCENTS):
        start = top
        for other in range(n):
            if other != i:
                value = excess(store, i, other, h)
                if value > top:
                    j, top = other, value
        for row in range(n):
            if row != j:
                value = excess(store, row, j, h)
                if value > top:
                    i, top = row, value
        if top == start:
            break
    return i, j


@kernel
def crossing(line, right, h_left, h_right):
    """Where the tangents (d, x) of two slopes meet, if strictly between the slopes; else the left slope."""
    run, rise = line[0] - right[0], line[1] - right[1]
    if run <= 0.0 or rise <= 0.0:
        return h_left
    h = rise / run
    return h if h_left < h < h_right else h_left


@kernel
def _alive(left, right, t_left, t_right, share, level):
    count = 0
    for k in range(left.size):
        above = left[k] > t_left or right[k] > t_right
        if above or share * left[k] + (1.0 - share) * right[k] > level:
            count += 1
    return count


@kernel
def plan_slopes(store, n, partner, steepest):
    """Slopes from 0 to `steepest`, by size, with the pair and the line (d, x) found at each.

    Returns
    -------
    slopes : shape (s,);  pairs : shape (s, 2), int64;  tangents : shape (s, 3), d, x and level of the best line there
    """
    slopes = np.empty(MOST_SLOPES)
    pairs = np.empty((MOST_SLOPES, 2), np.int64)
    lines = np.empty((MOST_SLOPES, 2))
    values = np.empty((MOST_SLOPES, n))
    done = np.zeros(MOST_SLOPES, np.bool_)  # of the interval that begins at a slope
    size = 0
    for h in (0.0, steepest):
        i, j = best_pair(store, n, h, partner, pairs[:size], values[size])
        d, x, _ = set_sums(store, i, j, h, h)
        slopes[size], pairs[size, 0], pairs[size, 1], lines[size, 0], lines[size, 1] = h, i, j, d, x
        size += 1
    position = 0
    while position < size - 1:
        nxt = position + 1
        h = crossing(lines[position], lines[nxt], slopes[position], slopes[nxt])
        if size == MOST_SLOPES or done[position] or h <= slopes[position]:
            position += 1
            continue
        share = (slopes[nxt] - h) / (slopes[nxt] - slopes[position])
        level = lines[nxt, 1] - h * lines[nxt, 0]
        t_left = lines[position, 1] - slopes[position] * lines[position, 0]
        t_right = lines[nxt, 1] - slopes[nxt] * lines[nxt, 0]
        if _alive(values[position], values[nxt], t_left, t_right, share, level) <= max(1.0, ALIVE * n):
            position += 1
            continue
        for k in range(size, nxt, -1):
            slopes[k], pairs[k], lines[k], values[k] = slopes[k - 1], pairs[k - 1], lines[k - 1], values[k - 1]
            done[k] = done[k - 1]
        pairs[nxt] = pairs[position]  # until its own is found among the pairs known so far
        size += 1
        i, j = best_pair(store, n, h, partner, pairs[:size], values[nxt])
        d, x, gained = set_sums(store, i, j, h, h)
        slopes[nxt], pairs[nxt, 0], pairs[nxt, 1], lines[nxt, 0], lines[nxt, 1] = h, i, j, d, x
        flat = gained <= level * (1.0 + 64.0 * ULP)  # the tangents' own corner is the curve: nothing lies above it
        done[position] = flat
        done[nxt] = flat
    return slopes[:size], pairs[:size], _tangents(store, slopes[:size], pairs[:size])


@kernel
def _tangents(store, slopes, pairs):
    """At each slope the best of all pairs found: its line (d, x) and its level, summed without cancellation; shape (s, 3)."""
    tangents = np.empty((slopes.size, 3))
    for s in range(slopes.size):
        best, top = s, -1.0
        for v in range(slopes.size):
            value = excess(store, pairs[v, 0], pairs[v, 1], slopes[s])
            if value > top:
                best, top = v, value
        d, x, level = set_sums(store, pairs[best, 0], pairs[best, 1], slopes[s], slopes[s])
        tangents[s, 0], tangents[s, 1], tangents[s, 2] = d, x, level
    return tangents
