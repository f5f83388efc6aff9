"""The exact leakage of a pair of states and its maximum over pairs: the sign rule, in machine code.

Notation
--------
P         transition matrix into a step: row = state there, column = state one step further away
q, d      rows of the two states i and j
m_s(k)    likelihood of the output of step s given state k, up to a common factor: between 1 + down_s(k) and 1 + up_s(k)
N, D      likelihood of all outputs given i and given j; both linear in every m_s by itself
rho       a ratio less 1:  F(rho) = max over all m of N - (1 + rho) D
c, v      coefficients of N - (1 + rho) D and of D, rolled from the nearest step (s = t - 1) to the furthest (s = 0)
p, w      sums of the positive and of the negative entries of c, both >= 0
total     running sum of c: -rho plus what each step adds
a         log spread of the likelihoods of everything up to and including a step; growth = e^a, excess = e^a - 1
K         incoming leakage of a pair, log(1 + root of F)
room      level that K is compared with

``c = q - (1 + rho) d``; at each step multiply ``c_k`` by the largest factor where c_k > 0 and by the smallest elsewhere, then
``c <- c P``. F is the sum of what is left. It is convex and decreasing. After any number of steps
``p - w <= F <= growth p - w`` (for factors of at least 1, in units of the smallest D), so that a rollout ends where what lies
before no longer matters.

Rounding is bounded in two ways, and the better bound is used. *Backward:* what is computed is exactly F for matrices and
factors whose entries differ by at most gamma a step, so that a computed sign proves K to ``2 gamma`` a step. *Sums:* where all
factors are near 1, `total` keeps its digits however small budgets are, and `drift` bounds what all entries of c together can
be wrong by. Proofs: Theory, sections 10 and 22.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from temporaldp.kernels.compilation import inner_kernel, kernel
from temporaldp.values import ROUNDOFF as UNIT
from temporaldp.values import FloatArray, IntArray

LARGEST_EXPONENT = 600.0
"""Nats. Ratios beyond e^600 are not looked for, and a spread beyond does not cut a rollout short."""

LONGEST = 20_000.0
"""Steps after which a rollout over an infinite horizon is given up. If doubled: suprema near the border of existence take four
times as long, and a few more of them are certified. A float, as Numba compiles a function anew for each integer constant.
"""

ROUGH = 2.0**-10
"""Far from the root a rollout ends where what it leaves out changes Newton's step by this share."""

BACKWARD_SHARE = 2.0**-42
"""Share of a level up to which the backward error of a sign is accepted. What such a sign proves is raised by as much."""

SLOW, MOST_ANTICIPATED = 0.5, 3.0
"""A Newton step longer than this share of the one before gains little; the middle of the bracket comes next. And by how much
a secant's step may differ from Newton's."""

MOST_ROUNDS, MOST_PROOFS, MOST_UNFINISHED = 100, 8, 3
"""Rollouts of a pair, of which these many above the root in search of a proof; and rollouts that reach `LONGEST`."""

STATIC_DEPTH = 2.0
"""Steps of the rollouts that bound pairs at all steps at once. If doubled: fewer pairs are left, bounds take twice as long."""

LEVEL_SHARE, RISE = 1.0 - 2.0**-41, 1.0 + 2.0**-41
"""Share of what is attained that other pairs are compared with, so that what signs prove of them, rounding included, does not
exceed it; and factor that raises an upper bound by more than its rounding."""


REPEATED, REPEATED_DEPTH = 2, 8.0
"""Steps with equal budgets after which pairs are compared over an infinite horizon, and steps of such a comparison. If doubled:
short runs are compared in vain less often; more pairs are left out, and others cost twice as much."""

SPREAD_ROOM = 1.0 + 1e-6
"""Raises a spread before rollouts end in it, so that steps that have almost settled share one answer."""


class Chain(NamedTuple):
    """One direction of a correlation with the likelihoods of each step's output.

    Parameters
    ----------
    data, columns, starts : arrays
        The distinct matrices: all entries in order if `columns` is empty, else those stored, with the column of each and the
        place of the first of each row, as in ``csr_array``. Rows sum to 1, to rounding.
    n : int
        Number of states.
    into : int array, shape (T,)
        Number of the matrix of the transition into each step; that of the first is not used.
    factors : array, shape (T, 2, n), or (T, 2, 1) where all states are alike
        For each state at each step, the largest factor minus 1 (`up`), and the smallest minus 1 (`down`); both >= 0.
    spreads : array, shape (T, 3)
        a of each step, e^a and e^a - 1; see `set_spread`.
    infinite : bool
        Whether each step repeats over an infinite horizon.
    plain : bool
        Whether all factors lie between 1 and one number a step: plain differential privacy.
    gamma : float
        Relative error of an entry in one step.
    """

    data: FloatArray
    columns: IntArray
    starts: IntArray
    n: int
    into: IntArray
    factors: FloatArray
    spreads: FloatArray
    infinite: bool
    plain: bool
    gamma: float

    @classmethod
    def of(
        cls,
        matrices: Sequence[Any] | FloatArray,
        into: IntArray,
        up: FloatArray,
        down: FloatArray,
        spread: FloatArray,
        *,
        infinite: bool = False,
    ) -> Chain:
        """A chain of dense or sparse matrices, shape (n, n); dense ones may be one array of shape (k, n, n)."""
        n = int(matrices[0].shape[0])
        columns, starts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        if all(isinstance(matrix, np.ndarray) for matrix in matrices):
            data = np.asarray(matrices, dtype=np.float64).ravel()
            gamma = rounding(n)
        else:
            from scipy.sparse import csr_array, vstack

            stacked = csr_array(vstack([csr_array(matrix) for matrix in matrices]))
            data = stacked.data.astype(np.float64)
            columns, starts = stacked.indices.astype(np.int64), stacked.indptr.astype(np.int64)
            gamma = (n + 5) * UNIT
        plain = up.shape[1] == 1 and not down.any()
        spreads = np.full((len(spread), 3), np.inf)
        spreads[:, 0] = spread
        for column, power in ((1, np.exp), (2, np.expm1)):
            power(spread, out=spreads[:, column], where=spread <= LARGEST_EXPONENT)
        return cls(
            data,
            columns,
            starts,
            n,
            np.array(into, np.int64),
            np.stack((up, down), axis=1),
            spreads,
            infinite,
            plain,
            gamma,
        )


def rounding(n: int) -> float:
    """Gamma of a dense matrix: a sum of n products (by eights, then by fours), a factor (three), rows that sum to 1 (two)."""
    return (n // 8 + n % 8 // 4 + n % 4 + 8) * UNIT


@inner_kernel
def set_spread(chain, s, a):
    """Store the spread of the likelihoods up to and including step s."""
    chain.spreads[s, 0] = a
    chain.spreads[s, 1] = math.exp(a) if a <= LARGEST_EXPONENT else np.inf
    chain.spreads[s, 2] = math.expm1(a) if a <= LARGEST_EXPONENT else np.inf


@inner_kernel
def dense_through(data, base, n, g, out):
    """``out = g P`` for a dense P, the entries from `base` on. Eight rows at a time: few roundings, few passes over `out`.

    Each row is an array of its own: LLVM uses whole registers only where it sees that no position is negative.
    """
    for m in range(n):
        out[m] = 0.0
    whole = n - n % 8
    for k in range(0, whole, 8):
        a, b, c, d, e, f, h, i = g[k], g[k + 1], g[k + 2], g[k + 3], g[k + 4], g[k + 5], g[k + 6], g[k + 7]
        r = base + k * n
        p, q, s, t = data[r : r + n], data[r + n : r + 2 * n], data[r + 2 * n : r + 3 * n], data[r + 3 * n : r + 4 * n]
        r += 4 * n
        u, v, w, x = data[r : r + n], data[r + n : r + 2 * n], data[r + 2 * n : r + 3 * n], data[r + 3 * n : r + 4 * n]
        for m in range(n):
            left = (a * p[m] + b * q[m]) + (c * s[m] + d * t[m])
            right = (e * u[m] + f * v[m]) + (h * w[m] + i * x[m])
            out[m] += left + right
    if n - whole >= 4:
        a, b, c, d = g[whole], g[whole + 1], g[whole + 2], g[whole + 3]
        r = base + whole * n
        p, q, s, t = data[r : r + n], data[r + n : r + 2 * n], data[r + 2 * n : r + 3 * n], data[r + 3 * n : r + 4 * n]
        for m in range(n):
            left = a * p[m] + b * q[m]
            out[m] += left + (c * s[m] + d * t[m])
        whole += 4
    for k in range(whole, n):
        a = g[k]
        p = data[base + k * n : base + (k + 1) * n]
        for m in range(n):
            out[m] += a * p[m]


@inner_kernel
def through(chain, s, g, out):
    """``out = g P`` for the transition into step s."""
    n, first = chain.n, chain.into[s] * chain.n
    if chain.columns.size:
        for m in range(n):
            out[m] = 0.0
        for k in range(n):
            for e in range(chain.starts[first + k], chain.starts[first + k + 1]):
                out[chain.columns[e]] += g[k] * chain.data[e]
        return
    dense_through(chain.data, first * n, n, g, out)


@inner_kernel
def read_row(chain, t, k, out):
    """Row k of the matrix into step t."""
    n, at = chain.n, chain.into[t] * chain.n + k
    if chain.columns.size:
        for m in range(n):
            out[m] = 0.0
        for e in range(chain.starts[at], chain.starts[at + 1]):
            out[chain.columns[e]] = chain.data[e]
    else:
        row = chain.data[at * n : (at + 1) * n]
        for m in range(n):
            out[m] = row[m]


@inner_kernel
def coefficients(chain, t, i, j, rho, work):
    """Write c and v of a pair, divided by 1 + rho; return the sums of |q - d| and of q - d, divided too."""
    read_row(chain, t, i, work[0])
    read_row(chain, t, j, work[1])
    scale = 1.0 / (1.0 + rho)
    apart = balance = 0.0
    for k in range(chain.n):
        q, d = work[0, k], work[1, k]
        work[0, k] = (q - d) * scale - (rho * scale) * d
        work[1, k] = d * scale
        apart += abs(q - d)
        balance += q - d
    return apart * scale, balance * scale


@inner_kernel
def roll(chain, t, i, j, rho, most, work):  # noqa: PLR0912, PLR0915  one loop, whose numbers would only be handed around
    """F(rho) of a pair at step t, from at most so many steps; if `most` is negative, only as far as its sign is open.

    Returns low, high, slope, slope_high, summed, summed_high, error, backward, depth, below, in a unit of their own:
    ``low <= F <= high`` but for the backward error (in nats of the root), ``summed <= F <= summed_high`` but for `error`;
    slopes are the derivatives of low and high with their sign changed; `below`: F is proved to be at most 0.
    """
    n, stride = chain.n, 1 if chain.factors.shape[2] > 1 else 0
    gamma, sums = chain.gamma, (chain.n + 4) * UNIT
    apart, balance = coefficients(chain, t, i, j, rho, work)
    c, v, g, spare = work[0], work[1], work[2], work[3]
    scale, level = 1.0 / (1.0 + rho), math.log1p(rho)
    total, error = -rho * scale, UNIT * rho * scale
    drift = 4.0 * gamma * (apart + rho * scale) + abs(balance)
    sign_only, limit = most < 0.0, int(abs(most))
    if not chain.infinite:
        limit = min(limit, t)
    low, high, slope, slope_high, summed_high, bound, backward = -np.inf, np.inf, 1.0, 1.0, np.inf, np.inf, 0.0
    for depth in range(limit):
        s = t if chain.infinite else t - 1 - depth
        last = not chain.infinite and s == 0
        growth, excess = chain.spreads[s, 1], chain.spreads[s, 2]
        p = w = raised = lowered = widest = 0.0
        for k in range(n):
            a, b = chain.factors[s, 0, k * stride], chain.factors[s, 1, k * stride]
            positive = max(c[k], 0.0)
            negative = positive - c[k]
            widest = max(widest, a, b)
            p += positive
            w += negative
            raised += positive * a
            lowered += negative * b
            g[k] = (c[k] + positive * a) - negative * b
        add, larger, smaller = raised - lowered, p + raised, w + lowered
        error += widest * (drift + 2.0 * sums * (p + w))
        backward = 2.0 * (gamma * (depth + 2) + 2.0 * sums)
        bound = error + 4.0 * UNIT * abs(total)
        low = larger - smaller
        if last:
            high, summed_high = low, total + add
        else:
            high = (growth * p if p > 0.0 else 0.0) - w
            summed_high = total + (excess * p if p > 0.0 else 0.0)
            bound += excess * (drift + 2.0 * sums * p)
        below = False
        if sign_only:
            trusted = backward <= BACKWARD_SHARE * level
            below = summed_high + bound <= 0.0 or (high <= 0.0 and trusted)
            if chain.plain:  # F grows with the number of steps, so that a positive sign stays
                done = below or total + add > bound or (low > 0.0 and trusted)
            else:
                done = below or (p > (growth * w if w > 0.0 else 0.0) and trusted)
        else:
            slope = slope_high = nearer = 0.0
            for k in range(n):
                a, b = chain.factors[s, 0, k * stride], chain.factors[s, 1, k * stride]
                raises = c[k] > 0.0  # selected, not branched on: signs are hard to predict
                factor = a if raises else b
                nearer += v[k] * (factor - (excess if raises else 0.0))
                slope_high += v[k] * (growth if raises else 1.0)
                v[k] *= 1.0 + factor
                slope += v[k]
            slope_high = slope if last else slope_high
            unknown = (excess * p if p > 0.0 else 0.0) - add
            if not chain.plain:  # outputs multiply D too: what counts is high / slope_high against low / slope
                near = unknown + high * (nearer / slope_high)
                unknown = abs(near if excess < 1.0 else high * (slope / slope_high) - low)
            blur = min(bound, gamma * 2.0 * (depth + 2) * (1.0 + rho) * slope)
            # Shares of the value, and of its rounding error, below which what lies before a step no longer counts
            done = unknown <= max(2.0**-52 * rho * slope, 2.0**-4 * blur)
            done = done or (low > 0.0 and total + add > 0.0 and w <= ROUGH * p)
            done = done or (high < 0.0 and summed_high < 0.0 and unknown <= -ROUGH * max(low, total + add))
        if last or done or depth == limit - 1:
            return low, high, slope, slope_high, total + add, summed_high, bound, backward, depth + 1, below
        through(chain, s, g, c)
        if not sign_only:
            through(chain, s, v, spare)
            v, spare = spare, v
        drift = (1.0 + widest) * drift + 2.0 * gamma * (larger + smaller)
        error += UNIT * abs(total)
        total += add
        # Coefficients beyond are scaled down: only ratios count
        if larger + smaller > 1e150:
            shrink = 1.0 / (larger + smaller)
            for k in range(n):
                c[k] *= shrink
                v[k] *= shrink
            total, drift, error = total * shrink, drift * shrink, error * shrink
    return low, high, slope, slope_high, -np.inf, summed_high, bound, backward, 0, False


@inner_kernel
def both_sides(low, high, slope, summed, summed_high, error, backward, rho):
    """Leakage that the observation of a rollout at rho attains, and the bound that it proves; inf where F may be positive.

    An observation's ratio less 1 is ``rho + F / D``. D has a backward error of its own, so that little follows where rho is
    far above the ratio.
    """
    gain = (summed - error) / slope
    attained = math.log1p(max(rho + (gain - (backward + 8.0 * UNIT) * abs(gain)), 0.0)) * (1.0 - 4.0 * UNIT)
    gain = low / slope
    gain -= (backward + 8.0 * UNIT) * abs(gain)
    by_ratio = math.log1p(max(rho + gain, 0.0)) * (1.0 - 4.0 * UNIT) - backward
    if not attained >= by_ratio:
        attained = by_ratio
    if not 0.0 < attained < np.inf:
        attained = 0.0
    proved = np.inf
    if summed_high + error <= 0.0:
        proved = math.log1p(rho)
    elif high <= 0.0:
        proved = math.log1p(rho) + backward
    return attained, proved * (1.0 + 4.0 * UNIT)


@inner_kernel
def arriving(chain, t):
    """Spread of the incoming leakage of step t: 0 where no earlier step distinguishes states."""
    if chain.infinite:
        return chain.spreads[t, 0]
    return chain.spreads[t - 1, 0] if t > 0 else 0.0


@inner_kernel
def stays_below(chain, t, i, j, room, work):
    """Whether K of a pair at step t is proved to be at most room (1 + `BACKWARD_SHARE`); and the depth of the rollout."""
    if not 0.0 < room <= LARGEST_EXPONENT or arriving(chain, t) <= 0.0:
        return arriving(chain, t) <= room, 0
    found = roll(chain, t, i, j, math.expm1(room), -LONGEST, work)
    return found[9], found[8]


@inner_kernel
def pair_value(chain, t, i, j, guess, work):
    """K of a pair at step t: what is attained, what is proved, the ratio less 1 of the observation, and the depth.

    Newton's steps (Dinkelbach's) from `guess` within a bracket, then rollouts just above the root until one proves F <= 0.
    Ever more steps count on the way to the root, so that Newton's steps shrink by a factor only; the secant of two of them
    leads further. Where Newton's steps gain little, because leakage gathers over many steps, the middle of the bracket comes
    next.
    """
    # No step raises a spread: the ratio for two states is at most that of any two likelihoods before.
    attained, proved = 0.0, arriving(chain, t) * (1.0 + 4.0 * UNIT)
    if proved <= 0.0:
        return 0.0, 0.0, 0.0, 0
    best, here, last = 0.0, max(guess, 0.0), np.inf
    before, move_before = np.nan, np.nan
    proofs = slow = unfinished = 0
    deepest = 0
    for _ in range(MOST_ROUNDS):
        low, high, slope, _, summed, summed_high, error, backward, depth, _ = roll(chain, t, i, j, here, LONGEST, work)
        below, above = both_sides(low, high, slope, summed, summed_high, error, backward, here)
        if below > attained:
            attained, best = below, here
        deepest = max(deepest, depth)
        proved = min(proved, above)
        unfinished += chain.infinite and depth >= LONGEST
        top = math.expm1(min(proved, LARGEST_EXPONENT))
        by_sums = error < backward * (1.0 + here) * slope
        newton = min(max(here + (summed if by_sums else low) / slope, 0.0), top)
        room = 2.0 * (max(summed_high, 0.0) + error) / slope + 4.0 * UNIT * here
        if not room < backward * (1.0 + here):
            room = max(high, 0.0) / slope + 8.0 * UNIT * (1.0 + here)
        if not newton >= 0.0:  # where coefficients overflowed
            newton = top
        move = newton - here
        step, factor = abs(move), (here - before) / (move_before - move)
        before, move_before = here, move
        known_to = min(backward, error / slope + 4.0 * UNIT * here)
        left = proved - attained
        # Relative distance of both sides at which a pair is done, and relative length of Newton's last step
        if left <= 2.0**-42 * proved or unfinished >= MOST_UNFINISHED:
            break
        if step <= max(2.0**-40 * here, known_to):
            if left <= 4.0 * known_to or proofs >= MOST_PROOFS:
                break
            # From the fourth attempt on rounding has hidden the root: the attempts spread out.
            here = min(here + room * 2.0 ** (proofs if proofs < 4 else 6 * (proofs - 3)), top)
            proofs += 1
        elif step <= SLOW * last:
            # Just above where the root should be: if it is there, the next rollout proves it too.
            ahead = here + (factor if 1.0 / MOST_ANTICIPATED < factor < MOST_ANTICIPATED else 1.0) * move
            here = min(max(ahead, 0.0) + (2.0 * error / slope if by_sums else 0.0) + 8.0 * UNIT * (1.0 + here), top)
        else:
            slow += 1
            middle = math.expm1(min(0.5 * (proved + attained), LARGEST_EXPONENT))
            here = min(middle, newton + 2.0 ** min(4 * slow, 1000) * step)
        last = step
    return min(attained, proved), proved, best, deepest


@kernel
def static_bounds(chain, first, last, work, found):
    """Fill rows first .. last - 1 of `found`, shape (n, n), with upper bounds of K over an infinite horizon, from few steps.

    At any rho the root is at most rho + F(rho), as D >= 1 where all factors are.
    """
    n, t, ratio = chain.n, 0 * first, 0.6
    for pair in range(first * n, last * n):
        i, j = pair // n, pair % n
        found[i, j] = 0.0
        if i == j or chain.spreads[t, 0] <= 0.0:
            continue
        # The bound of one step, which takes no product, shows where that of two steps may be: in the ratio of the last pair.
        rho = math.expm1(min(0.5 * chain.spreads[t, 0], 30.0))
        for _ in range(2):
            rolled = roll(chain, t, i, j, rho, 1.0, work)
            moved = rho + rolled[1] / rolled[3]
            rho = moved if 0.0 <= moved < np.inf else rho
        shallow, rho = rho, ratio * rho
        rolled = roll(chain, t, i, j, rho, STATIC_DEPTH, work)
        above = max(rolled[5] + rolled[6], 0.0) * (1.0 + rho) * (1.0 + 1e-9)
        found[i, j] = math.log1p(rho + above) * RISE if above < np.inf else np.inf
        moved = (rho + rolled[1] / rolled[3]) / shallow
        ratio = moved if 0.0 < moved <= 1.0 else 0.6


@inner_kernel
def weigh(chains, steps, i, j, room, shares, work, depths):
    """Leakage that arrives at a pair from one or two sides: attained and proved; -1 and 0 where it is proved to be below room.

    `depths` keeps the greatest depth of each side. `shares`, shape (2, n, n), are the pair's last values, or bounds of them, as
    shares of the spread in which they arrive.
    """
    n_sides, attained, proved, first = steps.size, 0.0, 0.0, 0
    scales = (arriving(chains[0], steps[0]), arriving(chains[n_sides - 1], steps[n_sides - 1]))
    if room > 0.0:
        part = room
        if n_sides == 2:
            past, future = shares[0, i, j] * scales[0], shares[1, i, j] * scales[1]
            part = room * past / (past + future) if past + future > 0.0 else 0.5 * room
        below = True
        for side in range(n_sides):
            if below:
                below, depth = stays_below(chains[side], steps[side], i, j, part if side == 0 else room - part, work)
                depths[side] = max(depths[side], depth)
                first = side
        if below:
            return -1.0, 0.0
    # The side whose sign was positive has used up more than its part: its value leaves less room for the other one.
    for trial in range(n_sides):
        side = first if trial == 0 else 1 - first
        left = room - proved
        guess = math.expm1(min(shares[side, i, j] * scales[side], LARGEST_EXPONENT))
        if trial == 1 and left > 0.0:
            below, depth = stays_below(chains[side], steps[side], i, j, left, work)
            depths[side] = max(depths[side], depth)
            if below:
                shares[side, i, j] = min(
                    # Share of the room that a sign from one side leaves, which counts as the pair's last value on that side
                    shares[side, i, j],
                    0.98 * left / scales[side] if scales[side] > 0.0 else 0.0,
                )
                return -1.0, 0.0
        if trial == n_sides - 1 and left > 0.0:
            guess = max(guess, math.expm1(min(left, LARGEST_EXPONENT)))
        low, high, _, depth = pair_value(chains[side], steps[side], i, j, guess, work)
        shares[side, i, j] = low / scales[side] if scales[side] > 0.0 else 0.0
        depths[side] = max(depths[side], depth)
        attained += low
        proved += high
    return attained, proved


@inner_kernel
def lowered(worst, i, j, room, static, n_sides, work):
    """Whether a pair stays below `room` over an infinite horizon; its static bounds are lowered to parts of the room then."""
    part = room
    if n_sides == 2:
        part *= static[0, i, j] / (static[0, i, j] + static[1, i, j])
    for side in range(n_sides):
        part = part if side == 0 else room - part
        below = arriving(worst[side], 0 * i) <= part
        if not below and 0.0 < part <= LARGEST_EXPONENT:
            below = roll(worst[side], 0 * i, i, j, math.expm1(part), -REPEATED_DEPTH, work)[9]
        if not below:
            return False
        static[side, i, j] = min(static[side, i, j], part)
    return True


@kernel
def largest(chains, worst, repeats, steps, lift, drop, limit, ceiling, static, shares, candidates, work, depths):  # noqa: PLR0912
    """The largest sum over pairs of incoming leakage from one or two sides and the step's own part.

    Branch and bound: candidates (pairs ``i n + j``) are computed first; any other pair is first compared with the best so far
    by its static bound, then by signs.

    Parameters
    ----------
    worst : tuple of Chain
        Each side's widest factors at every step of an infinite horizon.
    repeats : bool
        Whether pairs are compared over that horizon first: where budgets repeat, they are left out at all later steps then.
    static : array, shape (2, n, n), or empty
        Bounds of each side that hold at all steps, to `BACKWARD_SHARE`; lowered on the way. Empty: only candidates are
        computed, and the answer is `ceiling`.
    limit : float
        Once a pair exceeds it, the others do not matter, and nothing is proved.
    ceiling : float
        A bound of the answer that is known.

    Returns
    -------
    attained, proved : float
        By one pair, and for all pairs.
    pair : int
    """
    n, wide = chains[0].n, lift.size > 1
    best, top, chosen = -1.0, 0.0, 1
    # Comparisons over an infinite horizon that may fail, beside one for each that does not, until a step makes no more of them
    patience = 2 if repeats else 0
    # What other pairs of a supremum are compared with, relative to the best one so far: pairs that leak no more are not
    # computed. If the excess over 1 is doubled, so is the distance between both sides of a supremum.
    share = (1.0 + 1e-10) if chains[0].infinite else LEVEL_SHARE
    depths[:] = 0
    n_first = candidates.size
    for place in range(n_first + n * n):
        pair = candidates[place] if place < n_first else place - n_first
        i, j = pair // n, pair % n
        if i == j:
            continue
        again = False
        for k in range(min(place, n_first)):
            again = again or candidates[k] == pair
        if again:
            continue
        own = lift[i if wide else 0] - drop[j if wide else 0]
        room = -1.0
        if place >= n_first:
            # Share of a known bound from which on a pair counts as reaching it
            if best >= ceiling * (1.0 - 8e-13):
                return min(best, ceiling), ceiling, chosen
            room = best * share - own
            if not static.size:
                break
            known = static[0, i, j]
            if steps.size == 2:
                known += static[1, i, j]
            if known <= room:
                continue
            if patience > 0:
                if lowered(worst, i, j, room, static, steps.size, work):
                    patience += 1
                    continue
                patience -= 1
        low, high = weigh(chains, steps, i, j, room, shares, work, depths)
        if low < 0.0:
            continue
        low, high = (own + low) * (1.0 - 4.0 * UNIT), (own + high) * (1.0 + 4.0 * UNIT)
        top = max(top, high)
        if low > best:
            best, chosen = low, pair
            if best > limit:
                return best, np.inf, chosen
    proved = min(max(top, best * max(share * RISE, 1.0)), ceiling) if static.size else ceiling
    return min(best, proved), proved, chosen


@inner_kernel
def extremes(chain, first, last):
    """Return the smallest and largest spread of steps first, ..., last - 1."""
    least, most = np.inf, 0.0
    for s in range(first, last):
        least, most = min(least, chain.spreads[s, 0]), max(most, chain.spreads[s, 0])
    return least, most


@kernel
def series(
    chains, worst, steps, lift, drop, ceiling, runs, static, shares, candidates, work, depths, attained, proved, pairs, first,
    last,
):  # fmt: skip
    """Fill steps first .. last - 1 of the largest leakage from one or two sides: attained, proved and the pair, shape (T,).

    The second side counts steps from the last one on. `steps` and `depths` are scratch, one entry a side. From one side, the
    chain's spreads are set. Where budgets and matrices are those of the steps that the last rollouts reached, and spreads too,
    the same rollouts prove the same of the next step, up to the end of the run. `runs`, shape (sides, T): first step of each
    step's run, in the side's own order. `worst`: see `largest`; not infinite where matrices vary. Return the next step, which
    may be beyond `last`.
    """
    n_steps = lift.shape[0]
    t = first
    while t < last:
        for side in range(steps.size):
            steps[side] = t if side == 0 else n_steps - 1 - t
        repeats = worst[0].infinite and worst[-1].infinite and t >= runs[0, t] + REPEATED
        attained[t], top, pairs[t] = largest(
            chains,
            worst,
            repeats,
            steps,
            lift[t],
            drop[t],
            np.inf,
            ceiling[t],
            static,
            shares,
            candidates,
            work,
            depths,
        )
        proved[t] = top
        candidates[:] = pairs[t]
        if steps.size == 1:
            set_spread(chains[0], t, top * SPREAD_ROOM)
        fits = True
        for side in range(steps.size):
            fits = fits and depths[side] > 0 and steps[side] - depths[side] >= max(1, runs[side, steps[side]])
        t += 1
        if not fits:
            continue
        past_least, past_most = extremes(chains[0], steps[0] - depths[0], t - 1)
        end = steps[-1] - depths[-1]
        future_least, future_most = extremes(chains[-1], end, steps[-1])
        # What a known bound lowered may be higher later.
        rolled = np.inf if top >= ceiling[t - 1] else top
        while t < n_steps and runs[0, t] == runs[0, t - 1]:
            past_most = max(past_most, chains[0].spreads[t - 1, 0])
            if steps.size == 2:
                end -= 1
                future_most = max(future_most, chains[1].spreads[max(end, 0), 0])
                if end < max(1, runs[1, steps[1]]):
                    break
            if max(past_most / past_least, future_most / future_least) * (1.0 + 8.0 * UNIT) > SPREAD_ROOM:
                break
            attained[t], proved[t], pairs[t] = attained[t - 1], min(rolled, ceiling[t]), pairs[t - 1]
            if steps.size == 1:
                set_spread(chains[0], t, proved[t] * SPREAD_ROOM)
            t += 1
    return t


@kernel
def observation(chain, t, i, j, rho, high):
    """Fill `high`, shape (t, n): the states that the output of each earlier step favours to reach the ratio 1 + rho."""
    n, wide, work = chain.n, chain.factors.shape[2] > 1, np.empty((4, chain.n))
    coefficients(chain, t, i, j, rho, work)
    c, g = work[0], work[2]
    for s in range(t - 1, -1, -1):
        size = 0.0
        for k in range(n):
            high[s, k] = c[k] > 0.0
            g[k] = c[k] * (1.0 + chain.factors[s, 0 if c[k] > 0.0 else 1, k if wide else 0])
            size = max(size, abs(g[k]))
        if s > 0 and size > 0.0:
            for k in range(n):
                g[k] /= size
            through(chain, s, g, c)


@kernel
def derivatives(chain, t, i, j, rho, found):
    """Fill `found`, shape (m, most), with the derivative of K of each pair by the budget of step t - 1 - k; plain releases.

    By the envelope theorem: the share of N that step s raised less the share of D. With c at the root, where
    N = (1 + rho) D, that is the sum of the positive entries of c times the likelihoods x, over N.
    """
    n, most = chain.n, found.shape[1]
    work, parts, scales = np.empty((4, n)), np.zeros((most, n)), np.zeros(most)
    for item in range(t.size):
        depth = min(most, t[item])
        found[item] = 0.0
        if depth == 0:
            continue
        coefficients(chain, t[item], i[item], j[item], rho[item], work)
        c, g = work[0], work[2]
        # Coefficients and likelihoods grow like exp(sum of budgets): each is kept at most 1, and its scale apart.
        log_scale = 0.0
        for back in range(depth):
            s = t[item] - 1 - back
            top = np.abs(c).max()
            if top > 0.0:
                c /= top
                log_scale += math.log(top)
            scales[back] = log_scale
            for k in range(n):
                parts[back, k] = max(c[k], 0.0)
                g[k] = c[k] + chain.factors[s, 0, 0] * parts[back, k]
            through(chain, s, g, c)
        x = g
        x[:] = 1.0
        log_scale = 0.0
        for back in range(depth - 1, -1, -1):
            s = t[item] - 1 - back
            if back < depth - 1:
                likelihoods(chain, s, x, c)
            top = 0.0
            for k in range(n):
                x[k] = (c[k] if back < depth - 1 else 1.0) * (
                    1.0 + (chain.factors[s, 0, 0] if parts[back, k] > 0.0 else 0.0)
                )
                top = max(top, x[k])
            log_scale += math.log(top)
            scales[back] += log_scale
            for k in range(n):
                x[k] /= top
                found[item, back] += parts[back, k] * x[k]
        read_row(chain, t[item], i[item], c)
        whole = 0.0
        for k in range(n):
            whole += c[k] * x[k]
        for back in range(depth):
            found[item, back] *= math.exp(scales[back] - log_scale) * (1.0 + rho[item]) / whole


@inner_kernel
def likelihoods(chain, s, x, out):
    """``out = P x`` for the transition into step s."""
    n, first = chain.n, chain.into[s] * chain.n
    for k in range(n):
        out[k] = 0.0
        if chain.columns.size:
            for e in range(chain.starts[first + k], chain.starts[first + k + 1]):
                out[k] += chain.data[e] * x[chain.columns[e]]
        else:
            for m in range(n):
                out[k] += chain.data[(first + k) * n + m] * x[m]


@kernel
def chain_of(data, n, number, factors, infinite, gamma):
    """A chain of one of many dense matrices, for plain releases."""
    nothing, into = np.empty(0, np.int64), np.empty(factors.shape[0], np.int64)
    into[:] = number
    return Chain(data, nothing, nothing, n, into, factors, np.zeros((factors.shape[0], 3)), infinite, True, gamma)


@kernel
def population(
    data, n, members, factors, worst, lift, drop, ceilings, runs, gamma, first, last, attained, proved, pairs
):
    """Series of users first .. last - 1: fill attained, proved and pairs, shape (users, 3, T), rows BPL, FPL and TPL.

    Parameters
    ----------
    data : array
        Entries of all dense matrices, shape (n, n) each.
    members : int array, shape (users, 2)
        Number of the backward and the forward matrix; -1 where it is unknown.
    factors, lift, drop, runs : arrays
        Those of each side's own order of steps, shape (2, T, ...).
    worst : array, shape (1, 2, 1)
        The largest factors of any step.
    ceilings : array, shape (users, 3, T)
        Known bounds, in order of time.
    """
    n_steps, work, zero = lift.shape[1], np.empty((4, n)), 0 * n
    steps, depths, start = np.zeros(2, np.int64), np.zeros(2, np.int64), np.ones(2, np.int64)
    for user in range(first, last):
        infinite = (
            chain_of(data, n, max(members[user, 0], 0), worst, True, gamma),
            chain_of(data, n, max(members[user, 1], 0), worst, True, gamma),
        )
        static, shares = np.zeros((2, n, n)), np.ones((2, n, n))
        sides = (
            chain_of(data, n, max(members[user, 0], 0), factors[0], False, gamma),
            chain_of(data, n, max(members[user, 1], 0), factors[1], False, gamma),
        )
        known = 0
        for side in range(2):
            order = 1 - 2 * side
            level, high, pair = attained[user, side, ::order], proved[user, side, ::order], pairs[user, side, ::order]
            level[:], high[:], pair[:] = lift[side, :, 0], lift[side, :, 0], 1
            if members[user, side] < 0:
                continue
            known = side
            ceiling = ceilings[user, side, ::order].copy()
            set_spread(infinite[side], zero, ceiling.max())
            static_bounds(infinite[side], zero, n, work, static[side])
            found = np.empty((2, n_steps)), np.empty(n_steps, np.int64)
            start[0] = 1
            series(
                (sides[side], sides[side]), (infinite[side], infinite[side]), steps[:1], lift[side], drop[side], ceiling,
                runs[side : side + 1],
                static[side : side + 1], shares[:1], start[:1], work, depths, found[0][0], found[0][1], found[1], zero, n_steps,
            )  # fmt: skip
            level[:], high[:], pair[:] = found[0][0], found[0][1], found[1]
        attained[user, 2], proved[user, 2], pairs[user, 2] = (
            attained[user, known],
            proved[user, known],
            pairs[user, known],
        )
        if min(members[user, 0], members[user, 1]) >= 0:
            start[0], start[1] = pairs[user, 0, 0], pairs[user, 1, 0]
            set_shares(sides, static, shares)
            series(
                sides, infinite, steps, lift[0], drop[0], ceilings[user, 2], runs, static, shares, start, work, depths,
                attained[user, 2], proved[user, 2], pairs[user, 2], zero, n_steps,
            )  # fmt: skip


@inner_kernel
def set_shares(chains, static, shares):
    """Set shares to the static bound of each pair divided by the largest spread, at most 1."""
    for side in range(2):
        most = extremes(chains[side], 0, chains[side].spreads.shape[0])[1]
        for i in range(static.shape[1]):
            for j in range(static.shape[1]):
                shares[side, i, j] = min(static[side, i, j] / most, 1.0) if most > 0.0 else 0.0
