"""Smoothed counts of real and simulated people: nearer to the truth than what was released, and intervals that hold it."""

from __future__ import annotations

import numpy as np
import pytest

from temporaldp import PublicCorrelation, ReleasedHistograms, TransitionMatrix, load_sample, smooth

SAMPLE = load_sample()


def released(counts, scale, noise, rng):
    if noise == "gaussian":
        drawn = np.rint(rng.normal(0.0, scale, counts.shape))
    else:
        success = 1.0 - np.exp(-1.0 / scale)
        drawn = rng.geometric(success, counts.shape) - rng.geometric(success, counts.shape)
    times = tuple(str(t) for t in range(len(counts)))
    spent = np.full(len(counts), 0.1)
    names = tuple(f"s{k}" for k in range(counts.shape[1]))
    delta = 1e-6 if noise == "gaussian" else 0.0
    return ReleasedHistograms(
        counts + drawn.astype(int), spent, np.full(len(counts), scale), names, times, delta=delta, noise=noise
    )


def measured(pairs, noise, scale, *, widths=1.0, rng):
    """Smoothed error over raw error, and coverage, over several populations with their chains; intervals made narrower."""
    raw, smoothed, inside = [], [], []
    for counts, chain in pairs:
        noisy = released(counts, scale, noise, rng)
        names = [f"s{k}" for k in range(len(chain))]
        known = PublicCorrelation(TransitionMatrix(chain, names), source="a test")
        found = smooth(noisy, known, total=int(counts[0].sum()))
        low = found.counts - widths * (found.counts - found.lower)
        high = found.counts + widths * (found.upper - found.counts)
        raw.append(np.abs(noisy.counts - counts).mean())
        smoothed.append(np.abs(found.counts - counts).mean())
        inside.append(((low <= counts) & (counts <= high)).mean())
        np.testing.assert_allclose(found.counts.sum(axis=1), counts[0].sum())
        assert found.counts.min() >= 0.0
    return np.mean(smoothed) / np.mean(raw), np.mean(inside)


def learnt(codes):
    cells = (codes[:, :-1].astype(int) * 5 + codes[:, 1:]).ravel()
    weights = np.bincount(cells, minlength=25).reshape(5, 5) + 0.2
    return weights / weights.sum(axis=1, keepdims=True)


def halves(rng, repetitions):
    for _ in range(repetitions):
        order = rng.permutation(SAMPLE.n_users)
        protected = SAMPLE.codes[order[75:]]
        yield np.stack([np.bincount(column, minlength=5) for column in protected.T]), learnt(SAMPLE.codes[order[:75]])


def simulated(rng, chain, believed, n_people, repetitions):
    for _ in range(repetitions):
        counts = np.zeros((40, 5), dtype=int)
        counts[0, 0] = n_people
        for t in range(1, 40):
            counts[t] = sum(rng.multinomial(c, row) for c, row in zip(counts[t - 1], chain, strict=True))
        yield counts, believed


@pytest.mark.parametrize(
    ("noise", "scale", "best"), [("laplace", 20.0, 0.3), ("laplace", 2.0, 0.85), ("gaussian", 13.0, 0.4)]
)
def test_real_people_half_as_history_and_half_protected(noise, scale, best):
    rng = np.random.default_rng(10)
    ratio, inside = measured(halves(rng, 6), noise, scale, rng=rng)
    assert ratio < best
    assert 0.93 <= inside <= 0.985


def test_the_measure_of_coverage_sees_intervals_that_are_too_narrow():
    rng = np.random.default_rng(10)
    _, inside = measured(halves(rng, 6), "laplace", 4.0, widths=1.0 / 1.5, rng=rng)
    assert inside < 0.93


@pytest.mark.parametrize("n_people", [150, 10_000])
@pytest.mark.parametrize("wrong", [0.0, 0.2, 1.0])
def test_a_wrong_chain_costs_no_more_than_the_release_and_keeps_its_intervals(n_people, wrong):
    rng = np.random.default_rng(11)
    chain = learnt(SAMPLE.codes)
    believed = (1.0 - wrong) * chain + wrong * chain[::-1, ::-1]
    believed /= believed.sum(axis=1, keepdims=True)
    ratio, inside = measured(simulated(rng, chain, believed, n_people, 6), "laplace", 10.0, rng=rng)
    assert ratio <= 1.02
    assert 0.92 <= inside <= 0.99
