"""Plans whose leakage is at most their level by this package's accounting, however the budgets were made."""

from __future__ import annotations

import numpy as np

from temporaldp.base.progress import effort
from temporaldp.base.values import SMALLEST, FloatArray
from temporaldp.core.accounting import LeakageSeries, LeakageSupremum, leakage_supremum
from temporaldp.core.planning.budget_plan import BudgetPlan
from temporaldp.core.planning.optimal import Measure
from temporaldp.core.planning.plan import Method, Optimality
from temporaldp.core.planning.request import Request


def plan_within_level(
    request: Request,
    epsilons: FloatArray,
    method: Method,
    *,
    leakage: LeakageSeries | LeakageSupremum | None = None,
    by: Measure | None = None,
    bound: float | None = None,
) -> BudgetPlan:
    """The plan, with budgets reduced by ulps, then by more, until accounting computes at most alpha; the last factor is a half.

    `leakage` is that of these very budgets, if it is known; `by` is the measure of an optimal plan, and `bound` its certified
    lower bound. With a horizon a little stays unspent, so that an accountant admits the plan step by step.
    """
    ceiling = request.alpha * (1.0 - request.plan_margin)
    for halving in range(53):
        spent = epsilons * (1.0 - (0.0 if halving == 0 else 2.0 ** (halving - 53)))
        if request.horizon is None and spent[0] < SMALLEST:
            break
        if leakage is None or halving:
            leakage = (
                leakage_supremum(request.population, float(spent[0]), accounting=request.accounting)
                if request.horizon is None
                else request.series(spent)
            )
        if leakage.worst <= ceiling:
            return BudgetPlan(
                leakage=leakage,
                **request.facts,
                epsilons=spent,
                method=method,
                optimality=None if by is None else Optimality(by.objective, by.error(spent), bound),
            )
    raise request.nothing_lasts()


def sustainable_plan(request: Request, method: Method) -> BudgetPlan:
    """Return the plan that spends the largest sustainable budget at each step of the request."""
    with effort(share=0.5):  # the rest is for the leakage of the plan
        budget = request.sustainable_epsilon()
    if budget <= 0.0:
        raise request.nothing_lasts()
    return plan_within_level(request, np.full(request.n_shares, budget), method)
