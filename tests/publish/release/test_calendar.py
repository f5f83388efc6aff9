"""Times of a release: known again in any spelling, late and too close ones refused."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest

from renewing import ADVERSARY
from streams import opened
from temporaldp import (
    ContinualRelease,
    DiscreteLaplaceHistogram,
    InputError,
    TemporalAccountant,
    read_traces,
    release_histograms,
)


@pytest.mark.parametrize(
    ("before", "late"),
    [
        (["2024-01-01T10:00"], "2024-01-01T09:00"),
        (["2024-01-01", "2024-01-02"], "2024-01-01T12:00"),
        ([1, 2], 1.5),
        (["s05", "s06"], "s4"),
        (["9"], 8),
        (["2021-01-05", "2021-01-06"], "foo"),
        ([1, 2], "2024-01-01"),
        (["monday"], 3),
        (["2024-01-01T00:00"], "2024-01-02T00:00+01:00"),
        (["2024-01-01T00:00Z"], "2024-01-02"),
        (["day 5"], "night 6"),
        (["day 5"], "monday"),
    ],
)
def test_late_or_misplaced_steps_are_refused(before, late, place):
    with opened(place) as stream:
        for time in before:
            stream.release([70, 30], time=time)
        with pytest.raises(InputError, match=r"comes before|their order is undefined"):
            stream.release([70, 30], time=late)
        assert len(stream) == len(stream.accountant) == len(before)


@pytest.mark.parametrize(
    ("step", "times", "refused"),
    [
        ("86400 seconds", ["2021-01-01"], "2021-01-01T01:00"),
        ("1 months", ["2021-01-15"], "2021-01-30"),
        ("2 months", ["2021-01"], "2021-02"),
        ("5", [0], 4),
        ("86400 seconds", ["2023-03-26T00:00+01:00"], "2023-03-26T23:00+02:00"),
        ("3600 seconds", ["2023-03-26T00:55+01:00"], "2023-03-26T02:00+02:00"),
        ("3600 seconds", ["2023-03-26T00:00+00:00"], "2023-03-26T08:05+08:00"),
        ("0.1", ["0.1", "0.2"], "0.25"),
    ],
)
def test_steps_closer_than_the_step_of_the_correlation_are_refused(step, times, refused, place):
    with opened(place, step=step) as stream:
        for time in times:
            stream.release([70, 30], time=time)
        with pytest.raises(InputError, match=r"only .* after"):
            stream.release([70, 30], time=refused)


@pytest.mark.parametrize(
    ("step", "times"),
    [
        ("1 months", ["2021-01", "2021-02", "2021-03", "2021-05"]),
        (None, ["2021-01-01", "2021-02-01", "2021-03-01"]),
        ("1 months", ["2023-01-15", "2023-02-15", "2023-03-15", "2023-05-15"]),
        ("1 months", ["2023-9", "2023-10", "2023-11"]),
        ("12 months", ["2023-06-15", "2024-06-15", "2025-06-15"]),
        (
            "86400 seconds",
            ["2023-03-26T00:00+01:00", "2023-03-27T00:00+02:00", "2023-10-29T00:00+02:00", "2023-10-30T00:00+01:00"],
        ),
        ("300 seconds", ["2023-03-26T01:55+01:00", "2023-03-26T03:00+02:00", "2023-03-26T03:05+02:00"]),
        ("300 seconds", ["2023-01-01T00:00:00", "2023-01-01T00:05:01", "2023-01-01T00:10:00"]),
        (None, ["1", "3", "4", "2024-01-05"][:3]),
        (None, ["s" + "1" + "0" * 35, "s" + "1" + "0" * 34 + "1"]),
        (None, ["-2", "-1", "0", "0.5"]),
        ("300 seconds", ["2021-01-01T00:00", "2021-01-01T00:05", "2021-01-01T01:00"]),
        (None, ["monday", "tuesday", "monday evening"]),
        ("1", ["s08", "s09", "s10"]),
        (None, ["1609459200.123456789", "1609459201.123456790"]),
    ],
)
def test_steps_a_step_or_more_apart_are_released(step, times, place):
    with opened(place, step=step) as stream:
        for time in times:
            stream.release([70, 30], time=time)
        assert len(stream) == len(times)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("7", 7.0),
        ("s05", "s5"),
        ("2024-01-01", "2024-01-01T00:00"),
        ("2024-01-01T01:00+01:00", "2024-01-01T00:00Z"),
        ("day 5", "Day  5"),
        ("day 5", "day05"),
        ("Day \uff15", "day 5"),
        ("Monday", " monday"),
        ("1e32", 10**32),
        ("2024-01", date(2024, 1, 1)),
        (np.int64(3), "03"),
    ],
)
def test_time_is_recognised_in_another_spelling(one, other, place):
    with opened(place) as stream:
        first = stream.release([70, 30], time=one)
        assert np.array_equal(stream.release([70, 30], time=other), first)
        assert len(stream) == 1


@pytest.mark.parametrize("time", [None, True, float("nan"), float("inf"), "", "  ", b"x", ["a"], "\ud800", "a\0b"])
def test_invalid_times_are_refused(time, place):
    with opened(place) as stream, pytest.raises(InputError, match=r"expected time to be|control characters"):
        stream.release([70, 30], time=time)


def test_ambiguous_decimal_times_are_refused(place):
    with opened(place) as stream:
        stream.release([70, 30], time="2024.1")
        with pytest.raises(InputError, match=r"equals .* as a number"):
            stream.release([70, 30], time="2024.10")


def test_last_moment_before_the_year_10000_is_accepted(place):
    last = f"9999-12-31T23:59:59.{'9' * 39}Z"
    with opened(place, step="1 months") as stream:
        stream.release([70, 30], time="9999-11-30T23:59:59Z")
        stream.release([70, 30], time=last)
        assert stream.has(last)
        assert not stream.has(last.replace("9Z", "8Z"))  # compared to its last digit


@pytest.mark.parametrize(
    ("tables", "step", "times"),
    [
        (  # a file a day, the first of a month alone
            [["2024-01-01"], ["2024-01-02", "2024-01-03"], ["2024-02-01"]],
            "86400 seconds",
            ["2024-01-01", "2024-01-02", "2024-01-03", "2024-02-01"],
        ),
        ([["2024-01-31"], ["2024-02-01"]], None, ["2024-01-31", "2024-02-01"]),
        ([["2024-01", "2024-02"], ["2024-03-01"], ["2024-04"]], None, ["2024-01", "2024-02", "2024-03", "2024-04"]),
        ([["2024-01-01"]], "1 months", ["2024-01"]),
        (  # midnight alone, in a ledger of hours
            [["2024-01-01T00:00"], ["2024-01-01T22:00", "2024-01-01T23:00"], ["2024-01-02T00:00"]],
            "3600 seconds",
            ["2024-01-01T00:00", "2024-01-01T22:00", "2024-01-01T23:00", "2024-01-02T00:00"],
        ),
        (  # the same in UTC
            [["2024-01-01T22:00Z", "2024-01-01T23:00Z"], ["2024-01-02T00:00Z"], ["2024-02-01T01:00+01:00"]],
            None,
            ["2024-01-01T22:00Z", "2024-01-01T23:00Z", "2024-01-02T00:00Z", "2024-02-01T00:00Z"],
        ),
        ([["2024-01-01T00:00:30"], ["2024-01-01T00:01"]], None, ["2024-01-01T00:00:30", "2024-01-01T00:01:00"]),
    ],
)
def test_times_of_many_tables_have_one_format(tables, step, times, tmp_path):
    written = []
    for labels in tables:
        rows = [(user, label, "ab"[user == "1"]) for user in "12" for label in labels]
        table = read_traces(pd.DataFrame(rows, columns=["user", "time", "state"]))
        accountant = TemporalAccountant(ADVERSARY, alpha=1.0)
        with ContinualRelease(
            DiscreteLaplaceHistogram(2), ledger=tmp_path / "r.db", accountant=accountant, states=("a", "b"), step=step
        ) as release:
            foreseen = [one.time for one in release.forecast(table.times)]
            made = release_histograms(table, release).times
            assert list(made) == foreseen
            assert release_histograms(table, release).times == made
            written += made
            assert list(release.ledger.times) == written
    assert written == times
