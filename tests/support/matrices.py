"""Hypothesis strategies for transition matrices: dense, with ties, with zeros, nearly equal, badly scaled."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from temporaldp import TransitionMatrix


@st.composite
def matrices(draw, min_n: int = 2, max_n: int = 5, kinds=("integers", "zeros", "near", "scaled")):
    """A transition matrix of a random kind; rows of small integers make ties and zeros likely."""
    n = draw(st.integers(min_n, max_n))
    kind = draw(st.sampled_from(kinds))
    if kind == "integers":
        weights = draw(st.lists(st.lists(st.integers(1, 4), min_size=n, max_size=n), min_size=n, max_size=n))
        rows = np.array(weights, dtype=float)
    elif kind == "zeros":
        weights = draw(st.lists(st.lists(st.integers(0, 2), min_size=n, max_size=n), min_size=n, max_size=n))
        rows = np.array(weights, dtype=float)
        rows[rows.sum(axis=1) == 0, 0] = 1.0
    else:
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        base = rng.random(n) + 0.1
        if kind == "near":
            rows = base * (1.0 + draw(st.sampled_from([1e-2, 1e-6, 1e-9, 1e-13])) * rng.standard_normal((n, n)))
        else:
            rows = 10.0 ** rng.uniform(draw(st.sampled_from([-3, -20, -200])), 0, size=(n, n))
    return TransitionMatrix(rows / rows.sum(axis=1, keepdims=True))


alphas = st.one_of(st.sampled_from([1e-12, 1e-6, 0.1, 1.0, 10.0, 100.0]), st.floats(1e-3, 30.0))
budgets = st.floats(0.001, 3.0)


@st.composite
def large_matrices(draw, min_n: int = 26, max_n: int = 60):
    """A transition matrix with more rows than are searched pair by pair, of a kind that is hard on a screen."""
    n = draw(st.integers(min_n, max_n))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["uniform", "ties", "zeros", "near", "scaled", "tiny", "permutation", "sparse"]))
    if kind == "uniform":
        rows = rng.random((n, n))
    elif kind == "ties":
        rows = rng.integers(1, 4, (n, n)).astype(float)
    elif kind == "zeros":
        rows = rng.random((n, n)) * (rng.random((n, n)) < 0.5) + 0.1 * np.eye(n)
    elif kind == "near":
        rows = (rng.random(n) + 0.1) * (1.0 + draw(st.sampled_from([1e-4, 1e-9, 1e-13])) * rng.standard_normal((n, n)))
    elif kind == "scaled":
        rows = 10.0 ** rng.uniform(draw(st.sampled_from([-3, -20, -200])), 0, size=(n, n))
    elif kind == "tiny":  # rows differ by so little that single precision holds none of it
        rows = np.ones((n, n))
        rows[:, : n // 2] = 10.0 ** -draw(st.sampled_from([40, 60, 150])) * rng.random((n, n // 2)) ** 3
        rows[:, n // 2] += draw(st.sampled_from([0.0, 1e-3])) * rng.random(n)
    elif kind == "permutation":
        rows = np.eye(n)[rng.permutation(n)] + draw(st.sampled_from([1e-3, 0.1]))
    else:
        rows = rng.random((n, n)) * (rng.random((n, n)) < 4.0 / n)
        rows[:, 0] += draw(st.sampled_from([0.1, 1.0])) * (1.0 if draw(st.booleans()) else rng.random(n) + 0.01)
    return TransitionMatrix(rows / rows.sum(axis=1, keepdims=True))
