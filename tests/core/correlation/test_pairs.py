"""Pairs of successive states against enumeration: their moves, their counts, and what leaks about a state through them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from making import from_sequences
from temporaldp import Adversary, InputError, TransitionMatrix, temporal_leakage
from temporaldp.base.errors import TraceError
from temporaldp.core.correlation import pair_adversary
from temporaldp.data.tables import transition_trajectories

FORWARD = np.array([[0.7, 0.3], [0.4, 0.6]])


def test_pair_counts_are_counted_transitions_without_gaps():
    walks = from_sequences([["a", "b", None, "b"], ["b", "b", "a", "a"], ["a", "a", "b", "b"]])
    found = transition_trajectories(walks)
    assert found.states == ("a > a", "a > b", "b > a", "b > b")
    assert found.histogram().tolist() == [[1, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 1]]
    with pytest.raises(TraceError, match="at least two times"):
        transition_trajectories(from_sequences([["a"], ["b"]]))
    with pytest.raises(InputError, match="got one without"):
        pair_adversary(Adversary())


def test_pairs_follow_the_chain_of_states():
    rng = np.random.default_rng(0)
    matrices = [rng.dirichlet(np.ones(3), 3) for _ in range(4)]
    chain = [TransitionMatrix(one) for one in matrices]
    adversary = Adversary.from_forward(chain, initial=[0.2, 0.3, 0.5])
    lifted = pair_adversary(adversary)
    assert lifted.n_steps == 4
    # The joint law of a walk of five values, by its pairs and by its values.
    law = {}
    for walk in product(range(3), repeat=5):
        law[walk] = [0.2, 0.3, 0.5][walk[0]] * np.prod([matrices[t][walk[t], walk[t + 1]] for t in range(4)])
    for t in range(3):
        joint = np.zeros((9, 9))
        for walk, chance in law.items():
            joint[3 * walk[t] + walk[t + 1], 3 * walk[t + 1] + walk[t + 2]] += chance
        np.testing.assert_allclose(lifted.forward.at(t).dense(), joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)
        np.testing.assert_allclose(lifted.backward.at(t).dense(), joint.T / joint.sum(axis=0)[:, None], rtol=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_leakage_about_a_state_is_at_most_that_about_its_pairs(seed):
    """One person of three steps, two tables: every output of random tables of outputs, for each value of each step."""
    rng = np.random.default_rng(seed)
    epsilon, initial = 0.4, rng.dirichlet(np.ones(2))
    tables = [np.where(rng.random((4, 3)) < 0.5, 1.0, np.exp(epsilon)) for _ in range(2)]
    tables = [
        np.column_stack([one / (4 * np.exp(epsilon)), 1 - one.sum(axis=1) / (4 * np.exp(epsilon))]) for one in tables
    ]
    promised = [max(np.log(one.max(axis=0) / one.min(axis=0))) for one in tables]
    law = {w: initial[w[0]] * FORWARD[w[0], w[1]] * FORWARD[w[1], w[2]] for w in product(range(2), repeat=3)}
    worst = 0.0
    for step in range(3):
        seen = np.zeros((2, 4, 4))
        for walk, chance in law.items():
            first, second = 2 * walk[0] + walk[1], 2 * walk[1] + walk[2]
            seen[walk[step]] += chance * np.outer(tables[0][first], tables[1][second])
        seen /= seen.sum(axis=(1, 2), keepdims=True)
        worst = max(worst, np.abs(np.log(seen[0] / seen[1])).max())
    pairs = pair_adversary(Adversary.from_forward(TransitionMatrix(FORWARD), initial=initial, horizon=3))
    assert 0.0 < worst <= temporal_leakage(pairs, promised).worst * (1.0 + 1e-12)


def test_changing_correlation_is_refused():
    later = TransitionMatrix([[0.6, 0.4], [0.3, 0.7]])
    changed = Adversary(FORWARD, FORWARD).changed(3, Adversary(later, later))
    with pytest.raises(InputError, match="one for each transition, got Changing"):
        pair_adversary(changed)
