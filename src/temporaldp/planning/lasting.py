"""What every step can spend for ever: the largest constant budget whose supremum holds a level."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import leakage_supremum
from temporaldp.accounting.exact import Releases
from temporaldp.accounting.exact_series import rows_of
from temporaldp.accounting.exact_supremum import leakage_if_held
from temporaldp.accounting.fixed_point import Search
from temporaldp.accounting.metrics import box_of, largest_distance
from temporaldp.accounting.supremum import searched_supremum
from temporaldp.correlation import TransitionMatrix
from temporaldp.leakage.recurrence import has_supremum
from temporaldp.planning.holding import Users, together
from temporaldp.planning.search import CLOSE, largest
from temporaldp.progress import progressed
from temporaldp.values import SMALLEST

FloatArray = NDArray[np.float64]

LEAST_SHARE = 1e-9
"""Of alpha: a smaller budget for ever is no plan."""

SPARED = 4e-12
"""Share of alpha that is not spent: the supremum and a long series are proved by rollouts of their own, 1e-12 apart."""


def lasting_budget(users: Users, alpha: float, *, known: float, metric: FloatArray | None = None) -> float:
    """The largest constant budget, to 1e-8, whose supremum is at most alpha: exact, or under a metric that is no box.

    Parameters
    ----------
    users : list of (name, Adversary)
        With constant matrices.
    alpha : float
    known : float
        A budget that holds alpha already (by the paper's bound), or 0.
    metric : array, shape (n, n), optional

    Returns
    -------
    float
        At least `known`; 0 if not even a billionth of alpha lasts.
    """
    box = None if metric is None else box_of(metric)
    unit = Releases(np.ones((1, 1)), np.zeros((1, 1))) if box is None else Releases(box.high[None], box.low[None])
    exact = metric is None or box is not None
    searches: dict[tuple[str | None, str], Search] = {}
    tried = 0

    def worst(epsilon: float) -> float:
        nonlocal tried
        tried += 1
        progressed("what lasts for ever", 1.0 - 1.0 / (1.0 + 0.2 * tried))
        if exact:
            release = Releases(epsilon * unit.lift, epsilon * unit.drop)
            return max(_exact(one.backward, one.forward, release, alpha) for _, one in users)
        return searched_supremum(together(users), epsilon, "exact", metric, searches).temporal

    most = alpha / largest_distance(metric)
    least = max(LEAST_SHARE * most, SMALLEST)
    if known < least and worst(least) > alpha:
        return known
    ceiling = alpha * (1.0 - SPARED)
    found = largest(worst, max(known, least), most, ceiling)
    searches.clear()
    # What counts is the public number, which may differ in its last digits.
    while found > known and leakage_supremum(together(users), epsilon=found, metric=metric).temporal > ceiling:
        found = max(known, found * (1.0 - CLOSE))
    return found


def _exact(backward: object, forward: object, release: Releases, alpha: float) -> float:
    """TPL for ever, if it is at most alpha; otherwise more than alpha."""
    width = float(release.width[0])
    rows: list[Any] = []
    for matrix in (backward, forward):
        if not isinstance(matrix, TransitionMatrix):
            rows.append(None)
            continue
        if release.lift.shape[1] == 1 and not has_supremum(matrix.probabilities, width):
            return math.inf
        rows.append(rows_of(matrix))
    return leakage_if_held(rows[0], rows[1], release, alpha)
