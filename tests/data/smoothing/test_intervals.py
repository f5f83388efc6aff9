"""Intervals of a cut-off normal number against its density on a grid, and counts that add up against a solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from temporaldp.data.smoothing.intervals import intervals, with_total


@pytest.mark.parametrize(("mean", "deviation"), [(50.0, 4.0), (1.0, 3.0), (-2.0, 5.0), (98.0, 6.0), (50.0, 400.0)])
def test_shortest_interval_and_mean_of_a_truncated_normal(mean, deviation):
    grid = np.linspace(0.0, 100.0, 400_001)
    density = np.exp(-0.5 * ((grid - mean) / deviation) ** 2)
    density /= density.sum()
    found, lower, upper = (float(one) for one in intervals(np.array(mean), np.array(deviation**2), 100.0))
    assert found == pytest.approx(grid @ density, abs=0.01)
    inside = (grid >= lower) & (grid <= upper)
    assert density[inside].sum() == pytest.approx(0.95, abs=1e-3)
    least = np.sort(density)[::-1]  # the shortest set with that mass
    assert upper - lower == pytest.approx((np.searchsorted(np.cumsum(least), 0.95) + 1) * 100.0 / 400_000, abs=0.02)


def test_counts_with_a_total_are_the_nearest_ones():
    rng = np.random.default_rng(2)
    for _ in range(20):
        counts, variance = rng.normal(5.0, 6.0, 4), rng.uniform(0.5, 9.0, 4)
        found = with_total(counts, variance, 12.0)
        solved = minimize(
            lambda x, c=counts, v=variance: float(np.sum((x - c) ** 2 / v)),
            np.full(4, 3.0),
            bounds=[(0.0, None)] * 4,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 12.0},
            options={"ftol": 1e-12},
        )
        np.testing.assert_allclose(found, solved.x, atol=1e-4)
        assert found.min() >= 0.0
        assert found.sum() == pytest.approx(12.0)
