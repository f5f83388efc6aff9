"""What releases of two values leak, by trying everything that can come out: an oracle that shares no code with the package."""

from __future__ import annotations

import itertools

import numpy as np


def largest_leakage(backward, forward, epsilons) -> np.ndarray:
    """TPL of every step, shape (T,), of releases about one of two values; a matrix for each of T - 1 transitions.

    ``backward[s][i, j]`` is the probability of value j at step s given i at step s + 1, ``forward[s]`` the other way round.
    Likelihoods of an output are in a box from 1 to e^epsilon; what tells values apart best is at corners of the boxes.
    """
    n = len(epsilons)
    found = np.zeros(n)
    for t in range(n):
        past = arriving([backward[s] for s in range(t)], epsilons[:t])
        future = arriving([forward[s] for s in range(n - 2, t - 1, -1)], epsilons[:t:-1])
        found[t] = epsilons[t] + max(past[k] + future[k] for k in (0, 1))
    return found


def arriving(matrices, epsilons) -> tuple[float, float]:
    """The largest log ratios, value 0 over 1 and 1 over 0, after these steps, the farthest one first."""
    likelihoods = np.ones((1, 2))
    for matrix, epsilon in zip(matrices, epsilons, strict=True):
        corners = np.exp(epsilon * np.array([[0, 0], [1, 0], [0, 1]]))
        told = (likelihoods[:, None] * corners).reshape(-1, 2)
        likelihoods = told @ np.asarray(matrix).T
    ratios = np.log(likelihoods[:, 0] / likelihoods[:, 1])
    return float(ratios.max()), float(-ratios.min())


def of_constant(backward, forward, epsilons) -> np.ndarray:
    """With the same matrices at every step."""
    return largest_leakage([backward] * len(epsilons), [forward] * len(epsilons), epsilons)


def all_lengths(most, n_epochs):
    """Every way in which so many epochs can have from 1 to `most` steps."""
    return itertools.product(range(1, most + 1), repeat=n_epochs)
