"""One contract for all accounting methods: exact, with boxes, the paper's, pair by pair, intervals, and privacy curves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from accounting_contract import TAIL, ChangeContract, Contract, FilterContract, TestedMethod, adversaries
from oracles import hockey_stick, metric_mechanism, told_by_all, worst_mechanism
from temporaldp import (
    Adversary,
    ApproximateDP,
    BudgetError,
    Exact,
    GaussianNoise,
    MetricPrivacy,
    OutputTable,
    PaperBound,
    TemporalAccountant,
    TransitionMatrix,
    temporal_leakage,
)
from temporaldp.core.accounting import IntervalBound

HIGH, LOW = np.array([0.9, 0.3, 0.5]), np.array([-0.1, 0.0, -0.4])
BOX = HIGH[:, None] - LOW[None, :]
np.fill_diagonal(BOX, 0.0)
ONE_WAY = np.array([[0.0, 1.0, 2.0], [2.0, 0.0, 1.5], [1.0, 2.0, 0.0]])
"""A metric that is no box: there and back are different distances."""

DELTA = 1e-3


def whole_box(_, epsilon):
    """All corners of the box, each value by itself."""
    corners = np.array([[(k >> v) & 1 for v in range(3)] for k in range(8)])
    return np.exp(epsilon * np.where(corners == 1, HIGH, LOW))


class TestExact(FilterContract):
    tested = TestedMethod("exact", Exact(), worst_mechanism, is_exact=True, adopts=True)


class TestExactWithBoxes(FilterContract):
    """The odometer and the filter count pair by pair: never below the exact leakage of a box, and somewhat above it."""

    tested = TestedMethod(
        "exact metric", MetricPrivacy(BOX), whole_box, is_exact=True, online="metric", distance=float(BOX.max())
    )
    room_is_used = False


class TestPaper(FilterContract):
    tested = TestedMethod("paper", PaperBound(), worst_mechanism)


class TestMetric(FilterContract):
    tested = TestedMethod(
        "metric",
        MetricPrivacy(ONE_WAY),
        lambda n, epsilon: metric_mechanism(epsilon * ONE_WAY),
        distance=float(ONE_WAY.max()),
    )


INTERVAL = TestedMethod("interval", IntervalBound(), worst_mechanism)


@pytest.mark.slow
class TestInterval(FilterContract):
    """With matrices that are known exactly, intervals of no width; the reserve is found to a thousandth."""

    tested = INTERVAL
    room_is_used = False


class TestIntervalThatChanges(ChangeContract):
    tested = INTERVAL


class TestCurve(Contract):
    """A series of guarantees is also held below the leakage without a delta; the odometer goes by curves alone."""

    tested = TestedMethod(
        "approximate", ApproximateDP(DELTA, pairwise=False, grid=0.01), worst_mechanism, online="approximate"
    )

    def test_leakage_is_never_below_the_definition(self, rng):
        """At a delta: the hockey-stick divergence of all sequences of outputs of a finite mechanism."""
        for n_steps in (None, 4):
            adversary = adversaries(rng, n_steps)
            table = rng.dirichlet(np.full(3, rng.choice([0.5, 2.0, 20.0])), 3)
            rows = [
                [known.at(t).dense() for t in range(3)]
                if known
                else [np.full((3, 3), 1.0 / 3.0)] * 3  # a value that says nothing of the next one
                for known in (adversary.backward, adversary.forward)
            ]
            series = temporal_leakage(adversary, [OutputTable(table)] * 4, accounting=self.tested.accounting)
            for step in range(4):
                told = told_by_all(table, *rows, step, 4)
                assert hockey_stick(told, math.exp(series.temporal[step])) <= DELTA * (1.0 + 1e-9)

    def test_an_odometer_takes_any_mechanism(self, rng):
        adversary = adversaries(rng)
        odometer = self.tested.accountant(adversary)
        for mechanism in (GaussianNoise(3.0, sensitivity=1.0), None, 0.2, OutputTable(np.eye(3) * 0.1 + 0.3)):
            odometer.spend(mechanism)
            assert odometer.total() == pytest.approx(odometer.leakage().worst, rel=1e-6)
            assert odometer.total() >= odometer.leakage().worst * (1.0 - 1e-12)

    def test_sustainable_noise_satisfies_the_level(self, rng):
        adversary = adversaries(rng)
        method = ApproximateDP(DELTA, pairwise=False, grid=0.02)
        epsilon = method.sustainable_epsilon([adversary], 1.0)
        assert epsilon > 0.0
        assert temporal_leakage(adversary, np.full(TAIL, epsilon), accounting=method).worst <= 1.0

    @pytest.mark.parametrize("asked", [{}, {"reserve": 0.1}, {"horizon": 5}])
    def test_adaptive_filter_is_refused(self, asked):
        with pytest.raises(BudgetError, match=r"hockey-stick divergences do not compose along paths.*plan_noise"):
            self.tested.accountant(Adversary(), alpha=1.0, **asked)


# What several methods share, once


@pytest.mark.long
def test_metric_follows_the_order_of_states_of_each_user():
    """A table with names is put in order for each user; the accountant counts as the series does."""
    pd = pytest.importorskip("pandas")
    rows = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]])
    users = [Adversary(TransitionMatrix(rows, states=list(names)), name=names) for names in ("abc", "cab", "bca")]
    for distances in (BOX, ONE_WAY):
        table = pd.DataFrame(distances, index=list("abc"), columns=list("abc"))
        for accounting in [MetricPrivacy(table)]:
            odometer = TemporalAccountant(users, accounting=accounting).spend([0.3, 0.1, 0.4])
            series = odometer.leakage()
            assert odometer.total() >= series.worst * (1 - 1e-12)
            for user in users:
                alone = TemporalAccountant(user, accounting=accounting).spend([0.3, 0.1, 0.4])
                assert alone.total() <= odometer.total() * (1 + 1e-12)
            accountant = TemporalAccountant(users, alpha=1.0, accounting=accounting)
            for _ in range(4):
                accountant.spend(accountant.remaining())
            whole = [*accountant.spent, *[accountant.reserve] * TAIL]
            assert temporal_leakage(users, whole, accounting=accounting).worst <= 1.0


def test_distances_below_one_allow_budgets_above_alpha():
    matrix = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    near = [[0.0, 0.1], [0.1, 0.0]]
    accountant = TemporalAccountant(Adversary(matrix, matrix), alpha=1.0, horizon=3, accounting=MetricPrivacy(near))
    assert accountant.remaining(last=True) == pytest.approx(10.0, rel=1e-9)


def test_reading_the_accounting_method_does_not_fix_the_grid():
    matrix = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    asked, silent = (TemporalAccountant(Adversary(matrix, matrix), accounting=ApproximateDP(1e-6)) for _ in range(2))
    assert asked.accounting.pairwise is False
    assert asked.spent.tolist() == []
    noise = GaussianNoise(100.0, sensitivity=1.0)
    assert asked.spend(noise).total() == silent.spend(noise).total()
