"""Leakage at a delta from the shell: audit, plan, release, report, in the right words."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from command import temporaldp
from places import REPOSITORY
from temporaldp import TransitionMatrix, load_plan, load_released, save_matrix
from temporaldp.base.display import number, spread

SAMPLE = REPOSITORY / "src" / "temporaldp" / "data" / "sample" / "sleep_5min.csv"


def said(result):
    assert result.returncode == 0, result.stderr
    return " ".join(result.stdout.split())


@pytest.fixture(name="walk")
def _walk(tmp_path):
    """Options for three states and six steps."""
    rows = TransitionMatrix([[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.0, 0.4, 0.6]], ["a", "b", "c"])
    save_matrix(rows, tmp_path / "rows.json")
    return (
        "--set",
        f"correlation.backward={tmp_path / 'rows.json'}",
        "--set",
        f"correlation.forward={tmp_path / 'rows.json'}",
        "--horizon",
        "6",
    )


@pytest.mark.long
def test_audit_of_gaussian_noise_and_of_any_mechanism_with_an_epsilon(walk):
    audit = ("audit", *walk, "--noise", "gaussian", "--scale", "10", "--delta", "1e-2")
    words = said(temporaldp(*audit))
    alone = pld.from_discrete_gaussian_mechanism(10.0, 1, value_discretization_interval=1e-3).self_compose(2)
    found = json.loads(temporaldp(*audit, "--json").stdout)
    assert found["epsilon"] == pytest.approx(alone.get_epsilon_for_delta(1e-2), abs=1e-3)
    assert f"{number(found['epsilon'], up=True)} at delta 0.01" in words
    assert words.startswith(
        "One table alone: a guess between two equally likely states is right with probability at most "
    )
    assert f"({number(found['worst_leakage'], up=True)} nats at delta 0.01, upper bound), about step " in words
    assert ". All 6: at most " in words and "% by the whole privacy curve (" in words
    assert "No two states are distinguished better" in words and found["accounting"]["pairwise"] is True
    found = json.loads(temporaldp("audit", *walk, "--epsilon", "0.1", "--delta", "1e-2", "--json").stdout)
    pure = json.loads(temporaldp("audit", *walk, "--epsilon", "0.1", "--json").stdout)
    assert found["delta"] == 1e-2 and found["gap"] is None and found["accounting"]["pairwise"] is True
    assert (np.array(found["temporal"]) <= np.array(pure["temporal"])).all()
    assert found["worst_leakage"] < 0.8 * pure["paper"]["worst_leakage"]
    refused = temporaldp(*audit, "--alpha", "0.05")
    assert refused.returncode == 3 and "The level (0.05, 0.01)-DP_T is not shown to be satisfied." in refused.stderr


@pytest.mark.long
def test_plan_release_and_report_under_approximate_dp(tmp_path):
    plan, counts, page = tmp_path / "p.json", tmp_path / "r.parquet", tmp_path / "r.html"
    traces = tmp_path / "traces.csv"  # of the sample the first three steps
    traces.write_text("\n".join(",".join(line.split(",")[:4]) for line in SAMPLE.read_text().splitlines()) + "\n")
    words = said(
        temporaldp(
            "plan",
            traces,
            "--set",
            "correlation.prior=1",
            "--alpha",
            "1",
            "--delta",
            "1e-3",
            "--horizon",
            "3",
            "-o",
            plan,
            "--details",
        )
    )
    scales = spread(load_plan(plan).scales, digits=4)
    assert "Plan for alpha = 1, delta = 0.001" in words and f"discrete Gaussian noise of scale {scales} counts" in words
    words = said(temporaldp("release", traces, "--plan", plan, "-o", counts))
    assert (
        "at most 1 nat at delta 0.001" in words
        and f"exact discrete Gaussian noise (OpenDP), scale {scales} counts" in words
    )
    assert load_released(counts).noise == "gaussian"
    said(temporaldp("report", traces, "--set", "correlation.prior=1", "--plan", plan, "--released", counts, "-o", page))
    text = " ".join(page.read_text().split())
    assert "The plan satisfies (1, 0.001)-DP_T" in text
    level = float(re.search(r"satisfy \(([\d.]+), 0.001\)-DP_T", text)[1])
    # Pair by pair, the search ends within a thousandth of alpha, on a coarser grid than that of the report.
    assert load_plan(plan).leakage.worst - 2e-3 < level <= 1.0 and "plus a probability of 0.001" in text
    assert f"discrete Gaussian noise of scale {scales} counts" in text
    assert (
        "exact discrete Gaussian noise (OpenDP)" in text
        and "The amount of noise of every release is fixed before" in text
    )
    other = tmp_path / "pure.parquet"
    said(temporaldp("plan", traces, "--set", "correlation.prior=1", "--alpha", "1", "-o", tmp_path / "pure.json"))
    said(temporaldp("release", traces, "--plan", tmp_path / "pure.json", "-o", other))
    mixed = temporaldp(
        "report",
        traces,
        "--set",
        "correlation.prior=1",
        "--plan",
        plan,
        "--released",
        other,
        "-o",
        tmp_path / "mixed.html",
    )
    assert mixed.returncode == 2 and "not released under this plan" in " ".join(mixed.stderr.split())
    assert not (tmp_path / "mixed.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("audit", SAMPLE, "--noise", "gaussian", "--delta", "1e-6"),
            "expected --epsilon E (of every step), or --noise M",
        ),
        (("audit", SAMPLE, "--noise", "gaussian", "--scale", "3"), "--delta together"),
        (("audit", SAMPLE, "--epsilon", "0.1", "--noise", "unknown"), "privacy.noise"),
        (
            ("audit", SAMPLE, "--noise", "gaussian", "--scale", "3", "--epsilon", "1", "--delta", "0.1"),
            "one of --epsilon",
        ),
        (("audit", SAMPLE, "--epsilon", "0.1", "--delta", "2"), "privacy.delta"),
        (
            ("audit", SAMPLE, "--epsilon", "0.1", "--delta", "1e-6", "--bound", "paper"),
            "is an accounting method for delta = 0",
        ),
        (("plan", SAMPLE, "--alpha", "1", "--set", "privacy.noise=gaussian"), "--delta D"),
        (("plan", SAMPLE, "--alpha", "1", "--delta", "1e-6", "--horizon", "5", "--compare"), "leave out --delta"),
        (
            ("plan", SAMPLE, "--alpha", "1", "--delta", "1e-6", "--bound", "paper"),
            "is an accounting method for delta = 0",
        ),
        (
            ("plan", SAMPLE, "--alpha", "1", "--delta", "1e-6", "--set", "plan.method=uniform", "--horizon", "3"),
            "leave out --delta",
        ),
        (
            ("plan", SAMPLE, "--alpha", "1", "--delta", "1e-6", "--set", "plan.objective=mean_squared_error"),
            "leave out --delta",
        ),
    ],
)
def test_invalid_arguments_are_refused(arguments, message):
    result = temporaldp(*arguments)
    assert result.returncode == 2 and message in " ".join(result.stderr.split())
