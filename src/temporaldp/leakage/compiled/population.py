"""The exact leakage of many users, one after the other, in machine code; notation as in `temporaldp.leakage.rollouts`.

Plain differential privacy: at step s every value's factor is anything from 1 to 1 + h_s, whoever the user is. More notation:

t         a step, counted from the end at which a direction starts; what arrives there comes from t steps, 0 .. t - 1
pair      i n + j
S         what is known of one pair: a row of fields for each step (see below)
K         nats that arrive; r = e^K - 1 is the root of F, a rho above it proves K, one below it is attained
eta       nats by which rounding can have moved a root: the backward error of all steps, and of the last sums

F is convex and decreasing in rho. So from any rollout the tangent leads to a ratio that is attained (Newton's step), and the
chord from a rollout at a rho too low to one at a rho too high leads to a ratio that is proved. *Where budgets are constant, a
rollout from the last step passes through the answers of all earlier ones:* after d steps its sum is F of the step d.
Neighbouring steps that share a piece of F on which it is linear need no rollouts of their own, the others mostly one.

Signs. By sums, ``F <= total + error``. By ratio, what is computed is F of a problem in which N and D differ by a factor within
1 +- eta / 2, so that it bounds the true F at ``(1 + rho) e^eta``; a chord's weights move by eta more.
"""

import math

import numpy as np

from temporaldp.leakage.compiled.options import kernel
from temporaldp.leakage.compiled.rollouts import through

UNIT = 2.0**-53

NEGLIGIBLE, SHARE, TIGHT, CLOSE = 2.0**-52, 2.0**-42, 2.0**-42, 2.0**-40
"""As in `temporaldp.leakage.rollouts`: NEGLIGIBLE, BACKWARD_SHARE, TIGHT and CLOSE."""

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

WINS = 2
"""Where budgets are constant, a pair that leaks most at so many steps in a row is solved at all of them at once."""

BARELY = 1.0 + 1e-11
"""A pair must leak more by this factor to be named in place of another."""

ABOVE_SPREAD = 1.0 + 1e-9
"""Spreads are raised by this before e^spread is taken, so that its rounding does not matter."""

# Fields of S: the root from below; rollouts at rhos too low and too high, by sums and by ratio, each a rho and F in units of d;
# the best Newton step, the rollout closest to it, how far above the root a proof is to be had, and how far rounding blurs it.
LOW, LEFT, F_LEFT, RIGHT, F_RIGHT, RATIO_LEFT, F_RATIO_LEFT, RATIO_RIGHT, F_RATIO_RIGHT = range(9)
NEWTON, NEAREST, ROOM, NOISE, ETA, ROUNDS, ATTEMPTS, DONE, ATTAINED, PROVED, FIELDS = range(9, 20)


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
def backward_error(n, gamma, depth):
    """Eta of rollouts of so many steps."""
    return 2.0 * (gamma * (depth + 1) + 2.0 * (n + 4) * UNIT)


@kernel
def forget(S):
    """Nothing is known of a pair."""
    for t in range(S.shape[0]):
        for field in range(FIELDS):
            S[t, field] = 0.0
        S[t, LEFT] = S[t, RATIO_LEFT] = S[t, NEAREST] = -1.0
        S[t, RIGHT] = S[t, RATIO_RIGHT] = np.inf


@kernel
def note(known, rho, low, high, slope, summed, summed_high, error, eta):
    """Take in what a rollout at rho says about one step: ``low <= F <= high`` but for eta, and the sums but for `error`."""
    if known[DONE] > 0.0:
        return
    above = summed - error
    by_sums = rho + above / (slope * (1.0 + eta if above > 0.0 else 1.0 - eta))
    step = low / slope
    by_ratio = rho + step - eta * (1.0 + max(rho, rho + step) + abs(step))
    known[LOW] = max(known[LOW], by_sums, by_ratio)
    blurred_by_sums = error < eta * slope * (1.0 + rho)
    newton = rho + (summed / slope if blurred_by_sums else step)
    known[NEWTON] = max(known[NEWTON], newton)
    if known[NEAREST] < 0.0 or abs(rho - known[NEWTON]) <= abs(known[NEAREST] - known[NEWTON]):
        known[NEAREST] = rho
        if blurred_by_sums:
            known[ROOM] = 2.0 * (max(summed_high, 0.0) + error) / slope + 4.0 * UNIT * rho
            known[NOISE] = error / slope
        else:
            known[ROOM] = max(high, 0.0) / slope + 8.0 * UNIT * (1.0 + rho)
            known[NOISE] = eta * (1.0 + rho)
    known[ETA] = max(known[ETA], eta)
    value = (summed_high + error) * (1.0 + rho)
    if value > 0.0:
        if rho > known[LEFT]:
            known[LEFT], known[F_LEFT] = rho, value
    elif rho < known[RIGHT]:
        known[RIGHT], known[F_RIGHT] = rho, value
    value = high * (1.0 + rho)
    if value > 0.0:
        if rho > known[RATIO_LEFT]:
            known[RATIO_LEFT], known[F_RATIO_LEFT] = rho, value
    elif rho < known[RATIO_RIGHT]:
        known[RATIO_RIGHT], known[F_RATIO_RIGHT] = rho, value


@kernel
def chord(left, f_left, right, f_right):
    """Where F is at most 0, given what it is at most at two points; at `right` it is at most 0."""
    if left < 0.0 or left >= right:
        return right
    length = right - left
    return min(right, left + length * (f_left / (f_left - f_right)) + 16.0 * UNIT * length)


@kernel
def upper(known):
    """K at most, in nats."""
    found = np.inf
    if known[RIGHT] < np.inf:
        found = math.log1p(chord(known[LEFT], known[F_LEFT], known[RIGHT], known[F_RIGHT]))
    if known[RATIO_RIGHT] < np.inf:
        left, right = known[RATIO_LEFT], known[RATIO_RIGHT]
        root = chord(left, known[F_RATIO_LEFT], right, known[F_RATIO_RIGHT])
        length = right - left if 0.0 <= left < right else 0.0
        found = min(found, math.log1p(root) + known[ETA] * (1.0 + length))
    return found * (1.0 + 8.0 * UNIT)


@kernel
def roll(P, way, constant, steps, t, i, j, rho, S, gamma, scratch):
    """One rollout from step t; all earlier steps learn from it where budgets are constant."""
    h, _, growth, excess = steps
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
    for depth in range(t):
        s = t - 1 - depth
        a = h[way, s]
        p = w = slope = 0.0
        for k in range(n):
            positive = max(c[k], 0.0)
            p += positive
            w += positive - c[k]
            g[k] = c[k] + a * positive
            v[k] *= 1.0 + (a if c[k] > 0.0 else 0.0)
            slope += v[k]
        add = a * p
        low = p + add - w
        error += a * (drift + 2.0 * sums * (p + w))
        eta = backward_error(n, gamma, depth + 1)
        bound = error + 4.0 * UNIT * abs(total)
        if constant or s == 0:
            note(S[depth + 1], rho, low, low, slope, total + add, total + add, bound, eta)
        if s == 0:
            return
        high = growth[way, s] * p - w if p > 0.0 else -w
        unknown = high - low
        if unknown <= NEGLIGIBLE * rho * slope or unknown <= ROUGH * low or unknown <= -ROUGH * high:
            summed_high = total + excess[way, s] * p if p > 0.0 else total
            bound += excess[way, s] * drift
            for other in range(depth + 2 if constant else t, t + 1):
                note(S[other], rho, low, high, slope, total + add, summed_high, bound, eta)
            return
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
    before = steps[1][way, t - 1]
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
    if constant:
        for t in range(S.shape[0] - 1, step, -1):
            if steps[1][way, t - 1] > 0.0:
                solve(P, way, constant, steps, t, pair, guess, S, gamma, scratch)
                guess = S[t, LOW]


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
    rho = math.expm1(level)
    scale = 1.0 / (1.0 + rho)
    apart = 0.0
    for k in range(n):
        q, d = P[i, k], P[j, k]
        c[k] = (q - d) * scale - (rho * scale) * d
        apart += abs(q - d)
    total, drift, error = -rho * scale, 4.0 * gamma * (apart + rho) * scale, UNIT * rho * scale
    exact = 8.0 * UNIT * level  # the level and its ratio are rounded
    more, until = np.inf, -1
    for depth in range(end if constant else t):
        s = 0 if constant else t - 1 - depth
        a = h[way, s]
        p = w = 0.0
        for k in range(n):
            positive = max(c[k], 0.0)
            p += positive
            w += positive - c[k]
            g[k] = c[k] + a * positive
        add = a * p
        error += a * (drift + 2.0 * sums * (p + w))
        bound = error + 4.0 * UNIT * abs(total)
        eta = backward_error(n, gamma, depth + 1)
        trusted = eta <= SHARE * level
        # What lies before: where budgets are constant, likelihoods of any number of steps.
        before = end - 1 if constant else s
        if total + excess[way, before] * p + bound + excess[way, before] * drift <= 0.0:
            return exact, end if constant else -1
        if growth[way, before] * p - w <= 0.0 and trusted:
            return exact + eta, end if constant else -1
        if depth >= t - 1:
            if total + add + bound <= 0.0:
                more, until = exact, depth + 1 if constant else -1
            elif p + add - w <= 0.0 and trusted:
                more, until = exact + eta, depth + 1 if constant else -1
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
            w += positive - c[k]
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


@kernel
def place_of(store, way, pair):
    """A pair's S; an empty one if it has none yet."""
    S, slots, n_slots = store[:3]
    if slots[way, pair] < 0:
        slots[way, pair] = n_slots[way]
        forget(S[way, n_slots[way]])
        n_slots[way] += 1
    return S[way, slots[way, pair]]


@kernel
def known_bound(store, way, pair, t, most):
    """K of a pair at step t at most, by what is known without another rollout."""
    S, slots, _, bounds, until, level = store
    found = min(bounds[way, pair], most)
    if t <= until[way, pair]:
        found = min(found, level[way, pair])
    if slots[way, pair] >= 0:
        known = S[way, slots[way, pair], t]
        found = min(found, known[PROVED] if known[DONE] > 0.0 else upper(known))
    return found


@kernel
def paper_bound(d, x, epsilons, bound):
    """The paper's bound of every step by the vertices of a leakage profile, rounded up: ``L(BPL_{t-1}) + e_t``."""
    arrived = 0.0
    for t in range(epsilons.size):
        if t > 0:
            a = arrived + epsilons[t - 1]
            left = math.exp(-a)
            gain = 0.0
            for vertex in range(d.size):
                gain = max(gain, x[vertex] / (d[vertex] + (1.0 - d[vertex]) * left))
            arrived = min(math.log1p(gain * -math.expm1(-a)), a)
        bound[t] = (arrived + epsilons[t]) * (1.0 + 4.0 * UNIT * (2.0 + t))


@kernel
def begin(P, way, ceiling, steps, store, gamma, scratch):
    """Bounds of all pairs, and the pair with the largest one; nothing else is known."""
    _, slots, n_slots, bounds, until, level = store
    n, n_steps = P.shape[0], ceiling.size
    widest, factor = 0.0, 0.0
    for t in range(n_steps):
        set_spread(steps, way, t, ceiling[t])
        if t < n_steps - 1:
            widest, factor = max(widest, ceiling[t]), max(factor, steps[0][way, t])
    n_slots[way] = 0
    best, largest = 1, -1.0
    for pair in range(n * n):
        slots[way, pair] = until[way, pair] = -1
        bounds[way, pair] = level[way, pair] = 0.0
        if pair % (n + 1):
            bounds[way, pair] = bound_at_all_steps(P, pair // n, pair % n, factor, widest, gamma, scratch)
            if bounds[way, pair] > largest:
                best, largest = pair, bounds[way, pair]
    return best


@kernel
def largest_at(P, way, constant, steps, store, t, first, gamma, scratch):
    """The largest K at a step at which something arrives, both sides, and its pair; the search begins with the pair `first`."""
    bounds, until, level = store[3:]
    n = P.shape[0]
    known = place_of(store, way, first)
    guess = math.expm1(min(bounds[way, first], steps[1][way, t - 1]))
    solve(P, way, constant, steps, t, first, guess, known, gamma, scratch)
    attained, proved, best = known[t, ATTAINED], known[t, PROVED], first
    for pair in range(n * n):
        if bounds[way, pair] <= attained or t <= until[way, pair] or pair % (n + 1) == 0 or pair == first:
            continue
        if known_bound(store, way, pair, t, np.inf) <= attained:
            continue
        more, last = stays_below(P, way, constant, steps, t, pair, attained, gamma, scratch)
        if more < np.inf:
            until[way, pair], level[way, pair] = last, attained + more
            proved = max(proved, attained + more)
            continue
        known = place_of(store, way, pair)
        while known[t, DONE] == 0.0 and upper(known[t]) > attained:
            improve(P, way, constant, steps, t, pair, math.expm1(attained), known, gamma, scratch)
        if known[t, DONE] > 0.0:
            proved = max(proved, known[t, PROVED])
            if known[t, ATTAINED] > attained * BARELY:
                best = pair
            attained = max(attained, known[t, ATTAINED])
    return attained, proved, best


@kernel
def one_way(P, way, constant, epsilons, ceiling, steps, store, arrived, pairs, gamma, scratch):
    """The largest K at every step, both sides: `arrived` (2, T), and the pair that has it, `pairs` (T,)."""
    n_steps = epsilons.size
    best = begin(P, way, ceiling, steps, store, gamma, scratch)
    arrived[0, 0] = arrived[1, 0] = 0.0
    pairs[0] = 1
    set_spread(steps, way, 0, epsilons[0])
    wins = 0
    for t in range(1, n_steps):
        arrived[0, t], arrived[1, t], pairs[t] = 0.0, 0.0, 1
        if steps[1][way, t - 1] > 0.0:
            low, high, pair = largest_at(P, way, constant, steps, store, t, best, gamma, scratch)
            wins, best = wins + 1 if pair == best else 0, pair
            if constant:  # pairs that a rollout of an earlier step has ruled out at this one too
                high = max(high, arrived[1, t - 1])
            if wins == WINS:
                guess, known = math.expm1(store[3][way, best]), place_of(store, way, best)
                solve_after(P, way, constant, steps, t, best, guess, known, gamma, scratch)
            arrived[0, t], arrived[1, t], pairs[t] = low, high, best
        set_spread(steps, way, t, min(ceiling[t], (epsilons[t] + arrived[1, t]) * (1.0 + 4.0 * UNIT)))


@kernel
def test_of(matrices, own, ways, side, constant, steps, store, at, pair, level, gamma, scratch):
    """`stays_below` in one of two directions; what holds at all steps is kept."""
    bounds, way = store[3], ways[side]
    more, lasts = stays_below(matrices[own[side]], way, constant[way], steps, at[side], pair, level, gamma, scratch)
    if more < np.inf and lasts == steps[1].shape[1] - 1:
        bounds[way, pair] = min(bounds[way, pair], level + more)
    return more


@kernel
def stay_below_together(matrices, own, ways, constant, steps, store, at, pair, known, level, gamma, scratch):
    """As `stays_below`, of what arrives from both directions, each of which brings at most what is `known`."""
    near = 0 if at[0] <= at[1] else 1  # the shorter rollout first
    more = np.inf
    if level > known[1 - near]:
        more = test_of(
            matrices, own, ways, near, constant, steps, store, at, pair, level - known[1 - near], gamma, scratch
        )
    if more == np.inf:
        part = level * (known[near] / (known[0] + known[1]))
        more = test_of(matrices, own, ways, near, constant, steps, store, at, pair, part, gamma, scratch)
        if more < np.inf:
            more += test_of(
                matrices, own, ways, 1 - near, constant, steps, store, at, pair, level - part, gamma, scratch
            )
    return more + 16.0 * UNIT * level


@kernel
def solve_together(matrices, own, ways, constant, steps, store, at, pair, most, level, gamma, scratch):
    """Both sides of what arrives about a pair from both directions; -1 and no more than `level` as soon as that is seen."""
    past, future = place_of(store, ways[0], pair)[at[0]], place_of(store, ways[1], pair)[at[1]]
    while past[DONE] == 0.0 or future[DONE] == 0.0:
        high = (
            known_bound(store, ways[0], pair, at[0], most[0]),
            known_bound(store, ways[1], pair, at[1], most[1]),
        )
        if high[0] + high[1] <= level:
            return -1.0, level
        # The direction of which less is known.
        wider = 0 if high[0] - math.log1p(past[LOW]) >= high[1] - math.log1p(future[LOW]) else 1
        if (past[DONE] if wider == 0 else future[DONE]) > 0.0:
            wider = 1 - wider
        way, guess = ways[wider], math.expm1(high[wider])
        known = place_of(store, way, pair)
        improve(matrices[own[wider]], way, constant[way], steps, at[wider], pair, guess, known, gamma, scratch)
    return past[ATTAINED] + future[ATTAINED], past[PROVED] + future[PROVED]


@kernel
def largest_together(matrices, own, ways, constant, steps, store, at, most, first, gamma, scratch):
    """The largest over pairs of what arrives from both directions at a step, both sides, and its pair.

    At most `most` arrives from either; the search begins with the pairs `first`.
    """
    bounds, n = store[3], matrices.shape[1]
    best, attained, proved = -1, -1.0, 0.0
    for pair in first:
        if pair != best:
            low, high = solve_together(
                matrices, own, ways, constant, steps, store, at, pair, most, -1.0, gamma, scratch
            )
            proved = max(proved, high)
            if low > attained:
                best, attained = pair, low
    begun = best
    for pair in range(n * n):
        if bounds[ways[0], pair] + bounds[ways[1], pair] <= attained or pair % (n + 1) == 0 or pair == begun:
            continue
        known = (known_bound(store, ways[0], pair, at[0], most[0]), known_bound(store, ways[1], pair, at[1], most[1]))
        if known[0] + known[1] <= attained:
            continue
        more = stay_below_together(
            matrices, own, ways, constant, steps, store, at, pair, known, attained, gamma, scratch
        )
        if more < np.inf:
            proved = max(proved, attained + more)
            continue
        low, high = solve_together(
            matrices, own, ways, constant, steps, store, at, pair, most, attained, gamma, scratch
        )
        proved = max(proved, high)
        if low > attained * BARELY:
            best = pair
        attained = max(attained, low)
    return attained, proved, best


@kernel
def both_ways(matrices, own, ways, constant, steps, store, arrived, pairs, together, gamma, scratch):
    """The largest over pairs of what arrives from both directions: `together` (2, T), and `pairs` (3, T) at its last row.

    `arrived` (2, 2, T) and the first rows of `pairs` have either direction's own, in its own order of steps.
    """
    spread, n_steps = steps[1], pairs.shape[1]
    favourite, wins = -1, 0
    for k in range(n_steps):
        # The middle first: what holds for all steps there rules out most pairs elsewhere.
        t = (n_steps // 2 + k) % n_steps
        at = (t, n_steps - 1 - t)
        silent = -1
        for side in range(2):
            if at[side] == 0 or spread[ways[side], at[side] - 1] <= 0.0:
                silent = side
        if silent >= 0:
            for row in range(2):
                together[row, t] = arrived[row, 1 - silent, at[1 - silent]]
            pairs[2, t] = pairs[1 - silent, at[1 - silent]]
            continue
        first = (pairs[0, at[0]], pairs[1, at[1]]) if favourite < 0 else (favourite, favourite)
        most = (arrived[1, 0, at[0]], arrived[1, 1, at[1]])
        together[0, t], together[1, t], best = largest_together(
            matrices, own, ways, constant, steps, store, at, most, first, gamma, scratch
        )
        pairs[2, t] = best
        wins, favourite = wins + 1 if best == favourite else 0, best
        if wins == WINS:
            for side in range(2):
                way, known = ways[side], place_of(store, ways[side], best)
                guess = math.expm1(store[3][way, best])
                solve_after(matrices[own[side]], way, constant[way], steps, 0, best, guess, known, gamma, scratch)


@kernel
def write_down(epsilons, arrived, together, found, ceiling, proved, attained, pairs):
    """One user's answers in order of time: each step's own part and what arrives, rounded to the safe side."""
    n_steps = epsilons.size
    for kind in range(3):
        for t in range(n_steps):
            ahead = n_steps - 1 - t
            at = ahead if kind == 1 else t
            if kind == 2:
                low, high = together[0, t], together[1, t]
                most = (ceiling[0, t] + ceiling[1, ahead] - epsilons[t]) * (1.0 + 8.0 * UNIT)
            else:
                low, high, most = arrived[0, kind, at], arrived[1, kind, at], ceiling[kind, at]
            if high <= 0.0:  # nothing arrives
                proved[kind, t] = attained[kind, t] = epsilons[t]
            else:
                proved[kind, t] = min((epsilons[t] + high) * (1.0 + 8.0 * UNIT), most)
                attained[kind, t] = min((epsilons[t] + low) * (1.0 - 8.0 * UNIT), proved[kind, t])
            pairs[kind, t] = found[kind, at]


@kernel
def population(matrices, d, x, starts, past, future, epsilons, gamma, first, last, proved, attained, pairs):
    """Users first .. last - 1.

    Parameters
    ----------
    matrices : array, shape (m, n, n)
        Rows sum to 1, to rounding.
    d, x : array
        Vertices d and q - d of the leakage profiles of all matrices; those of matrix k are ``starts[k] .. starts[k + 1] - 1``.
    starts : int array, shape (m + 1,)
    past, future : int array, shape (users,)
        Number of each user's matrix, -1 where it is unknown.
    epsilons : array, shape (T,)
    gamma : float
        Relative error of an entry in one step.
    proved, attained : array, shape (users, 3, T)
        Filled with both sides of BPL, FPL and TPL.
    pairs : int array, shape (users, 3, T)
        Filled with the pairs that attain them.
    """
    n, n_steps = matrices.shape[1], epsilons.size
    scratch = (np.empty(n), np.empty(n), np.empty(n), np.empty(n))
    own_part, h = np.empty((2, n_steps)), np.empty((2, n_steps))
    constant = np.ones(2, np.bool_)
    for way in range(2):
        for t in range(n_steps):
            own_part[way, t] = epsilons[t if way == 0 else n_steps - 1 - t]
            h[way, t] = math.expm1(own_part[way, t])
            constant[way] = constant[way] and (t == n_steps - 1 or own_part[way, t] == own_part[way, 0])
    turnable = constant[0] and own_part[0, 0] == own_part[1, 0]
    steps = (h, np.empty((2, n_steps)), np.empty((2, n_steps)), np.empty((2, n_steps)))
    store = (
        np.empty((2, n * (n - 1), n_steps, FIELDS)),
        np.empty((2, n * n), np.int64),
        np.empty(2, np.int64),
        np.empty((2, n * n)),
        np.empty((2, n * n), np.int64),
        np.empty((2, n * n)),
    )
    ceiling = np.empty((2, n_steps))
    arrived, together = np.zeros((2, 2, n_steps)), np.zeros((2, n_steps))
    found = np.zeros((3, n_steps), np.int64)
    for user in range(first, last):
        own = (past[user], future[user])
        same = own[0] == own[1] and turnable  # forwards is backwards
        for way in range(2):
            if own[way] < 0:
                arrived[:, way] = 0.0
                ceiling[way] = own_part[way]
                found[way] = 1
            elif way == 1 and same:
                arrived[:, 1], ceiling[1], found[1] = arrived[:, 0], ceiling[0], found[0]
            else:
                vertices = slice(starts[own[way]], starts[own[way] + 1])
                paper_bound(d[vertices], x[vertices], own_part[way], ceiling[way])
                one_way(matrices[own[way]], way, constant[way], own_part[way], ceiling[way], steps, store, arrived[:, way],
                        found[way], gamma, scratch)  # fmt: skip
        if own[0] >= 0 and own[1] >= 0:
            ways = (0, 0 if same else 1)
            both_ways(matrices, own, ways, constant, steps, store, arrived, found, together, gamma, scratch)
        else:
            way = 0 if own[1] < 0 else 1
            for t in range(n_steps):
                at = t if way == 0 else n_steps - 1 - t
                together[0, t], together[1, t], found[2, t] = arrived[0, way, at], arrived[1, way, at], found[way, at]
        write_down(epsilons, arrived, together, found, ceiling, proved[user], attained[user], pairs[user])
