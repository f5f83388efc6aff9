"""Budgets under the pairwise bound: what lasts for ever, and what a known horizon adds.

No closed form here: leakage is evaluated, and budgets are moved until it meets alpha. It increases with every budget, and a
plan that holds under the uniform bound holds under this one; so each search starts from that plan and spends at least as much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import temporal_leakage
from temporaldp.accounting.fixed_point import Search
from temporaldp.accounting.metrics import largest_distance
from temporaldp.accounting.population import Adversaries
from temporaldp.accounting.standing import SPARE
from temporaldp.accounting.supremum import searched_supremum
from temporaldp.errors import PlanError
from temporaldp.leakage.profile import SMALLEST
from temporaldp.planning.holding import Users, held, nothing_lasts, together
from temporaldp.planning.optimal import Measure
from temporaldp.planning.plan import BudgetPlan, Method

FloatArray = NDArray[np.float64]
Worst: TypeAlias = Callable[[FloatArray], float]

CLOSE = 1e-8
"""Relative distance from the largest budget, or factor, at which a search ends: always on the side that holds alpha."""

LEAST_SHARE = 1e-9
"""Of alpha: a smaller budget for ever is no plan."""


def pairwise_plan(
    users: Users,
    start: BudgetPlan | None,
    known: float,
    alpha: float,
    horizon: int | None,
    method: Method,
    by: Measure | None,
) -> BudgetPlan:
    """The plan of a method under the pairwise bound, from its plan under the uniform bound (None: there is none).

    `known` is what lasts for ever under the uniform bound, or 0.
    """
    if method == "uniform" and start is not None:
        return held(users, start.epsilons, alpha, horizon, method, "pairwise")
    everyone = together(users)
    constant = all(one.n_steps is None for _, one in users)
    lasting = sustained(everyone, alpha, known=known) if constant else 0.0
    if horizon is None or (method == "upper_bound" and constant):
        if lasting <= 0.0:
            raise PlanError(nothing_lasts(users[0][1], users[0][0], alpha, "pairwise"))
        return held(users, np.full(horizon or 1, lasting), alpha, horizon, method, "pairwise")
    if start is None and lasting <= 0.0:
        raise PlanError(nothing_lasts(users[0][1], users[0][0], alpha, "pairwise"))
    sure = np.full(horizon, lasting) if start is None else start.epsilons
    ceiling = alpha * (1.0 - (horizon + 1) * SPARE)

    def worst(epsilons: FloatArray) -> float:
        return temporal_leakage(everyone, epsilons=epsilons, bound="pairwise").worst

    def error(epsilons: FloatArray) -> float:
        return by.error(epsilons) if by is not None else float(np.mean(1.0 / epsilons))

    best = min((sure, *extended(sure, worst, ceiling)), key=error)
    plan = held(users, best, alpha, horizon, method, "pairwise")
    return plan if by is None else replace(plan, objective=by.objective, error=by.error(plan.epsilons))


def sustained(adversary: Adversaries, alpha: float, *, known: float, metric: FloatArray | None = None) -> float:
    """The largest constant budget, to 1e-8, whose certified supremum under the pairwise bound is at most alpha.

    Parameters
    ----------
    adversary : Adversary, or several
    alpha : float
    known : float
        A budget that holds alpha already (the uniform bound's), or 0.
    metric : array, shape (n, n), optional

    Returns
    -------
    float
        At least `known`; 0 if not even a billionth of alpha lasts.
    """
    searches: dict[tuple[str | None, str], Search] = {}

    def worst(epsilon: float) -> float:
        return searched_supremum(adversary, epsilon, "pairwise", metric, searches).temporal

    most = alpha / largest_distance(metric)
    least = max(LEAST_SHARE * most, SMALLEST)
    if known < least and worst(least) > alpha:
        return known
    found = largest(worst, max(known, least), most, alpha)
    searches.clear()
    while found > known and worst(found) > alpha:  # evaluated from another start it may differ in its last digits
        found = max(known, found * (1.0 - CLOSE))
    return found


def extended(epsilons: FloatArray, worst: Worst, ceiling: float) -> Iterator[FloatArray]:
    """Plans that spend at least as much as a given one at every step, and leak at most `ceiling`.

    First the given plan times the largest factor. As that may leave the middle of a long release below what lasts for ever,
    then the given plan, and a mean of the two, with every smaller budget raised to one level, as high as holds.

    Parameters
    ----------
    epsilons : array, shape (T,)
        Budgets that hold the ceiling; 0 for a step that is not published.
    worst : function
        Largest TPL of any step for given budgets.
    ceiling : float
    """
    if not epsilons.any() or worst(epsilons) > ceiling:
        return
    by_factor = _stretched(epsilons, epsilons, worst, ceiling)
    yield by_factor
    for least in (epsilons, np.sqrt(epsilons * by_factor)):

        def levelled(level: float, least: FloatArray = least) -> FloatArray:
            return np.where(epsilons > 0.0, np.maximum(least, level), 0.0)

        low = float(least[epsilons > 0.0].min())
        yield levelled(largest(lambda level: worst(levelled(level)), low, max(low, ceiling), ceiling))


def largest(worst: Callable[[float], float], low: float, high: float, ceiling: float) -> float:
    """The largest number up to `high` with ``worst <= ceiling``, to 1e-8; `low` has it, and worst increases.

    Halving (by ratio) down to where worst is finite, then Brent's method; the best point that holds is returned.
    """
    from scipy.optimize import brentq

    sure = low

    def excess(point: float) -> float:
        nonlocal sure
        value = worst(point) - ceiling
        if value <= 0.0:
            sure = max(sure, point)
        return value

    at_high = excess(high)
    while math.isinf(at_high) and high > sure * (1.0 + CLOSE):
        middle = math.sqrt(sure * high)
        value = excess(middle)
        if value > 0.0:
            high, at_high = middle, value
    if at_high > 0.0 and high > sure * (1.0 + CLOSE) and excess(sure) < 0.0:
        root = float(brentq(excess, sure, high, xtol=0.5 * CLOSE * sure, rtol=1e-12, maxiter=100))
        if root > sure:  # Brent may end on the far side
            excess(max(sure, root - CLOSE * sure))
    return sure


def _stretched(shape: FloatArray, sure: FloatArray, worst: Worst, ceiling: float) -> FloatArray:
    """`shape` times the largest factor that holds; `sure` holds."""
    published = shape > 0.0
    low = float((sure[published] / shape[published]).min())
    high = ceiling / float(shape.max())
    return shape * largest(lambda factor: worst(shape * factor), low, max(low, high), ceiling)
