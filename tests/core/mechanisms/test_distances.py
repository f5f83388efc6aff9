"""Metrics that are boxes of likelihoods, and others."""

from __future__ import annotations

import numpy as np
import pytest

from temporaldp.core.mechanisms.distances import box_of


def test_boxes_of_known_metrics():
    plain = box_of(0.7 * (1.0 - np.eye(4)))
    assert plain.high - plain.low == pytest.approx(np.full(4, 0.7))
    assert np.ptp(plain.low) == pytest.approx(0.0, abs=1e-15)
    two = box_of(np.array([[0.0, 3.0], [0.5, 0.0]]))
    assert (two.high[0] - two.low[1], two.high[1] - two.low[0]) == (3.0, 0.5)
    line = box_of(np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]))  # the middle says nothing by itself
    assert line.low[1] == line.high[1]


def test_boxes_of_metrics_are_found_and_no_others():
    rng = np.random.default_rng(6)
    for n in (2, 3, 4, 7):
        for _ in range(20):
            low, high = -rng.uniform(0.0, 1.0, n), rng.uniform(0.0, 1.0, n)
            reach = high[:, None] - low[None, :]
            np.fill_diagonal(reach, 0.0)
            box = box_of(reach)
            found = box.high[:, None] - box.low[None, :]
            np.fill_diagonal(found, 0.0)
            assert found == pytest.approx(reach, rel=1e-14)
            assert (found >= reach).all(), "what a release may say must lie inside"
            if n == 2:
                continue
            i, j = rng.choice(n, 2, replace=False)
            reach[i, j] *= 1.0 - 1e-3
            assert box_of(reach) is None or n == 3  # of three, some still are
    assert box_of(np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))) is None
