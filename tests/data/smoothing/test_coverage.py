"""Smoothed counts of real and simulated people: nearer to the truth than what was released, and intervals that hold it."""

from __future__ import annotations

import numpy as np
import pytest

from data_sets import sleep_sample
from temporaldp import PublicCorrelation, ReleasedHistograms, TransitionMatrix, smooth
from temporaldp.data.counts.smoothed import step_release
from temporaldp.data.smoothing import advance, averaged, estimates
from transport_agency import QUARTERS, ZONES, commuters

SAMPLE = sleep_sample()


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


def public(chain):
    return PublicCorrelation(TransitionMatrix(chain, [f"s{k}" for k in range(len(chain))]), provenance="a test")


def measured(pairs, noise, scale, *, widths=1.0, rng):
    """Smoothed error over raw error, and coverage, over several populations with their chains; intervals made narrower."""
    raw, smoothed, inside = [], [], []
    for counts, chain in pairs:
        noisy = released(counts, scale, noise, rng)
        found = smooth(noisy, public(chain), total=int(counts[0].sum()))
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


@pytest.mark.long
@pytest.mark.parametrize(
    ("noise", "scale", "best"), [("laplace", 20.0, 0.3), ("laplace", 2.0, 0.85), ("gaussian", 13.0, 0.4)]
)
def test_coverage_on_real_data_split_into_history_and_protected_half(noise, scale, best):
    rng = np.random.default_rng(10)
    ratio, inside = measured(halves(rng, 6), noise, scale, rng=rng)
    assert ratio < best
    assert 0.93 <= inside <= 0.985


@pytest.mark.long
def test_coverage_measure_detects_narrow_intervals():
    rng = np.random.default_rng(10)
    _, inside = measured(halves(rng, 6), "laplace", 4.0, widths=1.0 / 1.5, rng=rng)
    assert inside < 0.93


@pytest.mark.parametrize("n_people", [150, 10_000])
@pytest.mark.parametrize("wrong", [0.0, 0.2, 1.0])
def test_wrong_chain_is_no_worse_than_the_release_and_keeps_coverage(n_people, wrong):
    rng = np.random.default_rng(11)
    chain = learnt(SAMPLE.codes)
    believed = (1.0 - wrong) * chain + wrong * chain[::-1, ::-1]
    believed /= believed.sum(axis=1, keepdims=True)
    ratio, inside = measured(simulated(rng, chain, believed, n_people, 6), "laplace", 10.0, rng=rng)
    assert ratio <= 1.02
    assert 0.92 <= inside <= 0.99


def counted_and_learnt(codes, n_protected):
    """Counts of some, and one chain for all times of day learnt from the others."""
    counts = np.stack([np.bincount(column, minlength=len(ZONES)) for column in codes[:n_protected].T])
    cells = (codes[n_protected:, :-1] * len(ZONES) + codes[n_protected:, 1:]).ravel()
    weights = np.bincount(cells, minlength=len(ZONES) ** 2).reshape(len(ZONES), len(ZONES)) + 1.0 / len(ZONES)
    return counts, public(weights / weights.sum(axis=1, keepdims=True))


def filtered(noisy, known, total):
    """What a ledger stores of each step: from the releases up to it."""
    state, moments, steps = None, [], []
    for counts, scale in zip(noisy.counts, noisy.scales.tolist(), strict=True):
        steps.append(step_release(counts, scale, noisy.noise, total))
        state = advance(state, steps[-1], known)
        state = state.only(state.kept)
        moments.append(averaged(state.belief, state.weights))
    return estimates(*map(np.array, zip(*moments, strict=True)), steps)


@pytest.mark.parametrize(
    ("n_people", "scale"),
    [
        (400, 40.0),
        (1500, 2.0),
        *(pytest.param(*case, marks=pytest.mark.long) for case in [(400, 6.0), (400, 2.0), (1500, 40.0), (1500, 6.0)]),
    ],
)
def test_intervals_cover_peak_zones_under_a_chain_without_phases(n_people, scale):
    rng = np.random.default_rng(12)
    by_day = np.arange(3 * QUARTERS) % QUARTERS
    by_day = (by_day >= 34) & (by_day < 68)
    inside = {"filter": [], "smoother": []}
    for _ in range(3):
        counts, known = counted_and_learnt(commuters(rng, 2 * n_people, 3), n_people)
        noisy = released(counts, scale, "laplace", rng)
        seen = {"filter": filtered(noisy, known, float(n_people)), "smoother": smooth(noisy, known, total=n_people)}
        for name, found in seen.items():
            held = (found.lower <= counts) & (counts <= found.upper)
            inside[name].append((held[by_day, :3].mean(), held.mean()))
            assert np.abs(found.counts - counts).mean() < np.abs(noisy.counts - counts).mean()
    for held in inside.values():
        busiest, everywhere = np.mean(held, axis=0)
        assert busiest >= 0.9, inside
        assert 0.93 <= everywhere <= 0.995, inside


def test_prediction_errors_barely_widen_intervals_of_a_correct_chain(monkeypatch):
    chain, widths = learnt(SAMPLE.codes), []
    for memory in (0.6, 1.0):
        monkeypatch.setattr("temporaldp.data.smoothing.counts_model.ERROR_MEMORY", memory)
        rng = np.random.default_rng(13)
        found = [
            smooth(released(counts, 10.0, "laplace", rng), public(chain), total=1000)
            for counts, _ in simulated(rng, chain, chain, 1000, 6)
        ]
        widths.append(np.mean([one.upper - one.lower for one in found]))
    assert widths[1] <= widths[0] <= 1.1 * widths[1]
