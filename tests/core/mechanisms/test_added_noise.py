"""Mechanisms that are made from the distribution of their noise, against those with a closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from temporaldp import (
    Adversary,
    ApproximateDP,
    GaussianNoise,
    InputError,
    LaplaceNoise,
    Mechanism,
    TransitionMatrix,
    temporal_leakage,
)

EPSILONS = np.array([0.0, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.45])


@pytest.mark.parametrize(
    ("noise", "known", "pure"),
    [
        (stats.norm(scale=2.0), GaussianNoise(2.0, sensitivity=1.0), {}),
        (stats.norm(loc=7.0, scale=50.0), GaussianNoise(50.0, sensitivity=1.0), {}),
        (stats.laplace(scale=2.0), LaplaceNoise(2.0, sensitivity=1.0, coordinates=1), {"pure_epsilon": 0.5}),
        (stats.laplace(scale=2.0), LaplaceNoise(2.0, sensitivity=1.0, coordinates=1), {}),
    ],
)
def test_profiles_with_a_closed_form_lie_between_both_sides(noise, known, pure):
    low, up = Mechanism.from_density(noise, sensitivity=1.0, **pure).bounds(EPSILONS)
    beneath, above = known.bounds(EPSILONS)
    assert (low <= above).all()
    assert (up >= beneath).all()
    assert up - low == pytest.approx(0.0, abs=2e-4)


@pytest.mark.long
@pytest.mark.parametrize("noise", [stats.logistic(scale=4.0), stats.t(3, scale=5.0), stats.gumbel_r(scale=3.0)])
def test_profiles_by_sums_over_a_fine_grid(noise):
    made = Mechanism.from_density(noise, sensitivity=1.0)
    points = np.linspace(-2000.0, 2000.0, 2_000_001)
    here = noise.pdf(points)
    for moved in (1.0, -1.0):
        there = noise.pdf(points - moved)
        for epsilon in (0.0, 0.05, 0.15):
            true = np.maximum(here - np.exp(epsilon) * there, 0.0).sum() * (points[1] - points[0])
            low, up = (float(side[0]) for side in made.bounds(np.array([epsilon])))
            assert true <= up + 1e-6
            assert low <= up
    low, up = made.bounds(EPSILONS)
    assert up - low == pytest.approx(0.0, abs=1e-3)


@pytest.mark.long
def test_the_leakage_is_nearly_that_of_the_closed_form():
    walk = TransitionMatrix([[0.9, 0.1], [0.2, 0.8]])
    method = ApproximateDP(1e-6)
    each = [
        temporal_leakage(Adversary(walk, walk), [one] * 4, accounting=method).worst
        for one in (
            GaussianNoise(10.0, sensitivity=1.0),
            Mechanism.from_density(stats.norm(scale=10.0), sensitivity=1.0),
        )
    ]
    assert each[0] <= each[1] * (1.0 + 1e-6)
    assert each[1] == pytest.approx(each[0], rel=0.02)


def test_a_pure_epsilon_serves_the_exact_leakage():
    noise = Mechanism.from_density(stats.logistic(scale=10.0), sensitivity=1.0, pure_epsilon=0.1)
    walk = TransitionMatrix([[0.9, 0.1], [0.2, 0.8]])
    assert temporal_leakage(Adversary(walk, walk), [noise] * 3).epsilons == pytest.approx([0.1] * 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Mechanism.from_density(stats.laplace(scale=2.0), sensitivity=1.0, pure_epsilon=0.4),
            "has a loss of 0.5",
        ),
        (lambda: Mechanism.from_density(stats.norm(scale=2.0), sensitivity=1.0, pure_epsilon=0.4), "has a loss of"),
        (lambda: Mechanism.from_density(stats.norm(scale=2.0), sensitivity=0.0), "sensitivity"),
        (lambda: Mechanism.from_density(stats.poisson(3.0), sensitivity=1.0), "logpdf"),
        (lambda: Mechanism.from_density(2.0, sensitivity=1.0), "expected a continuous distribution"),
        (lambda: Mechanism.from_outputs([[0.5, 0.4], [0.5, 0.5]]), "rows that sum to 1"),
        (
            lambda: Mechanism.from_loss_distribution(2.0, neighboring_relation="replace_one"),
            "privacy loss distribution",
        ),
    ],
)
def test_what_is_no_mechanism_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


class Mixture:
    """A density with a narrow peak in a wide one, as an object of one's own."""

    def __init__(self, weight, wide, narrow):
        self.parts = ((1.0 - weight, wide), (weight, narrow))

    def logpdf(self, x):
        return np.log(sum(weight * one.pdf(x) for weight, one in self.parts))

    def cdf(self, x):
        return sum(weight * one.cdf(x) for weight, one in self.parts)

    def sf(self, x):
        return sum(weight * one.sf(x) for weight, one in self.parts)

    def ppf(self, share):
        return self._inverse(share, lambda x: self.cdf(x) < share)

    def isf(self, share):
        return self._inverse(share, lambda x: self.sf(x) > share)

    @staticmethod
    def _inverse(share, is_left):
        low, high = np.full(np.shape(share), -1e3), np.full(np.shape(share), 1e3)
        for _ in range(90):
            middle = 0.5 * (low + high)
            left = is_left(middle)
            low, high = np.where(left, middle, low), np.where(left, high, middle)
        return 0.5 * (low + high)


@pytest.mark.parametrize(("weight", "width"), [(1e-6, 1e-12), (1e-7, 1e-9), (1e-5, 1e-6), (1e-3, 1e-3)])
@pytest.mark.parametrize("sensitivity", [0.1, 1e-6])
def test_a_narrow_peak_is_not_overlooked(weight, width, sensitivity):
    """What a peak at the mode reveals: almost its whole weight, at any epsilon."""
    try:
        made = Mechanism.from_density(
            Mixture(weight, stats.norm(), stats.laplace(scale=width)), sensitivity=sensitivity
        )
    except InputError as error:
        assert "one mode" in str(error)
        return
    high, apart = weight * 0.5 / width / stats.norm.pdf(0.0), sensitivity > 50.0 * width
    if apart and high > 1e3:
        assert made.bounds(np.array([0.0, 2.0]))[1][1] >= 0.8 * weight


@pytest.mark.long
def test_a_second_mode_is_refused():
    for weight, second in ((1e-3, stats.norm(0.337, 1e-10)), (1e-6, stats.norm(0.337, 1e-10)), (0.5, stats.norm(4.0))):
        with pytest.raises(InputError, match="one mode"):
            Mechanism.from_density(Mixture(weight, stats.norm(), second), sensitivity=0.1)
    with pytest.raises(InputError, match="near 0"):
        Mechanism.from_density(stats.norm(loc=1e12), sensitivity=1e-3)
