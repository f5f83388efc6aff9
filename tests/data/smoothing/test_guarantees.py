"""Comparison of guarantees: against the accounting, the figures of a publisher, and its own rule of advice."""

from __future__ import annotations

import numpy as np
import pytest

from temporaldp import (
    Adversary,
    BudgetError,
    InputError,
    Periodic,
    PublicCorrelation,
    Trajectories,
    TransitionMatrix,
    compare_guarantees,
    estimate_adversaries,
    level_for_error,
    load_sample,
    plan_guarantee,
    temporal_leakage,
)
from temporaldp.core.planning import Guarantee
from temporaldp.core.planning.histogram_noise import noise_variance
from temporaldp.data.smoothing.simulation import noise_at_quantiles, simulated_counts

CHAIN = TransitionMatrix([[0.8, 0.2], [0.3, 0.7]])
ADVERSARY = Adversary(CHAIN, CHAIN)
KNOWN = PublicCorrelation(CHAIN, provenance="a test")


@pytest.mark.long
def test_every_plan_satisfies_its_level():
    found = compare_guarantees(ADVERSARY, alphas=[0.3, 1.0], horizon=12, windows=[4], n_people=300, correlation=KNOWN)
    assert [row.alpha for row in found.rows] == [0.3] * 8 + [1.0] * 8
    for row in found.rows:
        assert row.plan.leakage.worst <= row.alpha
        assert row.plan.delta == row.delta
        assert row.error < row.noise
        if row.guarantee.is_temporal and not row.delta:
            assert temporal_leakage(ADVERSARY, row.plan.epsilons).worst <= row.alpha
        if not row.guarantee.is_temporal and not row.delta:
            width = {"user": 12, "window": 4, "event": 1}[row.guarantee.kind]
            assert row.plan.epsilons[0] == pytest.approx(row.alpha / width)


@pytest.mark.long
def test_the_figures_of_the_bundled_sample():
    """Noise on a count at level 1, as a publisher measured it on this sample; within 3 %."""
    sample = load_sample()
    people = Trajectories(sample.codes, states=sample.states, times=sample.times)
    adversary = next(estimate_adversaries(people[:75]))
    found = compare_guarantees(adversary, horizon=47, n_people=76, n_states=5)
    noise = {(row.guarantee.kind, row.delta > 0.0): row.noise for row in found.rows}
    assert noise["temporal", False] == pytest.approx(12.1, rel=0.03)
    assert noise["temporal", True] == pytest.approx(9.1, rel=0.03)
    assert noise["user", False] == pytest.approx(94.0, rel=0.03)
    assert noise["user", True] == pytest.approx(32.7, rel=0.03)
    assert found.advised.name == "temporal level, pure"


@pytest.mark.long
@pytest.mark.parametrize(
    ("stay", "steps", "expected"),
    [
        (0.5, 40, "temporal level, pure"),
        (0.99, 60, "user level, delta = 1e-06"),
        (0.95, 300, "temporal level, delta = 1e-06"),
    ],
)
def test_the_advice_follows_the_error(stay, steps, expected):
    chain = TransitionMatrix([[stay, 1.0 - stay], [1.0 - stay, stay]])
    found = compare_guarantees(Adversary(chain, chain), horizon=steps, n_people=400, n_states=2)
    noise = {(row.guarantee.kind, row.delta > 0.0): row.noise for row in found.rows}
    has_delta = "delta" in expected
    assert found.advised.name == expected
    assert ("temporal" in expected) == (noise["temporal", has_delta] <= 0.75 * noise["user", has_delta])
    assert expected.split(",")[0] in found.advice


def test_without_a_correlation_the_other_rows_remain():
    found = compare_guarantees(horizon=10)
    assert [str(row.guarantee) for row in found.rows if row.plan is None] == ["temporal", "temporal"]
    assert "give an adversary, or a history" in found.rows[0].refusal
    stream = compare_guarantees(windows=[7])
    assert {str(row.guarantee) for row in stream.rows} == {"temporal", "window:7", "event"}
    assert stream.advised.guarantee == Guarantee("window", 7)


def test_a_plan_of_another_horizon_is_not_the_one_in_use():
    """Its noise is that of fewer steps."""
    short = plan_guarantee("user", 1.0, 4)
    for horizon, is_in_use in ((40, False), (4, True)):
        found = compare_guarantees(horizon=horizon, delta=0.0, plan=short)
        (row,) = (row for row in found.rows if row.guarantee.kind == "user")
        assert (row.plan is short) == is_in_use and row.noise == pytest.approx(2.0 * horizon, rel=0.02)


def test_with_a_delta_of_zero_each_guarantee_has_one_row():
    found = compare_guarantees(ADVERSARY, horizon=3, delta=0.0)
    assert [(str(row.guarantee), row.delta) for row in found.rows] == [("temporal", 0.0), ("user", 0.0), ("event", 0.0)]


@pytest.mark.long
def test_the_level_is_where_the_error_is_reached():
    terms = {"horizon": 12, "n_people": 300}
    released = level_for_error(5.0, ADVERSARY, **terms)
    smoothed = level_for_error(5.0, ADVERSARY, **terms, correlation=KNOWN)
    assert smoothed < released
    found = compare_guarantees(ADVERSARY, alphas=[smoothed], **terms, correlation=KNOWN)
    assert 4.0 < found.rows[0].error <= 5.1  # a plan has slightly less noise than equal noise
    user = level_for_error(5.0, guarantee="user", horizon=12)
    assert user == pytest.approx(12 * 2.0 / (1.0 / np.arcsinh(1.0 / 5.0)), rel=0.03)


@pytest.mark.parametrize(("scale", "noise"), [(0.7, "laplace"), (9.0, "laplace"), (6.0, "gaussian")])
def test_simulated_noise_has_the_variance_of_the_noise_that_is_drawn(scale, noise):
    drawn = noise_at_quantiles(np.random.default_rng(0).uniform(size=400_000), scale, noise)
    assert drawn.var() == pytest.approx(noise_variance(scale, noise), rel=0.03)
    assert abs(drawn.mean()) < 0.05 * scale


@pytest.mark.long
def test_few_draws_of_large_budgets_are_proposed_for_people_who_seldom_move():
    """Where most people stay, a step says much about the next ones: a few large budgets are worth more than many small ones."""
    chain = TransitionMatrix([[0.95, 0.05], [0.05, 0.95]])
    adversary, known = Adversary(chain, chain), PublicCorrelation(chain, provenance="a test")
    terms = {"horizon": 40, "n_people": 300, "correlation": known}
    found = compare_guarantees(adversary, **terms)
    every, few = ([row for row in found.rows if bool(row.drawn) == is_few] for is_few in (False, True))
    assert [str(row.guarantee) for row in few] == ["temporal", "user"]
    for row in few:
        (dense,) = (one for one in every if (one.guarantee, one.delta) == (row.guarantee, 0.0))
        spent = row.plan.epsilons
        assert row.is_clearly_better(dense) and row.noise < dense.noise / 2
        assert (np.flatnonzero(spent) == np.arange(0, 40, row.draw_every)).all()
        assert spent.sum() <= 1.0 or temporal_leakage(adversary, spent).worst <= 1.0
    assert found.advised in few and found.advised.drawn in found.advice
    assert found.columns()["drawn"][found.rows.index(few[0])] == np.count_nonzero(few[0].plan.epsilons)
    # The plan in use is such a row, beside the one that is drawn at every step
    again = compare_guarantees(adversary, **terms, plan=few[0].plan)
    assert sum(row.plan is few[0].plan for row in again.rows) == 1
    assert again.rows[0].noise == found.rows[0].noise
    several = compare_guarantees(adversary, alphas=[0.5, 1.0], **terms)
    assert not any(row.drawn for row in several.rows)


def test_the_level_of_few_draws_is_that_of_their_releases():
    terms = {"guarantee": "user", "horizon": 12}
    assert level_for_error(5.0, **terms, draw_every=5) == pytest.approx(level_for_error(5.0, **terms) * 3 / 12)
    with pytest.raises(BudgetError, match="draw_every is for delta = 0"):
        level_for_error(5.0, **terms, delta=1e-6, draw_every=5)


def test_errors_are_those_of_counts_like_the_ones_of_the_past():
    """A rush hour, which no chain without a clock has: all people are elsewhere every second step."""
    past = np.tile([[90.0, 10.0], [10.0, 90.0]], (15, 1))
    terms = {"horizon": 20, "n_people": 500, "delta": 0.0}
    by_chain = compare_guarantees(ADVERSARY, **terms, correlation=KNOWN)
    by_past = compare_guarantees(ADVERSARY, **terms, correlation=KNOWN, past_counts=past)
    short = compare_guarantees(ADVERSARY, **terms, correlation=KNOWN, past_counts=past[:19])
    assert by_past.rows[0].noise == by_chain.rows[0].noise and short.rows[0].error == by_chain.rows[0].error
    assert by_past.rows[0].error > by_chain.rows[0].error
    clock = PublicCorrelation(Periodic([CHAIN, CHAIN]), provenance="a test")
    at_any_hour = compare_guarantees(ADVERSARY, **terms, correlation=clock, past_counts=past)
    assert at_any_hour.rows[0].error == by_chain.rows[0].error
    with pytest.raises(InputError, match="a column for each state"):
        compare_guarantees(ADVERSARY, **terms, correlation=KNOWN, past_counts=past[:, :1])


def test_simulated_people_begin_as_others_did():
    began = PublicCorrelation(CHAIN, provenance="a test", initial=[9, 0])
    found = simulated_counts(began, n_people=500, horizon=3, repetitions=2, seed=1)
    assert (found.counts[:, 0] == [500, 0]).all()


def test_simulated_people_move_by_the_chain():
    found = simulated_counts(KNOWN, n_people=500, horizon=4_000, repetitions=1, seed=1)
    np.testing.assert_allclose(found.counts[0].mean(axis=0) / 500, [0.6, 0.4], atol=0.01)  # 0.3 and 0.2, over their sum
    assert (found.counts.sum(axis=2) == 500).all()


def test_invalid_arguments_are_refused():
    with pytest.raises(InputError, match="PublicCorrelation"):
        compare_guarantees(ADVERSARY, n_people=10, horizon=3, correlation=CHAIN)
    with pytest.raises(BudgetError, match="alpha"):
        compare_guarantees(ADVERSARY, alphas=[-1.0])
    with pytest.raises(BudgetError, match="at least one level"):
        compare_guarantees(ADVERSARY, alphas=[])
    with pytest.raises(BudgetError, match="delta"):
        compare_guarantees(ADVERSARY, delta=-1e-6, horizon=3)
    with pytest.raises(BudgetError, match="no noise has an error"):
        level_for_error(1e-9, ADVERSARY, horizon=3)
    with pytest.raises(InputError, match="needs a correlation"):
        level_for_error(5.0, horizon=3)
    with pytest.raises(BudgetError, match="user level"):
        level_for_error(5.0, guarantee="user")
