"""Rollouts that are continued step by step: what online accounting asks at every spend.

Notation
--------
c         coefficients of N - r D, divided by r, on the likelihoods of everything from a step on, away from the step in question
h         the largest factor of that step's output less 1, the same for all states; the smallest factor is 1
p, w      sums of the positive and of the negative entries of c, both >= 0
F         largest value of c times those likelihoods, as in `temporaldp.kernels.exact`; F <= 0 if and only if K <= log r

A rollout need not start again when one more release follows: its coefficients are kept, and take that step. Rounding is
bounded as in `exact` (Theory, section 22), backward and by sums; plain releases only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from temporaldp.kernels.compilation import inner_kernel, kernel
from temporaldp.kernels.exact import (
    LONGEST,
    RISE,
    coefficients,
    pair_value,
    roll,
    set_spread,
    stays_below,
    through,
)
from temporaldp.values import ROUNDOFF as UNIT
from temporaldp.values import BoolArray, FloatArray, IntArray

LARGEST_LEVEL = 300.0
"""Nats. Levels and spreads up to this keep all coefficients within the range of doubles."""


COARSE, MOST_COARSE = 4e-3, 12
"""Share of a pair's leakage within which an upper bound need not be close, and Newton's steps to it. If doubled, more pairs are
computed to rounding besides."""


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """Rollouts of m items that have come to one and the same step.

    Parameters
    ----------
    c : array, shape (m, n)
    total, error, drift : array, shape (m,)
        The sum of c kept by itself, its error bound, and the error bound of all entries of c together.
    depth : array, shape (m,)
        Number of steps taken: the backward error of c.
    weight : array, shape (m,)
        Largest ratio of other items' coefficients, which this item represents, to c.
    """

    c: FloatArray
    total: FloatArray
    error: FloatArray
    drift: FloatArray
    depth: FloatArray
    weight: FloatArray

    @classmethod
    def start(cls, q: FloatArray, d: FloatArray, level: FloatArray) -> Coefficients:
        """Before the first step, for the levels log r; q and d, shape (m, n), are the rows of the two states."""
        rho = np.expm1(np.maximum(level, 0.0))
        gamma = rounding(q.shape[1])
        scale = 1.0 / (1.0 + rho)
        apart = q - d
        c = apart * scale[:, None] - (rho * scale)[:, None] * d
        drift = (4.0 * gamma * (np.abs(apart).sum(axis=1) + rho) + np.abs(apart.sum(axis=1))) * scale
        return cls(c, -rho * scale, UNIT * rho * scale, drift, np.zeros(len(c)), np.ones(len(c)))

    @classmethod
    def none(cls, n: int) -> Coefficients:
        """Return no rollouts."""
        return cls.start(np.zeros((0, n)), np.zeros((0, n)), np.zeros(0))

    def __len__(self) -> int:
        return len(self.c)

    def __getitem__(self, which: BoolArray | IntArray | slice) -> Coefficients:
        return Coefficients(*(one[which] for one in self.arrays))

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        """All fields, in order."""
        return tuple(getattr(self, name) for name in self.__slots__)

    @classmethod
    def joined(cls, parts: Sequence[Coefficients]) -> Coefficients:
        """The items of all parts."""
        return cls(*(np.concatenate(each) for each in zip(*(one.arrays for one in parts), strict=True)))

    def advanced(self, epsilon: float, matrix: FloatArray) -> Coefficients:
        """After one more step: its budget, and the matrix that leads on."""
        gamma, sums, up = rounding(self.c.shape[1]), (self.c.shape[1] + 4) * UNIT, np.expm1(epsilon)
        positive, p, w = self.parts
        error = self.error + up * (self.drift + 2.0 * sums * (p + w)) + UNIT * np.abs(self.total)
        drift = (1.0 + up) * self.drift + 2.0 * gamma * ((1.0 + up) * p + w)
        c = (self.c + up * positive) @ matrix
        return Coefficients(c, self.total + up * p, error, drift, self.depth + 1.0, self.weight)

    @property
    def parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The positive entries, p, and w."""
        positive = np.maximum(self.c, 0.0)
        p = positive.sum(axis=1)
        return positive, p, p - self.c.sum(axis=1)

    @np.errstate(over="ignore", invalid="ignore")  # inf bounds nothing, and the other bound counts
    def excess(self, spread: float) -> FloatArray:
        """Nats by which K can exceed log r at most, whatever follows within a spread; backward error included."""
        n = self.c.shape[1]
        sums = (n + 4) * UNIT
        _, p, w = self.parts
        more = np.expm1(spread) if spread <= LARGEST_LEVEL else np.inf
        beyond = np.where(p > 0.0, more * p, 0.0)
        by_sums = (
            self.total + beyond + self.error + more * (self.drift + 2.0 * sums * p) + 4.0 * UNIT * np.abs(self.total)
        )
        by_ratio = np.where(p > 0.0, (1.0 + more) * p, 0.0) - w
        # N - r D <= x r implies N / D <= r (1 + x), because D >= 1.
        first, second = (np.log1p(np.maximum(one * self.weight, 0.0)) for one in (by_sums, by_ratio))
        return np.fmin(first, second + backward(n, self.depth))

    def undominated(self, pairs: IntArray) -> tuple[IntArray, Coefficients]:
        """The pairs and items that are left once the tightest item of each pair represents those that it dominates.

        Where ``c <= factor c'`` everywhere, with a factor > 0, no observation raises the first above 0 before the second. The
        second then takes over the rounding of the first.
        """
        _, p, w = self.parts
        with np.errstate(divide="ignore", invalid="ignore"):
            tight = np.where(w > 0.0, p / w, np.inf)
        order = np.lexsort((tight, pairs))
        last = order[np.flatnonzero(np.diff(pairs[order], append=-1))]
        best = np.zeros(int(pairs.max(initial=0)) + 1, np.int64)
        best[pairs[last]] = last
        onto = best[pairs]
        factor, under = _factor(self.c, self.c[onto])
        under &= np.arange(len(self)) != onto
        # The first one's c is known to its drift, and at most `factor` times the second's; of that, the sum is kept by itself.
        apart = np.abs(p - w - self.total) + 2.0 * (self.c.shape[1] + 4) * UNIT * (p + w)
        with np.errstate(over="ignore"):
            drift = self.drift / factor
        arrays = [one.copy() for one in self.arrays]
        taken_over = (drift + apart[onto], drift, self.depth, self.weight * factor)
        for at, found in enumerate(taken_over, start=2):
            np.maximum.at(arrays[at], onto[under], found[under])
        return pairs[~under], Coefficients(*arrays)[~under]


def rounding(n: int) -> float:
    """Relative error of an entry in one step, in whatever order sums are taken."""
    return (n + 5) * UNIT


def backward(n: int, depth: FloatArray) -> FloatArray:
    """Nats by which the rounding of so many steps can move a root, at most."""
    return 2.0 * (rounding(n) * (depth + 1.0) + 2.0 * (n + 4) * UNIT)


def _factor(c: FloatArray, other: FloatArray) -> tuple[FloatArray, BoolArray]:
    """The smallest factor > 0 with ``c <= factor other``, row by row, and whether there is one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = c / other
    low = np.where(other > 0.0, ratio, 0.0).max(axis=1) * (1.0 + 4.0 * UNIT)
    high = np.where(other < 0.0, ratio, np.inf).min(axis=1) * (1.0 - 4.0 * UNIT)
    low = np.maximum(low, np.finfo(np.float64).tiny)
    return low, (low <= high) & ~((other == 0.0) & (c > 0.0)).any(axis=1) & (low > 1e-100) & (low < 1e100)


@inner_kernel
def is_below(chain, start, kept, total, error, drift, depth, room, work):
    """Whether F <= 0 is proved, to `room` nats of the level, of an item whose coefficients have come to step `start`.

    Where the chain has an infinite horizon, its step 0 repeats.
    """
    n = chain.n
    gamma, sums = (n + 5) * UNIT, (n + 4) * UNIT
    c, g = work[0], work[1]
    for k in range(n):
        c[k] = kept[k]
    for taken in range(int(LONGEST) if chain.infinite else start):
        s = max(start - 1 - taken, 0)
        last = not chain.infinite and s == 0
        h = chain.factors[s, 0, 0]
        p = w = 0.0
        for k in range(n):
            positive = max(c[k], 0.0)
            p += positive
            w += positive - c[k]
            g[k] = c[k] + h * positive
        larger, now = (1.0 + h) * p, total + h * p
        error += h * (drift + 2.0 * sums * (p + w))
        bound = error + 4.0 * UNIT * abs(total)
        high, summed = larger - w, now
        if not last:
            high = (chain.spreads[s, 1] * p if p > 0.0 else 0.0) - w
            summed = total + (chain.spreads[s, 2] * p if p > 0.0 else 0.0)
            bound += chain.spreads[s, 2] * (drift + 2.0 * sums * p)
        trusted = 2.0 * (gamma * (depth + 1.0) + 2.0 * sums) <= room
        if summed + bound <= 0.0 or (high <= 0.0 and trusted):
            return True
        # F does not fall with further steps, and rounding only grows.
        if last or ((larger > w or not trusted) and now + error > 0.0):
            return False
        error += UNIT * abs(total)
        drift = (1.0 + h) * drift + 2.0 * gamma * (larger + w)
        total = now
        depth += 1.0
        through(chain, s, g, c)
    return False


@inner_kernel
def is_pair_below(chain, t, i, j, level, room, work):
    """Whether K of a pair at step t is proved to be at most level + room."""
    rho = math.expm1(level)
    apart, balance = coefficients(chain, t, i, j, rho, work)
    scaled = rho / (1.0 + rho)
    drift = 4.0 * (chain.n + 5) * UNIT * (apart + scaled) + abs(balance)
    return level >= 0.0 and is_below(chain, t, work[0], -scaled, UNIT * scaled, drift, 0.0, room, work)


@inner_kernel
def fits(chain, epsilon, incoming, kept, total, error, drift, depth, room, work):
    """Whether F <= 0 is proved of an item if the last step of the chain, which is overwritten, spends a budget."""
    last = chain.factors.shape[0] - 1
    chain.factors[last, 0, 0] = math.expm1(epsilon)
    set_spread(chain, last, (epsilon + incoming) * (1.0 + 4.0 * UNIT))
    return is_below(chain, last + 1, kept, total, error, drift, depth, room, work)


@kernel
def largest_budget(chain, kept, totals, errors, drifts, depths, order, incoming, low, high, room):
    """The largest budget up to `high` of the chain's last step for which all items are proved; `low` is known to be.

    `incoming` is the log spread of what the steps before it in the chain contribute. A negative `low`, where nothing is known,
    is the answer if not even 0 is proved. In a random `order` few items lower the answer, and are halved for.
    """
    work = np.empty((2, chain.n))
    for item in order:
        of = kept[item], totals[item], errors[item], drifts[item], depths[item], room, work
        if fits(chain, high, incoming, *of):
            continue
        if low < 0.0 and not fits(chain, 0.0, incoming, *of):
            return low
        bottom, top = max(low, 0.0), high
        # Relative distance from the largest budget at which halving ends, and nats below which a budget counts as none.
        # If the first is doubled, a step can spend a trillionth less.
        while top - bottom > 1e-12 * top + 1e-18:
            middle = 0.5 * (bottom + top)
            if fits(chain, middle, incoming, *of):
                bottom = middle
            else:
                top = middle
        high = bottom
    return high


@inner_kernel
def pair_bound(chain, t, i, j, guess, work):
    """An upper bound of K of a pair at step t within a `COARSE` share, the ratio less 1, and the depth; rollouts are short."""
    here, deepest, depth = guess, 0, 0
    for _ in range(MOST_COARSE):
        low, _, slope, _, _, _, _, _, depth, _ = roll(chain, t, i, j, here, LONGEST, work)
        deepest = max(deepest, depth)
        move = low / slope
        here = max(here + move, 0.0)
        if not abs(move) > 0.25 * COARSE * here:
            break
    level = math.log1p(here * (1.0 + 0.5 * COARSE))
    below, depth = stays_below(chain, t, i, j, level, work)
    if below:
        return level * RISE, here, max(depth, deepest)
    _, proved, rho, depth = pair_value(chain, t, i, j, here, work)
    return proved, rho, max(depth, deepest)


@kernel
def pair_values(chain, steps, i, j, guess, close, attained, proved, rho):
    """Fill in the incoming leakage of pairs at steps of a chain, to rounding if `close`, else `proved` and `rho` coarsely.

    Arrays of shape (m,): attained, proved, and the observation's ratio less 1. Return the depth of the deepest rollout.
    """
    work = np.empty((4, chain.n))
    deepest, depth = 0, 0
    for item in range(i.size):
        if close:
            attained[item], proved[item], rho[item], depth = pair_value(
                chain, steps[item], i[item], j[item], guess[item], work
            )
        else:
            proved[item], rho[item], depth = pair_bound(chain, steps[item], i[item], j[item], guess[item], work)
        deepest = max(deepest, depth)
    return deepest


@kernel
def largest_sum(chain, t, i, j, offset, known, guess, work):
    """Largest sum over pairs of an offset and K at step t. `known` holds K where it is computed already, else -1."""
    best, first = 0.0, np.argmax(offset + np.log1p(guess))
    for number in range(i.size):
        item = (first + number) % i.size
        if known[item] < 0.0:
            if number and stays_below(chain, t, i[item], j[item], best - offset[item], work)[0]:
                continue
            _, known[item], guess[item], _ = pair_value(chain, t, i[item], j[item], guess[item], work)
        best = max(best, offset[item] + known[item])
    return best * RISE


@kernel
def forward_leakage(chain, i, j, epsilons, arrived, guess, forward, temporal):
    """Fill FPL and TPL of every step of a chain of future steps, which has the last step first.

    `arrived` and `guess`, shape (steps, pairs), are the backward leakage of each pair, and ratios to begin the search with.
    """
    work = np.empty((4, chain.n))
    nothing = np.zeros(i.size)
    for k in range(epsilons.size):
        known = np.full(i.size, -1.0)
        forward[k] = (epsilons[k] + largest_sum(chain, k, i, j, nothing, known, guess[k], work)) * (1.0 + 4.0 * UNIT)
        temporal[k] = (epsilons[k] + largest_sum(chain, k, i, j, arrived[k], known, guess[k], work)) * (
            1.0 + 4.0 * UNIT
        )
        set_spread(chain, k, forward[k])


@kernel
def count_final(chain, i, j, epsilons, arrived, forward, temporal, share):
    """Number of steps, from the end of a chain on, whose FPL and TPL no later steps raise by more than a share of them.

    Or of a nat, where they are less than one. Step 0 of the chain stands for all later steps.
    """
    work = np.empty((4, chain.n))
    n_final = 0
    for k in range(epsilons.size - 1, -1, -1):
        room = 0.5 * share * max(forward[k], 1.0)
        ahead, both = forward[k] + room - epsilons[k], temporal[k] + room - epsilons[k]
        for item in range(i.size):
            level = min(ahead, both - arrived[k, item])
            if not is_pair_below(chain, k + 1, i[item], j[item], level, room, work):
                return n_final
        n_final += 1
    return n_final
