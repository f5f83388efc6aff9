"""The largest likelihood ratio of two values, over every observation that a sequence of releases can make: the sign rule.

Notation
--------
P         transition matrix into a step: row = the value there, column = the value one step further away
q, d      the rows of two values i and j
m_s(k)    what the output of step s says for value k, up to a common factor: anything from 1 + down_s(k) to 1 + up_s(k)
N, D      what all outputs say for i and for j; both linear in every m_s by itself
rho       the ratio that is asked about, less 1:  F(rho) = max over all m of N - (1 + rho) D
c         coefficients of N - (1 + rho) D, rolled from the nearest step (s = t - 1) to the furthest (s = 0)
p, w      sums of the positive and of the negative entries of c, both >= 0
x         likelihoods of everything up to step s; within a factor e^spread_s of one another
u         unit roundoff, half an ulp of 1

``c = q - (1 + rho) d``; at each step multiply ``c_k`` by the largest factor where c_k > 0 and by the smallest elsewhere, then
``c <- c P``. F is the sum of what is left. It is convex and decreasing; its root is ``e^K - 1``, K the leakage that arrives.

Rounding is accounted for in two ways, and the better one is used. *Backward:* what is computed is exactly F for matrices and
factors that differ by at most n + 4 roundings an entry, so that a computed sign proves K to ``2 (n + 4) u`` a step. *Sums:*
where all factors are near 1, ``F = -rho + sum of what each step adds`` keeps its digits however small budgets are.
The proofs are in docs/theory.md, section 10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from temporaldp.kernels.chain import Chain, Items
from temporaldp.kernels.kernels import chosen_kernels
from temporaldp.kernels.kernels import spread as spread_over
from temporaldp.values import ROUNDOFF as U

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


BLOCK = 1 << 17
"""Entries rolled at once: they stay in the processor's cache."""

HUGE = 1e150
"""Coefficients beyond are scaled down: only ratios count."""

LARGEST_SPREAD = 600.0
"""Nats. Beyond, e^spread leaves the range of doubles, and a rollout is not cut short."""

LARGEST_LEAKAGE = 600.0
"""Nats. Ratios beyond e^600 are not looked for: what is reported is then an upper bound."""

NEGLIGIBLE = 2.0**-52
"""Share of the value below which what lies before a step no longer counts."""

BLURRED = 2.0**-4
"""Share of what rounding can have changed below which what lies before a step no longer counts either."""

BACKWARD_SHARE = 2.0**-42
"""A sign is trusted without sums where what rounding can have changed is this share of the level in question, or less."""

COMPILED_UP_TO, FEW_ITEMS = 64, 500
"""Values up to which machine code rolls items one by one. With more, the products of whole matrices are faster, unless
there are few items."""

USUAL_DEPTH, WORTH_COMPILING, LEAST_WORK = 32, 64, 1 << 13
"""Steps of a usual rollout; by how much more work than other kernels this one is worth loading machine code for; and the
entries whose work a step of whole arrays takes at least, however few there are."""

MOST_ROUNDS, ROUNDS_OF_A_BOUND = 100, 4
"""Rollouts of an item, five to ten being usual; and Newton's steps to a bound, which need not be close."""

MOST_ATTEMPTS, MOST_EXTENDED = 8, 3
"""Ratios just above a root that are tried for a proof, one or two being usual; and in extended precision."""

TIGHT, TIGHTEST = 2.0**-42, 2.0**-46
"""Relative distance of both sides at which an item is done; and in extended precision."""

ROUGH = 2.0**-10
"""Far from the root, a rollout ends where what it leaves out changes Newton's step by this share."""

CLOSE_ENOUGH = 1e-9
"""Where nothing is proved, a step of Newton's method smaller than this share of the ratio is the last."""

LAST_LOOKS, WIDE = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2), 1e-10
"""How far above what is attained a proof is looked for last, and from which relative distance of both sides on."""

SLOW = 0.5
"""A Newton step longer than this share of the last one gains little."""

DEEP = 256
"""Rollouts longer than this are worth machine code for few items too."""

CLOSE = 2.0**-40
"""A step of Newton's method smaller than this share of the ratio is the last: it squares what is left."""

RAISED = 1.0 + 2.0 * BACKWARD_SHARE
"""A sign that is trusted proves this much more than the level."""

LONGEST, MOST_GIVEN_UP = 20_000, 3
"""Steps after which a rollout without an end is given up; and rollouts of an item that end so before it is left as it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """F at one rho for each item, each in a unit of its own.

    ``low <= F <= high`` but for the backward error of `depth` steps; ``summed <= F <= summed_high`` but for `error`;
    `slope` and `slope_high` are the derivatives of low and high with their sign changed. Without slopes, rollouts stop
    where the sign is known: `below` says which F are proved to be at most 0.

    Parameters
    ----------
    numbers : array, shape (m, 7)
    depth : int array, shape (m,)
    below : bool array, shape (m,)
    backward : array, shape (m,)
        Nats by which rounding can have moved a root, at most: the backward error of all steps, and of the last sums.
    """

    numbers: FloatArray
    depth: IntArray
    below: BoolArray
    backward: FloatArray

    @classmethod
    def empty(cls, m: int) -> Values:
        """Room for m items, of which nothing is known."""
        numbers = np.tile([-np.inf, np.inf, 1.0, -np.inf, np.inf, np.inf, 1.0], (m, 1))
        return cls(numbers, np.zeros(m, np.int64), np.zeros(m, bool), np.zeros(m))

    low = property(lambda self: self.numbers[:, 0])
    high = property(lambda self: self.numbers[:, 1])
    slope = property(lambda self: self.numbers[:, 2])
    summed = property(lambda self: self.numbers[:, 3])
    summed_high = property(lambda self: self.numbers[:, 4])
    error = property(lambda self: self.numbers[:, 5])
    slope_high = property(lambda self: self.numbers[:, 6])


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """What arrives at each of m items, in nats.

    `attained` by an observation, `proved` from above; `rho` is where the observation is best, `depth` how far one had to look.
    """

    attained: FloatArray
    proved: FloatArray
    rho: FloatArray
    depth: IntArray


def evaluate(
    chain: Chain,
    items: Items,
    rho: FloatArray,
    spread: FloatArray,
    *,
    slope: bool,
    most: int = LONGEST,
    deep: bool = False,
    extended: bool = False,
) -> Values:
    """F(rho) of each item, its derivative with `slope`; else only as far as its sign takes.

    Parameters
    ----------
    chain : Chain
    items : Items
    rho : array, shape (m,)
    spread : array, shape (T,)
        Bounds on the log spread of the likelihoods of everything up to and including each step.
    slope : bool
    most : int
        Steps back after which an item is left undecided.
    deep : bool
        Whether rollouts are known to be long, so that machine code pays for few items too.
    extended : bool
        Whether to compute with 64 bits of mantissa, where the machine has them: slowly, for few items.
    """
    values = Values.empty(len(items))
    with np.errstate(over="ignore", invalid="ignore"):
        _evaluate(chain, items, rho, spread, slope, most, LONGEST if deep else USUAL_DEPTH, values, extended)
    return values


def _evaluate(
    chain: Chain,
    items: Items,
    rho: FloatArray,
    spread: FloatArray,
    slope: bool,
    most: int,
    depth: int,
    values: Values,
    extended: bool,
) -> None:
    """By machine code or by whole arrays."""
    growth = np.where(spread > LARGEST_SPREAD, np.inf, np.exp(np.minimum(spread, LARGEST_SPREAD)))
    excess = np.where(spread > LARGEST_SPREAD, np.inf, np.expm1(np.minimum(spread, LARGEST_SPREAD)))
    work = max(LEAST_WORK, len(items) * chain.n * (chain.n + 8)) * min(depth, most)
    few = chain.n <= COMPILED_UP_TO or len(items) <= FEW_ITEMS or most == 1  # the first step takes no product
    compiled = few and not extended and chosen_kernels(work // WORTH_COMPILING) == "numba"
    if compiled:
        from temporaldp.kernels.compiled.rollouts import roll

        matrices = np.stack([np.ascontiguousarray(dense(matrix)) for matrix in chain.matrices])
        up, down = np.ascontiguousarray(chain.up), np.ascontiguousarray(chain.down)
        into, (t, i, j) = np.ascontiguousarray(chain.into), (np.ascontiguousarray(one) for one in items.arrays)
        spread_over(
            lambda first, last: roll(
                matrices, into, up, down, chain.plain, chain.endless, t, i, j, rho, growth, excess, first, last, most,
                slope, chain.rounding(compiled=True), BACKWARD_SHARE, NEGLIGIBLE, BLURRED, ROUGH, values.numbers,
                values.depth, values.below,
            ),
            len(items),
            step=1,
            work=work,
        )  # fmt: skip
    else:
        length = max(1, BLOCK // chain.n)
        for first in range(0, len(items), length):
            block = slice(first, first + length)
            _roll(chain, items[block], rho[block], growth, excess, values, first, slope, most, extended)
    values.backward[:] = 2.0 * (
        chain.rounding(compiled=compiled, extended=extended) * (values.depth + 1)
        + 2.0 * (chain.n + 4) * (float(np.finfo(np.longdouble).eps) if extended else U)
    )


def dense(matrix: Any) -> FloatArray:
    """A matrix as an array."""
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray())


def _roll(  # noqa: PLR0912, PLR0915  one loop, whose many arrays would only be handed around
    chain: Chain,
    items: Items,
    rho: FloatArray,
    growth: FloatArray,
    excess: FloatArray,
    values: Values,
    offset: int,
    with_slope: bool,
    most: int,
    extended: bool,
) -> None:
    """One block of items, a step at a time, those that are done left out; what is found goes into `values`."""
    negative = v_raised = np.zeros((0, 0))
    gamma, sums, plain = chain.rounding(extended=extended), (chain.n + 4) * U, chain.plain
    dtype: DTypeLike = np.longdouble if extended else np.float64
    matrices = tuple(matrix.astype(dtype, copy=False) for matrix in chain.matrices)
    rho = rho.astype(dtype, copy=False)
    scale = 1.0 / (1.0 + rho)
    q, d = (chain.rows(items.t, row).astype(dtype, copy=False) for row in (items.i, items.j))
    c = (q - d) * scale[:, None] - (rho * scale)[:, None] * d
    v = d * scale[:, None] if with_slope else None
    # The sum of c, kept by itself; how far c can be from the true one, all entries together; the error of the sum.
    total = -rho * scale
    # Rows sum to 1 but for a rounding; where they are nearly alike, it counts beside their difference.
    drift = (4.0 * gamma * (np.abs(q - d).sum(axis=1) + rho) + np.abs((q - d).sum(axis=1))) * scale
    error = U * rho * scale
    level = np.log1p(rho)
    at = np.arange(offset, offset + len(items))
    t = items.t
    limit = most if chain.endless else min(most, int(t.max(initial=0)))
    for depth in range(limit):
        s = chain.step(t, depth)
        last = np.zeros(len(t), bool) if chain.endless else s == 0
        up, down = chain.up[s], chain.down[s]
        positive = np.maximum(c, 0.0)
        p = positive.sum(axis=1)
        if plain:
            w = p - c.sum(axis=1)
            h = up[:, 0]
            add, larger, smaller = h * p, (1.0 + h) * p, w
            widest = h
        else:
            negative = positive - c
            w = negative.sum(axis=1)
            raised, lowered = (positive * up).sum(axis=1), (negative * down).sum(axis=1)
            add, larger, smaller = raised - lowered, p + raised, w + lowered
            widest = np.maximum(np.abs(up).max(axis=1), np.abs(down).max(axis=1))
        error += widest * (drift + 2.0 * sums * (p + w))
        g, e = growth[s], excess[s]
        high = np.where(last, larger - smaller, np.where(p > 0.0, g * p, 0.0) - w)
        summed_high = total + np.where(last, add, np.where(p > 0.0, e * p, 0.0))
        bound = error + np.where(last, 0.0, e * (drift + 2.0 * sums * p)) + 4.0 * U * np.abs(total)
        below = np.zeros(len(t), bool)
        if v is not None:
            above_zero = c > 0.0
            v_raised = v * (1.0 + np.where(above_zero, up, down))
            slope = v_raised.sum(axis=1)
            low, unknown = larger - smaller, np.where(p > 0.0, e * p, 0.0) - add
            if not plain:  # outputs multiply D too: the two sides to compare are high / reach and low / slope
                reach = (v * np.where(above_zero, g[:, None], 1.0)).sum(axis=1)
                apart = (v * (np.where(above_zero, up, down) - np.where(above_zero, e[:, None], 0.0))).sum(axis=1)
                near = unknown + high * (apart / reach)  # keeps its digits where both sides are close
                unknown = np.abs(np.where(e < 1.0, near, high * (slope / reach) - low))
            blurred = np.minimum(bound, 2.0 * gamma * (depth + 2) * (1.0 + rho) * slope)
            done = last | (unknown <= np.maximum(NEGLIGIBLE * rho * slope, BLURRED * blurred))
            summed = total + add  # has digits of low where budgets are tiny; where either has none, nothing is far
            done |= (low > 0.0) & (summed > 0.0) & (w <= ROUGH * p)
            done |= (high < 0.0) & (summed_high < 0.0) & (unknown <= -ROUGH * np.maximum(low, summed))
        else:
            trusted = 2.0 * (gamma * (depth + 1) + 2.0 * sums) <= BACKWARD_SHARE * level
            below = (summed_high + bound <= 0.0) | ((high <= 0.0) & trusted)
            if plain:  # F grows with the number of steps, so that a sign above 0 stays
                above = (total + add > bound) | ((larger - smaller > 0.0) & trusted)
            else:
                above = (p > np.where(w > 0.0, g * w, 0.0)) & trusted
            done = last | below | above
        if depth == limit - 1:
            done[:] = True
        if done.any():
            here = at[done]
            values.numbers[here, 0] = (larger - smaller)[done]
            for column, value in ((1, high), (3, total + add), (4, summed_high), (5, bound)):
                values.numbers[here, column] = value[done]
            if v is not None:
                values.numbers[here, 2] = slope[done]
                reach = np.where(above_zero[done], g[done, None], 1.0)
                values.numbers[here, 6] = np.where(last[done], slope[done], (v[done] * reach).sum(axis=1))
            values.depth[here], values.below[here] = depth + 1, below[done]
            if done.all():
                return
            keep = ~done
            at, t, s, rho, level = at[keep], t[keep], s[keep], rho[keep], level[keep]
            c, positive, up, down = c[keep], positive[keep], up[keep], down[keep]
            total, add, drift, error, widest = total[keep], add[keep], drift[keep], error[keep], widest[keep]
            larger, smaller = larger[keep], smaller[keep]
            negative = negative if plain else negative[keep]
            v_raised = v_raised if v is None else v_raised[keep]
        c += up * positive
        if not plain:
            c -= down * negative
        c = chain.through(matrices, c, s)
        v = None if v is None else chain.through(matrices, v_raised, s)
        drift = (1.0 + widest) * drift + 2.0 * gamma * (larger + smaller)
        error += U * np.abs(total)
        total = total + add
        largest = larger + smaller
        if largest.max() > HUGE:
            shrink = 1.0 / np.where(largest > HUGE, largest, 1.0)
            c *= shrink[:, None]
            total, drift, error = total * shrink, drift * shrink, error * shrink
            v = None if v is None else v * shrink[:, None]


def solve(
    chain: Chain, items: Items, spread: FloatArray, start: FloatArray | None = None, *, extended: bool = False
) -> Arrivals:
    """K of each item from both sides: Newton's steps (Dinkelbach's) within a bracket, then a proof just above the root.

    Every rollout gives a ratio that its observation attains, and, if F <= 0, a proof. Where Newton's steps gain
    little, which happens where leakage gathers for very long, the middle of the bracket comes next.

    `start` are ratios less 1 to begin with; `extended` precision is for items whose both sides are to be closer still.
    """
    m = len(items)
    attained, proved, rho = np.zeros(m), np.zeros(m), np.zeros(m)
    depths = np.zeros((2, m), np.int64)
    going = np.flatnonzero(~chain.silent(items.t, spread))
    # No step raises what is known: values are told apart at most as well as any two likelihoods before.
    proved[going] = spread[chain.step(items.t[going], 0)] * (1.0 + 4.0 * U)
    at = np.zeros(m) if start is None else start.copy()
    attempts, slow, given_up = (np.zeros(m, np.int64) for _ in range(3))
    last = np.full(m, np.inf)
    deep = False
    for _ in range(MOST_ROUNDS):
        if not going.size:
            break
        here = at[going]
        values = evaluate(chain, items[going], here, spread, slope=True, deep=deep, extended=extended)
        deep = deep or int(values.depth.max()) > DEEP
        given_up[going] += values.depth >= LONGEST
        low, high = _sides(values, here)
        better = low > attained[going]
        attained[going[better]], rho[going[better]] = low[better], here[better]
        depths[0, going[better]] = values.depth[better]
        better = high < proved[going]
        proved[going[better]], depths[1, going[better]] = high[better], values.depth[better]
        left = proved[going] - attained[going]
        top = np.expm1(np.minimum(proved[going], LARGEST_LEAKAGE))
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            by_sums = values.error < values.backward * (1.0 + here) * values.slope
            newton = np.maximum(here + np.where(by_sums, values.summed, values.low) / values.slope, 0.0)
            newton = np.fmin(newton, top)
            room_by_sums = 2.0 * (np.maximum(values.summed_high, 0.0) + values.error) / values.slope + 4.0 * U * here
            room_by_ratio = np.maximum(values.high, 0.0) / values.slope + 8.0 * U * (1.0 + here)
            room = np.where(room_by_sums < values.backward * (1.0 + here), room_by_sums, room_by_ratio)
            above = np.fmin(here + np.exp2(attempts[going]) * room, top)
            known_to = np.fmin(values.backward, values.error / values.slope + 4.0 * U * here)
        step = np.abs(newton - here)
        converged = step <= np.maximum(CLOSE * here, known_to)
        middle = np.expm1(np.minimum(0.5 * (proved[going] + attained[going]), LARGEST_LEAKAGE))
        # The root may be just above: the middle is approached in steps that grow.
        slow[going] += step > SLOW * last[going]
        middle = np.fmin(middle, newton + np.exp2(4.0 * slow[going]) * step)
        at[going] = np.where(converged, above, np.where(step <= SLOW * last[going], newton, middle))
        last[going] = step
        attempts[going] += converged
        narrow = (left <= (TIGHTEST if extended else TIGHT) * proved[going]) | (
            converged & (left <= 4.0 * known_to) & (attempts[going] > 1)
        )
        tried = attempts[going] >= (MOST_EXTENDED if extended else MOST_ATTEMPTS)
        going = going[~narrow & ~tried & (given_up[going] < MOST_GIVEN_UP)]
    wide = np.flatnonzero((proved - attained > WIDE * proved) & (attained > 0.0) & (given_up < MOST_GIVEN_UP))
    found = Arrivals(np.minimum(attained, proved), proved, rho, depths.max(axis=0))
    return _looked_above(chain, items, spread, found, wide, extended) if wide.size else found


def _looked_above(
    chain: Chain, items: Items, spread: FloatArray, found: Arrivals, left: IntArray, extended: bool
) -> Arrivals:
    """What is left is looked at again, further and further above what is attained, where rounding hid the root."""
    attained, proved, rho = found.attained.copy(), found.proved.copy(), found.rho.copy()
    depth = found.depth.copy()
    deep = int(depth.max()) > DEEP
    for share in LAST_LOOKS:
        here = np.expm1(np.minimum(attained[left], LARGEST_LEAKAGE)) * (1.0 + share)
        values = evaluate(chain, items[left], here, spread, slope=True, deep=deep, extended=extended)
        low, high = _sides(values, here)
        rho[left] = np.where(low > attained[left], here, rho[left])
        attained[left], proved[left] = np.maximum(attained[left], low), np.minimum(proved[left], high)
        depth[left] = np.maximum(depth[left], values.depth)
        left = left[proved[left] - attained[left] > WIDE * proved[left]]
        if not left.size:
            break
    return Arrivals(np.minimum(attained, proved), proved, rho, depth)


def _sides(values: Values, rho: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What rollouts at rho attain (their observations' own ratio), and what they prove; inf where F may be above 0.

    An observation's ratio less 1 is ``rho + F / D``. D has a backward error of its own, so that where rho is far above
    the ratio, little is known of their difference.
    """
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        gain = (values.summed - values.error) / values.slope
        by_sums = np.log1p(np.maximum(rho + (gain - (values.backward + 8.0 * U) * np.abs(gain)), 0.0))
        gain = values.low / values.slope
        gain -= (values.backward + 8.0 * U) * np.abs(gain)
        by_ratio = np.log1p(np.maximum(rho + gain, 0.0)) * (1.0 - 4.0 * U) - values.backward
        low = np.fmax(by_sums * (1.0 - 4.0 * U), by_ratio)
        by_sums = np.where(values.summed_high + values.error <= 0.0, np.log1p(rho), np.inf)
        by_ratio = np.where(values.high <= 0.0, np.log1p(rho) + values.backward, np.inf)
    return np.where((low > 0.0) & np.isfinite(low), low, 0.0), np.minimum(by_sums, by_ratio) * (1.0 + 4.0 * U)


def bound(chain: Chain, items: Items, spread: FloatArray, *, depth: int, start: FloatArray) -> FloatArray:
    """An upper bound of K for each item from so many steps, with what lies before anywhere within its spread.

    Within 1e-4 of what that depth can prove; inf where it proves nothing. `start` are ratios less 1 to begin with.
    """
    rho = start.copy()
    for _ in range(ROUNDS_OF_A_BOUND):
        values = evaluate(chain, items, rho, spread, slope=True, most=depth)
        with np.errstate(invalid="ignore", over="ignore"):
            step = values.high / values.slope_high
        rho = np.where(np.isfinite(step), np.maximum(rho + step, 0.0), rho)
    rho = rho * (1.0 + 1e-4) + 4.0 * U
    values = evaluate(chain, items, rho, spread, slope=False, most=depth)
    found = np.where(values.below, np.log1p(rho) * RAISED, np.inf)
    return np.where(chain.silent(items.t, spread), 0.0, found)


def roots(chain: Chain, items: Items, spread: FloatArray, start: FloatArray) -> FloatArray:
    """The ratio less 1 of each item, by Newton's steps from a good guess; nothing is proved."""
    rho = start.copy()
    going = np.flatnonzero(~chain.silent(items.t, spread))
    rho[chain.silent(items.t, spread)] = 0.0
    for _ in range(MOST_ROUNDS):
        if not going.size:
            break
        here = rho[going]
        values = evaluate(chain, items[going], here, spread, slope=True)
        by_sums = values.error < values.backward * (1.0 + here) * values.slope
        rho[going] = np.maximum(here + np.where(by_sums, values.summed, values.low) / values.slope, 0.0)
        going = going[np.abs(rho[going] - here) > CLOSE_ENOUGH * here]
    return rho
