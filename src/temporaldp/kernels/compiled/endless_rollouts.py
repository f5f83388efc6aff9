"""Rollouts of one pair of values over any number of steps under one release, in machine code.

Notation as in `temporaldp.kernels.rollouts`. Plain differential privacy: at every step every value's factor is anything from 1
to 1 + a, whoever the user is. Likelihoods of any number of earlier steps are within e^spread of one another. More notation:

side      a direction: P, P transposed, a, spread, e^spread, e^spread - 1
v         coefficients of D, rolled with the same factors as c

`side_of` proves on which side of a level K is, with its rounding. `climb` proves nothing: it tells where to ask.
"""

import math

import numpy as np

from temporaldp.kernels.compiled.options import kernel, summing_kernel
from temporaldp.kernels.compiled.pair_knowledge import backward_error
from temporaldp.kernels.compiled.pair_rollouts import ABOVE_SPREAD, ROUGH, at_level, both_through
from temporaldp.kernels.compiled.rollouts import through

UNIT = 2.0**-53

NEGLIGIBLE = 2.0**-46
"""Share of a ratio below which what lies before a step no longer counts."""

TRUSTED = 2.0**-32
"""A sign is trusted without sums where what rounding can have changed is this share of the level in question, or less."""

FEW_ROUNDS, RAISED = 4, 1.0 + 1e-9
"""Steps of Newton's method to a bound without a rollout, which need not be close; and what covers its rounding."""

SHORT_ROWS = 12
"""Values up to which a step is a dot product for each column."""

ABOVE, BELOW, UNDECIDED = range(3)


@summing_kernel
def raise_positive(c, a, raised):
    """``raised = c + a * c`` where c is positive, else c; and the sums of what is positive and negative, both without sign."""
    p = w = 0.0
    for k in range(c.size):
        positive = max(c[k], 0.0)
        p += positive
        w += max(-c[k], 0.0)
        raised[k] = c[k] + a * positive
    return p, w


@summing_kernel
def raise_where_positive(c, a, v):
    """Raise v where c is positive; its sum."""
    size = 0.0
    for k in range(c.size):
        v[k] = v[k] + (a * v[k] if c[k] > 0.0 else 0.0)
        size += v[k]
    return size


@kernel
def side_for(P, epsilon, spread):
    """What rollouts need to know of a direction under a release that repeats, and of all that lies before them."""
    raised = spread * ABOVE_SPREAD
    return P, np.ascontiguousarray(P.T), math.expm1(epsilon), spread, math.exp(raised), math.expm1(raised)


@summing_kernel
def dot_product(g, columns, result):
    """As `through`, a column at a time: faster for short rows."""
    for m in range(g.size):
        first = 0.0
        for k in range(g.size):
            first += g[k] * columns[m, k]
        result[m] = first


@summing_kernel
def dot_products(g, v, columns, new_g, new_v):
    """As `both_through`, a column at a time: faster for short rows."""
    n = g.size
    for m in range(n):
        first = second = 0.0
        for k in range(n):
            first += g[k] * columns[m, k]
            second += v[k] * columns[m, k]
        new_g[m], new_v[m] = first, second


@kernel
def bound_without_rollout(side, i, j):
    """K at most, in nats: what one step can make of likelihoods that are within the spread of one another."""
    P, _, _, spread, _, excess = side
    n = P.shape[0]
    rho = value = 0.0
    for _ in range(FEW_ROUNDS):
        value, slope = -rho, 1.0
        for k in range(n):
            c = P[i, k] - (1.0 + rho) * P[j, k]
            if c > 0.0:
                value += excess * c
                slope += excess * P[j, k]
        rho = max(rho + value / slope, 0.0)
    value = -rho
    for k in range(n):
        value += excess * max(P[i, k] - (1.0 + rho) * P[j, k], 0.0)
    # D is at least 1, so that the root is no further above rho than F is above 0.
    return min(spread, math.log1p(rho + max(value, 0.0)) * RAISED + 16.0 * (n + 4) * UNIT)


@kernel
def side_of(side, i, j, level, most, gamma, scratch):
    """Whether K of a pair is BELOW a level, ABOVE it, or UNDECIDED; and nats by which rounding may have moved the level."""
    P, columns, a, _, growth, excess = side
    c, _, g, _ = scratch
    n = P.shape[0]
    sums = (n + 4) * UNIT
    total, drift, error = at_level(P, i, j, level, gamma, c)
    exact = 8.0 * UNIT * level  # the level and its ratio are rounded
    for depth in range(most):
        p, w = raise_positive(c, a, g)
        add = a * p
        error += a * (drift + 2.0 * sums * (p + w))
        bound = error + 4.0 * UNIT * abs(total)
        eta = backward_error(n, gamma, depth + 1)
        trusted = eta <= TRUSTED * level
        if total + excess * p + bound + excess * drift <= 0.0:
            return BELOW, exact
        if growth * p - w <= 0.0 and trusted:
            return BELOW, exact + eta
        if total + add > bound:
            return ABOVE, exact
        if p + add - w > 0.0 and trusted:
            return ABOVE, exact + eta
        if n <= SHORT_ROWS:
            dot_product(g, columns, c)
        else:
            through(g, P, c)
        drift = (1.0 + a) * drift + 2.0 * gamma * (p + add + w)
        error += UNIT * abs(total)
        total += add
    return UNDECIDED, 0.0


@kernel
def climb(side, i, j, rho, most, scratch):
    """One step of Newton's method from rho: the ratio, less 1, of an observation that is best for rho.

    The rollout ends where the sign is clear, or what lies before no longer counts; further outputs say nothing.
    """
    P, columns, a, _, _, excess = side
    c, v, g, spare = scratch
    n = P.shape[0]
    for k in range(n):
        c[k] = P[i, k] - (1.0 + rho) * P[j, k]
        v[k] = P[j, k]
    total, size = -rho, 1.0
    for _ in range(most):
        p, w = raise_positive(c, a, g)
        size = raise_where_positive(c, a, v)
        total = p + a * p - w
        all_positive = w <= p * NEGLIGIBLE
        if all_positive or excess * p <= max(ROUGH * abs(total), NEGLIGIBLE * rho * size):
            break
        if n <= SHORT_ROWS:
            dot_products(g, v, columns, c, spare)
        else:
            both_through(g, v, P, c, spare)
        v, spare = spare, v
    return max(rho + total / size, 0.0)
