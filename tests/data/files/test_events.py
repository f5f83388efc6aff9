"""Events on a grid: what somebody is at a step is what their last event until then says, whatever the clock does."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest

from counting import counted, tables_of
from data_sets import bike_locations
from temporaldp import InputError, read_traces
from temporaldp.base.errors import TraceError

AMSTERDAM = ZoneInfo("Europe/Amsterdam")
NAMES = ["user", "time", "state"]


def events(seed, start, hours):
    """Events of some people at odd times, in order."""
    rng = random.Random(seed)
    rows = []
    for user in "pqr":
        at = start + timedelta(minutes=rng.randrange(300))
        while at < start + timedelta(hours=hours):
            rows.append((user, at, rng.choice("abc")))
            at += timedelta(minutes=rng.randrange(1, 400))
    return rows


def stepped(rows, grid, fill):
    """The value of everybody at each step: their last event until then, by looking at all of them."""
    cells = []
    for user in sorted({user for user, _, _ in rows}):
        for k, step in enumerate(grid):
            past = [(at, state) for who, at, state in rows if who == user and at <= step]
            recent = [state for at, state in past if k == 0 or at > grid[k - 1]]
            if fill == "last" and past:
                cells.append((user, k, past[-1][1]))
            if fill == "absent":
                cells.append((user, k, recent[-1] if recent else "absent"))
    return cells


def hourly(rows, hours):
    """Steps of some hours from midnight (UTC) of the first event's day, those at and after the first event."""
    first, last = min(at for _, at, _ in rows), max(at for _, at, _ in rows)
    step = first.replace(hour=0, minute=0)
    grid = []
    while not grid or grid[-1] < last:
        if step >= first:
            grid.append(step)
        step += timedelta(hours=hours)
    return grid


def daily(rows, zone):
    """Midnights of the clock, from the first at or after the first event to the first at or after the last."""
    first, last = min(at for _, at, _ in rows), max(at for _, at, _ in rows)
    day, grid = first.astimezone(zone).date(), []
    while not grid or grid[-1] < last:
        midnight = datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)
        if midnight >= first:
            grid.append(midnight)
        day += timedelta(days=1)
    return grid


@pytest.mark.long
@pytest.mark.parametrize("fill", ["last", "absent"])
@pytest.mark.parametrize("kind", ["text", "pandas", "polars", "lazy", "parquet"])
@pytest.mark.parametrize("every", ["6h", "1d"])
def test_events_on_a_grid_agree_with_a_loop_across_a_clock_change(fill, kind, every, tmp_path):
    for seed, start in enumerate((datetime(2024, 3, 29, 20, tzinfo=UTC), datetime(2024, 10, 25, 20, tzinfo=UTC))):
        rows = events(seed, start, 80)
        frame = pd.DataFrame(rows, columns=NAMES)
        zone = "Europe/Amsterdam" if every == "1d" else None
        grid = daily(rows, AMSTERDAM) if every == "1d" else hourly(rows, 6)
        if kind == "text":
            frame["time"] = [at.isoformat() for _, at, _ in rows]
        source = frame
        if kind in {"polars", "lazy"}:
            source = pl.from_pandas(frame) if kind == "polars" else pl.from_pandas(frame).lazy()
        if kind == "parquet":
            frame.to_parquet(tmp_path / "e.parquet", index=False)
            source = tmp_path / "e.parquet"
        found = read_traces(source, every=every, fill=fill, timezone=zone)
        histogram, transitions, of_user = counted(stepped(rows, grid, fill))
        assert len(found.times) == len(grid)
        assert tables_of(found) == (histogram, transitions, {user: of_user[user] for user in found.users})


def test_a_day_of_23_hours_is_a_day():
    rows = [("1", "2024-03-30T23:30", "a"), ("1", "2024-03-31T23:30", "b"), ("1", "2024-04-01T23:30", "a")]
    found = read_traces(pd.DataFrame(rows, columns=NAMES), every="1d", fill="last", timezone="Europe/Amsterdam")
    assert found.times == ("2024-03-31", "2024-04-01", "2024-04-02")
    assert found.codes.tolist() == [[0, 1, 0]]


@pytest.mark.long
@pytest.mark.parametrize("fill", ["last", "absent"])
def test_days_that_the_clock_skipped_are_not_steps(fill):
    """Apia had no 30 December 2011: what happened on the 29th is known when the 31st begins."""
    zone, apia = "Pacific/Apia", ZoneInfo("Pacific/Apia")
    rows = [
        (user, datetime(2011, 12, day, hour, tzinfo=apia).astimezone(UTC).isoformat(), state)
        for user, day, hour, state in [
            ("1", 28, 0, "a"), ("1", 29, 8, "b"), ("1", 31, 0, "a"), ("1", 31, 9, "b"),
            ("2", 28, 0, "b"), ("2", 29, 9, "a"), ("2", 31, 9, "a"),
        ]
    ]  # fmt: skip
    found = read_traces(pd.DataFrame(rows, columns=NAMES), every="1d", fill=fill, timezone=zone)
    assert found.times == ("2011-12-28", "2011-12-29", "2011-12-31", "2012-01-01") and found.consecutive.all()
    away = {"last": (0, 1), "absent": (2, 2)}[fill]
    assert found.codes.tolist() == [[0, away[0], 0, 1], [1, away[1], 0, 0]]
    ended = read_traces(pd.DataFrame([rows[0], rows[1], rows[4]], columns=NAMES), every="1d", fill=fill, timezone=zone)
    assert ended.times == ("2011-12-28", "2011-12-29", "2011-12-31")
    assert ended.codes[0].tolist() == [0, away[0], 1]


@pytest.mark.parametrize(
    ("time", "how"),
    [("2024-03-31T02:30", "never, as daylight saving begins"), ("2024-10-27T02:30", "twice, as daylight saving ends")],
)
def test_nonexistent_and_ambiguous_local_times_are_refused(time, how):
    frame = pd.DataFrame([("1", "2024-03-30T02:30", "a"), ("1", time, "b")], columns=NAMES)
    with pytest.raises(TraceError, match=f"time '{time}' in data row 2: the clock of Europe/Amsterdam shows it {how}"):
        read_traces(frame, every="1h", fill="last", timezone="Europe/Amsterdam")


def test_mixed_zones_are_refused():
    frame = pd.DataFrame([("1", "2024-03-30T02:30Z", "a"), ("1", "2024-03-30T04:30", "b")], columns=NAMES)
    for how in ({}, {"every": "1h", "fill": "last"}):
        with pytest.raises(
            TraceError, match=r"mixed types: '2024-03-30T02:30Z' is a time with a zone, '2024-03-30T04:30' is a date"
        ):
            read_traces(frame, **how)


def test_numeric_times_have_a_grid():
    frame = pd.DataFrame([("1", 3, "a"), ("1", 7, "b"), ("1", 18, "a")], columns=NAMES)
    found = read_traces(frame, every="5", fill="last")
    assert (found.times, found.step, found.codes.tolist()) == (("5", "10", "15", "20"), "5", [[0, 1, 1, 0]])
    with pytest.raises(InputError, match="the times are numbers"):
        read_traces(frame, every="5min", fill="last")


@pytest.mark.long
def test_events_of_one_moment_have_an_order_in_every_table():
    duckdb = pytest.importorskip("duckdb")
    rows = [(user, t, state) for user in "pqr" for t in range(4) for state in ("ab" if t % 2 else "ba")]
    frame = pd.DataFrame(rows, columns=NAMES)
    last = {"every": "1", "fill": "last", "ties": "last"}
    assert read_traces(frame, **last).codes.tolist() == [[0, 1, 0, 1]] * 3  # the last row
    assert read_traces(frame, **last | {"ties": "first"}).codes.tolist() == [[1, 0, 1, 0]] * 3
    assert read_traces(frame, ties="first").codes.tolist() == [[1, 0, 1, 0]] * 3
    for seed in range(5):
        relation = duckdb.connect().from_df(frame.sample(frac=1.0, random_state=seed))
        assert (read_traces(relation, **last, states=("a", "b")).codes == 1).all()  # without rows: the last name
        for how in ({}, {"every": "1", "fill": "last"}):  # refused in the same words
            with pytest.raises(
                TraceError, match=r"user 'p' has two states at time '0' \('a', 'b'\); 12 such repetitions"
            ):
                read_traces(relation, **how)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"every": "1h"}, "expected the state at a step without an event"),
        ({"fill": "last"}, "they need its step"),
        ({"every": "1h", "fill": "absent", "fill_limit": "8h"}, "about states that are kept"),
        ({"every": "1h", "fill": "last", "fill_limit": "8"}, "in the unit of every"),
        ({"every": "1h", "fill": "last", "end_state": "x"}, "name the column of ends"),
        ({"end": "until"}, "they need its step"),
        ({"other": "x"}, "give states or states_from"),
        ({"ties": "longest"}, "about the steps of a grid"),
        ({"decimal": ";"}, "decimal mark"),
        ({"every": "soon", "fill": "last"}, "expected a step such as"),
        ({"every": "1.5d", "fill": "last"}, "whole number of days"),
        ({"every": "1h", "fill": "last", "timezone": "Mars"}, "name of a time zone"),
        ({"every": "60", "fill": "last"}, "give the step with its unit"),
        ({"every": "0.000001s", "fill": "last"}, "more than 2000000"),
    ],
)
def test_invalid_grids_are_refused(how, message):
    frame = pd.DataFrame([("1", "2024-01-01T00:00", "a"), ("1", "2024-01-01T07:00", "b")], columns=NAMES)
    with pytest.raises((InputError, TraceError), match=message):
        read_traces(frame, **how)


def test_events_out_of_order_are_refused_unless_they_are_sorted():
    frame = pd.DataFrame([("1", "2024-01-01T07:00", "a"), ("1", "2024-01-01T05:00", "b")], columns=NAMES)
    with pytest.raises(
        TraceError, match=r"user '1' has '2024-01-01T05:00' \(data row 2\) after '2024-01-01T07:00' \(data row 1\)"
    ):
        read_traces(frame, every="1h", fill="last")
    assert read_traces(frame, every="1h", fill="last", sort=True).codes.tolist() == [[1, 1, 0]]


@pytest.mark.slow
def test_bikes_stay_at_their_last_station(data_folder, tmp_path):
    trips = data_folder / "bikeshare_bayarea_2014" / "trips.csv.gz"
    names = {"user": "bike_id", "time": "end_date", "state": "end_terminal"}
    found = read_traces(trips, **names, every="1d", fill="last", sort=True)
    expected = read_traces(bike_locations(data_folder, tmp_path / "b.csv"), user="bike", time="day", state="station")
    first = found.times.index(expected.times[0])
    rows = found.histogram()[first : first + expected.n_times]
    kept = [found.states.index(state) for state in expected.states]
    assert np.array_equal(rows[:, kept], expected.histogram())
    assert rows.sum() == expected.histogram().sum()
    assert Counter(found.consecutive.tolist()) == {True: found.n_times - 1}
