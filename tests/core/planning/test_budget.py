"""Budget plans: reference numbers, and the one promise that every method must keep."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq

from making import smoothed_correlation, strongest_correlation
from matrices import matrices
from temporaldp import (
    Adversary,
    BudgetError,
    InputError,
    PaperBound,
    PlanError,
    TransitionMatrix,
    leakage_supremum,
    plan_budget,
    sustainable_budget,
    temporal_leakage,
)
from temporaldp.core.correlation import lazy_walk

# These tests are about the paper's bound and its plans; test_exact_plan.py is about the exact leakage.
plan_by_paper = partial(plan_budget, accounting=PaperBound())
paper_leakage = partial(temporal_leakage, accounting=PaperBound())
paper_supremum = partial(leakage_supremum, accounting=PaperBound())

METHODS = ("optimal", "upper_bound", "quantified", "uniform")
PAPERS = ("upper_bound", "quantified")
BACKWARD = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
FORWARD = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])


def test_reference_budgets_of_the_authors(reference):
    case = next(c for c in reference["cases"] if c["name"] == "allocation_figure")
    adversary = Adversary(TransitionMatrix(case["backward"]), TransitionMatrix(case["forward"]))
    for alpha, expected in case["quantified"].items():
        epsilons = plan_by_paper(adversary, alpha=float(alpha), horizon=10, method="quantified").epsilons
        assert epsilons[0] == pytest.approx(expected["first"], rel=1e-12)
        assert epsilons[1:-1] == pytest.approx([expected["middle"]] * 8, rel=1e-12)
        assert epsilons[-1] == pytest.approx(expected["last"], rel=1e-12)
    for alpha, expected in case["upper_bound"].items():
        assert plan_by_paper(adversary, alpha=float(alpha)).epsilons[0] == pytest.approx(expected, rel=1e-12)


def test_reference_noise_of_the_papers_methods(reference):
    for row in reference["optimal_plans"]["mean_inverse_epsilon"]:
        matrix = smoothed_correlation(strongest_correlation(50), s=row["s"])
        for method, name in (("upper_bound",) * 2, ("quantified",) * 2, ("uniform", "uniform_alpha_over_T")):
            plan = plan_by_paper(Adversary(matrix, matrix), alpha=2.0, horizon=row["horizon"], method=method)
            # The reference prints six to ten digits.
            assert np.mean(1 / plan.epsilons) == pytest.approx(row[name], rel=2e-6)


@given(
    matrices(kinds=("integers", "near", "zeros")),
    matrices(kinds=("integers", "near", "zeros")),
    st.floats(1e-6, 50.0),
    st.sampled_from([None, 1, 2, 3, 7, 60]),
    st.sampled_from(METHODS),
    st.sampled_from(["both", "backward", "forward", "neither"]),
)
def test_no_plan_leaks_more_than_its_alpha(one, two, alpha, horizon, method, known):
    assume(known != "both" or one.n_states == two.n_states)
    assume(horizon is not None or method == "upper_bound")
    adversary = Adversary(one if known in ("both", "backward") else None, two if known in ("both", "forward") else None)
    try:
        plan = plan_by_paper(adversary, alpha=alpha, horizon=horizon, method=method)
    except PlanError:
        assert method in PAPERS
        return
    assert (plan.epsilons > 0).all()
    assert plan.leakage.worst <= alpha
    for steps in (1, 2, 5, 400) if horizon is None else {1, max(1, horizon // 2), horizon}:
        assert paper_leakage(adversary, plan.epsilons_for(steps)).worst <= alpha


@pytest.mark.parametrize("s", [0.1, 0.001])
@pytest.mark.parametrize("alpha", [1e-6, 0.5, 5.0])
def test_plan_of_an_infinite_horizon_satisfies_the_level_over_long_series(s, alpha):
    matrix = smoothed_correlation(strongest_correlation(4), s=s)
    adversary = Adversary(matrix, matrix)
    plan = plan_by_paper(adversary, alpha=alpha)
    series = paper_leakage(adversary, plan.epsilons_for(100_000))
    assert series.worst <= alpha
    assert paper_supremum(adversary, float(plan.epsilons[0])).temporal == pytest.approx(alpha, rel=1e-9)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 6.0])
@pytest.mark.parametrize("horizon", [1, 2, 3, 20])
def test_quantified_plans_leak_alpha_at_every_step(alpha, horizon):
    plan = plan_by_paper(Adversary(BACKWARD, FORWARD), alpha=alpha, horizon=horizon, method="quantified")
    assert plan.leakage.temporal == pytest.approx(np.full(horizon, alpha), rel=1e-11)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 6.0])
def test_upper_bound_plans_are_the_root_of_the_closed_form(alpha):
    # Independent: sup BPL + sup FPL - e = alpha, solved in e with the two-state closed form of Theorem 5.
    def closed(q, d, e):
        b = d + q * np.exp(e) - 1
        return np.log((np.sqrt(4 * d * np.exp(e) * (1 - q) + b * b) + b) / (2 * d))

    def forward(e):  # two vertices: (0.1, 0.8) and (0.2, 0.9)
        return max(closed(0.8, 0.1, e), closed(0.9, 0.2, e))

    expected = brentq(lambda e: closed(0.8, 0.2, e) + forward(e) - e - alpha, 1e-9, alpha, xtol=1e-15)
    plan = plan_by_paper(Adversary(BACKWARD, FORWARD), alpha=alpha)
    assert plan.epsilons == pytest.approx([expected], rel=1e-9)


def test_several_users_get_the_minimum_and_all_satisfy_the_level():
    users = {
        "mild": Adversary(TransitionMatrix([[0.6, 0.4], [0.4, 0.6]]), None),
        "strong": Adversary(BACKWARD, FORWARD),
        "future": Adversary(None, TransitionMatrix([[0.99, 0.01], [0.01, 0.99]])),
    }
    plan = plan_by_paper(users, alpha=1.0, horizon=9, method="quantified")
    alone = [plan_by_paper(user, alpha=1.0, horizon=9, method="quantified").epsilons for user in users.values()]
    assert plan.epsilons == pytest.approx(np.min(alone, axis=0), rel=1e-12)
    for user in users.values():
        assert paper_leakage(user, plan.epsilons).worst <= 1.0
    constant = plan_by_paper(list(users.values()), alpha=1.0)
    assert constant.epsilons[0] == pytest.approx(
        min(plan_by_paper(user, alpha=1.0).epsilons[0] for user in users.values()), rel=1e-12
    )


def test_plans_of_time_varying_matrices_satisfy_the_level():
    adversary = Adversary.from_forward(FORWARD, initial=[0.9, 0.1], horizon=12)
    for method in METHODS:
        plan = plan_by_paper(adversary, alpha=1.0, horizon=12, method=method)
        assert paper_leakage(adversary, plan.epsilons).worst <= 1.0
    assert plan_by_paper(adversary, alpha=1.0, horizon=12).leakage.worst > 0.8
    with pytest.raises(BudgetError, match="matrices for 12 steps, but there are 5"):
        plan_by_paper(adversary, alpha=1.0, horizon=5)
    with pytest.raises(BudgetError, match="expected a horizon of 12 steps"):
        plan_by_paper(adversary, alpha=1.0)


@pytest.mark.parametrize("horizon", [None, 2, 3, 10])
def test_disjoint_rows_are_named_and_a_horizon_is_suggested(horizon):
    matrix = TransitionMatrix([[1, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]], ["home", "work", "shop"])
    with pytest.raises(
        PlanError, match=r"distinguishes '(home|work)' from '(home|work|shop)' with certainty.*horizon.*prior"
    ):
        plan_by_paper(
            Adversary(matrix, matrix), alpha=1.0, horizon=horizon, method="quantified" if horizon else "upper_bound"
        )
    plan = plan_by_paper(Adversary(matrix, matrix), alpha=1.0, horizon=10, method="uniform")
    assert plan.epsilons == pytest.approx([0.1] * 10)
    assert plan.leakage.worst <= 1.0


def test_plan_of_one_step_spends_alpha():
    for method in ("optimal", "quantified", "uniform"):
        plan = plan_by_paper(Adversary(strongest_correlation(2)), alpha=0.7, horizon=1, method=method)
        assert plan.epsilons == pytest.approx([0.7], rel=1e-13)


def test_plan_is_a_sequence_of_budgets():
    plan = plan_by_paper(Adversary(BACKWARD, FORWARD), alpha=1.0, horizon=4)
    assert plan.epsilons_for(2).tolist() == plan.epsilons[:2].tolist()
    with pytest.raises(BudgetError, match="shorter than the data: it is for 4 steps, the data have 5"):
        plan.epsilons_for(5)
    with pytest.raises(BudgetError, match="at least 1 step"):
        plan.epsilons_for(0)
    assert len(plan_by_paper(Adversary(), alpha=1.0).epsilons_for(1000)) == 1000
    with pytest.raises(ValueError, match="read-only"):
        plan.epsilons[0] = 5.0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"alpha": 0.0}, BudgetError, "alpha to be a finite number >= 1e-100"),
        ({"alpha": float("nan")}, BudgetError, "alpha to be a finite number >= 1e-100"),
        ({"alpha": 1.0, "horizon": 0}, BudgetError, "whole number of at least 1, got 0"),
        ({"alpha": 1.0, "horizon": 2.5}, BudgetError, "whole number"),
        ({"alpha": 1.0, "method": "quantified"}, BudgetError, "needs the horizon"),
        ({"alpha": 1.0, "method": "optimal"}, BudgetError, "needs the horizon"),
        ({"alpha": 1.0, "horizon": 3, "objective": "beauty"}, InputError, "mean_absolute_error, mean_squared_error"),
        ({"alpha": 1.0, "horizon": 3, "weights": [1, 2]}, BudgetError, "weights of shape"),
        ({"alpha": 1.0, "horizon": 2, "weights": [1, -2]}, BudgetError, "weights to be finite numbers >= 0"),
        ({"alpha": 1.0, "horizon": 2, "weights": [0, 0]}, BudgetError, "at least one weight above 0"),
        ({"alpha": 1.0, "horizon": 2, "weights": [1, 2], "method": "uniform"}, BudgetError, "weights are for"),
        ({"alpha": 1.0, "method": "magic"}, InputError, "optimal, upper_bound, quantified, uniform"),
    ],
)
def test_invalid_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        plan_by_paper(Adversary(BACKWARD), **arguments)


@pytest.mark.parametrize("q", [1 - 1e-6, 1 - 1e-10])
@pytest.mark.parametrize("alpha", [1.0, 30.0, 100.0])
def test_plans_of_infinite_horizons_under_very_strong_correlation(q, alpha):
    matrix = TransitionMatrix([[q, 1 - q], [0.0, 1.0]])
    plan = plan_by_paper(Adversary(matrix), alpha=alpha)
    assert plan.epsilons[0] == pytest.approx(matrix.leakage_profile().sustainable_budget(alpha=alpha), rel=5e-2)


def test_budgets_of_the_naive_plan_sum_to_at_most_alpha():
    for horizon in range(1, 200):
        plan = plan_by_paper(Adversary(), alpha=1.1, horizon=horizon, method="uniform")
        assert math.fsum(plan.epsilons) <= 1.1


@pytest.mark.parametrize("stays", [1e-6, 0.001, 0.3, 0.5, 0.999])
def test_two_interchangeable_states_have_the_papers_budget(stays):
    """Of the symmetric chain, the paper's fixed point is exact: with a = BPL before the last release, a + epsilon = BPL."""
    matrix = TransitionMatrix([[stays, 1.0 - stays], [1.0 - stays, stays]])
    adversary = Adversary(matrix, matrix)
    assert adversary.is_interchangeable
    found = sustainable_budget(adversary, 1.0)

    def supremum(epsilon):
        past, kept = 0.0, max(stays, 1.0 - stays)
        for _ in range(20_000):
            past = epsilon + math.log((kept * math.exp(past) + 1.0 - kept) / ((1.0 - kept) * math.exp(past) + kept))
        return 2.0 * past - epsilon

    if 1e-3 <= stays <= 0.999:
        assert supremum(found) <= 1.0 + 1e-9 and supremum(found * (1.0 + 1e-6)) > 1.0
    assert found == sustainable_budget(adversary, 1.0, accounting=PaperBound())
    swapped = TransitionMatrix([[0.7, 0.3], [0.4, 0.6]])
    assert not Adversary(swapped).is_interchangeable and not Adversary(lazy_walk(0.5, 3)).is_interchangeable
