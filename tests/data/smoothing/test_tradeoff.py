"""What a tradeoff says against the accounting, closed forms, and its own definition of the smallest alpha."""

from __future__ import annotations

import math

import numpy as np
import pytest

from temporaldp import (
    Adversary,
    BudgetError,
    InputError,
    PublicCorrelation,
    TransitionMatrix,
    temporal_leakage,
    tradeoff,
)
from temporaldp.core.planning.histogram_noise import noise_variance
from temporaldp.data.smoothing.tradeoff import noise_at_quantiles, simulated_counts

CHAIN = TransitionMatrix([[0.8, 0.2], [0.3, 0.7]])
ADVERSARY = Adversary(CHAIN, CHAIN)
KNOWN = PublicCorrelation(CHAIN, provenance="a test")


def test_every_row_agrees_with_the_accounting():
    found = tradeoff(ADVERSARY, KNOWN, n_people=300, horizon=12, alphas=[0.3, 1.0], window=4)
    assert [round(point.alpha, 1) for point in found.points] == [0.3, 1.0]
    for point, level in zip(found.points, (0.3, 1.0), strict=True):
        series = temporal_leakage(ADVERSARY, [point.epsilon] * 12)
        assert point.alpha == series.worst <= level
        assert point.alpha > level * 0.99
        assert point.user_level == pytest.approx(12 * point.epsilon)
        assert point.window_level == pytest.approx(4 * point.epsilon)
        assert point.scale == pytest.approx(2.0 / point.epsilon)
        assert point.error == pytest.approx(1.0 / math.sinh(1.0 / point.scale))
        assert point.smoothed_error < point.error
    users = [2.0 * 12 / point.alpha for point in found.points]
    assert [one.scale for one in found.user_points] == pytest.approx(users)


def test_the_smallest_alpha_is_where_the_error_is_reached():
    found = tradeoff(ADVERSARY, KNOWN, n_people=300, horizon=12, epsilons=[0.5], largest_error=5.0)
    assert found.within_released.error == pytest.approx(5.0, rel=0.02)
    assert found.within_released.error <= 5.0
    assert 4.5 < found.within.smoothed_error <= 5.0
    assert found.within.alpha < found.within_released.alpha


def test_gaussian_scales_under_approximate_dp():
    found = tradeoff(ADVERSARY, KNOWN, n_people=300, horizon=3, scales=[8.0], delta=1e-5)
    (point,) = found.points
    assert found.noise == "gaussian"
    assert point.epsilon < point.alpha < point.user_level
    assert found.user_points == ()


@pytest.mark.parametrize(("scale", "noise"), [(0.7, "laplace"), (9.0, "laplace"), (6.0, "gaussian")])
def test_simulated_noise_has_the_variance_of_the_noise_that_is_drawn(scale, noise):
    drawn = noise_at_quantiles(np.random.default_rng(0).uniform(size=400_000), scale, noise)
    assert drawn.var() == pytest.approx(noise_variance(scale, noise), rel=0.03)
    assert abs(drawn.mean()) < 0.05 * scale


def test_simulated_people_move_by_the_chain():
    found = simulated_counts(KNOWN, n_people=500, horizon=4_000, repetitions=1, seed=1)
    np.testing.assert_allclose(found.counts[0].mean(axis=0) / 500, [0.6, 0.4], atol=0.01)  # 0.3 and 0.2, over their sum
    assert (found.counts.sum(axis=2) == 500).all()


def test_invalid_arguments_are_refused():
    with pytest.raises(InputError, match="several"):
        tradeoff(ADVERSARY, KNOWN, n_people=10, horizon=3, alphas=[1.0], scales=[2.0])
    with pytest.raises(InputError, match="scales of noise"):
        tradeoff(ADVERSARY, KNOWN, n_people=10, horizon=3, alphas=[1.0], delta=1e-6)
    with pytest.raises(BudgetError, match="give a delta"):
        tradeoff(ADVERSARY, KNOWN, n_people=10, horizon=3, noise="gaussian")
    with pytest.raises(InputError, match="PublicCorrelation"):
        tradeoff(ADVERSARY, CHAIN, n_people=10, horizon=3)
