"""Transition matrices: what is refused, Bayes' rule, stationary distributions."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given

from making import random_correlation
from matrices import matrices
from temporaldp import TransitionMatrix
from temporaldp.base.errors import MatrixError, StateError
from temporaldp.core.correlation import ROW_SUM_TOLERANCE

HALF = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([[0.5, 0.5]], r"square matrix, got shape \(1, 2\)"),
        ([0.5, 0.5], r"square matrix, got shape \(2,\)"),
        ([[1.0]], "at least 2 states, got 1"),
        ([[0.5, 0.5], [1.2, -0.2]], r"got -0.2 in row '1' \(row 1\), column '1'"),
        ([[0.5, math.nan], [0.5, 0.5]], r"got nan in row '0'"),
        ([[0.5, math.inf], [0.5, 0.5]], r"got inf in row '0'"),
        ([[0.5, 0.499999], [0.5, 0.5]], r"within 1e-12, but row '0' \(row 0\) sums to 0\.99999"),
        ([[0.0, 0.0], [0.5, 0.5]], "without observations needs a prior"),
        ([[0.5, 0.5], [0.5]], "square array of numbers"),
        ([[1.0, 1e-310], [0.5, 0.5]], r"0 or at least 1e-290, got 1e-310"),
        ([["a", "b"], ["c", "d"]], "real numbers, got entries of type"),
        ([[0.5 + 1j, 0.5 - 1j], [0.5, 0.5]], "complex"),
    ],
)
def test_invalid_transition_matrices_are_refused(probabilities, message):
    with pytest.raises(MatrixError, match=message):
        TransitionMatrix(probabilities)


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([[0.5, 0.5]], r"square matrix, got shape \(1, 2\)"),
        ([[0.5, 0.5], [1.2, -0.2]], r"got -0.2 in row '1' \(row 1\), column '1'"),
        ([[0.5, math.nan], [0.5, 0.5]], r"got nan in row '0'"),
        ([[0.5, 0.4], [0.5, 0.5]], r"row '0' \(row 0\) sums to 0\.9"),
        ([[0.0, 0.0], [0.5, 0.5]], "without observations needs a prior"),
        ([[0.5 + 1j, 0.5 - 1j], [0.5, 0.5]], "complex"),
    ],
)
def test_invalid_sparse_transition_matrices_are_refused(probabilities, message):
    with pytest.raises(MatrixError, match=message):
        TransitionMatrix(sparse.csr_array(np.array(probabilities)))


@pytest.mark.parametrize(
    ("states", "message"),
    [
        (["a"], "expected 2 state names, one per row, got 1"),
        (["a", "a"], "'a' is given twice"),
        (["a", ""], "name of state 1 is missing"),
        (["a", None], "name of state 1 is missing"),
        (["a", math.nan], "name of state 1 is missing"),
        ([1, "1"], "'1' is given twice"),
        ("ab", "single string"),
    ],
)
def test_bad_state_names_are_refused(states, message):
    with pytest.raises(StateError, match=message):
        TransitionMatrix(HALF, states)


def test_the_tolerance_of_row_sums_is_tight():
    TransitionMatrix([[0.5, 0.5 + 0.9 * ROW_SUM_TOLERANCE], [0.5, 0.5]])
    with pytest.raises(MatrixError, match="sums to"):
        TransitionMatrix([[0.5, 0.5 + 1.1 * ROW_SUM_TOLERANCE], [0.5, 0.5]])
    single = np.full((3, 3), 1 / 3, dtype=np.float32).astype(np.float64)
    with pytest.raises(MatrixError, match="with all their digits"):
        TransitionMatrix(single)


def test_values_are_copied_in_and_read_only():
    given_array = np.array(HALF)
    matrix = TransitionMatrix(given_array, states=["a", "b"])
    given_array[0, 0] = 9.0
    assert matrix.dense()[0, 0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        matrix.probabilities[0, 0] = 9.0
    with pytest.raises(AttributeError):
        matrix.states = ("x", "y")
    stored = TransitionMatrix(sparse.csr_array(np.array(HALF)))
    with pytest.raises(ValueError, match="read-only"):
        stored.probabilities.data[0] = 9.0


def test_sparse_input_with_duplicates_and_explicit_zeros():
    rows, columns, values = [0, 0, 0, 1, 1], [0, 0, 1, 1, 0], [0.25, 0.25, 0.5, 1.0, 0.0]
    matrix = TransitionMatrix(sparse.coo_array((values, (rows, columns)), shape=(2, 2)))
    assert matrix.dense().tolist() == [[0.5, 0.5], [0.0, 1.0]]
    assert matrix.probabilities.nnz == 3


def test_equality_hash_pickle_and_repr():
    matrix = TransitionMatrix(HALF, states=["a", "b"])
    assert matrix == TransitionMatrix(sparse.csr_array(np.array(HALF)), ["a", "b"])
    assert matrix != TransitionMatrix(HALF)
    assert len({matrix, TransitionMatrix(HALF, states=["a", "b"])}) == 1
    assert pickle.loads(pickle.dumps(matrix)) == matrix
    assert repr(matrix) == "TransitionMatrix(2 states: 'a', 'b')"


def test_reversing_by_bayes_rule():
    forward = TransitionMatrix([[0.9, 0.1], [0.4, 0.6]], states=["a", "b"])
    backward = forward.reversed([0.25, 0.75])
    # Pr(before = a | now = a) = 0.25 * 0.9 / (0.25 * 0.9 + 0.75 * 0.4)
    assert backward.dense()[0, 0] == pytest.approx(0.225 / 0.525, rel=1e-15)
    assert backward.dense()[1, 1] == pytest.approx(0.45 / 0.475, rel=1e-15)
    assert backward.states == forward.states
    stored = TransitionMatrix(sparse.csr_array(forward.dense()), forward.states).reversed([0.25, 0.75])
    assert stored.is_sparse
    assert stored.dense() == pytest.approx(backward.dense(), rel=1e-15)


@given(matrices(kinds=("integers", "near")))
def test_reversing_twice_restores_the_matrix(matrix):
    pi = matrix.stationary_distribution()
    assert matrix.reversed(pi).reversed(pi).dense() == pytest.approx(matrix.dense(), rel=1e-12)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        ([1.0], "expected 2 probabilities"),
        ([0.5, 0.4], "sum to 1"),
        ([1.5, -0.5], "non-negative"),
        ([math.nan, 1.0], "finite"),
    ],
)
def test_bad_distributions_are_refused(initial, message):
    with pytest.raises(MatrixError, match=message):
        TransitionMatrix(HALF).reversed(initial)


def test_a_state_that_cannot_be_reached_has_no_reversed_row():
    with pytest.raises(MatrixError, match="'shop' cannot be reached"):
        TransitionMatrix([[0.5, 0.5, 0.0]] * 3, ["home", "work", "shop"]).reversed([0.2, 0.3, 0.5])


@given(matrices(kinds=("integers", "near", "scaled")))
def test_stationary_distributions_are_invariant(matrix):
    pi = matrix.stationary_distribution()
    assert pi.sum() == pytest.approx(1.0, rel=1e-14)
    assert pi @ matrix.dense() == pytest.approx(pi, rel=1e-11)


def test_stationary_distribution_keeps_tiny_entries():
    matrix = TransitionMatrix([[1 - 1e-15, 1e-15, 0.0], [0.5, 0.5 - 1e-15, 1e-15], [0.0, 1.0, 0.0]])
    pi = matrix.stationary_distribution()
    # Detailed balance of a birth-death chain: pi_1 = pi_0 p_01 / p_10, pi_2 = pi_1 p_12 / p_21.
    assert pi[2] / pi[0] == pytest.approx(1e-15 / 0.5 * 1e-15, rel=1e-13)


def test_stationary_distribution_of_a_chain_with_transient_states():
    matrix = TransitionMatrix([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [0.0, 0.75, 0.25]])
    assert matrix.stationary_distribution() == pytest.approx([0.0, 0.5, 0.5])
    periodic = TransitionMatrix([[0.0, 1.0], [1.0, 0.0]])
    assert periodic.stationary_distribution() == pytest.approx([0.5, 0.5])


def test_a_chain_with_two_closed_classes_has_no_unique_stationary_distribution():
    with pytest.raises(MatrixError, match=r"2 closed classes, one around each of 'a', 'c'"):
        TransitionMatrix([[1, 0, 0], [0.3, 0.3, 0.4], [0, 0, 1]], ["a", "b", "c"]).stationary_distribution()


def test_reordering_states():
    matrix = TransitionMatrix([[0.9, 0.1], [0.4, 0.6]], ["a", "b"])
    assert matrix.reordered(["b", "a"]).dense().tolist() == [[0.6, 0.4], [0.1, 0.9]]
    with pytest.raises(StateError, match="lacks 'c'"):
        matrix.reordered(["a", "c"])


def test_random_correlation_matches_the_reference():
    rows = np.random.default_rng(0).random((50, 50))
    assert (random_correlation(50, rng=0).dense() == rows / rows.sum(axis=1, keepdims=True)).all()


# Tables with names


def test_table_is_read_by_its_row_and_column_names():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"work": [0.1, 0.8], "home": [0.9, 0.2]}, index=["home", "work"])
    matrix = TransitionMatrix(table)
    assert matrix.states == ("home", "work")
    assert matrix.dense().tolist() == [[0.9, 0.1], [0.2, 0.8]]
    turned = TransitionMatrix(table, states=["work", "home"])
    assert turned.dense().tolist() == [[0.8, 0.2], [0.1, 0.9]]
    plain = TransitionMatrix(pd.DataFrame(matrix.dense()), states=["home", "work"])
    assert plain == matrix


@pytest.mark.parametrize(
    ("columns", "index", "states", "message"),
    [
        (["home", "work"], None, None, "rows without names"),
        (["home", "work"], ["home", "gym"], None, "columns do not match"),
        (["home", "work"], ["home", "work"], ["home", "gym"], "lacks 'gym'"),
        (["home", "home"], ["home", "work"], None, "given twice"),
    ],
)
def test_table_with_inconsistent_names_is_refused(columns, index, states, message):
    pd = pytest.importorskip("pandas")
    with pytest.raises(StateError, match=message):
        TransitionMatrix(pd.DataFrame([[0.9, 0.1], [0.2, 0.8]], columns=columns, index=index), states=states)


@pytest.mark.parametrize("stored", [np.array, sparse.csr_array])
def test_conversion_to_a_numpy_array(stored):
    table = np.array([[0.25, 0.75], [0.5, 0.5]])
    matrix = TransitionMatrix(stored(table), ["home", "work"])
    assert (np.asarray(matrix) == table).all() and np.asarray(matrix).shape == (2, 2)
    assert np.asarray(matrix, dtype=np.float32).dtype == np.float32
    copied = np.array(matrix)
    copied[0] = 1.0  # nobody's but ours
    assert (np.asarray(matrix) == table).all()


def test_matrix_from_a_matrix_keeps_its_names():
    matrix = TransitionMatrix([[0.25, 0.75], [0.5, 0.5]], ["home", "work"])
    assert TransitionMatrix(matrix) == matrix
    assert TransitionMatrix(matrix, ["a", "b"]).states == ("a", "b")


def test_single_precision_is_accepted_within_its_own_rounding(rng):
    exact = rng.dirichlet(np.ones(50), 50)
    for rows in (exact.astype(np.float32), sparse.csr_array(exact.astype(np.float32)), exact.astype(np.float16)):
        matrix = TransitionMatrix(rows)
        assert np.abs(matrix.dense().sum(axis=1) - 1.0).max() <= 1e-15
        stored = rows.toarray() if sparse.issparse(rows) else rows
        assert matrix.dense() == pytest.approx(stored.astype(float), rel=50 * float(np.finfo(rows.dtype).eps))
    with pytest.raises(MatrixError, match=r"within 1\.91e-06"):
        TransitionMatrix(np.array([[0.8, 0.21], [0.1, 0.9]], dtype=np.float32))
    wide = np.full((500, 500), 1 / 500, dtype=np.float16)
    wide[0, :20] = 0.0
    with pytest.raises(MatrixError, match=r"within 0\.0156, but row '0'"):
        TransitionMatrix(wide)
    with pytest.raises(MatrixError, match=r"normalize=True"):
        TransitionMatrix(exact.astype(np.float32).astype(float))


@pytest.mark.parametrize("kind", [list, np.array, sparse.csr_array, "pandas"])
def test_rows_are_divided_by_their_sums_on_request(kind):
    counts = [[8, 2], [3, 27]]
    given = pytest.importorskip("pandas").DataFrame(counts) if kind == "pandas" else kind(counts)
    assert TransitionMatrix(given, normalize=True).dense() == pytest.approx(
        np.array([[0.8, 0.2], [0.1, 0.9]]), rel=1e-15
    )
    with pytest.raises(MatrixError, match=r"sums to 10;.*normalize=True"):
        TransitionMatrix(given)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 0], [1, 1]], "row '0' .* sums to 0; a row without observations"),
        ([[2, -1], [1, 1]], "got -1.0"),
        ([[math.inf, 1], [1, 1]], "got inf"),
        ([[1e300, 1.0], [1, 1]], "got 1e-300"),
    ],
)
def test_rows_that_cannot_be_divided_are_refused(rows, message):
    with pytest.raises(MatrixError, match=message):
        TransitionMatrix(rows, normalize=True)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_matrix_is_indexed_and_multiplied_as_an_array(is_sparse, rng):
    rows = rng.dirichlet(np.ones(4), 4)
    matrix = TransitionMatrix(sparse.csr_array(rows) if is_sparse else rows, states=list("abcd"))
    assert matrix.shape == (4, 4)
    assert matrix["b", "c"] == matrix[1, 2] == matrix["b", 2] == rows[1, 2]
    assert np.array_equal(matrix["b"], rows[1])
    assert np.array_equal(matrix[1:3, :2], rows[1:3, :2])
    assert np.array_equal(np.asarray(matrix.T.toarray() if is_sparse else matrix.T), rows.T)
    assert matrix @ np.arange(4.0) == pytest.approx(rows @ np.arange(4.0), rel=1e-14)
    assert np.full(4, 0.25) @ np.asarray(matrix) == pytest.approx(np.full(4, 0.25) @ rows, rel=1e-14)
    twice = matrix @ TransitionMatrix(rows, states=list("abcd"))
    assert isinstance(twice, TransitionMatrix)
    assert twice.dense() == pytest.approx(rows @ rows, rel=1e-14)
    other = matrix.reordered(list("dcba"))
    assert (matrix @ other).dense() == pytest.approx(twice.dense(), rel=1e-14)
    assert np.array_equal(matrix[np.array([0, 2])], rows[[0, 2]])
    with pytest.raises(StateError, match="got 'e'"):
        matrix["e"]
