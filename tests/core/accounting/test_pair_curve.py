"""A privacy curve for each pair of values: never below the definition, never above one curve, and what it is in known cases."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.optimize import linprog

from data_sets import sleep_sample
from making import around
from oracles import told_by_all
from temporaldp import (
    Adversary,
    ApproximateDP,
    DiscreteGaussianNoise,
    GaussianNoise,
    InputError,
    MetricPrivacy,
    OutputTable,
    PrivacyGuarantee,
    RandomizedResponse,
    TemporalAccountant,
    TransitionMatrix,
    leakage_supremum,
    temporal_leakage,
)
from temporaldp.core.accounting.curve import grid
from temporaldp.core.accounting.curve.arrivals import SingleCurve
from temporaldp.core.accounting.curve.evidence import PrivacyCurve, curve_of_pair
from temporaldp.core.accounting.curve.pair_curves import PairCurves, goes_by_pairs
from temporaldp.core.accounting.curve.pair_kernels import made_convex
from temporaldp.core.accounting.protocol import SIDES
from temporaldp.data.tables import estimate_transition_matrix

ULPS = 1e-12
"""What an oracle's own sums in doubles may lose."""


@pytest.fixture(scope="module")
def sample():
    walks = sleep_sample()
    return tuple(estimate_transition_matrix(walks, direction=direction) for direction in ("backward", "forward"))


def curve_about(evidence, step, i, j):
    """The deltas of one value against another at a step, upper bounds."""
    high = curve_of_pair(evidence.pairs.curve(step, "temporal"), i, j)
    return PrivacyCurve(evidence.grid, high, np.zeros_like(high))


def random_rows(rng, n):
    rows = rng.dirichlet(np.full(n, rng.choice([0.2, 0.6, 2.0])), n)
    if rng.random() < 0.3:
        rows = np.where(rows < 0.15, 0.0, rows)
        rows = np.where(rows.any(axis=1, keepdims=True), rows, np.eye(n))
    return rows / rows.sum(axis=1, keepdims=True)


def both_kinds(adversary, releases, delta, h=None):
    """The series by a curve for each pair, and that by one curve for all pairs."""
    return (
        temporal_leakage(adversary, releases, accounting=ApproximateDP(delta, pairwise=pairwise, grid=h))
        for pairwise in (True, False)
    )


def divergence(row, other, gamma):
    return float(np.maximum(row - gamma * other, 0.0).sum())


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_curves_of_pairs_lie_between_the_definition_and_the_common_curve(seed):
    """2,050 finite mechanisms, every sequence of whose outputs is enumerated; fifty of them in every run."""
    rng = np.random.default_rng(seed)
    for _ in range(400 if seed else 50):
        n, m = int(rng.integers(2, 5)), int(rng.integers(2, 4))
        n_steps = int(rng.integers(2, 5))
        table = rng.dirichlet(np.full(m, rng.choice([0.5, 2.0, 20.0])), n)
        past, future = ([random_rows(rng, n) for _ in range(n_steps - 1)] for _ in range(2))
        adversary = Adversary(list(map(TransitionMatrix, past)), list(map(TransitionMatrix, future)))
        delta, h = float(10.0 ** rng.integers(-6, -1)), float(rng.choice([0.05, 0.2]))
        series, one = both_kinds(adversary, [OutputTable(table)] * n_steps, delta, h)
        assert (series.temporal <= one.temporal).all() and (series.backward <= one.backward).all()
        for step in range(n_steps):
            rows = told_by_all(table, past, future, step, n_steps)
            curves = series.evidence.metric(step)
            for i in range(n):
                for j in set(range(n)) - {i}:
                    curve = curve_about(series.evidence, step, i, j)
                    for epsilon in (0.0, *rng.uniform(0.0, 3.0, 2)):
                        assert divergence(rows[i], rows[j], math.exp(epsilon)) <= curve.delta(float(epsilon)) + ULPS
                    if math.isfinite(curves[i, j]):
                        assert divergence(rows[i], rows[j], math.exp(curves[i, j])) <= series.delta * (1 + 1e-9) + ULPS


def told_before(tables, matrices):
    """The probabilities of all earlier outputs for each value, a row each, at every step: one matrix a transition."""
    told = [np.ones((len(tables[0]), 1))]
    for table, rows in zip(tables[:-1], matrices, strict=True):
        told.append(rows @ (told[-1][:, :, None] * table[:, None, :]).reshape(len(table), -1))
    return told


def joint(*parts):
    """The probabilities of outputs of several kinds that are independent given the value."""
    whole = parts[0]
    for part in parts[1:]:
        whole = (whole[:, :, None] * part[:, None, :]).reshape(len(part), -1)
    return whole


@pytest.mark.long
@pytest.mark.parametrize(("seed", "count"), [(0, 12), pytest.param(1, 300, marks=pytest.mark.slow)])
def test_varying_mechanisms_single_directions_zeros_windows_and_suprema(seed, count):
    """Every sequence of outputs is enumerated, with tables that rule outputs out, deltas from 1e-9 to 0.3, and coarse grids."""
    rng = np.random.default_rng(seed)
    for case in range(count):
        n, n_steps, sides = int(rng.integers(3, 5)), int(rng.integers(2, 5)), case % 3
        tables = [rng.dirichlet(np.full(3, rng.choice([0.3, 3.0, 30.0])), n) for _ in range(n_steps)]
        tables = [np.where(table < 0.05, 0.0, table) for table in tables]
        tables = [table / table.sum(axis=1, keepdims=True) for table in tables]
        back, on = random_rows(rng, n), random_rows(rng, n)
        past, future = back if sides != 1 else None, on if sides != 0 else None
        adversary = Adversary(*(None if rows is None else TransitionMatrix(rows) for rows in (past, future)))
        nothing = [np.ones((n, 1))] * n_steps
        before = nothing if past is None else told_before(tables, [past] * (n_steps - 1))
        after = nothing if future is None else told_before(tables[::-1], [future] * (n_steps - 1))[::-1]
        accounting = ApproximateDP(
            float(10.0 ** rng.uniform(-9.0, -0.5)), pairwise=True, grid=float(rng.choice([0.02, 0.3]))
        )
        series = temporal_leakage(adversary, list(map(OutputTable, tables)), accounting=accounting)
        allowed = series.delta * (1.0 + 1e-9) + ULPS
        for t in range(n_steps):
            told = {
                "backward": joint(before[t], tables[t]),
                "forward": joint(tables[t], after[t]),
                "temporal": joint(before[t], tables[t], after[t]),
            }
            for direction, rows in told.items():
                found = series.evidence.metric(t, direction)
                for i, j in zip(*np.nonzero(np.isfinite(found) & ~np.eye(n, dtype=bool)), strict=True):
                    assert divergence(rows[i], rows[j], math.exp(found[i, j])) <= allowed
        for first in range(n_steps - 1):
            seen, whole = series.window(first, n_steps), range(first, n_steps)
            one, other = ([int(v) for v in rng.integers(n, size=len(whole))] for _ in range(2))
            rows = [
                joint(
                    before[first][v[:1]], *(tables[t][[x]] for t, x in zip(whole, v, strict=True)), after[-1][[v[-1]]]
                )[0]
                for v in (one, other)
            ]
            assert math.isinf(seen) or divergence(rows[0], rows[1], math.exp(seen)) <= allowed
        repeated = [tables[0]] * 5
        limits = leakage_supremum(adversary, OutputTable(tables[0]), accounting=accounting)
        for rows, found in ((past, limits.backward), (future, limits.forward)):
            if rows is not None and math.isfinite(found):
                long = joint(told_before(repeated, [rows] * 4)[-1], tables[0])
                worst = max(divergence(a, b, math.exp(found)) for a in long for b in long)
                assert worst <= allowed


def best_test(rows, D, h, i, j, k):
    """max (P_i - e^(k h) P_j) t over tests t, as a linear program with a constraint for each pair and point of the grid."""
    n, _, size = D.shape
    lines, heights = [], []
    for a in range(n):
        for b in set(range(n)) - {a}:
            for m in range(1 - size, size):
                g = math.exp(m * h)
                line = np.zeros(n)
                line[a], line[b] = 1.0, -g
                lines.append(line)
                heights.append(D[a, b, m] if m >= 0 else 1.0 - g + g * D[b, a, -m])
    found = linprog(
        math.exp(k * h) * rows[j] - rows[i], A_ub=np.array(lines), b_ub=heights, bounds=(0, 1), method="highs"
    )
    assert found.status == 0, found.message
    return -found.fun


@pytest.mark.long
def test_optimal_tests_agree_with_a_linear_program():
    """Curves of a second table pass through the same matrix, so that its search begins where that for the first one ended."""
    rng, h, size = np.random.default_rng(5), 0.1, 31
    for _ in range(25):
        n = int(rng.integers(2, 6))
        rows, passing = random_rows(rng, n), PairCurves(SingleCurve(h, 1e-3, up=True), n)
        matrix = TransitionMatrix(rows)
        for _ in range(2):
            table = rng.dirichlet(np.full(int(rng.integers(2, 6)), rng.choice([0.5, 2.0, 10.0])), n)
            D = np.array(
                [
                    [[divergence(a, b, math.exp(k * h)) if a is not b else 0.0 for k in range(size)] for b in table]
                    for a in table
                ]
            )
            passed = passing.through(matrix, D)
            if passed.ndim == 1:
                passed = np.zeros((n, n, 1))
            for _ in range(8):
                i, j = rng.choice(n, 2, replace=False)
                k = int(rng.integers(size))
                best, found = best_test(rows, D, h, i, j, k), passed[i, j, min(k, passed.shape[-1] - 1)]
                # HiGHS solves to 1e-7; curves are raised against ties, tails are cut
                assert best - 1e-8 <= found <= best + 1e-6


def test_incoming_curve_is_made_convex_after_an_early_stop():
    """A tail point that was 1e-6 too high made a composition lose the tail; the convex rest is a tighter bound."""
    h, far = 0.001, 4000
    one, other = (np.array(row) for row in ([0.5, 0.3, 0.2, 1e-8], [0.2, 0.3, 0.5, 1e-11]))
    true = np.array([divergence(one, other, math.exp(k * h)) for k in range(far)])
    rng = np.random.default_rng(1)
    raised = true + np.where(rng.random(far) < 0.05, 1e-6, 0.0)
    raised[-1] = true[-1]
    raised = made_convex(raised, h)
    assert (true <= raised * (1 + 1e-12) + 1e-300).all() and np.abs(raised - true).max() < 2e-8


def test_pure_mechanisms_agree_with_metric_privacy():
    """At the smallest delta, the epsilon of each pair is the pure leakage by which its states are distinguished."""
    rng = np.random.default_rng(2)
    for _ in range(2):
        n = 3
        rows = 0.5 * random_rows(rng, n) + 0.5 * np.eye(n)
        adversary = Adversary(TransitionMatrix(rows))
        # Distances that make no box: the accounting method of a metric.
        table = rng.dirichlet(np.full(6, 5.0), n)
        with np.errstate(divide="ignore"):
            metric = np.log(table[:, None, :] / table[None, :, :]).max(axis=2)
        h = metric.max() / 150.0
        pairs = temporal_leakage(
            adversary, [OutputTable(table)] * 5, accounting=ApproximateDP(1e-9, pairwise=True, grid=h)
        )
        pure = temporal_leakage(adversary, [1.0] * 5, accounting=MetricPrivacy(metric))
        assert (pairs.backward <= pure.backward + 6 * h).all()
        one = temporal_leakage(adversary, [OutputTable(table)] * 5, accounting=ApproximateDP(1e-9, pairwise=False))
        assert pairs.backward[-1] <= one.backward[-1]
    ring = TransitionMatrix([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    answer = RandomizedResponse(0.2, 3)
    pairs = temporal_leakage(Adversary(ring), [answer] * 8, accounting=ApproximateDP(1e-9, pairwise=True))
    pure = temporal_leakage(Adversary(ring), [0.2] * 8)
    assert 0.9 * pure.worst < pairs.worst <= pure.worst * (1 + 1e-9)


def test_two_exchangeable_states_have_one_curve():
    rng = np.random.default_rng(4)
    for _ in range(5):
        p, q, s = (*rng.uniform(0.0, 1.0, 2), rng.uniform(3.0, 20.0))
        adversary = Adversary(*(TransitionMatrix([[x, 1 - x], [1 - x, x]]) for x in (p, q)))
        pairs, one = both_kinds(adversary, [GaussianNoise(s, sensitivity=1.0)] * 8, 1e-5, 1e-3)
        assert pairs.temporal == pytest.approx(one.temporal, abs=1e-4)


def least_epsilon(rows, delta):
    """The epsilon at a delta of what is told about two values, by halving."""
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        told = max(divergence(rows[i], rows[1 - i], math.exp(middle)) for i in (0, 1))
        low, high = (low, middle) if told <= delta else (middle, high)
    return high


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ([[0.99, 0.01], [0.5, 0.5]], [[1.0, 0.0], [0.5, 0.5]]),
        ([[0.999, 0.001], [0.3, 0.7]], [[0.9, 0.1], [0.1, 0.9]]),
    ],
)
def test_two_states_that_differ_have_a_curve_for_each_pair_by_default(table, rows):
    n_steps, delta = 6, 1e-3
    adversary, releases = Adversary(*[TransitionMatrix(rows)] * 2), [OutputTable(table)] * n_steps
    series = temporal_leakage(adversary, releases, accounting=ApproximateDP(delta))
    assert series.accounting.pairwise is True
    one = temporal_leakage(adversary, releases, accounting=ApproximateDP(delta, pairwise=False))
    truth = [
        least_epsilon(told_by_all(np.array(table), [np.array(rows)] * 5, [np.array(rows)] * 5, step, n_steps), delta)
        for step in range(n_steps)
    ]
    assert (truth <= series.temporal * (1.0 + 1e-9)).all()
    assert (series.temporal <= one.temporal).all()
    assert series.worst - max(truth) < 0.5 * (one.worst - max(truth))


@pytest.mark.long
@pytest.mark.parametrize(("n_states", "n_steps", "by_pairs"), [(3, 12, True), (12, 12, True), (12, 480, False)])
def test_default_counts_how_long_curves_become_and_how_late_they_settle(n_states, n_steps, by_pairs):
    """The second chain leaks 6 nats, hence curves of 100 times as many points as that of one release; they settle late."""
    matrix = TransitionMatrix(np.full((n_states, n_states), 0.03 / n_states) + 0.97 * np.eye(n_states))
    adversary = Adversary(matrix, matrix)
    assert ApproximateDP(1e-6).specialised([adversary], [0.1] * n_steps).pairwise is by_pairs


@pytest.mark.long
def test_values_of_the_theory_chapter(sample):
    """The common curve gives 0.643; the release, simulated with 60,000 draws, leaks 0.465."""
    adversary, noise = Adversary(backward=sample[0]), GaussianNoise(10.0, sensitivity=math.sqrt(2.0))
    series = temporal_leakage(adversary, [noise] * 25, accounting=ApproximateDP(1e-3))
    assert series.accounting.pairwise is True and series.evidence.pairs is not None
    assert 0.465 <= series.worst <= 0.56
    assert temporal_leakage(adversary, [noise] * 25, accounting=ApproximateDP(1e-3, pairwise=False)).worst > 0.64
    limits = leakage_supremum(adversary, noise, accounting=ApproximateDP(1e-3))
    assert limits.accounting.pairwise is True and series.worst <= limits.backward <= series.worst * 1.01


@pytest.mark.long
def test_further_steps_do_not_raise_the_supremum(sample):
    adversary, noise = Adversary(*sample), DiscreteGaussianNoise(12.0)
    by_pairs = ApproximateDP(1e-2, pairwise=True, grid=0.003)
    limits = leakage_supremum(adversary, noise, accounting=by_pairs)
    pairs = PairCurves(SingleCurve(0.003, 1e-2, up=True), 5)
    own = pairs.own((noise,))
    for matrix, side in zip(sample, SIDES, strict=True):
        _, (certificate,) = limits.accounting.supremum_arrivals(adversary, side, ((noise,),)).pairs
        after = pairs.composed(pairs.through(matrix, certificate), own)
        assert grid.raised_by(after, certificate) <= 0.0
        assert grid.raised_by(own * (1.0 - np.eye(5))[..., None], certificate) <= 0.0
    one = leakage_supremum(adversary, noise, accounting=ApproximateDP(1e-2, pairwise=False, grid=0.003))
    assert limits.temporal < one.temporal
    for n_steps in (3, 20):
        series = temporal_leakage(adversary, [noise] * n_steps, accounting=by_pairs)
        assert series.worst <= limits.temporal


@pytest.mark.long
def test_noise_that_varies_windows_and_evidence(sample):
    adversary = Adversary(*sample)
    noise = [GaussianNoise(s, sensitivity=math.sqrt(2.0)) for s in (8.0, 20.0, 10.0)] + [None]
    pairs, one = both_kinds(adversary, noise, 1e-4)
    for start, stop in ((0, 1), (0, 2), (0, 4), (1, 3)):
        assert max(pairs.temporal[start:stop]) <= pairs.window(start, stop) <= one.window(start, stop)
    assert pairs.user_level == one.user_level
    evidence = pairs.evidence
    assert evidence.metric(1).max() == pytest.approx(pairs.temporal[1])
    value, other = evidence.worst_pair(1)
    worst = curve_about(evidence, 1, *map(evidence.states.index, (value, other)))
    assert worst.epsilon(1e-4) == pytest.approx(pairs.temporal[1], rel=1e-6)
    assert pairs.worst_pair() == evidence.worst_pair(pairs.worst_time)
    copy = pickle.loads(pickle.dumps(pairs))
    assert copy == pairs and copy.window(0, 3) == pairs.window(0, 3)
    assert (copy.evidence.metric(3) == evidence.metric(3)).all()


def test_invalid_arguments_are_refused(sample):
    adversary = Adversary(*sample)
    noise = [GaussianNoise(10.0, sensitivity=1.0)] * 2
    with pytest.raises(InputError, match="1e-09 or more"):
        temporal_leakage(adversary, noise, accounting=ApproximateDP(1e-12, pairwise=True))
    with pytest.raises(InputError, match="an accountant counts by one privacy curve"):
        TemporalAccountant(adversary, accounting=ApproximateDP(1e-3, pairwise=True)).spend(noise[0])
    with pytest.raises(InputError, match="one privacy curve for each pair of states"):
        temporal_leakage(adversary, noise, accounting=ApproximateDP(1e-12)).evidence.metric(0)
    assert temporal_leakage(adversary, noise, accounting=ApproximateDP(1e-12)).accounting.pairwise is False


def test_grid_covers_the_infinite_loss_of_a_guarantee():
    """An infinite loss is spread over finite ones by the correlation: the grid reaches that far."""
    rows = TransitionMatrix([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    pairs, one = both_kinds(Adversary(rows), [PrivacyGuarantee(0.1, 1e-4)] * 4, 5e-4, 0.01)
    assert (pairs.backward <= one.backward).all() and pairs.backward[-1] > pairs.epsilons[-1]


def test_interval_matrices_use_a_common_curve_by_default():
    known = TransitionMatrix([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    within = Adversary(around(known, width=0.05))
    assert goes_by_pairs(Adversary(known)) and not goes_by_pairs(within)
    noise = [GaussianNoise(10.0, sensitivity=1.0)] * 2
    found = temporal_leakage(within, noise, accounting=ApproximateDP(1e-3))
    assert found.accounting.pairwise is False
    assert found.worst >= temporal_leakage(Adversary(known), noise, accounting=ApproximateDP(1e-3)).worst
