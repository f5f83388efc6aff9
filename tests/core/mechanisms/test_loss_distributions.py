"""Privacy loss distributions of dp-accounting beside its events."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from temporaldp import Adversary, ApproximateDP, InputError, Mechanism, TransitionMatrix, temporal_leakage

events = pytest.importorskip("dp_accounting", reason="the extra 'dp-accounting' is not installed")
pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
WALK = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
ADVERSARY = Adversary(WALK, WALK)
NOISE = 10.0


def leakage(release):
    return temporal_leakage(ADVERSARY, [release] * 3, accounting=ApproximateDP(1e-6, grid=1e-3)).worst


@pytest.mark.parametrize(
    ("chosen", "relation"),
    [
        ({"neighboring_relation": pld.NeighborRel.REPLACE_ONE}, pld.NeighborRel.REPLACE_ONE),
        pytest.param({"sensitivity": 2.0}, "replace_one", marks=pytest.mark.long),
        pytest.param({"sensitivity": 2.0}, events.NeighboringRelation.REPLACE_ONE, marks=pytest.mark.long),
    ],
)
def test_event_and_loss_distribution_of_a_noise_leak_equally(chosen, relation):
    made = pld.from_gaussian_mechanism(NOISE, value_discretization_interval=1e-4, **chosen)
    given = Mechanism.from_loss_distribution(made, neighboring_relation=relation)
    of_event = leakage(events.GaussianDpEvent(NOISE))
    assert of_event - 1e-9 <= leakage(given) <= of_event * 1.01


def test_loss_distribution_of_add_or_remove_is_refused():
    made = pld.from_gaussian_mechanism(NOISE)
    with pytest.raises(InputError, match=r"does not state its neighbouring relation.*Mechanism.from_loss_distribution"):
        leakage(made)
    for relation in (
        "add_or_remove_one",
        events.NeighboringRelation.ADD_OR_REMOVE_ONE,
        pld.NeighborRel.ADD_OR_REMOVE_ONE,
    ):
        with pytest.raises(InputError, match="replace_one"):
            Mechanism.from_loss_distribution(made, neighboring_relation=relation)
    with pytest.raises(InputError, match="optimistic"):
        Mechanism.from_loss_distribution(
            pld.from_gaussian_mechanism(NOISE, pessimistic_estimate=False), neighboring_relation="replace_one"
        )
    with pytest.raises(InputError, match="rounding is unknown"):
        Mechanism.from_loss_distribution(SimpleNamespace(get_delta_for_epsilon=len), neighboring_relation="replace_one")
    with pytest.raises(InputError, match="expected a privacy loss distribution of dp-accounting, got float"):
        Mechanism.from_loss_distribution(1.0, neighboring_relation="replace_one")
