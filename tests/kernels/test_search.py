"""The search for a profile's vertices: no pair of rows is lost, whatever the matrix, its storage and the number of threads."""

from __future__ import annotations

import itertools
import math
import multiprocessing
import threading
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import temporaldp
from matrices import alphas, large_matrices, matrices
from oracles import exact_loss, extended_loss
from temporaldp import (
    BudgetError,
    InputError,
    MatrixError,
    StateError,
    TransitionMatrix,
    leakage_profiles,
    loss,
    random_correlation,
    smoothed_correlation,
    strongest_correlation,
)
from temporaldp.kernels import search
from temporaldp.kernels.screening import open_all, raised_divergences, tabulate, workspace
from threads import using_threads

EXACT = 1e-13
LEVELS = (1e-9, 0.01, 0.3, 1.0, 3.0, 10.0, 40.0, 200.0, 500.0, 650.0)


@pytest.mark.long
@settings(max_examples=20)
@given(large_matrices())
def test_no_pair_is_lost_at_any_level(matrix):
    profile = matrix.leakage_profile()
    for alpha in LEVELS:
        expected = extended_loss(matrix.dense(), alpha)
        assert profile.loss(alpha) == pytest.approx(expected, rel=EXACT, abs=0)
        assert loss(matrix, alpha=alpha) == pytest.approx(expected, rel=EXACT, abs=0)


@given(matrices(), alphas)
def test_one_loss_is_exact(matrix, alpha):
    assert loss(matrix, alpha=alpha) == pytest.approx(exact_loss(matrix.dense(), alpha), rel=EXACT, abs=0)


@settings(max_examples=20)
@given(large_matrices())
def test_both_forms_of_storage_find_the_same(matrix):
    dense, other = (TransitionMatrix(form(matrix.dense())).leakage_profile() for form in (np.array, sparse.csr_array))
    assert len(other) == pytest.approx(len(dense), abs=2)  # ties in their last digits may be kept or not
    assert other.loss(LEVELS) == pytest.approx(dense.loss(LEVELS), rel=2e-14, abs=0)


@pytest.mark.parametrize("n", [30, 75, 150])
def test_the_screen_loses_no_vertex_that_all_pairs_have(n, monkeypatch):
    rows = random_correlation(n, rng=n).dense()
    screened = TransitionMatrix(rows).leakage_profile()
    monkeypatch.setattr(search, "UNSCREENED_STATES", n)
    unscreened = TransitionMatrix(rows).leakage_profile()
    assert screened == unscreened
    assert list(screened.witnesses) == list(unscreened.witnesses)


def test_a_witness_is_what_its_vertex_says():
    matrix = random_correlation(40, rng=3)
    profile = matrix.leakage_profile()
    for (d, q), witness in zip(profile.vertices, profile.witnesses, strict=True):
        value, other = int(witness.value), int(witness.other_value)
        columns = [int(name) for name in witness.evidence]
        assert math.fsum(matrix.dense()[value, columns]) == q == witness.probability
        assert math.fsum(matrix.dense()[other, columns]) == d == witness.other_probability
    assert profile.witnesses[1:3] == (profile.witnesses[1], profile.witnesses[2])
    assert profile.witnesses[-1] == profile.witnesses[len(profile) - 1]


@pytest.mark.parametrize("n", [26, 61, pytest.param(130, marks=pytest.mark.slow)])
def test_the_screen_rounds_to_the_safe_side_and_not_far(n, rng):
    wide = 10.0 ** rng.uniform(-45, 0, size=(n, n))
    near = (rng.random(n) + 0.1) * (1.0 + 1e-10 * rng.standard_normal((n, n)))
    for rows in (rng.random((n, n)), wide, near, rng.random((n, n)) * (rng.random((n, n)) < 0.3) + np.eye(n)):
        dense = rows / rows.sum(axis=1, keepdims=True)
        table = tabulate(dense)
        work = workspace(table)
        band = len(work[2])
        open_all(table, 0, work)
        for slope in (0.0, 0.4, 1.5, 8.0, 300.0, 1e6, 1e30):
            raised = np.zeros((band, len(table[0])), dtype=np.float32)
            raised_divergences(table, 0, slope, work, raised)
            for i, j in itertools.product(range(0, n, 1 + n // 20), range(min(band, n))):
                exact = sum(
                    max(Fraction(q) - Fraction(d) - Fraction(slope) * Fraction(d), Fraction(0))
                    for q, d in zip(dense[i].tolist(), dense[j].tolist(), strict=True)
                )
                exact *= Fraction(float(table[-1]))
                assert Fraction(float(raised[j, i])) >= exact
                assert float(raised[j, i]) <= float(exact) + (n + 40) * 2.0**-23 * float(table[4].sum()) + 1e-35


def test_disjoint_rows_are_found_at_once():
    n = 3000
    ring = sparse.csr_array(
        (np.full(2 * n, 0.5), (np.arange(2 * n) // 2, (np.arange(2 * n) // 2 + np.arange(2 * n) % 2) % n))
    )
    profile = TransitionMatrix(ring).leakage_profile()
    assert profile.vertices.tolist() == [[0.0, 1.0]]
    assert loss(TransitionMatrix(ring), alpha=7.0) == 7.0
    assert strongest_correlation(30, rng=1).leakage_profile().vertices.tolist() == [[0.0, 1.0]]


def sparse_with_hub(n, rng, *, hub):
    """Ten entries a row and a column that every row has."""
    columns = np.stack([rng.choice(n - 1, 10, replace=False) + 1 for _ in range(n)])
    weights = rng.random((n, 10)) + 0.05
    weights *= (1.0 - hub)[:, None] / weights.sum(axis=1, keepdims=True)
    data = np.concatenate((hub[:, None], weights), axis=1)
    data /= data.sum(axis=1, keepdims=True)
    at = np.concatenate((np.zeros((n, 1), dtype=int), columns), axis=1)
    return sparse.csr_array((data.ravel(), (np.repeat(np.arange(n), 11), at.ravel())), shape=(n, n))


@pytest.mark.slow
@pytest.mark.parametrize("constant", [True, False])
def test_sparse_matrices_are_searched_by_their_supports(constant, rng):
    n = 120
    matrix = sparse_with_hub(n, rng, hub=np.full(n, 0.2) if constant else 0.1 + 0.5 * rng.random(n))
    profile = TransitionMatrix(matrix).leakage_profile()
    for alpha in LEVELS[:7]:
        expected = extended_loss(matrix.toarray(), alpha)
        assert profile.loss(alpha) == pytest.approx(expected, rel=EXACT)
        assert loss(TransitionMatrix(matrix), alpha=alpha) == pytest.approx(expected, rel=EXACT)


@pytest.mark.slow
def test_twenty_thousand_states_fit_in_memory(rng):
    n = 20_000
    hub = 0.1 + 0.5 * rng.random(n)
    matrix = sparse_with_hub(n, rng, hub=hub)
    d, q = TransitionMatrix(matrix).leakage_profile().vertices[0]
    # Rows without a common column but the hub: S = all but the hub, or all of it where the hub is rarer in the other row.
    assert (d, q) == (0.0, pytest.approx(1.0 - hub.min(), rel=1e-12))


@settings(max_examples=15)
@given(large_matrices(), st.sampled_from([1e-6, 1e-3, 0.02, 0.3, 1.0]))
def test_a_tolerance_gives_a_bound_from_above_and_no_looser(matrix, tolerance):
    exact, bound = matrix.leakage_profile(), matrix.leakage_profile(tolerance=tolerance)
    assert bound.tolerance == pytest.approx(tolerance) or bound is exact  # as few vertices as that already
    assert len(bound) <= len(exact)
    for alpha in LEVELS:
        low, high = exact.loss(alpha), bound.loss(alpha)
        assert low <= high <= min((1 + tolerance) * low, low + math.log1p(tolerance)) * (1 + 1e-12)
        assert bound.sustainable_budget(alpha=alpha) <= exact.sustainable_budget(alpha=alpha) * (1 + 1e-12)
    for epsilon in (0.01, 0.5, 3.0):
        assert bound.supremum(epsilon=epsilon) >= exact.supremum(epsilon=epsilon) * (1 - 1e-12)
    assert (bound.vertices[:, 0] == 0.0).any() == (exact.vertices[:, 0] == 0.0).any()


def test_a_tolerance_saves_vertices():
    matrix = random_correlation(150, rng=0)
    sizes = [len(matrix.leakage_profile(tolerance=tolerance)) for tolerance in (1e-4, 1e-2, 0.5)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0] / 5
    assert "at most 0.5 too high" in repr(matrix.leakage_profile(tolerance=0.5))
    twice = matrix.leakage_profile(tolerance=0.01).simplified(tolerance=0.1)
    assert twice.tolerance == pytest.approx(1.01 * 1.1 - 1.0)
    assert matrix.leakage_profile().tolerance == 0.0  # the exact one is kept, not a bound


def test_equal_rows_leak_nothing_in_any_way():
    for n in (3, 40):
        matrix = TransitionMatrix(np.full((n, n), 1.0 / n))
        assert len(matrix.leakage_profile()) == len(matrix.leakage_profile(tolerance=0.1)) == 0
        assert loss(matrix, alpha=5.0) == 0.0


def test_threads_change_nothing():
    rows = random_correlation(220, rng=5).dense()
    found = []
    for threads in (1, 2, 5):
        with using_threads(threads):
            found.append((TransitionMatrix(rows).leakage_profile(), loss(TransitionMatrix(rows), alpha=2.0)))
    assert found[0] == found[1] == found[2]


def test_calls_from_several_threads_do_not_disturb_each_other():
    rows = [random_correlation(60, rng=seed).dense() for seed in range(4)]
    expected = [TransitionMatrix(each).leakage_profile() for each in rows]
    found = [None] * 4

    def work(k):
        for _ in range(3):
            found[k] = TransitionMatrix(rows[k]).leakage_profile()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def _profile_in_a_child(rows, queue):
    queue.put(TransitionMatrix(rows).leakage_profile().vertices.tolist())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_can_go_on():
    rows = random_correlation(200, rng=1).dense()
    expected = TransitionMatrix(rows).leakage_profile().vertices.tolist()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_profile_in_a_child, args=(rows, queue))
    child.start()
    assert queue.get(timeout=120) == expected
    child.join()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("TEMPORALDP_THREADS", "0", "expected TEMPORALDP_THREADS to be a whole number from 1, got '0'"),
        ("TEMPORALDP_THREADS", "two", "got 'two'"),
    ],
)
def test_settings_that_mean_nothing_are_refused(monkeypatch, name, value, message):
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=message):
        random_correlation(170, rng=0).leakage_profile()


@pytest.mark.parametrize("alpha", [-1.0, math.nan, "much"])
def test_levels_that_are_none_are_refused(alpha):
    with pytest.raises(BudgetError, match="alpha"):
        loss(random_correlation(3, rng=0), alpha=alpha)


def test_one_loss_at_its_ends():
    matrix = smoothed_correlation(strongest_correlation(5), s=0.1)
    assert loss(matrix, alpha=0.0) == 0.0
    for alpha in (701.0, math.inf):
        assert loss(matrix, alpha=alpha) == matrix.leakage_profile().loss(alpha)
    with pytest.raises(InputError, match="wrap it"):
        loss(matrix.dense(), alpha=1.0)


@pytest.mark.parametrize("tolerance", [-0.1, 1e-7, 1.5, math.nan])
def test_tolerances_that_are_none_are_refused(tolerance):
    with pytest.raises(InputError, match="tolerance"):
        random_correlation(3, rng=0).leakage_profile(tolerance=tolerance)


@pytest.mark.long
@settings(max_examples=30)
@given(st.lists(matrices(4, 4, kinds=("integers", "zeros", "near")), min_size=1, max_size=8))
def test_a_batch_is_its_members(group):
    profiles = leakage_profiles(np.stack([matrix.dense() for matrix in group]), states=["a", "b", "c", "d"])
    merged = profiles[0]
    for matrix, profile in zip(group, profiles, strict=True):
        named = TransitionMatrix(matrix.dense(), ["a", "b", "c", "d"]).leakage_profile()
        assert profile.loss(LEVELS) == pytest.approx(named.loss(LEVELS), rel=2e-14, abs=0)
        for (d, q), witness in zip(profile.vertices, profile.witnesses, strict=True):
            value, other = (matrix.dense()["abcd".index(name)] for name in (witness.value, witness.other_value))
            columns = ["abcd".index(name) for name in witness.evidence]
            assert (math.fsum(value[columns]), math.fsum(other[columns])) == (pytest.approx(q), pytest.approx(d))
        merged = merged.merge(profile)
    assert profiles.merged.loss(LEVELS) == pytest.approx(merged.loss(LEVELS), rel=2e-14, abs=0)
    kept = profiles.undominated
    for k, profile in enumerate(profiles):
        assert k in kept or any(profiles[int(other)].dominates(profile) for other in kept)
    for one, other in itertools.permutations(kept.tolist(), 2):
        assert not profiles[one].dominates(profiles[other]) or profiles[one] == profiles[other]


@pytest.mark.long
def test_a_batch_says_who_is_worst():
    weak, strong = [[0.6, 0.4], [0.4, 0.6]], [[0.9, 0.1], [0.1, 0.9]]
    profiles = leakage_profiles([weak, strong, strong], states=["home", "work"])
    assert profiles.undominated.tolist() == [1]
    assert profiles.merged.witness(1.0).evidence in {("home",), ("work",)}
    assert (len(profiles), profiles[-1], profiles[:2]) == (3, profiles[1], (profiles[0], profiles[1]))
    assert repr(profiles) == "LeakageProfiles(3 matrices of 2 states, 3 vertices)"
    assert leakage_profiles([[[0.5, 0.5], [0.5, 0.5]]]).merged.loss(3.0) == 0.0


def test_a_large_batch_equals_single_profiles(rng):
    stack = rng.random((400, 6, 6)) ** 2
    stack /= stack.sum(axis=2, keepdims=True)
    profiles = leakage_profiles(stack)
    for k in range(0, 400, 37):
        assert profiles[k] == TransitionMatrix(stack[k]).leakage_profile()


@pytest.mark.parametrize(
    ("stack", "error", "message"),
    [
        ([[0.5, 0.5], [0.5, 0.5]], MatrixError, r"shape \(count, n, n\)"),
        (np.zeros((0, 2, 2)), MatrixError, "count >= 1"),
        ([[["a"]]], MatrixError, "array of numbers"),
        ([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.6]]], MatrixError, "matrix 1 of the stack .* row '1'"),
        ([[[1.0, 0.0], [math.nan, 1.0]]], MatrixError, "matrix 0 of the stack .* nan"),
    ],
)
def test_a_bad_batch_is_refused(stack, error, message):
    with pytest.raises(error, match=message):
        leakage_profiles(stack)


def test_a_batch_with_too_few_names_is_refused():
    with pytest.raises(StateError, match="expected 2 state names"):
        leakage_profiles([[[1.0, 0.0], [0.0, 1.0]]], states=["a"])


def test_the_loss_is_a_public_name():
    assert temporaldp.loss is loss
