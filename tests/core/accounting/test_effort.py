"""An exact leakage whose effort ends: an interval around the exact number, of which plans and filters use the upper side."""

from __future__ import annotations

import math
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

import temporaldp as tdp
from temporaldp.base.progress import Estimate, effort, estimated, progressed, watched
from temporaldp.core.accounting.exact.estimate import seconds_of_series, seconds_of_supremum
from temporaldp.core.accounting.protocol import DIRECTIONS
from temporaldp.core.planning import plan_for_share
from temporaldp.lab.studies import leakage_distribution

NO_TIME = tdp.Exact(effort=0.0)
EFFORTS = [0.0, 0.05, 0.5]


def sticky(n, rng=8, stays=0.7):
    rows = stays * np.eye(n) + (1.0 - stays) * np.random.default_rng(rng).dirichlet(np.ones(n), n)
    return tdp.TransitionMatrix(rows)


@pytest.fixture(scope="module")
def adversary():
    return tdp.Adversary(sticky(6), sticky(6, rng=9), name="Ann")


class Questions:
    """A clock that advances by a second each time it is asked: an effort of k seconds ends at the k-th question."""

    def __init__(self):
        self.asked = 0

    def monotonic(self):
        self.asked += 1
        return float(self.asked)


@pytest.fixture
def clock(monkeypatch):
    from temporaldp.base import progress

    monkeypatch.setattr(progress, "time", Questions())
    return progress.time


def ends(clock, compute, n=12):
    """Results of computations that end at different questions, the result without an end first."""
    first = clock.asked
    yield compute(tdp.Exact(effort=1e12))
    for question in np.unique(np.geomspace(1.0, clock.asked - first, n).astype(int)).tolist():
        yield compute(tdp.Exact(effort=float(question)))


def encloses(attained, proved, exact):
    """Whether the sides of an interval enclose exact numbers, which are upper bounds to rounding."""
    assert (np.asarray(attained) <= np.asarray(exact)).all()
    assert (np.asarray(exact) * (1.0 - 1e-9) <= np.asarray(proved)).all()


def series_encloses(found, exact):
    for direction in DIRECTIONS:
        encloses(getattr(found.attained, direction), getattr(found, direction), getattr(exact, direction))


EQUAL, VARIED = [0.05] * 40, np.random.default_rng(3).uniform(0.02, 0.1, 20).tolist()
BOXES = [
    tdp.LikelihoodBox(*np.random.default_rng(k).uniform([[-0.1], [0.0]], [[0.0], [0.1]], (2, 6))) for k in range(8)
]
SEVERAL = [tdp.Adversary(sticky(6, rng=k), sticky(6, rng=k + 1), name=str(k)) for k in range(5)]


@pytest.mark.parametrize(
    ("people", "releases"),
    [
        (tdp.Adversary(sticky(8, stays=0.9)), EQUAL),
        pytest.param(tdp.Adversary(sticky(6), sticky(6, rng=9)), EQUAL, marks=pytest.mark.long),
        (tdp.Adversary(forward=sticky(7)), VARIED),
        (tdp.Adversary([sticky(5, rng=k) for k in range(19)], [sticky(5, rng=k) for k in range(19)]), VARIED),
        (tdp.Adversary(sticky(6), sticky(6, rng=9)), BOXES),
        pytest.param(SEVERAL, EQUAL, marks=pytest.mark.long),
        (SEVERAL, VARIED),
    ],
    ids=["past", "both", "future", "varying", "boxes", "people", "people with varied budgets"],
)
def test_wherever_a_series_ends_it_encloses_the_exact_leakage(people, releases, clock):
    exact, *all_found = ends(clock, lambda method: tdp.temporal_leakage(people, releases, accounting=method))
    for found in all_found:
        series_encloses(found, exact)
        assert "exact" not in repr(found) or found.is_exact
    assert len({found.worst for found in all_found}) > 1


@pytest.mark.parametrize(
    ("stays", "epsilon"),
    [(0.5, 0.02), (0.9, 0.5), *(pytest.param(*case, marks=pytest.mark.long) for case in [(0.5, 0.5), (0.9, 0.02)])],
)
def test_wherever_a_supremum_ends_it_encloses_the_exact_one(stays, epsilon, clock):
    user = tdp.Adversary(sticky(6, stays=stays), sticky(6, rng=9, stays=stays))
    exact, *all_found = ends(clock, lambda method: tdp.leakage_supremum(user, epsilon, accounting=method))
    for found in all_found:
        for direction in DIRECTIONS:
            encloses(found.attained(direction), getattr(found, direction), getattr(exact, direction))
        assert (found.label == "exact") == found.certified
    assert len({found.temporal for found in all_found}) > 1


@pytest.mark.long
@pytest.mark.parametrize("horizon", [None, 6])
def test_wherever_a_plan_ends_it_satisfies_its_level(horizon, clock):
    user = tdp.Adversary(sticky(3), sticky(3, rng=9))
    exact, *all_found = ends(clock, lambda method: tdp.plan_budget(user, 1.0, horizon, accounting=method), 6)
    for plan in all_found:
        assert plan.leakage.worst <= 1.0
        assert plan.leakage_to(user, 6, accounting=tdp.Exact()).worst <= 1.0
    assert max(plan.mean_absolute_noise for plan in all_found) > exact.mean_absolute_noise


MANY = tdp.Adversary(sticky(40, stays=0.9), sticky(40, rng=9, stays=0.9))


@pytest.fixture(scope="module")
def exact_of_many():
    return tdp.temporal_leakage(MANY, EQUAL)


@pytest.mark.long
@pytest.mark.parametrize("effort", EFFORTS)
def test_more_states_than_there_is_time_for(effort, exact_of_many):
    user, method = MANY, tdp.Exact(effort=effort)
    begun = time.monotonic()
    found, limits = (
        tdp.temporal_leakage(user, EQUAL, accounting=method),
        tdp.leakage_supremum(user, 0.05, accounting=method),
    )
    assert time.monotonic() - begun < 2.0 * effort + 2.0
    assert not found.is_exact or effort
    series_encloses(found, exact_of_many)
    encloses(limits.attained(), limits.temporal, limits.temporal)
    assert found.attained.temporal.max() <= limits.temporal


@pytest.mark.long
@pytest.mark.parametrize("effort", EFFORTS)
def test_a_population_has_both_sides(effort, adversary):
    people, method = [*SEVERAL, adversary], tdp.Exact(effort=effort)
    for horizon in (None, 8):
        exact, found = (
            leakage_distribution(people, epsilon=0.05, horizon=horizon, accounting=one) for one in (tdp.Exact(), method)
        )
        known, all_known = (dict(zip(one.names, one.leakage, strict=True)) for one in (exact, found))
        attained = dict(zip(found.names, found.attained, strict=True))
        for name, leakage in known.items():
            encloses(attained[name], all_known[name], leakage)
        assert exact.label == "exact"
        for share in (0.5, 1.0):
            encloses(*found.sides(share), exact.quantile(share))
        if not effort:
            assert (found.label, " to " in repr(found), "after 0 s" in found._repr_html_()) == (
                "upper bound",
                True,
                True,
            )


def test_what_is_shown_of_an_interval(adversary):
    exact, found = (tdp.temporal_leakage(adversary, [0.05] * 12, accounting=one) for one in (tdp.Exact(), NO_TIME))
    assert (exact.is_exact, exact.label, found.is_exact, found.label) == (True, "exact", False, "upper bound")
    assert isinstance(found.accounting, tdp.Exact)
    low, high = map(float, re.fullmatch(r"(0\.\d+) to (0\.\d+) after 0 s", found.written()).groups())
    assert low * (1.0 - 1e-12) <= found.attained.temporal.max() <= exact.worst <= found.worst <= high
    assert exact.written() == f"{float(exact.written())}"
    limits = [
        tdp.leakage_supremum(people, 0.05, accounting=NO_TIME)
        for people in (adversary, [adversary, tdp.Adversary(adversary.forward)])
    ]
    assert {one.label for one in limits} == {"upper bound"}
    for one in (found, *limits):
        for shown in (repr(one), one._repr_html_()):
            assert " to " in shown
            assert "after 0 s" in shown
            assert "exact" not in shown
        assert "upper bound" in one._repr_html_()


@pytest.mark.parametrize("horizon", [None, 8])
def test_a_plan_keeps_both_sides_in_its_file(adversary, horizon, tmp_path):
    plan = tdp.plan_budget(adversary, alpha=1.0, horizon=horizon, accounting=NO_TIME)
    assert plan.leakage.label == "upper bound"
    tdp.save_plan(plan, tmp_path / "plan.json")
    read = tdp.load_plan(tmp_path / "plan.json")
    assert (read.leakage.label, read.leakage.written()) == ("upper bound", plan.leakage.written().split(" after")[0])
    assert " to " in read.leakage.written()
    assert read.leakage.evidence is None or horizon is None


def test_a_plan_is_no_worse_with_more_effort_than_it_needs(adversary):
    plan, timed = (tdp.plan_budget(adversary, 1.0, 8, accounting=one) for one in (tdp.Exact(), tdp.Exact(effort=1e6)))
    np.testing.assert_allclose(timed.epsilons, plan.epsilons, rtol=1e-9)
    assert timed.leakage.label == "exact"


def test_without_a_budget_that_is_proved_to_last_the_error_names_the_effort():
    ring = tdp.TransitionMatrix(np.roll(np.eye(4), 1, axis=1) * 0.5 + np.eye(4) * 0.5)
    assert tdp.sustainable_budget(tdp.Adversary(ring), 1.0) > 0.0
    with pytest.raises(tdp.PlanError, match="within 0 s: allow more effort"):
        tdp.plan_budget(tdp.Adversary(ring), alpha=1.0, accounting=NO_TIME)


def test_a_filter_stays_within_its_level(adversary):
    accountant = tdp.TemporalAccountant(adversary, alpha=1.0, accounting=NO_TIME)
    assert accountant.reserve > 0.0
    for _ in range(2):
        accountant = accountant.spend(accountant.remaining())
    assert tdp.temporal_leakage(adversary, accountant.spent).worst <= 1.0


def test_the_effort_is_no_part_of_the_method():
    assert tdp.Exact(effort=3.0) == tdp.Exact()
    assert tdp.Exact(effort=3.0).document() == {"method": "exact"}
    assert repr(tdp.Exact(effort=3.0)) == "Exact(effort=3)"
    for bad in (-1.0, math.nan, "fast"):
        with pytest.raises(tdp.InputError, match="effort"):
            tdp.Exact(effort=bad)


def test_an_effort_within_another_ends_with_it_or_with_a_share_of_it():
    from temporaldp.base import progress

    with effort(100.0):
        whole = progress._end.get()
        with effort(1000.0):
            assert progress._end.get() == whole
        with effort(share=0.5):
            assert 49.0 < progress._end.get() - time.monotonic() < 50.0


# What is reported before and during long work


def reports(seconds, within=math.inf):
    said = []
    with watched(lambda doing, share: said.append(doing)), effort(within), estimated("work", lambda: seconds):
        progressed("part", 0.5)
        with estimated("part", lambda: 1e3):
            pass
    assert said[-2:] == ["work", "part"]
    return said[:-2]


def test_an_estimate_of_more_than_ten_seconds_is_reported_first_and_once():
    assert reports(9.0) == []
    assert reports(40.0) == ["work, about 40 s"]
    assert reports(600.0) == ["work, about 10 min"]
    assert reports(600.0, within=20.0) == ["work, about 20 s"]
    assert isinstance(reports(40.0)[0], Estimate)


class CancelledError(Exception):
    """A watcher ends the work."""


def test_a_long_leakage_a_supremum_and_a_plan_report_their_estimates():
    def stop(doing, share):
        raise CancelledError(doing)

    user = tdp.Adversary(sticky(500), sticky(500, rng=9))
    for call, doing in (
        (lambda: tdp.temporal_leakage(user, [0.1] * 50), "leakage of every step"),
        (lambda: tdp.leakage_supremum(user, 0.1), "leakage over an infinite horizon"),
        (lambda: tdp.plan_budget(user, 1.0, 50), "plan"),
        (lambda: tdp.sustainable_budget(user, 1.0), "sustainable budget"),
        (lambda: leakage_distribution([user] * 9, epsilon=0.1), "leakage of every person"),
        (lambda: plan_for_share([user] * 9, alpha=1.0, share=0.5), "budgets of single users"),
    ):
        with watched(stop), pytest.raises(CancelledError, match=rf"^{doing}, about \d+ (s|min)$"):
            call()


def test_estimates_increase_with_all_that_takes_time():
    def series(n, n_steps, stays=0.5, people=1, alike=True):
        matrix = tdp.TransitionMatrix(stays * np.eye(n) + (1.0 - stays) / n)
        return seconds_of_series([tdp.Adversary(matrix, matrix)] * people, n_steps, alike=alike)

    assert series(10, 20) < series(100, 20) < series(100, 80) < series(100, 80, stays=0.9)
    assert series(100, 80) < series(100, 80, alike=False)
    assert series(5, 20, people=1000) == pytest.approx(10 * series(5, 20, people=100))
    assert seconds_of_series([tdp.Adversary()], 20, alike=True) == seconds_of_supremum([tdp.Adversary()]) == 0.0


# Interruption


@pytest.mark.long
@pytest.mark.parametrize(
    "call",
    [
        lambda user: tdp.temporal_leakage(user, [0.05] * 60),
        lambda user: tdp.leakage_supremum(user, 0.05),
        lambda user: tdp.plan_budget(user, 1.0, 30),
        lambda user: tdp.sustainable_budget(user, 1.0),
    ],
    ids=["series", "supremum", "plan", "sustainable budget"],
)
def test_a_watcher_can_cancel_within_half_a_second(call):
    call(tdp.Adversary(sticky(4), sticky(4)))  # libraries are loaded
    begun = last = time.monotonic()
    longest = 0.0

    def watch(doing, share):
        nonlocal last, longest
        last, longest = time.monotonic(), max(longest, time.monotonic() - last)
        if last - begun > 1.5:
            raise CancelledError

    with watched(watch), suppress(CancelledError):
        call(tdp.Adversary(sticky(120, stays=0.9), sticky(120, rng=9, stays=0.9)))
    assert longest < 0.5


LONG = """
import time, numpy as np, temporaldp as tdp
rows = 0.9 * np.eye(300) + 0.1 * np.random.default_rng(1).dirichlet(np.ones(300), 300)
user = tdp.Adversary(tdp.TransitionMatrix(rows), tdp.TransitionMatrix(rows))
print("ready", flush=True)
try:
    tdp.temporal_leakage(user, [0.1] * 50)
except KeyboardInterrupt:
    print(time.monotonic())
"""


@pytest.mark.long
@pytest.mark.parametrize("seconds", [0.2, 2.0])
def test_an_interrupt_ends_a_long_leakage_within_half_a_second(seconds):
    with subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout.readline() == "ready\n"
        time.sleep(seconds)
        begun = time.monotonic()
        run.send_signal(signal.SIGINT)
        assert float(run.communicate(timeout=60)[0]) - begun < 0.5
