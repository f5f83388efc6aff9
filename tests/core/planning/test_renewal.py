"""A level that is renewed: each epoch holds it, all together do not."""

from __future__ import annotations

import numpy as np
import pytest

from exact_oracles import temporal_by_sign_rule
from making import of_words
from temporaldp import (
    Adversary,
    ApproximateDP,
    MetricPrivacy,
    TransitionMatrix,
    temporal_leakage,
)
from temporaldp.core.planning import leakage_of_epochs

EPSILONS = [0.1, 0.4, 0.2]


def known(rows):
    return Adversary(TransitionMatrix(rows), TransitionMatrix(rows))


def together(adversary, epsilons, n_epochs):
    """Leakage of so many epochs, by the series of all their steps."""
    return temporal_leakage(adversary, np.tile(epsilons, n_epochs)).worst


@pytest.mark.long
def test_independent_states_do_not_leak_across_epochs():
    assert leakage_of_epochs(known(np.full((3, 3), 1 / 3)), EPSILONS) == pytest.approx(0.4)


@pytest.mark.parametrize("stay", [0.6, pytest.param(0.9, marks=pytest.mark.long)])
def test_two_states_across_one_renewal(stay):
    """Of two steps an epoch, by enumeration: what two epochs leak about the last step of the first one."""
    epsilons = np.array([0.3, 0.5])
    adversary = known([[stay, 1 - stay], [1 - stay, stay]])

    def arrives(likelihood):  # likelihood ratio of a neighbouring step, as it arrives
        return (stay * likelihood + 1 - stay) / ((1 - stay) * likelihood + stay)

    after = arrives(np.exp(0.3) * arrives(np.exp(0.5)))
    before = arrives(np.exp(0.3))
    two = 0.5 + np.log(after) + np.log(before)
    assert two == pytest.approx(together(adversary, epsilons, 2), rel=1e-12)
    assert together(adversary, epsilons, 1) < two <= leakage_of_epochs(adversary, epsilons)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.long
def test_promise_over_an_infinite_horizon_is_a_tight_bound(seed):
    """By the sign rule to 60 digits, over all epochs with influence, or with fewer budgets in some of them."""
    rng = np.random.default_rng(seed)
    rows = [one / one.sum(axis=1, keepdims=True) for one in rng.dirichlet(np.ones(3), (2, 3)) + 0.05]
    epsilons = 0.2 + 0.4 * rng.random(2)
    adversary = Adversary(TransitionMatrix(rows[0]), TransitionMatrix(rows[1]))
    promised = leakage_of_epochs(adversary, epsilons)
    whole = temporal_by_sign_rule(*rows, np.tile(epsilons, 5)).max()
    assert whole <= promised <= whole * 1.05
    less = np.tile(epsilons, 5) * rng.choice([0.0, 0.5, 1.0], 10)
    assert temporal_by_sign_rule(*rows, less).max() <= promised


@pytest.mark.parametrize("n_epochs", [2, *(pytest.param(each, marks=pytest.mark.long) for each in (5, 20))])
def test_promise_of_a_long_epoch_is_tight(n_epochs):
    """Where an epoch is longer than the memory of the correlation, to many digits."""
    epsilons = np.concatenate(([0.5], np.full(28, 0.2), [0.5]))
    adversary = known([[0.8, 0.2], [0.3, 0.7]])
    leaked = together(adversary, epsilons, n_epochs)
    assert leaked <= leakage_of_epochs(adversary, epsilons) <= leaked * (1 + 1e-8)


def test_constant_states_leak_in_every_epoch():
    assert together(known(np.eye(2)), EPSILONS, 4) == pytest.approx(2.8, rel=1e-12)
    assert leakage_of_epochs(known(np.eye(2)), EPSILONS) == np.inf


@pytest.mark.long
def test_no_promise_without_mixing():
    kept = TransitionMatrix(np.eye(2))
    for one_side in (Adversary(backward=kept), Adversary(forward=kept)):  # the other one forgets at once
        assert leakage_of_epochs(one_side, EPSILONS) == np.inf
    half = known([[1.0, 0.0, 0.0], [0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
    assert together(half, EPSILONS, 6) <= leakage_of_epochs(half, EPSILONS)


@pytest.mark.long
def test_promise_of_several_people_is_that_of_the_worst():
    few = [known([[0.6, 0.4], [0.4, 0.6]]), known([[0.9, 0.1], [0.2, 0.8]])]
    assert leakage_of_epochs(few, EPSILONS) == leakage_of_epochs(few[1], EPSILONS)


@pytest.mark.long
def test_promise_of_a_longer_memory_bounds_many_epochs():
    """The next state is mostly the one before the last: outputs at every other step are about one of two separate chains."""
    back = 0.97
    rows = np.array([[[back if c == a else 1.0 - back for c in (0, 1)] for _ in (0, 1)] for a in (0, 1)])
    promised = leakage_of_epochs(of_words(rows), [0.1, 0.0])
    one = known([[back, 1 - back], [1 - back, back]])
    assert promised >= temporal_leakage(one, [0.1] * 400).worst * (1.0 - 1e-9)
    assert promised >= together(of_words(rows), [0.1, 0.0], 40)


@pytest.mark.parametrize("method", [MetricPrivacy([[0.0, 0.5], [0.5, 0.0]]), ApproximateDP(1e-6)])
def test_no_promise_where_leakage_is_no_budget(method):
    assert leakage_of_epochs(known([[0.8, 0.2], [0.3, 0.7]]), [0.2], accounting=method) == np.inf
