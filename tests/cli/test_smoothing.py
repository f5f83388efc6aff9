"""`release --smooth`, `smooth` and `tradeoff` as a user runs them."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from command import refused, temporaldp
from temporaldp import Trajectories, load_released, load_sample


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Half of the sample as history, the other half to be released, and a plan by the history."""
    place = tmp_path_factory.mktemp("smoothing")
    table = load_sample()
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
    assert "15.2 people a state" in made.stdout
    assert "warning" in made.stderr
    assert "more than an average count" in made.stderr
    return place


def test_a_release_is_smoothed_and_rows_are_made_up(folder):
    command = (
        "release now.csv --plan plan.json --history past.csv -o out.csv --smooth smoothed.csv --synthetic rows.csv"
    )
    result = temporaldp(*command.split(), cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "no protected data" in " ".join(result.stdout.split())
    rows = list(csv.DictReader((folder / "smoothed.csv").read_text().splitlines()))
    assert len(rows) == 47 * 5
    assert sum(float(row["smoothed"]) for row in rows) == pytest.approx(47 * 76)
    assert all(float(row["lower"]) <= float(row["smoothed"]) <= float(row["upper"]) for row in rows)
    assert "synthetic: nobody's data" in (folder / "rows.csv").read_text()
    command = "smooth out.csv --history past.csv --population 76 -o again.csv --figure again.png --json"
    again = temporaldp(*command.split(), cwd=folder)
    assert again.returncode == 0, again.stderr
    found = np.array(json.loads(again.stdout)["smoothed"])
    states = load_released(folder / "out.csv").states
    wanted = np.array([float(row["smoothed"]) for row in rows]).reshape(47, 5)
    np.testing.assert_allclose(found, wanted[:, [states.index(row["state"]) for row in rows[:5]]], atol=1e-9)
    assert (folder / "again.png").stat().st_size > 10_000


def test_a_ledger_keeps_filtered_counts(folder):
    command = (
        "release now.csv --alpha 1 --bound paper --history past.csv --ledger l.db -o l.csv --overwrite --smooth f.csv"
    )
    assert temporaldp(*command.split(), cwd=folder).returncode == 0
    first = (folder / "f.csv").read_bytes()
    assert temporaldp(*command.split(), cwd=folder).returncode == 0
    assert (folder / "f.csv").read_bytes() == first


def test_a_release_that_is_mostly_noise_does_not_pass_without_a_word(folder):
    result = temporaldp(*["release", "now.csv", "--plan", "plan.json", "-o", "plain.csv"], cwd=folder)
    assert result.returncode == 0
    assert "released counts are below 0 or above the 76 people" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("release now.csv --plan plan.json -o x.csv --smooth s.csv", "temporaldp learn"),
        ("release now.csv --plan plan.json --history now.csv -o x.csv --smooth s.csv", "learnt from the protected"),
        ("release now.csv --plan plan.json --history past.csv -o x.csv --smooth s.csv --consistent", "--consistent"),
        ("release now.csv --plan plan.json -o x.csv --synthetic s.csv", "--smooth"),
        ("release now.csv --plan plan.json --history past.csv -o x.csv --smooth x.csv", "same file"),
        (
            "release now.csv --plan plan.json --history past.csv --per-user --prior 1 -o x.csv --smooth s.csv",
            "--per-user",
        ),
        ("tradeoff now.csv", "learnt from the protected"),
        ("tradeoff --history past.csv --horizon 5", "--population"),
        ("tradeoff now.csv --history past.csv --alpha 1,x", "--alpha"),
        ("tradeoff now.csv --history past.csv --mechanism gaussian", "--delta"),
    ],
)
def test_what_would_publish_protected_data_or_makes_no_sense_is_refused(folder, command, told):
    refused(temporaldp(*command.split(), cwd=folder), told)
    assert not (folder / "x.csv").exists()


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
