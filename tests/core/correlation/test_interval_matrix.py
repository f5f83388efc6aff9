"""Sets of transition matrices: what they hold, and what is refused."""

import numpy as np
import pytest

from interval_oracles import random_bounds, tight_bounds
from making import contains, sample
from temporaldp import InputError, IntervalMatrix, TransitionMatrix, sticky
from temporaldp.base.errors import MatrixError, StateError
from temporaldp.core.correlation import Provenance


def test_contains_members_only():
    rng = np.random.default_rng(0)
    for _ in range(50):
        interval = IntervalMatrix(*random_bounds(rng, 4))
        for member in (interval.central(), sample(interval, rng)):
            assert contains(interval, member)
    tight = IntervalMatrix([[0.7, 0.1], [0.0, 0.8]], [[0.9, 0.3], [0.2, 1.0]])
    assert not contains(tight, TransitionMatrix([[0.95, 0.05], [0.1, 0.9]]))


def test_vertex_fills_entries_in_the_given_order():
    interval = IntervalMatrix(np.full((3, 3), 0.1), np.full((3, 3), 0.6))
    corner = interval.corner([[0, 1, 2], [2, 1, 0], [1, 0, 2]]).dense()
    np.testing.assert_allclose(corner, [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6], [0.3, 0.6, 0.1]])


def test_bounds_are_tightened_to_attainable_values():
    rng = np.random.default_rng(1)
    low, high = random_bounds(rng, 4, width=0.6)
    interval = IntervalMatrix(low, high)
    tight_low, tight_high = tight_bounds(low, high)
    corners = [interval.corner(rng.permuted(np.tile(np.arange(4), (4, 1)), axis=1)).dense() for _ in range(500)]
    np.testing.assert_allclose(np.min(corners, axis=0), tight_low, atol=1e-12)
    np.testing.assert_allclose(np.max(corners, axis=0), tight_high, atol=1e-12)


def test_sticky_contains_every_matrix_with_the_stated_diagonal():
    interval = sticky(stays=(0.7, 0.95), states=["a", "b", "c"])
    assert contains(interval, TransitionMatrix([[0.7, 0.3, 0.0], [0.0, 0.95, 0.05], [0.1, 0.1, 0.8]], ["a", "b", "c"]))
    assert not contains(
        interval, TransitionMatrix([[0.69, 0.31, 0.0], [0.0, 0.95, 0.05], [0.1, 0.1, 0.8]], ["a", "b", "c"])
    )
    assert interval.provenance.sentence.startswith("Stated: the state stays the same with probability 0.7 to 0.95")


def test_reordering_states_gives_the_same_set():
    interval = IntervalMatrix([[0.7, 0.1], [0.0, 0.8]], [[0.9, 0.3], [0.2, 1.0]], states=["a", "b"])
    turned = interval.reordered(["b", "a"])
    assert turned.lower[0, 0] == 0.8
    assert turned.reordered(["a", "b"]) == interval
    assert interval.reordered(["a", "b"]) is interval
    with pytest.raises(StateError):
        interval.reordered(["a", "c"])


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([[0.7, 0.4], [0.0, 0.8]], [[0.9, 0.5], [0.2, 1.0]], "row '0' hold no distribution: expected lower"),
        ([[0.1, 0.1], [0.0, 0.1]], [[0.9, 0.3], [0.2, 0.7]], "row '1' hold no distribution: expected upper"),
        ([[0.7, 0.1], [0.3, 0.7]], [[0.9, 0.3], [0.2, 1.0]], "row '1', column '0' hold nothing"),
        ([[-0.1, 0.1], [0.0, 0.8]], [[0.9, 0.3], [0.2, 1.0]], "from 0 to 1"),
        ([[np.nan, 0.1], [0.0, 0.8]], [[0.9, 0.3], [0.2, 1.0]], "from 0 to 1"),
        ([[0.1, 0.1]], [[0.9, 0.9]], "square"),
        (np.zeros((3, 3)), np.ones((2, 2)), "one shape"),
    ],
)
def test_bounds_of_an_empty_set_are_refused(lower, upper, message):
    with pytest.raises(MatrixError, match=message):
        IntervalMatrix(lower, upper)


@pytest.mark.parametrize("stays", [(0.9, 0.7), (-0.1, 0.5), (0.5, 1.1), (0.5,), "ab", 0.5])
def test_invalid_ranges_are_refused(stays):
    with pytest.raises(InputError):
        sticky(3, stays=stays)


def test_provenance_states_the_cost_of_learning():
    with pytest.raises(InputError, match="epsilon"):
        Provenance("learnt", "Learnt.")
    with pytest.raises(InputError, match="epsilon"):
        Provenance("stated", "Stated.", (("one", 0.5),))
    with pytest.raises(InputError, match="expected a correlation"):
        Provenance("guessed", "Guessed.")
    with pytest.raises(InputError, match="n_states"):
        sticky(stays=(0.5, 0.6))
