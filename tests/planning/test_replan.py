"""The rest of a release, planned anew, against a general solver and the plan that it replaces."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from matrices import matrices
from temporaldp import (
    Adversary,
    BudgetError,
    InputError,
    PlanError,
    TemporalAccountant,
    TransitionMatrix,
    estimate_adversaries,
    load_sample,
    plan_budget,
    replan,
    temporal_leakage,
)

# An accountant counts by the paper's bound; the last tests are about plans by the exact leakage.
plan_by_paper = partial(plan_budget, bound="paper")
paper_leakage = partial(temporal_leakage, bound="paper")

MATRIX = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
OTHER = TransitionMatrix([[0.6, 0.4], [0.1, 0.9]])
ADVERSARY = Adversary(MATRIX, OTHER)


def started(adversary, alpha, horizon, spent):
    accountant = TemporalAccountant(adversary, alpha=alpha, horizon=horizon)
    for epsilon in spent:
        accountant.spend(epsilon)
    return accountant


def error(epsilons):
    return float(np.mean(1.0 / np.asarray(epsilons)))


@settings(max_examples=40)
@given(matrices(), matrices(), st.sampled_from([0.1, 1.0, 5.0]), st.integers(2, 8), st.data())
def test_a_new_plan_holds_the_level_is_admitted_and_no_worse_than_the_old_one(one, two, alpha, horizon, data):
    adversary = Adversary(one, two) if one.states == two.states else Adversary(one, one)
    planned = plan_by_paper(adversary, alpha=alpha, horizon=horizon)
    steps = data.draw(st.integers(1, horizon - 1))
    share = data.draw(st.floats(0.0, 1.0))
    accountant = started(adversary, alpha, horizon, share * planned.epsilons[:steps])
    new = replan(accountant)
    assert new.epsilons[:steps].tolist() == accountant.ledger.tolist()
    assert len(accountant) == steps
    assert new.leakage.worst <= alpha
    assert error(new.epsilons[steps:]) <= error(planned.epsilons[steps:]) * (1 + 1e-6)
    for epsilon in new.epsilons[steps:]:
        accountant.spend(epsilon)
    assert paper_leakage(adversary, epsilons=accountant.ledger).worst <= alpha


@pytest.mark.parametrize("alpha", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("spent", [[0.05], [0.02, 0.1], [0.0, 0.0, 0.15]])
def test_no_general_solver_finds_a_better_rest(alpha, spent):
    horizon = 6
    spent = np.array(spent) * alpha
    rest = horizon - len(spent)
    new = replan(started(ADVERSARY, alpha, horizon, spent)).epsilons[len(spent) :]

    def room(tail):
        return alpha - paper_leakage(ADVERSARY, epsilons=np.concatenate((spent, np.maximum(tail, 1e-9)))).temporal

    rng = np.random.default_rng(0)
    found = []
    for _ in range(4):
        start = alpha / horizon * rng.uniform(0.5, 1.5, rest)
        result = minimize(
            error, start, method="SLSQP", bounds=[(1e-6, alpha)] * rest, constraints={"type": "ineq", "fun": room},
            options={"maxiter": 500, "ftol": 1e-12},
        )  # fmt: skip
        if result.success and (room(result.x) > -1e-9).all():
            found.append(result.fun)
    assert found
    assert error(new) <= min(found) * (1 + 1e-6)


def test_more_is_left_where_less_was_spent():
    planned = plan_by_paper(ADVERSARY, alpha=1.0, horizon=8).epsilons
    less = replan(started(ADVERSARY, 1.0, 8, planned[:3] / 2)).epsilons
    assert error(less[3:]) < error(planned[3:])
    assert less[3] > planned[3] * 1.05


def test_nothing_spent_yet_gives_the_optimal_plan():
    new = replan(TemporalAccountant(ADVERSARY, alpha=1.0, horizon=7))
    assert new.epsilons == pytest.approx(plan_by_paper(ADVERSARY, alpha=1.0, horizon=7).epsilons, rel=1e-4)


@pytest.mark.parametrize("horizon", [2, 3, 5])
@pytest.mark.parametrize("both", [True, False])
def test_matrices_that_vary_with_time(horizon, both):
    several = [MATRIX if k % 2 else OTHER for k in range(horizon - 1)]
    adversary = Adversary(several, several if both else None)
    for steps in range(1, horizon):
        accountant = started(adversary, 1.0, None, [0.1] * steps)
        new = replan(accountant)
        assert new.leakage.worst == pytest.approx(1.0, rel=1e-6)
        accountant.spend_all(new.epsilons[steps:])


def test_what_arrives_counts_though_nothing_is_passed_on():
    """The transition into the first step to come carries leakage, those after it carry none."""
    flat = TransitionMatrix([[0.5, 0.5], [0.5, 0.5]])
    adversary = Adversary([TransitionMatrix(np.eye(2)), flat, flat], [flat] * 3)
    new = replan(started(adversary, 1.0, None, [0.6]))
    assert new.epsilons == pytest.approx([0.6, 0.4, 1.0, 1.0], rel=1e-6)


@pytest.mark.parametrize("adversary", [Adversary(), Adversary(MATRIX), Adversary(None, MATRIX)])
@pytest.mark.parametrize("steps", [1, 2])
def test_unknown_correlations(adversary, steps):
    new = replan(started(adversary, 1.0, 3, [0.1] * steps))
    assert new.leakage.worst == pytest.approx(1.0, rel=1e-6)


def test_several_users_and_weights():
    users = {"one": ADVERSARY, "two": Adversary(OTHER, MATRIX)}
    accountant = started(users, 1.0, 5, [0.1, 0.2])
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
        (started(ADVERSARY, 1.0, 3, [1.0 - 1e-14]), PlanError, "leaves nothing"),
    ],
)
def test_what_cannot_be_planned_is_refused(accountant, kind, message):
    with pytest.raises(kind, match=message):
        replan(accountant)


def test_an_exact_rest_holds_exactly_and_has_less_noise():
    adversary = next(estimate_adversaries(load_sample()))
    accountant = TemporalAccountant(adversary, alpha=1.0, horizon=12, reserve=0.0)
    accountant.spend_all([0.05, 0.02, 0.0])
    paper, exact = (replan(accountant, bound=bound) for bound in ("paper", "exact"))
    assert exact.epsilons[:3].tolist() == [0.05, 0.02, 0.0]
    assert exact.bound == "exact"
    assert temporal_leakage(adversary, epsilons=exact.epsilons).worst <= 1.0
    assert error(exact.epsilons[3:]) < 0.9 * error(paper.epsilons[3:])
    rest = replan(TemporalAccountant(adversary, alpha=1.0, horizon=12), bound="exact")
    assert rest.optimality.error == pytest.approx(
        plan_budget(adversary, alpha=1.0, horizon=12).optimality.error, rel=1e-5
    )
    weighted = replan(accountant, bound="exact", weights=[1, 0, 1, 0, 1, 0, 1, 0, 1])
    assert (weighted.epsilons[4::2] == 0.0).all()
    assert weighted.leakage.worst <= 1.0
