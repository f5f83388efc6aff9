"""Budgets that satisfy a level by the exact leakage for a known horizon: larger at both ends, and those of least noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

import numpy as np

from temporaldp.base.errors import PlanError
from temporaldp.base.progress import effort
from temporaldp.base.values import FloatArray
from temporaldp.core.accounting import LeakageSeries
from temporaldp.core.accounting.margins import FILTER_MARGIN
from temporaldp.core.accounting.monotone_search import largest
from temporaldp.core.accounting.paper.method import PaperBound
from temporaldp.core.planning.budget_plan import BudgetPlan
from temporaldp.core.planning.exact_program import least_noise
from temporaldp.core.planning.optimal import Measure
from temporaldp.core.planning.paper_plan import paper_plan
from temporaldp.core.planning.plan import Method
from temporaldp.core.planning.request import Request
from temporaldp.core.planning.within_level import plan_within_level


def exact_plan(request: Request, method: Method, by: Measure | None) -> BudgetPlan:
    """The plan of a method for a known horizon; with a measure, the one of least noise.

    A plan that satisfies the level by the paper's bound satisfies it exactly: the search starts there, and never adds noise.
    """
    # An accountant admits a little less than the level, so that it can leave steps behind.
    alpha = request.alpha * (1.0 - request.plan_margin - 2.0 * FILTER_MARGIN)

    @lru_cache(maxsize=1 if math.isinf(request.accounting.effort) else None)
    def series_of(epsilons: bytes) -> LeakageSeries:
        return request.series(np.frombuffer(epsilons))

    def accounted(epsilons: FloatArray) -> LeakageSeries:
        """The exact leakage of these budgets. The last answer is kept: each search begins where another one ended.

        All are kept where the effort has an end, after which none would be found again.
        """
        return series_of(epsilons.tobytes())

    known = _by_paper(request, method, by)
    if by is None:
        found = raised(known, accounted, alpha, mean_noise)
        return plan_within_level(request, found, method, leakage=accounted(found))
    found = least_noise(list(request.users), alpha, by, known, accounted)
    # Share of alpha that a plan may leave unused without another look
    if accounted(found).worst < alpha * (1.0 - 1e-5):  # where leakage has kinks, the method may stop short of the level
        found = raised(found, accounted, alpha, by.error)
    return plan_within_level(request, found, method, leakage=accounted(found), by=by)


def exact_shape(request: Request, method: Method, by: Measure | None, close: float) -> FloatArray:
    """Budgets about as those of `exact_plan`, which exceed the level by a share `close` at most."""
    known = _by_paper(request, method, by)
    if by is None:
        return raised(known, request.series, request.alpha, mean_noise)
    return least_noise(list(request.users), request.alpha, by, known, request.series, close=close)


def _by_paper(request: Request, method: Method, by: Measure | None) -> FloatArray:
    """Budgets that satisfy the level by the paper's bound: of the same method, or, where it has none, a constant one."""
    with suppress(PlanError):
        return paper_plan(request.by(PaperBound()), method, by).epsilons
    if request.has_constant_matrices:
        with effort(share=0.5):  # the rest is for the leakage of the plan
            budget = request.sustainable_epsilon()
        if budget > 0.0:
            return np.full(request.n_shares, budget)
    raise request.nothing_lasts()


def mean_noise(epsilons: FloatArray) -> float:
    """Return the measure of the plans that are not optimal for another one: the mean of 1 / epsilon."""
    return float(np.mean(1.0 / epsilons))


def raised(
    budgets: FloatArray,
    accounted: Callable[[FloatArray], LeakageSeries],
    alpha: float,
    error: Callable[[FloatArray], float],
) -> FloatArray:
    """Budgets raised as far as alpha allows, all by one factor or the smaller ones to one number; the better of both."""
    least, factor = float(budgets[budgets > 0.0].min()), alpha / float(budgets.max())

    def levelled(level: float) -> FloatArray:
        return np.where(budgets > 0.0, np.maximum(budgets, level), 0.0)

    stretched = budgets * largest(lambda share: accounted(budgets * share).worst, 1.0, max(1.0, factor), alpha)
    level = largest(lambda level: accounted(levelled(level)).worst, least, max(least, alpha), alpha)
    return min(stretched, levelled(level), key=error)
