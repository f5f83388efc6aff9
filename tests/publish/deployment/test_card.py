"""What a promise is worth over time: against the solved fixed point, against enumeration, and in words."""

from __future__ import annotations

import datetime
import itertools
import json
import math

import numpy as np
import pytest

from registry_records import record, with_parameters
from temporaldp import Adversary, BudgetError, InputError, IntervalMatrix, TransitionMatrix, sticky
from temporaldp.base.errors import StateError, TemporaldpError
from temporaldp.core.correlation import Provenance
from temporaldp.publish.deployment import Assumptions, Deployment, PrivacyUnit
from temporaldp.publish.deployment.formats import render_card
from temporaldp.publish.deployment.over_time import LeakageOverTime
from temporaldp.publish.report.sentences import factor, percent, posterior


@pytest.fixture
def load(tmp_path):
    def loaded(text=None):
        (tmp_path / "r.yaml").write_text(record() if text is None else text)
        return Deployment.load(tmp_path / "r.yaml")

    return loaded


def fixed_point(first, second, epsilon):
    """The least a with a = epsilon + what passes of a, for a chain of two values that stay with these probabilities.

    By halving a function of our own: what passes is the largest log ratio of the two rows, weighted e^a on one value.
    """

    def passes(a):
        rows = [(first, 1.0 - first), (1.0 - second, second)]
        ratios = []
        for high in (0, 1):
            x = [math.exp(a) if k == high else 1.0 for k in (0, 1)]
            sums = [row[0] * x[0] + row[1] * x[1] for row in rows]
            ratios += [abs(math.log(sums[0] / sums[1]))]
        return max(ratios)

    low, high = epsilon, 60.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if epsilon + passes(middle) > middle else (low, middle)
    return high


@pytest.mark.parametrize(("stays", "printed"), [(0.7, 2.05), (0.8, 2.96), (0.9, 4.50), (0.99, 9.27)])
def test_the_supremum_at_epsilon_1_is_the_solved_fixed_point(load, stays, printed):
    card = load().card(stays=(0.7, 0.99))
    leak = dict(zip(card.stays, card.over_time, strict=True))[stays]
    assert leak == pytest.approx(2.0 * fixed_point(stays, stays, 1.0) - 1.0, abs=1e-9)
    assert leak == pytest.approx(printed, abs=0.005)


def test_curve_has_round_points_and_both_ends(load):
    card = load().card(stays=(0.52, 0.99))
    assert card.stays[0] == 0.52
    assert {0.55, 0.7, 0.9, 0.95, 0.99} <= set(card.stays)
    assert len(card.stays) == len(card.over_time)
    assert list(card.over_time) == sorted(card.over_time)
    assert len(load().card(stays=(0.91, 0.92)).stays) == 11
    assert load().card(stays=(0.9, 0.9)).stays == (0.9,)


def test_worse_end_of_the_range_bounds_all_stationary_two_state_chains(load, rng):
    card = load().card(stays=(0.3, 0.9))
    worst = max(card.over_time)
    for first, second in rng.uniform(0.3, 0.9, (200, 2)):
        assert 2.0 * fixed_point(first, second, 1.0) - 1.0 <= worst + 1e-9
    assert worst == card.over_time[-1]


@pytest.mark.long
def test_states_that_never_or_always_change_leak_without_bound(load):
    card = load().card(stays=(0.0, 1.0))
    assert card.over_time[0] == card.over_time[-1] == math.inf
    assert card.over_time[card.stays.index(0.5)] == pytest.approx(1.0, abs=1e-12)
    assert card.to_dict()["over_time"][-1] == math.inf
    only = load().card(stays=(1.0, 1.0))
    assert "grows without bound" in only.sentences[1]
    assert only.leakage.settles is None
    assert only.leakage.held is None
    assert only.leakage.within == pytest.approx(365.0)


def test_all_values_of_a_card(load):
    found = load().card(horizon=10).leakage
    top = fixed_point(0.9, 0.9, 1.0)
    assert (found.promised, found.alone, found.delta, found.at) == (1.0, 1.0, 0.0, 0.9)
    assert found.limit.temporal == pytest.approx(2.0 * top - 1.0, abs=1e-9)
    assert found.is_exact
    assert found.together == 10.0
    assert found.within < found.limit.temporal
    # the recursion itself, step by step
    past = [1.0]
    while past[-1] < 0.99 * top:
        past.append(1.0 + math.log((0.9 * math.exp(past[-1]) + 0.1) / (0.1 * math.exp(past[-1]) + 0.9)))
    assert found.settles == len(past)
    held = found.held.epsilon
    assert 2.0 * fixed_point(0.9, 0.9, held) - held <= 1.0
    assert 2.0 * fixed_point(0.9, 0.9, 1.01 * held) - 1.01 * held > 1.0
    assert found.doubled == pytest.approx(2.0 * fixed_point(0.9, 0.9, 2.0) - 2.0, abs=1e-9)


def test_sentences_of_a_card(load):
    told = " ".join(load().card(horizon=10).sentences)
    assert "increases from 50 % to at most 99 % and from 10 % to at most 91 %" in told
    assert "4.4995 nats about one day" in told
    assert "With a promise of epsilon = 0.1157 for each day" in told  # 0.11573: what is granted is rounded down
    assert "both states are contributed, a change is a removal and an addition" in told


def test_a_card_says_what_each_guarantee_is_worth(load):
    card = load().card(horizon=10, guarantee="window:3")
    worth = {str(kind): leakage for kind, leakage in card.by_guarantee.items()}
    assert worth == {
        "event": 1.0,
        "temporal": pytest.approx(4.4995, abs=1e-4),
        "window:7": 7.0,
        "user": 10.0,
        "window:3": 3.0,
    }
    assert card.protected.wording.label == "window of 3 steps"
    assert [row["guarantee"] for row in card.to_dict()["guarantees"]] == list(worth)
    assert "of a person at any 3 consecutive steps together becomes at most 95.3 %: 3 nats" in render_card(card)
    for wrong in ("person", "window", "window:0"):
        with pytest.raises(TemporaldpError):
            load().card(guarantee=wrong)


@pytest.mark.parametrize(("prior", "leakage"), [(0.5, 4.499), (0.1, 2.0), (0.9, 0.3)])
def test_a_posterior_is_bayes_rule(prior, leakage):
    likelihoods = np.array([math.exp(leakage), 1.0])
    joint = likelihoods * [prior, 1.0 - prior]
    assert posterior(prior, leakage) == pytest.approx(joint[0] / joint.sum(), rel=1e-12)


def test_probabilities_and_factors_are_never_rounded_down():
    for p in np.concatenate((np.linspace(0.5, 0.999, 500), 1.0 - np.logspace(-3, -8, 50))):
        shown = float(percent(float(p)).removesuffix(" %"))
        assert 100.0 * p <= shown + 1e-9
        assert shown - 100.0 * p < 12.0 * (1.0 - p) + 1.0 * (p < 0.9)
    for leakage in np.linspace(0.0, 12.9, 500):
        assert float(factor(float(leakage)).replace(",", "")) >= math.exp(leakage) * (1.0 - 1e-12)
    assert factor(2.302585 * 16.02) == "10^16.1"


def test_limits_come_first_and_assumptions_are_complete(load):
    card = load().card(states=("home", "away"), stays=(0.6, 0.95))
    assert "do not show that the differential privacy of the deployment is broken" in " ".join(card.explained("limits"))
    assert "The record does not show whether a chain" in " ".join(card.explained("limits"))
    assumed = " ".join(card.explained("assumptions"))
    for part in ("home, away", "0.6 to 0.95", "365 days", "One step is a day", "two units apart"):
        assert part in assumed
    assert list(card.to_dict())[-1] == "to_publisher"
    json.dumps(card.to_dict(), allow_nan=False)


def binary_releases(matrix, epsilon, delta, horizon):
    """The epsilon at delta about the middle step, when every step tells its value by randomised response, by all outputs."""
    at, truth = horizon // 2, 1.0 / (1.0 + math.exp(-epsilon))
    laws = []
    for value in (0, 1):
        law = []
        for outputs in itertools.product((0, 1), repeat=horizon):
            told = np.array([[truth if k == o else 1.0 - truth for k in (0, 1)] for o in outputs])
            past = future = np.ones(2)
            for step in range(at):
                past = matrix @ (told[step] * past)
            for step in range(horizon - 1, at, -1):
                future = matrix @ (told[step] * future)
            law.append(past[value] * future[value] * told[at, value])
        laws.append(np.array(law))
    assert laws[0].sum() == pytest.approx(1.0)
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        beyond = np.maximum(laws[0] - math.exp(middle) * laws[1], 0.0).sum() > delta
        low, high = (middle, high) if beyond else (low, middle)
    return high


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "epsilon"),
    [
        (with_parameters("rho: 0.125", variant="Zero-concentrated DP"), 0.5),  # Bun and Steinke: epsilon^2 / 2
        (with_parameters("epsilon: 0.5", "delta: 1e-8", variant="Approximate DP"), 0.5),
    ],
    ids=["rho", "delta"],
)
def test_bound_under_approximate_dp_covers_an_enumerated_mechanism(load, text, epsilon):
    card = load(text).card(stays=(0.8, 0.8), delta=1e-3, horizon=30)
    enumerated = binary_releases(np.array([[0.8, 0.2], [0.2, 0.8]]), epsilon, 1e-3, 11)
    found = card.leakage
    assert enumerated <= found.limit.temporal
    assert found.within <= found.limit.temporal
    assert card.to_dict()["kind"] == "upper bound"
    assert any("delta 0.001" in sentence for sentence in card.explained("assumptions"))
    if "rho" not in card.promise.sentence:  # an enumerated mechanism that uses the whole promise comes near
        assert found.limit.temporal <= 1.25 * enumerated
    chain = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]], ["0", "1"])
    distances, adversary = PrivacyUnit.of("binary-count").distances(("0", "1")), Adversary(chain, chain)
    assert LeakageOverTime(found.held, distances, 1e-3, adversary, 30, 0.8).limit.temporal <= found.alone
    more = LeakageOverTime(found.held.times(1.01), distances, 1e-3, adversary, 30, 0.8)
    assert more.limit.temporal > 0.999 * found.alone


def test_independent_states_leak_as_much_as_one_step(load):
    card = load(with_parameters("rho: 0.015", variant="Zero-concentrated DP")).card(stays=(0.5, 0.5))
    assert card.over_time[0] == pytest.approx(card.leakage.alone, rel=1e-3)
    assert card.leakage.together < 365 * card.leakage.alone


def test_default_deltas(load):
    assert (
        load(with_parameters("rho: 0.1", variant="Zero-concentrated DP")).card(stays=(0.5, 0.5)).leakage.delta == 1e-6
    )
    text = with_parameters("epsilon: 1.0", "delta: 1e-8", variant="Approximate DP")
    assert load(text).card(stays=(0.5, 0.5)).leakage.delta == pytest.approx(1e-5)
    with pytest.raises(InputError, match="a delta above that of the promise"):
        load(text).card(delta=1e-9)
    with pytest.raises(InputError, match="leave it out"):
        load().card(delta=1e-6)


def test_a_matrix_in_place_of_a_range(load):
    chain = TransitionMatrix([[0.9, 0.1], [0.3, 0.7]], states=["home", "away"])
    adversary = Adversary.from_forward(chain, initial=chain.stationary_distribution())
    card = load().card(correlation=adversary, correlation_name="matrix.csv")
    assert card.asked.states == ("home", "away")
    assert card.stays == pytest.approx((0.75 * 0.9 + 0.25 * 0.7,))
    assert 2.0 < card.over_time[0] <= 2.0 * fixed_point(0.9, 0.7, 2.0) - 2.0 + 1e-9
    assert "matrix.csv" in " ".join(card.explained("assumptions"))
    with pytest.raises(StateError, match="states of the matrix, home, away"):
        load().card(correlation=adversary, states=("a", "b"))
    both = Adversary(sticky(2, stays=(0.7, 0.9)), sticky(2, stays=(0.7, 0.9)))
    known = load().card(correlation=both)
    assert known.over_time[0] >= 2.0 * fixed_point(0.9, 0.9, 2.0) - 2.0 - 1e-9
    assert not known.leakage.is_exact


def test_a_correlation_of_longer_steps_is_not_that_of_the_card(load):
    """Who stays for a week with probability 0.9 stays for a day more often."""

    def known(step):
        source = Provenance("history", step=step)
        each = IntervalMatrix([[0.8, 0.1]] * 2, [[0.9, 0.2]] * 2, ["present", "absent"], provenance=source)
        return Adversary(each, each)

    assert load().card(correlation=known("86400 seconds")).leakage is not None
    for step in ("604800 seconds", "1 months"):
        with pytest.raises(InputError, match="a step of the card is a day: within a shorter step people move less"):
            load().card(correlation=known(step))


def test_tables_replace_the_stated_guarantee(load):
    card = load().card(tables={"country": 0.1, "county": 0.3})
    assert card.leakage.promised == pytest.approx(0.4)
    assert "for the tables of this secret" in card.explained("to_publisher")[0]
    with pytest.raises(InputError, match=r"part of what the record promises, epsilon = 1, but they add up to 1\.2"):
        load().card(tables={"country": 0.9, "county": 0.3})
    with pytest.raises(InputError, match="pure differential privacy"):
        load(with_parameters("rho: 0.1", variant="Zero-concentrated DP")).card(tables={"a": 0.1})


def test_dates_and_lengths_of_a_step(load):
    asked = {"since": datetime.date(2020, 1, 31), "until": datetime.date(2020, 3, 1)}
    assert load().card(**asked).horizon == 31
    for unit, steps in (
        ("User-half-day-level", 62),
        ("User-half-month-level", 4),
        ("User-half-year-level", 1),
        ("User-quarter-level", 1),
        ("User-week-level", 5),
        ("User-month-level", 3),
        ("User-quarter-day-level", 124),
        ("User-year-level", 1),
    ):
        card = load(record(privacy_unit=unit)).card(**asked)
        assert card.horizon == steps, unit
    assert load(record(privacy_unit="User-month-level")).card().horizon == 12
    today = Assumptions(since=datetime.date.today())
    assert today.steps("day") == 1


def calendar_names(period, day):
    """What a calendar calls the parts of a day that lie in such a period."""
    week = day.isocalendar()
    return {
        "half-day": {(day, 0), (day, 1)},
        "day": {day},
        "week": {(week.year, week.week)},
        "half-month": {(day.year, day.month, "first" if day.day <= 15 else "second")},
        "month": {(day.year, day.month)},
        "quarter": {(day.year, " 111222333444"[day.month])},
        "half-year": {(day.year, "first" if day.strftime("%m") in {"01", "02", "03", "04", "05", "06"} else "second")},
        "year": {day.year},
    }[period]


@pytest.mark.parametrize("period", ["half-day", "day", "week", "half-month", "month", "quarter", "half-year", "year"])
def test_a_range_has_the_calendar_periods_that_it_touches(period, rng):
    """Counted day by day, for random ranges and those of one and two days."""
    for start, length in [(400, 1), *zip(rng.integers(0, 3000, 60), rng.integers(1, 900, 60), strict=True)]:
        first = datetime.date(2016, 1, 1) + datetime.timedelta(int(start))
        days = [first + datetime.timedelta(k) for k in range(int(length))]
        names = set().union(*(calendar_names(period, day) for day in days))
        assert Assumptions(since=first, until=days[-1]).steps(period) == len(names), (first, days[-1])


def test_a_short_range_may_touch_two_periods(load):
    def steps(since, until, period):
        asked = {"since": datetime.date.fromisoformat(since), "until": datetime.date.fromisoformat(until)}
        return load(record(privacy_unit=f"User-{period}-level")).card(stays=(0.5, 0.5), **asked)

    assert steps("2020-03-01", "2020-04-30", "quarter").horizon == 2
    assert steps("2024-06-02", "2024-06-03", "week").horizon == 2  # a Sunday and a Monday
    assert steps("2024-06-03", "2024-06-09", "week").horizon == 1
    assert steps("2020-06-30", "2020-07-01", "half-year").horizon == 2
    assert steps("2020-01-15", "2020-01-16", "half-month").horizon == 2
    assert "weeks that begin on Monday" in " ".join(steps("2024-06-02", "2024-06-03", "week").explained("assumptions"))


def test_units_by_default(load):
    three, absent = Assumptions(states=("a", "b", "c")), Assumptions(states=("a", "absent", "c"))
    assert Assumptions().privacy_unit(load()) == PrivacyUnit.of("binary-count")
    two = Assumptions(states=("home", "work")).privacy_unit(load())
    assert (two.name, two.between) == ("category-histogram", 2) and "--unit binary-count" in two.reasoning[-1]
    assert three.privacy_unit(load()) == PrivacyUnit.of("category-histogram")
    assert absent.privacy_unit(load()) == PrivacyUnit.of("add-or-remove")
    replaced = load(record(privacy_unit_details="The change-one distance."))
    assert three.privacy_unit(replaced) == Assumptions().privacy_unit(replaced) == PrivacyUnit.of("replace-one")


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"states": ("a",)}, StateError, "at least 2 states"),
        ({"stays": (0.9, 0.5)}, InputError, "smallest <= largest"),
        ({"stays": 0.9}, InputError, "two probabilities"),
        ({"at": 0.2}, InputError, "within the range"),
        ({"horizon": 0}, BudgetError, "at least 1"),
        ({"horizon": 10**400}, BudgetError, "at most 10000000 steps"),
        ({"tables": {"a\nb": 0.5}}, StateError, "the name of a table"),
        ({"horizon": 3, "since": datetime.date(2020, 1, 1)}, InputError, "either a horizon or dates"),
        ({"until": datetime.date(2020, 1, 1)}, InputError, "first day"),
        ({"since": datetime.date(2020, 1, 2), "until": datetime.date(2020, 1, 1)}, InputError, "in order"),
        ({"unit": "week"}, InputError, "expected a unit among"),
        ({"every": "fortnight"}, InputError, "expected a length of a step"),
        ({"delta": 2.0}, BudgetError, "between 0 and 1"),
        ({"absent": "a", "unit": "replace-one"}, InputError, "add-or-remove"),
        ({"absent": "gone"}, InputError, "got 'gone'"),
    ],
)
def test_invalid_questions_are_refused(load, asked, error, says):
    with pytest.raises(error, match=says):
        load().card(**asked)
    with pytest.raises(InputError, match="Assumptions or their fields"):
        load().card(Assumptions(), horizon=3)
