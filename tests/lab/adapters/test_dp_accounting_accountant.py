"""A temporal accountant behind dp-accounting's interface."""

from __future__ import annotations

import pytest

from temporaldp import (
    Adversary,
    ApproximateDP,
    BudgetError,
    GaussianNoise,
    InputError,
    LeakageBudgetError,
    TemporalAccountant,
    TransitionMatrix,
    adapters,
    temporal_leakage,
)

library = pytest.importorskip("dp_accounting", reason="the extra 'dp-accounting' is not installed")
WALK = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
ADVERSARY = Adversary(WALK, WALK)


def test_every_composition_is_a_step_of_two_moves():
    temporal = TemporalAccountant(ADVERSARY, alpha=1.0)
    events = adapters.dp_accounting(temporal)
    assert events.compose(library.LaplaceDpEvent(20.0), count=3) is events
    both = library.ComposedDpEvent([library.LaplaceDpEvent(20.0), library.LaplaceDpEvent(40.0)])
    events.compose(both)
    assert temporal.spent == pytest.approx([0.1, 0.1, 0.1, 0.15], rel=1e-12)
    expected = temporal_leakage(ADVERSARY, temporal.spent).worst
    assert events.get_epsilon(1e-9) == pytest.approx(expected, rel=1e-9)
    assert events.neighboring_relation is library.NeighboringRelation.REPLACE_ONE
    assert isinstance(events.ledger, library.DpEvent)


def test_spending_several_steps_is_atomic():
    temporal = TemporalAccountant(ADVERSARY, alpha=0.5)
    events = adapters.dp_accounting(temporal)
    events.compose(library.LaplaceDpEvent(20.0))
    before = events.ledger
    with pytest.raises(LeakageBudgetError):
        events.compose(library.LaplaceDpEvent(8.0), count=5)
    assert (len(temporal), events.ledger) == (1, before)


def test_unsupported_events_are_reported_as_the_library_does():
    events = adapters.dp_accounting(TemporalAccountant(ADVERSARY))
    gaussian = library.GaussianDpEvent(10.0)
    assert not events.supports(gaussian)
    assert events.supports(library.LaplaceDpEvent(1.0))
    with pytest.raises(library.UnsupportedEventError, match="expected a release with a pure epsilon"):
        events.compose(gaussian)
    with pytest.raises(TypeError):
        events.compose("gaussian")
    with pytest.raises(InputError):
        events.compose(library.LaplaceDpEvent(1.0), count=-1)
    with pytest.raises(InputError, match="expected a TemporalAccountant"):
        adapters.dp_accounting(ADVERSARY)
    assert len(events.temporal) == 0


def test_approximate_dp_counts_any_event():
    temporal = TemporalAccountant(ADVERSARY, accounting=ApproximateDP(1e-6, grid=1e-2))
    events = adapters.dp_accounting(temporal).compose(library.GaussianDpEvent(10.0), count=2)
    other = TemporalAccountant(ADVERSARY, accounting=ApproximateDP(1e-6, grid=1e-2))
    other.spend([GaussianNoise(10.0, sensitivity=2.0)] * 2)  # two contributions: one goes and another comes
    assert events.get_epsilon(1e-6) == other.total()
    with pytest.raises(BudgetError, match="counts at delta = 1e-06"):
        events.get_epsilon(1e-5)
