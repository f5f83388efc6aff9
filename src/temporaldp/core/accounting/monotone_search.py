"""Searches for the largest number that satisfies a level; the result is on the side that satisfies it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import count

from temporaldp.base.progress import effort_is_over, part
from temporaldp.base.values import SMALLEST

CLOSE = 1e-8
"""Relative distance from the largest number at which a search ends."""


LEAST_SHARE = 1e-9
"""Share of alpha below which a sustainable budget counts as none."""


def bisected(holds: Callable[[float], bool], low: float, high: float, close: float, *, most: int = 60) -> float:
    """Return the largest number between `low` and `high` that was found to satisfy `holds`, by bisection.

    `low` satisfies it. The search ends at a relative distance of `close`, or after `most` bisections.
    """
    for _ in range(most):
        if high - low <= close * high:
            break
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def largest(worst: Callable[[float], float], low: float, high: float, ceiling: float) -> float:
    """The largest number up to `high` with ``worst <= ceiling``, to 1e-8; `low` has it, and worst increases.

    Bisection (by ratio) to where `worst` is finite, then Brent's method, and bisection again where `worst` jumps above the
    ceiling; the best point that satisfies it is returned.
    """
    from scipy.optimize import brentq

    sure, least = low, math.inf

    @cache
    def excess(point: float) -> float:
        nonlocal sure, least
        value = worst(point) - ceiling
        if value <= 0.0:
            sure = max(sure, point)
        else:
            least = min(least, point)
        return value

    at_high = excess(high)
    while math.isinf(at_high) and high > sure * (1.0 + CLOSE) and not effort_is_over():
        middle = math.sqrt(sure * high)
        value = excess(middle)
        if value > 0.0:
            high, at_high = middle, value
    if at_high > 0.0 and high > sure * (1.0 + CLOSE) and not effort_is_over() and excess(sure) < 0.0:
        xtol = 0.5 * CLOSE * max(sure, CLOSE * high)
        # Iterations of Brent's method, after which `worst` counts as discontinuous. If doubled, a search takes up to
        # half again as long where no certificate is found above some number.
        root, found = brentq(excess, sure, high, xtol=xtol, rtol=1e-12, maxiter=12, full_output=True, disp=False)
        if found.converged and root > sure:  # Brent may end on the far side
            excess(max(sure, root - CLOSE * sure))
        while not found.converged and least - sure > max(CLOSE * sure, xtol) and not effort_is_over():
            excess(0.5 * (sure + least))
    return sure


def largest_sustainable(worst: Callable[[float], float], most: float, ceiling: float, *, known: float = 0.0) -> float:
    """The largest budget up to `most`, to 1e-8, with ``worst <= ceiling`` over an infinite horizon; 0 if there is none.

    `known` is an admissible budget, or 0. For other budgets, `worst` may be any number above the ceiling.
    """
    least, tried = max(LEAST_SHARE * most, SMALLEST), reported(worst, "sustainable budget")
    if known < least and tried(least) > ceiling:
        return known
    return largest(tried, max(known, least), most, ceiling)


def reported(worst: Callable[[float], float], name: str) -> Callable[[float], float]:
    """The function of a search of unknown length, each call of which reports that it is a little further."""
    shares = (1.0 - 1.0 / (1.0 + 0.2 * tries) for tries in count(1))

    def tried(number: float) -> float:
        share = next(shares)
        with part(share, share, name):
            return worst(number)

    return tried


def largest_in_few_tries(
    worst: Callable[[float], float],
    low: float,
    high: float,
    ceiling: float,
    close: float = 1e-3,
    at_high: float = math.inf,
    *,
    assumed: bool = False,
) -> float:
    """The largest number found with ``worst <= ceiling``, mostly within `close` of it; 0 if none is found. worst increases.

    The result was tried. `at_high` is worst(high), if it is known. `low` is tried first: if it exceeds the ceiling, nothing
    else is; where it is `assumed` to satisfy it, it is tried only if nothing between does.
    """
    aim = math.log(ceiling * (1.0 - 0.4 * close))
    at_low, known = None if assumed else worst(low), [(high, at_high)]
    if at_low is not None:
        if at_low > ceiling:
            return 0.0
        known.append((low, at_low))
    for tries in range(14):
        if high <= low * (1.0 + close) or (at_low is not None and at_low >= ceiling * (1.0 - close)):
            break
        middle = math.sqrt(low * high)
        points = [(math.log(one), math.log(value)) for one, value in known if 0.0 < value < math.inf]
        if points and tries % 5 < 4:  # else by bisection, where interpolation does not help
            width = math.log(high / low)
            guess = min(max(_interpolated(points, aim), math.log(low) + 0.02 * width), math.log(high) - 0.02 * width)
            middle = math.exp(guess) if at_high < math.inf else min(math.exp(guess), middle)
        value = worst(middle)
        known.append((middle, value))
        if value <= ceiling:
            low, at_low = middle, value
        else:
            high, at_high = middle, value
    at_low = worst(low) if at_low is None else at_low
    return low if at_low <= ceiling else 0.0


def _interpolated(points: Sequence[tuple[float, float]], aim: float) -> float:
    """Where a function that increases reaches an aim, by a power of the nearest point, or through the nearest two or three."""
    (x, y), *others = sorted(points, key=lambda point: abs(point[1] - aim))[:3]
    if not others:
        return x + (aim - y) / 1.25  # leakage grows somewhat faster than budgets
    slopes = [(a - x) / (b - y) if b != y else 0.0 for a, b in others]
    bend = 0.0
    if len(others) == 2 and others[0][1] != others[1][1]:
        bend = (slopes[1] - slopes[0]) / (others[1][1] - others[0][1])
    return x + (aim - y) * (slopes[0] + bend * (aim - others[0][1]))
