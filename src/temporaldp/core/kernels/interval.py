"""Interval matrices: the profile of all matrices between two bounds, and incoming leakage pair by pair; upper bounds.

The loss over all such matrices is the maximum over points (dmin(S), qmax(S)) of all sets S of states at the other time and all
ordered pairs of rows (Theory, section 12): two rows vary independently, so one step attains it.

Given everything before, the likelihoods of one step lie in a product of intervals, ``x'_k in [L_k(x), e^e U_k(x)]``, whatever
the mechanism and the matrix. ``N - r D`` is linear in each of them, so that each is at one of its ends. `by_sets` tries every
set of ends at every step (exact to its depth). `by_rows` rolls coefficients instead, with linear bounds of U and L.

Notation
--------
low, high   bounds of each entry, shape (n, n); reach = high - low
qmax(S)     min(high_i(S), 1 - low_i(not S)), the largest probability of a set S in row i
dmin(S)     max(low_j(S), 1 - high_j(not S)), the smallest in row j
d, x        abscissa dmin and ordinate qmax - dmin of a point; theta(h) the largest x - h d over all points
g, h        slope of the hockey-stick divergence, and g - 1
slack_i     1 - sum of low_i: the mass of row i that its lower bounds leave free;  over_j = sum of high_j - 1
lam, mu     weights in [0, 1] of the second terms:
            ``qmax(S) - g dmin(S) <= lam slack_i + g mu over_j + sum over S of (high_i - lam reach_i - g (low_j + mu reach_j))``
            for every S, so that the largest right-hand side bounds the left-hand side, whatever the weights
R_k         row polytope: all distributions between row k of low and of high
x (vectors) likelihoods of everything up to a step, up to a common factor; min x = 1
U_k, L_k    the largest and the smallest p x over p in R_k: what is free goes to the largest, or to the smallest entries of x
a           spread: x lies in [1, e^a]^n; Y = e^a - 1
c           coefficients of N - r D, rolled from the near end; w the same times the largest or smallest factor of the output
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from temporaldp.base.values import ULP as U
from temporaldp.base.values import FloatArray, IntArray
from temporaldp.core.kernels.hull import upper_hull
from temporaldp.core.kernels.profile import LeakageProfile, Witness

Bounds: TypeAlias = tuple[FloatArray, FloatArray]
"""Bounds of a matrix: low and high, shape (n, n) each."""

MOST_VECTORS = 1 << 15
"""Vectors of likelihoods that `by_sets` goes through at a step; its depth follows from it."""

MOST_ENUMERATED_STATES = 64
"""States up to which more than the profile is computed."""

LARGEST_SPREAD = 300.0
"""Nats that likelihoods may be apart, of everything or of some steps; beyond, numbers would overflow: the spread is given."""


VECTORS_AT_ONCE = 64
"""Pairs whose bounds `by_rows` improves together, those with the largest first."""


CLOSE_PAIRS = 3e-3
"""Share of theta by which a corner may lie above it, beyond what the weights leave."""

STEEPEST, FASTER = 1e14, 8.0
"""Slope beyond which no corner is looked for, and the factor by which slopes grow until theta vanishes."""

NEARLY = 1.001
"""A bound above the largest of those that were made small by no more than this factor is small enough."""

VECTOR_ENTRIES = 1 << 15
"""Entries of the arrays in which pairs are looked at together, so that they stay in the processor's cache."""


def interval_profile(
    low: FloatArray, high: FloatArray, states: Sequence[str], *, enumerated: bool | None = None
) -> LeakageProfile:
    """The profile of all matrices between two bounds, rows varying independently.

    Exact (tolerance 0) where all sets are enumerated. Otherwise an upper bound: its corners lie on supporting lines that a
    Lagrangian bounds from above, and `tolerance` bounds their distance from sets that some matrix attains.

    Parameters
    ----------
    low, high : array, shape (n, n)
        Bounds of each entry; every row holds a distribution.
    states : sequence of n names
    enumerated : bool, optional
        Whether to enumerate all sets. Default: for up to 12 states.
    """
    # States up to which all sets are enumerated: 4,096 sets, each with every row
    look_at_all = len(low) <= 12 if enumerated is None else enumerated
    return _every_set(low, high, states) if look_at_all else _bounded(low, high, states)


def row_extremes(low: FloatArray, high: FloatArray, sets: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the largest and smallest probability of each set in each row, shape (n, n_sets); `sets` has entries 0 and 1."""
    outside = 1.0 - sets
    largest = np.minimum(high @ sets.T, 1.0 - low @ outside.T)
    smallest = np.maximum(low @ sets.T, 1.0 - high @ outside.T)
    return np.clip(largest, 0.0, 1.0), np.clip(smallest, 0.0, 1.0)


def every_set(n: int) -> FloatArray:
    """All sets of n states but the empty and the full one, as rows of zeros and ones."""
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
    """Supporting lines ``x - h d <= theta(h)`` from above, each with the point of a set that comes close to it.

    Pairs of rows have numbers, ``i n + j``.
    """

    def __init__(self, low: FloatArray, high: FloatArray) -> None:
        self.low, self.high, self.reach = low, high, high - low
        # Rounded upwards: each is a weight of the bound, and larger ones are sound.
        self.slack = np.maximum(1.0 - low.sum(axis=1), 0.0) + 2.0 * (len(low) + 2) * U
        self.over = np.maximum(high.sum(axis=1) - 1.0, 0.0) + 2.0 * (len(low) + 2) * U
        self.theta: dict[float, float] = {}
        self.point: dict[float, tuple[float, float]] = {}
        self.found: dict[float, tuple[int, int, FloatArray]] = {}
        self._best = 1, 0.0, 0.0

    def look(self, h: float, bounds: FloatArray) -> None:
        """Bound theta(h). `bounds`, shape (n^2,), holds bounds of each pair's own theta(h), which are lowered.

        A pair whose bound that is, or the one at the weights 0, 1/2, or those of the best pair, is not above the largest so far
        needs no better one; the others come by falling bounds. The best pair at another slope comes first.
        """
        n, g = len(self.low), 1.0 + h
        most = self._improve(np.array([self._best[0]]), g, bounds, 0.0)
        for lam, mu in ((0.0, 0.0), (0.5, 0.5), self._best[1:]):
            above = np.flatnonzero(bounds > most * NEARLY)
            of_i, of_j = self.high - lam * self.reach, g * (self.low + mu * self.reach)
            weighed = lam * self.slack[:, None] + g * mu * self.over
            for some in np.array_split(above, 1 + above.size * n // VECTOR_ENTRIES):
                i, j = some // n, some % n
                parts = np.maximum(of_i[i] - of_j[j], 0.0).sum(axis=1)
                bounds[some] = np.minimum(bounds[some], weighed[i, j] + parts)
        while (above := np.flatnonzero(bounds > most * NEARLY)).size:
            # Pairs whose weights are looked for together: a larger one of them spares others the search
            some = above[np.argsort(-bounds[above], kind="stable")[:8]]
            most = self._improve(some, g, bounds, most)
        # What is summed has at most 3 n terms, none above 1 + g, and those that are kept are not negative.
        self.theta[h] = float(bounds.max()) * (1.0 + 8.0 * (n + 4) * U) + 4.0 * (n + 4) * U
        pair, lam, mu = self._best
        one, other = divmod(pair, n)
        inside = self.high[one] - lam * self.reach[one] > g * (self.low[other] + mu * self.reach[other])
        self.found[h] = one, other, inside.astype(np.float64)
        largest, smallest = row_extremes(self.low[[one, other]], self.high[[one, other]], self.found[h][2][None])
        self.point[h] = (float(smallest[1, 0]), float(largest[0, 0] - smallest[1, 0]))

    def _improve(self, some: IntArray, g: float, bounds: FloatArray, most: float) -> float:
        """Lower bounds of pairs by better weights as long as one is above `most`; return the largest, if it is more.

        First the weight of row i that was best for another pair, which is mostly enough.
        """
        n, apart = len(self.low), np.linspace(-1.0, 1.0, 17)
        # Then among 17 weights, and among as many between the neighbours of the best: the bound is convex, and flat there
        lam, reach = np.full(some.size, self._best[1]), 0.0
        for _ in range(3):
            tried = np.clip((lam[:, None] if reach < 0.5 else 0.5) + reach * apart, 0.0, 1.0)
            tried = np.broadcast_to(tried, (some.size, apart.size))[:, : 1 if reach == 0.0 else None]
            mus, values = self._best_mu(some // n, some % n, g, tried)
            best = np.arange(some.size), values.argmin(axis=1)
            lam, mu, bounds[some] = tried[best], mus[best], np.minimum(bounds[some], values[best])
            if (bounds[some] <= most * NEARLY).all():
                break
            reach = 0.5 if reach == 0.0 else 0.0625
        top = int(np.argmax(bounds[some]))
        if bounds[some[top]] > most * NEARLY:
            most, self._best = float(bounds[some[top]]), (int(some[top]), float(lam[top]), float(mu[top]))
        return most

    def _best_mu(self, i: IntArray, j: IntArray, g: float, lam: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The weights of row j that make the bounds least for weights of row i, shape (pairs, m), and these bounds.

        The bound is convex in mu. A state leaves the set where mu has grown to ``(above / g - low_j) / reach_j``; the slope is
        no longer negative once what is left of reach_j is not more than over_j.
        """
        low, reach = self.low[j][:, None], self.reach[j][:, None]
        above = self.high[i][:, None] - lam[..., None] * self.reach[i][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            leaves = np.where(reach > 0.0, (above / g - low) / reach, -np.inf)
        order = np.argsort(-leaves, axis=-1)
        enough = np.take_along_axis(reach + 0.0 * above, order, axis=-1).cumsum(axis=-1) > self.over[j][:, None, None]
        last = np.take_along_axis(order, enough.argmax(axis=-1)[..., None], axis=-1)
        mu = np.where(enough[..., -1], np.clip(np.take_along_axis(leaves, last, axis=-1)[..., 0], 0.0, 1.0), 0.0)
        parts = np.maximum(above - g * (low + mu[..., None] * reach), 0.0).sum(axis=-1)
        return mu, lam * self.slack[i][:, None] + g * mu * self.over[j][:, None] + parts

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


def _bounded(low: FloatArray, high: FloatArray, states: Sequence[str]) -> LeakageProfile:
    """Corners of the polygon between supporting lines, and how far above attained points they are."""
    lines = _Lines(low, high)
    nothing = 8.0 * (len(low) + 4) * U
    at_top = np.where(np.eye(len(low), dtype=bool), -1.0, math.inf).ravel()
    lines.look(0.0, at_top)
    at_0, top = at_top.copy(), 1.0
    lines.look(top, at_top)
    while lines.theta[top] > nothing and top < STEEPEST:
        top *= FASTER
        lines.look(top, at_top)  # each pair's theta falls with h
    waiting = [(0.0, top, at_0, at_top)]
    # Slopes at which theta is bounded, 15 to 40 being usual
    while waiting and len(lines.theta) < 200:
        left, right, at_left, at_right = waiting.pop(0)
        h = _crossing(lines, left, right)
        if h is None:
            continue
        share = (right - h) / (right - left)
        at_h = share * at_left + (1.0 - share) * at_right  # and is convex
        lines.look(h, at_h)
        if share * lines.theta[left] + (1.0 - share) * lines.theta[right] > (1.0 + CLOSE_PAIRS) * lines.theta[h]:
            waiting += [(left, h, at_left, at_h), (h, right, at_h, at_right)]
    return _polygon(lines, states)


def _crossing(lines: _Lines, left: float, right: float) -> float | None:
    """The slope between two at which lines as steep as theta there cross; their middle where that lies outside.

    The smallest probability of a set is minus the slope of its line, which theta may exceed.
    """
    if right - left <= CLOSE_PAIRS * (1.0 + left):
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
    witnesses = [_witness(lines.low, lines.high, *lines.found[corner[2]], states) for corner in corners]
    return LeakageProfile.from_points(
        d=d, x=x, q=d + x, c=1.0 - d - x, witnesses=witnesses, tolerance=_tolerance(lines, slopes, d, x)
    )


def _tolerance(lines: _Lines, slopes: list[float], d: FloatArray, x: FloatArray) -> float:
    """Largest distance of the polygon above attained points, as a share of theta: both are piecewise linear."""
    attained = np.array(list(lines.point.values()))
    attained = attained[upper_hull(attained[:, 0], attained[:, 1])]
    # Keeps a quotient finite where two corners stand above one another
    edges = [np.diff(line[1]) / np.maximum(np.diff(line[0]), 1e-300) for line in ((d, x), attained.T)]
    h = np.concatenate((slopes, *(one[(one > 0.0) & (one < STEEPEST)] for one in edges)))[:, None]
    above, below = (x - h * d).max(axis=1), (attained[:, 1] - h * attained[:, 0]).max(axis=1, initial=0.0)
    counts = above > 8.0 * (len(lines.low) + 4) * U
    with np.errstate(divide="ignore"):
        return float(np.max(above[counts] / np.maximum(below[counts], 0.0) - 1.0, initial=0.0))


def enumerates(n: int) -> bool:
    """Whether `arrival` tries every set of states at every step, rather than rolling coefficients."""
    return bool(2 ** (2 * n) <= MOST_VECTORS)


def depth(n: int) -> int:
    """Steps before the last that are looked at."""
    by_enumeration = int(math.log2(MOST_VECTORS)) // n - 1
    # Steps that are looked back at most: what lies further away hardly counts
    # Steps that `by_rows` looks back at most: its linear bounds lose a little at every step, so that more do not help
    return min(by_enumeration, 8) if by_enumeration >= 1 else 3


def arrival(matrices: Sequence[Bounds], epsilons: Sequence[float], spreads: Sequence[float]) -> FloatArray:
    """Upper bounds of the incoming leakage about each ordered pair of states, shape (n, n), zeros on the diagonal; in nats.

    Parameters
    ----------
    matrices : sequence of D + 1 pairs of bounds
        Of the transition into the step in question, then of the one before, and so on.
    epsilons : sequence of D floats
        What the steps before spent, the nearest first.
    spreads : sequence of D + 1 floats
        ``spreads[k]`` bounds the log ratios of the likelihoods of everything up to the step k + 1 before the one in question.
    """
    n = len(matrices[0][0])
    back = min(depth(n), len(epsilons))
    if max(spreads[k] + sum(epsilons[:k]) for k in range(back + 1)) > LARGEST_SPREAD:
        return np.where(np.eye(n, dtype=bool), 0.0, spreads[0])
    if enumerates(n):
        return by_sets(matrices[: back + 1], epsilons[:back], spreads[back])
    return by_rows(matrices, epsilons, spreads, back)


def by_sets(matrices: Sequence[Bounds], epsilons: Sequence[float], spread: float) -> FloatArray:
    """`arrival` with every set of states whose likelihood is at its upper end, at each of the D + 1 steps.

    The exact supremum over all matrices and mechanisms if the likelihoods furthest away may be anything in
    ``[1, e^spread]^n``; rounded upwards. Vectors of likelihoods are columns, so that operations on a state are contiguous.
    """
    n = len(matrices[0][0])
    sets = np.vstack((np.zeros(n), every_set(n), np.ones(n))).T
    x = 1.0 + math.expm1(spread) * sets
    for bounds, epsilon in zip(matrices[:0:-1], epsilons[::-1], strict=True):
        largest, smallest = extremes(bounds, x)
        largest *= math.exp(epsilon)
        raised = sets[:, :, None] > 0.0
        x = np.where(raised, largest[:, None, :], smallest[:, None, :]).reshape(n, -1)
    largest, smallest = extremes(matrices[0], x)
    inverse = 1.0 / smallest
    found = np.array([[(largest[i] * inverse[j]).max() for j in range(n)] for i in range(n)])
    # Each step rounds a sum of n products, a factor and a quotient, all positive.
    arrived = np.log(found) + 4.0 * (n + 8) * (len(epsilons) + 2) * U
    np.fill_diagonal(arrived, 0.0)
    return np.asarray(np.maximum(arrived, 0.0))


def extremes(bounds: Bounds, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """U and L of every row at each of m vectors (columns of x), shape (n, m) each, rounded outwards.

    ``p x`` is a sum over the levels of x: what x rises to the next one, times the probability of the set of entries above it.
    Those sets are nested, so that one p makes all their probabilities the largest at once (or the smallest).
    """
    low, high = bounds
    n, room = len(low), 2.0 * (len(low) + 2) * U
    sets = ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1).astype(np.float64)
    most = np.minimum((high @ sets.T) * (1.0 + n * U), 1.0 - low @ (1.0 - sets.T) + room)
    least = np.maximum((low @ sets.T) * (1.0 - n * U), 1.0 - high @ (1.0 - sets.T) - room)
    largest, smallest = np.empty_like(x), np.empty_like(x)
    for first in range(0, x.shape[1], VECTOR_ENTRIES // 8):
        some = slice(first, first + VECTOR_ENTRIES // 8)
        order = np.argsort(-x[:, some], axis=0)
        falling = np.take_along_axis(x[:, some], order, axis=0)
        largest[:, some] = smallest[:, some] = falling[-1]
        inside = np.zeros(order.shape[1], dtype=np.int64)
        for rise, entry in zip(falling[:-1] - falling[1:], order, strict=False):
            inside |= 1 << entry
            largest[:, some] += rise * most.take(inside, axis=1)
            smallest[:, some] += rise * least.take(inside, axis=1)
    return largest, smallest


def by_rows(matrices: Sequence[Bounds], epsilons: Sequence[float], spreads: Sequence[float], back: int) -> FloatArray:
    """`arrival` by rolling the coefficients of N - r D with linear bounds of U and L, for any number of states.

    Pairs are improved in the order of a rough bound, until no other can be the largest.
    """
    n = len(matrices[0][0])
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    ceiling = np.full(len(i), math.expm1(spreads[0]))
    rough = _root(matrices[:1], (), spreads[0], i, j, ceiling, 7)
    order = np.argsort(-rough, kind="stable")
    largest = 0.0
    for first in range(0, len(order), VECTORS_AT_ONCE):
        some = order[first : first + VECTORS_AT_ONCE]
        if rough[some[0]] <= largest:
            break
        for d in range(1, back + 1):
            # Halvings of the interval of a pair's ratio: more for the pairs that matter than for all at first
            rough[some] = _root(matrices[: d + 1], epsilons[:d], spreads[d], i[some], j[some], rough[some], 18)
        largest = max(largest, float(rough[some].max()))
    arrived = np.zeros((n, n))
    arrived[i, j] = np.log1p(rough) * (1.0 + 8.0 * U)
    return arrived


def _root(
    matrices: Sequence[Bounds],
    epsilons: Sequence[float],
    spread: float,
    i: IntArray,
    j: IntArray,
    ceiling: FloatArray,
    halvings: int,
) -> FloatArray:
    """For each pair the smallest ratio less 1 that was proved, from `ceiling` downwards."""
    proved, below = ceiling.copy(), np.zeros_like(ceiling)
    for _ in range(halvings):
        middle = 0.5 * (proved + below)
        holds = _largest_value(matrices, epsilons, spread, i, j, middle) <= 0.0
        proved, below = np.where(holds, middle, proved), np.where(holds, below, middle)
    return proved


def _largest_value(
    matrices: Sequence[Bounds],
    epsilons: Sequence[float],
    spread: float,
    i: IntArray,
    j: IntArray,
    rho: FloatArray,
) -> FloatArray:
    """Upper bounds of ``N - (1 + rho) D`` for each pair, in units of the smallest likelihood furthest away."""
    n = len(matrices[0][0])
    at = np.arange(len(i))
    w = np.zeros((len(i), n))
    w[at, i], w[at, j] = 1.0, -(1.0 + rho)
    value, size = -rho, np.abs(rho)
    for depth_here, bounds in enumerate(matrices):
        widest = math.expm1(spread + math.fsum(epsilons[depth_here:]))
        c, constant = _through(bounds, w, widest)
        value, size = value + constant, size + constant + widest * np.abs(c).sum(axis=1)
        high = np.maximum(c, 0.0)
        if depth_here == len(epsilons):
            value = value + widest * high.sum(axis=1)
        else:
            lift = math.expm1(epsilons[depth_here])
            value = value + lift * high.sum(axis=1)
            w = c + lift * high
    return np.asarray(value + 8.0 * (n + 8) * (len(epsilons) + 2) * U * size)


def _through(bounds: Bounds, w: FloatArray, widest: float) -> tuple[FloatArray, FloatArray]:
    """Coefficients c and a constant with ``sum_k w_k (p_k x - 1) <= constant + c (x - 1)`` for all rows and all x in the cube.

    For a positive weight, ``p (x - 1)`` is at most ``high (x - 1)``, and at most ``low (x - 1)`` and all that is free times
    `widest`; for a negative one it is at least ``low (x - 1)``, and ``high (x - 1)`` less what is too much times `widest`. For
    each row that one is taken which is better if the high side of x is where c was positive before.
    """
    low, high = bounds
    free, over = np.maximum(1.0 - low.sum(axis=1), 0.0), np.maximum(high.sum(axis=1) - 1.0, 0.0)
    up, down = np.maximum(w, 0.0), np.maximum(-w, 0.0)
    inside = (up @ (low + high) - down @ (low + high) > 0.0).astype(np.float64)
    c, constant, least = np.zeros_like(w), np.zeros(len(w)), np.full(len(w), np.nan)
    for _ in range(2):
        of_low, of_high = inside @ low.T, inside @ high.T
        by_low, by_high = of_low + free < of_high, of_high - over > of_low
        up_low, down_high = up * by_low, down * by_high
        bound = (up - up_low + 0.0) @ high + up_low @ low - (down - down_high) @ low - down_high @ high
        rest = widest * (up_low @ free + down_high @ over)
        total = rest + widest * np.maximum(bound, 0.0).sum(axis=1)
        better = ~(total >= least)  # always at first, and where numbers overflowed: NaN proves nothing
        c, constant = np.where(better[:, None], bound, c), np.where(better, rest, constant)
        least = np.where(better, total, least)
        inside = (bound > 0.0).astype(np.float64)
    return c, constant
