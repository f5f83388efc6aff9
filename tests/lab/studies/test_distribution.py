"""A population as a distribution: quantiles and shares against sorting by hand, leakage against one person at a time."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from making import from_sequences
from methods import method_of
from temporaldp import (
    Adversary,
    BudgetError,
    InputError,
    IntervalMatrix,
    Periodic,
    TransitionMatrix,
    estimate_adversaries,
    leakage_supremum,
    sustainable_budget,
    temporal_leakage,
)
from temporaldp.core.planning import plan_for_share
from temporaldp.lab.studies import LeakageDistribution, leakage_distribution


@given(
    st.lists(st.tuples(st.floats(0.1, 5.0) | st.just(math.inf), st.integers(1, 4)), min_size=1, max_size=12),
    st.floats(0.01, 1.0),
    st.floats(0.1, 5.0),
)
def test_quantiles_and_shares_agree_with_a_sorted_list(people, share, level):
    names = [str(k) for k in range(len(people))]
    found = LeakageDistribution(names, [value for value, _ in people], [n for _, n in people], epsilon=0.1)
    everybody = sorted(value for value, n in people for _ in range(n))
    needed = math.ceil(share * len(everybody) - 1e-9)
    assert found.quantile(share) == everybody[needed - 1]
    assert found.share_above(level) == sum(value > level for value in everybody) / len(everybody)
    assert found.worst == everybody[-1]
    assert found.n_people == len(everybody)


def population(n_people, n_times=30, states="abc"):
    rng = random.Random(0)
    walks = []
    for k in range(n_people):
        stays, here, walk = k / n_people, "a", []
        for _ in range(n_times):
            here = here if rng.random() < stays else rng.choice(states)
            walk.append(here)
        walks.append(walk)
    return from_sequences(walks, states=list(states))


@pytest.mark.parametrize("horizon", [7, None])
@pytest.mark.parametrize("bound", ["exact", "paper"])
def test_leakage_of_each_person_equals_that_of_the_person_alone(horizon, bound):
    people = list(estimate_adversaries(population(3), prior=0.5, per_user=True))
    found = leakage_distribution(iter(people), epsilon=0.1, horizon=horizon, accounting=method_of(bound))
    for one in people:
        if horizon is None:
            alone = leakage_supremum(one, 0.1, accounting=method_of(bound)).temporal
        else:
            alone = temporal_leakage(one, [0.1] * horizon, accounting=method_of(bound)).worst
        assert found.leakage[found.names.index(one.name)] == pytest.approx(alone, rel=1e-12)
    assert (np.diff(found.leakage) <= 0).all()


@pytest.mark.long
def test_periodic_correlations_are_accepted_and_intervals_refused():
    day, night = TransitionMatrix([[0.6, 0.4], [0.4, 0.6]]), TransitionMatrix([[0.9, 0.1], [0.2, 0.8]])
    clock = Periodic((day, night))
    found = leakage_distribution([Adversary(clock, clock)], epsilon=0.1)
    assert found.leakage[0] == leakage_supremum(Adversary(clock, clock), 0.1).temporal
    assert found.leakage[0] > leakage_supremum(Adversary(day, day), 0.1).temporal
    known = IntervalMatrix([[0.7, 0.1], [0.2, 0.6]], [[0.9, 0.3], [0.4, 0.8]])
    for horizon in (None, 3):
        with pytest.raises(InputError, match="known exactly"):
            leakage_distribution([Adversary(known)], epsilon=0.1, horizon=horizon)


@pytest.mark.slow
def test_kernel_of_populations_agrees_with_each_person():
    people = list(estimate_adversaries(population(110, n_times=60, states="abcde"), prior=0.5, per_user=True))
    found = leakage_distribution(people, epsilon=0.1, horizon=40)
    for k in (0, 109):
        alone = temporal_leakage(people[int(found.names[k])], [0.1] * 40)
        assert found.leakage[k] == pytest.approx(alone.worst, rel=1e-11)


@pytest.mark.parametrize("share", [0.3, pytest.param(1.0, marks=pytest.mark.long)])
def test_plan_for_a_share_satisfies_the_level_and_lists_the_others(share):
    people = list(estimate_adversaries(population(3), prior=0.5, per_user=True))
    plan = plan_for_share(people, alpha=0.8, share=share)
    own = {one.name: sustainable_budget(one, alpha=0.8) for one in people}
    assert set(plan.names) == {name for name, budget in own.items() if budget < plan.epsilon}
    assert plan.share >= share
    held = [one for one in people if one.name not in plan.names]
    assert all(leakage_supremum(one, plan.epsilon).temporal <= 0.8 for one in held)
    above = [one for one in people if one.name in plan.names]
    assert all(leakage_supremum(one, plan.epsilon).temporal > 0.8 for one in above)
    assert ("no person" in plan.sentence) == (share == 1.0)


def test_invalid_populations_are_refused():
    people = list(estimate_adversaries(population(2), prior=0.5, per_user=True))
    with pytest.raises(InputError, match="at least one adversary"):
        leakage_distribution([], epsilon=0.1)
    for horizon in (0, 2.5):
        with pytest.raises(BudgetError, match="whole number of at least 1"):
            leakage_distribution(people, epsilon=0.1, horizon=horizon)
    with pytest.raises(InputError, match="share of people"):
        plan_for_share(people, alpha=1.0, share=1.5)
    with pytest.raises(InputError, match="share of people"):
        leakage_distribution(people, epsilon=0.1, horizon=2).quantile(0.0)
    with pytest.raises(InputError, match="one leakage for each name"):
        LeakageDistribution(["a"], [1.0, 2.0], epsilon=0.1)
