"""A level that is renewed: each epoch holds it, all together do not."""

from __future__ import annotations

import numpy as np
import pytest

from exact_oracles import temporal_by_sign_rule
from making import of_words
from temporaldp import (
    Adversary,
    ApproximateDP,
    BudgetError,
    MetricPrivacy,
    TransitionMatrix,
    temporal_leakage,
)
from temporaldp.core.planning import renewal_leakage

EPSILONS = [0.1, 0.4, 0.2]


def known(rows):
    return Adversary(TransitionMatrix(rows), TransitionMatrix(rows))


def test_constant_states_leak_in_every_epoch():
    found = renewal_leakage(known(np.eye(2)), EPSILONS, n_epochs=4)
    assert (found.alone, found.together) == (pytest.approx(0.7, rel=1e-12), pytest.approx(2.8, rel=1e-12))
    assert (found.n_epochs, found.grows) == (4, True)


def test_independent_states_do_not_leak_across_epochs():
    found = renewal_leakage(known(np.full((3, 3), 1 / 3)), EPSILONS)
    assert (found.alone, found.together, found.step) == (pytest.approx(0.4), pytest.approx(0.4), 1)
    assert not found.grows


@pytest.mark.parametrize("stay", [0.6, pytest.param(0.9, marks=pytest.mark.long)])
def test_two_states_across_one_renewal(stay):
    """Of two steps an epoch, by enumeration: what two epochs leak about the last step of the first one."""
    epsilons = np.array([0.3, 0.5])
    found = renewal_leakage(known([[stay, 1 - stay], [1 - stay, stay]]), epsilons, n_epochs=2)

    def arrives(likelihood):  # likelihood ratio of a neighbouring step, as it arrives
        return (stay * likelihood + 1 - stay) / ((1 - stay) * likelihood + stay)

    after = arrives(np.exp(0.3) * arrives(np.exp(0.5)))
    before = arrives(np.exp(0.3))
    assert found.together == pytest.approx(0.5 + np.log(after) + np.log(before), rel=1e-12)
    assert found.together > found.alone
    assert (found.epoch, found.step) == (0, 1)


def test_single_epoch_is_refused():
    with pytest.raises(BudgetError):
        renewal_leakage(known(np.eye(2)), EPSILONS, n_epochs=1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.long
def test_promise_over_an_infinite_horizon_is_a_tight_bound(seed):
    """By the sign rule to 60 digits, over all epochs with influence, or with fewer budgets in some of them."""
    rng = np.random.default_rng(seed)
    rows = [one / one.sum(axis=1, keepdims=True) for one in rng.dirichlet(np.ones(3), (2, 3)) + 0.05]
    epsilons = 0.2 + 0.4 * rng.random(2)
    adversary = Adversary(TransitionMatrix(rows[0]), TransitionMatrix(rows[1]))
    promised = renewal_leakage(adversary, epsilons).promise
    whole = temporal_by_sign_rule(*rows, np.tile(epsilons, 5)).max()
    assert whole <= promised <= whole * 1.05
    less = np.tile(epsilons, 5) * rng.choice([0.0, 0.5, 1.0], 10)
    assert temporal_by_sign_rule(*rows, less).max() <= promised


@pytest.mark.parametrize("n_epochs", [2, *(pytest.param(each, marks=pytest.mark.long) for each in (5, 20))])
def test_promise_of_a_long_epoch_is_tight(n_epochs):
    """Where an epoch is longer than the memory of the correlation, to many digits."""
    epsilons = np.concatenate(([0.5], np.full(28, 0.2), [0.5]))
    found = renewal_leakage(known([[0.8, 0.2], [0.3, 0.7]]), epsilons, n_epochs=n_epochs)
    assert found.together <= found.promise <= found.together * (1 + 1e-8)


@pytest.mark.long
def test_no_promise_without_mixing():
    assert renewal_leakage(known(np.eye(2)), EPSILONS).promise == np.inf
    kept = TransitionMatrix(np.eye(2))
    for one_side in (Adversary(backward=kept), Adversary(forward=kept)):  # the other one forgets at once
        assert renewal_leakage(one_side, EPSILONS).promise == np.inf
    half = known([[1.0, 0.0, 0.0], [0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
    found = renewal_leakage(half, EPSILONS, n_epochs=6)
    assert found.together <= found.promise


@pytest.mark.long
def test_promise_of_several_people_is_that_of_the_worst():
    few = [known([[0.6, 0.4], [0.4, 0.6]]), known([[0.9, 0.1], [0.2, 0.8]])]
    assert renewal_leakage(few, EPSILONS).promise == renewal_leakage(few[1], EPSILONS).promise


def test_promise_of_a_longer_memory_bounds_many_epochs():
    """The next state is mostly the one before the last: outputs at every other step are about one of two separate chains."""
    back = 0.97
    rows = np.array([[[back if c == a else 1.0 - back for c in (0, 1)] for _ in (0, 1)] for a in (0, 1)])
    found = renewal_leakage(of_words(rows), [0.1, 0.0], n_epochs=40)
    one = known([[back, 1 - back], [1 - back, back]])
    assert found.promise >= temporal_leakage(one, [0.1] * 400).worst * (1.0 - 1e-9)
    assert found.promise >= found.together


@pytest.mark.parametrize("method", [MetricPrivacy([[0.0, 0.5], [0.5, 0.0]]), ApproximateDP(1e-6)])
def test_no_promise_where_leakage_is_no_budget(method):
    assert renewal_leakage(known([[0.8, 0.2], [0.3, 0.7]]), [0.2], n_epochs=2, accounting=method).promise == np.inf
