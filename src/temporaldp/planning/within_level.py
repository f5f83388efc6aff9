"""Plans that are within their level: whatever made the budgets, our own accounting has the last word."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import LeakageSeries, LeakageSupremum, leakage_supremum, temporal_leakage
from temporaldp.accounting.exact_sides import SLACK
from temporaldp.accounting.paper_filter import SPARE
from temporaldp.accounting.protocol import Bound
from temporaldp.planning.plan import BudgetPlan, Method
from temporaldp.planning.request import Request
from temporaldp.values import SMALLEST

FloatArray = NDArray[np.float64]


def plan_within_level(
    request: Request,
    epsilons: FloatArray,
    method: Method,
    bound: Bound,
    leakage: LeakageSeries | LeakageSupremum | None = None,
) -> BudgetPlan:
    """The plan, shrunk by ulps, then by more, until our own accounting says at most alpha; the last factor is a half.

    `leakage` is that of these very budgets, if it is known.

    With a horizon a little stays unspent, so that an accountant admits the plan step by step.
    """
    horizon, everyone = request.horizon, request.population
    unspent = 0.0 if horizon is None else horizon * SPARE if bound == "paper" else 2.0 * SLACK
    ceiling = request.alpha * (1.0 - unspent)
    for halving in range(53):
        spent = epsilons * (1.0 - (0.0 if halving == 0 else 2.0 ** (halving - 53)))
        if horizon is None and spent[0] < SMALLEST:
            break
        if leakage is None or halving:
            leakage = (
                leakage_supremum(everyone, epsilon=float(spent[0]), bound=bound)
                if horizon is None
                else temporal_leakage(everyone, epsilons=spent, bound=bound)
            )
        if leakage.worst <= ceiling:
            return BudgetPlan(leakage=leakage, alpha=request.alpha, source=request.source, method=method)
    raise request.nothing_lasts(bound)
