"""A metric that one more step does not raise: by monotonicity it bounds every horizon, under a constant budget.

The step ``b -> K(b) + e D`` is monotone, and the series starts below every metric that it does not raise (from 0, before the
first release), so the series never passes one. It is looked for as the fixed point of a step that adds a little more,
``K(b) + e D + s``: near that point the step itself does not raise b, with room s for rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temporaldp.correlation import TransitionMatrix
from temporaldp.kernels.lifting import Trees, lifted, no_trees, off_diagonal

FloatArray = NDArray[np.float64]

ADDED, ROUNDINGS = 1e-12, 2.0**-49
"""s is this share of the largest entry and so much for every state: more than one step rounds. The answer is too high by
about s / (1 - r) at most, where errors shrink by a factor r a step."""

MOST_STEPS = 1000
"""Without a certificate after so many steps the supremum is reported as infinite, which is never too low."""

CEILING_ROUNDING = 1e-9
"""Relative: the uniform bound's supremum is exact to rounding, and this much above it a step falls clearly."""

PLAIN_STEPS = 4
"""Steps between two extrapolations: by then the change falls by the same factor everywhere."""

SAME_WAY = 0.9
"""Squared cosine between two changes from which on they count as pointing the same way."""

LONGEST_LEAP = 100.0
"""An extrapolation goes at most so many times the last change."""

STALLED = 1e-9
"""A change that shrinks by less than this share for twenty steps running will not end."""


@dataclass(slots=True)
class MetricSearch:
    """Where the last search through a matrix ended: the next one, for a similar budget, starts there."""

    metric: FloatArray | None = None
    trees: Trees | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LastingMetric:
    """A metric that a step does not raise, and what arrives from it: ``arrived + own <= metric`` everywhere."""

    metric: FloatArray
    arrived: FloatArray

    def __post_init__(self) -> None:
        for array in (self.metric, self.arrived):
            array.flags.writeable = False


def lasting_metric(
    matrix: TransitionMatrix, own: FloatArray, *, ceiling: float, search: MetricSearch
) -> LastingMetric | None:
    """A metric that ``b -> K(b) + own`` does not raise anywhere, close to the smallest; None if none is found.

    Parameters
    ----------
    matrix : TransitionMatrix
    own : array, shape (n, n)
        ``e D``, closed under the triangle inequality.
    ceiling : float
        The supremum under the uniform bound for ``own.max()``; may be inf. A metric is found whenever it is finite.
    search : MetricSearch
        Where to begin; left where it ended.
    """
    rows, profile = matrix.dense(), matrix.leakage_profile()
    trees = search.trees if search.trees is not None else no_trees(matrix.n_states)
    apart = off_diagonal(len(own))
    metric = own if search.metric is None else np.maximum(search.metric, own)
    best: LastingMetric | None = None
    change, stalled = math.inf, 0
    last = np.zeros_like(own)
    for count in range(1, MOST_STEPS + 1):
        added = ADDED * float(metric.max()) + ROUNDINGS * (len(own) + 8)
        arrived = lifted(rows, metric, profile, trees)
        after = arrived + own + added * apart
        step = after - metric
        before, change = change, float(np.abs(step).max())
        if (step <= 0.5 * added).all():  # so K(metric) + own is at most the metric less half of what was added
            best = LastingMetric(metric, arrived)
            if change <= 0.5 * added:
                break
        rate = change / before if before > 0.0 else 0.0
        stalled = stalled + 1 if rate > 1.0 - STALLED else 0
        if stalled == 20:
            break
        metric = after
        if count % PLAIN_STEPS == 0 and rate < 1.0 and _aligned(step, last):
            metric = np.maximum(after + step * min(rate / (1.0 - rate), LONGEST_LEAP), own)
            change = math.inf
        last = step
    if best is None and math.isfinite(ceiling):
        best = _from_above(matrix, own, ceiling)
    if best is not None:
        search.metric, search.trees = best.metric, trees
    return best


def _aligned(step: FloatArray, last: FloatArray) -> bool:
    """Whether two changes point the same way, so that the sum of those to come can be guessed; an oscillation has none."""
    together = float((step * last).sum())
    return together > 0.0 and together**2 >= SAME_WAY * float((step**2).sum()) * float((last**2).sum())


def _from_above(matrix: TransitionMatrix, own: FloatArray, ceiling: float) -> LastingMetric | None:
    """From the uniform bound's supremum, which a step does not raise either, some steps down."""
    rows, profile, trees = matrix.dense(), matrix.leakage_profile(), no_trees(matrix.n_states)
    metric = ceiling * (1.0 + CEILING_ROUNDING) * off_diagonal(len(own))
    found = None
    for _ in range(50):
        arrived = lifted(rows, metric, profile, trees)
        if not (arrived + own <= metric).all():
            break
        found = LastingMetric(metric, arrived)
        metric = arrived + own
    return found
