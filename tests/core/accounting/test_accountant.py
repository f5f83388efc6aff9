"""The online accountant against the series computed afterwards, exact arithmetic, and Google's events."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
import sys
import threading
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import temporaldp
from matrices import matrices
from methods import method_of
from oracles import exact_loss
from temporaldp import (
    Adversary,
    BudgetError,
    InputError,
    LeakageBudgetError,
    MetricPrivacy,
    PaperBound,
    TransitionMatrix,
    leakage_supremum,
    plan_budget,
    temporal_leakage,
)
from temporaldp.core.accounting.paper.arrivals import TransitionLoss
from temporaldp.core.accounting.paper.online import PaperSteps

TemporalAccountant = partial(temporaldp.TemporalAccountant, accounting=PaperBound())
"""The closed form of the paper's bound; all accounting methods are held to one contract in test_protocol.py."""

STRONG = TransitionMatrix([[0.999, 0.001], [0.002, 0.998]])


MATRIX = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])


ADVERSARY = Adversary(MATRIX, MATRIX)


CERTAIN = TransitionMatrix(np.eye(2))


levels = st.one_of(st.sampled_from([1e-9, 1e-3, 0.1, 1.0, 5.0, 50.0, 800.0]), st.floats(0.01, 20.0))


@st.composite
def adversaries(draw, n: int | None = None, most_steps: int | None = None):
    """Constant or time-varying matrices of any kind, in both directions, one or none."""
    n = n or draw(st.integers(2, 4))
    one = matrices(min_n=n, max_n=n)
    if most_steps is not None and draw(st.booleans()):
        steps = draw(st.integers(1, most_steps - 1))
        several = st.lists(one, min_size=steps, max_size=steps)
        return Adversary(draw(several), draw(several))
    directions = draw(st.sampled_from(["both", "backward", "forward", "same"]))
    backward = None if directions == "forward" else draw(one)
    forward = None if directions == "backward" else backward if directions == "same" else draw(one)
    return Adversary(backward, forward)


populations = st.one_of(adversaries(most_steps=8), st.lists(adversaries(n=3), min_size=2, max_size=3))


acts = st.lists(
    st.tuples(st.sampled_from(["all", "share", "reserve", "nothing", "several", "too much"]), st.floats(0.0, 1.0)),
    min_size=1,
    max_size=12,
)


def spend_adaptively(accountant, moves):
    """Spend whatever the moves say, each relative to what remains; try what must be refused on the way."""
    for kind, share in moves:
        if accountant.horizon is not None and len(accountant) == accountant.horizon:
            return
        remaining = accountant.remaining()
        assert remaining >= accountant.reserve, "what was reserved is gone"
        if kind == "several":
            left = 3 if accountant.horizon is None else min(3, accountant.horizon - len(accountant))
            several = [share * remaining / left] * left
            if accountant.admits(several):
                accountant.spend(several)
            continue
        if kind == "too much":
            must_be_refused(accountant, remaining * (1.0 + share) + 1e-12 * accountant.alpha)
        amounts = {"all": remaining, "share": share * remaining, "reserve": accountant.reserve}
        accountant.spend(amounts.get(kind, 0.0))


def must_be_refused(accountant, epsilon):
    before = (len(accountant), accountant.spent.tolist(), accountant.remaining(), accountant.total())
    with pytest.raises(LeakageBudgetError) as refused:
        accountant.spend(epsilon)
    assert (len(accountant), accountant.spent.tolist(), accountant.remaining(), accountant.total()) == before
    assert refused.value.requested == epsilon
    assert refused.value.largest == before[2]
    assert refused.value.leakage > accountant.alpha * (1 - 1e-9)


@pytest.mark.long
@given(populations, levels, acts, st.booleans())
def test_adaptive_budgets_never_exceed_alpha(population, alpha, moves, finish):
    accountant = TemporalAccountant(population, alpha=alpha)
    spend_adaptively(accountant, moves)
    if finish and (accountant.horizon is None or len(accountant) < accountant.horizon):
        accountant.spend(accountant.remaining(last=True), last=True)
    if accountant.horizon is not None:  # matrices that vary with time serve a series of that length
        while len(accountant) < accountant.horizon and not accountant._is_over:
            accountant.spend(accountant.remaining())
    spent = accountant.spent
    if accountant.horizon is not None and len(spent) < accountant.horizon:
        spent = np.concatenate((spent, np.zeros(accountant.horizon - len(spent))))
    after = temporal_leakage(population, spent, accounting=PaperBound())
    assert after.worst <= alpha
    assert accountant.total() == pytest.approx(after.worst, rel=1e-13, abs=0)


@given(adversaries(n=2), levels.filter(lambda level: level < 100), acts, st.sampled_from([0.0, 0.3, 0.9]))
def test_leakage_stays_below_alpha_in_rational_arithmetic(adversary, alpha, moves, share):
    most = TemporalAccountant(adversary, alpha=alpha).reserve
    accountant = TemporalAccountant(adversary, alpha=alpha, reserve=share * most)
    spend_adaptively(accountant, moves[:6])
    accountant.spend(accountant.remaining(last=True), last=True)
    spent = accountant.spent.tolist()
    past, future = [0.0], [0.0]
    for epsilon in spent[:-1]:
        past.append(_exact(adversary.backward, past[-1] + epsilon))
    for epsilon in spent[:0:-1]:
        future.append(_exact(adversary.forward, future[-1] + epsilon))
    worst = max(b + e + f for b, e, f in zip(past, spent, future[::-1], strict=True))
    assert alpha * (1 - 1e-9) <= worst <= alpha * (1 + 1e-13)


def _exact(matrix, level):
    return exact_loss(matrix.dense(), level) if matrix and level else 0.0


@given(adversaries(), levels, acts)
def test_spending_remaining_exhausts_alpha(adversary, alpha, moves):
    """The filter is tight: the last step reaches the level."""
    accountant = TemporalAccountant(adversary, alpha=alpha)
    spend_adaptively(accountant, moves)
    accountant.spend(accountant.remaining(last=True), last=True)
    assert accountant.total() >= alpha * (1 - 1e-10)


@given(adversaries(), levels)
def test_reserve_equals_the_papers_constant_budget(adversary, alpha):
    accountant = TemporalAccountant(adversary, alpha=alpha)
    try:
        expected = plan_budget(adversary, alpha=alpha, accounting=PaperBound()).epsilons[0]
    except ValueError:  # nothing lasts
        expected = 0.0
    assert accountant.reserve >= expected * (1 - 1e-9)
    assert accountant.reserve <= _algorithm_2(adversary, alpha) * (1 + 1e-4) + 1e-12 * alpha


def _algorithm_2(adversary, alpha):
    """The largest constant budget whose leakage never exceeds alpha, by bisection on the suprema."""
    low, high = 0.0, alpha
    for _ in range(100):
        middle = 0.5 * (low + high)
        held = middle < 1e-100 or leakage_supremum(adversary, middle, accounting=PaperBound()).temporal <= alpha
        low, high = (middle, high) if held else (low, middle)
    return high


@given(st.lists(st.floats(0.0, 3.0), min_size=1, max_size=30), populations, st.data())
def test_odometer_agrees_with_the_series_after_every_step(epsilons, population, data):
    accountant = TemporalAccountant(population)
    for epsilon in epsilons[: accountant.horizon]:
        accountant.spend(epsilon)
        if accountant.horizon is None and data.draw(st.booleans()):
            after = temporal_leakage(population, accountant.spent, accounting=PaperBound())
            assert accountant.total() == pytest.approx(after.worst, rel=1e-13, abs=0)
            assert after.temporal[accountant.leakage().worst_time] == pytest.approx(after.worst, rel=1e-13, abs=0)
            assert accountant.total(0.7) == pytest.approx(
                temporal_leakage(population, [*accountant.spent, 0.7], accounting=PaperBound()).worst, rel=1e-13
            )
    assert accountant.remaining() == math.inf if accountant.horizon is None else True


@pytest.mark.parametrize("bound", ["exact", "paper"])
@pytest.mark.parametrize("known", ["horizon", "last", "neither"])
@pytest.mark.parametrize("n_steps", [1, 2, 4, 8])
def test_budgets_that_sum_to_the_level_are_admitted(bound, known, n_steps):
    adversary, method = Adversary(CERTAIN, CERTAIN), method_of(bound)
    horizon = n_steps if known == "horizon" else None
    accountant = TemporalAccountant(adversary, alpha=1.0, accounting=method, horizon=horizon)
    for step in range(n_steps):
        accountant.spend(1.0 / n_steps, last=known == "last" and step == n_steps - 1)
    assert accountant.total() == accountant.leakage().worst == 1.0
    if known == "neither":
        assert accountant.remaining() == accountant.remaining(last=True) == 0.0
        assert not accountant.admits(1e-300)
        accountant.spend(0.0)
        with pytest.raises(LeakageBudgetError, match="above alpha"):
            accountant.spend(0.5)


@pytest.mark.long
@pytest.mark.parametrize("bound", ["exact", "paper"])
def test_a_chain_that_never_moves_admits_what_fractions_admit(bound):
    """Leakage is the sum of all budgets there: the last of them is admitted if and only if the exact sum is at most alpha."""
    rng, method = np.random.default_rng(5), method_of(bound)
    for _ in range(40):
        alpha, n_steps = float(rng.choice([0.1, 1.0, math.pi, 40.0])), int(rng.integers(2, 12))
        shares = rng.dirichlet(np.ones(n_steps)) * alpha
        spent, rest = shares[:-1].tolist(), Fraction(alpha) - sum(map(Fraction, shares[:-1].tolist()))
        largest = float(rest)
        largest = largest if Fraction(largest) <= rest else math.nextafter(largest, 0.0)
        start = TemporalAccountant(Adversary(CERTAIN, CERTAIN), alpha=alpha, accounting=method, horizon=n_steps)
        start.spend(spent)
        assert start.remaining() == largest
        above = math.nextafter(largest, math.inf)
        assert start.admits(largest)
        assert not start.admits(above)
        with pytest.raises(LeakageBudgetError) as refused:
            start.spend(above)
        leaks, level = map(float, re.findall(r"leak ([\d.e-]+) nats .* alpha = ([\d.e-]+[\de])", str(refused.value))[0])
        assert leaks > level
        asked, most = map(float, re.findall(r"= ([\d.e-]+) at .* is ([\d.e-]+\d)", str(refused.value))[0])
        assert asked > most
        assert start.spend(largest).leakage().worst <= alpha


def test_levels_are_used_up_after_a_kept_state():
    """The exact sum is part of the state from which a ledger resumes."""
    adversary = Adversary(CERTAIN, CERTAIN)
    first = temporaldp.TemporalAccountant(adversary, alpha=1.0).spend([0.1, 0.2])
    resumed = temporaldp.TemporalAccountant(adversary, alpha=1.0)
    resumed.resume(json.loads(json.dumps(first.kept_state())), (), lambda: [0.1, 0.2])
    rest = 1.0 - 0.1 - 0.2
    assert resumed.remaining(last=True) == first.remaining(last=True) == pytest.approx(rest, rel=1e-15)
    assert resumed.spend(first.remaining(last=True)).total() <= 1.0


def test_a_metric_does_not_add_up_epsilons():
    """Two states at a distance of 2 leak twice the epsilon."""
    method = MetricPrivacy([[0.0, 2.0], [2.0, 0.0]])
    accountant = TemporalAccountant(Adversary(CERTAIN, CERTAIN), alpha=1.0, accounting=method, horizon=2)
    assert not accountant.admits([0.5, 0.5])
    assert not accountant.admits(0.6)


def test_a_spend_raises_the_leakage_of_earlier_steps():
    accountant = TemporalAccountant(ADVERSARY).spend(0.5).spend(0.1)
    before = accountant.total(), accountant.leakage().worst_time
    accountant.spend(0.4)
    assert before[1] == accountant.leakage().worst_time == 0 or accountant.total() > before[0]
    series = accountant.leakage()
    assert (accountant.total(), accountant.leakage().worst_time) == (series.worst, series.worst_time)


@pytest.mark.long
def test_backward_update_stops_at_the_first_unchanged_step():
    """A query after 20,000 steps evaluates a few hundred of them at most."""
    accountant = TemporalAccountant(ADVERSARY)
    for _ in range(20_000):
        accountant.spend(0.1)
    accountant.total()
    looked_at = []

    class Noting(PaperSteps):
        def arriving(self, side, transition, release, before):
            looked_at.append(transition)
            return super().arriving(side, transition, release, before)

    (odometer,) = accountant._odometers()
    odometer._steps = Noting(ADVERSARY)
    accountant.spend(0.2)
    accountant.total()
    assert 3 < len(looked_at) < 300


@pytest.mark.long
@pytest.mark.parametrize("matrix", [MATRIX, STRONG, CERTAIN])
def test_interrupted_query_leaves_later_results_correct(matrix):
    """Interrupt each line of the backward update in turn; every later result equals that of the whole series."""
    adversary = Adversary(matrix, matrix)
    left = [-1]

    def tracer(frame, event, _):
        if not frame.f_code.co_filename.endswith("stepwise.py"):
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
        return tracer

    interrupted = 0
    for at in range(1, 400):
        accountant = TemporalAccountant(adversary)
        for _ in range(10):
            accountant.spend(0.01)
        accountant.total()
        for _ in range(3):
            accountant.spend(0.5)
        left[0] = at
        sys.settrace(tracer)
        try:
            accountant.total()
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.settrace(None)
        expected = temporal_leakage(adversary, accountant.spent, accounting=PaperBound()).worst
        assert accountant.total() == pytest.approx(expected, rel=1e-14)
        if left[0] > 0:
            break
    assert interrupted > 10


def test_disjoint_rows_add_up_all_budgets_about_the_first_step():
    accountant = TemporalAccountant(Adversary(CERTAIN, CERTAIN))
    for _ in range(1_000):
        accountant.spend(0.1)
    assert accountant.total() == pytest.approx(100.0, rel=1e-13)
    filtered = TemporalAccountant(Adversary(CERTAIN, CERTAIN), alpha=1.0)
    assert filtered.reserve == 0.0
    filtered.spend(0.7)
    assert filtered.remaining() == pytest.approx(0.3, rel=1e-12)


def test_worst_user_is_named():
    accountant = TemporalAccountant({"calm": Adversary(), "moving": ADVERSARY, "still": Adversary(STRONG, STRONG)})
    accountant.spend(0.1).spend(0.1)
    assert accountant.leakage().worst_user == "still"
    refusing = TemporalAccountant({"calm": Adversary(), "still": Adversary(STRONG, STRONG)}, alpha=0.3, reserve=0.0)
    refusing.spend(0.2)
    with pytest.raises(LeakageBudgetError, match="about 'still'") as refused:
        refusing.spend(0.2)
    assert refused.value.user == "still"


def test_budget_error_carries_its_details_and_can_be_pickled():
    accountant = TemporalAccountant(ADVERSARY, alpha=1.0, reserve=0.0).spend(0.6)
    with pytest.raises(LeakageBudgetError, match="Nothing was spent") as refused:
        accountant.check(0.8)
    error = pickle.loads(pickle.dumps(refused.value))
    would_be = temporal_leakage(ADVERSARY, [0.6, 0.8], accounting=PaperBound())
    assert (error.requested, error.alpha, error.user) == (0.8, 1.0, None)
    assert (error.leakage, error.worst_time) == (pytest.approx(would_be.worst, rel=1e-14), would_be.worst_time)
    assert str(error) == str(refused.value)
    accountant.check(error.largest)
    assert isinstance(error, ValueError)


def test_unspent_early_budget_increases_later_budgets():
    accountant = TemporalAccountant(ADVERSARY, alpha=1.0)
    for _ in range(5):
        accountant.spend(0.01)
    burst = accountant.remaining()
    assert burst > 2 * accountant.reserve
    accountant.spend(burst)
    assert accountant.remaining() >= accountant.reserve


def test_spending_several_steps_is_atomic():
    accountant = TemporalAccountant(ADVERSARY, alpha=1.0).spend(0.1)
    with pytest.raises(LeakageBudgetError, match="at step 3"):
        accountant.spend([0.2, 0.2, 0.9])
    assert len(accountant) == 1


def test_no_step_is_accepted_after_the_last_one_or_the_horizon():
    accountant = TemporalAccountant(ADVERSARY, alpha=1.0).spend(0.1).spend(0.5, last=True)
    for epsilon in (0.0, 0.1):
        with pytest.raises(BudgetError, match="declared the last"):
            accountant.spend(epsilon)
    ended = TemporalAccountant(Adversary([MATRIX, MATRIX]), alpha=1.0)
    assert ended.horizon == 3
    ended.spend([0.1] * 3)
    with pytest.raises(BudgetError, match="all 3 steps"):
        ended.spend(0.1)
    assert accountant.remaining() == ended.remaining() == 0.0
    with pytest.raises(BudgetError, match="4 budgets, but only 2"):
        TemporalAccountant(ADVERSARY, alpha=1.0, horizon=3).spend(0.1).spend([0.1] * 4)


def test_matrix_in_place_of_an_adversary_is_refused():
    with pytest.raises(InputError, match=r"Adversary\(backward=matrix\)"):
        TemporalAccountant(MATRIX)


def test_accountant_without_steps_has_no_series():
    with pytest.raises(BudgetError, match="at least one step that was spent"):
        TemporalAccountant(ADVERSARY).leakage()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"horizon": 0}, "horizon"),
        ({"alpha": 1.0, "reserve": -0.1}, "reserve"),
        ({"alpha": 1.0, "reserve": 0.9}, "reserve of at most 0.25"),
        ({"reserve": 0.1}, "give alpha"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        TemporalAccountant(ADVERSARY, **arguments)


@pytest.mark.parametrize("epsilon", [-0.1, math.nan, math.inf, "much", "0.1", True, None, 1e200])
def test_invalid_budgets_are_refused(epsilon):
    accountant = TemporalAccountant(ADVERSARY)
    with pytest.raises(BudgetError, match="epsilon"):
        accountant.spend(epsilon)
    assert len(accountant) == 0


def test_a_horizon_that_contradicts_the_matrices_is_refused():
    with pytest.raises(BudgetError, match="matrices for 3 steps"):
        TemporalAccountant(Adversary([MATRIX, MATRIX]), horizon=4)


def test_concurrent_spends_are_each_recorded_once():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(30):
            accountant = TemporalAccountant(ADVERSARY, alpha=1.0, reserve=0.0)
            refused = []

            def spend(accountant=accountant, refused=refused):
                try:
                    accountant.spend(0.9)
                except LeakageBudgetError as error:
                    refused.append(error)

            threads = [threading.Thread(target=spend) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert (len(accountant), len(refused)) == (1, 3)
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copy_is_independent_of_the_original(duplicate):
    accountant = TemporalAccountant({"bob": ADVERSARY}, alpha=1.0, reserve=0.0).spend(0.1)
    other = duplicate(accountant)
    other.spend(0.8)
    assert (len(accountant), len(other)) == (1, 2)
    assert accountant.remaining() > 0.8
    assert other.total() == temporal_leakage(ADVERSARY, [0.1, 0.8], accounting=PaperBound()).worst
    with pytest.raises(LeakageBudgetError, match="about 'bob'"):
        accountant.spend([0.5, 0.9])


@given(adversaries(most_steps=6), st.sampled_from([0.01, 1.0, 10.0]), st.integers(1, 12), st.sampled_from(
    ["optimal", "quantified", "uniform"]))  # fmt: skip
def test_an_accountant_admits_every_plan_of_its_level(adversary, alpha, horizon, method):
    horizon = adversary.n_steps or horizon
    try:
        plan = plan_budget(adversary, alpha=alpha, horizon=horizon, method=method, accounting=PaperBound())
    except ValueError:  # nothing lasts
        return
    accountant = TemporalAccountant(adversary, alpha=alpha, horizon=horizon)
    for epsilon in plan.epsilons:
        accountant.spend(epsilon)
    assert accountant.total() <= alpha


@given(adversaries(), st.sampled_from([0.01, 1.0, 10.0]))
def test_accountant_admits_the_plan_of_an_infinite_horizon(adversary, alpha):
    try:
        plan = plan_budget(adversary, alpha=alpha, accounting=PaperBound())
    except ValueError:  # nothing lasts
        return
    accountant = TemporalAccountant(adversary, alpha=alpha)
    for _ in range(200):
        accountant.spend(plan.epsilons[0])


@given(adversaries(), levels, st.floats(0.0, 1.0))
def test_any_reserve_up_to_the_largest_is_accepted(adversary, alpha, share):
    most = TemporalAccountant(adversary, alpha=alpha).reserve
    for asked in (share * most, most * (1 - 1e-9), most):
        accountant = TemporalAccountant(adversary, alpha=alpha, reserve=asked)
        assert accountant.reserve == asked
        accountant.spend(accountant.remaining())
        for _ in range(20):
            accountant.spend(asked)


@pytest.mark.long
def test_cost_of_a_spend_does_not_grow_with_the_number_of_steps(monkeypatch):
    looked = []
    for name in ("__call__", "inverse"):
        original = getattr(TransitionLoss, name)
        monkeypatch.setattr(TransitionLoss, name, lambda self, *a, f=original: (looked.append(a), f(self, *a))[1])
    accountant = TemporalAccountant({"one": ADVERSARY, "two": Adversary(STRONG, STRONG)}, alpha=1.0)
    counts = []
    for steps in (10, 10_000):
        while len(accountant) < steps:
            accountant.spend(accountant.reserve)
        looked.clear()
        accountant.spend(accountant.remaining())
        counts.append(len(looked))
    assert counts[0] == counts[1] <= 12


def test_unenforced_budgets_are_recorded_and_reduce_what_remains():
    accountant = TemporalAccountant(ADVERSARY, alpha=1.0).spend(0.3, enforce=False).spend(1.5, enforce=False)
    assert accountant.spent.tolist() == [0.3, 1.5]
    assert accountant.total() == temporal_leakage(ADVERSARY, [0.3, 1.5], accounting=PaperBound()).worst > 1.0
    assert accountant.remaining() == 0.0
    accountant.spend(0.0)
    with pytest.raises(LeakageBudgetError):
        accountant.spend(1e-9)
    with pytest.raises(BudgetError, match="epsilon"):
        accountant.spend(-1.0, enforce=False)
    with pytest.raises(BudgetError, match="all 1 steps"):
        TemporalAccountant(ADVERSARY, horizon=1).spend(0.1, enforce=False).spend(0.1, enforce=False)


@pytest.mark.parametrize("enforce", [True, False])
def test_spending_beyond_the_horizon_is_refused(enforce):
    matrix = TransitionMatrix([[0.8, 0.2], [0.3, 0.7]])
    accountant = TemporalAccountant(Adversary(matrix, matrix), alpha=1.0, horizon=3)
    with pytest.raises(BudgetError, match="only 3 of the horizon's 3 steps are left"):
        accountant.spend([0.1] * 5, enforce=enforce)
    assert len(accountant) == 0
    accountant.spend([0.1] * 3, enforce=enforce)
    with pytest.raises(BudgetError, match="all 3 steps of the horizon are over"):
        accountant.spend(0.1, enforce=enforce)


@pytest.mark.parametrize("bound", ["exact", "paper", "metric"])
@pytest.mark.parametrize("varies", [True, False])
def test_no_release_follows_the_last_step_in_a_total(bound, varies):
    walk = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    known = [walk, TransitionMatrix([[0.6, 0.4], [0.3, 0.7]])] if varies else walk
    accounting = MetricPrivacy([[0.0, 1.0], [1.0, 0.0]]) if bound == "metric" else method_of(bound)
    accountant = TemporalAccountant(Adversary(known, known), accounting=accounting, horizon=3).spend([0.1, 0.2, 0.1])
    with pytest.raises(BudgetError, match="all 3 steps of the horizon are over"):
        accountant.total(0.1)


@pytest.mark.parametrize(
    "start",
    [
        lambda: TemporalAccountant(ADVERSARY),
        lambda: TemporalAccountant(ADVERSARY, alpha=1.0),
        lambda: TemporalAccountant({"a": ADVERSARY, "b": Adversary(MATRIX)}, alpha=1.0, horizon=5),
        lambda: TemporalAccountant(ADVERSARY, accounting=temporaldp.ApproximateDP(1e-3)),
    ],
)
def test_an_accountant_equals_its_copies_until_one_of_them_spends(start):
    accountant = start().spend(0.1)
    for same in (pickle.loads(pickle.dumps(accountant)), copy.deepcopy(accountant), start().spend(0.1)):
        assert same == accountant and not same != accountant  # noqa: SIM202  both operators are asked
        same.spend(0.05)
        assert same != accountant
    assert accountant != start() and accountant != 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(accountant)


def test_an_adopted_correlation_makes_another_accountant():
    one, other = (temporaldp.TemporalAccountant(ADVERSARY).spend(0.1) for _ in range(2))
    one.adopt(Adversary(MATRIX, MATRIX))
    assert one != other
    assert pickle.loads(pickle.dumps(one)) == one
    assert other.adopt(Adversary(MATRIX, MATRIX)) == one


def test_budgets_may_come_one_after_the_other():
    for count in (iter, lambda each: (one for one in each), lambda each: map(float, each)):
        spent = TemporalAccountant(ADVERSARY, alpha=1.0).spend(count([0.1, 0.2])).spent
        assert spent.tolist() == [0.1, 0.2]
        series = temporaldp.temporal_leakage(ADVERSARY, count([0.1, 0.2]))
        assert series == temporaldp.temporal_leakage(ADVERSARY, [0.1, 0.2])


@pytest.mark.parametrize("given", [{0.1, 0.2}, {"a": 0.1}])
def test_budgets_without_an_order_are_refused(given):
    for count in (TemporalAccountant(ADVERSARY).spend, partial(temporaldp.temporal_leakage, ADVERSARY)):
        with pytest.raises(BudgetError, match="numbers or mechanisms, one per step"):
            count(given)
