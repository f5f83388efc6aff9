"""Weighed draws against integration, and what they add to plain ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from temporaldp import (
    Adversary,
    ApproximateDP,
    GaussianNoise,
    LaplaceNoise,
    TransitionMatrix,
    temporal_leakage,
    verify_leakage,
)
from temporaldp.accounting.simulation.importance import Walks, proposals_for
from temporaldp.accounting.simulation.verified_values import values_of_steps
from temporaldp.mechanisms.events import releases_of

P = np.array([[0.9, 0.1], [0.3, 0.7]])
SIGMA = 4.0
NOISE = [GaussianNoise(SIGMA, sensitivity=1.0)] * 2


def true_delta(epsilon, a, b):
    """Of values a and b at the second of two releases of a number that is 0 or 1, by integration over the first output."""

    def both(first):
        other = [stats.norm.pdf(first, loc, SIGMA) for loc in (0.0, 1.0)]
        of_a, of_b = (P @ other)[[a, b]]
        level = epsilon - math.log(of_a / of_b)
        mu = 1.0 / SIGMA
        own = stats.norm.cdf(mu / 2 - level / mu) - math.exp(level) * stats.norm.cdf(-mu / 2 - level / mu)
        return of_a * own

    return integrate.quad(both, -40.0, 41.0, epsabs=1e-14, epsrel=1e-10, limit=400)[0]


def proposals(adversary, noise, epsilon, delta):
    releases = releases_of(noise)
    adversary = adversary.over(len(releases))
    evidence = temporal_leakage(adversary, noise, accounting=ApproximateDP(delta, pairwise=True)).evidence
    steps = values_of_steps(evidence, [epsilon], 1e-3)
    return proposals_for(adversary, releases, steps, [epsilon]), steps


@pytest.mark.long
def test_weighed_draws_have_the_mean_of_plain_ones():
    epsilon = 1.1
    found, steps = proposals(Adversary(TransitionMatrix(P)), NOISE, epsilon, 1e-6)
    assert [(one.step, one.pair) for one in found] == [(1, (1, 0)), (1, (0, 1))]
    for one in found:
        truth = true_delta(epsilon, *one.pair)
        ratios, weights = one.drawn(40_000, np.random.default_rng(5))
        values = np.exp(weights) * steps[1].own.from_below(one.pair, epsilon - ratios)
        error = values.std() / math.sqrt(values.size)
        assert abs(np.exp(weights).mean() - 1.0) < 0.05
        assert (
            0.97 * truth - 5.0 * error < values.mean() < truth + 5.0 * error
        )  # values are those of a grid, from below
        assert error < 0.005 * truth < 1e-6  # that of 40,000 plain draws is 0.03


def test_the_lower_bound_is_below_the_truth_and_close():
    walk = Adversary(TransitionMatrix(P))
    for epsilon in (0.9, 1.1):
        found = verify_leakage(walk, NOISE, delta=1e-5, epsilon=epsilon, failure=1e-8, draws=400_000)
        for pair in ((0, 1), (1, 0)):
            truth = true_delta(epsilon, *pair)
            assert 0.8 * truth < found.lower[(1, *pair)] <= truth <= found.upper[(1, *pair)]


@pytest.mark.parametrize(("failure", "repetitions"), [(0.3, 40), pytest.param(0.3, 2_000, marks=pytest.mark.slow)])
def test_the_lower_bound_fails_no_more_often_than_it_says(failure, repetitions):
    walk, truth = Adversary(TransitionMatrix(P)), true_delta(0.5, 0, 1)
    found = [
        verify_leakage(walk, NOISE, delta=0.4, epsilon=0.5, failure=failure, draws=4_000, seed=seed).lower[1, 0, 1]
        for seed in range(repetitions)
    ]
    assert np.mean(np.array(found) > truth) <= failure
    assert np.mean(found) > 0.5 * truth  # bounds that say nothing would hold as well


def test_couplings_keep_both_walks():
    """Each of a pair of walks goes on as the chain says, whatever the other does; they stay together once they met."""
    rng = np.random.default_rng(1)
    rows = rng.dirichlet(np.ones(4), 4)
    walks = Walks.of(rows[None], np.zeros(1), 3.0)  # nothing is told: nothing is shifted
    chances = walks.chances[0].reshape(4, 4, 4, 4)
    assert np.allclose(chances.sum(axis=3), rows[:, None]) and np.allclose(chances.sum(axis=2), rows[None])
    for x in range(4):
        assert np.allclose(chances[x, x], np.diag(rows[x]))
    assert np.allclose(walks.log_weight, 0.0) and np.allclose(walks.densities, walks.chances)


def test_only_gaussian_noise_is_shifted():
    adversary = Adversary(TransitionMatrix(P), TransitionMatrix(P))
    assert proposals(adversary, [LaplaceNoise(5.0, sensitivity=1.0, coordinates=1)] * 3, 0.3, 1e-3)[0] == []
    mixed = [NOISE[0], None, LaplaceNoise(5.0, sensitivity=1.0, coordinates=1)]
    assert [one.step for one in proposals(adversary, mixed, 0.3, 1e-3)[0]] in ([], [2, 2])
