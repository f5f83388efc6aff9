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
be wrong by. Proofs: docs/theory.md, section 10.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from temporaldp.kernels.compiled.options import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

UNIT = 2.0**-53
"""Unit roundoff."""

LARGEST_EXPONENT = 600.0
"""Nats. Ratios beyond e^600 are not looked for, and a spread beyond does not cut a rollout short."""

HUGE = 1e150
"""Coefficients beyond are scaled down: only ratios count."""

LONGEST = 20_000
"""Steps after which a rollout over an infinite horizon is given up. If doubled: suprema near the border of existence take
four times as long, and a few more of them are certified."""

NEGLIGIBLE, BLURRED = 2.0**-52, 2.0**-4
"""Shares of the value, and of its rounding error, below which what lies before a step no longer counts."""

ROUGH = 2.0**-10
"""Far from the root a rollout ends where what it leaves out changes Newton's step by this share."""

BACKWARD_SHARE = 2.0**-42
"""Share of a level up to which the backward error of a sign is accepted. What such a sign proves is raised by as much."""

TIGHT, CLOSE = 2.0**-42, 2.0**-40
"""Relative distance of both sides at which a pair is done, and relative length of Newton's last step."""

SLOW = 0.5
"""A Newton step longer than this share of the one before gains little; the middle of the bracket comes next."""

MOST_ROUNDS, MOST_PROOFS, MOST_UNFINISHED = 100, 8, 3
"""Rollouts of a pair, of which these many above the root in search of a proof; and rollouts that reach `LONGEST`."""

STATIC_DEPTH = 2
"""Steps of the rollouts that bound pairs at all steps at once. If doubled: fewer pairs are left, each bound takes twice as long."""

SMALL = 30.0
"""Nats. A supremum of the paper's up to this needs no supposition that would be tighter: depths grow with its logarithm."""

FIRST_LEVEL, LEVEL_RAISED, MOST_LEVELS = 4.0, 2.5, 12
"""Levels that are supposed for a supremum: the first in units of a step's own part, each next one this many times what the
last one led to, and how many."""

LEVEL_ROOM, RISE = 1.0 + 2.0**-43, 1.0 + 2.0**-41
"""Raise what is attained to the level that other pairs are compared with, and to what such signs prove, rounding included."""

SPREAD_ROOM = 1.0 + 1e-6
"""Raises a spread before rollouts end in it, so that steps that have almost settled share one answer."""

DONE_BEFORE = 1.0 - 8e-13
"""Share of a known bound from which on a pair counts as reaching it."""


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
    up, down : array, shape (T, n), or (T, 1) where all states are alike
        The largest factor of each state at each step less 1, and the smallest less 1; both >= 0.
    spread, growth, excess : array, shape (T,)
        a of each step, e^a and e^a - 1; see `set_spread`.
    endless : bool
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
    up: FloatArray
    down: FloatArray
    spread: FloatArray
    growth: FloatArray
    excess: FloatArray
    endless: bool
    plain: bool
    gamma: float

    @classmethod
    def of(
        cls,
        matrices: tuple[Any, ...],
        into: IntArray,
        up: FloatArray,
        down: FloatArray,
        spread: FloatArray,
        *,
        endless: bool = False,
    ) -> Chain:
        """A chain of dense or sparse matrices, shape (n, n)."""
        n = int(matrices[0].shape[0])
        columns, starts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        if all(isinstance(matrix, np.ndarray) for matrix in matrices):
            data = np.stack(matrices).astype(np.float64).ravel()
            gamma = rounding(n)
        else:
            from scipy.sparse import csr_array, vstack

            stacked = csr_array(vstack([csr_array(matrix) for matrix in matrices]))
            data = stacked.data.astype(np.float64)
            columns, starts = stacked.indices.astype(np.int64), stacked.indptr.astype(np.int64)
            gamma = (n + 5) * UNIT
        steps = (np.ascontiguousarray(one, dtype=np.float64) for one in (up, down))
        above = np.array(spread, dtype=np.float64)
        plain = up.shape[1] == 1 and not down.any()
        made = cls(
            data, columns, starts, n, np.ascontiguousarray(into), *steps, above, above.copy(), above.copy(), endless,
            plain, gamma,
        )  # fmt: skip
        for s in range(len(above)):
            set_spread(made, s, above[s])
        return made


def rounding(n: int) -> float:
    """Gamma of a dense matrix: a sum of n products (by eights, then by fours), a factor (three), rows that sum to 1 (two)."""
    return (n // 8 + n % 8 // 4 + n % 4 + 8) * UNIT


@kernel
def set_spread(chain, s, a):
    """Store the spread of the likelihoods up to and including step s."""
    chain.spread[s] = a
    chain.growth[s] = math.exp(a) if a <= LARGEST_EXPONENT else np.inf
    chain.excess[s] = math.expm1(a) if a <= LARGEST_EXPONENT else np.inf


@kernel
def through(chain, s, g, out):
    """``out = g P`` for the transition into step s. Eight rows at a time: few roundings, and few passes over `out`."""
    n, first = chain.n, chain.into[s] * chain.n
    for m in range(n):
        out[m] = 0.0
    if chain.columns.size:
        for k in range(n):
            for e in range(chain.starts[first + k], chain.starts[first + k + 1]):
                out[chain.columns[e]] += g[k] * chain.data[e]
        return
    P = chain.data[first * n : (first + n) * n].reshape((n, n))
    whole = n - n % 8
    for k in range(0, whole, 8):
        a, b, c, d, e, f, h, i = g[k], g[k + 1], g[k + 2], g[k + 3], g[k + 4], g[k + 5], g[k + 6], g[k + 7]
        for m in range(n):
            left = (a * P[k, m] + b * P[k + 1, m]) + (c * P[k + 2, m] + d * P[k + 3, m])
            right = (e * P[k + 4, m] + f * P[k + 5, m]) + (h * P[k + 6, m] + i * P[k + 7, m])
            out[m] += left + right
    if n - whole >= 4:
        a, b, c, d = g[whole], g[whole + 1], g[whole + 2], g[whole + 3]
        for m in range(n):
            left = a * P[whole, m] + b * P[whole + 1, m]
            out[m] += left + (c * P[whole + 2, m] + d * P[whole + 3, m])
        whole += 4
    for k in range(whole, n):
        a = g[k]
        for m in range(n):
            out[m] += a * P[k, m]


@kernel
def read_row(chain, t, k, out):
    """Row k of the matrix into step t."""
    n, at = chain.n, chain.into[t] * chain.n + k
    if chain.columns.size:
        for m in range(n):
            out[m] = 0.0
        for e in range(chain.starts[at], chain.starts[at + 1]):
            out[chain.columns[e]] = chain.data[e]
    else:
        for m in range(n):
            out[m] = chain.data[at * n + m]


@kernel
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


@kernel
def roll(chain, t, i, j, rho, sign_only, most, work):
    """F(rho) of a pair at step t, from at most so many steps; with `sign_only`, only as far as its sign is open.

    Returns low, high, slope, slope_high, summed, summed_high, error, backward, depth, below, in a unit of their own:
    ``low <= F <= high`` but for the backward error (in nats of the root), ``summed <= F <= summed_high`` but for `error`;
    slopes are the derivatives of low and high with their sign changed; `below`: F is proved to be at most 0.
    """
    n, wide = chain.n, chain.up.shape[1] > 1
    gamma, sums = chain.gamma, (chain.n + 4) * UNIT
    apart, balance = coefficients(chain, t, i, j, rho, work)
    c, v, g, spare = work[0], work[1], work[2], work[3]
    scale, level = 1.0 / (1.0 + rho), math.log1p(rho)
    total, error = -rho * scale, UNIT * rho * scale
    drift = 4.0 * gamma * (apart + rho * scale) + abs(balance)
    limit = most if chain.endless else min(most, t)
    low, high, slope, slope_high, summed_high, bound, backward = -np.inf, np.inf, 1.0, 1.0, np.inf, np.inf, 0.0
    for depth in range(limit):
        s = t if chain.endless else t - 1 - depth
        last = not chain.endless and s == 0
        growth, excess = chain.growth[s], chain.excess[s]
        p = w = raised = lowered = widest = 0.0
        for k in range(n):
            a, b = chain.up[s, k if wide else 0], chain.down[s, k if wide else 0]
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
                a, b = chain.up[s, k if wide else 0], chain.down[s, k if wide else 0]
                if c[k] > 0.0:
                    nearer += v[k] * (a - excess)
                    slope_high += v[k] * growth
                    v[k] *= 1.0 + a
                else:
                    nearer += v[k] * b
                    slope_high += v[k]
                    v[k] *= 1.0 + b
                slope += v[k]
            slope_high = slope if last else slope_high
            unknown = (excess * p if p > 0.0 else 0.0) - add
            if not chain.plain:  # outputs multiply D too: what counts is high / slope_high against low / slope
                near = unknown + high * (nearer / slope_high)
                unknown = abs(near if excess < 1.0 else high * (slope / slope_high) - low)
            blur = min(bound, gamma * 2.0 * (depth + 2) * (1.0 + rho) * slope)
            done = unknown <= max(NEGLIGIBLE * rho * slope, BLURRED * blur)
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
        if larger + smaller > HUGE:
            shrink = 1.0 / (larger + smaller)
            for k in range(n):
                c[k] *= shrink
                v[k] *= shrink
            total, drift, error = total * shrink, drift * shrink, error * shrink
    return low, high, slope, slope_high, -np.inf, summed_high, bound, backward, 0, False


@kernel
def both_sides(low, high, slope, summed, summed_high, error, backward, rho):
    """What the observation of a rollout at rho attains, and what the rollout proves; inf where F may be positive.

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


@kernel
def is_silent(chain, t):
    """Whether nothing arrives at step t, because no earlier step distinguishes states."""
    return (t == 0 or chain.spread[t - 1] <= 0.0) if not chain.endless else chain.spread[t] <= 0.0


@kernel
def stays_below(chain, t, i, j, room, most, work):
    """Whether K of a pair at step t is proved to be at most room (1 + `BACKWARD_SHARE`); and the depth of the rollout."""
    if is_silent(chain, t):
        return room >= 0.0, 0
    if not 0.0 < room <= LARGEST_EXPONENT:
        return room > LARGEST_EXPONENT and chain.spread[t if chain.endless else t - 1] <= room, 0
    found = roll(chain, t, i, j, math.expm1(room), True, most, work)
    return found[9], found[8]


@kernel
def pair_value(chain, t, i, j, guess, work):
    """K of a pair at step t: what is attained, what is proved, the ratio less 1 of the observation, and the depth.

    Newton's steps (Dinkelbach's) from `guess` within a bracket, then rollouts just above the root until one proves F <= 0.
    Where Newton's steps gain little, because leakage gathers over many steps, the middle of the bracket comes next.
    """
    if is_silent(chain, t):
        return 0.0, 0.0, 0.0, 0
    # No step raises what is known: states are told apart at most as well as any two likelihoods before.
    attained, proved = 0.0, chain.spread[t if chain.endless else t - 1] * (1.0 + 4.0 * UNIT)
    best, here, last = 0.0, max(guess, 0.0), np.inf
    proofs = slow = unfinished = 0
    deepest = 0
    for _ in range(MOST_ROUNDS):
        low, high, slope, _, summed, summed_high, error, backward, depth, _ = roll(
            chain, t, i, j, here, False, LONGEST, work
        )
        below, above = both_sides(low, high, slope, summed, summed_high, error, backward, here)
        if below > attained:
            attained, best = below, here
        deepest = max(deepest, depth)
        proved = min(proved, above)
        unfinished += chain.endless and depth >= LONGEST
        top = math.expm1(min(proved, LARGEST_EXPONENT))
        by_sums = error < backward * (1.0 + here) * slope
        newton = min(max(here + (summed if by_sums else low) / slope, 0.0), top)
        room = 2.0 * (max(summed_high, 0.0) + error) / slope + 4.0 * UNIT * here
        if not room < backward * (1.0 + here):
            room = max(high, 0.0) / slope + 8.0 * UNIT * (1.0 + here)
        if not newton >= 0.0:  # where coefficients overflowed
            newton = top
        step = abs(newton - here)
        known_to = min(backward, error / slope + 4.0 * UNIT * here)
        left = proved - attained
        if left <= TIGHT * proved or unfinished >= MOST_UNFINISHED:
            break
        if step <= max(CLOSE * here, known_to):
            if proofs > 1 and left <= 4.0 * known_to or proofs >= MOST_PROOFS:
                break
            # From the fourth attempt on rounding has hidden the root: the attempts spread out.
            here = min(here + room * 2.0 ** (proofs if proofs < 4 else 6 * (proofs - 3)), top)
            proofs += 1
        elif step <= SLOW * last:
            here = newton
        else:
            slow += 1
            middle = math.expm1(min(0.5 * (proved + attained), LARGEST_EXPONENT))
            here = min(middle, newton + 2.0 ** min(4 * slow, 1000) * step)
        last = step
    return min(attained, proved), proved, best, deepest


@kernel
def static_bound(chain, i, j, depth, work):
    """Upper bound of K of a pair from so many steps back; inf where none is found. Within some per cent of what is possible."""
    if is_silent(chain, 0):
        return 0.0
    rho = math.expm1(min(0.5 * chain.spread[0], 30.0))
    for _ in range(3):
        found = roll(chain, 0, i, j, rho, False, depth, work)
        moved = rho + found[1] / found[3]
        rho = moved if 0.0 <= moved < np.inf else rho
    rho = rho * (1.0 + 1e-3) + 4.0 * UNIT
    found = roll(chain, 0, i, j, rho, True, depth, work)
    return math.log1p(rho) * RISE if found[9] else np.inf


@kernel
def static_bounds(chain, depth, first, last, found):
    """Fill rows first .. last - 1 of `found`, shape (n, n), with `static_bound`."""
    work = np.empty((4, chain.n))
    for i in range(first, last):
        for j in range(chain.n):
            found[i, j] = static_bound(chain, i, j, depth, work) if i != j else 0.0


@kernel
def weigh(chains, n_sides, steps, i, j, room, static, guesses, work, depths):
    """Leakage that arrives at a pair from one or two sides: attained and proved, or -1 and 0 where it is proved to be below room.

    `depths` keeps the greatest depth of each side; `guesses`, shape (2, n, n), ratios less 1 of the last values.
    """
    if room > 0.0:
        if n_sides == 1:
            below, depth = stays_below(chains[0], steps[0], i, j, room, LONGEST, work)
            depths[0] = max(depths[0], depth)
        else:
            past, future = math.log1p(guesses[0, i, j]), math.log1p(guesses[1, i, j])
            if past + future <= 0.0:
                past, future = min(static[0, i, j], LARGEST_EXPONENT), min(static[1, i, j], LARGEST_EXPONENT)
            share = past / (past + future) if past + future > 0.0 else 0.5
            below, depth = stays_below(chains[0], steps[0], i, j, share * room, LONGEST, work)
            depths[0] = max(depths[0], depth)
            if below:
                below, depth = stays_below(chains[1], steps[1], i, j, room - share * room, LONGEST, work)
                depths[1] = max(depths[1], depth)
        if below:
            return -1.0, 0.0
    attained = proved = 0.0
    for side in range(n_sides):
        left = room - proved
        guess = guesses[side, i, j]
        if side == 1 or n_sides == 1:
            if n_sides == 2 and left > 0.0:
                below, depth = stays_below(chains[1], steps[1], i, j, left, LONGEST, work)
                depths[1] = max(depths[1], depth)
                if below:
                    return -1.0, 0.0
            guess = max(guess, math.expm1(min(left, LARGEST_EXPONENT)))
        low, high, rho, depth = pair_value(chains[side], steps[side], i, j, guess, work)
        guesses[side, i, j] = rho
        depths[side] = max(depths[side], depth)
        attained += low
        proved += high
    return attained, proved


@kernel
def largest(chains, n_sides, steps, lift, drop, floor, limit, ceiling, static, guesses, candidates, work, depths):
    """The largest leakage over pairs of what arrives from one or two sides and the step's own part.

    Branch and bound: candidates (pairs ``i n + j``) are computed first; any other pair is first compared with the best so far
    by its static bound, then by signs.

    Parameters
    ----------
    floor : float
        Pairs that do not exceed it need not be computed; -1 if there is none.
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
    best, top, chosen = floor, 0.0, 1
    depths[:] = 0
    n_first = candidates.size
    for place in range(n_first + n * n):
        pair = candidates[place] if place < n_first else place - n_first
        i, j = pair // n, pair % n
        if i == j:
            continue
        own = lift[i if wide else 0] - drop[j if wide else 0]
        room = -1.0
        if place >= n_first:
            if best >= ceiling * DONE_BEFORE:
                return min(best, ceiling), ceiling, chosen
            room = best * LEVEL_ROOM - own
            known = static[0, i, j]
            if n_sides == 2:
                known += static[1, i, j]
            if known <= room:
                continue
            again = False
            for k in range(n_first):
                again = again or candidates[k] == pair
            if again:
                continue
        low, high = weigh(chains, n_sides, steps, i, j, room, static, guesses, work, depths)
        if low < 0.0:
            continue
        low, high = (own + low) * (1.0 - 4.0 * UNIT), (own + high) * (1.0 + 4.0 * UNIT)
        top = max(top, high)
        if low > best:
            best, chosen = low, pair
            if best > limit:
                return best, np.inf, chosen
    proved = min(max(top, best * RISE), ceiling)
    return min(best, proved), proved, chosen


@kernel
def series(chain, lift, drop, ceiling, runs, static, guesses, likely, attained, proved, pairs, first, last):
    """Fill steps first .. last - 1 of the largest leakage from one side: attained, proved and the pair, shape (T,).

    Where budgets and matrices are those of the steps that the last rollouts reached (`runs`: first step of each step's run),
    and spreads too, the same rollouts prove the same of the next step, up to the end of the run. Return the next step, which
    may be beyond `last`.
    """
    n_steps, n = lift.shape[0], chain.n
    work, depths = np.empty((4, n)), np.zeros(2, np.int64)
    candidates = np.append(likely, likely[:1])
    t = first
    while t < last:
        if t:
            candidates[-1] = pairs[t - 1]
        attained[t], top, pairs[t] = largest(
            (chain, chain), 1, (t, t), lift[t], drop[t], -1.0, np.inf, ceiling[t], static, guesses, candidates, work, depths
        )
        proved[t] = top
        set_spread(chain, t, top * SPREAD_ROOM)
        if t:
            candidates = candidates[-1:]
        depth = depths[0]
        t += 1
        if depth > 0 and t - 1 - depth >= max(1, runs[t - 1]):
            window = chain.spread[t - 1 - depth : t - 1]
            # What a bound that was known lowered may be higher later.
            rolled = np.inf if top >= ceiling[t - 1] else top
            if max(window.max() / SPREAD_ROOM, top) * (1.0 + 8.0 * UNIT) <= window.min():
                while t < n_steps and runs[t] == runs[t - 1] and proved[t - 1] * (1.0 + 8.0 * UNIT) <= window.min():
                    attained[t], proved[t], pairs[t] = attained[t - 1], min(rolled, ceiling[t]), pairs[t - 1]
                    set_spread(chain, t, proved[t] * SPREAD_ROOM)
                    t += 1
    return t


@kernel
def both_series(past, future, lift, drop, ceiling, runs, static, before, after, attained, proved, pairs, first, last):
    """Fill steps first .. last - 1 of the largest leakage from both sides. `future` counts steps from the last one on.

    `before` and `after` are the pairs of each side's largest, in order of time. `runs`, shape (2, T): as in `series`, for
    each side in its own order of steps.
    """
    n_steps, n = lift.shape[0], past.n
    work, depths = np.empty((4, n)), np.zeros(2, np.int64)
    guesses, candidates = np.zeros((2, n, n)), np.empty(3, np.int64)
    t = first
    while t < last:
        candidates[0], candidates[1], candidates[2] = before[t], after[t], pairs[t - 1] if t > first else before[t]
        n_first = 1
        for k in range(1, 3):
            if candidates[k] != candidates[0] and (k == 1 or candidates[2] != candidates[1]):
                candidates[n_first] = candidates[k]
                n_first += 1
        ahead = n_steps - 1 - t
        attained[t], top, pairs[t] = largest(
            (past, future), 2, (t, ahead), lift[t], drop[t], -1.0, np.inf, ceiling[t], static, guesses, candidates[:n_first],
            work, depths,
        )  # fmt: skip
        proved[t] = top
        t += 1
        begin, end = t - 1 - depths[0], ahead - depths[1]
        if min(depths[0], depths[1]) > 0 and begin >= max(1, runs[0, t - 1]) and end >= max(1, runs[1, ahead]):
            rolled = np.inf if top >= ceiling[t - 1] else top
            old, new = past.spread[begin : t - 1], future.spread[end:ahead]
            room_past, room_future = old.min() * SPREAD_ROOM, new.min() * SPREAD_ROOM
            fits = old.max() * (1.0 + 8.0 * UNIT) <= room_past and new.max() * (1.0 + 8.0 * UNIT) <= room_future
            while fits and t < last and runs[0, t] == runs[0, t - 1]:
                end -= 1
                fits = end >= max(1, runs[1, ahead])
                fits = fits and past.spread[t - 1] * (1.0 + 8.0 * UNIT) <= room_past
                fits = fits and future.spread[max(end, 0)] * (1.0 + 8.0 * UNIT) <= room_future
                if fits:
                    attained[t], proved[t], pairs[t] = attained[t - 1], min(rolled, ceiling[t]), pairs[t - 1]
                    t += 1


@kernel
def supremum(chain, lift, drop, ceiling, static, guesses, likely, work, depths):
    """Supremum of the leakage from one side over an infinite horizon: attained, proved, pair. Sets the chain's spread.

    Suppose that no horizon's leakage exceeds a level, and let rollouts end in likelihoods within that level of one another. If
    what they prove for every pair is at most the level, the supposition holds by induction on the horizon. A finite `ceiling`
    needs no supposition. Without a certificate the ceiling is returned.
    """
    n = chain.n
    width = lift.max() - drop.min()
    supposed = ceiling if ceiling < SMALL else min(ceiling, FIRST_LEVEL * width)
    candidates = likely.copy()
    best, top, pair, unfinished = 0.0, np.inf, likely[0], 0
    for _ in range(MOST_LEVELS):
        set_spread(chain, 0, supposed)
        static_bounds(chain, STATIC_DEPTH, 0, n, static[0])
        limit = supposed if supposed < ceiling else np.inf
        best, top, pair = largest(
            (chain, chain), 1, (0, 0), lift, drop, -1.0, limit, np.inf, static, guesses, candidates, work, depths
        )
        if top <= supposed or supposed == ceiling:
            top = min(top, ceiling)
            set_spread(chain, 0, min(top, supposed))
            return min(best, top), top, pair
        unfinished += depths[0] >= LONGEST
        if supposed > LARGEST_EXPONENT or unfinished >= MOST_UNFINISHED:
            break
        candidates = np.array([pair])
        supposed = min(ceiling, LEVEL_RAISED * max(best, supposed))
    set_spread(chain, 0, np.inf)
    return best, ceiling, pair
