"""What a user would write: a mechanism, and two accounting methods of their own (docs/architecture.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from accounting_contract import FilterContract, TestedMethod, adversaries
from oracles import hockey_stick, told_by_all, worst_mechanism
from temporaldp import (
    Adversary,
    ApproximateDP,
    Exact,
    PaperBound,
    PlanError,
    TemporalAccountant,
    TransitionMatrix,
    leakage_supremum,
    plan_budget,
    temporal_leakage,
)
from temporaldp.accounting import StepwiseAccounting
from temporaldp.correlation import strongest_correlation
from temporaldp.errors import InputError

MATRIX = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
WALK = Adversary(MATRIX, MATRIX)


# A mechanism: whether somebody is there is reported truthfully but for a share, and sometimes the record itself leaks.


@dataclass(frozen=True)
class LeakyCoin:
    """Says the truth about one of two values with probability `truth`; with probability `spilt` the value itself gets out."""

    truth: float
    spilt: float
    coordinates: int = 1
    pure_epsilon: float = math.inf

    @property
    def limit(self) -> float:
        return self.spilt

    @property
    def outputs(self) -> np.ndarray:
        """Row: the value. Columns: it got out, as 0 or as 1; or a report of 0 or of 1."""
        kept = 1.0 - self.spilt
        heads = [kept * self.truth, kept * (1.0 - self.truth)]
        return np.array([[self.spilt, 0.0, *heads], [0.0, self.spilt, *heads[::-1]]])

    def bounds(self, losses):
        delta = self.spilt + (1.0 - self.spilt) * np.maximum(self.truth - np.exp(losses) * (1.0 - self.truth), 0.0)
        return np.clip(delta - 1e-15, 0.0, 1.0), np.clip(delta + 1e-15, 0.0, 1.0)


COIN = LeakyCoin(0.6, 1e-4)


@pytest.mark.parametrize("delta", [1e-3, 1e-2])
def test_custom_mechanism_is_never_below_its_definition(delta):
    n_steps = 5
    series = temporal_leakage(WALK, [COIN] * n_steps, accounting=ApproximateDP(delta))
    rows = [MATRIX.dense()] * (n_steps - 1)
    for step in range(n_steps):
        told = told_by_all(COIN.outputs, rows, rows, step, n_steps)
        assert hockey_stick(told, math.exp(series.temporal[step])) <= delta * (1.0 + 1e-9)
        low = math.exp(series.temporal[step] - series.evidence.gaps()[step] - 1e-9)
        assert hockey_stick(told, low) >= delta * (1.0 - 1e-6)  # two values and symmetric rows: the bound is the truth


def test_custom_mechanism_is_accepted_by_all_functions():
    odometer = TemporalAccountant(WALK, accounting=ApproximateDP(1e-2))
    for _ in range(3):
        odometer.spend(COIN)
    assert odometer.total() == pytest.approx(odometer.leakage().worst, rel=1e-6)
    limits = leakage_supremum(WALK, COIN, accounting=ApproximateDP(1e-2))
    assert odometer.total() <= limits.temporal < math.inf
    assert temporal_leakage(WALK, [COIN, None, (COIN, COIN)], accounting=ApproximateDP(1e-2)).epsilons[1] == 0.0


def test_incomplete_mechanism_is_refused():
    class Half:
        coordinates, pure_epsilon = 1, math.inf

    with pytest.raises(InputError, match="expected a mechanism"):
        temporal_leakage(WALK, [Half()], accounting=ApproximateDP(1e-2))


# An accounting method: nothing is ever forgotten where somebody knows a correlation


class EverythingAddsUp:
    """One user, step by step: all that was known arrives."""

    nothing = 0.0

    def __init__(self, user):
        self.user = user

    def arriving(self, side, transition, release, before):
        return before + release if getattr(self.user, side) else 0.0

    def leakage(self, past, release, future):
        return past + release + future

    def never_more(self, one, other):
        return one <= other

    def raised(self, arrived):
        return arrived * (1.0 + 1e-14)


class SumAccounting(StepwiseAccounting):
    name = "sum"

    def steps(self, user):
        return EverythingAddsUp(user)


SUM = SumAccounting()


def test_sum_equals_leakage_under_the_strongest_correlation():
    still = Adversary(strongest_correlation(2), strongest_correlation(2))
    spent = [0.1, 0.0, 0.4, 0.2]
    mine, exact = (temporal_leakage(still, spent, accounting=method) for method in (SUM, Exact()))
    for way in ("backward", "forward", "temporal"):
        assert getattr(mine, way) == pytest.approx(getattr(exact, way))
    assert (mine.accounting.name, mine.worst) == ("sum", pytest.approx(math.fsum(spent)))
    assert mine.attained is None
    assert mine.window(0, 4) == pytest.approx(mine.worst)


def test_sum_has_no_supremum_and_no_reserve():
    assert leakage_supremum(WALK, 1e-3, accounting=SUM).temporal == math.inf
    assert leakage_supremum(Adversary(), 1e-3, accounting=SUM).temporal == 1e-3
    accountant = TemporalAccountant(WALK, alpha=1.0, accounting=SUM)
    assert accountant.reserve == 0.0
    accountant.spend([0.25, 0.5])
    assert (accountant.total(), accountant.remaining()) == (pytest.approx(0.75), pytest.approx(0.25))
    with pytest.raises(ValueError, match="reserve"):
        TemporalAccountant(WALK, alpha=1.0, reserve=1e-6, accounting=SUM)


@pytest.mark.parametrize("method", ["optimal", "quantified", "uniform"])
def test_a_plan_by_the_sum_spends_alpha_in_all(method):
    plan = plan_budget(WALK, alpha=1.0, horizon=5, method=method, accounting=SUM)
    assert (plan.accounting.name, math.fsum(plan.epsilons)) == ("sum", pytest.approx(1.0, rel=2e-3))
    assert math.fsum(plan.epsilons) <= 1.0


def test_sum_has_no_sustainable_budget():
    with pytest.raises(PlanError, match="by the accounting method 'sum'"):
        plan_budget(WALK, alpha=1.0, accounting=SUM)


# Another one: total variation. ``E_g`` of two rows is at most their total variation theta, so that what arrives is at most
# ``log(1 + theta (e^a - 1))``, above the paper's loss and below a.


class TotalVariation(EverythingAddsUp):
    def __init__(self, user):
        super().__init__(user)
        self._thetas: dict[int, float] = {}

    def arriving(self, side, transition, release, before):
        matrix = getattr(self.user, side).at(transition)
        if matrix is None:
            return 0.0
        if id(matrix) not in self._thetas:
            rows = matrix.dense()
            self._thetas[id(matrix)] = max(float(np.maximum(a - b, 0.0).sum()) for a in rows for b in rows)
        known_so_far = before + release
        return max(known_so_far + math.log1p((1.0 - self._thetas[id(matrix)]) * math.expm1(-known_so_far)), 0.0)


class TotalVariationAccounting(StepwiseAccounting):
    name = "total variation"

    def steps(self, user):
        return TotalVariation(user)


class TestTotalVariation(FilterContract):
    """All that an accounting method must satisfy, of one that is twenty lines long."""

    tested = TestedMethod("total variation", TotalVariationAccounting(), worst_mechanism)

    def test_total_variation_lies_between_the_papers_bound_and_the_sum(self, rng):
        for n_steps in (None, 6):
            adversary, epsilons = adversaries(rng, n_steps), rng.uniform(0.05, 1.0, 6)
            paper, mine, most = (
                temporal_leakage(adversary, epsilons, accounting=method).temporal
                for method in (PaperBound(), self.tested.accounting, SUM)
            )
            assert (paper <= mine * (1.0 + 1e-12)).all()
            assert (mine <= most * (1.0 + 1e-12)).all()
