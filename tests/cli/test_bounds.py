"""Both bounds at the command line: what is shown, what decides, and what a plan by the tighter one may be used for."""

from __future__ import annotations

import json

import numpy as np
import pytest

from command import temporaldp
from conftest import REPOSITORY
from temporaldp import estimate_adversaries, load_plan, load_released, load_sample, temporal_leakage
from temporaldp.cli import inputs as inputs_module

SAMPLE = REPOSITORY / "src" / "temporaldp" / "sample" / "sleep_5min.csv"


def test_audit_shows_both_numbers_and_why(tmp_path):
    shown = temporaldp("audit", SAMPLE, "--epsilon", "0.1").stdout
    words = " ".join(shown.split())
    assert "1.034, 10.3 times the promise" in words
    assert "0.6962, 7.0 times the promise" in words
    assert "Both are guarantees, so the smaller one holds" in words
    assert "W is told apart from N3 best, at step 26" in words
    assert "at steps 23 to 25" in words
    assert "pair by pair" in next(line for line in shown.splitlines() if "┃ step" in line)


def test_audit_as_json_has_both():
    found = json.loads(temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--json").stdout)
    series = temporal_leakage(next(estimate_adversaries(load_sample())), epsilons=[0.1] * 47, bound="pairwise")
    assert found["pairwise"]["temporal"] == pytest.approx(series.temporal.tolist(), rel=1e-12)
    assert found["pairwise"]["worst_time"] == series.worst_time
    assert found["pairwise"]["worst_pair"] == ["W", "N3"]
    assert found["pairwise"]["supremum"]["temporal"] == pytest.approx(0.6963877, abs=1e-6)
    assert found["worst_leakage"] == pytest.approx(1.033, abs=1e-3)
    alone = json.loads(temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--bound", "uniform", "--json").stdout)
    assert alone["pairwise"] is None
    assert alone["temporal"] == found["temporal"]


def test_the_paper_s_bound_alone_says_nothing_of_another():
    shown = temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--bound", "uniform").stdout
    assert "pair by pair" not in shown
    assert "Two upper bounds" not in shown


def test_the_smaller_bound_decides():
    assert temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--max-leakage", "0.7").returncode == 0
    refused = temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--max-leakage", "0.69")
    assert refused.returncode == 3
    assert "0.6962 is above" in refused.stderr


def test_many_states_are_not_paired_unasked(monkeypatch):
    monkeypatch.setattr(inputs_module, "MOST_STATES", 4)
    from typer.testing import CliRunner

    from temporaldp.cli import app

    shown = CliRunner().invoke(app, ["audit", str(SAMPLE), "--epsilon", "0.1"]).output
    assert "--bound both computes the tighter bound" in " ".join(shown.split())
    both = CliRunner().invoke(app, ["audit", str(SAMPLE), "--epsilon", "0.1", "--bound", "both"]).output
    assert "Two upper bounds" in both


def test_where_both_are_the_same_it_says_so(tmp_path):
    (tmp_path / "b.csv").write_text("state,a,b\na,0.8,0.2\nb,0.2,0.8\n")
    shown = temporaldp("audit", "--backward", tmp_path / "b.csv", "--horizon", "5", "--epsilon", "0.1").stdout
    assert "Pair by pair the bound is the same here" in " ".join(shown.split())


def test_a_plan_by_the_tighter_bound_is_released_and_reported_on(tmp_path):
    plan, counts, page = tmp_path / "p.json", tmp_path / "r.parquet", tmp_path / "r.html"
    made = temporaldp("plan", SAMPLE, "--alpha", "1", "--horizon", "47", "--bound", "pairwise", "--compare", "-o", plan)
    assert made.returncode == 0, made.stderr
    words = " ".join(made.stdout.split())
    assert "bound pair by pair" in words
    assert "certificate none: the least noise that was found" in words
    assert "optimal │ pair by pair" in words and "optimal │ the paper's" in words
    loaded = load_plan(plan)
    assert loaded.bound == "pairwise"
    assert np.mean(1.0 / loaded.epsilons) == pytest.approx(6.81, abs=0.01)
    assert temporaldp("release", SAMPLE, "--plan", plan, "-o", counts).returncode == 0
    done = temporaldp("report", SAMPLE, "--plan", plan, "--released", counts, "--bound", "uniform", "-o", page)
    assert done.returncode == 0, done.stderr
    text = " ".join(page.read_text().split())
    assert "The plan holds its level: at most <strong>1</strong> nats" in text
    assert "Two bounds, both guaranteed" in text


def test_a_ledger_takes_such_a_plan_alone(tmp_path):
    plan, out = tmp_path / "p.json", tmp_path / "r.parquet"
    temporaldp("plan", SAMPLE, "--alpha", "1", "--bound", "pairwise", "-o", plan)
    both = temporaldp("release", SAMPLE, "--plan", plan, "--ledger", tmp_path / "l.db", "--history", SAMPLE, "-o", out)
    assert both.returncode == 2
    assert "the plan alone holds the level" in " ".join(both.stderr.split())
    assert not (tmp_path / "l.db").exists()
    alone = temporaldp("release", SAMPLE, "--plan", plan, "--ledger", tmp_path / "l.db", "-o", out)
    assert alone.returncode == 0, alone.stderr


def test_the_report_shows_both_bounds(tmp_path):
    page = tmp_path / "r.html"
    assert temporaldp("report", SAMPLE, "--epsilon", "0.1", "-o", page).returncode == 0
    text = " ".join(page.read_text().split())
    assert "can leak up to <strong>0.6962</strong> nats" in text
    assert "(nats, upper bound by the paper's recursion)</th><td>1.034</td>" in text
    assert "tighter upper bound)</th><td>0.6962</td>" in text
    assert "the release is 0.6962-DP_T" in text
    assert "<th>pair by pair</th>" in text
    alone = tmp_path / "u.html"
    assert temporaldp("report", SAMPLE, "--epsilon", "0.1", "--bound", "uniform", "-o", alone).returncode == 0
    assert "pair by pair" not in alone.read_text()


def test_where_and_why_are_about_one_step_and_ties_are_said_to_be_ties(tmp_path):
    matrix = tmp_path / "m.csv"
    matrix.write_text(",a,b,c\na,0.7,0.2,0.1\nb,0.2,0.7,0.1\nc,0,0,1\n")
    shown = temporaldp("audit", "--backward", matrix, "--forward", matrix, "--horizon", "20", "--epsilon", "0.1").stdout
    words = " ".join(shown.split())
    assert "where step 11 of 20" in words
    alone = temporaldp("audit", "--backward", matrix, "--horizon", "1", "--epsilon", "0.1").stdout
    assert "any two values are told apart equally well at step 1" in " ".join(alone.split())


def test_a_person_of_many_is_named_with_the_pair_and_a_gate_says_its_bound(tmp_path):
    shown = temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--per-user", "--bound", "both", "--prior", "1").stdout
    assert "nats, about '25'." in " ".join(shown.split())
    gate = temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--max-leakage", "0.5", "--bound", "uniform", "--json")
    assert gate.returncode == 3
    assert "by the paper's bound" in " ".join(gate.stderr.split())
    assert json.loads(gate.stdout)["bounds"] == ["uniform"]


def test_what_is_released_says_by_which_bound(tmp_path):
    for bound in ("uniform", "pairwise"):
        plan, counts = tmp_path / f"{bound}.json", tmp_path / f"{bound}.parquet"
        assert temporaldp("plan", SAMPLE, "--alpha", "1", "--bound", bound, "-o", plan).returncode == 0
        said = temporaldp("release", SAMPLE, "--plan", plan, "-o", counts).stdout
        assert ("by the bound pair by pair" in " ".join(said.split())) == (bound == "pairwise")
        assert load_released(counts).bound == bound
