"""The last word about a plan: budgets that leak a little more than alpha are shrunk until they do not, and by no more."""

from __future__ import annotations

import numpy as np
import pytest

from methods import method_of
from temporaldp import Adversary, PlanError, TransitionMatrix, leakage_supremum, temporal_leakage
from temporaldp.core.planning.request import Request
from temporaldp.core.planning.within_level import plan_within_level

WALK = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
BOTH = Adversary(WALK, WALK)
TOO_MUCH = (0.0, 1e-15, 1e-13, 1e-11, 1e-8, 1e-3)


@pytest.mark.long
@pytest.mark.parametrize("bound", ["exact", "paper"])
@pytest.mark.parametrize("excess", TOO_MUCH)
def test_budgets_of_a_finite_horizon_are_reduced_minimally_below_alpha(bound, excess):
    epsilons = np.array([0.4, 0.1, 0.3, 0.2, 0.5])
    alpha = temporal_leakage(BOTH, epsilons, accounting=method_of(bound)).worst * (1.0 - excess)
    request = Request.checked(BOTH, alpha, 5, method_of(bound))
    plan = plan_within_level(request, epsilons, "optimal")
    told = temporal_leakage(BOTH, plan.epsilons, accounting=method_of(bound))
    assert plan.leakage.temporal.tolist() == told.temporal.tolist()
    # An accountant that rounds at every step must admit it: a little of alpha is left, and not much.
    assert told.worst <= alpha * (1.0 - request.plan_margin) < alpha
    assert told.worst >= alpha * (1.0 - 4.0 * (excess + request.plan_margin) - 1e-14)


@pytest.mark.long
@pytest.mark.parametrize("excess", TOO_MUCH)
def test_budget_of_an_infinite_horizon_is_reduced_minimally_below_alpha(excess):
    alpha = leakage_supremum(BOTH, 0.2).temporal * (1.0 - excess)
    plan = plan_within_level(Request.checked(BOTH, alpha, None), np.array([0.2]), "upper_bound")
    told = leakage_supremum(BOTH, float(plan.epsilons[0]))
    assert told.temporal <= alpha
    assert plan.leakage.worst == told.temporal
    assert plan.epsilons[0] >= 0.2 * (1.0 - 4.0 * excess - 1e-8)


@pytest.mark.long
def test_budgets_far_above_the_level_are_refused():
    with pytest.raises(PlanError):
        plan_within_level(Request.checked(BOTH, 0.1, 3), np.array([0.5, 0.5, 0.5]), "optimal")
