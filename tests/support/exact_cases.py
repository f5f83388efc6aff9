"""Random cases for the exact leakage: chains with zeros and ties, and what releases say of each value."""

from __future__ import annotations

import numpy as np

LONGEST = {2: 6, 3: 5, 4: 4, 5: 3}
"""Steps up to which all observations are enumerated within a few milliseconds, for each number of values."""


def random_rows(n: int, rng: np.random.Generator) -> np.ndarray:
    """A stochastic matrix: dense, with zeros, with ties, or nearly deterministic."""
    kind = rng.integers(4)
    if kind == 0:
        rows = rng.dirichlet(np.ones(n), n)
    elif kind == 1:
        rows = rng.random((n, n)) * (rng.random((n, n)) < 0.6)
        rows[rows.sum(axis=1) == 0.0, rng.integers(n)] = 1.0
    elif kind == 2:
        rows = rng.integers(1, 4, (n, n)).astype(float)
    else:
        rows = np.eye(n)[rng.permutation(n)] + 10.0 ** rng.uniform(-9, -1) * rng.random((n, n))
    return rows / rows.sum(axis=1, keepdims=True)


def random_boxes(kind: str, n_steps: int, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Low and high, shape (T, n) each; a fifth of all budgets are zero.

    "epsilons": differential privacy. "absent": a person who contributes nothing says nothing, any other value is a noisy
    count of its own. "own noise": each count has its own noise, some counts are not published.
    """
    budgets = rng.choice([0.0, 0.01, 0.3, 1.0, 4.0], n_steps) * rng.uniform(0.5, 1.0, n_steps)
    high = np.repeat(budgets[:, None], n, axis=1)
    if kind == "epsilons":
        return np.zeros_like(high), high
    if kind == "absent":
        high[:, int(rng.integers(n))] = 0.0
    else:
        high *= rng.choice([0.0, 0.2, 1.0], (n_steps, n)) * rng.uniform(0.5, 1.0, (n_steps, n))
    return -high, high
