"""`temporaldp init`: what it proposes for tables of several kinds, and the way from a table to a report."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

from command import SAMPLE, refused, temporaldp
from temporaldp import Ledger, load_released, read_traces, temporal_leakage
from temporaldp.project.document import read_settings
from temporaldp.project.inputs import read
from transport_agency import write_table


def proposed(folder, table, *arguments):
    made = temporaldp("init", table, *arguments, cwd=folder)
    assert made.returncode == 0, made.stderr
    return tomllib.loads((folder / "temporaldp.toml").read_text()), " ".join(made.stderr.split())


def test_a_wide_table(tmp_path):
    found, asked = proposed(tmp_path, SAMPLE)
    assert (found["traces"]["layout"], found["traces"]["user"]) == ("wide", "user")
    assert found["traces"]["states"] == ["N1", "N2", "N3", "R", "W"]
    assert asked == ""
    read_again = read(read_settings(tmp_path / "temporaldp.toml").traces)
    assert read_again.histogram().tolist() == read_traces(SAMPLE).histogram().tolist()


def test_states_per_step_with_names_of_their_own(tmp_path):
    rows = [f"p{user};2024-01-01 {t:02d}:00;{'ab'[(t + user) % 2]}" for user in range(3) for t in range(5)]
    (tmp_path / "t.csv").write_text("\n".join(["patient;measured_at_time;stage", *rows]) + "\n")
    found, asked = proposed(tmp_path, "t.csv")
    assert {key: found["traces"][key] for key in ("user", "time", "state", "states")} == {
        "user": "patient", "time": "measured_at_time", "state": "stage", "states": ["a", "b"],
    }  # fmt: skip
    assert "every" not in found["traces"] and asked == ""
    assert read(read_settings(tmp_path / "temporaldp.toml").traces).n_times == 5


def test_events_are_put_on_a_grid_and_asked_about(tmp_path):
    rng = np.random.default_rng(0)
    minutes = np.sort(rng.choice(24 * 60, 60, replace=False))
    rows = [
        f"u{k % 2},2024-01-01 {m // 60:02d}:{m % 60:02d}:{rng.integers(60):02d},{'xy'[k % 3 % 2]}"
        for k, m in enumerate(minutes)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
    found, asked = proposed(tmp_path, "t.csv")
    assert found["traces"]["fill"] == "last" and "every" in found["traces"]
    assert "rows are at odd times" in asked and "traces.fill" in asked


@pytest.mark.parametrize(
    ("content", "asked"),
    [
        ("user,time,state\n1,0,a\n1,0,b\n1,1,a\n2,0,a\n2,1,b\n", "1 pairs of user and time have several states"),
        ("user,time,state\n1,0,a\n1,1,b\n1,2,b\n2,0,a\n", "users have a row at 67 % of 3 steps"),
        ("user,time,state\n1,soon,a\n1,later,b\n", "neither dates nor numbers"),
        ("time,state\n0,a\n1,b\n", "no column names the user"),
        ("user,time,state\n1,0,a\n1,1,a\n", "1 different entries"),
    ],
)
def test_what_only_the_owner_can_decide_is_asked(content, asked, tmp_path):
    (tmp_path / "t.csv").write_text(content)
    assert asked in proposed(tmp_path, "t.csv")[1]


def test_an_existing_file_is_kept(tmp_path):
    (tmp_path / "temporaldp.toml").write_text("[traces]\n")
    assert "--overwrite" in refused("init", SAMPLE, cwd=tmp_path)
    assert "does not exist" in refused("init", "none.csv", "-o", "other.toml", cwd=tmp_path)


@pytest.mark.long
def test_from_the_table_of_an_agency_to_a_report_in_four_commands(tmp_path):
    write_table(tmp_path / "visits.csv", n_people=300, days=1, seed=1)
    write_table(tmp_path / "past.parquet", n_people=600, days=2, seed=2, start="2024-02-26", prefix="H")
    for command in (("init", "visits.csv", "--history", "past.parquet"), ("audit",), ("release",), ("report",)):
        done = temporaldp(*command, cwd=tmp_path)
        assert done.returncode == (3 if command == ("audit",) else 0), done.stderr  # 0.1 a step leaks more than alpha
        assert len(command) <= 4
    assert (tmp_path / "published.csv").read_text().startswith("timestamp,zone,count,epsilon\n")
    released = load_released(tmp_path / "published.csv")
    with Ledger(tmp_path / "release.db") as ledger:
        assert len(ledger) == 96 == len(released.times)
        assert ledger[-1].leakage <= 1.0
        past = read_traces(tmp_path / "past.parquet", user="person_id", time="timestamp", state="zone")
        from temporaldp import estimate_adversaries

        assert temporal_leakage(next(estimate_adversaries(past)), ledger.epsilons).worst <= 1.0 + 1e-9
    assert "alpha" in (tmp_path / "report.html").read_text()
    again = temporaldp("release", cwd=tmp_path)  # as a nightly job runs it
    assert again.returncode == 0 and "96 steps now" in again.stdout
    assert load_released(tmp_path / "published.csv").counts.tolist() == released.counts.tolist()
