"""The profile of a set of matrices against sets, rows and a linear program."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from interval_oracles import extreme_rows, random_bounds
from temporaldp import TransitionMatrix
from temporaldp.core.kernels.interval import interval_profile

LEVELS = np.array([1e-6, 0.01, 0.3, 1.0, 4.0, 30.0])


def names(n):
    return [str(k) for k in range(n)]


def loss_by_rows(low, high, alpha):
    """The largest loss over all extreme rows and all sets."""
    n, grown, best = len(low), math.expm1(alpha), 0.0
    sets = np.array(list(itertools.product((0, 1), repeat=n)), dtype=float)
    reached = [np.array(extreme_rows(*row)) @ sets.T for row in zip(low, high, strict=True)]
    for i, j in itertools.permutations(range(n), 2):
        ratio = (1.0 + reached[i].max(axis=0) * grown) / (1.0 + reached[j].min(axis=0) * grown)
        best = max(best, float(ratio.max()))
    return math.log(best)


@pytest.mark.parametrize("seed", range(20))
def test_profile_is_the_largest_loss_over_all_extreme_rows(seed):
    rng = np.random.default_rng(seed)
    low, high = random_bounds(rng, int(rng.integers(2, 6)), zeros=seed % 2 == 0)
    profile = interval_profile(low, high, names(len(low)))
    assert profile.tolerance == 0.0
    for alpha in LEVELS:
        wanted = loss_by_rows(low, high, alpha)
        assert wanted * (1.0 - 1e-9) - 1e-14 <= profile.loss(alpha) <= wanted * (1.0 + 1e-9) + 1e-11


@pytest.mark.parametrize("seed", range(20))
def test_lagrangian_bound_covers_the_enumeration_within_its_gap(seed):
    rng = np.random.default_rng(seed)
    low, high = random_bounds(rng, int(rng.integers(3, 11)), zeros=seed % 2 == 0)
    exact = interval_profile(low, high, names(len(low)), enumerated=True)
    bound = interval_profile(low, high, names(len(low)), enumerated=False)
    assert (bound.loss(LEVELS) >= exact.loss(LEVELS) * (1.0 - 1e-12)).all()
    assert (bound.loss(LEVELS) <= exact.loss(LEVELS) * (1.0 + bound.tolerance) + 1e-12).all()
    assert (bound.loss(LEVELS[:4]) <= exact.loss(LEVELS[:4]) * 1.05).all()
    slopes = 1.0 + np.geomspace(1e-3, 1e4, 300)  # corners of either polygon lie between the levels
    above, attained = bound.contraction(slopes), exact.contraction(slopes)
    stated = (attained > 0.0) | np.isfinite(bound.tolerance)  # inf where theta vanishes and its bound does not
    assert (above[stated] <= attained[stated] * (1.0 + bound.tolerance) * (1.0 + 1e-9) + 1e-10).all()


def test_intervals_of_width_zero_give_the_profile_of_the_matrix():
    P = np.random.default_rng(3).dirichlet(np.ones(20), 20)
    plain = TransitionMatrix(P).leakage_profile()
    bound = interval_profile(P, P, names(20))
    assert (bound.loss(LEVELS) >= plain.loss(LEVELS) * (1.0 - 1e-12)).all()
    assert (bound.loss(LEVELS) <= plain.loss(LEVELS) * 1.005 + 1e-12).all()


@pytest.mark.parametrize("seed", range(5))
def test_hockey_stick_divergence_of_large_sets_covers_random_rows(seed):
    rng = np.random.default_rng(seed)
    n = 25
    low, high = random_bounds(rng, n, width=0.05)
    profile = interval_profile(low, high, names(n))
    for _ in range(20):
        i, j = rng.choice(n, 2, replace=False)
        inside = (rng.random(n) < 0.5).astype(float)
        q, d = (
            linprog(
                sign * inside,
                A_eq=np.ones((1, n)),
                b_eq=[1.0],
                bounds=np.stack((low[row], high[row]), axis=1),
                method="highs",
            ).x
            for row, sign in ((i, -1.0), (j, 1.0))
        )
        for alpha in LEVELS:
            grown = math.expm1(alpha)
            attained = math.log((1.0 + (q @ inside) * grown) / (1.0 + (d @ inside) * grown))
            assert profile.loss(alpha) >= attained - 1e-12


def test_narrower_intervals_are_rejected():
    rng = np.random.default_rng(5)
    low, high = random_bounds(rng, 4, width=0.2)
    narrower = interval_profile(low, np.maximum(high - 0.05, low + 0.5 * (1 - low.sum(1, keepdims=True)) / 4), names(4))
    assert narrower.loss(1.0) < loss_by_rows(low, high, 1.0)
