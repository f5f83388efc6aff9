"""`temporaldp init`: what it proposes for tables of several kinds, and the way from a table to a report."""

from __future__ import annotations

import json
import math
import re
import shlex
import tomllib
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from command import SAMPLE, refused, temporaldp
from temporaldp import (
    InputError,
    Ledger,
    load_released,
    plan_budget,
    read_traces,
    temporal_leakage,
)
from temporaldp.data.files.plans import plan_from
from temporaldp.publish.project.document import read_settings
from temporaldp.publish.project.inputs import gather
from temporaldp.publish.project.looking import look
from temporaldp.publish.project.proposal import propose
from temporaldp.publish.project.release import setup_of
from transport_agency import write_table


def proposed(folder, table, *arguments, is_refused=False):
    """The keys of the file that is written, and what is asked; the other commands must accept the file, or init says not."""
    made = temporaldp("init", table, *arguments, cwd=folder)
    assert made.returncode == (2 if is_refused else 0), made.stderr
    asked, text = " ".join(made.stderr.split()), (folder / "temporaldp.toml").read_text()
    for listed in ("", "# "):  # as it stands, and with all that stands in comments confirmed
        (folder / "tried.toml").write_text(re.sub(f"^{listed}states =", "states =", text, flags=re.MULTILINE))
        settings = read_settings(folder / "tried.toml", ["correlation.prior=1"])
        if is_refused:
            with pytest.raises(InputError) as refusal:
                gather(settings)
            assert "Complete traces.time" in asked or str(refusal.value).partition(": ")[2] in asked
        else:
            found = gather(settings)
            assert found.states == found.trajectories.states
            assert f"states = {json.dumps(found.states)}" in text
    return tomllib.loads(text), asked


@pytest.mark.long
def test_wide_table(tmp_path):
    found, asked = proposed(tmp_path, SAMPLE)
    assert (found["traces"]["layout"], found["traces"]["user"]) == ("wide", "user")
    assert asked.count("warning") == 2 and "are its states public" in asked
    read_again = gather(read_settings(tmp_path / "temporaldp.toml")).trajectories
    assert read_again.histogram().tolist() == read_traces(SAMPLE).histogram().tolist()


@pytest.mark.long
def test_states_per_step_with_column_names(tmp_path):
    rows = [f"p{user};2024-01-01 {t:02d}:00;{'ab'[(t + user) % 2]}" for user in range(3) for t in range(5)]
    (tmp_path / "t.csv").write_text("\n".join(["patient;measured_at_time;stage", *rows]) + "\n")
    found, asked = proposed(tmp_path, "t.csv")
    assert {key: found["traces"][key] for key in ("user", "time", "state")} == {
        "user": "patient", "time": "measured_at_time", "state": "stage",
    }  # fmt: skip
    assert "every" not in found["traces"] and asked.count("warning") == 2
    assert "One state per user and step of 1h." in (tmp_path / "temporaldp.toml").read_text()


@pytest.mark.long
def test_states_of_the_protected_table_are_public_only_if_confirmed(tmp_path):
    (tmp_path / "t.csv").write_text("user,time,state\n1,0,a\n1,1,b\n2,0,b\n2,1,a\n")
    found, asked = proposed(tmp_path, "t.csv")
    assert "states" not in found["traces"]
    assert "are its states public, that is, known without looking at the table ('a', 'b')?" in asked
    assert "until then the list is taken from the protected table, outside of the guarantee" in asked
    learnt = temporaldp("learn", "--epsilon", "1", "-o", "learnt.json", cwd=tmp_path)
    assert "the list of states was taken from the protected table" in learnt.stderr
    assert "So does the list of states" in gather(read_settings(tmp_path / "temporaldp.toml")).provenance.warning


def events(tmp_path, name="t.csv"):
    rng = np.random.default_rng(0)
    minutes = np.sort(rng.choice(24 * 60, 60, replace=False))
    rows = [
        f"u{k % 2},2024-01-01 {m // 60:02d}:{m % 60:02d}:{rng.integers(60):02d},{'xy'[k % 3 % 2]}"
        for k, m in enumerate(minutes)
    ]
    (tmp_path / name).write_text("\n".join(["user,time,state", *rows]) + "\n")


@pytest.mark.long
def test_events_are_put_on_a_grid_and_asked_about(tmp_path):
    events(tmp_path)
    found, asked = proposed(tmp_path, "t.csv")
    assert found["traces"]["fill"] == "last" and "every" in found["traces"]
    assert "rows are at odd times" in asked and "traces.fill" in asked


@pytest.mark.long
def test_the_history_of_events_may_be_events_or_wide(tmp_path):
    events(tmp_path)
    events(tmp_path, "past.csv")
    found, _ = proposed(tmp_path, "t.csv", "--history", "past.csv")
    assert found["history"] == {"path": "past.csv"}  # on the same grid
    every = {"30min": 30, "15min": 15, "1h": 60}[found["traces"]["every"]]
    steps = [f"2024-01-01 {t // 60:02d}:{t % 60:02d}" for t in range(0, 600, every)]
    rows = [",".join([f"h{user}", *["xy"[(user + k) % 3 % 2] for k in range(len(steps))]]) for user in range(4)]
    (tmp_path / "past.csv").write_text("\n".join([",".join(["user", *steps]), *rows]) + "\n")
    found, _ = proposed(tmp_path, "t.csv", "--history", "past.csv", "--overwrite")
    assert found["history"] == {"path": "past.csv", "layout": "wide"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("minutes", "every"),
    [
        ([0, 7, 27, 60], "15min"),  # all distances differ: 7, 20 and 33 minutes
        ([0, 61, 122, 183, 212, 241, 270, 300], "30min"),  # 61 and 29 minutes are as frequent as each other
        ([0, 61, 122, 183, 212, 241, 300, 361], "1h"),
    ],
)
def test_the_proposed_grid_does_not_depend_on_ties(tmp_path, minutes, every):
    rows = [f"u,2024-01-01 {m // 60:02d}:{m % 60:02d},{'xy'[k % 2]}" for k, m in enumerate(minutes)]
    (tmp_path / "t.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
    assert {look(tmp_path / "t.csv").settings["every"] for _ in range(2)} == {every}


@pytest.mark.long
def test_nothing_depends_on_threads_or_on_the_order_in_which_they_end(tmp_path, monkeypatch):
    rng, everything = np.random.default_rng(5), set()
    minutes = rng.permutation(24 * 60)[:300].reshape(30, 10)
    for name in ("t", "past"):
        rows = [(f"{name}{u}", f"2024-01-01T{m // 60:02d}:{m % 60:02d}:00", "xyz"[m * (u + 1) % 3])
                for u, each in enumerate(minutes) for m in sorted(each.tolist())]  # fmt: skip
        table = pa.table(dict(zip(("user", "time", "state"), zip(*rows, strict=True), strict=True)))
        parquet.write_table(table, tmp_path / f"{name}.parquet", row_group_size=20)
    monkeypatch.chdir(tmp_path)
    for run in range(4):
        monkeypatch.setenv("TEMPORALDP_THREADS", "14"[run % 2])
        proposal = propose(tmp_path / "t.parquet", tmp_path / "past.parquet", tmp_path / "temporaldp.toml")
        (tmp_path / "temporaldp.toml").write_text(proposal.text)
        settings = read_settings(tmp_path / "temporaldp.toml")
        setup, adversary = setup_of(settings), gather(settings).everyone
        with setup.opened(settings.release.ledger) as stream:  # refuses another correlation than that of its digest
            began = stream.ledger.began
        audited = temporal_leakage(adversary, [0.1] * 24)
        planned = plan_budget(adversary, alpha=1.0, horizon=6)
        found = (proposal.text, *proposal.questions, setup.data.histogram().tobytes(), setup.data.users, began)
        everything.add((*found, audited.temporal.tobytes(), planned.epsilons.tobytes()))
    assert len(everything) == 1


@pytest.mark.long
def test_what_a_history_lacks_is_asked_about(tmp_path):
    (tmp_path / "t.csv").write_text("user,time,state\n1,2024-01-01,a\n1,2024-01-02,b\n2,2024-01-01,b\n2,2024-01-02,c\n")
    (tmp_path / "past.csv").write_text("user,time,state\n1,0,a\n1,1,b\n2,0,b\n2,1,a\n")
    asked = " ".join(temporaldp("init", "t.csv", "--history", "past.csv", cwd=tmp_path).stderr.split())
    assert "the history is never in 'c'" in asked and "one step is 86400 seconds, but 1 in the history" in asked


@pytest.mark.long
@pytest.mark.parametrize("states", [False, True])
def test_suggested_absent_state_protects_absence(tmp_path, states):
    rows = "user,time,state\n1,0,a\n1,1,b\n1,2,b\n2,0,a\n2,2,b\n"
    (tmp_path / "t.csv").write_text(rows)
    (tmp_path / "past.csv").write_text(rows)
    _, asked = proposed(tmp_path, "t.csv", "--history", "past.csv")
    assert "set traces.absent" in asked and "until then the list is that of past.csv" in asked
    lists = ["traces.states=a,b"] if states else []
    keys = ["traces.absent=away", "correlation.prior=1", *lists]
    found = gather(read_settings(tmp_path / "temporaldp.toml", keys))
    assert found.states == ("a", "b", "away")


@pytest.mark.long
@pytest.mark.parametrize(
    ("content", "asked"),
    [
        ("user,time,state\n1,0,a\n1,0,b\n1,1,a\n2,0,a\n2,1,b\n", "1 pair of user and time has several states"),
        ("user,time,state\n1,0,a\n1,1,b\n1,2,b\n2,0,a\n", "users have a row at 67 % of 3 steps"),
        (
            "user,start_time,end_time,state,status\n1,0,1,a,x\n1,1,2,b,y\n2,0,1,b,y\n",
            "the time is read from column 'start_time', but may also be in 'end_time': then --set traces.time=end_time",
        ),
        (
            "user,time,state,status\n1,0,a,x\n1,1,b,y\n2,0,b,y\n",
            "the state is read from column 'state', but may also be in 'status': then --set traces.state=status",
        ),
        (
            "user,from,until,zone\n1,2024-01-01,2024-01-02,a\n1,2024-01-02,2024-01-03,b\n",
            "is a user absent from the end of an interval until the next one begins?",
        ),
        (
            "\n".join(
                [
                    "patient,ward,arrived,left",
                    *(f"{k % 4},{'AB'[k % 2]},2024-01-{k},2024-01-{k + 2}" for k in range(10, 22)),
                ]
            ),
            "is a user absent from the end of an interval until the next one begins?",
        ),
        (
            "id;Zeit;Ort\n1;01.04.2024 14:00;A\n2;01.04.2024 15:00;B\n",
            "is every column but 'id' a step ('Zeit', 'Ort')?",
        ),
        ("user,mon,tue,wed\n1,a,b,a\n2,b,a,a\n", "is every column but 'user' a step ('mon', 'tue', 'wed')?"),
        ('"id";"time";"state, zone, or place, roughly"\n1;0;a\n1;1;b\n', "are its states public"),
        ("user,time,state\n1,2024-01-01,a\n1,2024-02-01,b\n1,2024-03-01,a\n", "are its states public"),
        ("user,time,state\n1,0,true\n1,1,FALSE\n", "('FALSE', 'true')"),
        ("user,stage_day1,stage_day2,stage_day3\n1,a,b,a\n2,b,a,a\n", "are its states public"),
        ("user,time,state\n1,2024/04/01 14:00,a\n1,2024/04/01 15:00,b\n", "are its states public"),
        (
            "user,time,state\n1,01/02/2024,a\n1,02/02/2024,b\n2,01/02/2024,b\n",
            "times such as '01/02/2024' fit '%d/%m/%Y', '%m/%d/%Y': day or month first? The first is "
            "assumed; otherwise --set traces.time_format='%m/%d/%Y'",
        ),
        ("person,wave 1,wave 2,wave 3\n1,a,b,a\n2,b,a,a\n", "are its states public"),
        ("person,T1,T2,T10\n1,a,b,a\n2,b,a,a\n", "are its states public"),
    ],
)
def test_decisions_of_the_owner_are_requested(content, asked, tmp_path):
    (tmp_path / "t.csv").write_text(content)
    assert asked in proposed(tmp_path, "t.csv")[1]


@pytest.mark.long
def test_columns_of_both_ends_of_trips_are_a_pair_and_answers_keep_the_others(tmp_path):
    rows = [
        f"m{k % 4},1,2024-01-{k // 4 + 1:02} 0{k % 4}:00,2024-01-{k // 4 + 1:02} 0{k % 4}:30,{k % 3 + 1},{(k + 1) % 3 + 1}"
        for k in range(80)
    ]
    header = "medallion,VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,PULocationID,DOLocationID"
    (tmp_path / "t.csv").write_text("\n".join([header, *rows]) + "\n")
    (tmp_path / "zones.csv").write_text("LocationID,Zone\n1,North\n2,South\n3,South\n")
    for given in ({}, {"states_from": str(tmp_path / "zones.csv")}, {"end_state": "DOLocationID", "every": "1d"}):
        found = look(tmp_path / "t.csv", given)
        names = ("user", "time", "end", "state", "end_state")
        expected = ("medallion", "tpep_pickup_datetime", "tpep_dropoff_datetime", "PULocationID", "DOLocationID")
        assert tuple(found.settings[name] for name in names) == expected
        assert found.traces is not None


def test_a_wrong_year_is_asked_about_before_a_grid_is_made(tmp_path):
    rows = [f"u{k % 3},2024-01-{k % 28 + 1:02},{'ab'[k % 2]}" for k in range(200)]
    (tmp_path / "t.csv").write_text("\n".join(["user,time,state", *rows, "u1,1921-01-03,a"]) + "\n")
    found = look(tmp_path / "t.csv", {"every": "1h"})
    assert found.traces is None
    assert "a row has the time 1921-01-03, but 98 % of all are from 2024-01-01 to 2024-01-28" in found.questions[-1]


@pytest.mark.long
@pytest.mark.parametrize(
    ("content", "asked"),
    [
        ("user,time,state\n1,soon,a\n1,later,b\n", "is not a number, date or timestamp"),
        (
            "user,time,state\n1,2024/04/01 14:00:00,a\n1,2024/04/01 15 o'clock,b\n",
            "time '2024/04/01 14:00:00' in data row 1",
        ),
        ("time,state\n0,a\n1,b\n", "no column 'user' (the file has 'time', 'state')"),
        ("user,time,state\n1,0,a\n1,1,a\n", "expected at least 2 different states"),
        ("user,time,state\n1,1,a\n1,0,b\n", "times are not in order"),
        ("user,t1,t2,t3\n1,a,b,\n2,b,b,a\n", "(--set traces.gaps=true)"),
        ("id;Zeit;Ort\n1;01.04.2024 14:00;A\n1;01.04.2024 15:00;B\n", "columns are time and state ('Zeit', 'Ort')?"),
    ],
)
def test_init_refuses_files_that_other_commands_refuse(content, asked, tmp_path):
    (tmp_path / "t.csv").write_text(content)
    assert asked in proposed(tmp_path, "t.csv", is_refused=True)[1]


def test_requested_columns_can_be_named(tmp_path):
    (tmp_path / "t.csv").write_text("id;Zeit;Ort\n1;2024-04-01 14:00;A\n1;2024-04-01 15:00;B\n")
    (tmp_path / "past.csv").write_text("id;Zeit;Ort\n1;0;A\n")
    temporaldp("init", "t.csv", cwd=tmp_path)
    found = read_settings(tmp_path / "temporaldp.toml", ["traces.time=Zeit", "traces.state=Ort", "correlation.prior=1"])
    assert gather(found).states == ("A", "B")


def test_names_of_columns_with_control_characters_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text('user,"t\n1",t2\n1,a,b\n')
    assert "line breaks or control characters" in " ".join(refused("init", "t.csv", cwd=tmp_path).split())


@pytest.mark.long
@pytest.mark.parametrize("output", [[], ["-o", "other file.toml"]])
def test_printed_advice_works(tmp_path, output):
    for name in ("t.csv", "past.csv"):
        (tmp_path / name).write_text("user,time,state\n1,0,a\n1,1,b\n1,2,a\n2,0,b\n2,1,b\n2,2,a\n")
    told = temporaldp("init", "t.csv", *output, cwd=tmp_path, columns="1000").stdout.splitlines()[-1]
    for has_history in (False, True):
        assert "Next: temporaldp" in told
        advised = told.partition("Next: ")[2].replace("OTHER_TABLE", "past.csv")
        for command in re.split(r", then |; for a temporal level, (?:which needs other traces, )?", advised):
            program, *words = shlex.split(command)
            if words[0] == "release" and not has_history:  # the next advice is for another guarantee
                continue
            done = temporaldp(*words, cwd=tmp_path, columns="1000")
            assert program == "temporaldp" and done.returncode in ({0, 3} if words[0] == "audit" else {0}), done.stderr
            told = done.stdout.splitlines()[-1]


def test_an_existing_file_is_kept(tmp_path):
    (tmp_path / "temporaldp.toml").write_text("[traces]\n")
    assert "--overwrite" in refused("init", SAMPLE, cwd=tmp_path)
    assert "does not exist" in refused("init", "none.csv", "-o", "other.toml", cwd=tmp_path)


@pytest.mark.long
def test_from_the_table_of_an_agency_to_a_report_in_four_commands(tmp_path):
    write_table(tmp_path / "visits.csv", n_people=300, days=1, seed=1)
    write_table(tmp_path / "past.parquet", n_people=600, days=2, seed=2, start="2024-02-26", prefix="H")
    for command in (("init", "visits.csv", "--history", "past.parquet"), ("plan",), ("release",), ("report",)):
        done = temporaldp(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert len(command) <= 4
    assert (tmp_path / "published.csv").read_text().startswith("timestamp,zone,estimate,low,high,noisy,scale,epsilon")
    released = load_released(tmp_path / "published.csv")
    with Ledger(tmp_path / "release.db") as ledger:
        assert len(ledger) == 96 == len(released.times)
        (kept,) = [event.details for event in ledger.events if event.kind == "plan"]
    plan = plan_from(kept)
    assert plan.alpha == 1.0 and plan.leakage.worst <= 1.0 and plan.guarantee == released.guarantee
    assert plan.scales.tolist() == pytest.approx(released.scales.tolist(), rel=1e-5)
    rows = len((tmp_path / "visits.csv").read_text().splitlines()) - 1
    people = round(rows / 96)
    assert people < 300  # a row is missing here and there
    for page in ("report.html", "published.md"):
        assert f"{people} people at a time" in (tmp_path / page).read_text()
    again = temporaldp("release", cwd=tmp_path)  # as a nightly job runs it
    assert again.returncode == 0 and "96 steps now" in again.stdout
    assert load_released(tmp_path / "published.csv").counts.tolist() == released.counts.tolist()


@pytest.mark.long
def test_a_running_daily_table_is_compared_with_a_year_of_days(tmp_path):
    """`init` and `plan` give the same advice, and the year is 366 days long."""
    rng, today = np.random.default_rng(0), datetime.now(UTC).date()
    for name, first, days in (("past", 60, 30), ("now", 5, 5)):
        rows = [
            f"{name}{person},{today - timedelta(days=first - day)},{'ab'[int(rng.random() < 0.5)]}"
            for person in range(60)
            for day in range(days)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(["person,day,ward", *rows]) + "\n")
    made = temporaldp("init", "now.csv", "--history", "past.csv", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    planned = json.loads(temporaldp("plan", "--json", cwd=tmp_path).stdout)
    assert f"# {planned['advice']}\n" in (tmp_path / "temporaldp.toml").read_text()
    assert "The user level within 366 steps" in planned["advice"]
    year = {row["delta"]: row["noise"] for row in planned["guarantees"] if row["guarantee"] == "user:366"}
    odds = math.exp(-1.0 / (2 * 366))  # discrete Laplace noise of scale 2 / epsilon, with an epsilon of 1 / 366
    assert year[0.0] == pytest.approx(2.0 * odds / (1.0 - odds**2), rel=1e-9)


@pytest.mark.long
def test_amounts_of_money_are_no_people(tmp_path):
    """Nearly every row has another one; the column of people is found by its name, or because its entries repeat."""
    rng = np.random.default_rng(0)
    for name in ("Personennummer", "Nr"):
        rows = [
            f"{1000 + user};01.{month:02d}.2024;{'AB'[(user + month) % 2]};{rng.integers(10**5) / 100:.2f}".replace(
                ".", ",", 0
            )
            for user in range(40)
            for month in range(1, 7)
        ]
        rows = [re.sub(r"\.(\d\d)$", r",\1", row) for row in rows]
        (tmp_path / "t.csv").write_text("\n".join([f"{name};Datum;Status;Einkommen", *rows, ";;;"]) + "\n")
        found, _ = proposed(tmp_path, "t.csv", "--overwrite")
        assert (found["traces"]["user"], found["traces"]["time"], found["traces"]["state"]) == (name, "Datum", "Status")
        assert "One state per user and step of 1 months." in (tmp_path / "temporaldp.toml").read_text()


@pytest.mark.long
@pytest.mark.parametrize(
    "days",
    [
        ["2024-01-22", "2024-02-22", "2024-03-22", "2024-04-22"],
        ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"],
    ],
)
def test_one_day_of_each_month_is_a_step_of_a_month(days, tmp_path):
    rows = [f"p{user},{day},{'ab'[(t + user) % 2]}" for user in range(4) for t, day in enumerate(days)]
    (tmp_path / "t.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
    found, _ = proposed(tmp_path, "t.csv")
    assert "every" not in found["traces"] and found["privacy"]["horizon"] == 4
    made = read_traces(tmp_path / "t.csv")
    assert (made.step, made.times, made.consecutive.all()) == ("1 months", tuple(days), True)
    level = ("--set", "privacy.guarantee=user:6", "--alpha", "1", "--set", "traces.states=a,b")
    for n_days in range(1, 5):  # a stream, a month at a time
        (tmp_path / "now.csv").write_text(
            "\n".join(["user,time,state", *(row for row in rows if row[3:13] in days[:n_days])])
        )
        done = temporaldp("release", "now.csv", *level, "--ledger", "r.db", "-o", "out.csv", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert load_released(tmp_path / "out.csv").times == tuple(days)


@pytest.mark.long
def test_what_is_given_for_a_history_is_written_and_a_stream_has_no_horizon(tmp_path):
    """A condition on rows is not taken over from the protected table, also where it is the same."""
    for name, day in (("t", 8), ("past", 1)):
        rows = [f"p{user}{name},2024-01-{day + t:02d},{'ab'[(t * user) % 2]},ok" for user in range(9) for t in range(7)]
        (tmp_path / f"{name}.csv").write_text(
            "\n".join(["user,time,state,kind", *rows, f"q,2024-01-{day:02d},Z,test"]) + "\n"
        )
    chosen = ["--set", "traces.where=kind = 'ok'", "--set", "history.where=kind = 'ok'"]
    made = temporaldp("init", "t.csv", "--history", "past.csv", *chosen, "--stream", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    found = tomllib.loads((tmp_path / "temporaldp.toml").read_text())
    assert found["history"]["where"] == "kind = 'ok'" and "horizon" not in found["privacy"]
    assert gather(read_settings(tmp_path / "temporaldp.toml")).states == ("a", "b")


@pytest.mark.long
def test_codes_below_zero_are_asked_about_and_groups_are_named(tmp_path):
    rows = [f"h{k},{'ns'[k % 2]},{k % 3 + 1},{-9 if k % 5 == 0 else 2},{k % 2 + 1}" for k in range(20)]
    (tmp_path / "panel.csv").write_text("\n".join(["id,region,wave 1,wave 2,wave 3", *rows]) + "\n")
    refusal = temporaldp("init", "panel.csv", cwd=tmp_path).stderr
    assert "--set traces.by=COLUMN" in " ".join(refusal.split())
    asked = temporaldp("init", "panel.csv", "--set", "traces.by=region", "--overwrite", cwd=tmp_path).stderr
    assert "Then --set traces.missing=-9 --set traces.gaps=true" in " ".join(asked.split())


@pytest.mark.long
def test_a_guarantee_that_is_given_is_written_beside_other_advice(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{who},{day},{'ab'[int(rng.random() < 0.5)]}" for who in range(40) for day in range(6)]
    (tmp_path / "t.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
    other = temporaldp("init", "t.csv", "--set", "privacy.guarantee=user:2", cwd=tmp_path)
    assert other.returncode == 0, other.stderr
    settings = read_settings(tmp_path / "temporaldp.toml")
    assert settings.privacy.guarantee == "user:2" and settings.privacy.delta is None
    assert "The guarantee user:2 was given. The advice is another one: Take the user level" in settings_text(tmp_path)
    assert "is user:2 wanted?" in other.stderr and "temporaldp release" in other.stdout
    same = temporaldp("init", "t.csv", "--set", "privacy.guarantee=user", "--overwrite", cwd=tmp_path)
    assert "wanted?" not in same.stderr and "was given" not in settings_text(tmp_path)


def test_states_that_differ_in_spelling_alone_are_asked_about(tmp_path):
    rows = [
        f"{who},{day},{state}" for who in range(9) for day, state in enumerate(("At home", "at_home", "work", "-", "+"))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
    asked = " ".join(propose(tmp_path / "t.csv", None).questions)
    assert "are 'At home', 'at_home' one state?" in asked.replace(" and ", ", ") and asked.count("one state?") == 1


def settings_text(folder):
    return (folder / "temporaldp.toml").read_text()


@pytest.mark.long
def test_the_error_that_a_proposal_states_is_that_of_the_next_plan(tmp_path):
    """Also where the release begins as the history does: everybody at home."""
    rng = np.random.default_rng(6)
    for name in ("past", "now"):
        rows = []
        for user in range(60):
            states = ["home"]
            while len(states) < 8:
                states.append(states[-1] if rng.random() < 0.8 else ("work" if states[-1] == "home" else "home"))
            rows.append(",".join([f"{name}{user}", *states]))
        (tmp_path / f"{name}.csv").write_text("\n".join([",".join(["user", *map(str, range(1, 9))]), *rows]) + "\n")
    done = temporaldp("init", "now.csv", "--history", "past.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "temporaldp.toml").read_text()
    assert "same_start = true" in written
    plan = json.loads(temporaldp("plan", "--json", cwd=tmp_path).stdout)
    errors = re.findall(r"simulated error of ([\d.]+) people", written)
    assert errors and plan["advice"].count("simulated error") == len(errors)
    assert errors == re.findall(r"simulated error of ([\d.]+) people", plan["advice"])
