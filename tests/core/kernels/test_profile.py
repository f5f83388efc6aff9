"""The leakage profile against exact arithmetic, a linear-programming solver and other people's numbers."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import example, given
from hypothesis import strategies as st

from making import random_correlation, smoothed_correlation, strongest_correlation
from matrices import alphas, budgets, matrices
from oracles import brute_force_loss, exact_loss, extended_loss, highs_loss
from temporaldp import BudgetError, InputError, TransitionMatrix
from temporaldp.core.kernels import LeakageProfile

# Four roundings of a sum, a division, an exponential and a logarithm: issue 3's promise.
EXACT = 1e-13


def test_reference_values_of_other_implementations(reference):
    for case in reference["cases"]:
        profile = _reference_matrix(case).leakage_profile()
        for alpha, expected in case.get("loss", {}).items():
            assert profile.loss(float(alpha)) == pytest.approx(expected, rel=1e-12)
        for epsilon, expected in case.get("supremum", {}).items():
            assert profile.supremum(epsilon=float(epsilon)) == pytest.approx(float(expected), rel=1e-12)


def _reference_matrix(case):
    if "backward" in case:
        return TransitionMatrix(case["backward"])
    if case["name"] == "smoothed_strongest":
        return smoothed_correlation(strongest_correlation(case["n"]), s=case["s"])
    return random_correlation(case["n"], rng=0)


@given(matrices(), alphas)
def test_loss_is_exact(matrix, alpha):
    assert matrix.leakage_profile().loss(alpha) == pytest.approx(exact_loss(matrix.dense(), alpha), rel=EXACT, abs=0)


@given(matrices(max_n=4), st.sampled_from([599.0, 601.0, 720.0, 800.0]))
def test_loss_is_exact_where_the_exponential_overflows(matrix, alpha):
    assert matrix.leakage_profile().loss(alpha) == pytest.approx(exact_loss(matrix.dense(), alpha), rel=EXACT, abs=0)


@given(matrices(max_n=5, kinds=("integers", "zeros")), st.floats(0.01, 8.0))
def test_loss_is_the_maximum_over_every_subset(matrix, alpha):
    assert matrix.leakage_profile().loss(alpha) == pytest.approx(
        brute_force_loss(matrix.dense(), alpha), rel=1e-11, abs=1e-14
    )


@pytest.mark.parametrize("n", [2, 3, 5, 12])
@pytest.mark.parametrize("alpha", [0.05, 1.0, 4.0, 10.0])
def test_loss_agrees_with_a_linear_fractional_program(n, alpha):
    matrix = random_correlation(n, rng=n)
    assert matrix.leakage_profile().loss(alpha) == pytest.approx(highs_loss(matrix.dense(), alpha), rel=1e-7)


@pytest.mark.parametrize("alpha", [0.0, 1e-300, 1e-12, 100.0, 720.0, 5000.0, 1e300])
def test_loss_of_known_matrices_at_every_scale(alpha):
    strongest = strongest_correlation(4).leakage_profile()
    assert strongest.loss(alpha) == pytest.approx(alpha, rel=1e-15)
    assert TransitionMatrix([[0.3, 0.7], [0.3, 0.7]]).leakage_profile().loss(alpha) == 0.0
    half = TransitionMatrix([[0.5, 0.5], [0.0, 1.0]]).leakage_profile()
    expected = math.log1p(0.5 * math.expm1(alpha)) if alpha < 700 else alpha - math.log(2)
    assert half.loss(alpha) == pytest.approx(expected, rel=1e-15)
    two = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]).leakage_profile()
    assert two.loss(alpha) <= math.log(4.0) * (1 + 1e-15)
    if alpha > 50:
        assert two.loss(alpha) == pytest.approx(math.log(4.0), rel=1e-15)


def test_loss_of_disjoint_rows_at_infinity():
    assert strongest_correlation(2).leakage_profile().loss(math.inf) == math.inf
    assert TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]).leakage_profile().loss(math.inf) == pytest.approx(math.log(4))


def test_loss_keeps_the_shape_of_its_argument():
    profile = random_correlation(4, rng=1).leakage_profile()
    grid = np.array([[0.1, 1.0, 2.0], [3.0, 4.0, 5.0]])
    assert profile.loss(grid).shape == (2, 3)
    assert isinstance(profile.loss(1.0), float)
    assert [profile.loss(float(a)) for a in grid.ravel()] == profile.loss(grid).ravel().tolist()


@given(matrices(), st.lists(st.floats(0, 50), min_size=2, max_size=20))
def test_loss_increases_and_stays_below_its_argument(matrix, levels):
    levels = np.sort(levels)
    losses = matrix.leakage_profile().loss(levels)
    assert (losses <= levels).all()
    assert (np.diff(losses) >= -1e-15 * np.maximum(losses[1:], 1e-300)).all()
    assert (np.diff(losses) <= np.diff(levels) + 1e-13 * levels[1:]).all()


@given(matrices(), alphas, st.randoms(use_true_random=False))
def test_relabelling_states_changes_nothing(matrix, alpha, random):
    order = list(range(matrix.n_states))
    random.shuffle(order)
    other = TransitionMatrix(matrix.dense()[np.ix_(order, order)])
    assert other.leakage_profile().loss(alpha) == pytest.approx(matrix.leakage_profile().loss(alpha), rel=EXACT, abs=0)


@given(matrices(), st.floats(1.0, 50.0))
def test_contraction_is_the_largest_hockey_stick_divergence(matrix, gamma):
    rows = matrix.dense()
    expected = max(np.maximum(q - gamma * d, 0.0).sum() for q, d in itertools.permutations(rows, 2))
    assert matrix.leakage_profile().contraction(gamma) == pytest.approx(expected, rel=1e-12, abs=2e-15)


def test_contraction_starts_at_dobrushin_and_ends_at_disjoint_mass():
    matrix = TransitionMatrix([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.2, 0.5, 0.3]])
    assert matrix.leakage_profile().contraction([1.0, 1e9, math.inf]).tolist() == [0.5, 0.5, 0.5]


@pytest.mark.long
@given(matrices(), budgets)
def test_supremum_is_a_fixed_point_from_above(matrix, epsilon):
    profile = matrix.leakage_profile()
    limit = profile.supremum(epsilon=epsilon)
    level = epsilon
    for _ in range(2000):
        level = profile.loss(level) + epsilon
    assert level <= limit * (1 + 1e-13)
    if math.isfinite(limit):
        assert profile.loss(limit) + epsilon == pytest.approx(limit, rel=1e-9)
    else:
        d, q = profile.vertices[0]
        assert d == 0.0
        assert epsilon >= -math.log(q) * (1 - 1e-12)


def test_supremum_does_not_exist_at_the_boundary_that_the_paper_includes():
    profile = TransitionMatrix([[0.8, 0.2], [0.0, 1.0]]).leakage_profile()
    boundary = math.log(1.25)
    assert profile.supremum(epsilon=boundary) == math.inf
    below = profile.supremum(epsilon=boundary * (1 - 1e-9))
    assert 15 < below < math.inf
    level = 0.0
    for _ in range(10_000):
        level = profile.loss(level) + boundary
    assert level > 7  # grows like log t, without bound


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 1.0, 50.0, 800.0, 5000.0])
def test_supremum_at_every_scale(epsilon):
    d, q = 0.2, 0.8
    limit = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]).leakage_profile().supremum(epsilon=epsilon)
    if epsilon < 1e-6:  # L(a) = (q - d) a at first
        assert limit == pytest.approx(epsilon / (1 - (q - d)), rel=1e-6)
    if epsilon > 40:
        assert limit == pytest.approx(epsilon + math.log(q / d), rel=1e-15)
    assert TransitionMatrix([[0.3, 0.7], [0.3, 0.7]]).leakage_profile().supremum(epsilon=epsilon) == epsilon


@pytest.mark.long
@given(matrices(), st.floats(1e-3, 30.0))
def test_sustainable_budget_is_the_largest_that_satisfies_the_level(matrix, alpha):
    profile = matrix.leakage_profile()
    budget = profile.sustainable_budget(alpha=alpha)
    assert profile.loss(alpha) + budget <= alpha
    assert budget == pytest.approx(alpha - exact_loss(matrix.dense(), alpha), rel=1e-9, abs=1e-14 * alpha)


def test_sustainable_budget_keeps_its_digits_under_strong_correlation():
    # a - L(a) = log[(1 + d k) / (1 + q k)] + a with q = (1 + s) / (1 + 2 s): to first order in s, s (e^a - e^-a).
    s, alpha = 1e-12, 1.0
    profile = TransitionMatrix([[1 - s, s], [s, 1 - s]]).leakage_profile()
    assert profile.sustainable_budget(alpha=alpha) == pytest.approx(s * 2 * math.sinh(alpha), rel=1e-4)
    assert strongest_correlation(3).leakage_profile().sustainable_budget(alpha=2.0) == 0.0


ALMOST_TIED = TransitionMatrix(
    [[1 - 0.05166922710100502, 0.05166922710100502], [1 - 7.78104081632653e-12, 7.78104081632653e-12]]
)
"""Two sets of values of one pair with the same q - d but for eight units in the last place: a merge keeps one of them."""

NEARLY_EQUAL = TransitionMatrix([[0.667, 0.333], [0.664, 0.336]])


@given(matrices(), matrices(), matrices())
@example(ALMOST_TIED, NEARLY_EQUAL, NEARLY_EQUAL)
@example(NEARLY_EQUAL, ALMOST_TIED, NEARLY_EQUAL)
def test_merging_is_the_pointwise_maximum_and_commutes(one, two, three):
    first, second, third = (m.leakage_profile() for m in (one, two, three))
    levels = np.geomspace(1e-6, 60, 25)
    merged = first.merge(second)
    assert merged.loss(levels) == pytest.approx(np.maximum(first.loss(levels), second.loss(levels)), rel=EXACT, abs=0)
    assert merged.loss(levels).tolist() == second.merge(first).loss(levels).tolist()
    left, right = first.merge(second).merge(third), first.merge(second.merge(third))
    assert left.loss(levels) == pytest.approx(right.loss(levels), rel=EXACT, abs=0)
    raised = replace(merged, excess=merged.excess * (1 + EXACT))  # vertices that tie are dropped, dominance is strict
    assert raised.dominates(first)
    assert raised.dominates(second)


@given(matrices(), matrices())
def test_dominating_means_leaking_at_least_as_much_everywhere(one, two):
    first, second = one.leakage_profile(), two.leakage_profile()
    assert first.dominates(first)
    levels = np.geomspace(1e-6, 60, 40)
    if first.dominates(second):
        assert (first.loss(levels) >= second.loss(levels) * (1 - EXACT)).all()
    elif second.dominates(first):
        assert (second.loss(levels) >= first.loss(levels) * (1 - EXACT)).all()


def test_dominance_is_not_decided_by_the_dobrushin_coefficient():
    wide = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]).leakage_profile()
    steep = TransitionMatrix([[0.1, 0.9], [0.0, 1.0]]).leakage_profile()
    assert not wide.dominates(steep)  # at large alpha the vertex with d = 0 leaks without bound
    assert not steep.dominates(wide)
    assert wide.dominates(TransitionMatrix([[0.7, 0.3], [0.3, 0.7]]).leakage_profile())


def test_identical_rows_leak_nothing():
    profile = TransitionMatrix([[0.25, 0.75], [0.25, 0.75]]).leakage_profile()
    assert len(profile) == 0
    assert profile.vertices.shape == (0, 2)
    assert profile.witness(1.0) is None
    assert profile.sustainable_budget(alpha=3.0) == 3.0
    assert profile.contraction([1.0, 2.0]).tolist() == [0.0, 0.0]
    assert profile.merge(profile) == profile


def test_smoothed_permutation_has_one_vertex():
    profile = smoothed_correlation(strongest_correlation(50), s=0.005).leakage_profile()
    assert profile.vertices == pytest.approx(np.array([[0.005 / 1.25, 1.005 / 1.25]]), rel=1e-14)


def test_tied_ratios_make_one_vertex():
    # 0.4 / 0.2 = 0.2 / 0.1 = 2 in exact arithmetic; in the other direction 0.7 / 0.4 has the same excess, less steeply.
    profile = TransitionMatrix([[0.4, 0.2, 0.4], [0.2, 0.1, 0.7], [0.4, 0.2, 0.4]]).leakage_profile()
    assert profile.vertices == pytest.approx(np.array([[0.3, 0.6]]), rel=1e-14)
    assert profile.witness(1.0).evidence == ("0", "1")


def test_witness_names_the_pair_and_the_set():
    matrix = TransitionMatrix([[0.5, 0.4, 0.1], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]], states=["home", "work", "shop"])
    witness = matrix.leakage_profile().witness(0.5)
    assert {witness.state, witness.other_state} == {"home", "work"}
    rows = dict(zip(matrix.states, matrix.dense(), strict=True))
    members = [matrix.states.index(state) for state in witness.evidence]
    assert witness.probability == pytest.approx(rows[witness.state][members].sum())
    assert witness.other_probability == pytest.approx(rows[witness.other_state][members].sum())


@given(matrices(), alphas)
def test_witness_attains_the_loss(matrix, alpha):
    profile = matrix.leakage_profile()
    witness = profile.witness(alpha)
    if witness is None:
        assert profile.loss(alpha) == 0.0
        return
    decay = math.exp(-alpha)
    q, d = witness.probability, witness.other_probability
    direct = math.log(q + (1 - q) * decay) - math.log(d + (1 - d) * decay) if d + decay > 0 else math.inf
    assert profile.loss(alpha) == pytest.approx(direct, rel=1e-9, abs=1e-13)


@given(matrices(kinds=("zeros", "integers", "near")), alphas)
def test_sparse_and_dense_give_the_same_profile(matrix, alpha):
    other = TransitionMatrix(sparse.coo_array(matrix.dense()))
    assert other.is_sparse
    assert other.leakage_profile() == matrix.leakage_profile()
    assert other.leakage_profile().witness(alpha) == matrix.leakage_profile().witness(alpha)


def test_profile_of_nearly_identical_rows_keeps_its_digits():
    matrix = TransitionMatrix([[0.5 + 2**-50, 0.5 - 2**-50], [0.5, 0.5]])
    assert matrix.leakage_profile().loss(1e-6) == pytest.approx(1e-6 * 2**-50, rel=1e-5)


def test_profile_is_computed_once_and_cannot_change():
    matrix = random_correlation(5, rng=2)
    profile = matrix.leakage_profile()
    assert matrix.leakage_profile() is profile
    with pytest.raises(ValueError, match="read-only"):
        profile.vertices[0, 0] = 1.0


@pytest.mark.slow
def test_profile_of_a_large_sparse_matrix_fits_in_memory():
    n = 2_000
    hub = sparse.coo_array((np.full(n, 0.1), (np.arange(n), np.zeros(n, dtype=int))), shape=(n, n))
    shifted = sparse.coo_array((np.full(n, 0.9), (np.arange(n), np.arange(n))), shape=(n, n))
    profile = TransitionMatrix((hub + shifted).tocsr()).leakage_profile()
    # Rows share the hub only, so that their own column tells them apart with probability 0.9.
    assert profile.vertices == pytest.approx(np.array([[0.0, 0.9]]), rel=1e-14)


@pytest.mark.parametrize("value", [-1.0, math.nan, -1e-300])
def test_loss_refuses_invalid_leakage(value):
    with pytest.raises(BudgetError, match="alpha >= 0"):
        random_correlation(3, rng=0).leakage_profile().loss(value)


def test_invalid_arguments_are_refused_by_name():
    profile = random_correlation(3, rng=0).leakage_profile()
    with pytest.raises(BudgetError, match="gamma >= 1"):
        profile.contraction(0.5)
    with pytest.raises(BudgetError, match="epsilon to be a finite number >= 1e-100"):
        profile.supremum(epsilon=0.0)
    with pytest.raises(BudgetError, match="alpha to be a finite number >= 1e-100"):
        profile.sustainable_budget(alpha=math.inf)
    with pytest.raises(BudgetError, match="number or an array"):
        profile.loss("much")
    with pytest.raises(InputError, match="m vertices"):
        LeakageProfile(np.zeros((2, 2)), np.zeros(1), np.zeros(1), ())


def test_supremum_does_not_underflow_for_badly_scaled_rows():
    # Nearly (0, q) with q = 1e-200 against d = 1e-280: the root is e + log(q / d) for e beyond -log q.
    profile = TransitionMatrix([[1e-200, 1.0], [1e-280, 1.0]]).leakage_profile()
    assert profile.supremum(epsilon=800.0) == pytest.approx(800.0 + 80 * math.log(10), rel=1e-13)


@given(st.floats(-30, -0.01), st.floats(-40, -0.5))
def test_supremum_near_its_limit_of_existence_is_not_too_low(log_q, log_distance):
    # d = 0: exp(a) - 1 = (exp(e) - 1) / (1 - q exp(e)), in 60-digit arithmetic.
    q = math.exp(log_q)
    epsilon = -math.log(q) * (1 - math.exp(log_distance))
    found = TransitionMatrix([[q, 1 - q], [0.0, 1.0]]).leakage_profile().supremum(epsilon=epsilon)
    with localcontext() as context:
        context.prec = 60
        grow = Decimal(epsilon).exp() - 1
        left = 1 - Decimal(q) * (grow + 1)
        expected = (1 + grow / left).ln() if left > 0 else Decimal("inf")
    assert Decimal(found) >= expected * (1 - Decimal("1e-16"))


@pytest.mark.parametrize(("q", "alpha"), [(0.9999, 650.0), (1 - 1e-12, 601.0), (0.8, 1e15), (0.8, 650.0), (0.5, 599.0)])
def test_sustainable_budget_at_large_levels_satisfies_the_level(q, alpha):
    # d = 0: a - L(a) = -log(q + (1 - q) exp(-a)), which is -log q there.
    profile = TransitionMatrix([[q, 1 - q], [0.0, 1.0]]).leakage_profile()
    budget = profile.sustainable_budget(alpha=alpha)
    assert budget <= -math.log(q)
    assert budget == pytest.approx(-math.log(q), rel=1e-13)
    assert profile.supremum(epsilon=budget * (1 - 1e-12)) < math.inf


def test_the_complement_of_a_vertex_keeps_its_digits():
    c, d = 1.0e-14, 2.3e-22
    matrix = TransitionMatrix([[0.3 * (1 - c), 0.7 * (1 - c), c], [d, 0.0, 1 - d], [0.1, 0.1, 0.8]])
    budget = matrix.leakage_profile().sustainable_budget(alpha=11.0235)
    outside = matrix.dense()[0, 2]
    expected = math.log1p(outside * -math.expm1(-11.0235) + d * math.expm1(11.0235))
    assert budget <= expected * (1 + 1e-14)
    assert budget == pytest.approx(expected, rel=1e-3)  # the smaller of two sums that differ by the row's own rounding


def test_rows_that_sum_to_more_than_one_by_rounding_leave_no_holes():
    profile = TransitionMatrix([[1 + 9e-13, 0.0], [1 + 5e-13, 0.0]]).leakage_profile()
    assert 0.0 <= profile.loss(601.0) < 1e-12
    assert np.isfinite(profile.loss(np.geomspace(1e-3, 1e6, 50))).all()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["uniform", "sparse", "near"])
@pytest.mark.parametrize("alpha", [0.01, 1.0, 30.0])
def test_loss_keeps_its_digits_at_larger_sizes(kind, alpha):
    rng = np.random.default_rng(7)
    n = 120
    rows = {
        "uniform": lambda: rng.random((n, n)),
        "sparse": lambda: rng.random((n, n)) ** 40,
        "near": lambda: (rng.random(n) + 0.1) * (1 + 1e-9 * rng.standard_normal((n, n))),
    }[kind]()
    matrix = TransitionMatrix(rows / rows.sum(axis=1, keepdims=True))
    found = matrix.leakage_profile().loss(alpha)
    assert found == pytest.approx(extended_loss(matrix.dense(), alpha), rel=EXACT, abs=0)
