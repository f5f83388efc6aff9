"""The optimal plan against other people's optima, another family of solvers, brute force, and its own certificate."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize

from data_sets import sleep_sample
from making import random_correlation, smoothed_correlation, strongest_correlation
from matrices import matrices
from temporaldp import (
    Adversary,
    InputError,
    PaperBound,
    TransitionMatrix,
    compare_plans,
    estimate_adversaries,
    plan_budget,
    release_histograms,
    temporal_leakage,
)
from temporaldp.base.progress import watched
from temporaldp.publish.release import release_snapshots

# These tests are about the paper's bound and its plans; test_exact_plan.py is about the exact leakage.
plan_by_paper = partial(plan_budget, accounting=PaperBound())
paper_leakage = partial(temporal_leakage, accounting=PaperBound())
paper_plans = partial(compare_plans, accounting=PaperBound())

POWER = {"mean_absolute_error": 1, "mean_squared_error": 2}


def error(epsilons, objective="mean_absolute_error", weights=None):
    """The objective by its definition."""
    weights = np.ones(len(epsilons)) if weights is None else np.asarray(weights, dtype=float)
    on = weights > 0
    return float((weights[on] / np.asarray(epsilons)[on] ** POWER[objective]).sum() / weights.sum())


def sequential_quadratic(users, alpha, horizon, objective, start, weights=None):
    """SLSQP over the budgets alone: the accounting as a black box, numerical derivatives. Shares nothing with the solver."""

    def room(budgets):
        return np.concatenate([alpha - paper_leakage(user, np.abs(budgets)).temporal for user in users])

    found = minimize(
        lambda budgets: error(np.abs(budgets) + 1e-12, objective, weights),
        start,
        constraints={"type": "ineq", "fun": room},
        bounds=[(1e-6, alpha)] * horizon,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    budgets = np.clip(found.x, 1e-9, None)
    for _ in range(20):  # it may overstep by its own tolerance
        worst = max(paper_leakage(user, budgets).worst for user in users)
        budgets = budgets * min(1.0, alpha / worst)
    return budgets


@pytest.mark.long
def test_reference_optima(reference):
    for row in reference["optimal_plans"]["mean_inverse_epsilon"]:
        matrix = smoothed_correlation(strongest_correlation(50), s=row["s"])
        plan = plan_by_paper(
            Adversary(matrix, matrix), alpha=reference["optimal_plans"]["alpha"], horizon=row["horizon"]
        )
        assert plan.method == "optimal"
        assert error(plan.epsilons) == pytest.approx(row["optimal"], rel=1e-6)
        assert plan.optimality.error == pytest.approx(error(plan.epsilons), rel=1e-12)
        assert row["optimal"] * (1 + 1e-8) >= plan.optimality.error_bound >= row["optimal"] * (1 - 1e-4)


@pytest.mark.long
@settings(max_examples=8)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 12),
    st.integers(2, 9),
    st.floats(0.3, 4.0),
    st.sampled_from(["mean_absolute_error", "mean_squared_error"]),
)
def test_other_solvers_find_no_better_plan(seed, n, horizon, alpha, objective):
    rng = np.random.default_rng(seed)
    users = [
        Adversary(*(TransitionMatrix(rng.dirichlet(np.full(n, 0.7), size=n)) for _ in range(2)))
        for _ in range(int(rng.integers(1, 3)))
    ]
    plan = plan_by_paper(users, alpha=alpha, horizon=horizon, objective=objective)
    assert plan.leakage.worst <= alpha
    for start in (np.full(horizon, alpha / horizon), plan.epsilons * rng.uniform(0.6, 0.95, horizon)):
        other = sequential_quadratic(users, alpha, horizon, objective, start)
        assert max(paper_leakage(user, other).worst for user in users) <= alpha * (1 + 1e-12)
        assert error(other, objective) >= plan.optimality.error * (1 - 1e-6)
        assert error(other, objective) >= plan.optimality.error_bound


@pytest.mark.long
@settings(max_examples=20)
@given(
    matrices(kinds=("integers", "zeros", "near")),
    st.floats(0.01, 30.0),
    st.sampled_from([1, 2, 3, 8, 40]),
    st.sampled_from(["both", "backward", "forward", "neither"]),
    st.sampled_from(["mean_absolute_error", "mean_squared_error"]),
)
def test_plan_never_exceeds_alpha_and_is_never_worse_than_other_methods(matrix, alpha, horizon, known, objective):
    adversary = Adversary(
        matrix if known in ("both", "backward") else None, matrix if known in ("both", "forward") else None
    )
    plans = paper_plans(adversary, alpha=alpha, horizon=horizon, objective=objective).plans
    best = plans["optimal"]
    assert paper_leakage(adversary, best.epsilons).worst <= alpha
    for plan in plans.values():
        assert plan.leakage.worst <= alpha
        assert best.optimality.error <= error(plan.epsilons, objective) * (1 + 1e-12)
        assert error(plan.epsilons, objective) >= best.optimality.error_bound * (1 - 1e-12)
    assert 0 <= best.optimality.error_bound <= best.optimality.error


@pytest.mark.long
def test_no_plan_on_a_fine_grid_is_better_or_below_the_bound():
    adversary = Adversary(TransitionMatrix([[0.9, 0.1], [0.0, 1.0]]), TransitionMatrix([[0.7, 0.3], [0.1, 0.9]]))
    plan = plan_by_paper(adversary, alpha=1.0, horizon=3)
    grid = np.linspace(0.02, 1.0, 30)
    feasible = [
        error(budgets)
        for budgets in np.stack(np.meshgrid(grid, grid, grid), axis=-1).reshape(-1, 3)
        if budgets.max() < 0.95 and budgets.sum() > 1.0 and paper_leakage(adversary, budgets).worst <= 1.0
    ]
    assert len(feasible) > 50
    assert min(feasible) >= plan.optimality.error * (1 - 1e-9)
    assert min(feasible) == pytest.approx(
        plan.optimality.error, rel=0.1
    )  # and the grid comes close, so that the test can fail


def test_the_certificate_is_tight_where_the_problem_is_convex():
    # One vertex with d = 0: L is convex, and the problem then has no duality gap.
    matrix = TransitionMatrix([[0.9, 0.1], [0.0, 1.0]])
    plan = plan_by_paper(Adversary(matrix, matrix), alpha=1.0, horizon=30)
    assert plan.optimality.error_bound == pytest.approx(plan.optimality.error, rel=1e-4)


@pytest.mark.long
def test_several_users_jointly_are_at_least_as_good_as_the_minimum_over_users():
    users = [Adversary(random_correlation(6, rng=k), random_correlation(6, rng=50 + k)) for k in range(5)]
    plan = plan_by_paper(users, alpha=2.0, horizon=100)
    alone = np.min([plan_by_paper(user, alpha=2.0, horizon=100).epsilons for user in users], axis=0)
    assert plan.optimality.error <= error(alone) * (1 + 1e-9)
    for user in users:
        assert paper_leakage(user, plan.epsilons).worst <= 2.0


def test_dominated_users_do_not_change_the_plan():
    weak = Adversary(TransitionMatrix([[0.6, 0.4], [0.4, 0.6]]), None)
    strong = Adversary(TransitionMatrix([[0.9, 0.1], [0.1, 0.9]]), TransitionMatrix([[0.8, 0.2], [0.1, 0.9]]))
    alone = plan_by_paper(strong, alpha=1.0, horizon=12)
    both = plan_by_paper([weak, strong, Adversary()], alpha=1.0, horizon=12)
    assert both.optimality.error == pytest.approx(alone.optimality.error, rel=1e-9)
    assert both.optimality.error_bound == pytest.approx(alone.optimality.error_bound, rel=1e-6)


def test_time_varying_and_repeated_matrices():
    matrix = random_correlation(4, rng=9)
    constant = plan_by_paper(Adversary(matrix, matrix), alpha=1.0, horizon=15)
    repeated = plan_by_paper(Adversary([matrix] * 14, [matrix] * 14), alpha=1.0, horizon=15)
    assert repeated.optimality.error == pytest.approx(constant.optimality.error, rel=1e-8)
    varying = Adversary.from_forward(matrix, initial=[0.7, 0.1, 0.1, 0.1], horizon=15)
    plans = paper_plans(varying, alpha=1.0, horizon=15).plans
    assert plans["optimal"].leakage.worst <= 1.0
    assert plans["optimal"].optimality.error < error(plans["quantified"].epsilons)


@pytest.mark.long
def test_weights_move_budgets_and_a_step_without_weight_gets_none():
    matrix = TransitionMatrix([[0.9, 0.1], [0.2, 0.8]])
    adversary = Adversary(matrix, matrix)
    weights = [1, 1, 4, 0, 1, 1]
    plan = plan_by_paper(adversary, alpha=1.0, horizon=6, weights=weights)
    even = plan_by_paper(adversary, alpha=1.0, horizon=6)
    assert plan.epsilons[3] == 0.0
    assert plan.epsilons[2] > 1.2 * even.epsilons[2]
    assert plan.optimality.error == pytest.approx(error(plan.epsilons, weights=weights), rel=1e-12)
    other = sequential_quadratic([adversary], 1.0, 6, "mean_absolute_error", np.full(6, 1 / 6), weights)
    assert error(other, weights=weights) >= plan.optimality.error * (1 - 1e-6)
    assert plan.leakage.worst <= 1.0
    assert plan_by_paper(adversary, alpha=1.0, horizon=6, objective=weights).epsilons.tolist() == plan.epsilons.tolist()
    with pytest.raises(InputError, match="given twice"):
        plan_by_paper(adversary, alpha=1.0, horizon=6, objective=weights, weights=weights)
    assert release_snapshots(lambda count, epsilon: count, range(6), plan).outputs == (0, 1, 2, None, 4, 5)


def test_step_without_budget_is_not_published():
    sample = sleep_sample()
    (adversary,) = estimate_adversaries(sample)
    plan = plan_by_paper(adversary, alpha=1.0, horizon=47, weights=np.arange(47) % 2)
    released = release_histograms(sample, plan)
    assert released.times == sample.times[1::2]
    assert (released.epsilons > 0).all()


@pytest.mark.long
@pytest.mark.parametrize("horizon", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_middle_of_long_plans_is_the_sustainable_budget(horizon):
    (adversary,) = estimate_adversaries(sleep_sample())
    plan = plan_by_paper(adversary, alpha=1.0, horizon=horizon)
    for_ever = plan_by_paper(adversary, alpha=1.0).epsilons[0]
    assert plan.leakage.worst <= 1.0
    assert plan.epsilons[horizon // 4 : -horizon // 4] == pytest.approx(for_ever, rel=2e-3)
    assert plan.epsilons[0] > 1.5 * for_ever
    assert 0.9 * plan.optimality.error < plan.optimality.error_bound <= plan.optimality.error


def test_naive_plan_is_optimal_under_the_identity():
    matrix = strongest_correlation(3)
    plan = plan_by_paper(Adversary(matrix, matrix), alpha=1.0, horizon=20)
    assert plan.epsilons == pytest.approx([0.05] * 20, rel=1e-6)
    assert plan.optimality.error_bound == pytest.approx(20.0, rel=1e-4)


def stochastic(rows):
    rows = np.array(rows)
    return TransitionMatrix(rows / rows.sum(axis=1, keepdims=True))


def test_local_optima_of_uneven_weights_are_avoided():
    # Found by a random search: from the paper's plans alone, the solver ends 5 % above this shape, scaled until TPL = alpha.
    adversary = Adversary(
        stochastic([[0.9915060997803905, 0.008493900219609496], [9.593752711092187e-10, 0.9999999990406248]]),
        stochastic([[0.9618281204327074, 0.03817186956729262], [1.3873853048124456e-05, 0.9999861261469519]]),
    )
    weights = np.array([0.0794886968505064, 0.004717397982034528, 0.871613058436772, 0.04418084073068715])
    shape = np.sqrt(weights)
    factor = brentq(lambda f: paper_leakage(adversary, f * shape).worst - 50, 1e-3, 1e3, xtol=1e-12)
    plan = plan_by_paper(adversary, alpha=50, horizon=4, objective=weights)
    assert plan.optimality.error <= error(factor * shape, weights=weights)
    assert plan.optimality.error == pytest.approx(
        0.0446011, rel=1e-5
    )  # the best of 25 starts and of differential evolution


@pytest.mark.parametrize("alpha", [1e-4, 1e-12, 1e-20, 1e-60])
def test_plans_scale_with_small_alpha(alpha):
    adversary = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]), TransitionMatrix([[0.8, 0.2], [0.1, 0.9]]))
    reference, plan = (plan_by_paper(adversary, alpha=level, horizon=10) for level in (1e-6, alpha))
    assert plan.epsilons / alpha == pytest.approx(reference.epsilons / 1e-6, rel=1e-3)
    assert plan.optimality.error * alpha == pytest.approx(reference.optimality.error * 1e-6, rel=1e-4)
    assert plan.optimality.error_bound == pytest.approx(plan.optimality.error, rel=1e-5)


@pytest.mark.parametrize(
    ("weights", "best"),
    [
        ([1e-30, 1, 1, 1], 3.0),
        ([1e-300, 1, 1, 1], 3.0),
        ([1e-30, 1, 0, 1], 2.0),
        ([1e308, 1e308, 1, 1], 2.0),
        ([4, 1, 1, 4], 3.6),
    ],
)
def test_extreme_weights(weights, best):
    # Values that never change: e_t sum to alpha = 1, and the optimum is (sum of sqrt(w))^2 / sum of w.
    matrix = strongest_correlation(2)
    plan = plan_by_paper(Adversary(matrix, matrix), alpha=1.0, horizon=4, weights=weights)
    assert plan.optimality.error == pytest.approx(best, rel=1e-8)
    assert plan.optimality.error_bound == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("alpha", [500.0, 745.0, pytest.param(3000.0, marks=pytest.mark.slow)])
def test_enormous_alpha_is_planned_without_warnings(alpha):
    for matrix in (strongest_correlation(2), TransitionMatrix([[0.8, 0.2], [0.0, 1.0]])):
        plan = plan_by_paper(Adversary(matrix, matrix), alpha=alpha, horizon=20)
        assert plan.leakage.worst <= alpha
        assert plan.optimality.error_bound <= plan.optimality.error <= 20 / alpha * (1 + 1e-12)


def test_progress_of_a_comparison_covers_all_plans():
    told = []
    matrix = random_correlation(3, rng=0)
    with watched(lambda doing, share: told.append((doing, share))):
        paper_plans(Adversary(matrix, matrix), alpha=1.0, horizon=6)
    assert {doing for doing, _ in told} == {"plans by all methods"}
    shares = [share for _, share in told]
    assert shares == sorted(shares) and (shares[0], shares[-1]) == (0.0, 1.0)
