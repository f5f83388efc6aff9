"""What every accounting method must satisfy, including one of a user's own: a test class inherits `Contract` and names a
`TestedMethod`.

Nothing here looks inside a method. The definition is enumerated (`exact_oracles`, `oracles`), which shares no code
with the package.
"""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from exact_cases import random_rows
from oracles import defined_leakage
from temporaldp import (
    Adversary,
    InputError,
    LeakageBudgetError,
    TemporalAccountant,
    TransitionMatrix,
    leakage_supremum,
    replan,
    sustainable_budget,
    temporal_leakage,
)
from temporaldp.core.accounting import Accounting

DIRECTIONS = ("backward", "forward", "temporal")
ROUNDING = 1e-12
"""Relative: two sums of the same numbers in another order."""

CLOSE = 1e-9
"""Relative distance between an odometer and the series, and between what remains and the largest that the series allows."""

LEVEL = 2e-11
"""Share of the level that a filter may leave, so that a step on it can be left behind one day."""

N, TAIL = 3, 120
"""Values of each person; and steps of the reserve after which a correlation that mixes has settled."""


@dataclass(frozen=True)
class TestedMethod:
    """An accounting method, and what is true of it beside the contract.

    `name` is that of the method which is applied. `outputs(n, epsilon)` are likelihoods, shape (outputs, n), of a mechanism
    that keeps the promise of an epsilon; without a delta, of the one that reveals most about any two states. `online` names the
    method by which an accountant counts where its numbers exceed those of the series; None if they are equal. `adopts`: whether
    an accountant goes on with another correlation.
    """

    __test__ = False

    name: str
    accounting: Accounting
    outputs: Callable[[int, float], np.ndarray]
    is_exact: bool = False
    online: str | None = None
    distance: float = 1.0
    adopts: bool = False

    def series(self, adversary, epsilons):
        return temporal_leakage(adversary, epsilons, accounting=self.accounting)

    def accountant(self, adversary, **arguments):
        return TemporalAccountant(adversary, accounting=self.accounting, **arguments)

    def defined(self, adversary, epsilons):
        """BPL, FPL and TPL by the definition: every output, at every step, in every order."""
        rows = (
            [one.at(t).dense() for t in range(len(epsilons) - 1)] if one else None
            for one in (adversary.backward, adversary.forward)
        )
        return defined_leakage(*rows, epsilons, self.outputs)

    def reordered(self, order) -> TestedMethod:
        """The same method for states in another order."""
        accounting = self.accounting
        if accounting.distances is not None:
            accounting = type(accounting)(np.asarray(accounting.distances)[np.ix_(order, order)])
        return TestedMethod(self.name, accounting, self.outputs)


def mixing(rng, n=N, share=0.5) -> TransitionMatrix:
    """Rows that have values in common: every level has a sustainable budget."""
    return TransitionMatrix(share * random_rows(n, rng) + (1.0 - share) / n)


def adversaries(rng, n_steps=None, known=None) -> Adversary:
    """Who knows both directions or one, by constant matrices or one for each transition."""
    known = known or ("both", "both", "backward", "forward")[int(rng.integers(4))]

    def one():
        return mixing(rng) if n_steps is None else [mixing(rng) for _ in range(n_steps - 1)]

    return Adversary(None if known == "forward" else one(), None if known == "backward" else one())


def valid_at(steps) -> Adversary:
    """One matrix for each transition, of those who are valid at each step: backward into a step, forward out of it."""
    return Adversary([one.backward for one in steps[1:]], [one.forward for one in steps[:-1]])


def state(accountant):
    """All that a refused request leaves as it was."""
    remaining = None if accountant.alpha is None else (accountant.reserve, accountant.remaining())
    spent = [repr(one) for one in accountant.spent]
    return len(accountant), spent, remaining, accountant.total(), accountant.population.names, accountant.n_adopted


class Contract:
    """Series and suprema."""

    tested: TestedMethod

    @pytest.fixture(params=[0, pytest.param(1, marks=pytest.mark.long)])
    def rng(self, request) -> np.random.Generator:
        return np.random.default_rng(request.param)

    def test_method_has_its_name(self):
        assert self.tested.series(Adversary(), [0.1]).accounting.name == self.tested.name
        assert self.tested.accountant(Adversary()).accounting.name == (self.tested.online or self.tested.name)

    def test_leakage_is_monotone_in_every_budget(self, rng):
        for n_steps in (None, 5):
            adversary, epsilons = adversaries(rng, n_steps), rng.choice([0.0, 0.05, 0.4, 1.5], 5)
            before = self.tested.series(adversary, epsilons)
            for step in range(5):
                more = epsilons.copy()
                more[step] += float(rng.choice([1e-6, 0.1, 1.0]))
                after = self.tested.series(adversary, more)
                for way in DIRECTIONS:
                    assert (getattr(after, way) >= getattr(before, way) * (1.0 - ROUNDING) - 1e-15).all()

    def test_leakage_is_never_below_the_definition(self, rng):
        """Every output of the most informative mechanism, at every step, in every order."""
        for n_steps in (None, 4):
            adversary, epsilons = adversaries(rng, n_steps), rng.choice([0.1, 0.5, 1.5], 4) * rng.uniform(0.5, 1.0, 4)
            series = self.tested.series(adversary, epsilons)
            for way, least in zip(DIRECTIONS, self.tested.defined(adversary, epsilons), strict=True):
                assert (getattr(series, way) >= least - 1e-12).all()
                if self.tested.is_exact:
                    assert getattr(series, way) == pytest.approx(least, rel=1e-9)

    def test_names_and_order_of_states_do_not_change_leakage(self, rng):
        adversary, epsilons, order = adversaries(rng), rng.uniform(0.05, 1.0, 6), rng.permutation(N)

        def renamed(matrix):
            names = [f"value {k}" for k in order]
            return TransitionMatrix(matrix.dense()[np.ix_(order, order)], states=names)

        other = Adversary(*(one.mapped(renamed) for one in adversary.directions))
        before = self.tested.series(adversary, epsilons)
        after = self.tested.reordered(order).series(other, epsilons)
        for way in DIRECTIONS:
            assert getattr(after, way) == pytest.approx(getattr(before, way), rel=CLOSE)

    def test_leakage_lies_between_the_budget_of_the_step_and_the_sum(self, rng):
        adversary, epsilons = adversaries(rng), rng.uniform(0.0, 0.5, 6)
        series = self.tested.series(adversary, epsilons)
        most = self.tested.distance * epsilons.sum() * (1.0 + ROUNDING)
        for way in DIRECTIONS:
            leakage = getattr(series, way)
            assert (leakage >= series.epsilons * (1.0 - ROUNDING)).all()
            assert (leakage <= most).all()
        assert (series.temporal >= np.maximum(series.backward, series.forward) * (1.0 - ROUNDING)).all()

    def test_leakage_of_several_users_is_the_largest(self, rng):
        users, epsilons = [adversaries(rng) for _ in range(4)], rng.uniform(0.05, 1.0, 6)
        together = self.tested.series(users, epsilons)
        each = [self.tested.series(user, epsilons) for user in users]
        for way in DIRECTIONS:
            assert getattr(together, way) == pytest.approx(np.max([getattr(o, way) for o in each], axis=0), rel=CLOSE)

    def test_no_horizon_exceeds_a_supremum(self, rng):
        adversary, epsilon = adversaries(rng), float(rng.choice([0.05, 0.2]))
        limits = leakage_supremum(adversary, epsilon, accounting=self.tested.accounting)
        series = self.tested.series(adversary, np.full(TAIL, epsilon))
        for way in DIRECTIONS:
            assert getattr(series, way).max() <= getattr(limits, way) * (1.0 + ROUNDING)
        if self.tested.is_exact:
            assert series.worst >= limits.temporal * (1.0 - 1e-6)

    def test_odometer_agrees_with_the_series(self, rng):
        users = [adversaries(rng) for _ in range(2)]
        odometer = self.tested.accountant(users)
        for epsilon in rng.choice([0.0, 0.05, 0.3, 1.0], 10) * rng.uniform(0.5, 1.0, 10):
            expected = odometer.total(epsilon)
            odometer.spend(epsilon)
            series = odometer.leakage()
            assert odometer.total() >= series.worst * (1.0 - ROUNDING)
            assert expected == pytest.approx(odometer.total(), rel=CLOSE)
            if self.tested.online is None:
                assert odometer.total() == pytest.approx(series.worst, rel=CLOSE)
                assert series.temporal[odometer.leakage().worst_time] == pytest.approx(series.worst, rel=CLOSE)

    def test_odometer_accepts_time_varying_matrices(self, rng):
        adversary, spent = adversaries(rng, 7), rng.uniform(0.0, 0.6, 7)
        odometer = self.tested.accountant(adversary)
        for epsilon in spent:
            odometer.spend(epsilon)
            if self.tested.online is None:
                assert odometer.total() == pytest.approx(odometer.leakage().worst, rel=CLOSE)
        assert odometer.total() >= self.tested.series(adversary, spent).worst * (1.0 - ROUNDING)

    def test_recording_several_steps_at_once_equals_recording_each(self, rng):
        """Several steps between two queries give the result of one step at a time."""
        adversary, spent = adversaries(rng), rng.uniform(0.0, 0.6, 9)
        slow, fast = self.tested.accountant(adversary), self.tested.accountant(adversary)
        for epsilon in spent:
            slow.spend(epsilon).total()
        fast.spend(spent)
        assert slow.total() == pytest.approx(fast.total(), rel=CLOSE)

    @pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
    def test_copies_of_an_odometer_continue_identically(self, duplicate):
        rng = np.random.default_rng(5)
        first = self.tested.accountant([adversaries(rng), adversaries(rng)])
        first.spend([0.1, 0.5]).total()
        second = duplicate(first)
        for one in (first, second):
            one.spend(0.3)
        assert (first.total(), repr(first)) == (second.total(), repr(second))
        second.spend(1.0)
        assert len(first) == 3
        assert first.total() < second.total()

    def test_adopted_correlation_is_counted_from_the_next_step(self, rng):
        """Or refused: the series and every output, with the matrices that are valid at each step, leak no more."""
        first, second = adversaries(rng, known="both"), adversaries(rng, known="both")
        odometer = self.tested.accountant(first).spend([0.4, 0.1])
        if not self.tested.adopts:
            must_not_adopt(odometer, second, "begin another release")
            return
        odometer.adopt(second).spend([0.3, 0.6])
        valid = valid_at([first] * 2 + [second] * 2)
        series = self.tested.series(valid, odometer.spent)
        assert odometer.total() >= series.worst * (1.0 - ROUNDING)
        assert odometer.total() >= self.tested.defined(valid, odometer.spent)[2].max() - 1e-12
        assert odometer.leakage().worst == pytest.approx(series.worst, rel=CLOSE)
        must_not_adopt(odometer, Adversary(second.backward), "the same directions")

    def test_another_correlation_is_refused_under_a_horizon(self, rng):
        odometer = self.tested.accountant(adversaries(rng, known="both"), horizon=4).spend(0.1)
        must_not_adopt(odometer, adversaries(rng, known="both"), "begin another release")

    def test_an_odometer_has_no_plan(self, rng):
        odometer = self.tested.accountant(adversaries(rng), horizon=4).spend(0.1)
        before = state(odometer)
        with pytest.raises(InputError, match="expected an accountant with alpha and horizon"):
            replan(odometer)
        assert state(odometer) == before


class ChangeContract:
    """Plans anew and other correlations, midway: for methods with a filter."""

    tested: TestedMethod

    @pytest.mark.parametrize(
        ("seed", "n_steps"),
        [(0, None), (1, 3), *(pytest.param(*case, marks=pytest.mark.long) for case in [(1, None), (0, 4), (2, 4)])],
    )
    def test_plan_anew_satisfies_the_level(self, seed, n_steps):
        """After other budgets than planned: all releases together leak at most alpha, and those that are over stay."""
        rng, horizon = np.random.default_rng(seed), n_steps or 4
        adversary, alpha = adversaries(rng, n_steps), float(rng.choice([0.3, 1.0, 3.0]))
        spent = rng.choice([0.0, 0.2, 0.9], horizon // 2) * alpha / (horizon * self.tested.distance)
        accountant = self.tested.accountant(adversary, alpha=alpha, horizon=horizon).spend(spent)
        before = state(accountant)
        plan = replan(accountant)
        assert state(accountant) == before
        assert plan.epsilons[: len(spent)].tolist() == spent.tolist()
        assert (plan.epsilons[len(spent) :] > 0.0).all()
        assert self.tested.series(adversary, plan.epsilons).worst <= alpha
        assert self.tested.defined(adversary, plan.epsilons)[2].max() <= alpha * (1.0 + ROUNDING)
        for epsilon in plan.epsilons[len(spent) :]:
            accountant.spend(epsilon)

    @pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
    def test_level_is_satisfied_after_another_correlation_is_adopted(self, seed):
        """Or the correlation is refused."""
        rng = np.random.default_rng(seed)
        first, second = adversaries(rng, known="both"), adversaries(rng, known="both")
        accountant = self.tested.accountant(first, alpha=1.0, reserve=None if self.tested.adopts else 0.0)
        accountant.spend(0.7 * accountant.remaining())
        if not self.tested.adopts:
            must_not_adopt(accountant, second, "begin another release")
            return
        accountant.spend(accountant.reserve).adopt(second)
        accountant.spend(accountant.remaining())
        whole = [*accountant.spent, *[accountant.reserve] * (TAIL - 1)]
        assert self.tested.series(valid_at([first] * 2 + [second] * TAIL), whole).worst <= 1.0
        defined = self.tested.defined(valid_at([first, first, second]), accountant.spent)
        assert defined[2].max() <= 1.0 + ROUNDING


class FilterContract(ChangeContract, Contract):
    """And a filter: for methods without a delta."""

    room_is_used: bool = True

    def test_sustainable_budget_satisfies_the_level(self, rng):
        adversary, alpha = adversaries(rng), float(rng.choice([0.3, 1.0, 3.0]))
        epsilon = sustainable_budget(adversary, alpha=alpha, accounting=self.tested.accounting)
        assert epsilon > 0.0
        assert self.tested.series(adversary, np.full(TAIL, epsilon)).worst <= alpha
        assert leakage_supremum(adversary, epsilon, accounting=self.tested.accounting).temporal <= alpha * (
            1.0 + ROUNDING
        )

    def holds(self, accountant, adversary, alpha):
        """By the series, with the reserve for as long as there are steps."""
        left = TAIL if accountant.horizon is None else accountant.horizon - len(accountant)
        whole = [*accountant.spent, *[accountant.reserve] * left]
        series = self.tested.series(adversary, whole)
        # What an observation attains is never above alpha; the upper side of a series has roundings of its own.
        attained = series.worst if series.attained is None else series.attained.temporal.max()
        assert attained <= alpha * (1.0 + 1e-14)
        assert series.worst <= alpha * (1.0 + 1e-12)

    @pytest.mark.parametrize(
        "kind", ["reserve", "asked reserve", "horizon", "horizon with reserve", "varying", "users"]
    )
    def test_admitted_budgets_satisfy_the_level(self, rng, kind):
        """Random budgets, each a share of the remaining one; budgets that must be refused are tried as well."""
        alpha = float(rng.choice([0.3, 1.0, 3.0]))
        n_steps = 5
        population = adversaries(rng, n_steps if kind == "varying" else None)
        if kind == "users":
            population = [adversaries(rng) for _ in range(3)]
        asked: dict[str, Any] = {"horizon": n_steps} if kind.startswith("horizon") else {}
        if kind == "asked reserve":
            asked["reserve"] = 0.5 * self.tested.accountant(population, alpha=alpha).reserve
        if kind == "horizon with reserve":
            asked["reserve"] = 0.02 * alpha / self.tested.distance
        accountant = self.tested.accountant(population, alpha=alpha, **asked)
        assert (accountant.reserve > 0.0) == (kind not in {"horizon", "varying"})
        self.holds(accountant, population, alpha)
        for _ in range(n_steps):
            remaining = accountant.remaining()
            assert remaining >= accountant.reserve
            accountant.check(accountant.reserve)
            must_be_refused(accountant, remaining * (1.0 + 1e-6) + 1e-9 * alpha)
            accountant.spend(float(rng.choice([0.0, 0.2, 0.9, 1.0])) * remaining)
            self.holds(accountant, population, alpha)

    def test_remaining_budget_is_the_largest_that_the_series_allows(self, rng):
        if not self.room_is_used:
            pytest.skip("this method gives some room away")
        for n_steps in (None, 5):
            adversary = adversaries(rng, n_steps)
            accountant = self.tested.accountant(adversary, alpha=1.0)
            for _ in range(3):
                accountant.spend(0.7 * accountant.remaining())
            known, reserve = accountant.spent, accountant.reserve
            tail = [reserve] * TAIL if n_steps is None else [0.0] * (n_steps - len(known) - 1)

            def leaked(epsilon, known=known, adversary=adversary, tail=tail):
                return self.tested.series(adversary, [*known, epsilon, *tail]).worst

            # Where the reserve is the largest that lasts, a last digit of alpha is worth many of what remains.
            assert leaked(accountant.remaining() * (1.0 - CLOSE)) <= 1.0
            assert leaked(accountant.remaining() * (1.0 + CLOSE)) > 1.0 - LEVEL

    def test_last_step_may_use_the_reserve(self, rng):
        adversary, alpha = adversaries(rng), 1.0
        accountant = self.tested.accountant(adversary, alpha=alpha).spend(np.array([0.06, 0.03]) / self.tested.distance)
        last = accountant.remaining(last=True)
        assert last >= accountant.remaining()
        accountant.spend(last, last=True)
        worst = accountant.leakage().worst
        assert worst <= alpha
        assert accountant.remaining() == 0.0
        if self.room_is_used:
            assert worst >= alpha * (1.0 - CLOSE)

    def test_too_large_a_reserve_is_refused(self, rng):
        adversary = adversaries(rng)
        most = self.tested.accountant(adversary, alpha=1.0).reserve
        with pytest.raises(ValueError, match="reserve"):
            self.tested.accountant(adversary, alpha=1.0, reserve=most * 1.01)

    def test_budget_above_the_level_is_recorded(self, rng):
        adversary, alpha = adversaries(rng), 1.0
        accountant = self.tested.accountant(adversary, alpha=alpha).spend(0.06 / self.tested.distance)
        accountant.spend(5.0 * alpha, enforce=False)
        assert accountant.total() >= accountant.leakage().worst * (1.0 - ROUNDING)
        assert accountant.total() > alpha
        assert accountant.remaining() == 0.0
        assert not accountant.admits([1e-6])
        accountant.spend(0.0)
        assert accountant.remaining(last=True) == 0.0

    def test_unenforced_budget_within_the_level_equals_a_spend(self, rng):
        adversary = adversaries(rng)
        spent, recorded = (self.tested.accountant(adversary, alpha=1.0) for _ in range(2))
        for epsilon in np.array([0.06, 0.0, 0.03]) / self.tested.distance:
            spent.spend(epsilon)
            recorded.spend(epsilon, enforce=False)
        assert recorded.remaining() == spent.remaining()

    def test_copies_of_a_filter_continue_identically(self, rng):
        first = self.tested.accountant(adversaries(rng), alpha=1.0).spend(0.06 / self.tested.distance)
        copies = [copy.copy(first), copy.deepcopy(first), pickle.loads(pickle.dumps(first))]
        for one in copies:
            assert one.spend(0.01).remaining() == copy.copy(first).spend(0.01).remaining()
        assert len(first) == 1


def must_not_adopt(accountant, adversary, message):
    before = state(accountant)
    with pytest.raises(InputError, match=message):
        accountant.adopt(adversary)
    assert state(accountant) == before


def must_be_refused(accountant, epsilon):
    before = state(accountant)
    with pytest.raises(LeakageBudgetError) as refused:
        accountant.spend(epsilon)
    with pytest.raises(LeakageBudgetError):
        accountant.spend([epsilon, 0.0] if accountant.horizon is None else [epsilon])
    assert state(accountant) == before
    assert refused.value.largest <= epsilon
    assert refused.value.leakage >= accountant.alpha * (1 - 1e-6)
    assert math.isfinite(refused.value.leakage)
