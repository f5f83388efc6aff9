"""Trajectories: what is refused, counts, some users of all, and the order in which names stand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from making import from_sequences
from temporaldp import Trajectories, read_traces
from temporaldp.base.errors import StateError, TraceError

WALKS = [["b", "a", "b"], ["a", None, "a"], ["c", "c", "b"], ["b", "b", "b"]]


@pytest.fixture(name="walks")
def _walks():
    steps = np.array([True, False])
    coded = from_sequences(WALKS, users=["Ann", "Bo", "Cy", "Di"])
    return Trajectories(
        coded.codes, states=coded.states, users=coded.users, times=["8", "9", "11"], consecutive=steps, step="1 hour"
    )


@pytest.mark.parametrize(
    ("chosen", "rows"),
    [
        (slice(1, 3), [1, 2]),
        (slice(None, None, -1), [3, 2, 1, 0]),
        ([3, 0], [3, 0]),
        (np.array([True, False, True, False]), [0, 2]),
        (2, [2]),
        (-1, [3]),
        (np.int32(0), [0]),
    ],
)
def test_subset_of_users_keeps_states_and_times(walks, chosen, rows):
    some = walks[chosen]
    expected = from_sequences([WALKS[k] for k in rows], states=["a", "b", "c"])
    assert (some.codes == expected.codes).all() and some.n_users == len(some) == len(rows)
    assert some.users == tuple(["Ann", "Bo", "Cy", "Di"][k] for k in rows)
    assert (some.states, some.times, some.step) == (("a", "b", "c"), ("8", "9", "11"), "1 hour")
    assert some.consecutive.tolist() == [True, False]
    assert (some.histogram() == expected.histogram()).all()


def test_subsets_add_up_and_iteration_is_by_user(walks):
    assert (walks[:2].histogram() + walks[2:].histogram() == walks.histogram()).all()
    assert [one.users for one in walks] == [("Ann",), ("Bo",), ("Cy",), ("Di",)]
    assert (np.asarray(walks) == walks.codes).all()


@pytest.mark.parametrize(
    ("chosen", "error", "message"),
    [
        (4, IndexError, "among 4 users: index 4 is out of bounds"),
        ("Ann", IndexError, "among 4 users: only integers, slices"),
        (slice(2, 2), TraceError, "at least one of 4 users"),
        ([[0, 1]], TraceError, "at least one of 4 users"),
        ([1, 1], TraceError, "user names must be distinct"),
    ],
)
def test_invalid_selection_of_users_is_refused(walks, chosen, error, message):
    with pytest.raises(error, match=message):
        walks[chosen]


def test_numbers_are_sorted_by_size_and_other_names_alphabetically():
    words = ["10", "9", "-1", "2", "2.5", "b10", "b9", "1", "A"]
    walks = read_traces(pa.table({"user": range(9), "time": [0] * 9, "state": words}))
    assert walks.states == ("-1", "1", "2", "2.5", "9", "10", "A", "b10", "b9")


def test_histogram_counts_all_present_users():
    data = from_sequences([["a", "b", None], ["a"]], states=["b", "a", "c"])
    assert data.histogram().tolist() == [[0, 2, 0], [1, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("states", "error", "message"),
    [
        (["a"], TraceError, "at least 2 different states, got only 'a'"),
        (["a", "b", "a"], StateError, "given twice"),
    ],
)
def test_invalid_states_are_refused(states, error, message):
    with pytest.raises(error, match=message):
        Trajectories([[0, 0]], states=states)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"codes": np.zeros((0, 3), dtype=int)}, "at least one user"),
        ({"codes": np.array([[0, 2]])}, "codes from -1 to 1"),
        ({"codes": np.array([[0.0, 1.0]])}, "integer codes"),
        ({"codes": np.array([[0, 1]]), "times": ["t"]}, "2 times"),
        ({"codes": np.array([[0, 1], [1, 0]]), "users": ["x", "x"]}, "distinct"),
    ],
)
def test_invalid_tables_are_refused(arguments, message):
    with pytest.raises(TraceError, match=message):
        Trajectories(**arguments, states=["a", "b"])
