"""Published counts from means and variances: an interval for each count, and counts >= 0 with the sum of the total."""

from __future__ import annotations

import numpy as np

from temporaldp.base.values import FloatArray

COVERAGE = 0.95
"""Coverage of the intervals."""

SMALLEST_DEVIATION = 1e-9
"""People. A count that is known better than this is known."""


def intervals(
    mean: FloatArray, variance: FloatArray, total: FloatArray | float, *, widened: FloatArray | float = 1.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The mean of each count, and the shortest interval that contains it with probability `COVERAGE`.

    Each count is normal, truncated at 0 and at the total; for the interval, its deviation is `widened`. Arrays broadcast.
    """
    deviation = np.maximum(np.sqrt(np.maximum(variance, 0.0)), SMALLEST_DEVIATION)
    lower, upper = _shortest(mean, deviation * widened, total)
    centre, low, high, _, _, mass = _ends(mean, deviation, total)
    density = (np.exp(-0.5 * low**2) - np.exp(-0.5 * high**2)) / np.sqrt(2.0 * np.pi)
    return np.asarray(np.clip(centre + deviation * density / mass, 0.0, total)), lower, upper


def _ends(mean: FloatArray, deviation: FloatArray, total: FloatArray | float) -> tuple[FloatArray, ...]:
    """The mean, not too far outside; 0 and the total in deviations from it; the probabilities beyond them and between."""
    from scipy.special import ndtr

    # A mean that is further outside is taken to be there: the noise alone does not explain it.
    centre = np.clip(mean, -6.0 * deviation, total + 6.0 * deviation)
    low, high = -centre / deviation, (total - centre) / deviation
    below, above = ndtr(low), ndtr(-high)
    # Probability of a normal number between 0 and the total, at least, against division by zero
    return centre, low, high, below, above, np.maximum(1.0 - below - above, 1e-12)


def _shortest(mean: FloatArray, deviation: FloatArray, total: FloatArray | float) -> tuple[FloatArray, FloatArray]:
    from scipy.special import ndtri

    centre, low, high, below, above, mass = _ends(mean, deviation, total)
    half = -ndtri(0.5 * (1.0 - COVERAGE * mass))
    lower, upper = np.maximum(-half, low), np.minimum(half, high)
    upper = np.where(-half < low, -ndtri(np.clip(above + (1.0 - COVERAGE) * mass, 0.0, 1.0)), upper)
    lower = np.where(half > high, ndtri(np.clip(below + (1.0 - COVERAGE) * mass, 0.0, 1.0)), lower)
    lower, upper = centre + deviation * np.maximum(lower, low), centre + deviation * np.minimum(upper, high)
    return np.clip(lower, 0.0, total), np.clip(upper, 0.0, total)


def with_total(counts: FloatArray, variance: FloatArray, total: float) -> FloatArray:
    """The nearest non-negative counts with this sum, in the norm weighted by the inverse variances.

    Minimises ``sum (x - counts)^2 / variance``: every count moves in proportion to its variance, and stops at 0.
    """
    weight = np.maximum(variance, SMALLEST_DEVIATION**2)
    order = np.argsort(-counts / weight)
    excess = np.cumsum(counts[order]) - total
    shift = excess / np.cumsum(weight[order])
    kept = counts[order] - shift * weight[order] > 0.0
    last = int(np.flatnonzero(kept)[-1]) if kept.any() else 0
    found = np.maximum(counts - shift[last] * weight, 0.0)
    return np.asarray(found * (total / found.sum()) if found.sum() > 0.0 else found)
