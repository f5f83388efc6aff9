"""Budgets that satisfy a level by the paper's bound: the optimal plan, the paper's Algorithms 2 and 3, and alpha / T."""

from __future__ import annotations

from contextlib import suppress
from math import fsum, nextafter

import numpy as np

from temporaldp.base.errors import PlanError
from temporaldp.base.values import SMALLEST, ULP, FloatArray
from temporaldp.core.accounting.paper.online import PaperSteps, largest_reserve
from temporaldp.core.accounting.paper.supremum import ConstantBudget, constant_budget, merged_profile
from temporaldp.core.planning.budget_plan import BudgetPlan
from temporaldp.core.planning.optimal import Measure, optimise
from temporaldp.core.planning.plan import Method
from temporaldp.core.planning.request import Request
from temporaldp.core.planning.within_level import plan_within_level


def paper_plan(request: Request, method: Method, by: Measure | None) -> BudgetPlan:
    """The plan of a method; with a measure, the optimal one."""
    if by is not None:
        return _optimal(request, by)
    return plan_within_level(request, _budgets(request, method), method)


def _budgets(request: Request, method: Method) -> FloatArray:
    """Budgets by the paper's algorithms, or alpha / T, before they are reduced to alpha by this package's accounting."""
    alpha, horizon, users = request.alpha, request.horizon, range(len(request.users))
    if method == "upper_bound":
        constant = min(_upper_bound(request, user) for user in users)
        if horizon is None:  # what an accountant keeps in reserve, so that it admits the plan at every step
            reserve = largest_reserve([PaperSteps(user) for user in request.users], alpha)
            constant = min(constant, reserve.epsilon or constant)
        return np.full(request.n_shares, constant)
    assert horizon is not None
    if method == "quantified":
        return np.asarray(np.min([_quantified(request, user, horizon) for user in users], axis=0))
    share = alpha / horizon
    return np.full(horizon, share if fsum([share] * horizon) <= alpha else nextafter(share, 0.0))


def _optimal(request: Request, by: Measure) -> BudgetPlan:
    starts = []
    methods: tuple[Method, ...] = ("uniform", "quantified", "upper_bound")
    for method in methods:
        with suppress(PlanError):
            starts.append(paper_plan(request, method, None).epsilons)

    def within_level(epsilons: FloatArray) -> FloatArray:
        return plan_within_level(request, epsilons, "optimal").epsilons

    epsilons, bound = optimise(list(request.users), request.alpha, by, starts, within_level)
    return plan_within_level(request, epsilons, "optimal", by=by, bound=bound)


def _upper_bound(request: Request, user: int) -> float:
    """Algorithm 2. Budget e with ``L(a) + e <= a`` in both directions, so that no step of any horizon exceeds alpha."""
    alpha = request.alpha
    found = _constant_budget(request, user)
    # A budget below this share of alpha is lost in the rounding of a step, and makes no sustainable plan
    if found.budget < max(64.0 * ULP * alpha, SMALLEST):
        raise request.nothing_lasts(user)
    # Four ulps of alpha stay unspent: BPL and FPL then remain below their levels through any number of rounded steps.
    return found.budget - 4.0 * ULP * alpha


def _quantified(request: Request, user: int, n_steps: int) -> FloatArray:
    """Algorithm 3: ends at the levels themselves, the middle at the sustainable budget."""
    if n_steps == 1:
        return np.array([request.alpha])
    found = _constant_budget(request, user)
    if found.budget <= 0.0:
        raise request.nothing_lasts(user)
    return np.array([found.backward_level, *[found.budget] * (n_steps - 2), found.forward_level])


def _constant_budget(request: Request, user: int) -> ConstantBudget:
    adversary = request.users[user]
    return constant_budget(merged_profile(adversary.backward), merged_profile(adversary.forward), request.alpha)
