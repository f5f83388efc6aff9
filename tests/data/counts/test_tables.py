"""Bounded sums and means, counts by group, and tables that share a budget: sensitivity, accounting, noise, least error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import kstest

from temporaldp import (
    Adversary,
    BudgetError,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    InputError,
    LeakageBudgetError,
    PaperBound,
    TemporalAccountant,
    TransitionMatrix,
    plan_budget,
)
from temporaldp.data.counts import ClampedMean, ClampedSum, SharedBudget
from temporaldp.publish.release import release_snapshots

WALK = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])


@pytest.mark.long
def test_noise_of_a_clamped_sum_covers_its_range():
    mechanism = ClampedSum(lower=-1.0, upper=3.0, n_people=4)
    numbers = [0.5, 2.0, 99.0, -7.0]  # clamped: 0.5 + 2 + 3 - 1
    drawn = np.array([mechanism(numbers, 0.5) for _ in range(2_000)])
    assert kstest(drawn - 4.5, "laplace", args=(0.0, 8.0)).pvalue > 1e-5
    for wrong in (8.0 / 1.6, 8.0 * 1.6):
        assert kstest(drawn - 4.5, "laplace", args=(0.0, wrong)).pvalue < 1e-3
    for epsilon in (1e-3, 0.1, 0.7, 3.0):
        assert epsilon * (1.0 - 1e-9) <= mechanism.epsilon_spent(epsilon) <= epsilon
    mean = ClampedMean(-1.0, 3.0, n_people=4)
    assert mean.sensitivity == mechanism.sensitivity / 4 == 1.0
    assert np.mean([mean(numbers, 1.0) for _ in range(500)]) == pytest.approx(4.5 / 4, abs=0.3)


@pytest.mark.parametrize(
    ("lower", "upper", "people"), [(1.0, 1.0, 3), (2.0, 1.0, 3), (0.0, math.inf, 3), (0.0, 1.0, 0)]
)
def test_invalid_bounds_are_refused(lower, upper, people):
    for kind in (ClampedSum, ClampedMean):
        with pytest.raises(InputError):
            kind(lower, upper, n_people=people)


@pytest.mark.parametrize("numbers", [[1.0], [1.0, math.nan], [[1.0, 2.0]], ["a", "b"]])
def test_values_must_be_one_per_person(numbers):
    with pytest.raises(InputError, match="numbers"):
        ClampedSum(0.0, 1.0, n_people=2)(numbers, 1.0)


def test_each_group_has_the_whole_budget():
    mechanism = DiscreteLaplaceHistogram(n_states=2, n_groups=3)
    assert mechanism.epsilon_spent(0.3) == DiscreteLaplaceHistogram(6).epsilon_spent(0.3)
    drawn = np.array([mechanism(np.full((3, 2), 10), 2.0) for _ in range(500)])
    assert drawn.shape == (500, 3, 2)
    assert np.abs(drawn - 10).mean() == pytest.approx(1.0 / math.sinh(1.0), rel=0.1)  # scale 1
    with pytest.raises(InputError, match="shape"):
        mechanism([1, 2, 3], 1.0)


def test_shares_of_a_budget_minimise_the_total_error():
    tables = {"a": DiscreteLaplaceHistogram(5), "b": ClampedSum(0.0, 40.0, 9), "c": DiscreteLaplaceHistogram(3, 2)}
    importance = {"a": 1.0, "b": 0.3, "c": 2.0}
    shared = SharedBudget(tables, importance=importance)
    errors = np.array([importance[name] * table.error_at_one for name, table in tables.items()])
    solved = minimize(
        lambda logs: float(np.sum(errors * np.exp(-logs)) * np.sum(np.exp(logs))), np.zeros(3), options={"gtol": 1e-10}
    )
    shares = np.exp(solved.x) / np.exp(solved.x).sum()
    np.testing.assert_allclose(list(shared.shares.values()), shares, rtol=1e-4)
    assert shared.error_at_one == pytest.approx(float(np.sum(errors / shares)), rel=1e-6)
    for epsilon in (1e-3, 0.37, 5.0):
        assert epsilon * (1.0 - 1e-9) <= shared.epsilon_spent(epsilon) <= epsilon
    even = float(np.sum(errors * 3.0))
    assert shared.error_at_one < even


def test_shared_tables_are_charged_once_per_step_and_stored(tmp_path):
    shared = SharedBudget({"counts": DiscreteLaplaceHistogram(2), "mean": ClampedMean(0.0, 10.0, 4)})
    snapshot = {"counts": [3, 1], "mean": [1.0, 2.0, 3.0, 4.0]}
    accountant = TemporalAccountant(Adversary(WALK, WALK), alpha=1.0, accounting=PaperBound())
    with accountant:
        shared(snapshot, 0.1)
    assert len(accountant) == 1
    assert accountant.spent[0] == pytest.approx(0.1)
    with accountant, pytest.raises(LeakageBudgetError):
        shared(snapshot, 5.0)
    fresh = TemporalAccountant(Adversary(WALK, WALK), alpha=1.0, accounting=PaperBound())
    with ContinualRelease(shared, ledger=tmp_path / "s.db", accountant=fresh) as stream:
        first = stream.release(snapshot, time=1)
        assert stream.release(snapshot, time=1) == first
        assert set(first) == {"counts", "mean"}
    plan = plan_budget(Adversary(WALK, WALK), alpha=1.0, horizon=3)
    done = release_snapshots(shared, [snapshot] * 3, plan)
    assert (done.epsilons <= plan.epsilons).all()


def test_invalid_tables_of_a_shared_budget_are_refused():
    with pytest.raises(InputError, match="at least one"):
        SharedBudget({})
    with pytest.raises(InputError, match="error_at_one"):
        SharedBudget({"a": lambda one, _: one})
    with pytest.raises(InputError, match="not a table"):
        SharedBudget({"a": DiscreteLaplaceHistogram(2)}, importance={"b": 1.0})
    with pytest.raises(BudgetError, match="importance"):
        SharedBudget({"a": DiscreteLaplaceHistogram(2)}, importance={"a": 0.0})
    with pytest.raises(InputError, match="snapshot"):
        SharedBudget({"a": DiscreteLaplaceHistogram(2)})({"b": [1, 2]}, 1.0)


def test_truth_values_are_numbers_of_people():
    ages = np.array([20, 40, 60])
    assert abs(ClampedSum(0.0, 1.0, 3)(ages > 30, 50.0) - 2.0) < 0.5
