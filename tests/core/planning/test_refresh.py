"""How often a budget may be refreshed: closed forms of two states, and releases with empty steps between them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from temporaldp import (
    Adversary,
    ApproximateDP,
    InputError,
    TransitionMatrix,
    refresh_interval,
    sticky,
    sustainable_budget,
    temporal_leakage,
)
from temporaldp.core.correlation import lazy_walk


def supremum(kept: float, epsilon: float) -> float:
    """Leakage of two symmetric states over an infinite horizon, whose second eigenvalue between two releases is `kept`."""
    backward = epsilon
    for _ in range(100_000):
        backward = epsilon + 2.0 * math.atanh(kept * math.tanh(0.5 * backward))
    return 2.0 * backward - epsilon


@pytest.mark.parametrize(("stays", "alpha"), [(0.7, 1.1), (0.9, 1.1), (0.9, 3.0), (0.95, 1.5), (0.3, 1.2)])
def test_the_smallest_interval_of_two_symmetric_states(stays, alpha):
    walk = lazy_walk(stays)
    found = refresh_interval(Adversary(walk, walk), 1.0, alpha)
    kept = abs(2.0 * stays - 1.0)
    assert supremum(kept**found, 1.0) <= alpha
    assert found == 1 or supremum(kept ** (found - 1), 1.0) > alpha


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_every_step_satisfies_the_level_also_those_between_releases(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    walk = TransitionMatrix(0.6 * np.eye(n) + 0.4 * rng.dirichlet(np.ones(n), size=n), normalize=True)
    adversary, epsilon = Adversary.from_forward(walk), float(rng.uniform(0.2, 1.5))
    found = refresh_interval(adversary, epsilon, 1.3 * epsilon)
    assert found is not None
    budgets = np.zeros(30 * found)
    budgets[::found] = epsilon
    assert temporal_leakage(adversary, budgets).temporal.max() <= 1.3 * epsilon * (1.0 + 1e-9)


@pytest.mark.long
def test_no_interval_where_states_are_never_forgotten_or_the_level_is_that_of_one_release():
    turn = TransitionMatrix([[0.0, 1.0], [1.0, 0.0]])
    assert refresh_interval(Adversary(turn, turn), 1.0, 5.0) is None
    walk = lazy_walk(0.9)
    assert refresh_interval(Adversary(walk, walk), 1.0, 1.0) is None
    assert refresh_interval(Adversary(walk, walk), 1.0, 1.1, most=13) is None
    assert refresh_interval(Adversary(walk, walk), 1.0, 1.1, most=14) == 14
    assert refresh_interval(Adversary(), 1.0, 1.1) == 1


def test_sets_of_matrices_are_refused():
    known = sticky(2, stays=(0.7, 0.9))
    with pytest.raises(InputError, match="known exactly"):
        refresh_interval(Adversary(known, known), 1.0, 1.1)


def test_a_constant_budget_within_a_horizon_by_privacy_curves():
    walk = lazy_walk(0.9)
    adversary, method = Adversary(walk, walk), ApproximateDP(1e-6)
    found = sustainable_budget(adversary, 1.0, 6, accounting=method)
    assert temporal_leakage(adversary, [found] * 6, accounting=method).worst <= 1.0
    assert found >= sustainable_budget(adversary, 1.0, 6) * (1.0 - 1e-6)
