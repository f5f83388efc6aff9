"""Plans by the exact leakage: alpha is held, nothing is left over, and a general solver finds nothing better."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from scipy.linalg import circulant
from scipy.optimize import minimize

from data_sets import sleep_sample
from making import strongest_correlation
from matrices import matrices
from methods import method_of
from oracles import defined_leakage
from places import REPOSITORY
from temporaldp import (
    Adversary,
    BudgetError,
    InputError,
    MetricPrivacy,
    PaperBound,
    PlanError,
    TemporalAccountant,
    TransitionMatrix,
    compare_plans,
    estimate_adversaries,
    leakage_supremum,
    plan_budget,
    sustainable_budget,
    temporal_leakage,
)
from temporaldp.core.planning.exact_plan import raised

RING = TransitionMatrix(circulant([0.6, 0.2, 0.0, 0.0, 0.0, 0.2]))
METHODS = ("optimal", "quantified", "upper_bound", "uniform")
REFERENCE = json.loads((REPOSITORY / "tests" / "support" / "exact_values.json").read_text())


@pytest.fixture(scope="module")
def sleep():
    return next(estimate_adversaries(sleep_sample()))


def error(epsilons, weights=None, power=1):
    weights = np.ones(len(epsilons)) if weights is None else np.asarray(weights, dtype=float)
    on = weights > 0
    return float((weights[on] / np.asarray(epsilons)[on] ** power).sum() / weights.sum())


def enumerated(users, budgets):
    """The largest TPL of any user at each step, by the definition: every output of the worst mechanism."""
    found = []
    for one in users:
        n = len(one.states)
        known = [
            [matrix.dense() if matrix else np.full((n, n), 1.0 / n)] * (len(budgets) - 1)
            for matrix in (one.backward, one.forward)
        ]
        found.append(defined_leakage(*known, budgets)[2])
    return np.max(found, axis=0)


def black_box(users, alpha, start, power):
    """SLSQP with numerical derivatives over the enumerated definition: shares nothing with the solver or the accounting."""
    found = minimize(
        lambda budgets: error(np.abs(budgets) + 1e-12, power=power),
        start,
        constraints={"type": "ineq", "fun": lambda budgets: alpha - enumerated(users, np.abs(budgets))},
        bounds=[(1e-6, alpha)] * len(start),
        method="SLSQP",
        options={"maxiter": 60, "ftol": 1e-10},
    )
    budgets = np.clip(found.x, 1e-9, None)
    for _ in range(30):  # it may overstep by its own tolerance
        budgets = budgets * min(1.0, alpha / enumerated(users, budgets).max())
    return budgets


@pytest.mark.long
@pytest.mark.parametrize("case", REFERENCE["plans"], ids=lambda case: f"T{case['T']}")
def test_plans_are_at_least_as_good_as_the_reference(sleep, case):
    plan = plan_budget(sleep, alpha=case["alpha"], horizon=case["T"])
    assert plan.accounting.name == plan.leakage.accounting.name == "exact"
    assert plan.leakage.worst <= case["alpha"]
    assert plan.optimality.error == pytest.approx(error(plan.epsilons), rel=1e-12)
    assert plan.optimality.error <= case["error"] * (1 + 1e-4)
    paper = plan_budget(sleep, alpha=case["alpha"], horizon=case["T"], accounting=PaperBound())
    assert paper.optimality.error == pytest.approx(case["paper"], rel=1e-4)


@settings(max_examples=4)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 3),
    st.integers(2, 4),
    st.floats(0.3, 3.0),
    st.sampled_from([1, 2]),
    st.sampled_from([("backward", "forward"), ("backward",), ("forward",)]),
)
@example(0, 3, 4, 3.0, 1, ("backward",))
@pytest.mark.long
def test_general_solver_finds_no_better_plan(seed, n, horizon, alpha, power, sides):
    rng = np.random.default_rng(seed)
    users = [
        Adversary(**{side: TransitionMatrix(rng.dirichlet(np.full(n, 0.7), size=n)) for side in sides})
        for _ in range(int(rng.integers(1, 3)))
    ]
    objective = {1: "mean_absolute_error", 2: "mean_squared_error"}[power]
    plan = plan_budget(users, alpha=alpha, horizon=horizon, objective=objective)
    assert plan.leakage.worst <= alpha
    assert enumerated(users, plan.epsilons).max() <= alpha * (1 + 1e-13)
    for start in (np.full(horizon, alpha / horizon), plan.epsilons * rng.uniform(0.7, 0.95, horizon)):
        assert error(black_box(users, alpha, start, power), power=power) >= plan.optimality.error * (1 - 1e-4)


@settings(max_examples=2, phases=[Phase.generate])
@given(
    matrices(max_n=3, kinds=("integers", "zeros", "near")),
    st.sampled_from([1e-6, 0.1, 1.0, 5.0]),
    st.integers(1, 4),
    st.sampled_from(["both", "backward", "forward", "neither"]),
)
def test_alpha_is_satisfied_and_no_plan_by_the_papers_bound_is_better(matrix, alpha, horizon, known):
    adversary = Adversary(
        matrix if known in ("both", "backward") else None, matrix if known in ("both", "forward") else None
    )
    exact = compare_plans(adversary, alpha=alpha, horizon=horizon).plans
    paper = compare_plans(adversary, alpha=alpha, horizon=horizon, accounting=PaperBound()).plans
    assert set(paper) <= set(exact)
    for method, plan in exact.items():
        assert temporal_leakage(adversary, plan.epsilons).worst <= alpha
        if method in paper:
            # At tiny levels a filter stays a billionth below alpha, and so does a plan that it admits.
            assert error(plan.epsilons) <= error(paper[method].epsilons) * (1 + 2e-9)
        assert exact["optimal"].optimality.error <= error(plan.epsilons) * (1 + 1e-6)
    assert exact["optimal"].optimality.error_bound is None


@pytest.mark.long
@pytest.mark.parametrize("alpha", [0.05, *(pytest.param(each, marks=pytest.mark.slow) for each in (1.0, 4.0))])
def test_sustainable_budget_nearly_exhausts_the_level(sleep, alpha):
    paper, exact = (plan_budget(sleep, alpha=alpha, accounting=method_of(bound)) for bound in ("paper", "exact"))
    epsilon = float(exact.epsilons[0])
    assert epsilon > 1.3 * paper.epsilons[0]
    assert exact.accounting.name == exact.leakage.accounting.name == "exact"
    assert leakage_supremum(sleep, epsilon).temporal <= alpha
    assert leakage_supremum(sleep, epsilon * (1 + 1e-6)).temporal > alpha
    assert temporal_leakage(sleep, np.full(100, epsilon)).worst <= alpha
    assert sustainable_budget(sleep, alpha=alpha) == pytest.approx(epsilon, rel=1e-9)
    assert sustainable_budget(sleep, alpha=alpha, accounting=PaperBound()) == pytest.approx(
        paper.epsilons[0], rel=1e-12
    )


@pytest.mark.slow
def test_middle_of_long_plans_is_the_sustainable_budget(sleep):
    plan = plan_budget(sleep, alpha=1.0, horizon=120)
    lasting = sustainable_budget(sleep, alpha=1.0)
    assert plan.epsilons[45:-45] == pytest.approx(np.full(30, lasting), rel=1e-3)
    assert plan.epsilons[0] > 1.5 * lasting


@pytest.mark.long
def test_sustainable_budget_exists_where_the_paper_has_none():
    adversary = Adversary(RING, RING)
    assert sustainable_budget(adversary, alpha=1.0, accounting=PaperBound()) == 0.0
    with pytest.raises(PlanError, match=r"by the paper's bound.*exact leakage"):
        plan_budget(adversary, alpha=1.0, accounting=PaperBound())
    plan = plan_budget(adversary, alpha=1.0)
    assert plan.epsilons[0] == pytest.approx(0.0885, abs=1e-4)
    for method in ("optimal", "quantified"):
        with_horizon = plan_budget(adversary, alpha=1.0, horizon=5, method=method)
        assert with_horizon.leakage.worst <= 1.0
        assert np.mean(1 / with_horizon.epsilons) < 1 / plan.epsilons[0]


def test_without_a_sustainable_budget_the_error_states_why_and_what_to_do():
    adversary = Adversary(TransitionMatrix(np.eye(3)))
    with pytest.raises(PlanError, match=r"sustainable.*closed classes.*horizon"):
        plan_budget(adversary, alpha=1.0)
    assert sustainable_budget(adversary, alpha=1.0) == 0.0
    plan = plan_budget(adversary, alpha=1.0, horizon=10)
    assert plan.leakage.worst <= 1.0
    assert plan.epsilons == pytest.approx(np.full(10, 0.1), rel=1e-5)


def test_without_correlation_every_step_can_spend_alpha():
    assert plan_budget(Adversary(), alpha=0.5).epsilons[0] == pytest.approx(0.5, rel=1e-12)
    assert plan_budget(Adversary(), alpha=0.5, horizon=4).epsilons == pytest.approx(np.full(4, 0.5), rel=1e-6)


@pytest.mark.long
def test_transient_state_limits_the_sustainable_budget():
    chain = TransitionMatrix(
        [[0.8, 0.2], [0.0, 1.0]]
    )  # lasts below -log 0.8, at the cost that the paper's closed form says
    for alpha in (0.5, 3.0):
        expected = chain.leakage_profile().sustainable_budget(alpha=alpha)
        assert sustainable_budget(Adversary(chain), alpha=alpha) == pytest.approx(expected, rel=1e-6)


@pytest.mark.long
def test_unpublished_steps_stay_unpublished_and_weights_apply(sleep):
    weights = [1.0, 0.0, 5.0, 1.0, 0.0, 1.0]
    plan = plan_budget(sleep, alpha=1.0, horizon=6, weights=weights)
    even = plan_budget(sleep, alpha=1.0, horizon=6, weights=[1, 0, 1, 1, 0, 1])
    paper = plan_budget(sleep, alpha=1.0, horizon=6, weights=weights, accounting=PaperBound())
    assert plan.epsilons[[1, 4]].tolist() == [0.0, 0.0]
    assert plan.epsilons[2] > 1.2 * even.epsilons[2]
    assert plan.optimality.error == pytest.approx(error(plan.epsilons, weights), rel=1e-12)
    assert plan.optimality.error < paper.optimality.error
    assert plan.leakage.worst <= 1.0


@pytest.mark.long
def test_time_varying_matrices(sleep):
    chain = Adversary.from_forward(sleep.forward, initial=[0.9, 0.025, 0.025, 0.025, 0.025], horizon=8)
    plans = compare_plans(chain, alpha=1.0, horizon=8).plans
    assert set(plans) == set(METHODS)
    assert all(plan.leakage.worst <= 1.0 for plan in plans.values())
    with pytest.raises(InputError, match="constant"):
        sustainable_budget(chain, alpha=1.0)
    matrix = TransitionMatrix([[0.9, 0.1, 0.0], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]])
    constant = plan_budget(Adversary(matrix, matrix), alpha=1.0, horizon=7)
    repeated = plan_budget(Adversary([matrix] * 6, [matrix] * 6), alpha=1.0, horizon=7)
    assert repeated.optimality.error == pytest.approx(constant.optimality.error, rel=1e-6)


@pytest.mark.long
def test_several_users_share_the_plan(sleep):
    other = Adversary(TransitionMatrix(RING.dense()[:5, :5] / RING.dense()[:5, :5].sum(axis=1, keepdims=True)), None)
    users = {"sleeper": sleep, "walker": other, "nobody": Adversary()}
    plan = plan_budget(users, alpha=1.0, horizon=12)
    alone = [plan_budget(one, alpha=1.0, horizon=12) for one in users.values()]
    assert plan.optimality.error >= max(one.optimality.error for one in alone) * (1 - 1e-6)
    assert plan.optimality.error <= error(np.min([one.epsilons for one in alone], axis=0)) * (1 + 1e-6)
    for user in users.values():
        assert temporal_leakage(user, plan.epsilons).worst <= 1.0


@pytest.mark.long
def test_equal_shares_are_optimal_under_the_identity():
    matrix = strongest_correlation(3)
    plan = plan_budget(Adversary(matrix, matrix), alpha=1.0, horizon=12)
    assert plan.epsilons == pytest.approx(np.full(12, 1 / 12), rel=1e-5)


@pytest.mark.long
def test_sustainable_budget_under_a_metric():
    distances = np.array([[min(abs(i - j), 6 - abs(i - j)) for j in range(6)] for i in range(6)], dtype=float)
    epsilon = sustainable_budget(Adversary(RING), alpha=1.0, accounting=MetricPrivacy(distances))
    found = leakage_supremum(Adversary(RING), epsilon, accounting=MetricPrivacy(distances))
    assert found.accounting.name == "metric"
    assert 1.0 - 1e-6 < found.temporal <= 1.0
    assert epsilon > sustainable_budget(Adversary(RING), alpha=1.0) / distances.max()


def test_invalid_arguments_are_refused(sleep):
    for call in (plan_budget, sustainable_budget):
        with pytest.raises(InputError, match=r"an accounting method, .* got 'best'"):
            call(sleep, alpha=1.0, accounting="best")
    with pytest.raises(BudgetError):
        sustainable_budget(sleep, alpha=-1.0)


def test_unpublished_step_stays_unpublished_when_others_are_raised():
    found = raised(
        np.array([0.5, 0.0, 0.1, 0.2]),
        lambda budgets: SimpleNamespace(worst=float(budgets.sum())),
        1.1,
        lambda budgets: float((1.0 / budgets[budgets > 0.0]).sum()),
    )
    assert found == pytest.approx([0.5, 0.0, 0.3, 0.3], rel=1e-6)
    assert found.sum() <= 1.1


@pytest.mark.filterwarnings("error")
@pytest.mark.long
def test_sum_of_budgets_may_exceed_the_range_of_exponents():
    """Two states that stay with 0.66, 4 nats, a year: the first versions overflowed from 709 nats in all on."""
    rows = TransitionMatrix([[0.66, 0.34], [0.34, 0.66]])
    plan = plan_budget(Adversary(rows, rows), alpha=4.0, horizon=365)
    assert plan.epsilons.sum() > 709.0
    assert temporal_leakage(Adversary(rows, rows), plan.epsilons).worst <= 4.0


@pytest.mark.long
def test_an_accountant_admits_a_long_plan_of_a_chain_that_hardly_forgets():
    """Its rollouts take 120 steps, whose rounding is more than a hundred billionth of so small a level."""
    walk = TransitionMatrix([[0.999, 0.001], [0.002, 0.998]])
    adversary = Adversary(walk, walk)
    plan = plan_budget(adversary, alpha=0.02, horizon=120, method="quantified")
    accountant = TemporalAccountant(adversary, alpha=0.02, horizon=120)
    assert accountant.spend(plan.epsilons).total() <= 0.02


@pytest.mark.parametrize("alpha", [650.0, 800.0, 1e6])
def test_levels_beyond_the_range_of_exponentials_have_a_plan_without_a_warning(alpha):
    walk = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    plan = plan_budget(Adversary(walk, walk), alpha=alpha, horizon=3)  # warnings are errors
    assert alpha * (1.0 - 1e-6) < plan.leakage.worst <= alpha
