"""Counts in place of traces: the same adversaries and the same release, without anybody's values."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from command import SAMPLE
from data_sets import sleep_sample
from temporaldp import InputError, estimate_adversaries, read_counts, read_traces
from temporaldp.apps.cli import app
from temporaldp.base.errors import StateError, TraceError


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert (result.exit_code == code) or (code == 2 and result.exception is not None), (result.output, result.exception)
    return result


def counted_tables(folder):
    """The sample's two tables as files."""
    sample = sleep_sample()
    transitions = [
        (one, other, int(n))
        for one, row in zip(sample.states, sample.transition_counts(), strict=True)
        for other, n in zip(sample.states, row, strict=True)
    ]
    counts = [
        (time, state, int(n))
        for time, row in zip(sample.times, sample.histogram(), strict=True)
        for state, n in zip(sample.states, row, strict=True)
    ]
    pd.DataFrame(transitions, columns=["from", "to", "count"]).to_csv(folder / "moves.csv", index=False)
    pd.DataFrame(counts, columns=["time", "state", "count"]).to_parquet(folder / "counts.parquet", index=False)
    return folder / "moves.csv", folder / "counts.parquet"


def test_counts_agree_with_the_traces(tmp_path):
    moves, counts = counted_tables(tmp_path)
    sample = sleep_sample()
    found = read_counts(transitions=moves, counts=counts, states=sample.states)
    assert np.array_equal(found.transition_counts(), sample.transition_counts())
    assert np.array_equal(found.histogram(), sample.histogram())
    assert (found.times, found.n_users, found.step) == (sample.times, 151, sample.step)
    one, other = next(estimate_adversaries(found)), next(estimate_adversaries(sample))
    assert one.forward == other.forward
    assert one.backward == other.backward


@pytest.mark.long
def test_commands_accept_counts_in_place_of_traces(tmp_path):
    moves, counts = counted_tables(tmp_path)
    states = ("--set", "traces.states=W,R,N1,N2,N3")
    with_traces = json.loads(run("audit", SAMPLE, "--epsilon", "0.1", *states, "--json").stdout)
    given = json.loads(
        run(
            "audit",
            "--set",
            f"traces.transitions={moves}",
            "--set",
            f"traces.counts={counts}",
            "--epsilon",
            "0.1",
            *states,
            "--json",
        ).stdout
    )
    assert given["temporal"] == with_traces["temporal"]
    plan = tmp_path / "plan.json"
    run("plan", "--set", f"traces.transitions={moves}", "--alpha", "1", *states, "--horizon", "47", "-o", plan)
    out = tmp_path / "r.csv"
    run("release", "--set", f"traces.counts={counts}", "--plan", plan, "-o", out)
    assert out.is_file()


def test_people_and_groups():
    moves = pd.DataFrame(
        {"from": list("aabb"), "to": list("abab"), "count": [3, 1, 2, 5], "user": list("xxyy"), "region": list("nnss")}
    )
    found = read_counts(transitions=moves, by="region")
    assert {name: counts.tolist() for name, counts in found.user_transitions()} == {
        "x": [[3, 1], [0, 0]],
        "y": [[0, 0], [2, 5]],
    }
    assert list(found.users) == ["x", "y"]
    assert [one.name for one in estimate_adversaries(found, prior=1.0, per_user=True)] == ["x", "y"]
    assert [one.name for one in estimate_adversaries(found, prior=1.0, per_group=True)] == ["n", "s"]
    counts = pd.DataFrame({"time": [1, 1, 2, 2, 3], "state": list("ababa"), "count": [1, 2, 3, 4, 5]})
    assert read_counts(counts=counts).histogram().tolist() == [[1, 2], [3, 4], [5, 0]]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"from": ["a"], "to": ["b"]}, "no column 'count'"),
        ({"from": ["a"], "to": ["b"], "count": [-1]}, "whole numbers from 0 in column 'count', got '-1'"),
        ({"from": ["a"], "to": ["b"], "count": [1.5]}, "got '1.5'"),
        ({"from": ["a"], "to": [None], "count": [1]}, "column 'to' has no value in data row 1"),
    ],
)
def test_invalid_tables_of_counts_are_refused(table, message):
    with pytest.raises(TraceError, match=message):
        read_counts(transitions=pd.DataFrame(table))


def test_missing_tables_are_requested():
    with pytest.raises(InputError, match="a table of transitions, of counts, or both"):
        read_counts()
    moves = pd.DataFrame({"from": ["a"], "to": ["b"], "count": [1]})
    with pytest.raises(StateError, match="state 'b' in column 'to'"):
        read_counts(transitions=moves, states=["a", "c"])
    found = read_counts(transitions=moves)
    for asked in (found.histogram, lambda: found.times, lambda: found.users, lambda: list(found.group_transitions())):
        with pytest.raises(InputError, match=r"expected a table|not counted"):
            asked()


@pytest.mark.long
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_condition_on_the_rows_of_a_file(suffix, tmp_path):
    table = pd.DataFrame(
        {"user": list("xxxyyy"), "time": [1, 2, 3] * 2, "state": list("abaabb"), "home region": list("nnnsss")}
    )
    place = tmp_path / f"t{suffix}"
    if suffix == ".csv":
        table.to_csv(place, index=False)
    else:
        table.to_parquet(place, index=False)
    assert read_traces(place, where="\"user\" = 'y'").transition_counts().tolist() == [[0, 1], [0, 1]]
    assert read_traces(place, where="\"home region\" = 'n'").users == ("x",)
    part = read_traces(place, where='"time" >= 2' if suffix == ".parquet" else 'CAST("time" AS INT) >= 2')
    assert (part.times, part.histogram().tolist()) == (("2", "3"), [[0, 2], [1, 1]])
    assert part.transition_counts().tolist() == [[0, 0], [1, 1]]
    with pytest.raises(InputError, match=r"expected where to be an SQL condition .*'age'|expected where .*\"age\""):
        read_traces(place, where="age > 7")
    with pytest.raises(TraceError, match=r"\(rows chosen by where\): the file has a header but no rows"):
        read_traces(place, where="\"time\" > '7'")
    with pytest.raises(InputError, match="filter other tables before passing them"):
        read_traces(table, where='"time" > 7')
    (tmp_path / "odd.csv").write_text("user,time,state\nx,1,a\nx,secret,b\n")
    with pytest.raises(TraceError, match="TRY_CAST") as odd:
        read_traces(tmp_path / "odd.csv", where='CAST("time" AS INT) > 0')
    assert "secret" not in str(odd.value)
    (tmp_path / "bad.csv").write_text("user,time,state,keep\nx,1,a,1\nx,2,,1\nx,2,b,0\n")
    with pytest.raises(TraceError, match="no value in data row 2"):  # rows are counted before the condition
        read_traces(tmp_path / "bad.csv", where="keep = '1'")


def test_a_condition_on_the_rows_of_counts(tmp_path):
    pd.DataFrame({"from": list("aabb"), "to": list("abab"), "count": [3, 1, 2, 5], "region": list("nnss")}).to_csv(
        tmp_path / "moves.csv", index=False
    )
    north = read_counts(transitions=tmp_path / "moves.csv", where="region = 'n'", states=["a", "b"])
    assert north.transition_counts().tolist() == [[3, 1], [0, 0]]


@pytest.mark.long
def test_audit_of_events_with_few_transitions_warns_and_gives_no_verdict(tmp_path):
    rows = [(f"p{k % 40}", f"2024-01-01T{k // 30:02d}:{k % 30 + k // 90:02d}", "ab"[k * k % 3 % 2]) for k in range(400)]
    rows += [("p0", "2024-01-01T23:00", "a"), ("p0", "2024-01-01T23:01", "b"), ("p0", "2024-01-01T23:02", "a")]
    pd.DataFrame(rows, columns=["user", "time", "state"]).to_csv(tmp_path / "e.csv", index=False)
    asked = (
        "audit",
        tmp_path / "e.csv",
        "--set",
        "traces.sort=true",
        "--set",
        "correlation.prior=1",
        "--epsilon",
        "0.1",
        "--horizon",
        "10",
    )
    result = run(*asked)
    assert result.stderr.startswith("warning: these traces show few transitions for their steps")
    assert "times epsilon" not in result.stdout
    assert "not determined by so few transitions" in " ".join(result.stdout.split())
    run(*asked, "--alpha", "100", code=3)
    stepped = run(*asked, "--set", "traces.every=1h", "--set", "traces.fill=last")
    assert "times epsilon" in stepped.stdout
    rare = [*rows, ("p1", "2024-01-01T22:00", "c")]
    pd.DataFrame(rare, columns=["user", "time", "state"]).to_csv(tmp_path / "e.csv", index=False)
    refused = run(*asked[:4], "--epsilon", "0.1", code=2)
    assert "traces.every=1h" in str(refused.exception)
    assert "correlation.prior" not in str(refused.exception)


def test_pickled_traces_need_no_file(tmp_path):
    file = tmp_path / "traces.csv"
    file.write_text("user,time,state,region\nAnn,1,a,n\nAnn,2,b,n\nBo,1,b,s\nBo,2,b,s\nBo,3,a,s\n")
    stored = pickle.dumps(read_traces(file, by="region"))
    file.unlink()
    traces = pickle.loads(pickle.dumps(pickle.loads(stored)))
    assert (traces.users, traces.times) == (("Ann", "Bo"), ("1", "2", "3"))
    assert [name for name, _ in traces.group_transitions()] == ["n", "s"]
    assert traces.codes.tolist() == [[0, 1, -1], [1, 1, 0]]
    assert traces.histogram().tolist() == [[1, 1], [0, 2], [1, 0]]
    assert {name: counts.tolist() for name, counts in traces.group_transitions()} == {
        "n": [[0, 1], [0, 0]], "s": [[0, 0], [1, 1]],
    }  # fmt: skip


@pytest.mark.long
def test_copies_of_the_sample_are_the_same():
    sample = sleep_sample()
    for same in (pickle.loads(pickle.dumps(sample)), copy.deepcopy(sample), copy.copy(sample)):
        assert (repr(same), same.users) == (repr(sample), sample.users)
        np.testing.assert_array_equal(same.codes, sample.codes)
        for (name, counts), (own, known) in zip(same.user_transitions(), sample.user_transitions(), strict=True):
            assert name == own and (counts == known).all()
