"""Estimates of `release`, `smooth`, and the guarantees that `plan` compares, as a user runs them."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from command import refused, temporaldp
from data_sets import sleep_sample
from temporaldp import (
    PublicCorrelation,
    Trajectories,
    estimate_adversaries,
    load_released,
    read_traces,
    smooth,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Half of the sample as history, the other half to be released, and a plan by the history."""
    place = tmp_path_factory.mktemp("smoothing")
    table = sleep_sample()
    sample = Trajectories(table.codes, states=table.states, users=table.users, times=table.times)
    for name, walks in (("past.csv", sample[:75]), ("now.csv", sample[75:])):
        with (place / name).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["user", *range(47)])
            writer.writerows(
                [user, *(walks.states[code] for code in row)]
                for user, row in zip(walks.users, walks.codes, strict=True)
            )
    made = temporaldp(
        "plan", "now.csv", "--history", "past.csv", "--alpha", "1", "--bound", "paper", "-o", "plan.json", cwd=place
    )
    assert made.returncode == 0, made.stderr
    assert "% of an average count" in made.stdout
    (place / "chain.csv").write_text("state,a,b\na,0.9,0.1\nb,0.2,0.8\n")
    return place


@pytest.mark.long
def test_release_is_smoothed(folder):
    command = "release now.csv --plan plan.json --history past.csv -o out.csv"
    result = temporaldp(*command.split(), cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "nothing else of the protected table" in " ".join(result.stdout.split())
    rows = list(csv.DictReader((folder / "out.csv").read_text().splitlines()))
    assert len(rows) == 47 * 5
    assert sum(float(row["estimate"]) for row in rows) == pytest.approx(47 * 76, abs=1.0)
    assert all(float(row["low"]) <= float(row["estimate"]) <= float(row["high"]) for row in rows)
    command = "smooth out.csv --history past.csv --population 76 -o again.csv --figure again.png --json"
    again = temporaldp(*command.split(), cwd=folder)
    assert again.returncode == 0, again.stderr
    found = np.array(json.loads(again.stdout)["estimate"])
    states = load_released(folder / "out.csv").states
    wanted = np.array([float(row["estimate"]) for row in rows]).reshape(47, 5)
    np.testing.assert_allclose(found, wanted[:, [states.index(row["state"]) for row in rows[:5]]], atol=0.02)
    assert (folder / "again.png").stat().st_size > 10_000


@pytest.mark.long
def test_same_start_uses_the_first_counts_of_the_history(folder):
    made = temporaldp("release", "now.csv", "--plan", "plan.json", "-o", "drawn.csv", cwd=folder)
    assert made.returncode == 0, made.stderr
    words = "smooth drawn.csv --history past.csv --population 76 -o told.csv --json"
    without = json.loads(temporaldp(*words.split(), cwd=folder).stdout)["estimate"]
    found = json.loads(temporaldp(*words.split(), "--set", "release.same_start=true", cwd=folder).stdout)["estimate"]
    drawn = load_released(folder / "drawn.csv")
    past = read_traces(folder / "past.csv", states=drawn.states)
    known = PublicCorrelation.of(next(estimate_adversaries(past)), "the first half", initial=past.histogram()[0])
    np.testing.assert_allclose(found, smooth(drawn, known, total=76).counts, atol=1e-9)
    true = read_traces(folder / "now.csv", states=drawn.states).histogram()[0]
    assert np.abs(np.array(found[0]) - true).sum() < np.abs(np.array(without[0]) - true).sum()


@pytest.mark.long
def test_learned_correlation_satisfies_the_level_and_smooths(tmp_path):
    rng = np.random.default_rng(1)
    for name, people in (("past.csv", 4_000), ("now.csv", 300)):
        walks = rng.random((people, 4)).cumsum(axis=1) % 1.0 < 0.5
        rows = [[user, *("ab"[int(at)] for at in walk)] for user, walk in enumerate(walks)]
        with (tmp_path / name).open("w", newline="") as file:
            csv.writer(file).writerows([["user", *range(4)], *rows])
    learnt = temporaldp(
        *["learn", "past.csv", "--epsilon", "2", "--set", "traces.states=a,b", "--ledger", "paid.db", "-o", "c.json"],
        cwd=tmp_path,
    )
    assert learnt.returncode == 0, learnt.stderr
    words = "release now.csv --alpha 1 --set correlation.file=c.json --horizon 4 --ledger r.db -o out.csv --json"
    made = temporaldp(*words.split(), cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    assert told["alpha_in_all"] == 3.0 and told["worst_leakage"] <= 1.0
    used = told["estimates"]["used"]
    assert "differential privacy" in used and "nothing else of the protected table" in used


@pytest.mark.long
def test_a_ledger_keeps_filtered_counts(folder):
    command = (
        "release now.csv --alpha 1 --set privacy.bound=paper --history past.csv --ledger l.db -o l.csv --overwrite"
    )
    assert temporaldp(*command.split(), cwd=folder).returncode == 0
    first = (folder / "l.csv").read_bytes()
    assert b"estimate" in first and "past releases" in (folder / "l.md").read_text()
    assert temporaldp(*command.split(), cwd=folder).returncode == 0
    assert (folder / "l.csv").read_bytes() == first


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("release now.csv --plan plan.json -o x.csv --set release.estimates=smoothed", "temporaldp learn"),
        (
            "release now.csv --plan plan.json --history now.csv -o x.csv --set release.estimates=smoothed",
            "learned from the protected",
        ),
        ("release now.csv --plan plan.json -o x.csv --set release.estimates=filtered", "needs a ledger"),
        ("release now.csv --plan plan.json -o x.csv --set release.same_start=true", "--history"),
        (
            "release now.csv --plan plan.json --history past.csv --set correlation.per_user=true --set "
            "correlation.prior=1 -o x.csv --set release.estimates=smoothed",
            "correlation.per_user",
        ),
        ("plan now.csv --history past.csv --alpha 1,x", "--alpha"),
        ("plan now.csv --history past.csv --alpha 1 --set privacy.noise=gaussian", "--delta"),
        ("plan now.csv --history past.csv", "--alpha"),
    ],
)
def test_smoothing_that_publishes_protected_data_is_refused(folder, command, told):
    assert told in " ".join(refused(*command.split(), cwd=folder).split())


@pytest.mark.long
def test_plan_finds_the_level_of_an_error_and_compares_levels(folder):
    command = "plan now.csv --history past.csv --horizon 8 --error 5 --figure t.png --json"
    result = temporaldp(*command.split(), cwd=folder)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert 4.0 < found["guarantees"][0]["error"] <= 5.1 and found["alpha"] == found["guarantees"][0]["alpha"]
    assert (folder / "t.png").stat().st_size > 10_000
    both = temporaldp(
        *["plan", "now.csv", "--history", "past.csv", "--horizon", "8", "--alpha", "0.5,1", "--json"], cwd=folder
    )
    assert [row["alpha"] for row in json.loads(both.stdout)["guarantees"]] == [0.5] * 6 + [1.0] * 6


@pytest.mark.long
@pytest.mark.parametrize("asked", [["--guarantee", "user"], ["--guarantee", "window:3", "--delta", "1e-6"]])
def test_guarantees_for_every_correlation_need_no_history(folder, tmp_path, asked):
    """From the level to a published table and back, by the ledger's own plan."""
    terms = [*asked[2:], "--set", f"privacy.guarantee={asked[1]}", "--set", "privacy.horizon=47"]
    shown = temporaldp("plan", "--alpha", "1", "--horizon", "47", *asked, "--json", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    planned = json.loads(shown.stdout)
    assert planned["guarantee"]["kind"] == asked[1].partition(":")[0]
    terms = [one if one != "--delta" else "--set" for one in terms]
    terms = [f"privacy.delta={one}" if one == "1e-6" else one for one in terms]
    command = ["release", folder / "now.csv", "--alpha", "1", *terms, "--ledger", "r.db", "-o", "p.csv"]
    done = temporaldp(*command, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    condition = "every correlation" if asked[1] == "user" else "any correlation within the window"
    assert told["guarantee"] == asked[1] and told["condition"].startswith(condition)
    np.testing.assert_allclose(told["scales"], planned.get("scales", 94.0), rtol=1e-4)
    again = temporaldp(*command, cwd=tmp_path)
    assert again.returncode == 0 and "47 steps before, 47 steps now" in " ".join(again.stdout.split())
    assert condition in (tmp_path / "p.md").read_text()
    other = [one if one != "privacy.horizon=47" else "privacy.horizon=50" for one in command]
    assert "privacy.horizon" in refused(*other, cwd=tmp_path)


@pytest.mark.long
def test_periodic_correlation_starts_at_the_phase_of_the_first_step(tmp_path):
    """A smoothed release goes on with data that begin at another phase, and a finished one is smoothed from its own."""
    sample = sleep_sample()
    cells = [(user, hour, sample.states[code]) for user, row in zip(sample.users, sample.codes, strict=True)
             for hour, code in enumerate(row)]  # fmt: skip
    parts = {"past.csv": range(24), "first.csv": range(24, 29), "second.csv": range(29, 31)}
    for name, hours in parts.items():
        lines = [
            f"{user},{1 + hour // 24:02d}T{hour % 24:02d}:00,{state}" for user, hour, state in cells if hour in hours
        ]
        (tmp_path / name).write_text(
            "\n".join(["user,time,state", *(line.replace(",", ",2024-01-", 1) for line in lines)])
        )
    clock = ["--history", "past.csv", "--set", "correlation.period=3", "--set", "correlation.prior=1"]
    terms = ["--alpha", "1", "--horizon", "9", "--ledger", "release.db"]
    for name in ("first.csv", "second.csv"):
        done = temporaldp("release", name, *clock, *terms, "-o", f"out-{name}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    finished = {}
    for phase in ([], ["--set", "correlation.phase=2"], ["--set", "correlation.phase=0"]):  # 05:00 is at phase 2
        asked = ["smooth", "out-second.csv", *clock, *phase, "--population", "151", "-o", "again.csv", "--json"]
        finished[tuple(phase)] = json.loads(temporaldp(*asked, cwd=tmp_path).stdout)["estimate"]
    own, known, other = finished.values()
    assert own == known != other
    alone = ["--ledger", "alone.db", "-o"]
    temporaldp("release", "second.csv", *clock, "--alpha", "1", *alone, "alone.csv", cwd=tmp_path)
    pages = []
    for phase in ([], ["--set", "correlation.phase=2"], ["--set", "correlation.phase=0"]):
        temporaldp("report", *clock, *phase, *alone, "page.html", cwd=tmp_path)
        pages.append((tmp_path / "page.html").read_text().partition("<h2>Every step</h2>")[2])
    assert pages[0] == pages[1] != pages[2]
    spent = ["--epsilon", "0.3", "--released", "alone.csv", "-o", "page.html"]
    pages = []
    for phase in ([], ["--set", "correlation.phase=2"], ["--set", "correlation.phase=0"]):
        done = temporaldp("report", *clock, *phase, *spent, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        pages.append((tmp_path / "page.html").read_text().partition("<h2>Every step</h2>")[2])
    assert pages[0] == pages[1] != pages[2]
