"""A smaller profile that is a guaranteed upper bound: corners of a polygon around the hull.

Notation
--------
h          slope g - 1; theta(1 + h), convex in h, is the hull's supporting line at that slope: x - h d <= theta
corner     where the supporting lines of two slopes meet. In h, the line between two points of theta: a chord, above theta
tangent    the line of the vertex that attains theta at a slope, below theta

Between two slopes theta lies between the chord and the tangents, farthest apart where the tangents cross. Slopes are added
there until the chord is at most 1 + 0.999 tolerance times the tangents. Then the corners' loss is at least L, and at most
min((1 + tolerance) L, L + log(1 + tolerance)): `docs/theory.md`, Proposition 1.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

ULP = sys.float_info.epsilon

STEEPER = 1.0 + 8.0 * ULP
"""A ratio is raised by this factor, which covers its rounding, before it is said that nothing lies beyond it."""

ROUNDING = 2e-14
"""Corners move up and to the left by this factor: more than the rounding of sums and of ties that decided for a lower set."""

ROOM = 0.999
"""Share of the tolerance that is used; the rest is far more than what rounding adds."""

ROW_SUM_ROUNDING = 2e-12
"""How far the probability of a set may exceed 1: twice what a row's sum may be off."""


class Support(NamedTuple):
    """A slope, the number of the vertex that attains theta there (-1: the origin), and its d, x = q - d and c = 1 - q."""

    slope: float
    vertex: int
    d: float
    x: float
    c: float


class Corner(NamedTuple):
    """A corner (d, x = q - d, q, c = 1 - q), and the vertex at its right."""

    d: float
    x: float
    q: float
    c: float
    vertex: int


def outer_corners(d: FloatArray, x: FloatArray, c: FloatArray, tolerance: float) -> list[Corner]:
    """Corners by rising d around a hull with vertices (d, x) by rising d."""
    if d.size == 0:
        return []

    def support(slope: float) -> Support:
        v = int(np.argmax(x - slope * d))
        return Support(slope, v, float(d[v]), float(x[v]), float(c[v]))

    top = _steepest(d, x, c)
    found = {0.0: support(0.0), top.slope: top}
    intervals = [(0.0, top.slope)]
    while intervals:
        low, high = (found[h] for h in intervals.pop())
        run, rise = low.d - high.d, low.x - high.x
        h = rise / run if run > 0.0 else 0.0
        if not low.slope < h < high.slope:
            continue
        share = (high.slope - h) / (high.slope - low.slope)
        chord = share * (low.x - low.slope * low.d) + (1.0 - share) * (high.x - high.slope * high.d)
        if chord > (1.0 + ROOM * tolerance) * (high.x - h * high.d):
            found[h] = support(h)
            if found[h].vertex in {low.vertex, high.vertex}:  # an edge of the hull, with nothing above it
                found[h] = high._replace(slope=h)
            else:
                intervals += [(low.slope, h), (h, high.slope)]
    line = [found[h] for h in sorted(found, reverse=True)]
    corners = [_rounded(top.vertex, top.d, top.x, top.c)] if top.x > 0.0 else []
    return corners + [_corner(left, right) for left, right in pairwise(line)]


def _steepest(d: FloatArray, x: FloatArray, c: FloatArray) -> Support:
    """A slope beyond all edges: there the vertex with d = 0 attains theta, or the origin where there is none."""
    if d[0] > 0.0:
        return Support(float(x[0] / d[0]) * STEEPER, -1, 0.0, 0.0, 1.0)
    beyond = 2.0 * float((x[1] - x[0]) / d[1]) if d.size > 1 else 1.0
    return Support(beyond, 0, 0.0, float(x[0]), float(c[0]))


def _corner(left: Support, right: Support) -> Corner:
    """Where the supporting lines meet, or where the left one reaches q = 1: no set lies beyond.

    Reached along the left line from its vertex, so that d keeps its digits where it is tiny; a little too far, which is above
    the right line.
    """
    if (left.d, left.x) == (right.d, right.x):
        return _rounded(right.vertex, left.d, left.x, left.c)
    beyond = max((right.x - left.x) - right.slope * (right.d - left.d), 0.0) + 4.0 * ULP * right.x
    step = min(beyond / (left.slope - right.slope), (left.c + ROW_SUM_ROUNDING) / (1.0 + left.slope))
    return _rounded(right.vertex, left.d + step, left.x + left.slope * step, left.c - (1.0 + left.slope) * step)


def _rounded(vertex: int, d: float, x: float, c: float) -> Corner:
    d, x = d * (1.0 - ROUNDING), x * (1.0 + ROUNDING)
    return Corner(d, x, min(d + x, 1.0), max(c - ROUNDING, 0.0), vertex)
