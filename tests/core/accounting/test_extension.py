"""What a user would write: a mechanism, and two accounting methods of their own (docs/architecture.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from accounting_contract import FilterContract, TestedMethod, adversaries
from making import strongest_correlation
from methods import SumAccounting, TotalVariation, TotalVariationAccounting
from oracles import hockey_stick, told_by_all, worst_mechanism
from temporaldp import (
    Adversary,
    ApproximateDP,
    Exact,
    LaplaceNoise,
    PaperBound,
    PlanError,
    TemporalAccountant,
    TransitionMatrix,
    leakage_supremum,
    plan_budget,
    sustainable_budget,
    temporal_leakage,
)
from temporaldp.base.errors import BudgetError, InputError
from temporaldp.core.correlation import Correlation

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


@dataclass(frozen=True)
class Described:
    """A mechanism by its profile and its pure epsilon, which may contradict each other; its calls are recorded."""

    profile: Callable[[np.ndarray], np.ndarray]
    pure_epsilon: float = math.inf
    coordinates: int = 1
    limit: float = 0.0
    calls: tuple[list[float]] = field(default=([],), compare=False)

    def bounds(self, losses):
        self.calls[0].extend(losses)
        delta = self.profile(losses)
        return np.clip(delta - 1e-15, 0.0, 1.0), np.clip(delta + 1e-15, 0.0, 1.0)


def laplace(losses):
    """The profile of Laplace noise of epsilon 1."""
    return np.maximum(-np.expm1(0.5 * (losses - 1.0)), 0.0)


def told(mechanism, delta=1e-5):
    return temporal_leakage(WALK, [mechanism] * 5, accounting=ApproximateDP(delta))


@pytest.mark.parametrize(
    "count", [told, lambda one: TemporalAccountant(WALK, accounting=ApproximateDP(1e-5)).spend(one)]
)
def test_a_pure_epsilon_that_contradicts_the_profile_is_refused(count):
    with pytest.raises(InputError, match=r"delta of 0 at the pure_epsilon of Described, 0\.01, .* at least 0\.39"):
        count(Described(laplace, pure_epsilon=0.01))
    with pytest.raises(
        InputError, match=r"pure_epsilon of Described, 1 divided by its 2 coordinates, .* at least 0\.22"
    ):
        count(Described(laplace, pure_epsilon=1.0, coordinates=2))  # that of one of them
    count(Described(laplace, pure_epsilon=2.0, coordinates=2))


@pytest.mark.parametrize("pure", [0.01, 1.0, math.inf])
def test_a_profile_that_is_cut_off_is_refused(pure):
    """Another profile than that of any mechanism: it would be taken for the truth, 0.034 nats where 3.31 are right."""
    with pytest.raises(InputError, match="delta of Described that is convex in e"):
        told(Described(lambda losses: np.where(losses >= min(0.01, pure), 0.0, laplace(losses)), pure))


def test_an_upper_bound_that_contradicts_the_pure_epsilon_is_refused_with_any_lower_one():
    class Upper(Described):
        def bounds(self, losses):
            return np.zeros(len(losses)), laplace(losses)

    with pytest.raises(InputError, match=r"pure_epsilon of Upper, 0\.01, .* at most 0\.39"):
        told(Upper(laplace, pure_epsilon=0.01))
    assert told(Upper(laplace, pure_epsilon=1.0)).worst == pytest.approx(told(Described(laplace, 1.0)).worst)


def test_a_sound_profile_gives_what_the_same_noise_of_the_package_does():
    mine = told(Described(laplace, pure_epsilon=1.0))
    assert mine.temporal == pytest.approx(told(LaplaceNoise(1.0, sensitivity=1.0)).temporal, rel=1e-6)
    assert told(Described(laplace)).worst == pytest.approx(mine.worst, rel=1e-2)


@pytest.mark.parametrize("rising", [lambda x: np.minimum(0.1 + x, 1.0), lambda x: 0.5 * np.abs(np.cos(3.0 * x))])
def test_a_delta_that_increases_is_refused(rising):
    with pytest.raises(InputError, match="delta of Described that falls as epsilon grows"):
        told(Described(rising, limit=0.1))


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        (Described(laplace, pure_epsilon=-1.0), "pure_epsilon of Described"),
        (Described(laplace, pure_epsilon=math.nan), "pure_epsilon of Described"),
        (Described(laplace, coordinates=0), "coordinates of Described"),
        (Described(lambda x: laplace(x)[:1]), "two arrays"),
        (Described(lambda x: x + math.nan), "between 0 and 1"),
    ],
)
def test_parts_that_are_impossible_are_refused(mechanism, message):
    with pytest.raises(InputError, match=message):
        told(mechanism)


@pytest.mark.long
@pytest.mark.parametrize("pure", [1.0, math.inf])
def test_a_profile_is_never_evaluated_beyond_its_range(pure):
    mechanism = Described(laplace, pure, calls=([],))
    with np.errstate(all="raise"):
        told(mechanism)
        TemporalAccountant(WALK, accounting=ApproximateDP(1e-4, grid=0.1)).spend(mechanism)
        with pytest.raises(InputError, match="more accurate bound"):
            told(Described(lambda x: 1.0 / (2.0 + x)))
    assert min(mechanism.calls[0]) >= 0.0
    assert max(mechanism.calls[0]) <= min(pure, 700.0)


def test_an_unhashable_mechanism_is_refused_by_the_name_of_its_class():
    class Unhashable(LeakyCoin):
        __hash__ = None

    with pytest.raises(InputError, match=r"one of the class 'Unhashable'.*frozen=True"):
        told(Unhashable(0.6, 1e-4))


# An accounting method: nothing is ever forgotten where somebody knows a correlation


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


class LaterCountsTwice(TotalVariation):
    """Every release is published again at the next step: from the future it arrives twice."""

    def arriving(self, side, transition, release, before):
        return super().arriving(side, transition, release if side == "backward" else 2.0 * release, before)


class LaterTwiceAccounting(TotalVariationAccounting):
    name = "later twice"

    def steps(self, user):
        return LaterCountsTwice(user)


def test_a_method_of_ones_own_may_tell_the_past_from_the_future():
    """Also where both directions have the same matrix."""
    method = LaterTwiceAccounting()
    limit = leakage_supremum(WALK, 0.1, accounting=method).temporal
    assert limit >= temporal_leakage(WALK, [0.1] * 200, accounting=method).worst
    budget = sustainable_budget(WALK, 1.0, accounting=method)
    assert 0.99 < temporal_leakage(WALK, [budget] * 300, accounting=method).worst <= 1.0


@dataclass(frozen=True)
class Weekend(Correlation):
    """A correlation of one's own: one matrix from Monday to Friday, another one at weekends."""

    weekday: TransitionMatrix
    weekend: TransitionMatrix
    kind = "weekend"

    @property
    def matrices(self):
        return self.weekday, self.weekend

    def at(self, transition):
        return self.weekend if transition % 7 >= 5 else self.weekday

    def mapped(self, change):
        return Weekend(change(self.weekday), change(self.weekend))


def test_a_correlation_of_ones_own_is_counted_step_by_step_or_refused():
    """It has no number of steps and no period; an odometer counted the first of its matrices at every step."""
    calm, walk = (TransitionMatrix([[p, 1.0 - p], [1.0 - p, p]]) for p in (0.95, 0.8))
    commuter = Adversary(backward=Weekend(walk, calm))
    with pytest.raises(BudgetError, match="expected a horizon"):
        TemporalAccountant(commuter)
    with pytest.raises(InputError, match="kind 'weekend': give a horizon"):
        Exact().odometer(commuter).extend([0.1])
    whole = temporal_leakage(commuter, [0.1] * 14)
    counted = TemporalAccountant(commuter, horizon=14).spend([0.1] * 14)
    assert counted.total() == pytest.approx(whole.worst, rel=1e-10)
    assert whole.worst > 1.5 * temporal_leakage(Adversary(backward=walk), [0.1] * 14).worst
