"""The profile of rho-zCDP: never below a mechanism that has the guarantee, convex, and near what single orders give."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from temporaldp import InputError
from temporaldp.core.mechanisms import ConcentratedGuarantee

RHOS = (1e-6, 0.015, 0.5, 2.63, 100.0)


def gaussian(rho, epsilon):
    """Hockey-stick divergence of normal distributions with this rho, by SciPy's own functions."""
    mu = math.sqrt(2.0 * rho)
    return norm.sf(epsilon / mu - mu / 2.0) - math.exp(epsilon) * norm.sf(epsilon / mu + mu / 2.0)


def discrete_gaussian(rho, epsilon):
    """Hockey-stick divergence of discrete Gaussian noise (Canonne, Kamath, Steinke: rho = 1 / (2 sigma^2)), by summing."""
    variance = 1.0 / (2.0 * rho)
    k = np.arange(-400, 401)
    p = np.exp(-(k**2) / (2.0 * variance))
    p /= p.sum()
    return np.maximum(p[1:] - math.exp(epsilon) * p[:-1], 0.0).sum()


@pytest.mark.parametrize("rho", RHOS)
def test_bounds_enclose_gaussian_noise(rho):
    losses = np.linspace(0.0, rho + 8.0 * math.sqrt(2.0 * rho), 60)
    low, up = ConcentratedGuarantee(rho).bounds(losses)
    exact = np.array([gaussian(rho, epsilon) for epsilon in losses])
    assert (up >= exact * (1.0 - 1e-9) - 1e-15).all()
    assert (low <= exact * (1.0 + 1e-9) + 1e-12).all()
    assert (np.diff(up) <= 0.0).all()


@pytest.mark.parametrize("rho", [0.015, 0.5, 2.0])
def test_bound_covers_other_mechanisms_with_the_guarantee(rho):
    losses = np.linspace(0.0, rho + 5.0 * math.sqrt(2.0 * rho), 40)
    _, up = ConcentratedGuarantee(rho).bounds(losses)
    assert (up >= [discrete_gaussian(rho, epsilon) * (1.0 - 1e-12) for epsilon in losses]).all()
    pure = math.sqrt(2.0 * rho)  # epsilon-DP is epsilon^2 / 2 zero-concentrated
    truth = 1.0 / (1.0 + math.exp(-pure))
    responses = [max(truth - math.exp(epsilon) * (1.0 - truth), 0.0) for epsilon in losses]
    assert (up >= responses).all()


@pytest.mark.parametrize("rho", RHOS)
def test_bound_is_close_to_the_best_renyi_order(rho):
    for share in (1.0, 3.0, 6.0):
        epsilon = rho + share * math.sqrt(2.0 * rho)

        def logarithm(log_more, epsilon=epsilon):
            order = 1.0 + math.exp(log_more)
            return (order - 1.0) * (order * rho - epsilon + math.log1p(-1.0 / order)) - math.log(order)

        best = math.exp(minimize_scalar(logarithm, bounds=(-8.0, 12.0), method="bounded").fun)
        found = ConcentratedGuarantee(rho).bounds(np.array([epsilon]))[1][0]
        assert found <= 1.02 * best
        if share > 1.0:  # near 0 the hull lies below what single orders give
            assert found >= 0.97 * best


def test_rho_is_stored_as_a_float():
    assert repr(ConcentratedGuarantee(Decimal("0.5")).rho) == "0.5"


@pytest.mark.parametrize("rho", [0.0, -1.0, math.inf, math.nan, 1e9, "much", True, None])
def test_invalid_rho_is_refused(rho):
    with pytest.raises(InputError, match="expected rho to be a finite number"):
        ConcentratedGuarantee(rho)
