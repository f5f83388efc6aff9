"""Suprema of (epsilon, delta) leakage: a curve that one more step does not raise anywhere, which is looked up, not believed."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.curves import NOTHING, Release, Side, ceiling
from temporaldp.correlation import TransitionMatrix

FloatArray = NDArray[np.float64]

MOST_STEPS = 20_000
"""Steps until a curve must have settled. Where it has not, no certificate is found."""


def lasting_curves(
    up: Side, down: Side, matrix: TransitionMatrix | None, release: Release, beyond: float
) -> tuple[FloatArray | None, FloatArray]:
    """A curve that no further step raises, or None; and a lower bound of what some horizon reaches."""
    high, low = up.own(release), down.own(release)
    if matrix is None or high is NOTHING:
        return high, low
    if up.contraction(matrix) >= 1.0:  # two values are told apart for certain: whatever was known stays known
        return None, low
    for _ in range(MOST_STEPS):
        after = up.together(up.through(matrix, high), up.own(release))
        above = ceiling(up, matrix, up.own(release), high, after)
        if above is not None:
            return above, low
        if after[-1] > up.delta or (beyond < math.inf and up.epsilon(after) > beyond):
            break  # it only rises
        high = after
        low = down.together(down.through(matrix, low), down.own(release))
    return None, low
