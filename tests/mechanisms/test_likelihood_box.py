"""What a box of likelihoods is and is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

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
def test_what_is_no_box_is_refused_with_what_came_and_what_to_try(low, high, words):
    with pytest.raises(InputError) as refused:
        LikelihoodBox(low, high)
    assert all(word in str(refused.value) for word in words), str(refused.value)


def test_a_box_cannot_go_stale_and_is_what_it_holds():
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
