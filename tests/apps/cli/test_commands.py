"""The command as a user runs it: a process with arguments, output, an exit code, and files."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from command import SAMPLE, refused, temporaldp
from data_sets import sleep_sample
from temporaldp import (
    Adversary,
    TransitionMatrix,
    estimate_adversaries,
    load_plan,
    load_released,
    plan_budget,
    save_matrix,
    save_plan,
    temporal_leakage,
)


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    (adversary,) = estimate_adversaries(sleep_sample())
    save_plan(plan_budget(adversary, alpha=1.0, horizon=47), path)
    return path


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_names_stay_different_whatever_the_encoding_of_the_terminal(tmp_path, encoding):
    states = ("北京", "東京")
    rows = [f"{user},{t},{states[(t * user) // 2 % 2]}" for user in (1, 2, 3) for t in range(6)]
    (tmp_path / "t.csv").write_text("\n".join(["user,time,state", *rows]) + "\n", encoding="utf-8")
    asked = [sys.executable, "-m", "temporaldp", "audit", "t.csv", "--epsilon", "0.1"]
    environment = os.environ | {"PYTHONIOENCODING": encoding, "COLUMNS": "200"}

    def printed(command):
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True).stdout

    if encoding == "ascii":
        assert json.loads(printed([*asked, "--json"]).decode("utf-8"))["states"] == list(states)
    shown = printed(asked)
    for state in states:
        assert state.encode(encoding, "backslashreplace") in shown


@pytest.mark.long
def test_audit_json_of_the_sample_agrees_with_the_library():
    result = temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--json")
    assert result.returncode == 0
    found = json.loads(result.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no strict JSON"))
    (adversary,) = estimate_adversaries(sleep_sample())
    series = temporal_leakage(adversary, np.full(47, 0.1))
    assert found["temporal"] == pytest.approx(series.temporal.tolist(), rel=1e-14)
    assert found["backward"] == pytest.approx(series.backward.tolist(), rel=1e-14)
    assert found["forward"] == pytest.approx(series.forward.tolist(), rel=1e-14)
    assert found["worst_time"] == int(np.argmax(found["temporal"])) == 25
    assert round(max(found["paper"]["temporal"]), 2) == 1.03  # the number
    assert round(found["paper"]["backward"][24], 3) == 0.692  # THEORY's table, sleep stages at T = 25
    assert found["supremum"]["backward"] >= found["backward"][-1]
    assert sorted(found["states"]) == ["N1", "N2", "N3", "R", "W"]
    assert found["epsilon"] == 0.1
    assert "estimated from the protected traces themselves" in " ".join(result.stderr.split())


@pytest.mark.long
def test_audit_for_people():
    result = temporaldp("audit", SAMPLE, "--epsilon", "0.1")
    assert "(0.6632 nats, exact), about step 26 (s25)" in result.stdout
    assert "│   26 │" not in result.stdout
    assert "│   26 │" in temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--details").stdout
    assert "a person in W was in" in " ".join(result.stdout.split())
    assert "replace one person's state" in result.stdout
    narrow = temporaldp("audit", SAMPLE, "--epsilon", "0.1", columns="60")
    assert max(map(len, narrow.stdout.splitlines()[:12])) <= 60


def test_contradictory_matrices_raise_a_warning(tmp_path):
    (tmp_path / "b.csv").write_text(",a,b\na,0.9,0.1\nb,0.4,0.6\n")
    (tmp_path / "f.csv").write_text(",a,b\na,0.6,0.4\nb,0.1,0.9\n")
    given = [
        "--set",
        f"correlation.backward={tmp_path / 'b.csv'}",
        "--set",
        f"correlation.forward={tmp_path / 'f.csv'}",
    ]
    result = temporaldp("audit", "--epsilon", "0.1", "--horizon", "3", *given)
    assert result.returncode == 0
    assert "not those of one stationary chain" in " ".join(result.stderr.split())


def test_audit_from_matrices_alone(tmp_path):
    save_matrix(TransitionMatrix([[0.8, 0.2], [0.0, 1.0]], ["a", "b"]), tmp_path / "b.csv")
    save_matrix(TransitionMatrix([[1.0, 0.0], [0.2, 0.8]], ["b", "a"]), tmp_path / "f.json")
    result = temporaldp(
        "audit", "--epsilon", "0.1", "--set", f"correlation.backward={tmp_path / 'b.csv'}", "--horizon", "10", "--json"
    )
    found = json.loads(result.stdout)
    assert found["backward"][9] == pytest.approx(0.49638859684986947, rel=1e-12)  # the authors' own program
    assert found["forward"] == [0.1] * 10
    assert result.stderr == ""
    both = [
        "--set",
        f"correlation.backward={tmp_path / 'b.csv'}",
        "--set",
        f"correlation.forward={tmp_path / 'f.json'}",
        "--horizon",
        "3",
        "--json",
    ]
    found = json.loads(temporaldp("audit", "--epsilon", "0.5", *both).stdout)
    assert found["supremum"]["backward"] == "Infinity"
    assert float(found["supremum"]["backward"]) == math.inf
    assert found["states"] == ["a", "b"]


@pytest.mark.long
def test_audit_as_a_gate():
    assert temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--alpha", "0.67").returncode == 0
    result = temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--alpha", "0.6")
    assert result.returncode == 3
    assert "The level 0.6-DP_T is not satisfied." in result.stderr


@pytest.mark.long
def test_audit_with_one_correlation_per_person(tmp_path):
    (tmp_path / "t.csv").write_text("user,t0,t1,t2,t3,t4\nann,a,a,a,a,b\nbob,a,b,b,a,b\n")
    result = temporaldp(
        "audit",
        tmp_path / "t.csv",
        "--epsilon",
        "0.2",
        "--set",
        "correlation.per_user=true",
        "--set",
        "correlation.prior=0.1",
        "--json",
    )
    found = json.loads(result.stdout)
    assert found["worst_user"] in {"ann", "bob"}
    everybody = json.loads(
        temporaldp("audit", tmp_path / "t.csv", "--epsilon", "0.2", "--set", "correlation.prior=0.1", "--json").stdout
    )
    assert max(found["temporal"]) > max(everybody["temporal"])


@pytest.mark.long
def test_history_silences_the_warning(tmp_path):
    rows = Path(SAMPLE).read_text().splitlines()
    (tmp_path / "past.csv").write_text("\n".join(rows[:80]))
    (tmp_path / "now.csv").write_text("\n".join([rows[0], *rows[80:]]))
    result = temporaldp("audit", "now.csv", "--history", "past.csv", "--epsilon", "0.1", "--json", cwd=tmp_path)
    assert result.returncode == 0
    assert result.stderr == ""
    assert json.loads(result.stdout)["warning"] is None
    same = temporaldp("audit", "now.csv", "--history", "./now.csv", "--epsilon", "0.1", "--json", cwd=tmp_path)
    assert "traces themselves" in " ".join(same.stderr.split())


@pytest.mark.long
def test_plan_release_and_report_of_the_sample(tmp_path):
    steps = [
        ("plan", SAMPLE, "--alpha", "1", "--horizon", "47", "-o", "plan.json"),
        ("release", SAMPLE, "--plan", "plan.json", "-o", "released.parquet"),
        ("report", SAMPLE, "--plan", "plan.json", "--released", "released.parquet", "-o", "report.html",
         "--set", "report.controller=Sleep laboratory", "--set", "report.approval=Officer,Head"),
    ]  # fmt: skip
    for step in steps:
        result = temporaldp(*step, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    plan = load_plan(tmp_path / "plan.json")
    assert plan.horizon == 47
    assert plan.leakage.worst <= 1.0
    assert "protected traces themselves" in plan.provenance.sentence
    released = load_released(tmp_path / "released.parquet")
    np.testing.assert_allclose(released.estimates.counts.sum(axis=1), 151, atol=0.05)
    assert (released.epsilons <= plan.epsilons).all()
    assert parquet.read_table(tmp_path / "released.parquet").column_names == [
        *("time", "state", "estimate", "low", "high", "noisy", "scale", "epsilon")
    ]
    assert "Do not conclude" in (tmp_path / "released.md").read_text()
    page = (tmp_path / "report.html").read_text()
    assert "The plan satisfies 1-DP_T" in page
    assert "<td>Sleep laboratory</td>" in page and "<td>Officer</td>" in page and "<td>Head</td>" in page
    assert "temporaldp report TRACES --released released.parquet" in page
    again = page[page.index("How to compute it again") : page.index("Every step")]
    assert "temporaldp report" in again and "plan.json" in again and len(re.findall("[0-9a-f]{64}", again)) == 1
    assert "Internal. Do not publish this page." in page
    assert "The plan: The correlation was estimated from the protected traces themselves" in page
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("plan.json", "released.md", "released.parquet", "report.html")
    ]


@pytest.mark.long
def test_plan_json_is_the_plan_file(tmp_path):
    result = temporaldp("plan", SAMPLE, "--alpha", "1", "--json", "-o", tmp_path / "plan.json")
    printed, kept = json.loads(result.stdout), json.loads((tmp_path / "plan.json").read_text())
    beside = {"mean_absolute_noise", "noise_share", "guarantees", "advice", "advised"}
    assert {key: value for key, value in printed.items() if key not in beside} == kept
    assert "estimated from the protected traces themselves" in kept["provenance"]["warning"]
    assert kept["horizon"] is None
    assert kept["method"] == "upper_bound"
    assert kept["neighboring_relation"] == "replace_one"


@pytest.mark.long
def test_plan_reports_when_another_method_is_better(tmp_path):
    save_matrix(TransitionMatrix([[0.999, 0.001], [0.001, 0.999]]), tmp_path / "m.csv")
    arguments = ("plan", "--set", f"correlation.backward={tmp_path / 'm.csv'}", "--alpha", "1", "--horizon", "5")
    assert "plan.method=optimal" in temporaldp(*arguments, "--set", "plan.method=quantified").stderr
    result = temporaldp(*arguments)
    assert result.stderr == ""
    assert (
        "no plan for this level by the same accounting reduces the noise by more than"
        in temporaldp(*arguments, "--bound", "paper", "--details").stdout
    )


@pytest.mark.long
def test_plans_are_compared_side_by_side(tmp_path):
    arguments = ("plan", SAMPLE, "--alpha", "1", "--horizon", "8", "--compare", "--figure", tmp_path / "c.png")
    shown = temporaldp(*arguments)
    assert "All methods" in shown.stdout
    assert (tmp_path / "c.png").stat().st_size > 10_000
    rows = {row["method"]: row for row in json.loads(temporaldp(*arguments, "--json").stdout)["comparison"]}
    assert set(rows) == {"optimal", "upper_bound", "quantified", "uniform"}
    assert rows["uniform"]["mean_inverse_epsilon"] == pytest.approx(8.0)
    assert all(rows["optimal"]["mean_absolute_noise"] <= row["mean_absolute_noise"] for row in rows.values())
    assert all(row["worst_leakage"] <= 1.0 for row in rows.values())
    squared = json.loads(temporaldp(*arguments[:6], "--set", "plan.objective=mean_squared_error", "--json").stdout)
    assert squared["kind"] == "budgets"
    assert squared["optimality"]["objective"] == "mean_squared_error"
    assert squared["optimality"]["error_bound"] is None


@pytest.mark.long
def test_method_without_a_plan_is_reported_with_its_reason(tmp_path):
    save_matrix(TransitionMatrix([[1.0, 0.0], [0.0, 1.0]], ["home", "work"]), tmp_path / "m.csv")
    arguments = (
        "plan",
        "--set",
        f"correlation.backward={tmp_path / 'm.csv'}",
        "--alpha",
        "1",
        "--horizon",
        "5",
        "--compare",
    )
    shown = temporaldp(*arguments)
    words = " ".join(shown.stdout.split())
    assert shown.returncode == 0 and "uniform" in words
    assert "There is no plan by upper_bound or quantified: no positive budget is sustainable at alpha = 1" in words
    found = json.loads(temporaldp(*arguments, "--bound", "paper", "--json").stdout)
    assert {row["method"] for row in found["comparison"]} == {"optimal", "uniform"}
    assert set(found["without_plan"]) == {"upper_bound", "quantified"}
    assert all("'home' from 'work' with certainty" in why for why in found["without_plan"].values())


@pytest.mark.long
def test_release_refuses_to_spend_twice(tmp_path, plan_file):
    arguments = ("release", SAMPLE, "--plan", plan_file, "-o", "r.csv")
    assert temporaldp(*arguments, cwd=tmp_path).returncode == 0
    first = (tmp_path / "r.csv").read_bytes()
    assert "spends the budgets twice" in refused(*arguments, cwd=tmp_path)
    assert (tmp_path / "r.csv").read_bytes() == first
    assert "--begin-anew" in refused(*arguments, "--overwrite", cwd=tmp_path)
    assert (tmp_path / "r.csv").read_bytes() == first
    assert temporaldp(*arguments, "--begin-anew", cwd=tmp_path).returncode == 0
    assert (tmp_path / "r.csv").read_bytes() != first


@pytest.mark.long
def test_report_of_a_claimed_level_and_of_an_invalid_plan(tmp_path, plan_file):
    page = tmp_path / "a.html"
    shown = temporaldp("report", SAMPLE, "--epsilon", "0.1", "-o", page, "--json")
    assert shown.returncode == 0 and page.is_file()
    about = json.loads(shown.stdout)
    assert about.pop("worst_leakage") == pytest.approx(0.6631762, abs=1e-7)
    assert about == {
        "report": str(page),
        "alpha": None,
        "guarantee": "temporal",
        "is_satisfied": None,
        "is_internal": True,
    }
    assert "6.6 times as much" in (tmp_path / "a.html").read_text()
    stronger = TransitionMatrix(np.eye(5) * 0.99 + 0.002, sleep_sample().states)
    save_matrix(stronger, tmp_path / "m.csv")
    arguments = (
        "report",
        SAMPLE,
        "--plan",
        plan_file,
        "--set",
        f"correlation.backward={tmp_path / 'm.csv'}",
        "-o",
        tmp_path / "b.html",
    )
    result = temporaldp(*arguments)
    assert result.returncode == 3
    assert "not satisfied" in result.stderr
    page = " ".join((tmp_path / "b.html").read_text().split())
    assert "The level is not satisfied" in page
    assert "The plan was computed for another correlation" in page


@pytest.mark.long
def test_plans_from_history_and_from_protected_data_are_distinguished(tmp_path):
    rows = Path(SAMPLE).read_text().splitlines()
    (tmp_path / "past.csv").write_text("\n".join(rows[:100]))
    (tmp_path / "now.csv").write_text("\n".join([rows[0], *rows[100:]]))
    for name, options in (("clean", ("--history", "past.csv")), ("dirty", ())):
        result = temporaldp(
            "plan", "now.csv", "--alpha", "5", "--horizon", "47", *options, "--bound", "paper", "-o", f"{name}.json",
            cwd=tmp_path,
        )  # fmt: skip
        assert ("traces themselves" in " ".join(result.stderr.split())) == (name == "dirty")
        report = ("report", "now.csv", "--history", "past.csv", "--plan", f"{name}.json", "-o", f"{name}.html")
        assert ("traces themselves" in " ".join(temporaldp(*report, cwd=tmp_path).stderr.split())) == (name == "dirty")
        page = (tmp_path / f"{name}.html").read_text()
        assert ("Estimated from the protected traces themselves" in page) == (name == "dirty")
        assert "Estimated from other traces (past.csv)" in page
        assert "Internal" not in page


@pytest.mark.long
def test_a_report_of_a_plan_covers_all_that_is_planned(tmp_path):
    short = [",".join(line.split(",")[:11]) for line in Path(SAMPLE).read_text().splitlines()]
    (tmp_path / "now.csv").write_text("\n".join(short))
    options = ("now.csv", "--history", SAMPLE)
    for horizon in ((), ("--horizon", "47")):
        name = "for_ever" if not horizon else "known"
        temporaldp("plan", *options, "--alpha", "1", *horizon, "--bound", "paper", "-o", f"{name}.json", cwd=tmp_path)
        temporaldp("release", "now.csv", "--plan", f"{name}.json", "-o", f"{name}.csv", cwd=tmp_path)
        for released in ((), ("--released", f"{name}.csv")):
            result = temporaldp("report", *options, "--plan", f"{name}.json", *released, "-o", "r.html", cwd=tmp_path)
            assert result.returncode == 0, result.stderr
            page = " ".join((tmp_path / "r.html").read_text().split())
            assert ("<td>47</td>" in page) == (name == "known" and not released)
            assert ("covers the first 10: later releases raise" in page) == (name == "known" and bool(released))
            assert ("Supremum over an infinite horizon (nats)" in page) == (name == "for_ever")


@pytest.mark.long
def test_users_are_named_only_on_request(tmp_path):
    (tmp_path / "t.csv").write_text("user,t0,t1,t2,t3\nann,a,b,a,b\nbob,a,a,a,b\n")
    arguments = (
        "report",
        "t.csv",
        "--epsilon",
        "0.2",
        "--set",
        "correlation.per_user=true",
        "--set",
        "correlation.prior=0.1",
        "-o",
        "r.html",
    )
    temporaldp(*arguments, cwd=tmp_path)
    page = (tmp_path / "r.html").read_text()
    assert "one person" in page
    assert not re.search(r"\bann\b", page)
    assert "correlation of a single person" in page
    temporaldp(*arguments, "--set", "report.name_users=true", cwd=tmp_path)
    assert "&#39;ann&#39;" in (tmp_path / "r.html").read_text()


def test_absences_are_reported_as_unprotected(tmp_path):
    (tmp_path / "t.csv").write_text("user,t0,t1,t2\n1,a,b,a\n2,a,,b\n3,b,b,a\n")
    result = temporaldp("audit", "t.csv", "--set", "traces.gaps=true", "--epsilon", "0.1", "--json", cwd=tmp_path)
    assert "not observed at every step" in result.stderr


@pytest.mark.long
def test_history_without_absences_cannot_estimate_absence(tmp_path):
    rows = [f"{user},{t},{'ab'[(t + user * t) % 2]}" for user in range(4) for t in range(6)]
    (tmp_path / "past.csv").write_text("\n".join(["user,time,state", *rows]))
    (tmp_path / "now.csv").write_text("\n".join(["user,time,state", *rows[:-2]]))
    arguments = ("audit", "now.csv", "--history", "past.csv", "--set", "traces.absent=away", "--epsilon", "0.1")
    assert "no user in past.csv is ever 'away'" in refused(*arguments, cwd=tmp_path)
    assert "away" in temporaldp(*arguments, "--set", "correlation.prior=1", "--json", cwd=tmp_path).stdout


@pytest.mark.long
def test_gap_in_the_times_is_reported_with_its_times(tmp_path):
    days = ["2024-01-01", "2024-01-02", "2024-01-09", "2024-01-10"]
    rows = [f"{user},{day},{'ab'[(k + user) % 2]}" for user in range(3) for k, day in enumerate(days)]
    (tmp_path / "t.csv").write_text("\n".join(["user,time,state", *rows]))
    result = temporaldp("audit", "t.csv", "--set", "correlation.prior=1", "--epsilon", "0.1", "--json", cwd=tmp_path)
    assert "times are missing between '2024-01-02' and '2024-01-09'" in result.stderr
    assert json.loads(result.stdout)["holes"] == [["2024-01-02", "2024-01-09"]]
    whole = temporaldp("audit", str(SAMPLE), "--epsilon", "0.1", "--json", cwd=tmp_path)
    assert "times are missing" not in whole.stderr
    assert json.loads(whole.stdout)["holes"] == []


@pytest.mark.long
def test_closed_pipe_is_not_an_error():
    command = f"{sys.executable} -m temporaldp audit {SAMPLE} --epsilon 0.1 --json | head -1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr


@pytest.mark.long
def test_exit_codes_of_a_closed_pipe_and_a_full_disk():
    program = f"set -o pipefail; {sys.executable} -c 'from temporaldp.apps.cli import main; main()'"
    command = f"{program} audit {SAMPLE} --epsilon 0.1"
    for more in ("", "--json"):
        result = subprocess.run(
            ["bash", "-c", f"{command} {more} 2>/dev/null | head -1"], capture_output=True, check=False
        )
        assert result.returncode == 0
    if Path("/dev/full").exists():
        for full in (f"{command} --json", f"{program} --version"):  # more than fits in a buffer, and less
            result = subprocess.run(["bash", "-c", f"{full} > /dev/full"], capture_output=True, text=True, check=False)
            assert result.returncode == 2
            assert "No space left on device" in result.stderr
            assert "Traceback" not in result.stderr
            assert "Exception" not in result.stderr


@pytest.mark.long
def test_inputs_are_not_overwritten(tmp_path, plan_file):
    (tmp_path / "t.csv").write_text("user,t0,t1,t2\n1,a,b,a\n2,b,b,a\n")
    (tmp_path / "p.json").write_bytes(plan_file.read_bytes())
    for arguments in (
        ("plan", "t.csv", "--alpha", "1", "-o", "t.csv"),
        ("plan", "--history", "t.csv", "--alpha", "1", "-o", "./t.csv"),
        ("report", "t.csv", "--plan", "p.json", "-o", "p.json"),
        ("release", "t.csv", "--plan", "p.json", "-o", "t.csv", "--overwrite"),
    ):
        content = {path: path.read_bytes() for path in tmp_path.iterdir()}
        assert "also read, and would be lost" in refused(*arguments, cwd=tmp_path)
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == content


@pytest.mark.long
def test_history_without_a_user_is_refused(tmp_path):
    (tmp_path / "past.csv").write_text("user,t0,t1,t2\n1,a,b,a\n2,b,b,a\n")
    (tmp_path / "now.csv").write_text("user,t0,t1\n2,a,b\n9,b,a\n")
    arguments = (
        "audit",
        "now.csv",
        "--history",
        "past.csv",
        "--epsilon",
        "1",
        "--set",
        "correlation.prior=1",
        "--set",
        "correlation.per_user=true",
    )
    assert "no user '9'" in refused(*arguments, cwd=tmp_path)


@pytest.mark.long
def test_a_report_of_another_plans_release_is_refused(tmp_path, plan_file):
    save_plan(plan_budget(Adversary(), alpha=5.0, horizon=47), tmp_path / "lavish.json")
    assert temporaldp("release", SAMPLE, "--plan", "lavish.json", "-o", "r.csv", cwd=tmp_path).returncode == 0
    message = refused("report", SAMPLE, "--plan", plan_file, "--released", "r.csv", "-o", "r.html", cwd=tmp_path)
    assert "they were not released under this plan" in message


@pytest.mark.long
def test_out_of_memory_is_reported_as_one_message(tmp_path):
    assert "not enough memory" in refused(
        "audit", SAMPLE, "--epsilon", "1", "--horizon", "1000000000000000", cwd=tmp_path
    )


def test_names_with_markup_and_emoji_codes_are_shown_as_they_are(tmp_path):
    (tmp_path / "t.csv").write_text("user,t0,t1,t2,t3\n1,[red],:cat:,[red],:cat:\n2,:cat:,:cat:,[red],[red]\n")
    result = temporaldp("audit", "t.csv", "--epsilon", "0.1", cwd=tmp_path)
    assert ":cat:, [red]" in result.stdout


def test_version_and_help():
    assert temporaldp("--version").stdout.startswith("temporaldp 0.")
    module = subprocess.run(
        [sys.executable, "-m", "temporaldp", "--version"], capture_output=True, text=True, check=True
    )
    assert module.stdout.startswith("temporaldp 0.")
    for command in ("audit", "plan", "release", "report", "demo"):
        assert temporaldp(command, "--help").returncode == 0


@pytest.mark.long
def test_killed_release_leaves_no_partial_file(tmp_path, plan_file):
    script = (
        "import os, signal\n"
        "from temporaldp.data.files import columns\n"
        "write = columns._write_parquet\n"
        "def dies(*arguments):\n"
        "    write(*arguments)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "columns._write_parquet = dies\n"
        "from temporaldp.apps.cli import main\n"
        "main()\n"
    )
    arguments = ["release", SAMPLE, "--plan", str(plan_file), "-o", "r.parquet"]
    result = subprocess.run([sys.executable, "-c", script, *arguments], cwd=tmp_path, capture_output=True, check=False)
    assert result.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
