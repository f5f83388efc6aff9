"""Every real data set, audited end to end by the command, and planned, released and reported on where it is small."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from data_sets import bike_locations, dod_sequences, income_quintiles
from places import REPOSITORY
from temporaldp import load_matrix, load_plan, load_released, read_traces, save_matrix
from temporaldp.apps.cli import app
from temporaldp.data.tables import estimate_transition_matrix

# Counts of yearly moves between income quintiles, as giddy's documentation prints them for these data (3,840 in all).
GIDDY_TRANSITIONS = [
    [729, 71, 1, 0, 0],
    [72, 567, 80, 3, 0],
    [0, 81, 631, 86, 2],
    [0, 3, 86, 573, 56],
    [0, 0, 1, 57, 741],
]


def run(*arguments):
    """The command's standard output; it must succeed."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def audited(*arguments):
    """The audit as JSON, checked for what must hold of any audit."""
    found = json.loads(run("audit", *arguments, "--json"))
    epsilon, temporal = found["epsilon"], np.array(found["temporal"])
    assert (temporal >= epsilon * (1 - 1e-12)).all()
    assert (temporal <= epsilon * len(temporal) * (1 + 1e-12)).all()
    assert found["worst_time"] == int(np.argmax(temporal))
    for direction in ("backward", "forward"):
        assert max(found[direction]) <= float(found["supremum"][direction]) * (1 + 1e-12)
    return found


@pytest.mark.slow
def test_us_state_income(data_folder, tmp_path):
    path = income_quintiles(data_folder, tmp_path / "income.csv")
    traces = read_traces(path)
    counts = np.array(GIDDY_TRANSITIONS)
    assert counts.sum() == 3840
    matrix = estimate_transition_matrix(traces, direction="forward")
    assert matrix.dense() == pytest.approx(counts / counts.sum(axis=1, keepdims=True), abs=1e-15)
    backward = estimate_transition_matrix(traces, direction="backward")
    assert backward.dense() == pytest.approx((counts / counts.sum(axis=0)).T, abs=1e-15)
    found = audited(path, "--epsilon", "0.1")
    # Quintiles two or more apart have no common neighbour but one: very strong correlation.
    assert max(found["temporal"]) > 3
    assert len(found["temporal"]) == 81
    save_matrix(matrix, tmp_path / "f.csv")
    assert load_matrix(tmp_path / "f.csv") == matrix


@pytest.mark.slow
def test_msnbc_clickstreams(data_folder):
    path = data_folder / "msnbc323" / "msnbc323.seq"
    found = audited(path, "--epsilon", "0.1", "--set", "correlation.prior=1")
    assert len(found["states"]) == 17
    assert len(found["temporal"]) == 362
    per_user = audited(
        path,
        "--epsilon",
        "0.1",
        "--set",
        "correlation.prior=0.1",
        "--set",
        "correlation.per_user=true",
        "--horizon",
        "50",
    )
    assert per_user["worst_user"] is not None


@pytest.mark.slow
def test_sleep_of_dod(data_folder, tmp_path):
    found = audited(dod_sequences(data_folder, tmp_path / "dod.csv"), "--epsilon", "0.05")
    assert found["states"] == ["0", "1", "2", "3", "4"]


@pytest.mark.slow
def test_sleep_of_hmc_at_full_resolution(data_folder):
    path = data_folder / "sleep_hmc" / "hmc_sleep_stages.csv.gz"
    found = audited(path, "--set", "traces.time=t", "--epsilon", "0.01", "--set", "traces.states=W,R,N1,N2,N3")
    assert found["states"] == ["W", "R", "N1", "N2", "N3"]
    assert len(found["temporal"]) == 1309


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "states", "steps"),
    [pytest.param("mvad.csv", 6, 72, marks=pytest.mark.slow), ("actcal.csv", 4, 12)],
)
def test_life_courses(data_folder, tmp_path, name, states, steps):
    path = data_folder / "lifecourse_traminer" / name
    found = audited(path, "--set", "traces.user=id", "--epsilon", "0.05", "--set", "correlation.prior=0.5")
    assert (len(found["states"]), len(found["temporal"])) == (states, steps)
    plan, counts, page = tmp_path / "p.json", tmp_path / "r.parquet", tmp_path / "r.html"
    run(
        "plan",
        path,
        "--set",
        "traces.user=id",
        "--set",
        "correlation.prior=0.5",
        "--alpha",
        "1",
        "--horizon",
        steps,
        "-o",
        plan,
    )
    run("release", path, "--set", "traces.user=id", "--plan", plan, "-o", counts)
    run(
        "report",
        path,
        "--set",
        "traces.user=id",
        "--set",
        "correlation.prior=0.5",
        "--plan",
        plan,
        "--released",
        counts,
        "--set",
        "report.true_counts=true",
        "-o",
        page,
    )
    assert load_plan(plan).leakage.worst <= 1.0
    assert load_released(counts).counts.shape == (steps, states)
    assert "The plan satisfies " in page.read_text()


@pytest.mark.slow
def test_bikes(data_folder, tmp_path):
    path = bike_locations(data_folder, tmp_path / "bikes.csv")
    columns = ("--set", "traces.user=bike", "--set", "traces.time=day", "--set", "traces.state=station")
    found = audited(path, *columns, "--epsilon", "0.1", "--set", "correlation.prior=0.1")
    assert len(found["states"]) >= 65
    assert len(found["temporal"]) == 90


@pytest.mark.parametrize(("kept", "collected"), [("reference_values", "values"), ("exact_values", "exact")])
def test_the_reference_numbers_are_the_collected_ones(data_folder, kept, collected):
    ours, theirs = (
        REPOSITORY / "tests" / "support" / f"{kept}.json",
        data_folder.parent / "reference" / f"{collected}.json",
    )
    assert json.loads(ours.read_text()) == json.loads(theirs.read_text())
