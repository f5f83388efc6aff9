"""Bounds of a mean hold as often as they say: by all outcomes of a few coins, whose probabilities are known."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from temporaldp.verification.values import mean_at_least, mean_at_most

N = 400


@pytest.mark.parametrize("chance", [0.001, 0.02, 0.3])
@pytest.mark.parametrize("stake", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("failure", [0.3, 0.01])
def test_each_side_fails_no_more_often_than_stated(chance, stake, failure):
    ones = np.arange(N + 1)
    likely, log = stats.binom.pmf(ones, N, chance), math.log(1.0 / failure)
    high = mean_at_most(ones * math.log1p(-stake), N, stake, log)
    low = mean_at_least(ones * math.log1p(stake), N, stake, log)
    assert likely[high < chance].sum() <= failure
    assert likely[low > chance].sum() <= failure
    assert (low <= high).all() and (low >= 0.0).all()


def test_bounds_are_tight_for_a_suitable_stake():
    log = math.log(1e9)
    assert mean_at_most(0.0, 10**6, 1.0, log) == pytest.approx(log / 1e6, rel=1e-4)  # nothing seen in a million draws
    # Seldom and large, or always the same and small: from below nothing needs to be known of how large a value may be.
    seldom = mean_at_least(1_000 * math.log1p(0.2), 10**6, 0.2, log)
    always = mean_at_least(10**6 * math.log1p(1e-3 / 0.05), 10**6, 20.0, log)
    assert 0.7e-3 < seldom < 1e-3 and 0.98e-3 < always < 1e-3


def test_bounds_are_valid_under_rounding_of_the_sum():
    """Adding up ten million logarithms may lose 9e-10 of their sum; the bounds of the true sum are in 40 digits."""
    with mpmath.workdps(40):
        for logs, stake, log in ((-50.0, 0.5, 0.1), (-300.0, 0.9, 1e-3)):
            high = (1 - mpmath.exp((mpmath.mpf(logs) - log) / N)) / stake
            low = mpmath.expm1((mpmath.mpf(-logs) - log) / N) / stake
            for off in (1.0 - 9e-10, 1.0 + 9e-10):
                assert high <= mean_at_most(logs * off, N, stake, log) <= high * (1 + 1e-8)
                assert low * (1 - 1e-8) <= mean_at_least(-logs * off, N, stake, log) <= low


def test_zero_stake_of_a_constant_zero():
    assert mean_at_most(np.zeros(2), 10, np.array([0.0, 0.5]), 1.0).tolist() == pytest.approx(
        [0.0, 2 - 2 * math.exp(-0.1)]
    )
