"""The filter and the smoother against conditioning of all counts of all steps at once, and against moves that are counted."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from temporaldp import InputError, PublicCorrelation, TransitionMatrix
from temporaldp.base.errors import StateError
from temporaldp.core.correlation import Provenance
from temporaldp.core.correlation.provenance import together
from temporaldp.data.smoothing import StepRelease, advance, smooth_steps
from temporaldp.data.smoothing import count_filter as module
from temporaldp.data.smoothing.counts_model import Belief, first_counts, next_counts, unknown_counts

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
TOTAL = 40.0


def known(matrices=P, **more):
    chain = TransitionMatrix(matrices) if np.ndim(matrices) == 2 else [TransitionMatrix(one) for one in matrices]
    return PublicCorrelation(chain, provenance="a test", **more)


def dense(steps, matrices, widening, first_mean, first_covariance):
    """Mean and covariance of every step's counts given all releases, by one normal law of everything.

    The covariance of a move is taken at the mean that the past alone gives, as the filter does: that mean is conditioned anew
    from the steps before, so that nothing of the recursion is used. So is what was predicted, whose errors widen the next move.
    """
    n = len(first_mean)
    mean, covariance = first_mean.copy(), first_covariance.copy()
    off, spread = np.zeros(n), np.zeros(n)
    for t in range(1, len(steps)):
        past, past_covariance = given(steps[:t], mean, covariance, n)
        now, now_covariance = past[-n:], past_covariance[-n:, -n:]
        shares = np.maximum(now, 0.0)
        shares *= steps[t - 1].total / shares.sum()
        rows = matrices[t - 1]
        move = widening * sum(c * (np.diag(row) - np.outer(row, row)) for c, row in zip(shares, rows, strict=True))
        unexplained = np.maximum(off**2 - spread, 0.0)
        if unexplained.any():  # independent errors of these variances, given their sum
            move += np.diag(unexplained) - np.outer(unexplained, unexplained) / unexplained.sum()
        if steps[t].counts is not None:
            variance = np.diag(rows.T @ now_covariance @ rows + move) + steps[t].variance
            off = 0.6 * off + 0.4 * (steps[t].counts - now @ rows)
            spread = 0.36 * spread + 0.16 * variance
        last = covariance[-n:]
        cross = rows.T @ last
        corner = rows.T @ covariance[-n:, -n:] @ rows + move
        covariance = np.block([[covariance, cross.T], [cross, corner]])
        mean = np.concatenate([mean, mean[-n:] @ rows])
    return given(steps, mean, covariance, n)


def given(steps, mean, covariance, n):
    seen = np.concatenate([np.full(n, step.counts is not None) for step in steps])
    noise = np.concatenate([np.full(n, step.variance) for step in steps])[seen]
    y = np.concatenate([step.counts if step.counts is not None else np.zeros(n) for step in steps])[seen]
    gain = covariance[:, seen] @ np.linalg.inv(covariance[np.ix_(seen, seen)] + np.diag(noise))
    return mean + gain @ (y - mean[seen]), covariance - gain @ covariance[seen]


def releases(rng, unpublished=()):
    counts = [None if t in unpublished else rng.normal(13.0, 6.0, 3) for t in range(6)]
    return [StepRelease(one, float(rng.uniform(2.0, 60.0)), 1.0, TOTAL) for one in counts]


@pytest.mark.parametrize("unpublished", [(), (2,), (0, 5)])
@pytest.mark.parametrize("varying", [False, True])
def test_smoother_and_filter_equal_joint_gaussian_conditioning(monkeypatch, unpublished, varying):
    rng = np.random.default_rng(5)
    matrices = [rng.dirichlet(np.ones(3), 3) for _ in range(5)] if varying else [P] * 5
    steps = releases(rng, unpublished)
    correlation = known(matrices if varying else P)
    seen = []
    monkeypatch.setattr(
        "temporaldp.data.smoothing.count_filter.estimates", lambda mean, variance, _: seen.append((mean, variance))
    )
    for widening in (1.0, 40.0):
        monkeypatch.setattr(module, "WIDENINGS", (widening,))
        monkeypatch.setattr(module, "PRIOR", np.ones(1))
        first = unknown_counts(TOTAL, 3, 1)
        wanted, covariance = dense(steps, matrices, widening, first.mean[0], first.covariance[0])
        state = None
        for step in steps:
            state = advance(state, step, correlation)
        np.testing.assert_allclose(state.belief.mean[0], wanted[-3:], rtol=1e-7)
        np.testing.assert_allclose(state.belief.covariance[0], covariance[-3:, -3:], atol=1e-7)
        smooth_steps(steps, correlation)
        np.testing.assert_allclose(seen[-1][0].ravel(), wanted, rtol=1e-7)
        np.testing.assert_allclose(seen[-1][1].ravel(), np.diag(covariance), atol=1e-6)


def test_moments_of_transitions_agree_with_enumeration():
    counts = np.array([2.0, 1.0, 1.0])
    origins = [0, 0, 1, 2]
    mean, second = np.zeros(3), np.zeros((3, 3))
    for targets in product(range(3), repeat=4):
        chance = np.prod([P[i, j] for i, j in zip(origins, targets, strict=True)])
        after = np.bincount(targets, minlength=3)
        mean += chance * after
        second += chance * np.outer(after, after)
    now = Belief(counts[None], np.zeros((1, 3, 3)))
    found = next_counts(now, P, np.ones(1), 4.0, 4.0)
    np.testing.assert_allclose(found.mean[0], mean, rtol=1e-12)
    np.testing.assert_allclose(found.covariance[0], second - np.outer(mean, mean), atol=1e-12)


def test_initial_distribution_of_counts_is_uniform():
    draws = np.random.default_rng(1).dirichlet(np.ones(4), 200_000) * 30.0
    found = unknown_counts(30.0, 4, 1)
    np.testing.assert_allclose(found.mean[0], draws.mean(axis=0), rtol=0.01)
    np.testing.assert_allclose(found.covariance[0], np.cov(draws.T), rtol=0.02, atol=0.3)


@pytest.mark.parametrize(("before", "after"), [(40.0, 55.0), (40.0, 12.0), (40.0, 40.0)])
def test_public_total_is_exact_even_if_it_changes(before, after):
    found = next_counts(unknown_counts(before, 3, 2), P, np.array([3.0, np.inf]), before, after)
    np.testing.assert_allclose(found.mean.sum(axis=1), after, rtol=1e-12)
    np.testing.assert_allclose(found.covariance.sum(axis=2), 0.0, atol=1e-9)


def test_counts_of_the_history_inform_the_first_counts():
    found = first_counts([90.0, 5.0, 5.0], 3, np.array([1.0, np.inf]), 50.0)
    assert found.mean[0, 0] == pytest.approx(50.0 * (90.0 + 1 / 3) / 101.0)
    np.testing.assert_allclose(found.mean[1], 50.0 / 3.0)
    np.testing.assert_allclose(found.covariance.sum(axis=2), 0.0, atol=1e-9)


def test_releases_that_contradict_the_chain_fall_back_to_no_chain():
    rng = np.random.default_rng(3)
    stuck = known(np.eye(3) * 0.97 + 0.01)
    jumping = [np.roll([1000.0, 0.0, 0.0], t) + rng.normal(0.0, 2.0, 3) for t in range(12)]
    found, movement = smooth_steps([StepRelease(one, 4.0, 1.0, 1000.0) for one in jumping], stuck)
    assert movement > 1000.0
    assert np.abs(found.counts - np.array([np.roll([1000.0, 0, 0], t) for t in range(12)])).max() < 12.0


def test_a_correlation_learned_from_protected_traces_is_not_public():
    bad = Provenance("protected", "Learnt from the protected traces.", warning="depends on the protected data")
    with pytest.raises(InputError, match=r"`temporaldp learn`.*") as refusal:
        PublicCorrelation(TransitionMatrix(P), provenance=bad)
    assert "--history" in str(refusal.value)
    learnt = Provenance("learnt", "Learned.", (("one", 0.5),))
    for other in (Provenance("history", "A survey."), learnt):
        mixed = together([other, bad])
        assert mixed.epsilon == other.epsilon and bad.sentence in mixed.sentence
        with pytest.raises(InputError, match="from the protected traces"):
            PublicCorrelation(TransitionMatrix(P), provenance=mixed)
    odd = Provenance("matrices", "A survey.", warning="the directions contradict each other")  # public nevertheless
    assert PublicCorrelation(TransitionMatrix(P), provenance=odd).provenance == odd
    for nothing in ("", Provenance("matrices")):
        with pytest.raises(InputError, match="is not stated: give provenance"):
            PublicCorrelation(TransitionMatrix(P), provenance=nothing)
    with pytest.raises(StateError):
        known().reordered(("a", "b", "c"))
