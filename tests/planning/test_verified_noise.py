"""Less noise by simulation: what is verified holds, is less, is kept and found again; what cannot be is said or refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from command import temporaldp
from temporaldp import (
    Adversary,
    ApproximateDP,
    BudgetError,
    DiscreteGaussianNoise,
    InputError,
    TransitionMatrix,
    load_plan,
    plan_noise,
    save_plan,
    sticky,
    temporal_leakage,
)
from temporaldp.correlation import Origin
from temporaldp.report import Evidence, render_report
from temporaldp.studies import verify_leakage

ROWS = [[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.0, 0.4, 0.6]]
WALK = Adversary(TransitionMatrix(ROWS, ["a", "b", "c"]))
ASKED = {"alpha": 1.0, "horizon": 3, "accounting": ApproximateDP(0.01, pairwise=False)}


@pytest.fixture(scope="module", name="plans")
def _plans():
    return plan_noise(WALK, **ASKED), plan_noise(WALK, verify=True, draws=40_000, **ASKED)


@pytest.mark.long
def test_verified_plan_has_less_noise_and_is_not_refuted_by_new_draws(plans):
    certified, plan = plans
    assert plan.accounting.name == "verified" and plan.leakage.worst <= 1.0 and plan.delta == 0.01
    assert plan.mean_absolute_noise < certified.mean_absolute_noise == plan.verification.certified_noise
    assert (plan.verification.failure, plan.verification.attempts) == (1e-5, 5)
    assert "verified by simulation" in plan.description and "1e-05 that the draws deceive" in plan.verification.sentence
    noise = [DiscreteGaussianNoise(scale) for scale in plan.scales.tolist()]
    other = verify_leakage(WALK, noise, delta=0.01, epsilon=1.0, failure=1e-3, draws=100_000, seed=5)
    assert not other.is_refuted and not other.is_certified
    less = [DiscreteGaussianNoise(0.6 * scale) for scale in plan.scales.tolist()]
    assert verify_leakage(WALK, less, delta=0.01, epsilon=1.0, failure=1e-3, draws=100_000).is_refuted


@pytest.mark.long
def test_verified_plan_round_trips_and_reports_its_leakage(plans, tmp_path):
    _, plan = plans
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json")
    assert again.verification == plan.verification and again == dataclasses.replace(plan, leakage=again.leakage)
    assert again.leakage_to(WALK, 3).accounting.name == "verified" and again.leakage_to(WALK, 2).worst <= 1.0
    told = Evidence((WALK,), again.leakage_to(WALK, 3), Origin("matrices", "A walk."), ("1", "2", "3"), plan=again)
    page = render_report(told)
    assert "The plan satisfies (" in page and "1e-05 that the draws deceive" in page
    noise = [DiscreteGaussianNoise(scale) for scale in plan.scales.tolist()]
    known = temporal_leakage(WALK, noise, accounting=ApproximateDP(0.01)).user_level
    assert told.leakage.user_level == pytest.approx(known, rel=1e-4)  # on another grid
    stronger = Adversary(TransitionMatrix(0.9 * np.eye(3) + 0.1 * np.array(ROWS), ["a", "b", "c"]))
    assert again.leakage_to(stronger, 3).accounting.pairwise is True and again.leakage_to(stronger, 3).worst > 1.0


def test_certified_plan_is_kept_when_time_runs_out(plans):
    plan = plan_noise(WALK, verify=True, seconds=1e-6, **ASKED)
    assert plan.scales.tolist() == plans[0].scales.tolist() and plan.accounting.pairwise is False
    assert plan.verification.out_of_time and plan.verification.failure == 0.0
    assert "0 of 5 attempts" in plan.verification.sentence and "certified plan" in plan.verification.sentence


@pytest.mark.parametrize(
    ("adversary", "changed", "error", "message"),
    [
        (WALK, {"failure": 0.01}, BudgetError, "failure probability.* < 0.01"),
        (WALK, {"horizon": None}, BudgetError, "horizon"),
        (WALK, {"seconds": 0.0}, InputError, "seconds"),
        (WALK, {"draws": 0}, InputError, "draws"),
        (WALK, {"accounting": ApproximateDP(1e-12)}, InputError, "1e-09 or more"),
        (Adversary(), {}, InputError, "with a correlation"),
        (Adversary(sticky(stays=(0.7, 0.8), states=["a", "b", "c"])), {}, InputError, "IntervalMatrix"),
    ],
)
def test_invalid_verification_is_refused_before_planning(adversary, changed, error, message):
    with pytest.raises(error, match=message):
        plan_noise(adversary, verify=True, **(ASKED | changed))


@pytest.mark.long
def test_command_refuses_and_reports():
    plan = (
        "plan",
        "--set",
        "traces.states=a,b",
        "--set",
        "correlation.stays=0.8:0.8",
        "--alpha",
        "1",
        "--set",
        "verification.enabled=true",
    )
    refused = temporaldp(*plan, "--delta", "0.01")
    assert refused.returncode == 2 and "--horizon T" in " ".join(refused.stderr.split())
