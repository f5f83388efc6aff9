"""Rollouts of one pair of values from one step, in machine code.

Notation as in `temporaldp.kernels.rollouts` and `temporaldp.kernels.compiled.pair_knowledge`. Plain differential privacy: at
step s every value's factor is anything from 1 to 1 + h_s, whoever the user is. More notation:

pair      i n + j
constant  whether a direction's budgets are VARIED, CONSTANT, or SETTLED

*Where budgets are constant, a rollout from the last step passes through the answers of all earlier ones:* after d steps its
sum is F of the step d. Neighbouring steps that share a piece of F on which it is linear need no rollouts of their own, the
others mostly one.

*Where leakage has settled,* the last row of a direction stands for its own step and all later ones, however many: what is
attained there is attained later too, since earlier outputs may say nothing; and what is proved there rests on bounds on the
likelihoods of any number of earlier steps, which that row holds as its spread.
"""

import math

import numpy as np

from temporaldp.kernels.compiled.options import kernel
from temporaldp.kernels.compiled.pair_knowledge import (
    ATTAINED,
    ATTEMPTS,
    DONE,
    LOW,
    NEAREST,
    NEWTON,
    NOISE,
    PROVED,
    ROOM,
    ROUNDS,
    backward_error,
    chord,
    note,
    upper,
)  # fmt: skip
from temporaldp.kernels.compiled.rollouts import through

UNIT = 2.0**-53

VARIED, CONSTANT, SETTLED = range(3)

NEGLIGIBLE, SHARE, TIGHT, CLOSE = 2.0**-52, 2.0**-42, 2.0**-42, 2.0**-40
"""As in `temporaldp.kernels.rollouts`: NEGLIGIBLE, BACKWARD_SHARE, TIGHT and CLOSE."""

MOST_ROUNDS, NEWTON_ONLY, MOST_ATTEMPTS = 100, 10, 3
"""Rollouts of one pair at one step; those after which every second one bisects; and those just above the root for a proof."""

BLURRED = 3.0
"""Both sides are as close as rounding lets them be where they are within so many times the blur at the root."""

NEAR = 0.25
"""A rollout within this share of the root tells how much rounding blurs it there."""

ROUGH = 2.0**-6
"""A rollout ends where what lies before can change F by this share of it: Newton's steps gain about as much."""

ROUGH_DEPTH, ROUGH_ROUNDS = 2, 3
"""Steps and rollouts of a bound that holds at every step of a pair."""

ABOVE_SPREAD = 1.0 + 1e-9
"""Spreads are raised by this before e^spread is taken, so that its rounding does not matter."""


@kernel
def both_through(g, v, P, new_g, new_v):
    """``g @ P`` and ``v @ P``, with the sums of `through`."""
    n = P.shape[0]
    for k in range(n):
        new_g[k] = new_v[k] = 0.0
    whole = n - n % 8
    for k in range(0, whole, 8):
        a, b, c, d, e, f, h, i = g[k], g[k + 1], g[k + 2], g[k + 3], g[k + 4], g[k + 5], g[k + 6], g[k + 7]
        z, y, x, w, u, t, s, r = v[k], v[k + 1], v[k + 2], v[k + 3], v[k + 4], v[k + 5], v[k + 6], v[k + 7]
        for m in range(n):
            first, second, third, fourth = P[k, m], P[k + 1, m], P[k + 2, m], P[k + 3, m]
            left_g, left_v = (
                (a * first + b * second) + (c * third + d * fourth),
                (z * first + y * second) + (x * third + w * fourth),
            )
            first, second, third, fourth = P[k + 4, m], P[k + 5, m], P[k + 6, m], P[k + 7, m]
            new_g[m] += left_g + ((e * first + f * second) + (h * third + i * fourth))
            new_v[m] += left_v + ((u * first + t * second) + (s * third + r * fourth))
    if n - whole >= 4:
        a, b, c, d = g[whole], g[whole + 1], g[whole + 2], g[whole + 3]
        e, f, h, i = v[whole], v[whole + 1], v[whole + 2], v[whole + 3]
        for m in range(n):
            first, second, third, fourth = P[whole, m], P[whole + 1, m], P[whole + 2, m], P[whole + 3, m]
            new_g[m] += (a * first + b * second) + (c * third + d * fourth)
            new_v[m] += (e * first + f * second) + (h * third + i * fourth)
        whole += 4
    for k in range(whole, n):
        a, e = g[k], v[k]
        for m in range(n):
            new_g[m] += a * P[k, m]
            new_v[m] += e * P[k, m]


@kernel
def stands_for_later(constant, t, n_rows):
    """Whether row t stands for all later steps too."""
    return constant >= SETTLED and t == n_rows - 1


@kernel
def memory(P, i, j, h, growth, most, scratch):
    """Steps back after which what lies before does not change this pair's answer; `most` if that is not so by then."""
    c, v, g, spare = scratch
    n = P.shape[0]
    rho, depth = h, 0
    for _ in range(NEWTON_ONLY):
        for k in range(n):
            c[k] = P[i, k] - (1.0 + rho) * P[j, k]
            v[k] = P[j, k]
        depth, low, slope = 0, 0.0, 1.0
        while depth < most:
            p = w = slope = 0.0
            for k in range(n):
                positive = max(c[k], 0.0)
                p += positive
                w += max(-c[k], 0.0)
                g[k] = c[k] + h * positive
                v[k] *= 1.0 + (h if c[k] > 0.0 else 0.0)
                slope += v[k]
            low = p + h * p - w
            depth += 1
            unknown = (growth - 1.0 - h) * p if p > 0.0 else 0.0
            if unknown <= NEGLIGIBLE * rho * slope or unknown <= -ROUGH * low or w <= ROUGH * p:
                break
            both_through(g, v, P, c, spare)
            v, spare = spare, v
        step = low / slope
        rho = max(rho + step, UNIT)
        if abs(step) <= CLOSE * rho:
            break
    return depth


@kernel
def roll(P, way, constant, steps, t, i, j, rho, S, gamma, scratch):
    """One rollout from step t; all earlier steps learn from it where budgets are constant."""
    h, _, growth, excess = steps
    for_ever, noted = stands_for_later(constant, t, S.shape[0]), constant > VARIED
    c, v, g, spare = scratch
    n = P.shape[0]
    sums = (n + 4) * UNIT
    scale = 1.0 / (1.0 + rho)
    apart = 0.0
    for k in range(n):
        q, d = P[i, k], P[j, k]
        c[k] = (q - d) * scale - (rho * scale) * d
        v[k] = d * scale
        apart += abs(q - d)
    total, drift, error = -rho * scale, 4.0 * gamma * (apart + rho) * scale, UNIT * rho * scale
    all_raised = False
    p = w = slope = add = 0.0
    for depth in range(t):
        s = t - 1 - depth
        a = h[way, s]
        if all_raised:  # whatever is positive everywhere stays so: its sum is all that changes
            p, slope = p + add, slope * (1.0 + a)
        else:
            p = w = slope = 0.0
            for k in range(n):
                positive = max(c[k], 0.0)
                p += positive
                w += max(-c[k], 0.0)
                g[k] = c[k] + a * positive
                v[k] *= 1.0 + (a if c[k] > 0.0 else 0.0)
                slope += v[k]
        add = a * p
        low = p + add - w
        error += a * (drift + 2.0 * sums * (p + w))
        eta = backward_error(n, gamma, depth + 1)
        bound = error + 4.0 * UNIT * abs(total)
        end = s == 0 and not for_ever
        if end or (noted and s > 0):
            note(S[depth + 1], rho, low, low, slope, total + add, total + add, bound, eta)
        if end:
            return
        before = t if for_ever else s
        high = growth[way, before] * p - w if p > 0.0 else -w
        unknown = high - low
        if s == 0 or unknown <= NEGLIGIBLE * rho * slope or unknown <= ROUGH * low or unknown <= -ROUGH * high:
            summed_high = total + excess[way, before] * p if p > 0.0 else total
            bound += excess[way, before] * drift
            for other in range(depth + 2 if noted and s > 0 else t, t + 1):
                note(S[other], rho, low, high, slope, total + add, summed_high, bound, eta)
            return
        all_raised = w == 0.0
        if not all_raised:
            both_through(g, v, P, c, spare)
            v, spare = spare, v
        drift = (1.0 + a) * drift + 2.0 * gamma * (p + add + w)
        error += UNIT * abs(total)
        total += add


@kernel
def improve(P, way, constant, steps, t, pair, guess, S, gamma, scratch):
    """One more rollout for a pair at step t, if there is any use in one; else both sides of K are written down."""
    known = S[t]
    n = P.shape[0]
    before = steps[1][way, t if stands_for_later(constant, t, S.shape[0]) else t - 1]
    proved = min(upper(known), before * (1.0 + 4.0 * UNIT))
    low = math.log1p(known[LOW])
    left = proved - low
    # How far rounding blurs the root: less than it blurs a rollout far from it.
    near = abs(known[NEWTON] - known[NEAREST]) <= NEAR * known[NEWTON]
    blur = known[NOISE] / (1.0 + known[LOW]) if near else 0.0
    done = left <= max(TIGHT * proved, BLURRED * blur) or known[ROUNDS] >= MOST_ROUNDS
    rho = newton = known[NEWTON]
    if known[NEAREST] < 0.0:
        rho = guess
    elif abs(newton - known[NEAREST]) <= CLOSE * newton:
        done = done or left <= 1.5 * BLURRED * blur or known[ATTEMPTS] >= MOST_ATTEMPTS
        rho = known[NEAREST] + known[ROOM] * 2.0 ** known[ATTEMPTS]
        known[ATTEMPTS] += 1.0
    elif known[ROUNDS] > NEWTON_ONLY and known[ROUNDS] % 2.0 == 0.0:
        rho = math.expm1(0.5 * (low + proved))
    if done:
        known[PROVED] = proved
        known[ATTAINED] = min(max(low * (1.0 - 8.0 * UNIT), 0.0), proved)
        known[DONE] = 1.0
        return
    known[ROUNDS] += 1.0
    roll(P, way, constant, steps, t, pair // n, pair % n, rho, S, gamma, scratch)


@kernel
def solve(P, way, constant, steps, t, pair, guess, S, gamma, scratch):
    """K of a pair at a step at which something arrives: fields ATTAINED and PROVED."""
    while S[t, DONE] == 0.0:
        improve(P, way, constant, steps, t, pair, guess, S, gamma, scratch)


@kernel
def solve_after(P, way, constant, steps, step, pair, guess, S, gamma, scratch):
    """A pair at all later steps, if a rollout serves them all: from the last one down, so that each learns from those above."""
    if constant > VARIED:
        for t in range(S.shape[0] - 1, step, -1):
            if steps[1][way, t - 1] > 0.0:
                solve(P, way, constant, steps, t, pair, guess, S, gamma, scratch)
                guess = S[t, LOW]


@kernel
def at_level(P, i, j, level, gamma, c):
    """Write the coefficients c of D e^-level for a pair; their sum, and what rounding may have moved in them and in it."""
    rho = math.expm1(level)
    scale = 1.0 / (1.0 + rho)
    apart = 0.0
    for k in range(P.shape[0]):
        q, d = P[i, k], P[j, k]
        c[k] = (q - d) * scale - (rho * scale) * d
        apart += abs(q - d)
    return -rho * scale, 4.0 * gamma * (apart + rho) * scale, UNIT * rho * scale


@kernel
def stays_below(P, way, constant, steps, t, pair, level, gamma, scratch):
    """Nats above `level` that K of a pair at step t may be for rounding, inf where it is not seen to stay below; until when.

    Where budgets are constant, K grows with t, and a rollout that has passed t goes on until F is above 0: what is found holds
    up to that step. Elsewhere nothing is said about other steps (-1).
    """
    h, spread, growth, excess = steps
    if t == 0 or spread[way, t - 1] <= 0.0:
        return 0.0, -1
    c, _, g, _ = scratch
    n, end = P.shape[0], spread.shape[1] - 1
    i, j = pair // n, pair % n
    sums = (n + 4) * UNIT
    total, drift, error = at_level(P, i, j, level, gamma, c)
    exact = 8.0 * UNIT * level  # the level and its ratio are rounded
    more, until = np.inf, -1
    same = constant > VARIED
    for depth in range(end if same else t):
        s = 0 if same else t - 1 - depth
        a = h[way, s]
        p = w = 0.0
        for k in range(n):
            positive = max(c[k], 0.0)
            p += positive
            w += max(-c[k], 0.0)
            g[k] = c[k] + a * positive
        add = a * p
        error += a * (drift + 2.0 * sums * (p + w))
        bound = error + 4.0 * UNIT * abs(total)
        eta = backward_error(n, gamma, depth + 1)
        trusted = eta <= SHARE * level
        # What lies before: where budgets are constant, likelihoods of any number of steps.
        before = (end if constant >= SETTLED else end - 1) if same else s
        if total + excess[way, before] * p + bound + excess[way, before] * drift <= 0.0:
            return exact, end if same else -1
        if growth[way, before] * p - w <= 0.0 and trusted:
            return exact + eta, end if same else -1
        if depth >= t - 1:
            ends = constant < SETTLED or depth < end - 1  # the last row stands for any number of steps
            if ends and total + add + bound <= 0.0:
                more, until = exact, depth + 1 if same else -1
            elif ends and p + add - w <= 0.0 and trusted:
                more, until = exact + eta, depth + 1 if same else -1
            else:
                return more, until
        elif total + add > bound or (p + add - w > 0.0 and trusted):
            return np.inf, -1
        if depth + 1 < end:
            through(g, P, c)
        drift = (1.0 + a) * drift + 2.0 * gamma * (p + add + w)
        error += UNIT * abs(total)
        total += add
    return more, until


@kernel
def end_of_bound(P, i, j, rho, a, growth, depth, scratch):
    """F at most, and its slope, in units of d, from so many steps like the worst one."""
    c, v, g, spare = scratch
    n = P.shape[0]
    for k in range(n):
        c[k] = P[i, k] - (1.0 + rho) * P[j, k]
        v[k] = P[j, k]
    p = w = slope = 0.0
    for left in range(depth, -1, -1):
        more = a if left else growth - 1.0
        p = w = slope = 0.0
        for k in range(n):
            positive = max(c[k], 0.0)
            p += positive
            w += max(-c[k], 0.0)
            g[k] = c[k] + more * positive
            v[k] *= 1.0 + (more if c[k] > 0.0 else 0.0)
            slope += v[k]
        if left:
            both_through(g, v, P, c, spare)
            v, spare = spare, v
    return growth * p - w, slope


@kernel
def bound_at_all_steps(P, i, j, a, spread, gamma, scratch):
    """K at most, at whatever step, if no step's factor is above 1 + a and no likelihoods further apart than `spread`."""
    n = P.shape[0]
    alike = True
    for k in range(n):
        alike = alike and P[i, k] == P[j, k]
    if alike or spread <= 0.0:
        return 0.0
    growth = math.exp(spread * ABOVE_SPREAD)
    # From the paper's own bound (no steps) on. Newton's steps stay at or below the root: the last is a chord's left end.
    rho = 0.0
    for _ in range(ROUGH_ROUNDS):
        value, slope = end_of_bound(P, i, j, rho, a, growth, 0, scratch)
        rho = max(rho + value / slope, 0.0)
    rho *= 1.0 + 1e-3
    left, f_left, right, f_right = -1.0, 0.0, np.inf, 0.0
    for _ in range(ROUGH_ROUNDS):
        value, slope = end_of_bound(P, i, j, rho, a, growth, ROUGH_DEPTH, scratch)
        if value > 0.0:
            if rho > left:
                left, f_left = rho, value
        elif rho < right:
            right, f_right = rho, value
        newton = max(rho + value / slope, 0.0)
        rho = newton * (1.0 + 1e-3) if value > 0.0 and right == np.inf else newton
    if right == np.inf:
        return spread
    eta = backward_error(n, gamma, ROUGH_DEPTH + 1)
    return min(spread, math.log1p(chord(left, f_left, right, f_right)) * (1.0 + 1e-9) + 4.0 * eta)


@kernel
def set_spread(steps, way, t, value):
    """Likelihoods up to and including step t are within e^value of one another."""
    _, spread, growth, excess = steps
    spread[way, t] = value
    growth[way, t], excess[way, t] = math.exp(value * ABOVE_SPREAD), math.expm1(value * ABOVE_SPREAD)
