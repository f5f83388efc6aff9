"""Suprema of (epsilon, delta) leakage: a curve that one more step, computed with rounding, raises nowhere."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import grid
from temporaldp.accounting.curves import NOTHING, SETTLED, PrivacyCurve, Release, Side, ceiling
from temporaldp.correlation import Adversary, TransitionMatrix

FloatArray = NDArray[np.float64]

MOST_STEPS = 20_000
"""Steps until a curve must have settled. Where it has not, no certificate is found."""


@dataclass(frozen=True, slots=True, eq=False)
class CurveLimits:
    """What is never exceeded, at the delta in question, in nats, and how much of it can be discretisation.

    Parameters
    ----------
    own : float
        What one release leaks by itself.
    backward, forward, temporal : float
        Upper bounds; inf where no certificate was found.
    gaps : tuple of three floats
    backward_curve, forward_curve : PrivacyCurve or None
        The certificates.
    """

    own: float
    backward: float
    forward: float
    temporal: float
    gaps: tuple[float, float, float]
    backward_curve: PrivacyCurve | None
    forward_curve: PrivacyCurve | None


def curve_limits(
    adversary: Adversary, release: Release, delta: float, discretization: float, *, beyond: float = math.inf
) -> CurveLimits:
    """The suprema of one adversary with constant matrices when every step publishes the same.

    A supremum found to be above `beyond` (nats) is not looked for any further, and is inf.
    """
    up, down = (Side(discretization, delta, up=side) for side in (True, False))
    highs: list[FloatArray | None] = []
    lows: list[FloatArray] = []
    for matrix in (adversary.backward, adversary.forward):
        assert not isinstance(matrix, tuple)
        high, low = _limit(up, down, matrix, release, beyond)
        highs.append(high)
        lows.append(low)
    both = None
    if highs[0] is not None and highs[1] is not None:
        both = up.together(highs[0], _through(up, adversary.forward, highs[1]))
    beneath = down.together(lows[0], _through(down, adversary.forward, lows[1]))
    values = tuple(math.inf if curve is None else up.epsilon(curve) for curve in (*highs, both))
    least = [down.epsilon(curve) for curve in (*lows, beneath)]
    gaps = [0.0 if high == low else max(high - low, 0.0) for high, low in zip(values, least, strict=True)]
    curves = [
        None if high is None else PrivacyCurve(discretization, high, low) for high, low in zip(highs, lows, strict=True)
    ]
    return CurveLimits(
        up.epsilon(up.own(release)),
        values[0],
        values[1],
        values[2],
        (gaps[0], gaps[1], gaps[2]),
        curves[0],
        curves[1],
    )


def _through(side: Side, matrix: object, curve: FloatArray) -> FloatArray:
    return side.through(matrix if isinstance(matrix, TransitionMatrix) else None, curve)


def _limit(
    up: Side, down: Side, matrix: TransitionMatrix | None, release: Release, beyond: float
) -> tuple[FloatArray | None, FloatArray]:
    """A curve that no further step raises, or None; and a lower bound of what some horizon reaches."""
    high, low = up.own(release), down.own(release)
    if matrix is None or high is NOTHING:
        return high, low
    if up.contraction(matrix) >= 1.0:  # two values are told apart for certain: whatever was known stays known
        return None, low
    above, steps = ceiling(up, matrix, up.own(release), high, most=MOST_STEPS, beyond=beyond)
    for _ in range(steps):
        before, low = low, down.together(down.through(matrix, low), down.own(release))
        if grid.raised_by(low, before) <= SETTLED * down.delta:
            break
    return above, low
