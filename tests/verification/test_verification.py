"""Confidence bounds of delta by simulation: against enumeration, again and again, and what a user sees."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate, stats

from oracles import told_by_all
from temporaldp import (
    Adversary,
    ApproximateDP,
    BudgetError,
    DiscreteGaussianNoise,
    GaussianNoise,
    InputError,
    OutputTable,
    PrivacyGuarantee,
    TransitionMatrix,
    load_sample,
    temporal_leakage,
)
from temporaldp.correlation import estimate_transition_matrix
from temporaldp.studies import own_leakage, verify_leakage
from temporaldp.verification.draws import batch
from temporaldp.verification.leakage import bounded
from temporaldp.verification.values import ABOVE, BELOW, values_of_steps

EPSILON = 0.25
P = np.array([[0.9, 0.1], [0.3, 0.7]])
SIGMA = 4.0
NOISE = [GaussianNoise(SIGMA, sensitivity=1.0)] * 2


def true_deltas(table, past, future, n_steps):
    n = len(table)
    found = np.zeros((n_steps, n, n))
    for step in range(n_steps):
        rows = told_by_all(table, [past] * (n_steps - 1), [future] * (n_steps - 1), step, n_steps)
        found[step] = np.maximum(rows[:, None] - math.exp(EPSILON) * rows[None], 0.0).sum(axis=2)
    return found


@pytest.mark.parametrize(("failure", "repetitions"), [(0.2, 100), pytest.param(0.2, 10_000, marks=pytest.mark.slow)])
def test_bounds_cover_the_truth_at_the_stated_rate(failure, repetitions):
    """All quantities of a small case are bounded at once; few draws keep the bounds apart from the exact values."""
    rng = np.random.default_rng(3)
    table, past, future = (rng.dirichlet(np.full(m, 4.0), 3) for m in (2, 3, 3))
    adversary, n_steps = Adversary(TransitionMatrix(past), TransitionMatrix(future)), 3
    true = true_deltas(table, past, future, n_steps)
    releases = ((OutputTable(table),),) * n_steps
    series = temporal_leakage(adversary, list(releases), accounting=ApproximateDP(0.3, pairwise=True, grid=0.02))
    steps = values_of_steps(series.evidence, [EPSILON], 8.0 / 600)
    missed, narrow = 0, 0
    for seed in range(repetitions):
        (sums,), drawn = batch(adversary, releases, steps, [EPSILON], 600, np.random.SeedSequence(seed))
        found = bounded(adversary.states, EPSILON, 0.3, failure, steps, 0, sums, drawn)
        missed += bool((found.upper < true - 1e-12).any() or (found.lower > true + 1e-12).any())
        narrow += bool((found.lower > 0.0).any())
    assert missed <= failure * repetitions
    assert narrow > 0.5 * repetitions  # bounds that say nothing would hold as well


def test_failure_probabilities_of_all_bounds_add_up_to_the_stated_one():
    """Each bound implies its own failure probability, by Markov's inequality."""
    failure, n, n_steps, draws, seen = 1e-3, 3, 4, 1000, 300.0
    steps = [
        SimpleNamespace(
            rest=np.full((1, n, n), 0.01), certified=np.ones((1, n, n)), stakes=np.full((1, n, n, ABOVE + BELOW), 0.5)
        )
    ] * n_steps
    sums = np.stack([*[np.full((n_steps, n, n), -seen)] * ABOVE, *[np.full((n_steps, n, n), seen)] * BELOW])
    drawn = np.full((n_steps, n), draws)
    found = bounded(("a", "b", "c"), EPSILON, 0.3, failure, steps, 0, sums, drawn)
    pairs = n_steps * n * (n - 1)
    above = ABOVE * pairs * math.exp(-(-seen * (1 + 1e-9) - draws * math.log1p(-0.5 * (found.upper[1, 0, 1] - 0.01))))
    below = BELOW * pairs * math.exp(-(seen * (1 - 1e-9) - draws * math.log1p(0.5 * found.lower[1, 0, 1])))
    assert above == pytest.approx(failure / 2, rel=1e-6)
    assert below == pytest.approx(failure / 2, rel=1e-6)


def test_simulation_comes_close_to_enumeration():
    rng = np.random.default_rng(8)
    table, past, future = (rng.dirichlet(np.full(m, 2.0), 3) for m in (3, 3, 3))
    found = verify_leakage(
        Adversary(TransitionMatrix(past), TransitionMatrix(future)),
        [OutputTable(table)] * 4,
        delta=0.2,
        epsilon=EPSILON,
        failure=1e-6,
        draws=400_000,
    )
    true = true_deltas(table, past, future, 4)
    assert (found.lower <= true + 1e-12).all() and (true <= found.upper + 1e-12).all()
    assert (found.upper - found.lower).max() < 0.02


def test_leakage_of_a_single_release_lies_between_its_bounds():
    rng = np.random.default_rng(8)
    table, past, future = (rng.dirichlet(np.full(m, 2.0), 3) for m in (3, 3, 3))
    adversary = Adversary(TransitionMatrix(past), TransitionMatrix(future))
    found = own_leakage(adversary, [OutputTable(table)] * 3, delta=0.05, draws=60_000)
    rows = [told_by_all(table, [past] * 2, [future] * 2, step, 3) for step in range(3)]

    def delta(epsilon):
        return max(np.maximum(r[:, None] - math.exp(epsilon) * r[None], 0.0).sum(axis=2).max() for r in rows)

    assert delta(found.lower) > 0.05 >= delta(found.upper)
    assert 0.0 < found.lower < found.upper <= found.certified and 1.0 < found.ratio < 1.5
    assert "times as much" in found.sentence and "5e-05" in found.sentence


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


def test_lower_bound_is_below_the_exact_leakage():
    walk = Adversary(TransitionMatrix(P))
    for epsilon in (0.3, 0.9):
        found = verify_leakage(walk, NOISE, delta=1e-4, epsilon=epsilon, failure=1e-8, draws=400_000)
        for pair in ((0, 1), (1, 0)):
            truth = true_delta(epsilon, *pair)
            assert 0.0 <= found.lower[(1, *pair)] <= truth <= found.upper[(1, *pair)]


@pytest.mark.parametrize(("failure", "repetitions"), [(0.3, 40), pytest.param(0.3, 2_000, marks=pytest.mark.slow)])
def test_lower_bound_fails_at_most_at_the_stated_rate(failure, repetitions):
    walk, truth = Adversary(TransitionMatrix(P)), true_delta(0.5, 0, 1)
    found = [
        verify_leakage(walk, NOISE, delta=0.4, epsilon=0.5, failure=failure, draws=4_000, seed=seed).lower[1, 0, 1]
        for seed in range(repetitions)
    ]
    assert np.mean(np.array(found) > truth) <= failure
    assert np.mean(found) > 0.5 * truth  # bounds that say nothing would hold as well


@pytest.fixture(scope="module")
def sample():
    walks = load_sample()
    return Adversary(backward=estimate_transition_matrix(walks, direction="backward"))


@pytest.mark.long
def test_level_that_curves_cannot_certify_is_verified(sample):
    noise = [GaussianNoise(10.0, sensitivity=math.sqrt(2.0))] * 4
    certified = temporal_leakage(sample, noise, accounting=ApproximateDP(1e-2))
    epsilon = certified.worst - 0.005
    found = verify_leakage(sample, noise, delta=1e-2, epsilon=epsilon, failure=1e-4, draws=100_000)
    assert found.holds and not found.is_certified and not found.is_refuted
    assert "verified by simulation" in found.verdict and (found.upper <= found.certified).all()
    again = verify_leakage(sample, noise, delta=1e-2, epsilon=epsilon, failure=1e-4, draws=100_000)
    other = verify_leakage(sample, noise, delta=1e-2, epsilon=epsilon, failure=1e-4, draws=100_000, seed=1)
    assert again == found and not (other.upper == found.upper).all()


@pytest.mark.long
def test_certified_refuted_and_undecided_verdicts(sample):
    noise = [DiscreteGaussianNoise(10.0)] * 3
    worst = temporal_leakage(sample, noise, accounting=ApproximateDP(1e-2)).worst
    sure = verify_leakage(sample, noise, delta=1e-2, epsilon=worst + 0.01, draws=2_000)
    assert sure.is_certified and sure.holds and "certified" in sure.verdict
    refuted = verify_leakage(sample, noise, delta=1e-2, epsilon=0.05, failure=1e-3, draws=100_000)
    assert refuted.is_refuted and not refuted.holds and "more than" in refuted.verdict
    hasty = verify_leakage(sample, noise, delta=1e-2, epsilon=0.9 * worst, draws=10_000_000, seconds=1e-3)
    assert not hasty.holds and "not verified" in hasty.verdict and "certified bound" in hasty.verdict
    assert hasty.draws.sum() < 10_000_000


def test_invalid_arguments_are_refused(sample):
    noise = [GaussianNoise(10.0, sensitivity=1.0)] * 2
    with pytest.raises(BudgetError, match="adds to delta"):
        verify_leakage(sample, noise, delta=1e-6, epsilon=1.0, failure=1e-5)
    with pytest.raises(InputError, match="cannot be simulated"):
        verify_leakage(sample, [PrivacyGuarantee(0.1)], delta=1e-6, epsilon=1.0)
    with pytest.raises(InputError, match="with a correlation"):
        verify_leakage(Adversary(), noise, delta=1e-6, epsilon=1.0)
    with pytest.raises(InputError, match="seconds"):
        verify_leakage(sample, noise, delta=1e-6, epsilon=1.0, seconds=0.0)
    # A value that nobody can have is drawn at its own steps only: whoever asks about it is answered too.
    rows = TransitionMatrix([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.3, 0.7, 0.0]])
    found = verify_leakage(Adversary(rows), noise, delta=1e-2, epsilon=0.5, draws=2_000)
    assert np.isfinite(found.upper).all() and found.holds
