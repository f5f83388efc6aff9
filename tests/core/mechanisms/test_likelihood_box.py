"""What a box of likelihoods is and is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from making import laplace_counts
from temporaldp import InputError, LikelihoodBox

BAD_BOXES = [
    (["a", 0.0], [0.0, 1.0], ("low", "numbers, one per state", "['a', 0.0]")),
    ([0.0, 0.0], None, ("high", "numbers", "nan")),
    (0.0, [1.0, 1.0], ("low", "shape (n,)", "0.")),
    ([0.0], [1.0], ("low", "at least 2", "[0.]")),
    ([[0.0, 0.0]], [[1.0, 1.0]], ("low", "shape (n,)", "[[0. 0.]]")),
    ([0.0, 0.0], [1.0, math.nan], ("high", "finite", "nan")),
    ([0.0, -math.inf], [1.0, 1.0], ("low", "finite", "-inf")),
    ([0.0, 0.0, 0.0], [1.0, 1.0], ("one length", "3 and 2")),
    ([0.0, 2.0], [1.0, 3.0], ("low[1] = 2", "high[0] = 1", "common point", "shift low and high")),
]


@pytest.mark.parametrize(("low", "high", "words"), BAD_BOXES, ids=[words[-1] for *_, words in BAD_BOXES])
def test_invalid_boxes_are_refused_with_the_value_and_advice(low, high, words):
    with pytest.raises(InputError) as refused:
        LikelihoodBox(low, high)
    assert all(word in str(refused.value) for word in words), str(refused.value)


def test_boxes_are_immutable_and_compare_by_value():
    low = np.array([0.0, -1.0])
    box = LikelihoodBox(low, [1.0, 1.0])
    low[0] = 9.0
    assert box.low.tolist() == [0.0, -1.0]
    with pytest.raises(ValueError, match="read-only"):
        box.high[0] = 3.0
    assert box == LikelihoodBox([0.0, -1.0], [1.0, 1.0])
    assert hash(box) == hash(LikelihoodBox([0.0, -1.0], [1.0, 1.0]))
    assert box != LikelihoodBox([0.0, -0.5], [1.0, 1.0])
    assert box != "a box"
    assert box.epsilon == 2.0
    assert repr(box) == "LikelihoodBox(2 values, epsilon 2)"


def said_of_a_count(scale):
    """What each output of a count with discrete Laplace noise says of one person who is counted or not, by the noise's law."""
    outputs = np.arange(-30, 31)
    return stats.dlaplace.logpmf(outputs - 1, 1.0 / scale) - stats.dlaplace.logpmf(outputs, 1.0 / scale)


def test_box_of_a_histogram_follows_from_the_noise_of_each_count():
    box = laplace_counts([0.7, 3.0, math.inf])
    for k, scale in enumerate([0.7, 3.0]):
        said = said_of_a_count(scale)
        assert (box.low[k], box.high[k]) == pytest.approx((said.min(), said.max()))
    assert (box.low[2], box.high[2]) == (0.0, 0.0)


def test_box_of_add_or_remove_excludes_the_absent_state():
    said = said_of_a_count(1.0 / 0.4)
    box = LikelihoodBox.add_or_remove(0.4, 3, absent=1)
    for k in (0, 2):
        assert (box.low[k], box.high[k]) == pytest.approx((said.min(), said.max()))
    assert (box.low[1], box.high[1]) == (0.0, 0.0)
