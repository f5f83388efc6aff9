"""`release --smooth`, `smooth` and `tradeoff` as a user runs them."""

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
    assert "15.2 people per state" in made.stdout
    assert "warning" in made.stderr
    assert "more than an average count" in made.stderr
    (place / "chain.csv").write_text("state,a,b\na,0.9,0.1\nb,0.2,0.8\n")
    return place


@pytest.mark.long
def test_release_is_smoothed(folder):
    command = "release now.csv --plan plan.json --history past.csv -o out.csv --set release.smoothed=smoothed.csv"
    result = temporaldp(*command.split(), cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "no protected data" in " ".join(result.stdout.split())
    rows = list(csv.DictReader((folder / "smoothed.csv").read_text().splitlines()))
    assert len(rows) == 47 * 5
    assert sum(float(row["smoothed"]) for row in rows) == pytest.approx(47 * 76)
    assert all(float(row["lower"]) <= float(row["smoothed"]) <= float(row["upper"]) for row in rows)
    command = "smooth out.csv --history past.csv --population 76 -o again.csv --figure again.png --json"
    again = temporaldp(*command.split(), cwd=folder)
    assert again.returncode == 0, again.stderr
    found = np.array(json.loads(again.stdout)["smoothed"])
    states = load_released(folder / "out.csv").states
    wanted = np.array([float(row["smoothed"]) for row in rows]).reshape(47, 5)
    np.testing.assert_allclose(found, wanted[:, [states.index(row["state"]) for row in rows[:5]]], atol=1e-9)
    assert (folder / "again.png").stat().st_size > 10_000


@pytest.mark.long
def test_same_start_uses_the_first_counts_of_the_history(folder):
    made = temporaldp("release", "now.csv", "--plan", "plan.json", "-o", "drawn.csv", cwd=folder)
    assert made.returncode == 0, made.stderr
    words = "smooth drawn.csv --history past.csv --population 76 -o told.csv --json"
    without = json.loads(temporaldp(*words.split(), cwd=folder).stdout)["smoothed"]
    found = json.loads(temporaldp(*words.split(), "--set", "release.same_start=true", cwd=folder).stdout)["smoothed"]
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
    words = (
        "release now.csv --alpha 1 --set correlation.file=c.json --horizon 4 --ledger r.db -o out.csv "
        "--set release.smoothed=smoothed.csv --json"
    )
    made = temporaldp(*words.split(), cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    assert told["alpha_in_all"] == 3.0 and told["worst_leakage"] <= 1.0
    assert "differential privacy" in told["used"] and "no protected data" in told["used"]
    for state, kept in zip("ab", np.array(told["smoothed"]).T, strict=True):
        rows = csv.DictReader((tmp_path / "smoothed.csv").read_text().splitlines())
        written = [float(row["smoothed"]) for row in rows if row["state"] == state]
        np.testing.assert_allclose(written, kept, atol=1e-9)


@pytest.mark.long
def test_a_ledger_keeps_filtered_counts(folder):
    command = (
        "release now.csv --alpha 1 --set privacy.bound=paper --history past.csv --ledger l.db -o l.csv "
        "--overwrite --set release.smoothed=f.csv"
    )
    assert temporaldp(*command.split(), cwd=folder).returncode == 0
    first = (folder / "f.csv").read_bytes()
    assert temporaldp(*command.split(), cwd=folder).returncode == 0
    assert (folder / "f.csv").read_bytes() == first


def test_release_that_is_mostly_noise_warns(folder):
    result = temporaldp(*["release", "now.csv", "--plan", "plan.json", "-o", "plain.csv"], cwd=folder)
    assert result.returncode == 0
    assert "released counts are below 0 or above 76, the number of people" in " ".join(result.stderr.split())


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("release now.csv --plan plan.json -o x.csv --set release.smoothed=s.csv", "temporaldp learn"),
        (
            "release now.csv --plan plan.json --history now.csv -o x.csv --set release.smoothed=s.csv",
            "learned from the protected",
        ),
        (
            "release now.csv --plan plan.json --history past.csv -o x.csv --set release.smoothed=s.csv --set "
            "release.consistent=true",
            "release.consistent",
        ),
        ("release now.csv --plan plan.json -o x.csv --set release.same_start=true", "release.smoothed"),
        ("release now.csv --plan plan.json --history past.csv -o x.csv --set release.smoothed=x.csv", "same file"),
        (
            "release now.csv --plan plan.json --history past.csv --set correlation.per_user=true --set "
            "correlation.prior=1 -o x.csv --set release.smoothed=s.csv",
            "correlation.per_user",
        ),
        ("release now.csv --plan plan.json -o x.csv --set release.same_start=true", "release.smoothed"),
        ("tradeoff now.csv", "learned from the protected"),
        (
            "tradeoff --set correlation.forward=chain.csv --horizon 5 --set release.population=76 --set "
            "release.same_start=true",
            "--history",
        ),
        ("tradeoff --history past.csv --horizon 5", "release.population"),
        ("tradeoff now.csv --history past.csv --alpha 1,x", "--alpha"),
        ("tradeoff now.csv --history past.csv --noise gaussian", "--delta"),
    ],
)
def test_smoothing_that_publishes_protected_data_is_refused(folder, command, told):
    assert told in " ".join(refused(*command.split(), cwd=folder).split())


@pytest.mark.long
def test_tradeoff_finds_the_smallest_alpha_for_an_error(folder):
    command = "tradeoff now.csv --history past.csv --horizon 8 --alpha 0.5,1 --error 5 --figure t.png --json"
    result = temporaldp(*command.split(), cwd=folder)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert [round(point["alpha"], 1) for point in found["points"]] == [0.5, 1.0]
    assert found["within"]["smoothed_error"] <= 5.0
    assert found["within"]["alpha"] < found["within_released"]["alpha"]
    assert (folder / "t.png").stat().st_size > 10_000
    shown = temporaldp(*command.replace(" --json", "").split(), cwd=folder)
    assert "The smallest alpha with an error of at most 5 people smoothed" in " ".join(shown.stdout.split())


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
    terms = ["--alpha", "1", "--horizon", "9", "--ledger", "release.db", "--set", "release.smoothed=smoothed.csv"]
    for name in ("first.csv", "second.csv"):
        done = temporaldp("release", name, *clock, *terms, "-o", f"out-{name}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    finished = {}
    for phase in ([], ["--set", "correlation.phase=2"], ["--set", "correlation.phase=0"]):  # 05:00 is at phase 2
        asked = ["smooth", "out-second.csv", *clock, *phase, "--population", "151", "-o", "again.csv", "--json"]
        finished[tuple(phase)] = json.loads(temporaldp(*asked, cwd=tmp_path).stdout)["smoothed"]
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
