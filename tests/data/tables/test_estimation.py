"""Matrices learnt from trajectories."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from making import from_sequences
from temporaldp import InputError, Trajectories, estimate_adversaries
from temporaldp.base.errors import EstimationError
from temporaldp.data.tables import estimate_transition_matrix

sequences = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=12), min_size=1, max_size=6
).filter(lambda rows: len({s for row in rows for s in row} - {None}) >= 2)


@given(sequences, st.sampled_from(["forward", "backward"]), st.sampled_from([0.5, 1.0]))
def test_estimates_count_transitions_and_skip_gaps(rows, direction, prior):
    data = from_sequences(rows, states=["a", "b", "c"])
    counts = Counter()
    for row in rows:
        for now, after in pairwise(row):
            if now is not None and after is not None:
                counts[(now, after) if direction == "forward" else (after, now)] += 1
    if not counts:  # a prior alone is no knowledge of anything
        with pytest.raises(EstimationError, match=r"single time step|two consecutive times"):
            estimate_transition_matrix(data, direction=direction, prior=prior)
        return
    matrix = estimate_transition_matrix(data, direction=direction, prior=prior).dense()
    for i, one in enumerate("abc"):
        total = sum(counts[one, other] + prior for other in "abc")
        for j, other in enumerate("abc"):
            assert matrix[i, j] == pytest.approx((counts[one, other] + prior) / total, rel=1e-14)


def test_maximum_likelihood_and_posterior_mean():
    data = from_sequences([["a", "a", "b", "a"], ["b", "b"]])
    assert estimate_transition_matrix(data, direction="forward").dense().tolist() == [[0.5, 0.5], [0.5, 0.5]]
    smooth = estimate_transition_matrix(data, direction="backward", prior=2.0).dense()
    assert smooth == pytest.approx(np.array([[3 / 6, 3 / 6], [3 / 6, 3 / 6]]))


def test_state_without_outgoing_transitions_is_named():
    data = from_sequences([["a", "b", "a", "c"]])
    with pytest.raises(EstimationError, match=r"no next state for 'c', so there is no forward row"):
        estimate_transition_matrix(data, direction="forward")
    estimate_transition_matrix(data, direction="forward", prior=0.5)
    with pytest.raises(EstimationError, match=r"of user '1' show no previous state for 'b', 'c'"):
        list(estimate_adversaries(from_sequences([list("abcabca"), list("aaa")]), per_user=True))


def test_one_matrix_per_person():
    data = from_sequences([list("aabb" * 3 + "a"), list("abab" * 3)], users=["ann", "bob"])
    ann, bob = estimate_adversaries(data, per_user=True)
    assert (ann.name, bob.name) == ("ann", "bob")
    assert bob.forward.dense().tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert ann.forward.dense()[0] == pytest.approx([0.5, 0.5], abs=0.1)
    assert estimate_transition_matrix(data, direction="forward", user="bob") == bob.forward
    (everybody,) = estimate_adversaries(data, directions=("backward",))
    assert everybody.name is None
    assert not everybody.forward


def test_steps_that_are_not_consecutive_are_not_counted():
    codes = np.array([[0, 1, 0, 1]], dtype=np.int32)
    data = Trajectories(codes, states=["a", "b"], consecutive=np.array([True, False, True]))
    counted = estimate_transition_matrix(data, direction="forward", prior=1.0).dense()
    assert counted == pytest.approx(np.array([[1 / 4, 3 / 4], [1 / 2, 1 / 2]]))


def test_invalid_arguments_are_refused():
    data = from_sequences([list("abab")])
    with pytest.raises(InputError, match="'backward' or 'forward'"):
        estimate_transition_matrix(data, direction="sideways")
    with pytest.raises(InputError, match=r"prior .* finite number >= 0"):
        estimate_transition_matrix(data, direction="forward", prior=-1.0)
    with pytest.raises(InputError, match="unknown user 'eve'"):
        estimate_transition_matrix(data, direction="forward", user="eve")


@pytest.mark.parametrize("directions", ["forward", "both", (), ("f",)])
def test_directions_that_are_no_tuple_of_directions_are_refused(directions):
    walks = from_sequences([["a", "b", "b", "a"], ["b", "a", "a", "b"]])
    with pytest.raises(InputError, match=r"expected directions to be a tuple .*, got .*directions=\('forward',\)"):
        next(estimate_adversaries(walks, directions=directions))
