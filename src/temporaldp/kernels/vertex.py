"""Closed forms of one vertex, elementwise and free of overflow and cancellation.

Notation
--------
d, q    Pr(S | other_state) and Pr(S | state) of one vertex, 0 <= d < q <= 1
x       q - d, summed from the differences of the entries: it keeps its digits where rows are nearly equal
c       1 - q, summed from the entries: it keeps its digits where q is nearly 1
a       the leakage that comes in (alpha), nats; e the budget of one step (epsilon)
L(a)    log[(1 + q (exp(a) - 1)) / (1 + d (exp(a) - 1))], the loss of the vertex

Losses are kernels of single numbers; suprema and gaps broadcast. All functions trust their input. Entries are 0 or normal
doubles, so x / d never overflows.
"""

import math

import numpy as np

from temporaldp.kernels.compilation import kernel
from temporaldp.values import ULP, FloatArray

DIRECT_LIMIT = 700.0
"""Up to here exp(-a) is a normal double, and 1 / exp(-a) does not overflow."""

SLACK = 4.0 * ULP
"""Relative amount given to the safe side where the closed form of the supremum is a difference of rounded terms."""


@kernel
def vertex_loss(d, x, a, left):
    """L(a) of one vertex, never above a; exact to rounding. `left` is exp(-a).

    ``L = log1p(x (1 - exp(-a)) / (d + (1 - d) exp(-a)))``. With d > 0 this holds for every a: d is at least 1e-290, so where
    exp(-a) leaves the normal range it no longer counts. With d = 0 and a large, ``L = a + log(q + (1 - q) exp(-a))``.
    """
    if d == 0.0 and a > DIRECT_LIMIT:
        return min(a + math.log(x + (1.0 - x) * left), a)
    return min(math.log1p(x * -math.expm1(-a) / (d + (1.0 - d) * left)), a)


@kernel
def best_vertex(d, x, left, first):
    """Number of the vertex with the largest L(a), from `first` on, for d > 0 or a moderate a.

    Vertices lie on a hull, so gains rise, then fall: binary search.
    """
    low, high = first, d.size - 1
    while low < high:
        v = (low + high) // 2
        if x[v + 1] / (d[v + 1] + (1.0 - d[v + 1]) * left) > x[v] / (d[v] + (1.0 - d[v]) * left):
            low = v + 1
        else:
            high = v
    return low


@kernel
def loss_of(d, x, a):
    """Max over vertices of L(a); 0 if there is none."""
    if d.size == 0:
        return 0.0
    left = math.exp(-a)
    if a > DIRECT_LIMIT and d[0] == 0.0:  # the gain of the first vertex overflows: compare losses
        first, best = vertex_loss(d[0], x[0], a, left), best_vertex(d, x, left, min(1, d.size - 1))
        return max(first, vertex_loss(d[best], x[best], a, left))
    best = best_vertex(d, x, left, 0)
    return vertex_loss(d[best], x[best], a, left)


@kernel
def losses(d, x, levels):
    """`loss_of` at each level."""
    found = np.empty(levels.size)
    for k in range(levels.size):
        found[k] = loss_of(d, x, levels[k])
    return found


def vertex_supremum(d: FloatArray, q: FloatArray, x: FloatArray, c: FloatArray, e: FloatArray) -> FloatArray:
    """The root a of ``a = L(a) + e``, rounded up; inf where there is none (d = 0 and e >= -log q).

    The paper's Theorem 5, as a quadratic in y = exp(a) - 1: ``d y^2 + B y - C = 0`` with ``B = c + d - q (exp(e) - 1)`` and
    ``C = exp(e) - 1``. For small e this loses no digits at a near 0; for large e it is scaled by exp(-e), so that nothing
    overflows. B is a difference: `SLACK` of its terms is given away, so that its rounding can only raise the root. With
    d = 0 the root is C / B and needs B > 0: at e = -log q there is none, rounding or not.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        grow, shrink, rest = np.expm1(e), np.exp(-e), -np.expm1(-e)
        near_b = c + d - q * grow - SLACK * (c + d + q * grow)
        far_b = shrink * (c + d) - q * rest - SLACK * (shrink * (c + d) + q * rest)
        near = np.log1p(_positive_root(d, near_b, grow))
        far = e + np.log(shrink + _positive_root(d, far_b, shrink * rest))
        line = np.where(near_b > 0.0, np.log1p(grow / near_b), np.inf)
    return np.nextafter(np.maximum(np.where(d == 0.0, line, np.where(e <= 1.0, near, far)), e), np.inf)


def _positive_root(d: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    """The positive root of ``d y^2 + b y - c`` (c >= 0, d > 0), by the form that neither cancels nor underflows."""
    root = np.hypot(b, 2.0 * np.sqrt(d) * np.sqrt(c))
    return np.where(b > 0.0, 2.0 * c / (b + root), (root - b) / (2.0 * d))


def vertex_gap(d: FloatArray, q: FloatArray, x: FloatArray, c: FloatArray, a: FloatArray) -> FloatArray:
    """``a - L(a)``, without the subtraction, which would cancel under strong correlation; exact to rounding.

    ``a - L = log1p([c (1 - exp(-a)) + d (exp(a) - 1)] / (q + c exp(-a)))``; for large a the logarithms of numerator and
    denominator of ``exp(a - L)`` are formed first.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        lost = -np.expm1(-a)
        direct = np.log1p((c * lost + d * np.expm1(a)) / (q + c * np.exp(-a)))
        scaled = np.logaddexp(np.log1p(-d), np.log(d) + a) - np.log1p(-c * lost)
    return np.where(a <= DIRECT_LIMIT, direct, scaled)
