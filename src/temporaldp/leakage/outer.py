"""A smaller profile that is a guaranteed upper bound: corners of a polygon around the hull.

Notation
--------
h          slope g - 1; theta(1 + h), convex in h, is the hull's supporting line at that slope: x - h d <= theta
corner     where the supporting lines of two slopes meet. In h, the line between two points of theta: a chord, above theta
tangent    the line of the vertex that attains theta at a slope, below theta

Between two slopes theta lies between the chord and the tangents, farthest apart where the tangents cross. Slopes are added
there until the chord is at most 1 + tolerance / 2 times the tangents. Then the corners' loss is at least L, and at most
min((1 + tolerance) L, L + log(1 + tolerance)): `docs/theory.md`, Proposition 1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

Pair = tuple[int, int]

ULP = sys.float_info.epsilon

STEEPER = 1.0 + 8.0 * ULP
"""A ratio is raised by this factor, which covers its rounding, before anything is said of the slopes beyond it."""

ROUNDING = 2e-14
"""Corners move up and to the left by this factor: more than the rounding of sums and of ties that decided for a lower set."""


ROW_SUM_ROUNDING = 2e-12
"""How far the probability of a set may exceed 1: twice what a row's sum may be off."""


class Support(NamedTuple):
    """A slope, the pair that attains theta there, and d, x = q - d and c = 1 - q of its set."""

    slope: float
    pair: Pair
    d: float
    x: float
    c: float


class Corner(NamedTuple):
    """A corner (d, x = q - d, q, c = 1 - q), and the pair and the slope at its right."""

    d: float
    x: float
    q: float
    c: float
    pair: Pair
    slope: float


def outer_corners(support: Callable[[float], Support], steepest: float, tolerance: float) -> list[Corner]:
    """Corners by rising d; none where nothing leaks. `support` finds the pair that attains theta at a slope."""
    found = {h: support(h) for h in (0.0, steepest)}
    intervals = [(0.0, steepest)] if found[0.0].x > 0.0 else []
    while intervals:
        low, high = (found[h] for h in intervals.pop())
        run, rise = low.d - high.d, low.x - high.x
        h = rise / run if run > 0.0 else 0.0
        if not low.slope < h < high.slope:
            continue
        if high.x == 0.0:  # nothing leaks at the steeper slope: does anything from the ratio of this vertex on?
            h *= STEEPER
            found[h] = support(h)
            if found[h].x == 0.0:
                del found[high.slope]
                continue
            intervals += [(low.slope, h), (h, high.slope)]
            continue
        share = (high.slope - h) / (high.slope - low.slope)
        chord = share * (low.x - low.slope * low.d) + (1.0 - share) * (high.x - high.slope * high.d)
        if chord > (1.0 + tolerance / 2.0) * (high.x - h * high.d):
            found[h] = support(h)
            intervals += [(low.slope, h), (h, high.slope)]
    line = [found[h] for h in sorted(found, reverse=True)]
    if line[-1].x == 0.0:
        return []
    first = line[0]
    corners = [_rounded(first, first.d, first.x, first.c)] if first.x > 0.0 else []
    return corners + [_corner(left, right) for left, right in pairwise(line)]


def _corner(left: Support, right: Support) -> Corner:
    """Where the supporting lines meet, or where the left one reaches q = 1: no set lies beyond.

    Reached along the left line from its vertex, so that d keeps its digits where it is tiny; a little too far, which is above
    the right line.
    """
    if (left.d, left.x) == (right.d, right.x):
        return _rounded(right, left.d, left.x, left.c)
    beyond = max((right.x - left.x) - right.slope * (right.d - left.d), 0.0) + 4.0 * ULP * right.x
    step = beyond / (left.slope - right.slope)
    step = min(step, (left.c + ROW_SUM_ROUNDING) / (1.0 + left.slope))
    return _rounded(right, left.d + step, left.x + left.slope * step, left.c - (1.0 + left.slope) * step)


def _rounded(at: Support, d: float, x: float, c: float) -> Corner:
    d = d * (1.0 - ROUNDING)
    x = x * (1.0 + ROUNDING)
    return Corner(d, x, min(d + x, 1.0), max(c - ROUNDING, 0.0), at.pair, at.slope)
