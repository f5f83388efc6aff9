"""Memoised responses against sums over all reports, paths and tables."""

import itertools
import math

import numpy as np
import pytest

import temporaldp as tdp
from correlated_noise.enumeration import report_likelihoods
from temporaldp.correlated_noise import MemoizedResponse

STICKY = np.array([[0.9, 0.1], [0.2, 0.8]])
REPORT = math.e**0.5 / (1.0 + math.e**0.5)
KEPT = math.e / (1.0 + math.e)
ONE_REPORT_HALF = math.log((REPORT - (1.0 - KEPT)) / (KEPT - REPORT))
"""Instantaneous epsilon with which one report, of a permanent answer with epsilon 1, is 0.5-DP."""


def responses(epsilon, g):
    return (np.exp(epsilon * np.eye(g))) / (math.exp(epsilon) + g - 1)


def leakage_of(likelihoods, delta):
    """The largest epsilon of any ordered pair at a delta, by halving, from {output: likelihoods}."""
    table = np.array(list(likelihoods.values())).T
    worst = 0.0
    for i in range(len(table)):
        for j in range(len(table)):
            if delta == 0.0:
                worst = max(worst, float(np.log(table[i] / table[j]).max()))
                continue
            low, high = 0.0, 50.0
            while high - low > 1e-9:
                middle = 0.5 * (low + high)
                over = np.maximum(table[i] - math.exp(middle) * table[j], 0.0).sum() > delta
                low, high = (middle, high) if over else (low, middle)
            worst = max(worst, high)
    return worst


@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize("seed", range(4))
def test_leakage_equals_that_of_all_reports_together(seed, delta):
    rng = np.random.default_rng(seed)
    n, T = (2, 5) if seed % 2 else (3, 3)
    backward, forward = rng.dirichlet(np.ones(n), size=n), rng.dirichlet(np.ones(n), size=n)
    permanent, instantaneous = rng.uniform(0.3, 2.0, size=2)
    given = tdp.Adversary(tdp.TransitionMatrix(backward), tdp.TransitionMatrix(forward))
    accounting = tdp.ApproximateDP(delta) if delta else tdp.Exact()
    mechanism = MemoizedResponse(permanent, instantaneous, n)
    series = tdp.temporal_leakage(given, mechanism, accounting=accounting, horizon=T)
    for step in range(T):
        every = report_likelihoods(responses(permanent, n), responses(instantaneous, n), backward, forward, T, step)
        until, since = {}, {}
        for reports, likelihoods in every.items():
            until[reports[: step + 1]] = until.get(reports[: step + 1], 0.0) + likelihoods
            since[reports[step:]] = since.get(reports[step:], 0.0) + likelihoods
        for found, expected in zip(("backward", "forward", "temporal"), (until, since, every), strict=True):
            assert getattr(series, found)[step] == pytest.approx(leakage_of(expected, delta), abs=2e-6)


@pytest.mark.parametrize("seed", [7, 14, 19, 20, 36])
def test_sums_over_many_tables_never_round_below_the_leakage(seed):
    """Sums of the mechanism's own doubles with a longer mantissa, over 3,125 tables of answers and two reports."""
    n, rng = 5, np.random.default_rng(seed)
    matrix = tdp.TransitionMatrix(rng.dirichlet(np.ones(n), size=(3, n))[0])
    mechanism = MemoizedResponse(*rng.uniform(0.3, 2.0, size=2), n)
    series = tdp.temporal_leakage(tdp.Adversary(matrix, matrix), mechanism, horizon=2)
    tables = np.array(list(itertools.product(range(n), repeat=n)))
    chances = mechanism.answers(n).astype(np.longdouble)[np.arange(n), tables].prod(axis=1)
    emitted = mechanism.reports.astype(np.longdouble)[tables]  # shape (tables, states, reports)
    after = np.einsum("xz,mzb->mxb", matrix.probabilities.astype(np.longdouble), emitted)
    likelihoods = np.einsum("m,mxa,mxb->xab", chances, emitted, after).reshape(n, -1)
    logs = np.log(likelihoods / likelihoods.sum(axis=1, keepdims=True))
    assert np.longdouble(series.temporal[0]) >= (logs.max(axis=0) - logs.min(axis=0)).max()
    assert series.attained.temporal[0] <= series.temporal[0] <= series.attained.temporal[0] + 1e-10


@pytest.mark.long
def test_eight_steps_of_two_states_agree_with_enumeration():
    mechanism = MemoizedResponse(1.0, ONE_REPORT_HALF, 2)
    given = tdp.Adversary.from_forward(tdp.TransitionMatrix(STICKY))
    series = tdp.temporal_leakage(given, mechanism, horizon=8)
    for step in (0, 3):
        every = report_likelihoods(responses(1.0, 2), responses(ONE_REPORT_HALF, 2), STICKY, STICKY, 8, step)
        assert series.temporal[step] == pytest.approx(leakage_of(every, 0.0), abs=1e-9)


def test_ten_steps_have_the_value_of_the_theory_chapter():
    given = tdp.Adversary.from_forward(tdp.TransitionMatrix(STICKY))
    mechanism = MemoizedResponse(1.0, ONE_REPORT_HALF, 2)
    series = tdp.temporal_leakage(given, mechanism, accounting=tdp.ApproximateDP(1e-3), horizon=10)
    assert series.temporal[5] == pytest.approx(1.71, abs=0.006)
    assert series.evidence.failure == 0.0
    assert (series.attained.temporal <= series.temporal).all()
    assert series.attained.temporal == pytest.approx(series.temporal, rel=1e-5)


@pytest.mark.long
def test_48_steps_are_simulated_around_the_value_of_the_theory():
    given = tdp.Adversary.from_forward(tdp.TransitionMatrix(STICKY))
    mechanism = MemoizedResponse(1.0, ONE_REPORT_HALF, 2)
    series = tdp.temporal_leakage(given, mechanism, accounting=tdp.ApproximateDP(1e-3), horizon=48)
    assert series.attained.temporal[24] < 3.39 < series.temporal[24] < 3.75
    assert (series.attained.temporal <= series.temporal).all()
    assert 0.0 < series.evidence.failure <= 1e-6
    quilts = tdp.temporal_leakage(given, mechanism, accounting=tdp.MarkovQuilt(), horizon=48)
    assert (series.temporal <= quilts.temporal).all()


def test_simulated_bounds_enclose_the_enumerated_leakage(monkeypatch):
    from temporaldp.correlated_noise import memoized

    given = tdp.Adversary.from_forward(tdp.TransitionMatrix(STICKY))
    mechanism = MemoizedResponse(1.0, 1.5, 2)
    exact = tdp.temporal_leakage(given, mechanism, accounting=tdp.ApproximateDP(0.01), horizon=6)
    monkeypatch.setattr(memoized, "MOST_ENUMERATED", 1)
    simulated = tdp.temporal_leakage(given, mechanism, accounting=tdp.ApproximateDP(0.01), horizon=6)
    for name in ("backward", "forward", "temporal"):
        assert (getattr(simulated.attained, name) <= getattr(exact, name)).all()
        assert (getattr(exact, name) <= getattr(simulated, name)).all()


def test_underflowing_likelihoods_never_count_as_no_leakage():
    """A hundred reports of which only two groups can be distinguished leak as much as two reports."""
    chain = tdp.TransitionMatrix([[0.999, 0.001], [0.001, 0.999]])
    groups = np.kron(np.array([[2.0, 1.0], [1.0, 2.0]]), np.ones(50)) / 150.0
    few, many = (
        tdp.temporal_leakage(
            tdp.Adversary(chain, chain), MemoizedResponse(2.0, table, 2), accounting=tdp.ApproximateDP(0.3), horizon=170
        )
        for table in (np.array([[2.0, 1.0], [1.0, 2.0]]) / 3.0, groups)
    )
    assert (many.temporal >= few.attained.temporal).all()
    assert (few.temporal >= many.attained.temporal).all()
    with pytest.raises(tdp.InputError, match="range of doubles"):
        sticky = tdp.Adversary.from_forward(tdp.TransitionMatrix(STICKY))
        tdp.temporal_leakage(sticky, MemoizedResponse(1.0, 1.0, 2), accounting=tdp.ApproximateDP(0.3), horizon=4000)


def test_a_delta_too_small_to_simulate_has_the_bound_by_quilts():
    given = tdp.Adversary.from_forward(tdp.TransitionMatrix(STICKY))
    mechanism = MemoizedResponse(1.0, 1.0, 2)
    small = tdp.temporal_leakage(given, mechanism, accounting=tdp.ApproximateDP(1e-9), horizon=40)
    quilts = tdp.temporal_leakage(given, mechanism, accounting=tdp.MarkovQuilt(), horizon=40)
    assert small.temporal == pytest.approx(quilts.temporal)
    assert not small.attained.temporal.any()


def test_quilts_are_never_below_the_enumerated_leakage():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        given = tdp.Adversary.from_forward(tdp.TransitionMatrix(rng.dirichlet(np.ones(2), size=2)))
        mechanism = MemoizedResponse(*rng.uniform(0.2, 2.0, size=2), 2)
        exact, quilts = (
            tdp.temporal_leakage(given, mechanism, accounting=method, horizon=6)
            for method in (tdp.Exact(), tdp.MarkovQuilt())
        )
        assert (exact.temporal <= quilts.temporal + 1e-9).all()


def test_unsupported_arguments_are_refused():
    mechanism = MemoizedResponse(1.0, 1.0, 2)
    given = tdp.Adversary.from_forward(tdp.TransitionMatrix(STICKY))
    with pytest.raises(tdp.BudgetError, match="give horizon=T"):
        tdp.temporal_leakage(given, mechanism)
    with pytest.raises(tdp.InputError, match="ApproximateDP"):
        tdp.temporal_leakage(given, mechanism, horizon=60)
    with pytest.raises(tdp.InputError, match="backward and a forward"):
        tdp.temporal_leakage(tdp.Adversary(backward=tdp.TransitionMatrix(STICKY)), mechanism, horizon=3)
    with pytest.raises(tdp.InputError, match="tables of permanent answers"):
        many = tdp.Adversary.from_forward(tdp.TransitionMatrix(np.full((13, 13), 1 / 13)))
        tdp.temporal_leakage(many, mechanism, horizon=3)
    with pytest.raises(tdp.InputError, match="shape"):
        tdp.temporal_leakage(given, MemoizedResponse([[0.5, 0.25, 0.25]] * 2, 1.0, 2), horizon=2)
    with pytest.raises(tdp.InputError, match="row for each of 3 answers"):
        MemoizedResponse(1.0, [[0.5, 0.5], [0.1, 0.9]], 3)
    with pytest.raises(tdp.InputError, match="instantaneous"):
        MemoizedResponse(1.0, -1.0, 2)
