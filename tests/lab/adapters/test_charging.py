"""Promises for one replaced state, against mechanisms all of whose outputs are enumerated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from temporaldp import (
    Adversary,
    ApproximateDP,
    BudgetError,
    InputError,
    LeakageBudgetError,
    MetricPrivacy,
    PrivacyGuarantee,
    TemporalAccountant,
    TransitionMatrix,
)
from temporaldp.core.mechanisms import ConcentratedGuarantee
from temporaldp.lab.adapters.charging import charge, over_moves, promise

WALK = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])


def geometric(scale, reach=60):
    """The distribution of discrete Laplace noise, without its far tails."""
    ratio = math.exp(-1.0 / scale)
    return {k: (1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-reach, reach + 1)}


def test_replaced_row_of_a_histogram_costs_exactly_two_moves():
    """Two counts with noise that hides a row more or less at 0.5: every output, where one person's state is replaced."""
    noise, epsilon = geometric(2.0), 0.5
    outputs = list(itertools.product(range(-40, 41), repeat=2))
    before, after = (1, 0), (0, 1)
    worst = max(
        abs(
            sum(
                math.log(noise[seen - one] / noise[seen - two])
                for seen, one, two in zip(output, before, after, strict=True)
            )
        )
        for output in outputs
    )
    assert worst <= over_moves(epsilon, 2) * (1.0 + 1e-13), "but for the rounding of the logarithms above"
    assert worst > 1.9 * epsilon, "one move would count too little"


def hockey_stick(one, two, epsilon):
    return float(np.maximum(one - math.exp(epsilon) * two, 0.0).sum())


def delta_of(one, two, epsilon):
    """The delta of two finite distributions at an epsilon, by every output."""
    return max(hockey_stick(one, two, epsilon), hockey_stick(two, one, epsilon))


def test_guarantee_over_two_moves_covers_random_mechanisms():
    rng, told = np.random.default_rng(1), 0
    for _ in range(400):
        left, middle, right = rng.dirichlet(np.full(4, 2.0), size=3)
        epsilon = float(rng.uniform(0.05, 1.0))
        delta = max(delta_of(left, middle, epsilon), delta_of(middle, right, epsilon))
        if 0.0 < delta * (1.0 + math.exp(epsilon)) < 0.99:
            made = over_moves(PrivacyGuarantee(epsilon, delta), 2)
            assert delta_of(left, right, made.epsilon) <= made.delta + 1e-15
            told += 1
    assert told > 200


def test_delta_over_two_moves_is_attained():
    """Two outputs, each move as bad as its guarantee allows: twice delta would be too small."""
    epsilon, delta, first = 0.8, 0.01, 0.02
    second = math.exp(epsilon) * first + delta
    third = math.exp(epsilon) * second + delta
    left, middle, right = (np.array([p, 1.0 - p]) for p in (third, second, first))
    assert delta_of(left, middle, epsilon) <= delta + 1e-12
    assert delta_of(middle, right, epsilon) <= delta + 1e-12
    made = over_moves(PrivacyGuarantee(epsilon, delta), 2)
    assert delta_of(left, right, made.epsilon) == pytest.approx(made.delta, rel=1e-9)
    assert made.delta > 2.5 * delta


def test_rho_over_two_moves_equals_gaussian_noise_at_twice_the_distance():
    """Renyi divergences of two Gaussians, summed over a fine grid."""
    scale, rho = 3.0, 1.0 / 18.0
    x = np.linspace(-40.0, 40.0, 100_001)
    for order in (1.5, 2.0, 3.0):
        mixed = np.exp(-0.5 * (order * (x - 2.0) ** 2 + (1.0 - order) * x**2) / scale**2)
        found = math.log(mixed.sum() * (x[1] - x[0]) / (scale * math.sqrt(2.0 * math.pi))) / (order - 1.0)
        assert found == pytest.approx(over_moves(ConcentratedGuarantee(rho), 2).rho * order, rel=1e-6)


def test_one_move_is_the_guarantee_itself_and_invalid_moves_are_refused():
    assert over_moves(0.1, 1) == 0.1
    assert 0.3 <= over_moves(0.1, 3) < 0.3 + 1e-14
    for moves in (0, -1, 1.5, True, "2"):
        with pytest.raises(InputError, match="expected moves"):
            over_moves(0.1, moves)


@pytest.mark.parametrize(
    ("given", "more"), [((math.inf,), {}), ((math.nan,), {}), ((1.0,), {"delta": 1.0}), ((), {"rho": math.inf})]
)
def test_guarantee_without_a_bound_is_refused(given, more):
    with pytest.raises(BudgetError, match="finite budget"):
        promise(*given, **more)


def test_charge_applies_to_all_enclosing_accountants_or_none():
    lifetime = TemporalAccountant(Adversary(WALK, WALK))
    day = TemporalAccountant(Adversary(WALK, WALK), alpha=0.5)
    with lifetime:
        charge(day, 0.3)
        with pytest.raises(LeakageBudgetError):
            charge(day, 0.45)
    assert day.spent.tolist() == lifetime.spent.tolist() == [0.3]


def test_delta_requires_an_accountant_of_approximate_dp():
    with pytest.raises(BudgetError, match="counts epsilons with delta = 0"):
        charge(TemporalAccountant(Adversary(WALK, WALK)), PrivacyGuarantee(0.1, 1e-9))
    accountant = TemporalAccountant(Adversary(WALK, WALK), accounting=ApproximateDP(1e-6))
    charge(accountant, PrivacyGuarantee(0.1, 1e-9))
    charge(accountant, 0.1)
    assert len(accountant) == 2


def test_accountant_of_a_metric_is_refused():
    accountant = TemporalAccountant(Adversary(WALK, WALK), accounting=MetricPrivacy([[0.0, 0.5], [0.5, 0.0]]))
    with pytest.raises(InputError, match="may distinguish any two states"):
        charge(accountant, 0.1)
    assert len(accountant) == 0
    with pytest.raises(InputError, match="expected a TemporalAccountant"):
        charge(None, 0.1)
