"""The leakage profile of a matrix of which every entry is known up to an interval.

The loss over all such matrices is the maximum over points (dmin(S), qmax(S)) of all sets S of values at the other time and all
ordered pairs of rows (docs/theory.md, section 12): two rows vary independently, so one step attains it.

Notation
--------
low, high   bounds of each entry, shape (n, n)
qmax(S)     min(high(S), 1 - low(not S)), the largest probability of S in a row;  dmin(S) = max(low(S), 1 - high(not S))
d, x        abscissa dmin and ordinate qmax - dmin of a point; theta(h) the largest x - h d over all points
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.kernels.hull import upper_hull
from temporaldp.kernels.kernels import chosen_kernels
from temporaldp.kernels.profile import LeakageProfile
from temporaldp.kernels.witness import Witness, WitnessList

FloatArray = NDArray[np.float64]

MOST_ENUMERATED = 12
"""Values up to which every set is looked at: 4,096 sets, each with every row."""

CLOSE = 3e-3
"""Share of theta by which a corner may lie above it, beyond what the weights leave."""

STEEPEST, FASTER = 1e14, 8.0
"""Slope beyond which no corner is looked for, and the factor by which slopes grow until theta vanishes."""

MOST_SLOPES = 200
"""Slopes at which theta is bounded, 15 to 40 being usual."""

TINY = 1e-300
"""Keeps a quotient finite where two corners stand above one another."""

U = float(np.finfo(np.float64).eps)


def interval_profile(
    low: FloatArray, high: FloatArray, states: Sequence[str], *, enumerated: bool | None = None
) -> LeakageProfile:
    """The profile of all matrices between two bounds, rows varying independently.

    Exact (tolerance 0) where all sets are enumerated. Otherwise an upper bound: its corners lie on supporting lines that a
    Lagrangian bounds from above, and `tolerance` says how far they are from sets that some matrix attains, at most.

    Parameters
    ----------
    low, high : array, shape (n, n)
        Bounds of each entry; every row holds a distribution.
    states : sequence of n names
    enumerated : bool, optional
        Whether to look at every set. Default: for up to 12 values.
    """
    look_at_all = len(low) <= MOST_ENUMERATED if enumerated is None else enumerated
    return _every_set(low, high, states) if look_at_all else _bounded(low, high, states)


def row_extremes(low: FloatArray, high: FloatArray, sets: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Largest and smallest probability of each set in each row, shape (n, number of sets); `sets` holds zeros and ones."""
    outside = 1.0 - sets
    largest = np.minimum(high @ sets.T, 1.0 - low @ outside.T)
    smallest = np.maximum(low @ sets.T, 1.0 - high @ outside.T)
    return np.clip(largest, 0.0, 1.0), np.clip(smallest, 0.0, 1.0)


def every_set(n: int) -> FloatArray:
    """All sets of n values but the empty and the full one, as rows of zeros and ones."""
    return ((np.arange(1, (1 << n) - 1)[:, None] >> np.arange(n)) & 1).astype(np.float64)


def _every_set(low: FloatArray, high: FloatArray, states: Sequence[str]) -> LeakageProfile:
    n = len(low)
    sets = every_set(n)
    largest, smallest = row_extremes(low, high, sets)
    rounding = 2.0 * (n + 2) * U
    points = []
    for i in range(n):
        q, d = np.broadcast_to(largest[i], smallest.shape), smallest
        ahead = (q > d + rounding) & (np.arange(n)[:, None] != i)
        j, s = np.nonzero(ahead)
        x = q[j, s] - d[j, s]
        kept = upper_hull(d[j, s], x)
        points += [(i, int(j[k]), int(s[k])) for k in kept]
    witnesses = [_witness(low, high, i, j, sets[s], states) for i, j, s in points]
    d = np.array([max(smallest[j, s] - rounding, 0.0) for _, j, s in points])
    q = np.array([min(largest[i, s] + rounding, 1.0) for i, _, s in points])
    return LeakageProfile.from_points(d=d, x=q - d, q=q, c=1.0 - q, witnesses=witnesses)


def _witness(low: FloatArray, high: FloatArray, i: int, j: int, members: FloatArray, states: Sequence[str]) -> Witness:
    largest, smallest = row_extremes(low, high, members[None])
    evidence = tuple(state for state, inside in zip(states, members, strict=True) if inside)
    return Witness(states[i], states[j], evidence, float(largest[i, 0]), float(smallest[j, 0]))


class _Lines:
    """Supporting lines ``x - h d <= theta(h)`` from above, each with the point of a set that comes close to it."""

    def __init__(self, low: FloatArray, high: FloatArray) -> None:
        self.low, self.high = np.ascontiguousarray(low), np.ascontiguousarray(high)
        # Rounded upwards: each is a weight of the bound, and larger ones are sound.
        self.slack = np.maximum(1.0 - low.sum(axis=1), 0.0) + 2.0 * (len(low) + 2) * U
        self.over = np.maximum(high.sum(axis=1) - 1.0, 0.0) + 2.0 * (len(low) + 2) * U
        self.theta: dict[float, float] = {}
        self.point: dict[float, tuple[float, float]] = {}
        self._found: dict[float, FloatArray] = {}
        self._middle = 0.5 * (self.low + self.high)
        self._start = (0, 1)
        self._largest = _kernel(len(low))

    def look(self, h: float, pairs: FloatArray) -> None:
        """Bound theta(h). `pairs` brings what is known of each pair's own theta(h), shape (n, n), and is lowered."""
        found = np.empty(7)
        self._largest(self.low, self.high, self._middle, self.slack, self.over, h, *self._start, pairs, found)
        n = len(self.low)
        self._start = int(found[1]), int(found[2])
        # What is summed has at most 3 n terms, none above 1 + g, and those that are kept are not negative.
        self.theta[h] = float(found[0]) * (1.0 + 8.0 * (n + 4) * U) + 4.0 * (n + 4) * U
        self.point[h] = (float(found[5]), float(found[6] - found[5]))
        self._found[h] = found

    def needed(self) -> list[float]:
        """The slopes, rising, whose lines bound the points: bounds that lie on a convex curve, as theta does.

        A search that stops early leaves others, whose lines pass above the crossing of their neighbours.
        """
        kept: list[float] = []
        for h in sorted(self.theta):
            if kept and self.theta[h] > self.theta[kept[-1]]:  # theta falls
                self.theta[h] = self.theta[kept[-1]]
            while len(kept) > 1 and self._above_chord(kept[-2], kept[-1], h):
                kept.pop()
            kept.append(h)
        return kept

    def _above_chord(self, left: float, middle: float, right: float) -> bool:
        share = (right - middle) / (right - left)
        return self.theta[middle] >= share * self.theta[left] + (1.0 - share) * self.theta[right]

    def witnesses(self, slopes: Sequence[float], states: Sequence[str]) -> WitnessList:
        """The pairs of rows and the sets at some slopes."""
        found = np.array([self._found[h] for h in slopes])
        pairs = found[:, 1:3].astype(np.int64)
        g, lam, mu = 1.0 + np.array(slopes)[:, None], found[:, 3:4], found[:, 4:5]
        high, low = self.high[pairs[:, 0]], self.low[pairs[:, 1]]
        inside = high - lam * (high - self.low[pairs[:, 0]]) > g * (low + mu * (self.high[pairs[:, 1]] - low))
        starts = np.concatenate(([0], np.cumsum(inside.sum(axis=1))))
        return WitnessList(tuple(states), pairs, np.nonzero(inside)[1], starts, found[:, 5:7])


def _kernel(n: int) -> Callable[..., Any]:
    if chosen_kernels(n**3 * MOST_SLOPES) == "numba":
        from temporaldp.kernels.compiled.intervals import largest_divergence

        return largest_divergence  # type: ignore[no-any-return]
    from temporaldp.kernels import interval_pairs

    return interval_pairs.largest_divergence


def _bounded(low: FloatArray, high: FloatArray, states: Sequence[str]) -> LeakageProfile:
    """Corners of the polygon between supporting lines, and how far above attained points they are."""
    lines = _Lines(low, high)
    nothing = 8.0 * (len(low) + 4) * U
    at_top = np.where(np.eye(len(low), dtype=bool), -1.0, math.inf)
    lines.look(0.0, at_top)
    at_0, top = at_top.copy(), 1.0
    lines.look(top, at_top)
    while lines.theta[top] > nothing and top < STEEPEST:
        top *= FASTER
        lines.look(top, at_top)  # each pair's theta falls with h
    waiting = [(0.0, top, at_0, at_top)]
    while waiting and len(lines.theta) < MOST_SLOPES:
        left, right, at_left, at_right = waiting.pop(0)
        h = _crossing(lines, left, right)
        if h is None:
            continue
        share = (right - h) / (right - left)
        at_h = share * at_left + (1.0 - share) * at_right  # and is convex
        lines.look(h, at_h)
        if share * lines.theta[left] + (1.0 - share) * lines.theta[right] > (1.0 + CLOSE) * lines.theta[h]:
            waiting += [(left, h, at_left, at_h), (h, right, at_h, at_right)]
    return _polygon(lines, states)


def _crossing(lines: _Lines, left: float, right: float) -> float | None:
    """The slope between two at which lines as steep as theta there cross; their middle where that lies outside.

    theta falls as the smallest probability of its set says, though no set may attain it.
    """
    if right - left <= CLOSE * (1.0 + left):
        return None
    d_left, d_right = lines.point[left][0], lines.point[right][0]
    run, drop = d_left - d_right, lines.theta[left] + left * d_left - lines.theta[right] - right * d_right
    h = drop / run if run > 0.0 else math.nan
    if left + 0.01 * (right - left) < h < right - 0.01 * (right - left):
        return h
    return math.sqrt((1.0 + left) * (1.0 + right)) - 1.0


def _polygon(lines: _Lines, states: Sequence[str]) -> LeakageProfile:
    """From the steepest line to the flattest: where each meets the next, cut off at q = 1."""
    slopes = lines.needed()[::-1]
    corners = [(0.0, min(lines.theta[slopes[0]], 1.0), slopes[0])]
    for steep, flat in pairwise(slopes):
        run = max(lines.theta[flat] - lines.theta[steep], 0.0) / (steep - flat)
        at = min(run * (1.0 - 8.0 * U), max(1.0 - lines.theta[steep], 0.0) / (1.0 + steep))
        corners.append((at, min(lines.theta[steep] + steep * at, 1.0 - at), flat))
    corners = [corner for corner in corners if corner[1] > 0.0]
    d, x = (np.array([corner[k] for corner in corners]) for k in (0, 1))
    x = np.minimum(x * (1.0 + 64.0 * U), 1.0 - d)
    witnesses = lines.witnesses([corner[2] for corner in corners], states)
    return LeakageProfile.from_points(
        d=d, x=x, q=d + x, c=1.0 - d - x, witnesses=witnesses, tolerance=_tolerance(lines, slopes, d, x)
    )


def _tolerance(lines: _Lines, slopes: list[float], d: FloatArray, x: FloatArray) -> float:
    """How far the polygon is above points that are attained, as a share of theta, at most: both are piecewise linear."""
    attained = np.array(list(lines.point.values()))
    edges = (x[1:] - x[:-1]) / np.maximum(d[1:] - d[:-1], TINY)
    h = np.concatenate((slopes, edges[(edges > 0.0) & (edges < STEEPEST)]))[:, None]
    above, below = (x - h * d).max(axis=1), (attained[:, 1] - h * attained[:, 0]).max(axis=1)
    counts = above > 8.0 * (len(lines.low) + 4) * U
    with np.errstate(divide="ignore"):
        return float(np.max(above[counts] / np.maximum(below[counts], 0.0) - 1.0, initial=0.0))
