"""Draws of a release: the likelihoods that they leave are those of the mechanism, and the curve that they average to too."""

from __future__ import annotations

import math

import numpy as np
import pytest

from temporaldp import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    InputError,
    LaplaceNoise,
    OutputTable,
    PrivacyGuarantee,
    RandomizedResponse,
)
from temporaldp.errors import StateError
from temporaldp.mechanisms.simulation import drawn_likelihoods, require_simulated

COUNT = 200_000
MADE = [
    (GaussianNoise(2.0, sensitivity=math.sqrt(2.0)), 3),
    (LaplaceNoise(1.5, sensitivity=1.0), 2),
    (LaplaceNoise(2.0, sensitivity=1.0, coordinates=2), 3),
    (DiscreteLaplaceNoise(1.5), 3),
    (DiscreteGaussianNoise(1.2), 4),
    (RandomizedResponse(0.7, 3), 3),
    (OutputTable([[0.2, 0.5, 0.3], [0.3, 0.5, 0.2]]), 2),
]


def divergences(mechanism, n, epsilon, seed=1):
    """The divergence of value 0 against each other one, averaged over draws; and its standard error."""
    logs = drawn_likelihoods((mechanism,), np.zeros(COUNT, np.int64), n, np.random.default_rng(seed))
    lost = np.maximum(-np.expm1(epsilon - (logs[:, :1] - logs[:, 1:])), 0.0)
    return lost.mean(axis=0), lost.std(axis=0) / math.sqrt(COUNT)


@pytest.mark.parametrize(("mechanism", "n"), MADE, ids=lambda one: type(one).__name__)
def test_simulated_losses_follow_the_curve_of_the_mechanism(mechanism, n):
    for epsilon in (0.0, 0.3):
        mean, error = divergences(mechanism, n, epsilon)
        low, up = (float(bound[0]) for bound in one_release(mechanism, epsilon))
        assert (mean <= up + 5.0 * error + 1e-6).all() and (mean.max() >= low - 5.0 * error - 1e-3).all()


def one_release(mechanism, epsilon):
    """Delta of the whole release: two coordinates are put together by a sum over the outputs, on a fine grid."""
    from temporaldp.accounting.curve.arrivals import SingleCurve
    from temporaldp.accounting.curve.grid import interpolated

    at = np.array([epsilon])
    return tuple(interpolated(SingleCurve(2e-3, 1e-9, up=up).own((mechanism,)), 2e-3, at) for up in (False, True))


def test_scale_that_is_wrong_by_half_is_rejected():
    true, wrong = DiscreteGaussianNoise(2.0), DiscreteGaussianNoise(3.0)
    mean, error = divergences(wrong, 3, 0.1)
    assert abs(mean.max() - float(one_release(true, 0.1)[1][0])) > 20.0 * error.max()


def test_unsupported_mechanisms_are_refused():
    for mechanism in (
        PrivacyGuarantee(1.0),
        LaplaceNoise(1.0, sensitivity=1.0),
        DiscreteLaplaceNoise(1.0, coordinates=3),
    ):
        with pytest.raises(InputError, match="cannot be simulated"):
            require_simulated((mechanism,), 3)
    with pytest.raises(StateError, match="about 2 states"):
        require_simulated((OutputTable(np.eye(2)),), 3)
    with pytest.raises(InputError, match="one mechanism per step"):
        require_simulated((MADE[0][0], MADE[0][0]), 3)
    require_simulated((), 3)
