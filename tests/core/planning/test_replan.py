"""The rest of a release, planned anew, against a general solver and the plan that it replaces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from data_sets import sleep_sample
from matrices import matrices
from methods import TotalVariationAccounting, method_of
from temporaldp import (
    Adversary,
    BudgetError,
    Exact,
    InputError,
    IntervalMatrix,
    MetricPrivacy,
    PaperBound,
    PlanError,
    TemporalAccountant,
    TransitionMatrix,
    estimate_adversaries,
    plan_budget,
    replan,
    temporal_leakage,
)

BOUNDS = ("exact", "paper")

MATRIX = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
OTHER = TransitionMatrix([[0.6, 0.4], [0.1, 0.9]])
ADVERSARY = Adversary(MATRIX, OTHER)


def started(adversary, alpha, horizon, spent, bound="exact"):
    accountant = TemporalAccountant(adversary, alpha=alpha, horizon=horizon, accounting=method_of(bound))
    for epsilon in spent:
        accountant.spend(epsilon)
    return accountant


def error(epsilons):
    return float(np.mean(1.0 / np.asarray(epsilons)))


def line(n_states):
    return np.abs(np.subtract.outer(np.arange(n_states), np.arange(n_states))).astype(float)


def ring(n_states):
    """Distances of one-way streets, which no box of likelihoods has if there are three states or more."""
    return np.subtract.outer(np.arange(n_states), np.arange(n_states)).astype(float) % n_states


def within(matrix):
    return IntervalMatrix(np.maximum(matrix.dense() - 0.05, 0.0), np.minimum(matrix.dense() + 0.05, 1.0))


EVERY_METHOD = {
    "exact": lambda n_states: Exact(),
    "paper": lambda n_states: PaperBound(),
    "intervals": lambda n_states: Exact(),
    "metric": lambda n_states: MetricPrivacy(ring(n_states)),
    "metric of a box": lambda n_states: MetricPrivacy(line(n_states)),
    "own": lambda n_states: TotalVariationAccounting(),
}


@pytest.mark.long
@pytest.mark.parametrize("objective", ["mean_absolute_error", "mean_squared_error"])
@pytest.mark.parametrize("name", EVERY_METHOD)
@settings(max_examples=6)
@given(matrices(max_n=3), matrices(max_n=3), st.sampled_from([0.1, 1.0, 5.0]), st.integers(2, 8), st.data())
def test_new_plan_satisfies_the_level_and_is_no_worse_than_the_old_one(name, objective, one, two, alpha, horizon, data):
    two = two if one.states == two.states else one
    adversary = Adversary(within(one), within(two)) if name == "intervals" else Adversary(one, two)
    method, power = EVERY_METHOD[name](len(one.states)), 1 + (objective == "mean_squared_error")
    planned = plan_budget(adversary, alpha=alpha, horizon=horizon, accounting=method, objective=objective).epsilons
    steps = data.draw(st.integers(1, horizon - 1))
    share = data.draw(st.sampled_from([0.0, 0.3, 0.9, 1.0]))
    spent, accountant = share * planned[:steps], started(adversary, alpha, horizon, [], method)
    # Step by step, one of a box counts by a larger bound than a plan
    accountant.spend(spent if name != "metric of a box" or accountant.admits(spent) else 0.3 * spent)
    still_admitted = accountant.admits(planned[steps:])
    assert still_admitted or name == "metric of a box"
    new = replan(accountant, objective=objective)
    assert new.epsilons[:steps].tolist() == accountant.spent.tolist()
    assert len(accountant) == steps
    assert new.leakage.worst <= alpha
    if still_admitted:
        assert error(new.epsilons[steps:] ** power) <= error(planned[steps:] ** power) * (1 + 1e-6)
    accountant.spend(new.epsilons[steps:])
    assert temporal_leakage(adversary, accountant.spent, accounting=method).worst <= alpha


@pytest.mark.long
def test_intervals_keep_the_shape_of_their_plan_where_less_was_spent():
    busy = TransitionMatrix([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.4, 0.1, 0.5]])
    adversary = Adversary(within(busy), within(busy))
    planned = plan_budget(adversary, alpha=1.0, horizon=8).epsilons
    new = replan(started(adversary, 1.0, 8, 0.9 * planned[:1])).epsilons
    assert error(new[1:]) < error(planned[1:])


@pytest.mark.long
@pytest.mark.parametrize("alpha", [1.0, *(pytest.param(each, marks=pytest.mark.slow) for each in (0.3, 3.0))])
@pytest.mark.parametrize("spent", [[0.05], [0.02, 0.1], [0.0, 0.0, 0.15]])
@pytest.mark.parametrize("bound", BOUNDS)
def test_general_solver_finds_no_better_remaining_plan(bound, alpha, spent):
    horizon = 6
    spent = np.array(spent) * alpha
    rest = horizon - len(spent)
    new = replan(started(ADVERSARY, alpha, horizon, spent, bound)).epsilons[len(spent) :]

    def room(tail):
        budgets = np.concatenate((spent, np.maximum(tail, 1e-9)))
        return alpha - temporal_leakage(ADVERSARY, budgets, accounting=method_of(bound)).temporal

    rng = np.random.default_rng(0)
    found = []
    for _ in range(2):
        start = alpha / horizon * rng.uniform(0.5, 1.5, rest)
        result = minimize(
            error, start, method="SLSQP", bounds=[(1e-6, alpha)] * rest, constraints={"type": "ineq", "fun": room},
            options={"maxiter": 500, "ftol": 1e-12},
        )  # fmt: skip
        if result.success and (room(result.x) > -1e-9).all():
            found.append(result.fun)
    assert found
    assert error(new) <= min(found) * (1 + 1e-6)


@pytest.mark.long
@pytest.mark.parametrize("bound", BOUNDS)
def test_less_spent_leaves_more_budget(bound):
    planned = plan_budget(ADVERSARY, alpha=1.0, horizon=8, accounting=method_of(bound)).epsilons
    less = replan(started(ADVERSARY, 1.0, 8, planned[:3] / 2, bound)).epsilons
    assert error(less[3:]) < error(planned[3:])
    assert less[3] > planned[3] * 1.05


@pytest.mark.long
@pytest.mark.parametrize("bound", BOUNDS)
def test_nothing_spent_yet_gives_the_optimal_plan(bound):
    new = replan(started(ADVERSARY, 1.0, 7, [], bound))
    planned = plan_budget(ADVERSARY, alpha=1.0, horizon=7, accounting=method_of(bound))
    assert new.epsilons == pytest.approx(planned.epsilons, rel=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("horizon", [2, 3, 5])
@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("bound", BOUNDS)
def test_time_varying_matrices(bound, horizon, both):
    several = [MATRIX if k % 2 else OTHER for k in range(horizon - 1)]
    adversary = Adversary(several, several if both else None)
    for steps in range(1, horizon):
        accountant = started(adversary, 1.0, None, [0.1] * steps, bound)
        new = replan(accountant)
        assert new.leakage.worst == pytest.approx(1.0, rel=1e-6)
        accountant.spend(new.epsilons[steps:])


@pytest.mark.long
@pytest.mark.parametrize("bound", BOUNDS)
def test_incoming_leakage_counts_without_outgoing_leakage(bound):
    """The transition into the first step to come carries leakage, those after it carry none."""
    flat = TransitionMatrix([[0.5, 0.5], [0.5, 0.5]])
    adversary = Adversary([TransitionMatrix(np.eye(2)), flat, flat], [flat] * 3)
    new = replan(started(adversary, 1.0, None, [0.6], bound))
    assert new.epsilons == pytest.approx([0.6, 0.4, 1.0, 1.0], rel=1e-6)


@pytest.mark.parametrize("adversary", [Adversary(), Adversary(MATRIX), Adversary(None, MATRIX)])
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("bound", BOUNDS)
def test_unknown_correlations(bound, adversary, steps):
    new = replan(started(adversary, 1.0, 3, [0.1] * steps, bound))
    assert new.leakage.worst == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("bound", BOUNDS)
def test_several_users_and_weights(bound):
    users = {"one": ADVERSARY, "two": Adversary(OTHER, MATRIX)}
    accountant = started(users, 1.0, 5, [0.1, 0.2], bound)
    new = replan(accountant, weights=[1.0, 0.0, 3.0], objective="mean_squared_error")
    assert new.epsilons[3] == 0.0
    assert new.epsilons[4] > new.epsilons[2] > 0.0
    assert new.leakage.worst <= 1.0


@pytest.mark.parametrize(
    ("accountant", "kind", "message"),
    [
        (TemporalAccountant(ADVERSARY, horizon=3), InputError, "alpha and horizon"),
        (TemporalAccountant(ADVERSARY, alpha=1.0), InputError, "alpha and horizon"),
        (TemporalAccountant(ADVERSARY, alpha=1.0, horizon=3, reserve=0.01), InputError, "reserve=0"),
        (started(ADVERSARY, 1.0, 2, [0.1, 0.1]), BudgetError, "all 2 steps"),
        (started(ADVERSARY, 1.0, 3, [1.0 - 1e-14], "paper"), PlanError, "leaves nothing"),
    ],
)
def test_invalid_requests_are_refused(accountant, kind, message):
    with pytest.raises(kind, match=message):
        replan(accountant)


@pytest.mark.long
def test_exact_remaining_plan_satisfies_the_level_with_less_noise():
    adversary = next(estimate_adversaries(sleep_sample()))
    spent = [0.05, 0.02, 0.0]
    paper, exact = (replan(started(adversary, 1.0, 12, spent, bound)) for bound in ("paper", "exact"))
    assert exact.epsilons[:3].tolist() == spent
    assert (exact.accounting.name, paper.accounting.name) == ("exact", "paper")
    assert temporal_leakage(adversary, exact.epsilons).worst <= 1.0
    assert error(exact.epsilons[3:]) < 0.9 * error(paper.epsilons[3:])
    rest = replan(started(adversary, 1.0, 12, []))
    assert rest.optimality.error == pytest.approx(
        plan_budget(adversary, alpha=1.0, horizon=12).optimality.error, rel=1e-5
    )
    weighted = replan(started(adversary, 1.0, 12, spent), weights=[1, 0, 1, 0, 1, 0, 1, 0, 1])
    assert (weighted.epsilons[4::2] == 0.0).all()
    assert weighted.leakage.worst <= 1.0


@pytest.mark.long
def test_remaining_plan_after_an_exhausted_first_step():
    accountant = TemporalAccountant(Adversary(backward=MATRIX), alpha=1.0, horizon=6)
    accountant.spend(accountant.remaining())
    with np.errstate(all="raise"):
        plan = replan(accountant)
    assert plan.leakage.worst <= 1.0
    assert (plan.epsilons > 0.0).all()
