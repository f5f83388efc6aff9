"""The search for a profile's vertices: no pair of rows is lost, whatever the matrix and its storage."""

from __future__ import annotations

import math
import multiprocessing
import threading

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given, settings

from making import random_correlation, strongest_correlation
from matrices import large_matrices
from oracles import extended_loss
from temporaldp import TransitionMatrix
from temporaldp.core.correlation.transition import compute_missing_profiles
from temporaldp.core.kernels import search

EXACT = 1e-13
LEVELS = (1e-9, 0.01, 0.3, 1.0, 3.0, 10.0, 40.0, 200.0, 500.0, 650.0)


@pytest.mark.long
@settings(max_examples=20)
@given(large_matrices())
def test_profile_equals_the_loss_over_all_pairs(matrix):
    profile = matrix.leakage_profile()
    for alpha in LEVELS:
        expected = extended_loss(matrix.dense(), alpha)
        assert profile.loss(alpha) == pytest.approx(expected, rel=EXACT, abs=0)


@settings(max_examples=20)
@given(large_matrices())
def test_dense_and_sparse_storage_give_the_same_profile(matrix):
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


def test_matrices_that_are_searched_together_have_the_profiles_of_each_alone():
    rng = np.random.default_rng(0)
    sizes = [3, 7, 3, 30, 7, 2, 3, 7]
    rows = [rng.dirichlet(np.ones(n), n) for n in sizes]
    rows += [np.eye(3), np.full((3, 3), 1.0 / 3.0), rng.dirichlet(np.full(7, 0.05), 7)]
    together = [TransitionMatrix(each) for each in rows]
    compute_missing_profiles([*together, None, together[0]])
    for each, matrix in zip(rows, together, strict=True):
        alone = TransitionMatrix(each).leakage_profile()
        assert matrix.leakage_profile() == alone
        assert matrix.leakage_profile().witnesses == alone.witnesses


def test_witnesses_agree_with_their_vertices():
    matrix = random_correlation(40, rng=3)
    profile = matrix.leakage_profile()
    for (d, q), witness in zip(profile.vertices, profile.witnesses, strict=True):
        value, other = int(witness.state), int(witness.other_state)
        columns = [int(name) for name in witness.evidence]
        assert math.fsum(matrix.dense()[value, columns]) == q == witness.probability
        assert math.fsum(matrix.dense()[other, columns]) == d == witness.other_probability
    assert profile.witnesses[1:3] == (profile.witnesses[1], profile.witnesses[2])
    assert profile.witnesses[-1] == profile.witnesses[len(profile) - 1]


def test_disjoint_rows_are_found_at_once():
    n = 3000
    ring = sparse.csr_array(
        (np.full(2 * n, 0.5), (np.arange(2 * n) // 2, (np.arange(2 * n) // 2 + np.arange(2 * n) % 2) % n))
    )
    profile = TransitionMatrix(ring).leakage_profile()
    assert profile.vertices.tolist() == [[0.0, 1.0]]
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


@pytest.mark.slow
def test_twenty_thousand_states_fit_in_memory(rng):
    n = 20_000
    hub = 0.1 + 0.5 * rng.random(n)
    matrix = sparse_with_hub(n, rng, hub=hub)
    d, q = TransitionMatrix(matrix).leakage_profile().vertices[0]
    # Rows without a common column but the hub: S = all but the hub, or all of it where the hub is rarer in the other row.
    assert (d, q) == (0.0, pytest.approx(1.0 - hub.min(), rel=1e-12))


def test_equal_rows_have_an_empty_profile():
    for n in (3, 40):
        matrix = TransitionMatrix(np.full((n, n), 1.0 / n))
        assert len(matrix.leakage_profile()) == 0
        assert matrix.leakage_profile().loss(5.0) == 0.0


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
def test_forked_process_can_continue():
    rows = random_correlation(200, rng=1).dense()
    expected = TransitionMatrix(rows).leakage_profile().vertices.tolist()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_profile_in_a_child, args=(rows, queue))
    child.start()
    assert queue.get(timeout=120) == expected
    child.join()
