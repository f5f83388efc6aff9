"""Every kind of table gives the same two small tables, which are those of a counting loop of the tests' own."""

from __future__ import annotations

import csv
import enum
import random
from collections import Counter

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from counting import counted, counted_with_absent, tables_of
from data_sets import collected, sequence_rows
from temporaldp import InputError, estimate_adversaries, read_traces
from temporaldp.base.errors import StateError, TraceError

ORDERED = ("pandas", "polars", "lazy", "arrow", "parquet", "csv", "files")
EVERY = (*ORDERED, "duckdb")


def as_frame(rows, kind, folder, types=(str, int, str), header=("user", "time", "state")):
    """Rows as a table of a kind, or as a path to it."""
    columns = {
        name: [kind_of(row[k]) for row in rows] for k, (name, kind_of) in enumerate(zip(header, types, strict=True))
    }
    table = pa.table(columns)
    if kind == "pandas":
        return pd.DataFrame(columns)
    if kind in {"polars", "lazy"}:
        return pl.DataFrame(columns) if kind == "polars" else pl.LazyFrame(columns)
    if kind == "arrow":
        return table
    if kind == "duckdb":
        connection = duckdb.connect()
        connection.register("rows", table)
        return connection.sql("FROM rows")
    if kind == "parquet":
        parquet.write_table(table, folder / "t.parquet", row_group_size=7)
        return folder / "t.parquet"
    if kind == "csv":
        write_csv(folder / "t.csv", header, rows)
        return folder / "t.csv"
    (folder / "many").mkdir(exist_ok=True)
    third = -(-len(rows) // 3)
    for k in range(3):
        parquet.write_table(table[k * third : (k + 1) * third], folder / "many" / f"{k}.parquet")
    return folder / "many"


def write_csv(path, header, rows):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def random_rows(seed, *, shuffled):
    """People with gaps, and a hole that nobody crosses."""
    rng = random.Random(seed)
    times = [t for t in range(12) if t not in {5, 6}]
    rows = [
        (f"p{user}", t, rng.choice("abcd")) for user in range(rng.randint(1, 9)) for t in times if rng.random() < 0.8
    ] + [("q", t, rng.choice("ab")) for t in times]
    if shuffled:
        rng.shuffle(rows)
    return rows


def positions(rows):
    times = sorted({time for _, time, _ in rows})
    place = {time: k for k, time in enumerate(times)}
    return [(user, place[time], state) for user, time, state in rows], lambda t: times[t] - times[t - 1] == 1


@pytest.mark.long
@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("shuffled", [False, True])
def test_counts_of_random_tables_agree_with_a_loop(kind, shuffled, tmp_path):
    for seed in range(4):
        rows = random_rows(seed, shuffled=shuffled)
        found = read_traces(as_frame(rows, kind, tmp_path), sort=shuffled)
        histogram, transitions, of_user = counted(*positions(rows))
        assert tables_of(found) == (histogram, transitions, {name: of_user[name] for name in found.users})
        assert found.n_users == len({user for user, _, _ in rows})
        assert found.consecutive.tolist() == [True] * 4 + [False] + [True] * 4


@pytest.mark.long
@pytest.mark.parametrize("kind", EVERY)
def test_users_without_a_row_can_have_an_absent_state(kind, tmp_path):
    for seed in range(4):
        rows = random_rows(seed, shuffled=False)
        found = read_traces(as_frame(rows, kind, tmp_path), absent="away")
        at, linked = positions(rows)
        histogram, transitions, of_user = counted_with_absent(at, found.n_times, "away", linked)
        assert found.states[-1] == "away"
        assert tables_of(found) == (histogram, transitions, {name: of_user[name] for name in found.users})
        assert (found.histogram().sum(axis=1) == found.n_users).all()
        assert (found.codes >= 0).all()


@pytest.mark.parametrize("kind", ORDERED)
def test_unordered_or_repeated_rows_are_named(kind, tmp_path):
    rows = [("1", 0, "a"), ("1", 2, "b"), ("2", 0, "b"), ("1", 1, "a"), ("2", 1, "a")]
    where = (
        (r"data row 2 of 1\.parquet", r"data row 2 of 0\.parquet") if kind == "files" else ("data row 4", "data row 2")
    )
    with pytest.raises(TraceError, match=rf"user '1' has '1' \({where[0]}\) after '2' \({where[1]}\)"):
        read_traces(as_frame(rows, kind, tmp_path))
    twice = [("1", 0, "a"), ("1", 1, "b"), ("2", 0, "b"), ("1", 1, "a"), ("2", 1, "a")]
    where = r"data row 2 of 0\.parquet and data row 2 of 1\.parquet" if kind == "files" else "data rows 2 and 4"
    for sort in (False, True):
        with pytest.raises(TraceError, match=rf"'1' has two states at time '1' \({where}: 'b', 'a'\); 1 such"):
            read_traces(as_frame(twice, kind, tmp_path), sort=sort)


@pytest.mark.long
@pytest.mark.parametrize("kind", EVERY)
def test_all_kinds_of_tables_have_the_same_refusals(kind, tmp_path):
    rows = [("1", 0, "a"), ("1", 1, "b"), ("2", 0, "c"), ("2", 1, "")]
    with pytest.raises(TraceError, match=r"'state' has no value in .* \(got ''; 1 such cell\)"):
        read_traces(as_frame(rows, kind, tmp_path))
    with pytest.raises(StateError, match="state 'c' is not among the expected states 'a', 'b'"):
        read_traces(as_frame(rows[:3], kind, tmp_path), states=["a", "b"])
    with pytest.raises(TraceError, match="'user' has no value"):
        read_traces(as_frame([("NA", 0, "a"), ("1", 1, "b")], kind, tmp_path))
    with pytest.raises(TraceError, match="two states at time '1'"):
        read_traces(as_frame([("1", 0, "a"), ("1", 1, "b"), ("1", 1, "a")], kind, tmp_path))
    with pytest.raises(TraceError, match="no regular step"):
        read_traces(as_frame([("1", t, "ab"[t % 2]) for t in (0, 1, 7, 19, 40)], kind, tmp_path))
    with pytest.raises(TraceError, match=r"no column 'state'|a column 'time' but no column 'state'"):
        read_traces(as_frame(rows, kind, tmp_path, header=("user", "time", "what")))
    with pytest.raises(StateError, match="line breaks or control"):
        read_traces(as_frame([("1\n", 0, "a"), ("1\n2", 1, "b")], kind, tmp_path))


@pytest.mark.long
def test_blanks_around_names_are_stripped(tmp_path):
    rows = [("1 ", 0, "a"), (" 1", 1, "b "), ("1", 2, "a")]
    for kind in EVERY:
        found = read_traces(as_frame(rows, kind, tmp_path))
        assert (found.users, found.n_users, found.states) == (("1",), 1, ("a", "b"))
        assert found.transition_counts().tolist() == [[0, 1], [1, 0]]


def test_column_names_that_differ_in_case(tmp_path):
    table = pa.table({"User": ["x", "x"], "user": [1, 1], "time": [0, 1], "state": ["a", "b"]})
    parquet.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):
        assert read_traces(source).users == ("1",)
        assert read_traces(source, user="User").users == ("x",)


def test_column_of_mixed_types_is_named():
    frame = pd.DataFrame({"user": [1, "x"], "time": [0, 1], "state": ["a", "b"]})
    with pytest.raises(TraceError, match=r"column 'user' holds values of several types \(int, str\); write it"):
        read_traces(frame)


def unusual(kind):
    """A frame with a column of a type that Arrow, DuckDB or narwhals does not have, beside one that is not read."""
    columns = {"user": [1, 1, 1, 2, 2, 2], "time": [1, 2, 3, 1, 2, 3], "state": list("xyxyyx")}
    frame, names = pd.DataFrame(columns), enum.Enum("Kind", "x y")
    return {
        "Int128": lambda: pl.DataFrame(columns).with_columns(
            pl.col("time").cast(pl.Int128), pl.col("user").cast(pl.UInt128)
        ),
        "Float16": lambda: pl.DataFrame(columns).with_columns(pl.col("time").cast(pl.Float16)),
        "decimal256": lambda: pa.table(columns | {"time": pa.array(columns["time"]).cast(pa.decimal256(40, 0))}),
        "beside": lambda: frame.assign(other=1j),
        "Sparse": lambda: frame.assign(user=pd.arrays.SparseArray(frame.user)),
        "complex128": lambda: frame.assign(time=frame.time * 1j),
        "Kind": lambda: frame.assign(state=[names[state] for state in columns["state"]]),
    }[kind]()


@pytest.mark.parametrize("kind", ["Int128", "Float16", "decimal256", "beside"])
def test_columns_of_unusual_types_are_read(kind):
    found = read_traces(unusual(kind))
    assert found.transition_counts().tolist() == [[0, 1], [2, 1]]
    assert (found.users, found.times) == (("1", "2"), found.times) and len(found.times) == 3


@pytest.mark.parametrize(("kind", "column"), [("Sparse", "user"), ("complex128", "time"), ("Kind", "state")])
def test_columns_that_cannot_be_read_are_named(kind, column):
    with pytest.raises(TraceError, match=rf"column '{column}' holds values of type {kind}.*write it with one type"):
        read_traces(unusual(kind))


def test_errors_of_duckdb_are_those_of_the_package_and_hold_no_entry():
    relation = (
        duckdb.connect().sql("SELECT 'secret'::VARCHAR AS word").select("word::BIGINT AS user, 1 AS time, 'a' AS state")
    )
    with pytest.raises(TraceError, match=r"DuckDB cannot read the table \(ConversionException\)") as refusal:
        read_traces(relation)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("nothing", [3, None, ["a"], {"user": [1]}])
def test_invalid_tables_are_refused(nothing):
    with pytest.raises(InputError, match="expected traces"):
        read_traces(nothing)


def test_wide_frames():
    wide = pd.DataFrame({"user": ["b", "a"], "t0": ["x", "y"], "t1": ["y", None]})
    found = read_traces(wide, gaps=True)
    assert (found.users, found.codes.tolist()) == (("b", "a"), [[0, 1], [1, -1]])
    with pytest.raises(TraceError, match=r"column 't1' has no value in data row 2 .*gaps=True"):
        read_traces(wide)


@pytest.mark.long
def test_estimators_accept_tables(tmp_path):
    rows = random_rows(1, shuffled=False)
    expected = next(estimate_adversaries(read_traces(as_frame(rows, "csv", tmp_path)), prior=1.0))
    for kind in ("pandas", "polars", "lazy", "arrow", "duckdb"):
        found = next(estimate_adversaries(as_frame(rows, kind, tmp_path), prior=1.0))
        assert found.forward == expected.forward
        assert found.backward == expected.backward


def test_length_of_a_step_is_an_attribute(tmp_path):
    table = as_frame([("1", 0, "a"), ("1", 2, "b")], "arrow", tmp_path)
    assert read_traces(table).step == "2"


def test_groups(tmp_path):
    table = pa.table(
        {
            "user": ["1", "1", "2", "2", "3", "3"],
            "time": [0, 1] * 3,
            "state": list("ababba"),
            "region": list("nnssnn"),
        }
    )
    found = read_traces(table, by="region")
    assert {name: counts.tolist() for name, counts in found.group_transitions()} == {
        "n": [[0, 1], [1, 0]],
        "s": [[0, 1], [0, 0]],
    }
    moved = table.set_column(3, "region", pa.array(list("nsssnn")))
    with pytest.raises(TraceError, match="user '1' is in more than one group, or in none, by column 'region'"):
        read_traces(moved, by="region")
    with pytest.raises(InputError, match="read without groups"):
        list(read_traces(table).group_transitions())


LARGE = 20_000
"""Rows from which on a data set is left to `make test-slow`."""


@pytest.mark.long
@pytest.mark.parametrize("large", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["small", "large"])
def test_every_reader_agrees_on_the_collected_data_sets(data_folder, tmp_path, large):
    for name, path, how, rows in collected(data_folder, tmp_path):
        if (len(rows) > LARGE) != large:
            continue
        by_file = read_traces(path, **how)
        histogram, transitions, of_user = counted(rows)
        expected = histogram, transitions, {user: of_user[user] for user in by_file.users}
        assert tables_of(by_file) == expected, name
        assert len(of_user.keys() | {user for user, _, _ in rows}) == by_file.n_users
        for kind in ("pandas", "polars", "lazy", "arrow", "parquet", "duckdb"):
            found = read_traces(as_frame(rows, kind, tmp_path))
            assert Counter(tables_of(found)[1]) == transitions, (name, kind)
            assert np.array_equal(found.histogram(), by_file.histogram()), (name, kind)


def test_sequences_of_real_clicks(data_folder):
    path = data_folder / "msnbc323" / "msnbc323.seq"
    rows = sequence_rows(path)
    found = read_traces(path)
    histogram, transitions, of_user = counted(rows)
    assert tables_of(found) == (histogram, transitions, {user: of_user[user] for user in found.users})
    assert found.users == tuple(dict.fromkeys(user for user, _, _ in rows))
