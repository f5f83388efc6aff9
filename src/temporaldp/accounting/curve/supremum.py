"""Suprema of (epsilon, delta) leakage: a curve that one more step, computed with rounding, raises nowhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.curve import grid
from temporaldp.accounting.curve.arrivals import NOTHING, SETTLED, SingleCurve, ceiling
from temporaldp.correlation.adversary import Matrix
from temporaldp.mechanisms.protocol import Mechanisms

FloatArray = NDArray[np.float64]

MOST_STEPS = 20_000
"""Steps after which a curve that has not settled has no certificate. Doubled, slow chains take twice as long."""


def supremum_curves(
    up: SingleCurve, down: SingleCurve, matrix: Matrix | None, release: Mechanisms, beyond: float
) -> tuple[FloatArray | None, FloatArray]:
    """A curve that no further step raises, or None; and a lower bound of what some horizon reaches."""
    high, low = up.own(release), down.own(release)
    if matrix is None or high is NOTHING:
        return high, low
    if up.contraction(matrix) >= 1.0:  # a set of states distinguishes two rows with certainty: leakage never fades
        return None, low
    above, steps = ceiling(up, matrix, up.own(release), high, most=MOST_STEPS, beyond=beyond)
    for _ in range(steps):
        before, low = low, down.composed(down.through(matrix, low), down.own(release))
        if grid.raised_by(low, before) <= SETTLED * down.delta:
            break
    return above, low
