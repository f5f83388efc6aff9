"""Tumult Analytics' sessions under a temporal accountant: their interface, and real ones on Spark in their own environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

import pytest

from places import REPOSITORY
from temporaldp import (
    Adversary,
    ApproximateDP,
    BudgetError,
    InputError,
    LeakageBudgetError,
    TemporalAccountant,
    TransitionMatrix,
    adapters,
)

WALK = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])


@dataclass
class PureDPBudget:
    epsilon: float


@dataclass
class ApproxDPBudget:
    epsilon: float
    delta: float


@dataclass
class RhoZCDPBudget:
    rho: float


class Session:
    """What the adapter asks of a session."""

    def __init__(self, budget):
        self.remaining_privacy_budget = budget

    def evaluate(self, query, budget):
        """Nothing is asked here."""


def accountant(**settings):
    return TemporalAccountant(Adversary(WALK, WALK), **settings)


def test_session_is_one_step_charged_in_full():
    temporal, session = accountant(alpha=1.0), Session(PureDPBudget(0.1))
    assert adapters.tumult(session, temporal, PureDPBudget(0.1)) is session
    adapters.tumult(session, temporal, PureDPBudget(0.1), moves=1)
    assert temporal.spent == pytest.approx([0.2, 0.1], rel=1e-12)
    with pytest.raises(LeakageBudgetError):
        adapters.tumult(Session(PureDPBudget(1)), temporal, PureDPBudget(1))
    assert len(temporal) == 2


def test_rho_and_delta_follow_group_privacy():
    temporal = accountant(accounting=ApproximateDP(1e-6))
    adapters.tumult(Session(RhoZCDPBudget(0.01)), temporal, RhoZCDPBudget(0.01))
    adapters.tumult(Session(RhoZCDPBudget(0.04)), temporal, RhoZCDPBudget(0.04), moves=1)
    adapters.tumult(Session(ApproxDPBudget(0.1, 1e-9)), temporal, ApproxDPBudget(0.1, 1e-9))
    assert temporal.spent[0] == pytest.approx(temporal.spent[1], rel=1e-5)
    assert temporal.spent[2] == pytest.approx(0.2, rel=1e-2)
    with pytest.raises(BudgetError, match="counts epsilons with delta = 0"):
        adapters.tumult(Session(RhoZCDPBudget(0.1)), accountant(), RhoZCDPBudget(0.1))


def test_used_session_or_session_without_a_bound_is_refused():
    temporal = accountant()
    with pytest.raises(BudgetError, match="nothing was asked yet"):
        adapters.tumult(Session(PureDPBudget(0.05)), temporal, PureDPBudget(0.1))
    with pytest.raises(BudgetError, match="nothing was asked yet"):
        adapters.tumult(Session(PureDPBudget(0.1)), temporal, RhoZCDPBudget(0.1))
    with pytest.raises(BudgetError, match="finite budget"):
        adapters.tumult(Session(PureDPBudget(float("inf"))), temporal, PureDPBudget(float("inf")))
    with pytest.raises(InputError, match="expected a Session"):
        adapters.tumult(PureDPBudget(0.1), temporal, PureDPBudget(0.1))
    with pytest.raises(InputError, match="expected PureDPBudget"):
        adapters.tumult(Session(0.1), temporal, 0.1)
    assert len(temporal) == 0


@pytest.mark.spark
def test_sessions_are_charged_before_they_answer(tmp_path):
    """Two sessions answer at 0.2 each for one removed and one added row; one that exceeds the level is refused."""
    python = REPOSITORY / ".venv-tumult" / "bin" / "python"
    if not python.exists() or shutil.which("java") is None:
        pytest.skip("Tumult Analytics has an environment of its own, which `make test-slow NAME=tumult` makes")
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "src"), "PYSPARK_PYTHON": str(python)}
    example = REPOSITORY / "examples" / "tumult" / "sessions.py"
    done = subprocess.run([python, example], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answered = re.findall(r"day \d: \{'home': -?\d+, 'out': -?\d+\}", done.stdout)
    assert 1 <= len(answered) < 4, done.stdout
    assert "refused" in done.stdout
    assert f"{len(answered)} days charged with [0.2" in done.stdout
    assert float(done.stdout.split("worst leakage ")[1]) <= 0.35
