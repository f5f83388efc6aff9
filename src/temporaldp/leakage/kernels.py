"""Closed forms of one vertex, elementwise and free of overflow and cancellation.

Notation
--------
d, q    Pr(S | other_value) and Pr(S | value) of one vertex, 0 <= d < q <= 1
x       q - d, summed from the differences of the entries: it keeps its digits where rows are nearly equal
a       the leakage that comes in (alpha), nats; e the budget of one step (epsilon)
L(a)    log[(1 + q (exp(a) - 1)) / (1 + d (exp(a) - 1))], the loss of the vertex

All arguments broadcast; all functions trust their input.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

DIRECT_LIMIT = 600.0
"""Up to here exp(-a) is a normal double and keeps all its digits (it ends at a = 708); beyond, logarithms are added."""

ULP = float(np.finfo(np.float64).eps)


def vertex_loss(d: FloatArray, q: FloatArray, x: FloatArray, a: FloatArray) -> FloatArray:
    """L(a), never above a; exact to rounding.

    ``L = log1p(x (1 - exp(-a)) / (d + (1 - d) exp(-a)))``; for large a the fraction's logarithm y is formed first and
    ``L = log(1 + exp(y))``. The second form of the denominator is why a = 5000 and d = 0 are no special cases.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        decay = np.exp(-a)
        direct = np.log1p(x * -np.expm1(-a) / (d + (1.0 - d) * decay))
        scaled = np.logaddexp(0.0, np.log(x) - np.logaddexp(np.log(d), np.log1p(-d) - a))
    return np.minimum(np.where(a <= DIRECT_LIMIT, direct, scaled), a)


def vertex_supremum(d: FloatArray, q: FloatArray, x: FloatArray, e: FloatArray) -> FloatArray:
    """The root a of ``a = L(a) + e``; inf where there is none (d = 0 and e >= -log q).

    The paper's Theorem 5, as a quadratic in y = exp(a) - 1 (small e: no digits lost at a near 0) or in z = y exp(-e)
    (large e: no overflow): ``d y^2 + B y - C = 0`` with ``B = 1 - x - q (exp(e) - 1)``, ``C = exp(e) - 1``.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        grow, shrink = np.expm1(e), np.exp(-e)
        # B is a difference; four ulps of its terms are given away, so that its rounding can only raise the root.
        near_b = 1.0 - x - q * grow - 4.0 * ULP * (1.0 + q * grow)
        far_b = shrink * (1.0 + d) - q - 4.0 * ULP * (shrink + q)
        near = np.log1p(_positive_root(d, near_b, grow))
        far = e + np.log(shrink + _positive_root(d, far_b, -shrink * np.expm1(-e)))
        # With d = 0 the root is C / B and needs B = 1 - q exp(e) > 0: at e = -log q there is none, rounding or not.
        line_b = -np.expm1(e + np.log(q)) - 4.0 * ULP
        line = np.where(line_b > 0.0, np.log1p(grow / line_b), np.inf)
    return np.maximum(np.where(d == 0.0, line, np.where(e <= 1.0, near, far)), e)


def _positive_root(d: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    """The positive root of ``d y^2 + b y - c`` (c > 0, d > 0), by the form that does not cancel."""
    root = np.sqrt(b * b + 4.0 * d * c)
    return np.where(b > 0.0, 2.0 * c / (b + root), (root - b) / (2.0 * d))


def vertex_gap(d: FloatArray, q: FloatArray, x: FloatArray, a: FloatArray) -> FloatArray:
    """``a - L(a)``, without the subtraction where it would cancel.

    ``a - L = log1p([(1 - q)(1 - exp(-a)) + d (exp(a) - 1)] / (q + (1 - q) exp(-a)))``; beyond `DIRECT_LIMIT` the
    difference itself, where L is bounded or within a factor of a.
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        lost = -np.expm1(-a)
        direct = np.log1p(((1.0 - q) * lost + d * np.expm1(a)) / (q + (1.0 - q) * np.exp(-a)))
    return np.where(a <= DIRECT_LIMIT, direct, a - vertex_loss(d, q, x, a))
