"""The inverse of a loss."""

from __future__ import annotations

import math
import sys

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from matrices import matrices
from temporaldp import (
    Adversary,
    TransitionMatrix,
)
from temporaldp.core.accounting.paper.arrivals import TransitionLoss

MATRIX = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])


ADVERSARY = Adversary(MATRIX, MATRIX)


CERTAIN = TransitionMatrix(np.eye(2))


@given(matrices(), st.one_of(st.floats(1e-12, 1e-3), st.floats(0.001, 100.0), st.floats(100.0, 1e4)))
@example(CERTAIN, 3.0)
@example(TransitionMatrix([[1.0, 0.0], [1.0 - 3.7e-11, 3.7e-11]]), 697.5)  # here the formula promises too much
def test_the_inverse_of_a_loss_is_its_largest_safe_argument(matrix, level):
    loss = TransitionLoss(matrix.leakage_profile())
    inverse = loss.inverse(level)
    if inverse == math.inf:
        assert loss(1e5) <= level * (1 + 1e-14) or matrix.leakage_profile().vertices[0, 0] > 0.0
        assert loss(sys.float_info.max) <= level if loss.d.size and loss.d[0] > 0 else True
        return
    b = inverse
    for _ in range(3):
        assert loss(b) <= level
        b = math.nextafter(b, math.inf)
    # Nearly the largest: a little more passes more than the level, or as much as makes no difference.
    assert loss(inverse * (1 + 1e-9)) >= level * (1 - 1e-12)
