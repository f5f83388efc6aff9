"""Times in tables are read as they are written: to any digit, and never two of them as one."""

from __future__ import annotations

import pandas as pd
import pytest

from temporaldp import read_traces
from temporaldp.base.errors import TraceError
from temporaldp.data.files import read_counts
from temporaldp.data.tables.moments import distance, moment


def table(times, states=None):
    states = ["a", "b"] * len(times) if states is None else states
    return pd.DataFrame({"user": "u", "time": times, "state": states[: len(times)]})


@pytest.mark.parametrize("stamp", ["2024-01-01T08:00:0{},{}", "2024-01-01T08000{}.{}", "2024-01-01 08:00:0{}.{}"])
def test_a_fraction_of_a_second_counts_in_every_spelling(stamp):
    times = [stamp.format(*one) for one in ((0, "100"), (1, "000"), (1, "900"))]
    found = read_traces(table(times))
    assert found.step == "0.9 seconds" and found.consecutive.all()
    assert distance(times[0], times[1]) == pytest.approx(0.9)


def test_empty_table_of_events_is_refused(tmp_path):
    (tmp_path / "events.csv").write_text("user,time,state\n")
    with pytest.raises(TraceError, match="header but no rows"):
        read_traces(tmp_path / "events.csv", every="1h", fill="last")


@pytest.mark.parametrize("number", ["1e999", "-1e999"])
def test_number_beyond_the_range_of_doubles_is_not_a_time(number):
    with pytest.raises(TraceError, match="is not a number, date or timestamp"):
        read_traces(table(["1", "2", number]), sort=True)
    with pytest.raises(TraceError, match="is not a number, date or timestamp"):
        read_traces(table(["1", "2", number]), every="1", fill="last", sort=True)


@pytest.mark.parametrize(
    "columns", [["a1", "A1", "a2", "A2"], ["1", "01", "2"], ["2014-01-01", "2014-1-1", "2014-01-02"]]
)
def test_two_columns_of_one_time_are_refused(columns):
    wide = pd.DataFrame([["u", *["x"] * len(columns)]], columns=["user", *columns])
    with pytest.raises(TraceError, match="are one time"):
        read_traces(wide)


def test_irregular_times_of_counts_are_refused_with_their_column():
    counts = pd.DataFrame({"time": ["1", "2", "9", "30", "70"], "state": "a", "count": 1})
    with pytest.raises(TraceError, match="DataFrame: times in column 'time' follow no regular step"):
        read_counts(counts=counts)


def test_a_decimal_in_other_digits_keeps_its_fraction():
    assert read_traces(table(["．5", "1.5", "2.5"])).times == ("0.5", "1.5", "2.5")


def test_weeks_are_dates_in_columns_and_numbered_words_in_labels():
    assert read_traces(table(["2014-W01", "2014-W02", "2014-W03"])).times[0] == "2013-12-30"
    assert moment("2014-W03").value == 3


@pytest.mark.parametrize("label", ["9999-12-31T23:00-05:00", "0001-01-01T00:00+05:00"])
def test_years_outside_of_the_calendar_are_refused(label):
    with pytest.raises(TraceError, match="is not a number, date or timestamp"):
        read_traces(table([label]))


def test_long_cells_are_parsed_in_linear_time():  # twice for every letter would take an hour
    assert moment("1" * 1_000_000 + "x").kind == "word"
    assert moment("x" + "1" * 3000).kind == "word x"
