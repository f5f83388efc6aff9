"""The bound pair by pair, of metrics that are no box, against the definition, exact and paper's, and a linear program.

For plain privacy and other boxes leakage is exact; what the bound pair by pair says of them is tested all the same: there its
oracle is sharper.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import circulant

from data_sets import sleep_sample
from making import around, of_words, smoothed_correlation, strongest_correlation
from matrices import matrices
from methods import method_of
from oracles import defined_leakage, highs_lift, metric_mechanism
from places import REPOSITORY
from temporaldp import (
    Adversary,
    BudgetError,
    InputError,
    LeakageSeries,
    MetricPrivacy,
    PaperBound,
    TemporalAccountant,
    TransitionMatrix,
    estimate_adversaries,
    leakage_supremum,
    load_plan,
    plan_budget,
    save_plan,
    temporal_leakage,
)
from temporaldp.base.errors import StateError
from temporaldp.core.accounting.pairwise import PairwiseLeakage
from temporaldp.core.kernels.lifting import closed, lifted, no_trees, off_diagonal
from temporaldp.core.mechanisms.distances import box_of

EXACT_VALUES = json.loads((REPOSITORY / "tests" / "support" / "exact_values.json").read_text())
DIRECTIONS = ("backward", "forward", "temporal")
ROUNDING = 1e-12


def distances_of(adversary, metric):
    """The metric closed under the triangle inequality; 1 between any two values if none is given."""
    return off_diagonal(len(adversary.states)) if metric is None else closed(np.array(metric, float))


def pair_by_pair(adversary, epsilons, metric=None):
    """The bound pair by pair, whether or not there is an exact value."""
    way, spent = MetricPrivacy(distances_of(adversary, metric)), np.array(epsilons, float)
    (found,) = way.series([adversary], spent)
    sides = (found.backward, found.forward, found.temporal)
    return LeakageSeries(way.release_epsilons(spent), *sides, accounting=way, details=found.evidence)


def limit_pair_by_pair(adversary, epsilon, metric=None):
    """Its supremum, whether or not there is an exact value."""
    return MetricPrivacy(distances_of(adversary, metric)).limits([adversary], np.array([epsilon]))


def rows_of(kind, n, rng):
    """A random stochastic matrix of a hard kind."""
    if kind == "dense":
        rows = rng.dirichlet(np.ones(n), n)
    elif kind == "sparse":
        rows = rng.random((n, n)) * (rng.random((n, n)) < 0.6) + 1e-300 * np.eye(n)
        rows[rows < 1e-200] = 0.0
        rows[rows.sum(axis=1) == 0.0, rng.integers(n)] = 1.0
    elif kind == "tied":
        rows = rng.integers(1, 4, (n, n)).astype(float)
    else:  # nearly deterministic
        rows = np.eye(n)[rng.permutation(n)] + 10.0 ** rng.uniform(-9, -1) * rng.random((n, n))
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", ["dense", "sparse", "tied", "nearly deterministic"])
@pytest.mark.parametrize(
    ("n", "longest", "count"),
    [
        (2, 6, 40),
        (3, 5, 40),
        (4, 4, 20),
        *(pytest.param(*case, marks=pytest.mark.long) for case in [(2, 6, 200), (3, 5, 250), (4, 4, 60)]),
    ],
)
def test_metric_bound_lies_between_the_definition_and_the_paper(kind, n, longest, count):
    """2,040 cases in all, the first 400 of them always; every output of the worst mechanism is enumerated."""
    rng = np.random.default_rng([n, len(kind)])
    for _ in range(count):
        steps = int(rng.integers(2, longest + 1))
        backward, forward = TransitionMatrix(rows_of(kind, n, rng)), TransitionMatrix(rows_of(kind, n, rng))
        epsilons = rng.choice([0.01, 0.3, 1.0, 4.0], steps) * rng.uniform(0.5, 1.0, steps)
        found = pair_by_pair(Adversary(backward, forward), epsilons)
        paper = temporal_leakage(Adversary(backward, forward), epsilons, accounting=PaperBound())
        truth = defined_leakage([backward.dense()] * (steps - 1), [forward.dense()] * (steps - 1), epsilons)
        for direction, true in zip(DIRECTIONS, truth, strict=True):
            value = getattr(found, direction)
            assert (value >= true - ROUNDING * (1.0 + true)).all(), (backward.dense(), forward.dense(), epsilons)
            assert (value <= getattr(paper, direction) * (1.0 + 1e-15)).all()  # a series is capped by the sum, too


@pytest.mark.long
@pytest.mark.parametrize("kind", ["dense", "sparse", "tied", "nearly deterministic"])
def test_never_below_the_exact_leakage(kind):
    """More values and steps than can be enumerated: every pair of values at every step."""
    rng = np.random.default_rng([6, len(kind)])
    for n, steps in ((3, 12), (5, 8), (7, 5)):
        adversary = Adversary(*(TransitionMatrix(rows_of(kind, n, rng)) for _ in range(2)))
        epsilons = rng.choice([0.0, 0.3, 1.0], steps) * rng.uniform(0.5, 1.0, steps)
        above, exact = pair_by_pair(adversary, epsilons), temporal_leakage(adversary, epsilons)
        for direction in DIRECTIONS:
            assert (getattr(above, direction) >= getattr(exact.attained, direction)).all()
            for t in (0, steps // 2, steps - 1):
                of_pairs = above.evidence.metric(t, direction), exact.evidence.metric(t, direction)
                assert (of_pairs[0] >= of_pairs[1] * (1.0 - ROUNDING) - ROUNDING).all()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["dense", "sparse", "tied", "nearly deterministic"])
def test_metric_that_is_not_a_box_is_bounded_pair_by_pair(kind):
    """Between what the largest box within the metric leaks exactly, and the paper's bound."""
    rng = np.random.default_rng([7, len(kind)])
    for _ in range(10):
        n, steps = int(rng.integers(3, 7)), 5
        metric = closed(rng.uniform(0.5, 1.0, (n, n)) * off_diagonal(n))
        assert box_of(metric) is None
        adversary = Adversary(*(TransitionMatrix(rows_of(kind, n, rng)) for _ in range(2)))
        epsilons = rng.uniform(0.1, 2.0, steps)
        found = temporal_leakage(adversary, epsilons, accounting=MetricPrivacy(metric))
        assert found.accounting.name == "metric"
        assert isinstance(found.evidence, PairwiseLeakage)
        assert found.attained is None
        assert found.gap is None
        paper = temporal_leakage(adversary, epsilons * metric.max(), accounting=PaperBound())
        inside = temporal_leakage(adversary, epsilons * metric[off_diagonal(n) > 0].min())
        for direction in DIRECTIONS:
            assert (getattr(found, direction) >= getattr(inside.attained, direction)).all()
            assert (getattr(found, direction) <= getattr(paper, direction)).all()
        with pytest.raises(InputError, match="by the accounting method 'metric'"):
            found.witness()


def test_time_varying_matrices_are_bounded():
    rng = np.random.default_rng(7)
    for _ in range(40):
        steps, n = 4, 3
        backward = [rows_of("sparse", n, rng) for _ in range(steps - 1)]
        forward = [rows_of("dense", n, rng) for _ in range(steps - 1)]
        adversary = Adversary([TransitionMatrix(m) for m in backward], [TransitionMatrix(m) for m in forward])
        epsilons = rng.uniform(0.1, 2.0, steps)
        found = pair_by_pair(adversary, epsilons)
        for direction, true in zip(DIRECTIONS, defined_leakage(backward, forward, epsilons), strict=True):
            assert (getattr(found, direction) >= true - ROUNDING).all()


@pytest.mark.parametrize("n_cases", [15, pytest.param(60, marks=pytest.mark.long)])
def test_bound_covers_the_worst_metric_private_mechanism(n_cases):
    rng = np.random.default_rng(8)
    for _ in range(n_cases):
        n, steps = 3, 4
        metric = closed(rng.random((n, n)) * off_diagonal(n) * 2.0)
        matrix, forward = rows_of("dense", n, rng), rows_of("sparse", n, rng)
        epsilons = rng.uniform(0.1, 2.0, steps)

        def mechanism(_, epsilon, metric=metric):
            return metric_mechanism(epsilon * metric)

        adversary = Adversary(TransitionMatrix(matrix), TransitionMatrix(forward))
        found = temporal_leakage(adversary, epsilons, accounting=MetricPrivacy(metric))
        boxed = box_of(metric) is not None  # where a way round is as short, as between the ends of a line of three
        assert found.accounting.name == ("exact metric" if boxed else "metric")
        paper = temporal_leakage(adversary, epsilons * metric.max(), accounting=PaperBound())
        truth = defined_leakage([matrix] * 3, [forward] * 3, epsilons, mechanism)
        for direction, true in zip(DIRECTIONS, truth, strict=True):
            value = getattr(found, direction)
            assert (value >= true - ROUNDING * (1.0 + true)).all()
            assert (value <= getattr(paper, direction) * (1.0 + ROUNDING)).all()
            if boxed:
                np.testing.assert_allclose(value, true, rtol=ROUNDING)
            assert (
                getattr(pair_by_pair(adversary, epsilons, metric), direction) >= true - ROUNDING * (1.0 + true)
            ).all()
        np.testing.assert_allclose(found.epsilons, epsilons * metric.max())


def test_symmetric_matrices_attain_the_papers_bound():
    matrix = smoothed_correlation(strongest_correlation(8), s=0.02)
    adversary = Adversary(matrix, matrix)
    paper = temporal_leakage(adversary, [0.3] * 15, accounting=PaperBound())
    np.testing.assert_allclose(pair_by_pair(adversary, [0.3] * 15).temporal, paper.temporal, rtol=1e-12)


RING = TransitionMatrix(circulant([0.6, 0.2, 0.0, 0.0, 0.0, 0.2]))


@pytest.fixture(scope="module")
def sleep():
    return next(estimate_adversaries(sleep_sample()))


def test_known_values(sleep):
    """The table of the theory notes, and the audit of the bundled sample, to three digits."""
    past = Adversary(sleep.backward)
    for epsilon, paper, pairs in ((0.1, 0.692, 0.4385), (0.5, 4.486, 2.296)):
        found = temporal_leakage(past, [epsilon] * 25, accounting=PaperBound())
        assert found.backward[-1] == pytest.approx(paper, abs=5e-4)
        assert pair_by_pair(past, [epsilon] * 25).backward[-1] == pytest.approx(pairs, abs=5e-4)
    ring = Adversary(smoothed_correlation(RING, s=0.005))
    paper = temporal_leakage(ring, [0.1] * 25, accounting=PaperBound())
    assert paper.backward[-1] == pytest.approx(1.638, abs=5e-4)
    assert pair_by_pair(ring, [0.1] * 25).backward[-1] == pytest.approx(0.560, abs=5e-4)
    assert temporal_leakage(sleep, [0.1] * 47, accounting=PaperBound()).worst == pytest.approx(1.033, abs=5e-4)
    assert pair_by_pair(sleep, [0.1] * 47).worst == pytest.approx(0.696, abs=5e-4)


@pytest.mark.parametrize("known", EXACT_VALUES["cases"], ids=lambda known: f"{known['name']} {known['epsilon']}")
def test_known_values_beside_the_exact_ones(known, sleep):
    matrices = [known.get(name) for name in ("backward_matrix", "forward_matrix")]
    adversary = sleep if known["name"] == "sample" else Adversary(*map(TransitionMatrix, matrices))
    found = pair_by_pair(adversary, np.full(known["T"], known["epsilon"]))
    assert found.worst == pytest.approx(known["pairwise"], rel=1e-10)
    assert found.worst >= known["temporal"]


def test_a_linear_program_step_by_step(sleep):
    metric = 0.1 * off_diagonal(5)
    found = pair_by_pair(Adversary(sleep.backward), [0.1] * 12)
    for t in range(12):
        np.testing.assert_allclose(found.evidence.metric(t, "backward"), metric, atol=1e-8)
        metric = highs_lift(sleep.backward.dense(), metric) + 0.1 * off_diagonal(5)


def naive(matrix, epsilons):
    """Arrivals step by step, without the shortcut for a metric that has settled."""
    n, arrived, every = matrix.n_states, np.zeros((matrix.n_states,) * 2), []
    for epsilon in epsilons:
        every.append(arrived)
        arrived = lifted(matrix.dense(), arrived + epsilon * off_diagonal(n), matrix.leakage_profile(), no_trees(n))
    return np.array(every)


@pytest.mark.long
@pytest.mark.parametrize(
    "epsilons",
    [[0.2] * 300, [5.0] + [0.01] * 200, [0.1] * 100 + [0.0] * 5 + [0.3] * 100, [0.3] * 90 + [0.1] * 90 + [0.3] * 90],
    ids=["constant", "spike", "pause", "levels"],
)
def test_converged_metric_is_a_tight_upper_bound(sleep, epsilons):
    found = pair_by_pair(Adversary(sleep.backward), epsilons).evidence.past
    expected = naive(sleep.backward, epsilons)
    assert (np.array(found) >= expected - 1e-14).all()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


def test_slowly_growing_metric_is_not_treated_as_converged():
    """The metric grows by 4e-15 of its largest entry per step without limit: convergence has to be proved."""
    small, far = 1e-8, 1e7
    rows = [[1 - small, 0, small, 0], [0, 1, 0, 0], [0, 0.5, 0.5, 0], [0, 0.5, 0.5, 0]]
    metric = np.array([[0, 0, 1, far], [0, 0, 1, far], [1, 1, 0, far], [far, far, far, 0]])
    matrix = TransitionMatrix(rows)
    found = temporal_leakage(Adversary(matrix), [0.5] * 200, accounting=MetricPrivacy(metric)).evidence.past
    arrived = np.zeros((4, 4))
    for t in range(200):
        assert (found[t] >= arrived - 1e-13).all()
        arrived = lifted(matrix.dense(), arrived + 0.5 * metric, matrix.leakage_profile(), no_trees(4))
    assert arrived[0, 1] > 100 * small * 0.4


def no_box(n):
    """A metric that is no box: values on a line."""
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)


def test_without_correlation_leakage_is_that_of_each_release():
    metric = no_box(6)
    series = temporal_leakage(Adversary(), [0.1, 0.2], accounting=MetricPrivacy(metric))
    assert series.accounting.name == "metric"
    assert series.temporal.tolist() == series.epsilons.tolist() == [0.5, 1.0]
    assert leakage_supremum(Adversary(), 0.1, accounting=MetricPrivacy(metric)).temporal == 0.5
    one_way = temporal_leakage(Adversary(forward=RING), [0.1] * 4, accounting=MetricPrivacy(metric))
    assert one_way.backward.tolist() == [0.5] * 4
    assert one_way.forward[0] > 0.5


def test_the_worst_pair_is_the_largest_entry(sleep):
    series = temporal_leakage(sleep, [0.1] * 20, accounting=MetricPrivacy(no_box(5)))
    pairs, step = series.evidence, series.worst_time
    assert series.worst_pair() == pairs.worst_pair(step)
    metric = pairs.metric(step)
    i, j = (pairs.states.index(name) for name in pairs.worst_pair(step))
    assert metric[i, j] == metric.max() == pytest.approx(series.worst, rel=1e-15)
    assert repr(pairs) == "PairwiseLeakage(20 steps, 5 states)"


def test_windows_use_the_tighter_ends(sleep):
    metric = no_box(5)
    found = temporal_leakage(sleep, [0.1] * 20, accounting=MetricPrivacy(metric))
    paper = temporal_leakage(sleep, [0.1 * metric.max()] * 20, accounting=PaperBound())
    assert found.window(4, 6) == pytest.approx(found.backward[4] + found.forward[5])
    assert found.window(4, 6) < paper.window(4, 6)


@settings(max_examples=25)
@given(matrices(max_n=4, kinds=("integers", "zeros", "scaled")), st.floats(0.05, 2.0), st.integers(0, 3))
def test_leakage_is_monotone_in_the_budgets(matrix, epsilon, at):
    epsilons = np.full(4, epsilon)
    less = pair_by_pair(Adversary(matrix, matrix), epsilons)
    epsilons[at] *= 1.5
    more = pair_by_pair(Adversary(matrix, matrix), epsilons)
    assert (more.temporal >= less.temporal - 1e-12).all()


def test_several_users():
    users = {"strong": Adversary(RING, RING), "weak": Adversary(TransitionMatrix(np.full((6, 6), 1 / 6)))}
    together = temporal_leakage(users, [0.1] * 10, accounting=MetricPrivacy(no_box(6)))
    alone = temporal_leakage(users["strong"], [0.1] * 10, accounting=MetricPrivacy(no_box(6)))
    assert together.worst_user == "strong"
    assert together.accounting.name == "metric"
    assert isinstance(together.worst_member.evidence, PairwiseLeakage)
    np.testing.assert_array_equal(together.temporal, alone.temporal)
    limit = leakage_supremum(users, 0.1, accounting=MetricPrivacy(no_box(6)))
    assert (limit.worst_user, limit.accounting.name) == ("strong", "metric")


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.1, 0.5, 1.0, 5.0])
def test_long_series_approach_the_supremum_from_below(sleep, epsilon):
    limit, series = limit_pair_by_pair(sleep, epsilon), pair_by_pair(sleep, np.full(600, epsilon))
    paper, exact = (leakage_supremum(sleep, epsilon, accounting=method_of(bound)) for bound in ("paper", "exact"))
    for direction in DIRECTIONS:
        reached = getattr(series, direction).max()
        assert reached <= getattr(limit, direction) <= reached * (1.0 + 1e-9) + 1e-12
        assert getattr(exact.lower, direction) <= getattr(limit, direction) <= getattr(paper, direction)


@pytest.mark.parametrize("epsilon", [0.01, 0.5])
def test_long_series_approach_the_supremum_of_a_metric_from_below(sleep, epsilon):
    limit = leakage_supremum(sleep, epsilon, accounting=MetricPrivacy(no_box(5)))
    assert limit.accounting.name == "metric"
    series = temporal_leakage(sleep, np.full(600, epsilon), accounting=MetricPrivacy(no_box(5)))
    for direction in DIRECTIONS:
        reached = getattr(series, direction).max()
        assert reached <= getattr(limit, direction) <= reached * (1.0 + 1e-9) + 1e-12


def test_certificates_are_confirmed_by_another_solver(sleep):
    limit = leakage_supremum(sleep, 0.2, accounting=MetricPrivacy(no_box(5)))
    for matrix, metric in zip((sleep.backward, sleep.forward), limit.evidence, strict=True):
        assert (highs_lift(matrix.dense(), metric) + 0.2 * no_box(5) <= metric + 1e-9).all()
    assert [metric.max() for metric in limit.evidence] == pytest.approx([limit.backward, limit.forward])


def test_a_ring_has_a_supremum_where_the_paper_has_none():
    paper = leakage_supremum(Adversary(RING), 0.1, accounting=PaperBound())
    found = limit_pair_by_pair(Adversary(RING), 0.1)
    assert paper.backward == math.inf
    assert found.backward == pytest.approx(0.637088, abs=1e-6)
    long = pair_by_pair(Adversary(RING), np.full(2000, 0.1))
    assert long.backward[-1] <= found.backward <= long.backward[-1] + 1e-9


@pytest.mark.long
@pytest.mark.parametrize("rows", [np.eye(5), np.eye(4)[[1, 2, 3, 0]]], ids=["identity", "permutation"])
def test_permanent_memory_has_no_supremum(rows):
    limit = leakage_supremum(Adversary(TransitionMatrix(rows)), 0.1, accounting=MetricPrivacy(no_box(len(rows))))
    assert limit.temporal == math.inf
    assert limit.evidence[0] is None
    assert "inf" in repr(limit)


LEVEL = 1e-8
FAR = 1e6
OSCILLATING = [
    ([[0.1, 0.9], [0.9, 0.1]], [[0, 6.0], [0, 0]], 1.0),
    ([[1e-3, 0.999], [0.997, 3e-3]], [[0, 1.0], [0, 0]], 0.1),
    (
        [[1e-5, 0.0, 0.0, 0.99999], [0.009, 0.99, 0.0, 0.001], [0.991, 0.0, 0.009, 0.0], [0.002, 0.0, 0.99, 0.008]],
        [[0, 0, 0, 0], [1.0, 0, 0, 0], [1.0, 0, 0, 0], [1.0, 0, 0, 0]],
        1.0,
    ),
    (
        [[1 - LEVEL, 0, LEVEL, 0], [0, 1, 0, 0], [0, 0.5, 0.5, 0], [0, 0.5, 0.5, 0]],
        [[0, 0, 1, FAR], [0, 0, 1, FAR], [1, 1, 0, FAR], [FAR, FAR, FAR, 0]],
        0.5,
    ),
]


@pytest.mark.parametrize(
    ("rows", "metric", "epsilon"),
    [
        pytest.param(*OSCILLATING[0], id="two"),
        pytest.param(*OSCILLATING[1], id="swap", marks=pytest.mark.long),
        pytest.param(*OSCILLATING[2], id="cycle", marks=pytest.mark.slow),
        pytest.param(*OSCILLATING[3], id="far"),
    ],
)
def test_a_metric_with_zeros_has_a_supremum_above_its_series(rows, metric, epsilon):
    """States that no release distinguishes directly are distinguished by the states that follow."""
    adversary = Adversary(TransitionMatrix(rows))
    limit = limit_pair_by_pair(adversary, epsilon, metric)
    series = pair_by_pair(adversary, np.full(400, epsilon), metric)
    assert series.backward.max() <= limit.backward
    if limit.evidence[0] is not None:
        assert (series.evidence.metric(399, "backward") <= limit.evidence[0]).all()
    shown = leakage_supremum(adversary, epsilon, accounting=MetricPrivacy(metric))
    if box_of(np.array(metric, float)) is None:
        assert (shown.accounting.name, shown.backward) == ("metric", limit.backward)
    else:
        assert shown.accounting.name == "exact metric"
        assert shown.lower.backward <= shown.backward <= limit.backward * (1.0 + 2e-10)
        reached = temporal_leakage(adversary, np.full(400, epsilon), accounting=MetricPrivacy(metric))
        assert reached.attained.backward.max() <= shown.backward


@pytest.mark.long
def test_supremum_of_an_oscillating_chain_is_the_limit_of_the_series():
    rows = np.array([[0.33, 0.27, 0.4], [1.0, 4.61e-11, 7.4734e-10], [1.0, 4.62e-11, 7.4737e-10]])
    adversary = Adversary(TransitionMatrix(rows / rows.sum(axis=1, keepdims=True)))
    metric = [[0, 3.0, 1.0], [3.0, 0, 2.0], [1.0, 2.0, 0]]
    limit, reached = limit_pair_by_pair(adversary, 0.01, metric), pair_by_pair(adversary, [0.01] * 300, metric).worst
    assert reached <= limit.temporal <= reached * (1.0 + 1e-9)
    exact = leakage_supremum(adversary, 0.01, accounting=MetricPrivacy(metric))  # the distances are those of a box
    assert exact.accounting.name == "exact metric"
    reached = temporal_leakage(adversary, [0.01] * 300, accounting=MetricPrivacy(metric)).attained.temporal.max()
    assert reached <= exact.temporal <= reached * (1.0 + 1e-9)


def test_entry_below_rounding_can_determine_the_leakage():
    rows = [[0.7, 0.3, 0.0], [0.375, 0.625, 1e-17], [0.7, 0.3, 0.0]]
    adversary = Adversary(TransitionMatrix(rows))
    for level in (40.0, 50.0, 500.0):
        paper = temporal_leakage(adversary, [level, 0.0], accounting=PaperBound()).backward[1]
        assert pair_by_pair(adversary, [level, 0.0]).backward[1] == pytest.approx(paper, rel=1e-12)
        assert temporal_leakage(adversary, [level, 0.0]).backward[1] == pytest.approx(paper, rel=1e-12)


def test_tiny_probabilities_and_large_distances_do_not_vanish():
    first, then = TransitionMatrix([[0.999, 0.001], [0.001, 0.999]]), TransitionMatrix([[1.0, 1e-290], [1.0, 0.0]])
    adversary, metric, true = (
        Adversary([first, then]),
        [[0, 85.0], [1000.0, 0]],
        math.log(999.0) - 290.0 * math.log(10.0),
    )
    found = pair_by_pair(adversary, [1.0, 1.0, 0.0], metric)
    assert found.backward[2] == pytest.approx(1000.0 + true, abs=0.01)
    exact = temporal_leakage(adversary, [1.0, 1.0, 0.0], accounting=MetricPrivacy(metric))  # a box of two values
    assert exact.accounting.label == "upper bound"  # above 300 nats
    assert exact.backward[2] >= 1000.0 + true - 0.01


def test_two_states_have_one_pair_each_way_and_the_paper_s_supremum():
    matrix = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    for epsilon in (0.01, 0.4, 3.0):
        paper = leakage_supremum(Adversary(matrix, matrix), epsilon, accounting=PaperBound()).temporal
        assert limit_pair_by_pair(Adversary(matrix, matrix), epsilon).temporal == pytest.approx(paper, rel=1e-9)


@pytest.mark.long
def test_the_boundary_case_of_the_paper_has_no_supremum():
    matrix = TransitionMatrix([[0.8, 0.2], [0.0, 1.0]])
    for epsilon, finite in ((0.22, True), (math.log(1 / 0.8), False), (0.3, False)):
        assert math.isfinite(limit_pair_by_pair(Adversary(matrix), epsilon).backward) == finite


def test_labelled_table_is_reordered():
    states = ["a", "b", "c"]
    matrix = TransitionMatrix([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]], states=states)
    distances = pd.DataFrame([[0, 1, 2.0], [1, 0, 1], [2, 1, 0]], index=states, columns=states)
    shuffled = distances.loc[["c", "a", "b"], ["b", "c", "a"]]
    one, other = (
        temporal_leakage(Adversary(matrix), [0.1] * 5, accounting=MetricPrivacy(table))
        for table in (distances, shuffled)
    )
    np.testing.assert_array_equal(one.evidence.metric(3), other.evidence.metric(3))
    with pytest.raises(StateError, match="the metric"):
        temporal_leakage(Adversary(matrix), [0.1] * 5, accounting=MetricPrivacy(distances.rename(index={"a": "x"})))


BAD_METRICS = [
    (np.ones((3, 3)), "0 on the diagonal"),
    (-off_diagonal(3), "from 0 to"),
    (np.full((3, 3), np.nan), "diagonal"),
    (np.zeros((3, 3)), "zeros only"),
    (np.ones(3), "shape"),
    ("near", "square array"),
    (1j * np.ones((3, 3)), "real numbers"),
]


@pytest.mark.parametrize(("metric", "message"), BAD_METRICS, ids=[message for _, message in BAD_METRICS])
def test_invalid_metrics_are_refused(metric, message):
    matrix = TransitionMatrix([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]])
    with pytest.raises(InputError, match=message):
        temporal_leakage(Adversary(matrix), [0.1], accounting=MetricPrivacy(metric))


def test_other_bad_arguments_are_refused(sleep):
    with pytest.raises(InputError, match=r"an accounting method, .* got 'best'"):
        temporal_leakage(sleep, [0.1], accounting="best")
    with pytest.raises(InputError, match=r"an accounting method, .* got 'best'"):
        leakage_supremum(sleep, 0.1, accounting="best")
    with pytest.raises(StateError, match="5 states"):
        temporal_leakage(sleep, [0.1], accounting=MetricPrivacy(off_diagonal(4)))
    with pytest.raises(BudgetError, match="distances"):
        temporal_leakage(sleep, [1e60], accounting=MetricPrivacy(1e60 * off_diagonal(5)))
    pairs = temporal_leakage(sleep, [0.1] * 3, accounting=MetricPrivacy(no_box(5))).evidence
    for call in (
        lambda: pairs.metric(3),
        lambda: pairs.metric(0, "sideways"),
        lambda: pairs.worst_pair(1.0),
        lambda: pairs.worst_pair("3"),
    ):
        with pytest.raises(InputError):
            call()
    with pytest.raises(InputError, match="constant"):
        leakage_supremum(Adversary([RING, RING]), 0.1, accounting=MetricPrivacy(no_box(6)))


def test_worst_pair_has_two_states_even_without_leakage(sleep):
    pairs = temporal_leakage(sleep, [0.0] * 3, accounting=MetricPrivacy(no_box(5))).evidence
    assert pairs.worst_pair(0) == ("W", "R")


FAR = MetricPrivacy([[0.0, 3.0], [3.0, 0.0]])
STAYS = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])


@pytest.mark.long
def test_a_method_of_a_result_keeps_its_distances():
    """That of a series or a plan, where releases come one by one, for sets of matrices, and for a longer memory."""
    user = Adversary(STAYS, STAYS)
    for method in (
        temporal_leakage(user, [0.1] * 5, accounting=FAR).accounting,
        plan_budget(user, 1.0, 5, accounting=FAR).accounting,
    ):
        assert method.name == "exact metric" and method.looser is None
        accountant = TemporalAccountant(user, alpha=1.0, accounting=method)
        for _ in range(2):
            accountant.spend(0.05)
        assert accountant.total() >= temporal_leakage(user, [0.15] * 2).worst > 0.15
        assert accountant.remaining() <= TemporalAccountant(user, alpha=1.0).spend([0.15] * 2).remaining() / 3.0 + 1e-9
        near = Adversary(around(STAYS, width=0.05))
        found = temporal_leakage(near, [0.1] * 5, accounting=method)
        assert found.accounting.name == "interval metric" and found.epsilons.tolist() == [pytest.approx(0.3)] * 5
        assert found.accounting.specialised([user]).name == "exact metric"
        with pytest.raises(InputError, match="first order"):
            temporal_leakage(of_words(np.full((2, 2, 2), 0.5)), [0.1] * 3, accounting=method)


def test_names_of_distances_are_kept():
    distances, states = [[0, 1, 2.0], [1, 0, 1], [2, 1, 0]], ["a", "b", "c"]
    rows = np.array([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]])
    matrix = TransitionMatrix(rows, states)
    turned = matrix.reordered(["b", "a", "c"])
    method = MetricPrivacy(distances, states)
    one, other = (temporal_leakage(Adversary(each), [0.1] * 5, accounting=method) for each in (matrix, turned))
    assert one.worst == pytest.approx(other.worst, rel=1e-12)
    again = temporal_leakage(Adversary(turned), [0.1] * 5, accounting=one.accounting)
    assert again.accounting.distances.tolist() == other.accounting.distances.tolist()
    with pytest.raises(StateError, match="the metric has 3 rows"):
        MetricPrivacy(distances, ["a", "b"])


def test_names_of_distances_are_kept_in_files_and_by_unnamed_matrices(tmp_path):
    distances = np.array([[0, 1, 2.0], [1, 0, 1], [2, 1, 0]])
    rows = np.array([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]])
    named = TransitionMatrix(rows, ["a", "b", "c"])
    save_plan(plan_budget(Adversary(named), 1.0, 4, accounting=MetricPrivacy(distances)), tmp_path / "plan.json")
    plan, turned = load_plan(tmp_path / "plan.json"), Adversary(named.reordered(["b", "a", "c"]))
    assert plan.leakage_to(turned, 4).worst == pytest.approx(plan.leakage.worst, rel=1e-9)
    assert MetricPrivacy(distances, list("abc")) != MetricPrivacy(distances, list("bac"))
    frame = pd.DataFrame(distances, index=list("bac"), columns=list("bac"))
    assert MetricPrivacy(frame, list("abc")).distances.tolist() == [[0, 1, 1], [1, 0, 2], [1, 2, 0]]
    unnamed = plan_budget(Adversary(TransitionMatrix(rows)), 1.0, 4, accounting=MetricPrivacy(distances))
    assert unnamed.leakage_to(Adversary(named), 4).worst == pytest.approx(unnamed.leakage.worst, rel=1e-9)
