"""Vertices of a profile: the upper concave hull of its points, and closed forms free of overflow and cancellation.

Notation
--------
d, q    Pr(S | other_state) and Pr(S | state) of one vertex, 0 <= d < q <= 1
x       q - d, summed from the differences of the entries: it keeps its digits where rows are nearly equal. The shear
        (d, q) -> (d, x) maps hulls to hulls and slopes g to g - 1
c       1 - q, summed from the entries: it keeps its digits where q is nearly 1
a       the leakage that comes in (alpha), nats; e the budget of one step (epsilon)
L(a)    log[(1 + q (exp(a) - 1)) / (1 + d (exp(a) - 1))], the loss of the vertex

All functions trust their input. Entries are 0 or normal doubles, so x / d never overflows.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.values import ULP, FloatArray

Point: TypeAlias = tuple[float, float, int]
"""d, x and the index of a point."""

DIRECT_LIMIT = 700.0
"""Up to here exp(-a) is a normal double, and 1 / exp(-a) does not overflow."""

HULL_SLACK = 4.0 * ULP
"""Relative amount given to the safe side where the closed form of the supremum is a difference of rounded terms."""


def upper_hull(d: FloatArray, x: FloatArray) -> NDArray[np.intp]:
    """Indices of the hull's vertices with slope x / d > 0 on their left, by increasing d; (0, 0) is implied."""
    order = np.lexsort((-x, d))
    rising = x[order] > np.concatenate(([0.0], np.maximum.accumulate(x[order])))[:-1]
    chain: list[Point] = [(0.0, 0.0, -1)]
    for index in order[rising]:
        point = float(d[index]), float(x[index]), int(index)
        if point[0] == 0.0:  # there is one such at most: the hull starts there, not at the origin
            chain = [point]
            continue
        while len(chain) > 1 and chain[-1][1] <= _height(chain[-2], point, chain[-1][0]):
            chain.pop()
        chain.append(point)
    return np.array([index for _, _, index in _without_ties(chain) if index >= 0], dtype=np.intp)


def _height(left: Point, right: Point, at: float) -> float:
    """The line through two points."""
    return left[1] + (right[1] - left[1]) * ((at - left[0]) / (right[0] - left[0]))


def _without_ties(chain: list[Point]) -> list[Point]:
    """The hull without vertices that rise above the line between their remaining neighbours by no more than rounding.

    A vertex goes only if all that went between the same two neighbours lie that close to their line: errors do not add up.
    """
    kept, start = chain[:1], 0
    for end in range(1, len(chain)):
        following = chain[end + 1] if end + 1 < len(chain) else (2.0, chain[-1][1], -1)  # level from the last one on
        between = chain[start + 1 : end + 1]
        # Relative height by which a point must rise above the hull without it. Ties in exact arithmetic differ by a few
        # roundings; a point dropped as tied would change the loss by less than that same relative amount
        if any(point[1] > _height(chain[start], following, point[0]) * (1.0 + 8.0 * ULP) for point in between):
            kept.append(chain[end])
            start = end
    return kept


def vertex_loss(d: FloatArray, x: FloatArray, a: FloatArray, at: Any = ...) -> FloatArray:
    """L(a) of each vertex, never above a; exact to rounding. `a` broadcasts, or ``a[at]`` does.

    ``L = log1p(x (1 - exp(-a)) / (d + (1 - d) exp(-a)))``. With d > 0 this holds for every a: d is at least 1e-290, so where
    exp(-a) leaves the normal range it no longer counts. With d = 0 and a large, ``L = a + log(q + (1 - q) exp(-a))``.
    """
    left, lost, level = np.exp(-a)[at], -np.expm1(-a)[at], a[at]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        loss = np.log1p(x * lost / (d + (1.0 - d) * left))
        if (a > DIRECT_LIMIT).any():
            loss = np.where((d == 0.0) & (level > DIRECT_LIMIT), level + np.log(x + (1.0 - x) * left), loss)
    return np.asarray(np.minimum(loss, level))


def vertex_supremum(d: FloatArray, q: FloatArray, x: FloatArray, c: FloatArray, e: FloatArray) -> FloatArray:
    """The root a of ``a = L(a) + e``, rounded up; inf where there is none (d = 0 and e >= -log q).

    The paper's Theorem 5, as a quadratic in y = exp(a) - 1: ``d y^2 + B y - C = 0`` with ``B = c + d - q (exp(e) - 1)`` and
    ``C = exp(e) - 1``. For small e this loses no digits at a near 0; for large e it is scaled by exp(-e), so that nothing
    overflows. B is a difference: `HULL_SLACK` of its terms is given away, so that its rounding can only raise the root. With
    d = 0 the root is C / B and needs B > 0: at e = -log q there is none, rounding or not.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        grow, shrink, rest = np.expm1(e), np.exp(-e), -np.expm1(-e)
        near_b = c + d - q * grow - HULL_SLACK * (c + d + q * grow)
        far_b = shrink * (c + d) - q * rest - HULL_SLACK * (shrink * (c + d) + q * rest)
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
