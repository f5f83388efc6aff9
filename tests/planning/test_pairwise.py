"""Budgets under the pairwise bound: alpha is held, nothing is given back, and little is left over."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import circulant

from matrices import matrices
from temporaldp import (
    Adversary,
    BudgetError,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    InputError,
    PlanError,
    TemporalAccountant,
    TransitionMatrix,
    compare_plans,
    estimate_adversaries,
    leakage_supremum,
    load_plan,
    load_sample,
    plan_budget,
    save_plan,
    smoothed_correlation,
    strongest_correlation,
    sustainable_budget,
    temporal_leakage,
)

RING = TransitionMatrix(circulant([0.6, 0.2, 0.0, 0.0, 0.0, 0.2]))
METHODS = ("optimal", "quantified", "upper_bound", "uniform")


@pytest.fixture(scope="module")
def sleep():
    return next(estimate_adversaries(load_sample()))


@pytest.mark.parametrize("alpha", [0.05, 1.0, 4.0])
def test_what_lasts_for_ever_is_more_and_is_nearly_all(sleep, alpha):
    paper, found = (plan_budget(sleep, alpha=alpha, bound=bound) for bound in ("uniform", "pairwise"))
    assert found.epsilons[0] > 1.3 * paper.epsilons[0]
    assert found.bound == found.leakage.bound == "pairwise"
    assert found.leakage.worst <= alpha
    epsilon = float(found.epsilons[0])
    assert leakage_supremum(sleep, epsilon=epsilon, bound="pairwise").temporal <= alpha
    assert leakage_supremum(sleep, epsilon=epsilon * (1 + 1e-6), bound="pairwise").temporal > alpha
    assert temporal_leakage(sleep, epsilons=np.full(500, epsilon), bound="pairwise").worst <= alpha
    assert sustainable_budget(sleep, alpha=alpha, bound="pairwise") == pytest.approx(epsilon, rel=1e-9)
    assert sustainable_budget(sleep, alpha=alpha) == pytest.approx(paper.epsilons[0], rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("horizon", [1, 2, 10, 47])
def test_no_step_gets_less_than_under_the_uniform_bound(sleep, method, horizon):
    paper, found = (
        plan_budget(sleep, alpha=1.0, horizon=horizon, method=method, bound=bound) for bound in ("uniform", "pairwise")
    )
    assert (found.epsilons >= paper.epsilons * (1.0 - 1e-12)).all()
    again = temporal_leakage(sleep, epsilons=found.epsilons, bound="pairwise")
    assert found.leakage.worst == again.worst <= 1.0
    if method in {"optimal", "quantified"}:
        assert found.leakage.worst > 1.0 - 1e-6  # nothing is left over at the worst step
    if horizon >= 10 and method != "uniform":
        assert np.mean(1.0 / found.epsilons) < np.mean(1.0 / paper.epsilons)
    assert found.error_bound is None


def test_what_lasts_is_not_taken_from_a_plan_that_ends(sleep):
    """The least budget of a plan for few steps is more than lasts for ever, and no shape to level it with."""
    lasting = sustainable_budget(sleep, alpha=1.0, bound="pairwise")
    for horizon in (1, 3, 5):
        plan = plan_budget(sleep, alpha=1.0, horizon=horizon, bound="pairwise")
        assert plan.epsilons.min() > lasting
        assert plan_budget(
            sleep, alpha=1.0, horizon=horizon, method="upper_bound", bound="pairwise"
        ).epsilons == pytest.approx(np.full(horizon, lasting), rel=1e-7)


def test_the_gain_on_the_sample(sleep):
    paper, found = (plan_budget(sleep, alpha=1.0, horizon=47, bound=bound) for bound in ("uniform", "pairwise"))
    assert paper.error == pytest.approx(9.54, abs=0.01)
    assert found.error == pytest.approx(6.81, abs=0.01)


def test_a_budget_lasts_where_the_paper_has_none():
    adversary = Adversary(RING, RING)
    with pytest.raises(PlanError):
        plan_budget(adversary, alpha=1.0)
    assert sustainable_budget(adversary, alpha=1.0) == 0.0
    plan = plan_budget(adversary, alpha=1.0, bound="pairwise")
    assert plan.epsilons[0] == pytest.approx(0.0856, abs=1e-4)
    for method in ("optimal", "quantified"):
        with_horizon = plan_budget(adversary, alpha=1.0, horizon=20, method=method, bound="pairwise")
        assert (with_horizon.epsilons >= plan.epsilons[0] * (1 - 1e-9)).all()
        assert with_horizon.leakage.worst <= 1.0


def test_where_nothing_lasts_it_says_so():
    adversary = Adversary(TransitionMatrix(np.eye(3)))
    with pytest.raises(PlanError, match="certainty"):
        plan_budget(adversary, alpha=1.0, bound="pairwise")
    assert sustainable_budget(adversary, alpha=1.0, bound="pairwise") == 0.0
    plan = plan_budget(adversary, alpha=1.0, horizon=10, bound="pairwise")
    assert plan.leakage.worst <= 1.0


def test_without_correlation_everything_can_be_spent_at_every_step():
    assert plan_budget(Adversary(), alpha=0.5, bound="pairwise").epsilons[0] == pytest.approx(0.5, rel=1e-12)


@settings(max_examples=12)
@given(matrices(max_n=4, kinds=("integers", "zeros")), st.sampled_from([0.1, 1.0, 5.0]), st.integers(1, 6))
def test_alpha_is_held_whatever_the_matrix(matrix, alpha, horizon):
    adversary = Adversary(matrix, matrix)
    paper, found = (plan_budget(adversary, alpha=alpha, horizon=horizon, bound=b) for b in ("uniform", "pairwise"))
    assert found.leakage.worst <= alpha
    assert (found.epsilons >= paper.epsilons * (1.0 - 1e-12)).all()


def test_symmetry_leaves_nothing_to_gain():
    matrix = smoothed_correlation(strongest_correlation(5), s=0.05)
    paper, found = (sustainable_budget(Adversary(matrix), alpha=1.0, bound=b) for b in ("uniform", "pairwise"))
    assert paper <= found <= paper * (1.0 + 1e-6)


def test_steps_that_are_not_published_stay_so(sleep):
    weights = [1.0, 0.0, 2.0, 1.0, 0.0, 1.0]
    plan = plan_budget(sleep, alpha=1.0, horizon=6, weights=weights, bound="pairwise")
    paper = plan_budget(sleep, alpha=1.0, horizon=6, weights=weights)
    assert plan.epsilons[[1, 4]].tolist() == [0.0, 0.0]
    assert plan.error < paper.error
    assert plan.leakage.worst <= 1.0


def test_matrices_that_vary_with_time(sleep):
    chain = Adversary.from_forward(sleep.forward, initial=[0.9, 0.025, 0.025, 0.025, 0.025], horizon=8)
    for method in METHODS:
        paper, found = (
            plan_budget(chain, alpha=1.0, horizon=8, method=method, bound=bound) for bound in ("uniform", "pairwise")
        )
        assert (found.epsilons >= paper.epsilons * (1.0 - 1e-12)).all()
        assert found.leakage.worst <= 1.0
    with pytest.raises(InputError, match="constant"):
        sustainable_budget(chain, alpha=1.0, bound="pairwise")


def test_several_users_share_the_plan(sleep):
    users = {"sleeper": sleep, "other": Adversary(TransitionMatrix(np.full((5, 5), 0.2), sleep.states))}
    plan = plan_budget(users, alpha=1.0, horizon=12, bound="pairwise")
    for user in users.values():
        assert temporal_leakage(user, epsilons=plan.epsilons, bound="pairwise").worst <= 1.0


def test_a_budget_for_distances():
    distances = np.array([[min(abs(i - j), 6 - abs(i - j)) for j in range(6)] for i in range(6)], dtype=float)
    epsilon = sustainable_budget(Adversary(RING), alpha=1.0, bound="pairwise", metric=distances)
    found = leakage_supremum(Adversary(RING), epsilon=epsilon, bound="pairwise", metric=distances)
    assert 1.0 - 1e-6 < found.temporal <= 1.0
    assert epsilon > sustainable_budget(Adversary(RING), alpha=1.0, bound="pairwise") / distances.max()
    flat = sustainable_budget(Adversary(smoothed_correlation(RING, s=0.1)), alpha=1.0, metric=distances)
    plain = sustainable_budget(Adversary(smoothed_correlation(RING, s=0.1)), alpha=1.0)
    assert flat == pytest.approx(plain / 3.0, rel=1e-12)


def test_every_method_side_by_side(sleep):
    plans = compare_plans(sleep, alpha=1.0, horizon=10, bound="pairwise")
    assert set(plans) == set(METHODS)
    noise = {method: np.mean(1.0 / plan.epsilons) for method, plan in plans.items()}
    assert noise["optimal"] == min(noise.values())


def test_a_plan_keeps_its_bound_on_disk_and_holds_alone(sleep, tmp_path):
    plan = plan_budget(sleep, alpha=1.0, horizon=5, bound="pairwise")
    save_plan(plan, tmp_path / "plan.json")
    loaded = load_plan(tmp_path / "plan.json")
    assert loaded.bound == loaded.leakage.bound == "pairwise"
    assert "pairwise bound" in repr(loaded)
    mechanism = DiscreteLaplaceHistogram(n_states=5)
    accountant = TemporalAccountant(sleep, alpha=1.0, horizon=5)
    with pytest.raises(InputError, match="pair by pair"):
        ContinualRelease(mechanism, accountant=accountant, plan=loaded, ledger=tmp_path / "both.db")
    release = ContinualRelease(mechanism, plan=loaded, ledger=tmp_path / "alone.db")
    assert release.release([5, 4, 3, 2, 1], time=0) is not None


def test_bad_arguments_are_refused(sleep):
    with pytest.raises(InputError, match="uniform"):
        plan_budget(sleep, alpha=1.0, bound="best")
    with pytest.raises(InputError, match="uniform"):
        sustainable_budget(sleep, alpha=1.0, bound="best")
    with pytest.raises(BudgetError):
        sustainable_budget(sleep, alpha=-1.0, bound="pairwise")


def test_where_nothing_lasts_by_the_paper_the_tighter_bound_is_suggested():
    chain = TransitionMatrix([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.0, 0.0, 1.0]])
    identity = TransitionMatrix(np.eye(3))
    with pytest.raises(PlanError, match=r"by the paper's bound.*bound='pairwise'"):
        plan_budget(Adversary(identity), alpha=1.0)
    with pytest.raises(PlanError, match=r"by the bound pair by pair.*Give a horizon"):
        plan_budget(Adversary(identity), alpha=1.0, bound="pairwise")
    assert plan_budget(Adversary(backward=chain), alpha=1.0, bound="pairwise").leakage.worst <= 1.0
