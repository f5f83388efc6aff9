"""Discrete Gaussian noise as it is drawn: its distribution, its scale, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from data_sets import sleep_sample
from temporaldp import (
    Adversary,
    ApproximateDP,
    BudgetError,
    DiscreteLaplaceHistogram,
    InputError,
    TemporalAccountant,
    load_released,
    plan_budget,
    plan_noise,
    release_histograms,
    save_released,
)
from temporaldp.core.planning.histogram_noise import noise_quantile
from temporaldp.data.counts import NoisyHistogram
from temporaldp.publish.release import release_snapshots

DRAWS = 4000
"""Of one count; the sampler takes no seed, so the test's own false alarm is one in a million."""


def p_value(noise, scale, kind):
    """Of the hypothesis that the noise has this scale, by a chi-squared test over bins of about equal probability."""
    x = np.arange(-400, 401)
    weights = np.exp(-0.5 * (x / scale) ** 2) if kind == "gaussian" else np.exp(-np.abs(x) / scale)
    mass = weights / weights.sum()
    edges = np.unique(np.searchsorted(np.cumsum(mass), np.linspace(0, 1, 21)[1:-1]))
    expected = np.diff(np.concatenate(([0.0], np.cumsum(mass)[edges], [1.0])))
    found = np.bincount(np.searchsorted(edges, noise + 400, side="left"), minlength=expected.size)
    return stats.chisquare(found, expected * noise.size).pvalue


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_noise_has_its_scale_and_a_wrong_scale_is_rejected(kind):
    mechanism = NoisyHistogram(n_states=DRAWS, noise=kind)
    noise = mechanism(np.full(DRAWS, 1000), 6.0) - 1000
    assert p_value(noise, 6.0, kind) > 1e-6
    for wrong in (4.0, 9.0):
        assert p_value(noise, wrong, kind) < 1e-6
    width = noise_quantile(6.0, 0.95, kind)
    inside = np.mean(np.abs(noise) <= width)
    assert inside >= 0.95 - 5.0 * np.sqrt(0.05 * 0.95 / DRAWS)
    assert np.mean(np.abs(noise) <= width - 2) < 0.95 + 5.0 * np.sqrt(0.05 * 0.95 / DRAWS)


def test_released_counts_keep_their_guarantee_in_the_file(tmp_path):
    people = sleep_sample()
    plan = plan_noise(Adversary(), alpha=0.5, accounting=ApproximateDP(1e-5))
    released = release_histograms(people, plan)
    for name in ("r.parquet", "r.csv"):
        save_released(released, tmp_path / name)
        again = load_released(tmp_path / name)
        assert (again.delta, again.noise) == (1e-5, "gaussian")
        np.testing.assert_allclose(again.scales, np.full(people.n_times, plan.scales[0]), rtol=1e-5)
        np.testing.assert_array_equal(again.counts, released.counts)
    assert load_released(tmp_path / "r.parquet").alpha == 0.5
    text = (tmp_path / "r.csv").read_text()
    (tmp_path / "r.csv").write_text(text.replace("1e-05", "1e-07", 1))
    with pytest.raises(InputError, match="one delta"):
        load_released(tmp_path / "r.csv")


def test_accountants_of_pure_epsilons_refuse_gaussian_noise(tmp_path):
    plan = plan_noise(Adversary(), alpha=1.0, accounting=ApproximateDP(1e-6))
    with TemporalAccountant(Adversary(), alpha=1.0) as accountant, pytest.raises(BudgetError, match="delta = 0"):
        release_histograms(sleep_sample(), plan)
    assert len(accountant) == 0
    with pytest.raises(InputError, match="gives scales, not budgets"):
        release_snapshots(lambda one, epsilon: one, [1], plan)
    for kind in (NoisyHistogram(5, "laplace"), DiscreteLaplaceHistogram(5)):
        with pytest.raises(InputError, match="gaussian"):
            release_snapshots(kind, [[1, 2, 3, 4, 5]], plan)
    with pytest.raises(InputError, match="with the scale of its noise"):
        release_snapshots(NoisyHistogram(5, "laplace"), [[1, 2, 3, 4, 5]], plan_budget(Adversary(), alpha=1.0))


def test_a_mechanism_with_noise_is_called_with_the_planned_scales():
    plan, called = plan_noise(Adversary(), alpha=1.0, horizon=3, accounting=ApproximateDP(1e-6)), []

    class Noted:
        noise = "gaussian"

        def __call__(self, snapshot, scale):
            called.append(scale)
            return snapshot

    result = release_snapshots(Noted(), ["a", "b"], plan, start=1)
    assert called == plan.scales[1:].tolist()
    assert result.outputs == ("a", "b") and result.epsilons.tolist() == plan.epsilons[1:].tolist()


def test_invalid_snapshots_and_scales_are_refused():
    mechanism = NoisyHistogram(n_states=2, noise="gaussian")
    for snapshot, scale in (([1, 2, 3], 1.0), ([1.5, 2.0], 1.0), ([-1, 2], 1.0), ([1, 2], 0.0), ([1, 2], np.nan)):
        with pytest.raises(InputError):
            mechanism(snapshot, scale)
