"""The odometer by the exact leakage says what the series says, step after step."""

from __future__ import annotations

import numpy as np
import pytest

from data_sets import sleep_sample
from exact_cases import random_rows
from temporaldp import (
    Adversary,
    TemporalAccountant,
    TransitionMatrix,
    estimate_adversaries,
    temporal_leakage,
)
from temporaldp.core.accounting.exact.odometer import LOOK_AHEAD, ExactOdometer

CLOSE = 3e-12


def assert_same(odometer, adversary, spent):
    found, time = odometer.worst()
    series = temporal_leakage(adversary, spent)
    assert found == pytest.approx(series.worst, rel=CLOSE, abs=1e-300)
    assert found >= series.attained.temporal.max()
    assert series.temporal[time] == pytest.approx(series.worst, rel=CLOSE, abs=1e-300)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_odometer_equals_the_series(seed):
    rng = np.random.default_rng(seed)
    n, n_steps = int(rng.integers(2, 6)), 14

    def one():
        few = [TransitionMatrix(random_rows(n, rng)) for _ in range(2)]
        return few[0] if seed % 2 else [few[k] for k in rng.integers(0, 2, n_steps - 1)]

    adversary = Adversary(None if seed == 4 else one(), None if seed == 5 else one())
    odometer, spent = ExactOdometer.at_start(adversary), []
    for step in range(n_steps):
        epsilon = float(rng.choice([0.0, 1e-3, 0.1, 1.0, 3.0]) * rng.random())
        expected = odometer.worst_with(epsilon)
        if step % 2:  # another budget is asked for last, and not spent
            odometer.worst_with(epsilon + 0.25)
        odometer.extend([epsilon])
        assert odometer.worst() == pytest.approx(expected, rel=1e-14)
        spent.append(epsilon)
        if step and step % 3 == 0 and adversary.n_steps is None:
            assert_same(odometer, adversary, spent)
    assert_same(odometer, adversary, spent)


@pytest.mark.parametrize("matrix", [[[0.999, 0.001], [0.001, 0.999]], np.eye(3), np.roll(np.eye(3), 1, axis=1)])
def test_odometer_under_slowly_mixing_chains(matrix):
    """Every release leaks about all steps, or nearly so."""
    rng = np.random.default_rng(3)
    adversary = Adversary(TransitionMatrix(matrix), TransitionMatrix(matrix))
    odometer, spent = ExactOdometer.at_start(adversary), []
    for _ in range(50):
        spent.append(0.01 * rng.random())
        odometer.extend([spent[-1]])
    assert_same(odometer, adversary, spent)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["constant", "random", "spike"])
def test_odometer_discards_budgets_without_influence(kind):
    rng = np.random.default_rng(4)
    adversary = next(estimate_adversaries(sleep_sample()))
    odometer, spent, most = ExactOdometer.at_start(adversary), [], 0
    for step in range(130):
        epsilon = 0.1 if kind == "constant" else 0.2 * rng.random() if kind == "random" else 2.0 if step == 20 else 0.01
        odometer.extend([epsilon])
        spent.append(epsilon)
        most = max(most, len(odometer.spent))
    assert_same(odometer, adversary, spent)
    assert most <= 120


def test_leakage_of_huge_budgets_is_never_too_low():
    adversary = next(estimate_adversaries(sleep_sample()))
    odometer, spent = ExactOdometer.at_start(adversary), []
    for epsilon in (0.1, 250.0, 100.0, 1e4, 0.1):
        odometer.extend([epsilon])
        spent.append(epsilon)
        found = temporal_leakage(adversary, spent)
        assert odometer.worst()[0] >= (found.attained.temporal.max() if found.accounting.is_exact else max(spent))


@pytest.mark.parametrize("directions", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("adopts", [False, True])
@pytest.mark.long
def test_leakage_so_far_equals_the_series(directions, adopts):
    """After some of the steps, small budgets before large ones: upper bounds that equal those of the whole series."""
    rng = np.random.default_rng([sum(directions), adopts, directions[0]])

    def one():
        pair = [TransitionMatrix(0.6 * random_rows(3, rng) + 0.4 / 3) if known else None for known in directions]
        return Adversary(*pair)

    line = one()
    odometer, accountant, spent = ExactOdometer.at_start(line.current), TemporalAccountant(line.current), []
    for step in range(70):
        if adopts and step == 30:
            line = line.changed(step, one())
            odometer = odometer.adopted(line.current)
            accountant.adopt(line.current)
        spent.append(float(rng.random() * (0.05 if step < 20 else 0.5 if step < 50 else 0.01)))
        odometer.extend(spent[-1:])
        accountant.spend(spent[-1])
        if step % 3 == 0 or step > 60:
            series = temporal_leakage(line.between(0, len(spent)), spent)
            assert accountant.leakage() == series
            for most in (accountant.total(), odometer.worst()[0]):
                assert most == pytest.approx(series.worst, rel=CLOSE, abs=CLOSE)
                assert most >= series.attained.temporal.max()
    assert len(odometer.arrived) < 35 + LOOK_AHEAD  # the others are final


@pytest.mark.parametrize("n_states", [2, 4])
@pytest.mark.long
def test_questions_between_steps_change_no_number(n_states):
    rng = np.random.default_rng(n_states)
    matrix = TransitionMatrix(0.8 * random_rows(n_states, rng) + 0.2 / n_states)
    asked, silent = (ExactOdometer.at_start(Adversary(matrix, matrix)) for _ in range(2))
    for epsilon in rng.random(150).tolist():
        asked.extend([epsilon])
        silent.extend([epsilon])
        asked.worst_with(1.0)
        if rng.random() < 0.3:
            asked.worst()
        if rng.random() < 0.05 or asked.n_steps % LOOK_AHEAD == 0:
            restored = ExactOdometer.restored(silent.saved(), Adversary(matrix, matrix))
            assert asked.worst() == silent.worst() == restored.worst()
            assert asked.saved() == silent.saved() == restored.saved()
    assert asked.worst() == silent.worst()


@pytest.mark.parametrize("n_small", [64, 528])
@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.long
def test_a_large_budget_between_looks_ahead_raises_final_steps(n_small, restored):
    """The ceiling that final steps rest on is exceeded before the next step at which final steps are looked for."""
    matrix = TransitionMatrix([[0.6, 0.4], [0.4, 0.6]])
    accountant, spent = TemporalAccountant(Adversary(matrix, matrix)), [1e-3] * n_small
    accountant.spend(spent)
    accountant.total()
    if restored:
        state = accountant.kept_state()
        accountant = TemporalAccountant(Adversary(matrix, matrix))
        accountant.resume(state, [], lambda: spent)
    for epsilon in (5.0, 0.1, 7.0):
        accountant.spend(epsilon)
        series = temporal_leakage(Adversary(matrix, matrix), accountant.spent)
        assert accountant.leakage() == series
        assert accountant.total() >= series.attained.temporal.max()
        assert accountant.total() == pytest.approx(series.worst, rel=CLOSE, abs=CLOSE)


def test_slow_growth_after_a_change_raises_leakage_of_settled_steps():
    """Forward leakage passes the ceiling of the first steps without doubling from one step to the next."""
    calm, sticky = (TransitionMatrix(rows) for rows in ([[0.4, 0.6], [0.16, 0.84]], [[0.98, 0.02], [0.003, 0.997]]))
    line = Adversary(forward=calm).changed(21, Adversary(forward=sticky))
    accountant, spent = TemporalAccountant(Adversary(forward=calm)), [0.12] * 60
    for step, epsilon in enumerate(spent):
        if step == 21:
            accountant.total()
            accountant.adopt(line.current)
        accountant.spend(epsilon)
    series = temporal_leakage(line.between(0, 60), spent)
    assert accountant.leakage() == series
    assert accountant.total() >= series.attained.temporal.max()
    assert accountant.total() == pytest.approx(series.worst, rel=CLOSE, abs=CLOSE)


def test_leakage_so_far_without_correlations():
    odometer = ExactOdometer.at_start(Adversary())
    odometer.extend([0.1, 0.3, 0.2])
    assert odometer.worst() == (0.3, 1)
    odometer.extend([1e4])
    assert odometer.worst()[0] >= 1e4
