"""Names of states: which are refused, how two lists are compared, and in which order they stand."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporaldp import read_traces
from temporaldp.base.errors import StateError
from temporaldp.base.names import in_order, listed, positions, require_same_states, state_names

NAMES = st.lists(st.one_of(st.integers(-99, 99).map(str), st.sampled_from(["home", "work", "1a", "x 2", "1.5"])))


@given(NAMES.map(lambda names: list(dict.fromkeys(names))), st.randoms())
def test_order_of_states_does_not_depend_on_the_input(names, random):
    ordered = in_order(names)
    shuffled = names[:]
    random.shuffle(shuffled)
    assert in_order(shuffled) == ordered and sorted(ordered) == sorted(names)
    numbers = [name for name in ordered if name not in {"home", "work", "1a", "x 2"}]
    assert ordered[: len(numbers)] == numbers == sorted(numbers, key=float)
    assert ordered[len(numbers) :] == sorted(ordered[len(numbers) :])


def test_numbers_too_long_for_a_float_are_compared_digit_by_digit():
    long = "1" * 400
    assert in_order([long + "1", long, "9"]) == ["9", long, long + "1"]
    assert in_order(["01", "1", "+1", "nan", "inf"]) == ["+1", "01", "1", "inf", "nan"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("ab", "got the single string 'ab'"),
        (["a", None], "name of state 1 is missing"),
        (["a", float("nan")], "name of state 1 is missing"),
        (["a", " "], "name of state 1 is missing"),
        (["a", "b", "a"], "'a' is given twice \\(again at position 2\\)"),
        *(
            (["a", f"b{one}c"], "line breaks or control characters")
            for one in "\u034f\u115f\u180e\u2060\u206f\u3164\U000e0041"
            "\n\r\t\0\x7f\x85\x9b\u2028\u2029\u202e\u2066\ud800\u00ad\u061c\u200b\u200f\ufeff"
        ),
    ],
)
def test_invalid_names_are_refused(names, message):
    with pytest.raises(StateError, match=message):
        state_names(names)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Zürich", "Zu\u0308rich"),  # composed and decomposed
        ("New York", "New\u00a0York"),
        ("New York", "New  York"),
        ("home", " home"),
        ("home", "ho\u200dme"),
        ("home", "home\ufe0f"),
    ],
)
def test_names_that_look_alike_are_refused_wherever_they_come_from(one, other):
    for names in ([one, "work", other], [other, one]):
        with pytest.raises(StateError, match="look the same, and differ only in blanks") as refusal:
            state_names(names)
        assert str(refusal.value).isascii()  # which shows the difference
    frame = pd.DataFrame({"user": [1, 1, 1, 1], "time": [0, 1, 2, 3], "state": [one, "work", other, one]})
    if other.strip() == one:  # blanks around names are no part of them
        assert read_traces(frame).n_states == 2
        return
    for states in (None, [one, "work"]):
        with pytest.raises(StateError, match="look the same, and differ only in blanks"):
            read_traces(frame, states=states)


def test_names_with_joiners_are_names():
    assert state_names(["\u0645\u06cc\u200c\u0631\u0648\u0645", "👩\u200d🚀", "m²", "m2", "a b", "ab"])[3] == "m2"


def test_lists_of_states_are_compared_by_name_and_order():
    require_same_states(("a", "b"), ["a", "b"], what="the plan")
    for got, message in (
        (("b", "a"), "states of the plan are in another order"),
        (("a", "c"), "lacks 'b' and has 'c', which is not expected"),
    ):
        with pytest.raises(StateError, match=message):
            require_same_states(("a", "b"), got, what="the plan")
    assert positions(["b", "c", "a"], ["a", "b", "c"], what="the rows") == [2, 0, 1]


def test_long_lists_are_truncated():
    assert listed(["a"]) == "'a'"
    assert listed(list("abcd"), 2) == "'a', 'b' and 2 more"
