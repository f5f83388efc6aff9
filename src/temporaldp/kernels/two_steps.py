"""Which pairs of values cannot leak more than a level, proved by the two nearest steps for a few passes over pairs of rows.

A rollout of two steps takes a product of a vector and the matrix for every pair: n^4 operations for all of them. Here the
largest part of that product comes from one product of two matrices, which serves all pairs, and a norm bounds the rest.
Notation as in `temporaldp.kernels.rollouts`; h is the factor of a step less 1, a the log spread of likelihoods. For plain
releases and one matrix,

    F(rho) <= -rho + h p + (e^a - 1) p',     p = sum of c+,     p' = sum of (c P + h c+ P)+.

Let ``b = 1' P / n`` be the mean row and ``R = P - 1 b``: its rows sum to 0, and so do its columns. Then
``c+ P = p b + y R`` with ``y = c+ - p / n``. A vector that sums to 0 has half its absolute sum in positive entries, and by
Cauchy and Schwarz ``|z|_1 <= |z / sqrt(b)|_2``, as b sums to 1. So with N the spectral norm of ``R diag(b)^(-1/2)``

    p' <= sum of (c P + h p b)+  +  h N |y|_2 / 2,     c P = (P P)_i - (1 + rho) (P P)_j,

The last term is small where rows are long and much alike, as those of random matrices are.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from temporaldp.kernels.kernels import chosen_kernels, spread
from temporaldp.values import ROUNDOFF as U

FloatArray = NDArray[np.float64]


SQUARINGS = 6
"""Times that a matrix is squared for its norm, which is then too large by a factor of n^(1/128) at most."""

SURE = 1.0 + 1e-6
"""Raises a norm by more than its rounding."""

ROUNDINGS = 32.0
"""Roundings of each of n + 8 operations, at most, in units of all that is added up."""

LARGEST_SPREAD = 600.0
"""Nats. Beyond, e^a leaves the range of doubles, and nothing is proved."""

PASSES = 2
"""Passes over pairs of rows."""


def applies(P: object, n_pairs: int) -> bool:
    """Whether the matrix is dense, and machine code is used for work of this size."""
    return isinstance(P, np.ndarray) and chosen_kernels(PASSES * n_pairs * len(P)) == "numba"


def stay_below(P: FloatArray, h: float, a: float, level: float) -> NDArray[np.bool_]:
    """For each pair of values whether what arrives is proved to be at most `level`, shape (n, n); False says nothing.

    Parameters
    ----------
    P : array, shape (n, n)
        Rows sum to 1, to rounding.
    h : float
        Every step's factor less 1: outputs multiply likelihoods by anything from 1 to 1 + h.
    a : float
        Bound on the log spread of likelihoods of any number of steps.
    level : float
        In nats.
    """
    from temporaldp.kernels.compiled.two_steps import stay_below as all_pairs

    n = len(P)
    below = np.zeros((n, n), bool)
    if not (0.0 <= a <= LARGEST_SPREAD and 0.0 < level <= LARGEST_SPREAD):
        return below
    rho, excess = math.expm1(level) * (1.0 - 8.0 * U), math.expm1(a)
    base = P.mean(axis=0)
    slack = ROUNDINGS * (n + 8) * U * (2.0 + rho) * (1.0 + h) * (1.0 + excess)
    squared, norm = P @ P, _norm(P, base)
    spread(
        lambda first, last: all_pairs(P, squared, base, norm, h, excess, rho, slack, first, last, below),
        n,
        step=1,
        work=PASSES * n**3,
    )
    return below


def _norm(P: FloatArray, base: FloatArray) -> float:
    """N from above. ``|S^k|_F^(1/k)`` falls to the largest eigenvalue of a symmetric S as k grows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.where(base > 0.0, (P - base) / np.sqrt(base), 0.0)
    power = scaled @ scaled.T
    log_norm, share = 0.0, 1.0
    for k in range(SQUARINGS + 1):
        size = float(np.linalg.norm(power))
        if size == 0.0:
            return math.exp(0.5 * log_norm) * SURE if k else 0.0
        log_norm += share * math.log(size)
        share *= 0.5
        if k < SQUARINGS:
            power = power / size
            power = power @ power
    return math.exp(0.5 * log_norm) * SURE
