"""Plans by accounting methods that have no planner of their own: metrics, sets of matrices, and both."""

from __future__ import annotations

import numpy as np
import pytest

from temporaldp import (
    Adversary,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    Exact,
    InputError,
    IntervalMatrix,
    MetricPrivacy,
    TemporalAccountant,
    TransitionMatrix,
    load_plan,
    plan_budget,
    replan,
    save_plan,
    sustainable_budget,
    temporal_leakage,
)

RING = TransitionMatrix([[0.6, 0.3, 0.1], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6]])
WALK = Adversary(RING, RING)
LINE = np.abs(np.subtract.outer([0.0, 1.0, 3.0], [0.0, 1.0, 3.0]))
"""Values on a line: a box."""

STREETS = np.array([[0.0, 1.0, 2.0], [2.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
"""One-way streets: no box."""

NEAR = Adversary(IntervalMatrix(RING.dense() - 0.02, RING.dense() + 0.02))
METHODS = ["optimal", "quantified", "upper_bound", "uniform"]


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("adversary", "accounting"),
    [(WALK, MetricPrivacy(STREETS)), (WALK, MetricPrivacy(LINE)), (NEAR, Exact()), (NEAR, MetricPrivacy(LINE))],
)
def test_plans_satisfy_the_level_with_little_slack(adversary, accounting, method):
    plan = plan_budget(adversary, alpha=1.0, horizon=6, method=method, accounting=accounting)
    leaked = temporal_leakage(adversary, plan.epsilons, accounting=accounting)
    assert leaked == plan.leakage and leaked.worst <= 1.0
    if method in {"optimal", "quantified"}:
        assert temporal_leakage(adversary, 1.005 * plan.epsilons, accounting=accounting).worst > 1.0
    if plan.accounting.name == "exact metric":  # step by step a box is counted from above
        return
    accountant = TemporalAccountant(adversary, alpha=1.0, horizon=6, accounting=accounting)
    accountant.spend(plan.epsilons, last=True)
    assert accountant.total() <= 1.0


@pytest.mark.long
@pytest.mark.parametrize("horizon", [None, 5])
def test_constant_distances_rescale_the_budgets(horizon):
    apart = 2.5 * (1.0 - np.eye(3))
    plain = plan_budget(WALK, alpha=1.0, horizon=horizon)
    scaled = plan_budget(WALK, alpha=1.0, horizon=horizon, accounting=MetricPrivacy(apart))
    np.testing.assert_allclose(scaled.epsilons * 2.5, plain.epsilons, rtol=2e-3)
    assert (scaled.accounting.name, plain.accounting.name) == ("exact metric", "exact")


@pytest.mark.long
def test_plan_of_an_infinite_horizon_under_a_metric():
    plan = plan_budget(WALK, alpha=1.0, accounting=MetricPrivacy(LINE))
    assert plan.epsilons[0] == pytest.approx(sustainable_budget(WALK, alpha=1.0, accounting=MetricPrivacy(LINE)))
    assert plan.supremum_to(WALK).worst == plan.leakage.worst <= 1.0


@pytest.mark.long
def test_plan_with_a_metric_round_trips(tmp_path):
    plan = plan_budget(WALK, alpha=1.0, horizon=4, accounting=MetricPrivacy(LINE))
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json")
    assert again.accounting == plan.accounting
    np.testing.assert_array_equal(again.accounting.distances, LINE)
    np.testing.assert_array_equal(again.leakage.epsilons, plan.leakage.epsilons)
    np.testing.assert_allclose(again.leakage.epsilons, 3.0 * plan.epsilons)
    np.testing.assert_array_equal(again.epsilons, plan.epsilons)
    np.testing.assert_array_equal(again.leakage_to(WALK, 4).temporal, plan.leakage.temporal)


@pytest.mark.long
def test_replanning_keeps_the_units_of_the_metric():
    accountant = TemporalAccountant(WALK, alpha=1.0, horizon=4, accounting=MetricPrivacy(STREETS))
    accountant.spend(0.01)
    rest = replan(accountant)
    assert rest.epsilons[0] == 0.01
    assert temporal_leakage(WALK, rest.epsilons, accounting=MetricPrivacy(STREETS)).worst == rest.leakage.worst <= 1.0
    assert temporal_leakage(WALK, 1.05 * rest.epsilons, accounting=MetricPrivacy(STREETS)).worst > 1.0


@pytest.mark.long
def test_histogram_under_a_metric_with_distances_below_one_is_refused(tmp_path):
    """The noise is the same for any two states: at half the distance, only half of the leakage would be counted."""
    histogram, close = DiscreteLaplaceHistogram(3), 0.5 * LINE
    plan = plan_budget(WALK, alpha=1.0, horizon=4, accounting=MetricPrivacy(close))
    accountant = TemporalAccountant(WALK, alpha=1.0, horizon=4, accounting=MetricPrivacy(close))
    told = "0.5 apart, so less would be counted: multiply the metric by 2"
    for given in ({"plan": plan}, {"accountant": accountant}):
        with pytest.raises(InputError, match=told):
            ContinualRelease(histogram, ledger=tmp_path / "release.db", **given)
    with accountant, pytest.raises(InputError, match=told):
        plan_budget(WALK, alpha=1.0, horizon=4).require_mechanism(histogram)
    dp_accounting = pytest.importorskip("dp_accounting")
    with pytest.raises(InputError, match=told):
        accountant.spend(dp_accounting.LaplaceDpEvent(10.0))
    assert len(accountant.spend(dp_accounting.NoOpDpEvent())) == 1
    far = plan_budget(WALK, alpha=1.0, horizon=4, accounting=MetricPrivacy(STREETS))
    far.require_mechanism(histogram)
    plain = TemporalAccountant(WALK, alpha=1.0, horizon=4)
    with pytest.raises(InputError, match="other distances"):
        ContinualRelease(histogram, ledger=tmp_path / "other.db", accountant=plain, plan=far)


@pytest.mark.long
def test_a_shape_that_leaks_without_bound_is_scaled_to_the_level():
    """Rows known up to nothing: by the bound for sets, budgets add up without forgetting, at any factor."""
    unknown = IntervalMatrix(np.zeros((2, 2)), np.ones((2, 2)))
    adversary = Adversary(unknown, unknown)
    plan = plan_budget(adversary, alpha=1.0, horizon=6)
    assert plan.leakage.worst <= 1.0
    assert plan.epsilons.sum() == pytest.approx(1.0, rel=2e-3)
