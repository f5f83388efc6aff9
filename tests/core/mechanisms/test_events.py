"""Google's events as budgets, against Google's own accounting."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting import dp_event as events
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld

from temporaldp import (
    Adversary,
    InputError,
    LeakageBudgetError,
    Mechanism,
    TemporalAccountant,
    TransitionMatrix,
)

MATRIX = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])


ADVERSARY = Adversary(MATRIX, MATRIX)


CERTAIN = TransitionMatrix(np.eye(2))


@pytest.mark.parametrize(
    ("event", "distribution"),
    [  # one contribution leaves and another comes: twice the sensitivity
        (events.LaplaceDpEvent(2.5), pld.from_laplace_mechanism(2.5, 2.0)),
        (events.DiscreteLaplaceDpEvent(0.3, 2), pld.from_discrete_laplace_mechanism(0.3, 4)),
        (events.RandomizedResponseDpEvent(0.4, 5), pld.from_randomized_response(0.4, 5)),
    ],
)
def test_events_agree_with_dp_accounting_at_delta_zero(event, distribution):
    accountant = TemporalAccountant(ADVERSARY)
    (spent,) = accountant.spend(event).spent
    assert spent == pytest.approx(distribution.get_epsilon_for_delta(1e-9), abs=4e-4)


def test_composed_events_are_queries_at_one_step():
    inner = events.SelfComposedDpEvent(events.LaplaceDpEvent(8.0), 2)
    accountant = TemporalAccountant(ADVERSARY).spend(events.ComposedDpEvent([events.LaplaceDpEvent(4.0), inner]))
    assert accountant.spent == pytest.approx([1.0], rel=1e-14)
    assert accountant.spent[0] >= 1.0


def test_composing_several_times_takes_as_many_steps():
    accountant = TemporalAccountant(ADVERSARY).spend([events.LaplaceDpEvent(4.0)] * 3).spend(events.NoOpDpEvent())
    assert accountant.spent == pytest.approx([0.5, 0.5, 0.5, 0.0], rel=1e-14)
    refusing = TemporalAccountant(ADVERSARY, alpha=1.0)
    with pytest.raises(LeakageBudgetError):
        refusing.spend([events.LaplaceDpEvent(4.0)] * 5)
    assert len(refusing) == 0


@pytest.mark.parametrize(
    "event", [events.GaussianDpEvent(1.0), events.NonPrivateDpEvent(), events.LaplaceDpEvent(0.0),
              events.ComposedDpEvent([events.LaplaceDpEvent(1.0), events.GaussianDpEvent(1.0)]), "laplace"]
)  # fmt: skip
def test_events_without_pure_privacy_are_refused(event):
    accountant = TemporalAccountant(ADVERSARY)
    with pytest.raises(InputError):
        accountant.spend(event)
    assert len(accountant) == 0


@pytest.mark.parametrize("delta", [0.01, 1e-6])
def test_loss_distribution_covers_the_deltas_of_dp_accounting(delta):
    """An (epsilon, delta) guarantee has an infinite loss with probability delta, which is the limit of its curve."""
    distribution = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(0.7, delta))
    made = Mechanism.from_loss_distribution(distribution, neighboring_relation="replace_one")
    assert delta <= made.limit <= delta + 1e-11
    epsilons = np.array([2.0, 0.0, 0.5, 600.0, 0.1])
    low, up = made.bounds(epsilons)
    for epsilon, below, above in zip(epsilons.tolist(), low, up, strict=True):
        said = distribution.get_delta_for_epsilon(min(epsilon, 500.0))
        assert below <= said <= above <= below + 1e-11
