"""Operations on the grid, one by one: what is called an upper bound is one at every epsilon, and so is a lower one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import hockey_stick
from temporaldp import (
    Adversary,
    ApproximateDP,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    RandomizedResponse,
    TransitionMatrix,
    temporal_leakage,
)
from temporaldp.core.accounting.curve import grid
from temporaldp.core.accounting.curve.arrivals import SingleCurve

ANYWHERE = np.linspace(0.0, 6.0, 601)


def loss_distribution(rng):
    """(losses, masses, infinite) of a random mechanism that is the same both ways round."""
    half = np.sort(rng.uniform(0.0, 3.0, int(rng.integers(1, 6))))
    weights = rng.dirichlet(np.ones(half.size)) * rng.uniform(0.2, 0.95)
    right = weights / (1.0 + np.exp(-half))
    infinite = float(rng.choice([0.0, 0.05])) * 0.5
    left = right * np.exp(-half)
    rest = 1.0 - infinite - right.sum() - left.sum()
    return np.concatenate((-half[::-1], [0.0], half)), np.concatenate((left[::-1], [rest], right)), infinite


def profile(distribution, epsilons):
    losses, masses, infinite = distribution
    return infinite + np.maximum(-np.expm1(epsilons[:, None] - losses), 0.0) @ masses


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 0.1, 0.02]))
def test_interpolated_curve_is_above_and_lowered_curve_below(seed, h):
    rng = np.random.default_rng(seed)
    first, second = loss_distribution(rng), loss_distribution(rng)
    points = h * np.arange(math.ceil(3.0 / h) + 2)
    D, E = profile(first, points), profile(second, points)
    low, low_too = grid.lowered(D, h), grid.lowered(E, h)
    exact = profile(first, ANYWHERE)
    assert (grid.interpolated(D, *grid.cells(h, ANYWHERE)) >= exact - 1e-14).all()
    assert (grid.interpolated(low, *grid.cells(h, ANYWHERE)) <= exact + 1e-14).all()
    # two independent outputs: losses add
    losses = np.add.outer(first[0], second[0]).ravel()
    both = losses, np.multiply.outer(first[1], second[1]).ravel(), first[2] + second[2] - first[2] * second[2]
    exact = profile(both, ANYWHERE)
    for curves, up in (((D, E), True), ((low, low_too), False)):
        m, infinite = grid.masses(curves[1], h, up=up)
        assert m.sum() + infinite == pytest.approx(1.0, abs=1e-9) and (m >= 0.0).all()
        made = grid.interpolated(grid.composed(curves[0], h, m, infinite, up=up), *grid.cells(h, ANYWHERE))
        assert (made >= exact - 1e-13).all() if up else (made <= exact + 1e-13).all()


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 0.05]))
def test_kernel_bounds_every_family_of_outputs(seed, h):
    """Outputs of n values with a known profile, mixed by the rows of a matrix."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 5)), int(rng.integers(2, 6))
    rows = rng.dirichlet(np.full(n, 0.5), n)
    outputs = rng.dirichlet(np.ones(m), n)
    points = h * np.arange(math.ceil(12.0 / h))
    D = np.array([hockey_stick(outputs, math.exp(x)) for x in points])
    leakage = TransitionMatrix(rows).leakage_profile()
    _, theta = grid.contraction_bounds(leakage, points)
    carried = grid.arriving_profile(D, grid.passage(h, theta, up=True), up=True)
    for epsilon in ANYWHERE[::20]:
        assert (
            hockey_stick(rows @ outputs, math.exp(epsilon))
            <= grid.interpolated(carried, *grid.cells(h, np.array([epsilon])))[0] + 1e-13
        )


@pytest.mark.parametrize("up", [True, False])
def test_fourier_convolution_stays_a_bound(up):
    h, rng = 0.001, np.random.default_rng(1)
    D = np.maximum.accumulate(rng.uniform(0, 1e-3, 6000)[::-1] ** 3)[::-1] + 1e-9
    m = rng.uniform(0, 1, 4001) ** 8
    m /= m.sum()
    direct = grid.composed(D, h, m, 0.0, up=up)
    by_fft = grid.composed(D, h, m, 0.0, up=up, finest=1.0)
    assert not np.array_equal(direct, by_fft)
    np.testing.assert_allclose(direct, by_fft, atol=1e-10)
    other = grid.composed(D, h, m, 0.0, up=not up)
    assert (by_fft >= other).all() if up else (by_fft <= other).all()


@pytest.mark.parametrize("size", [40, 1_000, 4_000])
def test_the_error_of_a_fourier_convolution_is_that_of_its_block(size):
    """A single transform of the whole would have the error of the largest sums everywhere, and curves ten times as long."""
    falling = np.exp(-0.01 * np.arange(4_000, dtype=np.float64))
    m = np.random.default_rng(3).uniform(0.0, 1.0, size)
    sums, error = grid.convolved(falling, m)
    exact = np.convolve(falling, m, mode="valid")
    assert sums.shape == error.shape == exact.shape
    assert (np.abs(sums - exact) <= error + 1e-12 * exact).all()
    assert size > 1_000 or error[-1] <= 1e-6 * error[0]
    of_pairs = grid.convolved(np.broadcast_to(falling, (2, 3, 4_000)), np.broadcast_to(m, (2, 3, size)))
    assert all((one == both[1, 2]).all() for one, both in zip((sums, error), of_pairs, strict=True))


def test_a_rare_infinite_loss_stays_infinite_and_a_bound():
    rng = np.random.default_rng(4)
    rows, outputs = rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.full(4, 20.0), 3)
    # An output that no other state has
    outputs = np.append(outputs * (1.0 - np.array([[1e-6], [0.0], [0.0]])), [[1e-6], [0.0], [0.0]], axis=1)
    h, matrix = 0.01, TransitionMatrix(rows)
    points = h * np.arange(400)
    D = np.array([hockey_stick(outputs, math.exp(x)) for x in points])
    carried = SingleCurve(h, 0.5, up=True).through(matrix, D)
    assert D[-1] >= 1e-7 and carried.size <= D.size
    for epsilon in (*ANYWHERE[::20], 4.5, 8.0, 20.0):
        found = grid.interpolated(carried, *grid.cells(h, np.array([epsilon])))[0]
        assert hockey_stick(rows @ outputs, math.exp(epsilon)) <= found + 1e-13


@pytest.mark.long
@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-6, 0.3, 0.99])
def test_the_epsilon_of_a_composition_is_that_of_its_curve(up, delta):
    h, rng = 0.01, np.random.default_rng(2)
    D = grid.rounded(np.append(np.exp(-0.02 * np.arange(900) - 1.0), 1e-10), up=True)
    m = np.append(rng.uniform(0, 1, 500) ** 8 * np.exp(-h * np.arange(500, 0, -1)), rng.uniform(0, 1, 501) ** 8)
    m *= (1.0 - 1e-11) / m.sum()
    sums = [math.fsum(m * [_at(D, h, k - j) for j in range(-500, 501)]) + 1e-11 for k in range(1400)]
    known = next((k for k, one in enumerate(sums) if one <= delta), math.inf)
    found = grid.composed_epsilon(D, h, m, 1e-11, delta, up=up)
    if not math.isfinite(known) or known == 0:
        assert found == known
        return
    whole = grid.epsilon_at(grid.composed(D, h, m, 1e-11, up=up), h, delta, up=up)
    assert (known - 1) * h - 1e-12 <= found <= known * h + 1e-12 and found == pytest.approx(whole, rel=1e-11)


def _at(D, h, k):
    """A profile at any point of its grid, below 0 by symmetry."""
    return D[min(k, len(D) - 1)] if k >= 0 else 1.0 - math.exp(k * h) * (1.0 - D[min(-k, len(D) - 1)])


def test_truncating_a_tail_stays_a_bound():
    D = np.array([0.5, 0.1, 1e-9, 1e-12, 1e-13])
    assert grid.trimmed(D, 1e-8, up=True).tolist() == [0.5, 0.1, 1e-9]
    low = grid.trimmed(D, 1e-8, up=False)
    assert (low <= D[:3]).all() and low[-1] == pytest.approx(1e-13)


def test_the_epsilon_of_a_curve():
    h = 0.1
    D = np.array([0.3, 0.2, 0.1, 0.0])
    assert grid.epsilon_at(D, h, 0.5, up=True) == 0.0
    assert grid.epsilon_at(D + 0.01, h, 0.005, up=True) == math.inf
    found = grid.epsilon_at(D, h, 0.15, up=True)
    assert grid.interpolated(D, *grid.cells(h, np.array([found])))[0] == pytest.approx(0.15, rel=1e-12)
    assert grid.epsilon_at(D, h, 0.15, up=False) <= found
    assert grid.raised_by(np.array([0.3, 0.25]), D) == pytest.approx(0.25)


@pytest.mark.parametrize("h", [1e-2, 1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("mechanism", [DiscreteGaussianNoise(6.0), RandomizedResponse(2.0), GaussianNoise(3.0, 1.0)])
def test_masses_agree_with_the_profile_on_any_grid(mechanism, h):
    """Differences of rounded numbers are not probabilities; the masses computed from them must stay tight bounds."""
    points = h * np.arange(math.ceil(2.5 / h) + 1)
    low, high = mechanism.bounds(points)
    for D, up in ((high, True), (grid.lowered(low, h), False)):
        m, infinite = grid.masses(D, h, up=up)
        assert (m >= 0.0).all() and (m.sum() + infinite >= 1.0 - 1e-12 if up else m.sum() + infinite <= 1.0 + 1e-14)
        right = m[m.size // 2 + 1 :]
        for k in (0, D.size // 50, D.size // 3):
            said = infinite + float(right[k:] @ -np.expm1(-h * np.arange(1, right.size - k + 1)))
            assert said >= D[k] * (1 - 1e-15) if up else said <= D[k] * (1 + 1e-15)
            assert said == pytest.approx(D[k], rel=1e-6, abs=1e-9)


def test_a_finer_grid_has_a_smaller_gap():
    walk = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    for mechanism in (DiscreteGaussianNoise(6.0), DiscreteLaplaceNoise(6.0), GaussianNoise(6.0, 1.0)):
        gaps = []
        for h in (1e-2, 1e-3, 3e-4):
            series = temporal_leakage(Adversary(walk), [mechanism] * 6, accounting=ApproximateDP(1e-6, grid=h))
            gaps.append(series.evidence.gaps("backward")[-1])
        assert gaps == sorted(gaps, reverse=True) and gaps[-1] < 2e-3
