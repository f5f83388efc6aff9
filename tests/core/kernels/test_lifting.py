"""The lifting of a metric against spanning trees in 60 digits and linear programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from making import smoothed_correlation, strongest_correlation
from matrices import matrices
from oracles import exact_lift, highs_lift
from temporaldp import TransitionMatrix
from temporaldp.core.kernels import lifting
from temporaldp.core.kernels.lifting import closed, lifted, no_trees, off_diagonal

ROUNDING = 2.0**-53


def step(matrix, metric, trees=None):
    known = no_trees(matrix.n_states) if trees is None else trees
    return lifted(matrix.dense(), metric, matrix.leakage_profile(), known)


def exceeds(n, metric):
    """Largest distance between a certified bound and the exact value, on metrics of moderate size."""
    return (10.0 * n + 60.0 + 72.0 * metric.max()) * ROUNDING


@st.composite
def metrics(draw, n):
    """A closed quasi-metric from 1e-6 to 5,000 nats: constant, with ties, of one scale or of several."""
    scale = draw(st.sampled_from([1e-6, 0.1, 1.0, 10.0, 50.0, 500.0, 5000.0]))
    kind = draw(st.sampled_from(["constant", "ties", "random", "scales"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if kind == "constant":
        distances = np.ones((n, n))
    elif kind == "ties":
        distances = rng.integers(1, 4, (n, n)).astype(float)
    elif kind == "random":
        distances = rng.random((n, n))
    else:
        distances = 10.0 ** rng.uniform(-6, 0, (n, n))
    return closed(scale * distances * off_diagonal(n))


@st.composite
def cases(draw, max_n=4):
    matrix = draw(matrices(max_n=max_n))
    return matrix, draw(metrics(matrix.n_states))


@settings(max_examples=20)
@given(cases())
def test_lifting_is_a_tight_upper_bound_of_the_exact_value(case):
    matrix, metric = case
    found, exact, paper = step(matrix, metric), exact_lift(matrix.dense(), metric), matrix.leakage_profile()
    # Rows are stored to half an ulp, and may sum to 1 only within it.
    assert (found >= exact - 1e-15 * matrix.n_states - 1e-15 * metric.max()).all()
    assert (found <= paper.loss(metric.max()) * (1 + 1e-12) + 1e-300).all()
    if metric.max() <= 50.0:  # certificates are not always found on larger ones; the paper's bound then serves
        assert (found <= np.maximum(exact, 0.0) + exceeds(matrix.n_states, metric)).all()


@settings(max_examples=12)
@given(matrices(min_n=2, max_n=6, kinds=("integers", "zeros", "scaled")), st.data())
def test_a_linear_program_agrees_on_small_metrics(matrix, data):
    n = matrix.n_states
    metric = closed(
        data.draw(st.sampled_from([0.05, 0.5, 2.0])) * (1.0 + np.arange(n * n).reshape(n, n) % 3) * off_diagonal(n)
    )
    try:
        solved = highs_lift(matrix.dense(), metric)
    except AssertionError:  # the solver gives up on badly scaled rows
        return
    np.testing.assert_allclose(step(matrix, metric), solved, atol=1e-6)


def test_warm_started_steps_equal_cold_ones():
    rng = np.random.default_rng(3)
    n = 6
    matrix = TransitionMatrix(rng.dirichlet(np.ones(n), n))
    trees, metric = no_trees(n), 0.4 * off_diagonal(n)
    for _ in range(6):
        warm, cold = step(matrix, metric, trees), step(matrix, metric)
        np.testing.assert_allclose(warm, cold, rtol=0, atol=1e-13)
        np.testing.assert_allclose(warm, highs_lift(matrix.dense(), metric), atol=1e-8)
        metric = warm + 0.4 * off_diagonal(n)


def test_trees_of_another_matrix_only_warm_start_the_search():
    rng = np.random.default_rng(4)
    n = 5
    trees, metric = no_trees(n), closed(rng.random((n, n)) * off_diagonal(n))
    for zeros in (0.0, 0.5, 0.5, 0.0):  # the values that a pair rests on change with the zeros
        rows = rng.random((n, n)) * (rng.random((n, n)) >= zeros) + 0.01 * np.eye(n)
        matrix = TransitionMatrix(rows / rows.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(step(matrix, metric, trees), step(matrix, metric), rtol=0, atol=1e-13)


def test_constant_metric_agrees_with_the_profile():
    matrix = TransitionMatrix(np.random.default_rng(5).dirichlet(np.ones(6), 6))
    for level in (1e-9, 0.1, 3.0, 40.0, 900.0):
        assert step(matrix, level * off_diagonal(6)).max() == pytest.approx(
            matrix.leakage_profile().loss(level), rel=1e-12
        )


def test_symmetric_matrix_attains_the_papers_bound():
    matrix = smoothed_correlation(strongest_correlation(5), s=0.05)
    metric = 0.3 * off_diagonal(5)
    for _ in range(4):
        found = step(matrix, metric)
        assert found.max() == pytest.approx(matrix.leakage_profile().loss(metric.max()), rel=1e-12)
        metric = found + 0.3 * off_diagonal(5)


def test_indistinguishable_states_leak_nothing():
    matrix = TransitionMatrix([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    found = step(matrix, closed(np.array([[0, 1.0, 2.0], [1.5, 0, 1.0], [2.0, 1.0, 0]])))
    assert found[0, 1] == found[1, 0] == 0.0
    assert found[0, 2] > 0.0
    assert not step(matrix, np.zeros((3, 3))).any()


def test_disjoint_rows_transmit_all_leakage():
    metric = closed(np.array([[0, 300.0, 500.0], [200.0, 0, 400.0], [100.0, 250.0, 0]]))
    found = step(TransitionMatrix([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]]), metric)
    assert (found >= metric).all()
    np.testing.assert_allclose(found, metric, rtol=1e-13)


def test_metric_and_its_closure_give_the_same_result():
    """A metric that is not closed gives the same as the closed one: the constraints are the same."""
    matrix = TransitionMatrix(np.random.default_rng(6).dirichlet(np.ones(4), 4))
    metric = np.array([[0, 0.1, 5.0, 0.3], [0.2, 0, 0.1, 4.0], [0.3, 0.2, 0, 0.1], [0.1, 3.0, 0.2, 0]])
    np.testing.assert_allclose(step(matrix, metric), step(matrix, closed(metric)), rtol=0, atol=1e-12)


@pytest.mark.long
def test_foreign_trees_do_not_mislead_the_search():
    """At hundreds of nats a search can end far from the best tree; it then begins again without the one it was given."""
    rng = np.random.default_rng(11)
    for _ in range(150):
        n = int(rng.integers(2, 5))
        trees = no_trees(n)
        for _ in range(3):
            rows = rng.random((n, n)) * (rng.random((n, n)) < 0.7) + 1e-12 * rng.random((n, n))
            matrix = TransitionMatrix(rows / rows.sum(axis=1, keepdims=True))
            metric = closed(10.0 ** rng.uniform(0, 3) * rng.random((n, n)) * off_diagonal(n))
            warm, exact = step(matrix, metric, trees), np.maximum(exact_lift(matrix.dense(), metric), 0.0)
            assert (warm >= exact - 1e-15 * (n + metric.max())).all()
            if metric.max() <= 500.0:  # beyond, certificates are not always found
                np.testing.assert_allclose(warm, exact, rtol=1e-9, atol=exceeds(n, metric))


ASTRAY = [
    (
        [
            [0.0524028607877624, 0.2311108112020621, 0.5039777434968246, 0.2125085845133509],
            [0, 1, 0, 0],
            [0, 1, 0, 0],
            [0.25] * 4,
        ],
        [[0.25] * 4, [0.5, 0, 0, 0.5], [0.7988600141902008, 0.2011399858097992, 0, 0], [0, 0, 0.25, 0.75]],
        [[0, 5000.0, 5000.0, 0], [5000.0, 0, 0, 5000.0], [5000.0, 0, 0, 5000.0], [0, 5000.0, 5000.0, 0]],
        (1.0, 0.01),
    ),
    (
        [[0.25, 0, 0.75], [0, 0, 1], [1 / 3] * 3],
        [[1 / 3] * 3, [0.5, 0.25, 0.25], [0.9999872007325118, 2.2534391361106058e-08, 1.2776733096919747e-05]],
        [
            [0, 95.49833433174699, 0.0031416403147828784],
            [1.1542145692497878, 0, 2.715420345491088],
            [3.28186445, 0.08872772, 0],
        ],
        (50.0, 1000.0),
    ),
]


@pytest.mark.parametrize(("first", "then", "metric", "epsilons"), ASTRAY, ids=["four", "three"])
def test_known_trees_that_misled_the_search(first, then, metric, epsilons):
    first, then, metric = TransitionMatrix(first), TransitionMatrix(then), np.array(metric)
    trees = no_trees(len(metric))
    arrived = step(first, epsilons[0] * metric, trees)
    warm = step(then, arrived + epsilons[1] * metric, trees)
    np.testing.assert_allclose(warm, step(then, arrived + epsilons[1] * metric), rtol=1e-9)


@pytest.mark.parametrize("level", [0.1, 50.0, 500.0])
def test_ties_between_many_states(level):
    """A walk on a ring: distances repeat, and many trees are tight at once. Symmetry must survive."""
    n = 14
    rows = 0.6 * np.eye(n) + 0.2 * np.eye(n)[(np.arange(n) + 1) % n] + 0.2 * np.eye(n)[(np.arange(n) - 1) % n]
    matrix = TransitionMatrix(rows)
    trees, metric = no_trees(n), level * off_diagonal(n)
    for _ in range(4):
        metric = step(matrix, metric, trees) + level * off_diagonal(n)
    turned = np.roll(metric, (1, 1), axis=(0, 1))
    np.testing.assert_allclose(metric, turned, rtol=0, atol=10 * exceeds(n, metric))
    np.testing.assert_allclose(metric, metric.T, rtol=0, atol=10 * exceeds(n, metric))


def test_closure_is_all_pairs_shortest_paths():
    assert closed(np.array([[0, 1.0, 9.0], [9.0, 0, 1.0], [1.0, 9.0, 0]])).tolist() == [[0, 1, 2], [2, 0, 1], [1, 2, 0]]


def test_no_trees_are_kept_for_very_many_states(monkeypatch):
    matrix = TransitionMatrix(np.random.default_rng(8).dirichlet(np.ones(4), 4))
    metric = closed(np.random.default_rng(9).random((4, 4)) * off_diagonal(4))
    expected = step(matrix, metric)
    monkeypatch.setattr(lifting, "TREE_STATES", 3)
    assert no_trees(4).size == 0
    np.testing.assert_array_equal(step(matrix, metric), expected)
