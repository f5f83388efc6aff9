"""`--effort` at the command line, and the progress of what takes long in a pipe."""

from __future__ import annotations

import json
import re
import time

import numpy as np
import pytest

from command import refused, temporaldp
from temporaldp import TransitionMatrix, load_plan, save_matrix
from temporaldp.apps.cli import render
from temporaldp.base.progress import estimated, progressed

SIDES = r"0\.\d+ to [01]\.?\d* after 0\.001 s"


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    def written(n):
        folder = tmp_path_factory.mktemp(f"of_{n}")
        rows = 0.8 * np.eye(n) + 0.2 * np.random.default_rng(1).dirichlet(np.ones(n), n)
        save_matrix(TransitionMatrix(rows), folder / "rows.csv")
        (folder / "temporaldp.toml").write_text(
            '[correlation]\nbackward = "rows.csv"\nforward = "rows.csv"\n[privacy]\nepsilon = 0.05\neffort = 1000\n'
        )
        return folder

    return written


@pytest.fixture(scope="module")
def small(chain):
    return chain(12)


def test_audit_shows_intervals_and_never_calls_them_exact(small):
    found = temporaldp("audit", "--horizon", "8", "--effort", "0.001", cwd=small)
    words = " ".join(found.stdout.split())
    assert found.returncode == 0, found.stderr
    assert re.search(
        r"All 8: at most [\d.]+ % \(0\.\d+ to [01]\.?\d* nats after 0\.001 s\), about step \d\. This holds", words
    )
    assert re.search(r"largest leakage at most [\d.]+ times epsilon", words)
    assert re.search(rf"backward {SIDES}, forward {SIDES}, temporal {SIDES}", words)
    assert "some observation attains the lower side of an interval, and none exceeds the upper side" in words
    assert re.search(r"Of the pairs of states that were compared, \d+ is distinguished from \d+ best\.", words)
    assert "exact" not in words
    assert "most revealing" not in words
    exact = temporaldp("audit", "--horizon", "8", cwd=small).stdout
    assert " nats, exact), about step " in exact
    assert " after " not in exact


def test_audit_as_json_has_both_sides(small):
    found = json.loads(temporaldp("audit", "--horizon", "8", "--effort", "0.001", "--json", cwd=small).stdout)
    assert (found["effort"], found["is_exact"], found["supremum"]["certified"]) == (0.001, False, False)
    assert found["witness"] is None
    for direction in ("backward", "forward", "temporal"):
        assert max(found["attained"][direction]) < max(found[direction])
        assert found["supremum"]["attained"][direction] < found["supremum"][direction]


@pytest.mark.long
def test_audit_of_many_states_ends_with_an_interval(chain):
    words = " ".join(temporaldp("audit", "--horizon", "12", "--effort", "0.1", cwd=chain(150)).stdout.split())
    assert re.search(r"All 12: at most [\d.]+ % \([\d.]+ to [\d.]+ nats after 0.1 s\)", words)


@pytest.mark.long
@pytest.mark.parametrize("horizon", [[], ["--horizon", "6"]], ids=["any", "known"])
def test_a_plan_uses_the_upper_side(small, horizon, tmp_path):
    shown = temporaldp(
        "plan", "--alpha", "1", *horizon, "--effort", "0.001", "--details", "-o", tmp_path / "plan.json", cwd=small
    )
    words = " ".join(shown.stdout.split())
    assert re.search(rf"largest leakage \(upper bound\) {SIDES} of 1", words)
    assert load_plan(tmp_path / "plan.json").leakage.worst <= 1.0


@pytest.mark.long
def test_a_report_shows_an_interval(small, tmp_path):
    page = tmp_path / "page.html"
    done = temporaldp("report", "--epsilon", "0.05", "--horizon", "8", "--effort", "0.001", "-o", page, cwd=small)
    assert done.returncode == 0, done.stderr
    text = " ".join(page.read_text().split())
    assert re.search(rf"step \(nats, upper bound\)</th><td>{SIDES}", text)
    assert "Not all pairs of states were compared" in text
    assert "Leakage is exact" not in text


@pytest.mark.long
def test_a_population_has_both_sides(tmp_path):
    walks = np.random.default_rng(1).integers(0, 6, (4, 40))
    rows = [f"{user},{t},s{place}" for user, walk in enumerate(walks) for t, place in enumerate(walk)]
    (tmp_path / "walks.csv").write_text("\n".join(["user,time,state", *rows]))
    asked = "population", "walks.csv", "--epsilon", "0.05", "--set", "correlation.prior=0.1", "--effort", "0.001"
    for horizon in ([], ["--horizon", "8"]):
        words = " ".join(temporaldp(*asked, *horizon, cwd=tmp_path).stdout.split())
        assert "leakage upper bound" in words
        assert re.search(rf"50 % of people leak at most {SIDES}", words)
        assert re.search(rf"largest leakage \d \({SIDES}\)", words)
        found = json.loads(temporaldp(*asked, *horizon, "--json", cwd=tmp_path).stdout)
        assert not found["is_exact"]
        assert found["attained"]["1"] < found["quantiles"]["1"] == found["worst"]


@pytest.mark.parametrize("bad", ["0", "-1", "inf", "soon"])
def test_an_effort_is_a_positive_number(small, bad):
    assert "--effort" in refused("audit", "--horizon", "4", "--effort", bad, cwd=small)


def test_an_effort_is_for_the_exact_leakage(small):
    for command in (["audit", "--epsilon", "0.1", "--horizon", "4"], ["plan", "--alpha", "1"]):
        assert "limits the exact leakage" in refused(*command, "--delta", "1e-6", cwd=small)
    by_paper = temporaldp("audit", "--horizon", "4", "--bound", "paper", cwd=small)
    assert by_paper.returncode == 0, by_paper.stderr


# Progress of long work where standard error is no terminal


def lines_of(capsys):
    return capsys.readouterr().err.splitlines()


@pytest.mark.long
def test_a_pipe_gets_the_estimate_and_a_line_at_times(capsys, monkeypatch):
    monkeypatch.setattr(render.Watch, "between_lines", 0.05)
    with render.working("accounting"), estimated("leakage of every step", lambda: 40.0):
        progressed("leakage of every step", 0.25)
        time.sleep(0.5)
    first, *others = lines_of(capsys)
    assert first == "leakage of every step, about 40 s"
    assert 2 <= len(others) <= 10
    assert all(re.fullmatch(r"working: leakage of every step 25 %, \d+ s so far", line) for line in others)
    time.sleep(0.2)
    assert lines_of(capsys) == []


def test_short_work_prints_nothing_to_a_pipe(capsys):
    with render.working("accounting"), estimated("leakage of every step", lambda: 9.0):
        progressed("leakage of every step", 0.25)
    assert lines_of(capsys) == []


def test_a_population_by_groups_counts_their_people(tmp_path):
    """Nine people who mostly stay, and one who always moves, which reveals more, in another region."""
    rows = [
        f"u{user},{t},{'ab'[t // (10 if user < 9 else 1) % 2]},{'north' if user < 9 else 'south'}"
        for user in range(10)
        for t in range(40)
    ]
    (tmp_path / "walks.csv").write_text("\n".join(["user,time,state,region", *rows]))
    asked = "population", "walks.csv", "--epsilon", "0.05", "--horizon", "8", "--set", "traces.by=region"
    found = json.loads(temporaldp(*asked, "--set", "correlation.prior=0.1", "--json", cwd=tmp_path).stdout)
    assert (found["people"], found["worst_names"]) == (10, ["south", "north"])
    assert found["quantiles"]["0.9"] < found["quantiles"]["1"] == found["worst"]
