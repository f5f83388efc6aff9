"""The exact leakage by other ways than the product's. Nothing here is imported from temporaldp.

- every mechanism enumerated: each output's likelihood at a corner of its box, all combinations of all steps;
- the sign rule to 60 digits, by bisection alone;
- one observation replayed, and the sign rule evaluated, in rational arithmetic: a lower and an upper bound that are proved.

Throughout, the output of step s says between ``exp(low[s, k])`` and ``exp(high[s, k])`` for value k, each value by itself: for
an epsilon-DP release low is 0 and high is epsilon. Where a function takes one direction only, the steps run towards the value
that is asked about: step 0 is the furthest away. ``matrices[s]`` belongs to the transition out of step s: row = the value one
step nearer, column = the value at step s. For backward leakage these are the backward matrices in order of time; for
forward leakage the forward matrices, and the boxes, in reverse.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

DIGITS = 60
CLOSE = Decimal(10) ** -18
"""How closely the sign rule is bisected, in nats: absolutely, and a hundredth of it relatively."""


def backward_matrices(P, pi, n_times):
    """The backward matrix of every transition, by Bayes' rule, of a chain with one forward matrix."""
    for _ in range(n_times - 1):
        joint = pi[:, None] * P
        pi = joint.sum(axis=0)
        yield joint.T / pi[:, None]


def boxes_of(epsilons, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Low and high of epsilon-DP releases, shape (T, n) each."""
    high = np.repeat(np.asarray(epsilons, float)[:, None], n, axis=1)
    return np.zeros_like(high), high


# Every mechanism


def enumerated_boxes(backward, forward, low, high) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """BPL, FPL and TPL of the definition at each step: the largest over all corners of all boxes, and all pairs of values.

    ``backward[t][y, x] = Pr(x at t | y at t + 1)`` and ``forward[t][x, y] = Pr(y at t + 1 | x at t)``, one for each of T - 1
    transitions, or None where nothing arrives. The ratio of two likelihoods is linear-fractional in each factor of each
    step, so that it is largest at a corner.
    """
    low, high = np.asarray(low, float), np.asarray(high, float)
    n = low.shape[1]
    past = enumerated_arrivals(backward, low, high)
    future = enumerated_arrivals(None if forward is None else forward[::-1], low[::-1], high[::-1])[::-1]
    own = high[:, :, None] - low[:, None, :]
    apart = ~np.eye(n, dtype=bool)
    sums = (past + own, own + future, past + own + future)
    bpl, fpl, tpl = (one[:, apart].max(axis=1) for one in sums)
    return bpl, fpl, tpl


def enumerated_arrivals(matrices, low, high) -> np.ndarray:
    """What arrives at each step from all steps before it, shape (T, n, n): entry [t, i, j] tells i from j."""
    n_steps, n = low.shape
    found = np.zeros((n_steps, n, n))
    if matrices is None:
        return found
    likelihoods = np.ones((1, n))
    for s in range(n_steps - 1):
        joint = likelihoods[:, None, :] * corners(low[s], high[s])[None, :, :]
        likelihoods = joint.reshape(-1, n) @ np.asarray(matrices[s]).T
        for i, j in itertools.permutations(range(n), 2):
            found[s + 1, i, j] = np.log(np.max(likelihoods[:, i] / likelihoods[:, j]))
    return found


def corners(low, high) -> np.ndarray:
    """Likelihoods at the corners of one step's box, shape (up to 2^n, n)."""
    sides = [np.unique(np.exp([a, b])) for a, b in zip(low, high, strict=True)]
    return np.array(list(itertools.product(*sides)))


# The sign rule to 60 digits


def defined_by_sign_rule(matrices, low, high) -> np.ndarray:
    """What arrives after all of m steps, shape (n, n), by bisection with 60 digits: within 1e-18 nats.

    One matrix for each step. The matrices are taken as they are, to the digit.
    """
    n = len(matrices[0])
    with localcontext() as context:
        context.prec = DIGITS
        rows = [np.array([[Decimal(float(p)) for p in row] for row in np.asarray(matrix)]) for matrix in matrices]
        lows, highs = ([[Decimal(float(v)).exp() for v in step] for step in box] for box in (low, high))
        largest = sum(Decimal(float(np.max(h) - np.min(w))) for w, h in zip(low, high, strict=True))
        found = np.zeros((n, n))
        for i, j in itertools.permutations(range(n), 2):
            below, above = -largest - CLOSE, largest + CLOSE
            while above - below > CLOSE + abs(above) * Decimal(10) ** -20:
                middle = (below + above) / 2
                positive = _sign_rule(rows, lows, highs, rows[-1][i] - middle.exp() * rows[-1][j]) > 0
                below, above = (middle, above) if positive else (below, middle)
            found[i, j] = float((below + above) / 2)
        return found


def _sign_rule(rows, lows, highs, c):
    """The largest N - r D over all observations, from the coefficients c at the nearest step."""
    for s in range(len(rows) - 1, -1, -1):
        c = np.array([k * (highs[s][v] if k > 0 else lows[s][v]) for v, k in enumerate(c)])
        c = c @ rows[s - 1] if s else c
    return sum(c)


def temporal_by_sign_rule(backward, forward, epsilons) -> np.ndarray:
    """TPL of every step of epsilon-DP releases, shape (T,), by the sign rule to 60 digits.

    Each direction is one matrix, or one for each of T - 1 transitions in order of time.
    """
    n_steps, n = len(epsilons), len(backward[0])
    backward, forward = (np.broadcast_to(one, (n_steps - 1, n, n)) for one in (backward, forward))
    low, high = boxes_of(epsilons, n)
    found = np.zeros(n_steps)
    for t in range(n_steps):
        past = defined_by_sign_rule(backward[:t], low[:t], high[:t]) if t else np.zeros((n, n))
        after = slice(n_steps - 1, t, -1)
        future = defined_by_sign_rule(forward[t:][::-1], low[after], high[after]) if t < n_steps - 1 else 0.0
        found[t] = epsilons[t] + (past + future)[~np.eye(n, dtype=bool)].max()
    return found


# Rational arithmetic


def normalised(matrix) -> list[list[Fraction]]:
    """The rows divided by their exact sums."""
    rows = [[Fraction(float(p)) for p in row] for row in np.asarray(matrix)]
    return [[p / sum(row) for p in row] for row in rows]


def exponential(value) -> tuple[Fraction, Fraction]:
    """Two rationals with e^value between them, 1e-58 apart, relatively; value is a float or a Fraction."""
    value = Fraction(value)
    if value == 0:
        return Fraction(1), Fraction(1)
    with localcontext() as context:
        context.prec = DIGITS + 20
        exponent = Decimal(value.numerator) / Decimal(value.denominator)
        middle = Fraction(exponent.exp())
    # The exponent is right to 80 digits, and so is the exponential (the decimal module rounds it correctly).
    slack = Fraction(1, 10 ** (DIGITS - 2)) * (1 + abs(value))
    return middle * (1 - slack), middle * (1 + slack)


def rational_ratio(matrices, raised, low, high, pair) -> tuple[Fraction, Fraction]:
    """N/D of one observation from below and from above: its likelihood for pair[0] over that for pair[1].

    ``raised[s, k]``: whether the output of step s says the most for value k that it can (else the least). Rows are
    normalised exactly.
    """
    below = above = [Fraction(1)] * len(np.asarray(matrices[0]))
    for s, matrix in enumerate(matrices):
        factors = [exponential(high[s][k] if raised[s][k] else low[s][k]) for k in range(len(below))]
        rows = normalised(matrix)
        below, above = (
            _product(rows, [x * factor[side] for x, factor in zip(likelihood, factors, strict=True)])
            for side, likelihood in enumerate((below, above))
        )
    i, j = pair
    return below[i] / above[j], above[i] / below[j]


def _product(rows, x):
    return [sum(p * v for p, v in zip(row, x, strict=True) if p) for row in rows]


def rational_certificate(matrices, low, high, pair, ratio: Fraction) -> Fraction:
    """At least F(ratio), the largest N - ratio D: where this is 0 or less, nothing tells the pair apart by more than log ratio.

    F increases with every coefficient, since all likelihoods are positive; so each is kept from above. Rows are normalised
    exactly.
    """
    every = [normalised(matrix) for matrix in matrices]
    i, j = pair
    c = [q - ratio * d for q, d in zip(every[-1][i], every[-1][j], strict=True)]
    for s in range(len(every) - 1, -1, -1):
        c = [k * (exponential(high[s][v])[1] if k > 0 else exponential(low[s][v])[0]) for v, k in enumerate(c)]
        if s:
            c = _product(zip(*every[s - 1], strict=True), c)
    return sum(c, Fraction(0))


def proved_ratio(matrices, low, high, pair) -> Fraction:
    """The largest N/D that there is, from above and within 1e-40: Dinkelbach's iteration, with a certificate at its end."""
    every = [normalised(matrix) for matrix in matrices]
    factors = [[[exponential(v)[1] for v in step] for step in box] for box in (low, high)]
    ratio = Fraction(0)
    while True:
        c = [q - ratio * d for q, d in zip(every[-1][pair[0]], every[-1][pair[1]], strict=True)]
        raised = [[]] * len(every)
        for s in range(len(every) - 1, -1, -1):
            raised[s] = [k > 0 for k in c]
            c = [k * factors[up][s][v] for v, (k, up) in enumerate(zip(c, raised[s], strict=True))]
            if s:
                c = _product(zip(*every[s - 1], strict=True), c)
        better = rational_ratio(matrices, raised, low, high, pair)[1] * (1 + Fraction(1, 10**41))
        if better <= ratio * (1 + Fraction(1, 10**41)):
            break
        ratio = Fraction(math.ceil(better * 2**160), 2**160)  # short numbers, from above
    assert rational_certificate(matrices, low, high, pair, ratio) <= 0
    return ratio
