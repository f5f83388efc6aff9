"""Correlations that change with the clock: estimates by counting, series by hand, suprema against long horizons."""

import numpy as np
import pytest

from data_sets import sleep_sample
from making import around
from methods import method_of
from temporaldp import (
    Adversary,
    ApproximateDP,
    BudgetError,
    GaussianNoise,
    InputError,
    Periodic,
    TemporalAccountant,
    Trajectories,
    TransitionMatrix,
    estimate_periodic,
    leakage_supremum,
    plan_budget,
    plan_noise,
    sustainable_budget,
    temporal_leakage,
)
from temporaldp.base.errors import EstimationError

NIGHT, DAY = TransitionMatrix([[0.9, 0.1], [0.2, 0.8]]), TransitionMatrix([[0.6, 0.4], [0.3, 0.7]])


def following(*sides, phase=0):
    """Who knows these matrices of a clock, backward first."""
    return Adversary(*(Periodic(one, phase=phase) for one in sides))


def test_release_starts_at_its_phase():
    clock = following([NIGHT, DAY], [DAY, NIGHT], phase=1)
    assert (clock.period, clock.n_steps) == (2, None)
    whole = clock.over(4)
    assert whole.backward.matrices == (DAY, NIGHT, DAY)
    assert whole.forward.matrices == (NIGHT, DAY, NIGHT)
    by_hand = temporal_leakage(Adversary([DAY, NIGHT, DAY], [NIGHT, DAY, NIGHT]), [0.2] * 4)
    np.testing.assert_array_equal(temporal_leakage(clock, [0.2] * 4).temporal, by_hand.temporal)


@pytest.mark.long
@pytest.mark.parametrize("phase", [0, 1])
def test_series_stay_below_the_supremum_and_approach_it(phase):
    clock = following([NIGHT, DAY], [DAY, NIGHT], phase=phase)
    limit = leakage_supremum(clock, 0.2)
    long = temporal_leakage(clock, np.full(120, 0.2))
    assert limit.certified
    for name in ("backward", "forward", "temporal"):
        reached = getattr(long, name).max()
        assert reached <= getattr(limit, name) * (1 + 1e-12)
        assert reached >= getattr(limit, name) * (1 - 1e-5)


@pytest.mark.long
def test_equal_phases_are_a_constant_matrix():
    clock = following([NIGHT] * 3, [DAY] * 3)
    limit, constant = leakage_supremum(clock, 0.3), leakage_supremum(Adversary(NIGHT, DAY), 0.3)
    for name in ("backward", "forward", "temporal"):
        assert getattr(limit, name) == pytest.approx(getattr(constant, name), rel=1e-6)


@pytest.mark.long
def test_periodic_chain_without_mixing_has_no_supremum():
    still = TransitionMatrix(np.eye(2))
    assert leakage_supremum(following([still, still]), 0.3).temporal == np.inf


def test_phases_may_be_intervals():
    near = [around(matrix, width=0.02) for matrix in (NIGHT, DAY)]
    limit = leakage_supremum(following(near), 0.2)
    assert limit.accounting.name == "interval"
    assert limit.backward > leakage_supremum(following([NIGHT, DAY]), 0.2).backward


@pytest.mark.long
def test_sustainable_budget_satisfies_the_level():
    clock = following([NIGHT, DAY], [DAY, NIGHT])
    for bound in ("exact", "paper"):
        budget = sustainable_budget(clock, alpha=1.0, accounting=method_of(bound))
        assert 0.99 < leakage_supremum(clock, budget, accounting=method_of(bound)).temporal <= 1.0
    plan = plan_budget(clock, alpha=1.0)
    assert plan.horizon is None
    assert temporal_leakage(clock, np.full(80, plan.epsilons[0])).worst <= 1.0


def test_plan_of_a_horizon_depends_on_the_phases():
    clock = following([NIGHT, DAY], [DAY, NIGHT], phase=1)
    plan = plan_budget(clock, alpha=1.0, horizon=6)
    whole = plan_budget(clock.over(6), alpha=1.0, horizon=6)
    np.testing.assert_allclose(plan.epsilons, whole.epsilons, rtol=1e-9)
    accountant = TemporalAccountant(clock, alpha=1.0, horizon=6)
    assert len(accountant.spend(plan.epsilons)) == 6
    with pytest.raises(BudgetError, match="expected a horizon for matrices that follow a clock"):
        TemporalAccountant(clock, alpha=1.0)


@pytest.mark.long
def test_one_of_several_users_may_be_periodic():
    users = {"calm": Adversary(DAY, DAY), "clock": following([NIGHT, DAY], [DAY, NIGHT])}
    together = leakage_supremum(users, 0.2)
    each = [leakage_supremum(user, 0.2).temporal for user in users.values()]
    assert together.temporal == pytest.approx(max(each), rel=1e-9)
    assert together.worst_user == "clock"
    assert temporal_leakage(users, [0.2] * 5).worst_user == "clock"


@pytest.mark.long
def test_approximate_dp_assumes_any_phase_at_any_step():
    clock, noise = following([NIGHT, DAY], [DAY, NIGHT]), GaussianNoise(10.0, sensitivity=1.0)
    limit = leakage_supremum(clock, noise, accounting=ApproximateDP(1e-6))
    long = temporal_leakage(clock, [noise] * 30, accounting=ApproximateDP(1e-6))
    assert long.worst <= limit.temporal < np.inf
    plan = plan_noise(clock, alpha=2.0, accounting=ApproximateDP(1e-6))
    assert plan.leakage_to(clock, 20).worst <= 2.0


def test_phases_are_estimated_separately_and_tied():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=(30, 8))
    clock = estimate_periodic(Trajectories(codes, states=["a", "b"]), period=4, tie=5.0)
    whole = np.zeros((2, 2))
    own = np.zeros((2, 2))
    for row in codes:
        for t in range(7):
            whole[row[t], row[t + 1]] += 1
            if t % 4 == 2:
                own[row[t], row[t + 1]] += 1
    forward, backward = (
        (table + 5.0 * total / total.sum(1, keepdims=True)) / (table.sum(1, keepdims=True) + 5.0)
        for table, total in ((own, whole), (own.T, whole.T))
    )
    np.testing.assert_allclose(clock.forward.matrices[2].dense(), forward)
    np.testing.assert_allclose(clock.backward.matrices[2].dense(), backward)


def test_invalid_clocks_are_refused():
    data = sleep_sample()  # 47 steps
    with pytest.raises(InputError, match="does not divide the 47 steps"):
        estimate_periodic(data, period=24)
    assert estimate_periodic(data, period=24, phase=23).backward.phase == 23
    for period in (1, 47, 100):
        with pytest.raises(InputError, match="period"):
            estimate_periodic(data, period=period)
    gap = Trajectories(np.zeros((2, 6), dtype=np.int64), states=["a", "b"], consecutive=[True, False, True, True, True])
    with pytest.raises(EstimationError, match="phases are unknown"):
        estimate_periodic(gap, period=3)
    with pytest.raises(EstimationError, match="'b'"):
        estimate_periodic(Trajectories(np.zeros((2, 6), dtype=np.int64), states=["a", "b"]), period=3)
    for wrong in ({"phase": 2}, {"phase": -1}):
        with pytest.raises(InputError, match="phase"):
            Periodic([NIGHT, DAY], **wrong)
    with pytest.raises(InputError, match="at least 2 phases"):
        Periodic([NIGHT])
    with pytest.raises(InputError, match="matrix of real numbers"):
        Periodic([NIGHT, "day"])
    with pytest.raises(InputError, match="one clock for both directions"):
        Adversary(Periodic([NIGHT, DAY]), Periodic([NIGHT, DAY], phase=1))
    with pytest.raises(InputError, match="one clock for both directions"):
        Adversary(Periodic([NIGHT, DAY]), [NIGHT, DAY, NIGHT])
