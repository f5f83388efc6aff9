"""Generated correlations: the strongest, smoothed ones, random ones."""

from __future__ import annotations

import numpy as np
import pytest

from temporaldp import InputError, TransitionMatrix
from temporaldp.base.errors import MatrixError
from temporaldp.core.correlation import random_correlation, smoothed_correlation, strongest_correlation

CHAIN = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], ["a", "b"])


def test_the_strongest_correlation_is_a_permutation():
    matrix = strongest_correlation(6, rng=5).dense()
    assert sorted(matrix.argmax(axis=1).tolist()) == list(range(6))
    assert matrix.sum() == 6.0
    assert (strongest_correlation(3).dense() == np.eye(3)).all()


def test_smoothing_adds_s_to_every_entry():
    smoothed = smoothed_correlation(strongest_correlation(50), s=0.005).dense()
    assert smoothed == pytest.approx((np.eye(50) + 0.005) / (1 + 50 * 0.005), rel=1e-15)


@pytest.mark.parametrize("s", [0.0, -1.0, float("nan"), float("inf")])
def test_smoothing_needs_a_positive_parameter(s):
    with pytest.raises(InputError, match="s to be a finite number > 0"):
        smoothed_correlation(CHAIN, s=s)


def test_generators_need_two_states():
    with pytest.raises(MatrixError, match="the number of states to be a whole number of at least 2"):
        strongest_correlation(1)
    with pytest.raises(MatrixError, match="the number of states to be a whole number of at least 2"):
        random_correlation(1, rng=0)
