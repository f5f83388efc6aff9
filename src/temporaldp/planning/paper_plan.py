"""Budgets that hold a level by the paper's bound: the optimal plan, the paper's Algorithms 2 and 3, and alpha / T."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from math import fsum, nextafter

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.balance import Balance, balance, merged_profile
from temporaldp.accounting.standing import UserLosses, largest_reserve
from temporaldp.correlation import Adversary
from temporaldp.errors import InputError, PlanError
from temporaldp.planning.holding import Users, held, nothing_lasts
from temporaldp.planning.optimal import Measure, optimise
from temporaldp.planning.plan import BudgetPlan, Method
from temporaldp.values import SMALLEST

FloatArray = NDArray[np.float64]

ULP = float(np.finfo(np.float64).eps)
SMALLEST_SHARE = 64.0 * ULP
"""A budget below this share of alpha is lost in the rounding of a step, and no plan for ever is made of it."""


def lasting_by_paper(users: Users, alpha: float) -> float:
    """What lasts for ever by the paper's bound; 0 if nothing does, or if nothing is known of later matrices."""
    with suppress(PlanError, InputError):
        return float(paper_plan(users, alpha, None, "upper_bound", None).epsilons[0])
    return 0.0


def paper_plan(users: Users, alpha: float, horizon: int | None, method: Method, by: Measure | None) -> BudgetPlan:
    """The plan of a method; with a measure, the optimal one."""
    if by is not None and horizon is not None:
        return _optimal(users, alpha, horizon, by)
    return held(users, _budgets(users, alpha, horizon, method), alpha, horizon, method, "paper")


def _budgets(users: Users, alpha: float, horizon: int | None, method: Method) -> FloatArray:
    """Budgets by the paper's algorithms, or alpha / T; before they are held to alpha by our own accounting."""
    if method == "upper_bound":
        constant = min(_upper_bound(one, name, alpha) for name, one in users)
        if horizon is None:  # what an accountant keeps in reserve, so that it admits the plan for ever
            constant = min(
                constant, largest_reserve([UserLosses.of(*user) for user in users], alpha).epsilon or constant
            )
        return np.full(horizon or 1, constant)
    assert horizon is not None
    if method == "quantified":
        return np.asarray(np.min([_quantified(one, name, alpha, horizon) for name, one in users], axis=0))
    share = alpha / horizon
    return np.full(horizon, share if fsum([share] * horizon) <= alpha else nextafter(share, 0.0))


def _optimal(users: Users, alpha: float, horizon: int, by: Measure) -> BudgetPlan:
    starts = []
    for method in ("uniform", "quantified", "upper_bound"):
        with suppress(PlanError):
            starts.append(
                held(users, _budgets(users, alpha, horizon, method), alpha, horizon, method, "paper").epsilons
            )

    def kept(epsilons: FloatArray) -> FloatArray:
        return held(users, epsilons, alpha, horizon, "optimal", "paper").epsilons

    found = optimise([one for _, one in users], alpha, by, starts, kept)
    plan = held(users, found.epsilons, alpha, horizon, "optimal", "paper")
    return replace(plan, objective=by.objective, error=by.error(plan.epsilons), error_bound=found.bound)


def _upper_bound(adversary: Adversary, name: str | None, alpha: float) -> float:
    """Algorithm 2. Budget e with ``L(a) + e <= a`` in both directions, so that no step of any horizon exceeds alpha."""
    found = _balance(adversary, alpha)
    if found.budget < max(SMALLEST_SHARE * alpha, SMALLEST):
        raise PlanError(nothing_lasts(adversary, name, alpha, "paper"))
    # Four ulps of alpha stay unspent: BPL and FPL then remain below their levels through any number of rounded steps.
    return found.budget - 4.0 * ULP * alpha


def _quantified(adversary: Adversary, name: str | None, alpha: float, n_steps: int) -> FloatArray:
    """Algorithm 3: ends at the levels themselves, the middle at the sustainable budget."""
    if n_steps == 1:
        return np.array([alpha])
    found = _balance(adversary, alpha)
    if found.budget <= 0.0:
        raise PlanError(nothing_lasts(adversary, name, alpha, "paper"))
    return np.array([found.backward_level, *[found.budget] * (n_steps - 2), found.forward_level])


def _balance(adversary: Adversary, alpha: float) -> Balance:
    return balance(merged_profile(adversary.backward), merged_profile(adversary.forward), alpha)
