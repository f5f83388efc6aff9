"""A long line loses none of its extremes when it is drawn by fewer points."""

from __future__ import annotations

import numpy as np
import pytest

from temporaldp.report.thinning import MOST_POINTS, drawn_points


@pytest.mark.parametrize("n", [1, 7, MOST_POINTS])
def test_a_short_line_is_drawn_by_all_of_its_points(n):
    assert drawn_points(np.arange(n) % 3).tolist() == list(range(n))


@pytest.mark.parametrize("n", [MOST_POINTS + 1, 10_007, 500_000])
def test_a_long_line_keeps_its_ends_and_every_peak(n):
    rng = np.random.default_rng(n)
    for step, height in zip(rng.integers(0, n, 20).tolist(), [-1.0, 1.0] * 10, strict=True):
        values = np.zeros(n)
        values[step] = height
        kept = drawn_points(values)
        assert step in kept and (kept[0], kept[-1]) == (0, n - 1)
        assert (np.diff(kept) > 0).all() and n / len(kept) >= n / (MOST_POINTS + 2)
        assert np.diff(kept).max() <= 4 * -(-n // MOST_POINTS)  # no stretch is left out
