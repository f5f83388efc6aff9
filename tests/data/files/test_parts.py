"""Parquet that is ordered by people is read in parts, and everything is as if it had been read at once."""

from __future__ import annotations

import random
from itertools import pairwise

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from counting import counted, counted_with_absent, named, tables_of
from temporaldp import read_traces
from temporaldp.base.errors import TraceError
from temporaldp.base.progress import watched
from temporaldp.data.files import embedded
from temporaldp.data.files.embedded import cuts

STEPS = 6


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(embedded, "LEAST_CELLS", 12)


def people_in_order(seed, names):
    """Rows of people one after the other, with gaps."""
    rng = random.Random(seed)
    return [(name, t, rng.choice("abc")) for name in names for t in range(STEPS) if t in {0, 1} or rng.random() < 0.7]


def written(rows, path, user=str, rows_of_group=5):
    columns = {
        "user": [user(row[0]) for row in rows],
        "time": [row[1] for row in rows],
        "state": [row[2] for row in rows],
    }
    parquet.write_table(pa.table(columns), path, row_group_size=rows_of_group)
    return path


def n_parts(traces):
    return len(traces._found.rows.parts)


PADDED = [f"p{k:03}" for k in range(20)]
NUMBERS = [str(k) for k in range(-5, 35, 2)]
AS_WORDS = sorted(str(k) for k in range(92, 112))  # 100, 101, ..., 111, 92, ...: not the order that people are told in


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        pytest.param(PADDED, str, id="words", marks=pytest.mark.long),
        pytest.param(NUMBERS, int, id="numbers"),
        pytest.param(AS_WORDS, str, id="both", marks=pytest.mark.long),
    ],
)
def test_counts_of_parts_agree_with_a_loop_over_the_whole(names, kind, tmp_path):
    rows = people_in_order(0, names)
    found = read_traces(written(rows, tmp_path / "t.parquet", kind))
    assert n_parts(found) > 3
    histogram, transitions, of_user = counted(rows)
    assert tables_of(found) == (histogram, transitions, {name: of_user[name] for name in found.users})
    assert found.users == tuple(sorted(names) if names is PADDED else sorted(names, key=int))
    away = read_traces(tmp_path / "t.parquet", absent="away")
    histogram, transitions, of_user = counted_with_absent(rows, STEPS, "away")
    assert tables_of(away) == (histogram, transitions, {name: of_user[name] for name in away.users})


@pytest.mark.long
def test_events_are_read_in_parts(tmp_path):
    rows = people_in_order(0, NUMBERS)
    path = written(rows, tmp_path / "t.parquet", int)
    for fill in ("last", "absent"):
        found = read_traces(path, every="2", fill=fill)
        assert n_parts(found) > 3
        whole = read_traces(pd.read_parquet(path), every="2", fill=fill)
        assert tables_of(found) == tables_of(whole)


def test_files_that_are_each_ordered_by_people(tmp_path):
    days = [[(name, t, "ab"[(k * t) % 2]) for k, name in enumerate(PADDED)] for t in range(STEPS)]
    for t, rows in enumerate(days):
        written(rows, tmp_path / f"{t}.parquet", rows_of_group=4)
    found = read_traces(tmp_path)
    assert n_parts(found) > 2
    histogram, transitions, of_user = counted([row for rows in days for row in rows])
    assert tables_of(found) == (histogram, transitions, {name: of_user[name] for name in found.users})


@pytest.mark.long
def test_wide_tables_in_parts(tmp_path):
    """Users are in the order of rows, and the first empty cell of the first column is named."""
    rng = random.Random(7)
    rows = [[name, *(rng.choice("abc") for _ in range(STEPS))] for name in PADDED]
    table = pd.DataFrame(rows, columns=["user", *(f"day{t}" for t in range(STEPS))])
    path = tmp_path / "t.parquet"
    table.to_parquet(path, row_group_size=2)
    found = read_traces(path)
    assert n_parts(found) == 10 and found.users == tuple(PADDED)
    histogram, transitions, of_user = counted(
        [(name, t, state) for name, *states in rows for t, state in enumerate(states)]
    )
    assert tables_of(found) == (histogram, transitions, of_user)
    table[::-1].to_parquet(path, row_group_size=2)
    assert read_traces(path).users == tuple(reversed(PADDED))
    assert tables_of(read_traces(path)) == (histogram, transitions, of_user)
    table.loc[[3, 15], "day4"] = table.loc[12, "day5"] = None
    table.to_parquet(path, row_group_size=2)
    with pytest.raises(
        TraceError, match=r"column 'day4' has no value in data row 4 \(got None; 2 such cells\).*traces.gaps=true"
    ):
        read_traces(path)


@pytest.mark.long
def test_groups_in_parts(tmp_path):
    rows = people_in_order(3, PADDED)
    regions = {name: "nsw"[k % 3] for k, name in enumerate(PADDED)}
    table = pa.table(
        {"user": [row[0] for row in rows], "time": [row[1] for row in rows], "state": [row[2] for row in rows]}
    )
    by = table.append_column("region", pa.array([regions[row[0]] for row in rows]))
    parquet.write_table(by, tmp_path / "t.parquet", row_group_size=5)
    found = read_traces(tmp_path / "t.parquet", by="region")
    assert n_parts(found) > 3
    for name, counts in found.group_transitions():
        _, transitions, _ = counted([row for row in rows if regions[row[0]] == name])
        assert transitions == named(found, counts)
    spelled = by.set_column(
        3, "region", pa.array([f" {regions[row[0]]}" if row[0] < "p010" else regions[row[0]] for row in rows])
    )
    parquet.write_table(spelled, tmp_path / "spelled.parquet", row_group_size=5)
    again = read_traces(tmp_path / "spelled.parquet", by="region")
    for (name, counts), (same, expected) in zip(again.group_transitions(), found.group_transitions(), strict=True):
        assert name == same and (counts == expected).all()
    moved = by.set_column(3, "region", pa.array([regions[row[0]] for row in rows[:-1]] + ["moved"]))
    parquet.write_table(moved, tmp_path / "t.parquet", row_group_size=5)
    with pytest.raises(TraceError, match=f"user '{PADDED[-1]}' is in more than one group"):
        read_traces(tmp_path / "t.parquet", by="region")


@pytest.mark.parametrize("wrong", ["falls", "repeats"])
def test_refusals_of_parts_equal_those_of_the_whole(wrong, tmp_path, monkeypatch):
    """The first user is the first by name, in whichever part."""
    rows = people_in_order(1, NUMBERS)
    for name in ("7", "29", "33"):
        last = max(k for k, row in enumerate(rows) if row[0] == name)
        if wrong == "falls":
            rows[last - 1], rows[last] = rows[last], rows[last - 1]
        else:
            rows[last] = (name, rows[last - 1][1], "c")
    path = written(rows, tmp_path / "t.parquet", int)
    with pytest.raises(TraceError) as in_parts:
        read_traces(path)
    assert "'29'" in str(in_parts.value)
    monkeypatch.setattr(embedded, "LEAST_CELLS", 10**6)
    with pytest.raises(TraceError) as whole:
        read_traces(path)
    assert str(in_parts.value) == str(whole.value)


@pytest.mark.parametrize("name", [" p010", "p010 "])
def test_names_with_blanks_are_read_at_once(name, tmp_path):
    """A name may sort differently without its blanks."""
    rows = people_in_order(2, [*PADDED[:10], name, *PADDED[11:]])
    spoilt = [(PADDED[10] if t % 2 else who, t, state) if who == name else (who, t, state) for who, t, state in rows]
    found = read_traces(written(spoilt, tmp_path / "t.parquet"), sort=True)
    assert n_parts(found) == 1
    histogram, transitions, of_user = counted([(who.strip(), t, state) for who, t, state in spoilt])
    assert tables_of(found) == (histogram, transitions, {one: of_user[one] for one in found.users})


def test_shuffled_people_are_read_at_once(tmp_path):
    rows = people_in_order(4, NUMBERS)
    random.Random(0).shuffle(rows)
    found = read_traces(written(rows, tmp_path / "t.parquet", int), sort=True)
    assert n_parts(found) == 1
    assert tables_of(found)[:2] == counted(rows)[:2]


def test_progress_is_reported_over_all_parts(tmp_path):
    path, said = written(people_in_order(5, NUMBERS), tmp_path / "t.parquet", int), []
    with watched(lambda doing, share: said.append((doing, share))):
        read_traces(path)
    assert {doing for doing, _ in said} == {"reading traces"}
    shares = [share for _, share in said]
    assert all(0.0 <= share <= 1.0 for share in shares)
    # Two rounds of all parts, people and transitions; each goes from 0 to 1 without falling back.
    falls = [k for k in range(1, len(shares)) if shares[k] < shares[k - 1]]
    assert len([k for k in falls if shares[k - 1] > 0.9]) == len(falls)


GROUPS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20), st.integers(1, 9)), max_size=40).map(
    lambda groups: [(low, low + width, rows) for low, width, rows in groups]
)


@given(GROUPS)
def test_boundaries_of_parts_reread_few_rows(groups):
    found = cuts(groups)
    assert list(found) == sorted(set(found))
    edges = [float("-inf"), *found, float("inf")]
    total = sum(rows for _, _, rows in groups)
    read = sum(rows for first, end in pairwise(edges) for low, high, rows in groups if low < end and high >= first)
    assert total <= read <= 1.5 * total
    assert 12 * len(found) <= total
