"""Random tables of every shape, format, encoding and kind of gap: all places give the same traces, or the same refusal."""

from __future__ import annotations

import re
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from counting import tables_of
from temporaldp import InputError, read_traces

FORMATS = (None, "%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M %p", "%Y%m%d%H%M", "unix")
NAMES = ("ä", "b b", "NA", "c", "-1")


@st.composite
def tables(draw):
    """Columns of text, and how they are to be read."""
    shape = draw(st.sampled_from(["long", "events", "intervals", "wide", "sequences"]))
    users = [f"u{k}" for k in range(draw(st.integers(1, 4)))]
    state = st.sampled_from(NAMES[: draw(st.integers(1, 5))])
    how = {"gaps": draw(st.booleans())}
    if draw(st.booleans()):
        how["missing"] = draw(st.sampled_from([(), ("-1",), ("NA", "-1")]))
    if shape == "sequences":
        words = [draw(st.lists(state.filter(lambda one: " " not in one), min_size=1, max_size=6)) for _ in users]
        columns = {"user": users, "state": [" ".join(one) for one in words]}
        return columns, how | {"layout": "sequences"}
    if shape == "wide":
        cell = st.one_of(state, st.just("")) if draw(st.booleans()) else state
        labels = draw(
            st.sampled_from(
                [["t1", "t2", "t3"], ["Jul.93", "Aug.93", "Sep.93"], ["02.01.2024", "03.01.2024", "04.01.2024"]]
            )
        )
        how |= {"layout": "wide"} | ({"time_format": "%d.%m.%Y"} if "2024" in labels[0] else {})
        return {"user": users, **{label: [draw(cell) for _ in users] for label in labels}}, how
    spelled, step = draw(st.sampled_from(FORMATS)), 60 if shape == "long" else draw(st.sampled_from([7, 35, 60]))
    how |= {"layout": "long"} | ({} if spelled is None else {"time_format": spelled})
    rows, start = [], datetime(2024, 3, 30)
    for user in users:
        minute = 0
        for _ in range(draw(st.integers(1, 6))):
            minute += step * draw(st.integers(int(shape == "long"), 3))
            length = step * draw(st.integers(0, 2))
            is_open = shape == "intervals" and draw(st.integers(0, 9)) == 0
            ends = "" if is_open else shown(start + timedelta(minutes=minute + length), spelled)
            rows.append([user, shown(start + timedelta(minutes=minute), spelled), ends, draw(state), draw(state)])
            minute += length if draw(st.integers(0, 9)) else 0
    if draw(st.integers(0, 9)) == 0:
        rows[draw(st.integers(0, len(rows) - 1))][draw(st.integers(0, 3))] = draw(st.sampled_from(["", "soon", "NaN"]))
    columns = dict(zip(("user", "time", "end", "state", "then"), map(list, zip(*rows, strict=True)), strict=True))
    if shape != "intervals":
        del columns["end"], columns["then"]
    if shape != "long":
        how |= {"every": "1h", "fill": "last"} | draw(st.sampled_from([{}, {"absent": "away"}, {"fill_limit": "2h"}]))
    if shape == "intervals":
        how |= {"end": "end"} | draw(st.sampled_from([{}, {"end_state": "then"}]))
    if draw(st.integers(0, 3)) == 0:
        how |= {"states_from": {"ä": "x", "c": "y"}} | draw(st.sampled_from([{}, {"other": "z"}]))
    return columns, how


def shown(when, spelled):
    if spelled == "unix":
        return str(int((when - datetime(1970, 1, 1)).total_seconds()))
    return when.isoformat() if spelled is None else when.strftime(spelled)


def outcome(source, how):
    """The traces, or the refusal without its source and row, which places name in their own ways."""
    try:
        found = read_traces(source, **how)
    except InputError as error:
        said = re.sub(
            r" \(data row.*?\)|\(data rows.*?: |\(in data row.*?\)|\(a row\)|\(\('", "(", str(error).partition(": ")[2]
        )
        return type(error).__name__, re.sub(r"data row \d+|a row|file|table|\((?=')", "", said).replace("(", "")
    return found.states, found.times, sorted(found.users), tables_of(found)


@pytest.mark.long
@settings(max_examples=200, phases=[Phase.generate])
@given(tables(), st.sampled_from(["utf-8", "latin-1", "utf-16"]), st.sampled_from([",", ";", "\t"]))
def test_every_place_gives_the_same_traces_or_the_same_refusal(table, encoding, delimiter):
    columns, how = table
    frame = pd.DataFrame(columns)
    with tempfile.TemporaryDirectory() as folder:
        text, parquet = Path(folder) / "t.csv", Path(folder) / "t.parquet"
        frame.to_csv(text, index=False, encoding=encoding, sep=delimiter)
        frame.to_parquet(parquet)
        expected = outcome(frame, how)
        assert outcome(text, how | {"encoding": encoding, "delimiter": delimiter}) == expected
        for other in (parquet, pl.from_pandas(frame)):
            assert outcome(other, how) == expected
        without_order = outcome(duckdb.connect().from_df(frame), how)  # names another first fault
        assert without_order[0] == expected[0] and (len(expected) == 2 or without_order == expected)
