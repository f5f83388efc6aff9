"""The exact leakage against linear programs over every mechanism of the whole path, whatever its noise.

The variable of a program is the likelihood of one output as a function of the path, which changes by at most the event-level
guarantee of a step when the state at that step is replaced. Nothing else is assumed: the noise of steps may be shared. Each
such function, scaled down, is an output of a mechanism, whose other outputs share the rest.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array

from exact_cases import random_boxes, random_rows
from temporaldp import Adversary, LikelihoodBox, TransitionMatrix, temporal_leakage

SIZES = [(2, 2), (2, 3), (2, 4), (2, 5), (2, 6), (3, 2), (3, 3), (3, 4), (4, 2), (4, 3)]
"""States and steps of quick cases."""

LONG = [(3, 5), (3, 6), (4, 4), (4, 5)]

KINDS = ("epsilons", "absent", "own noise")

CLOSE = 1e-7
"""Nats up to which both agree: the tolerance of the solver."""


def path_probabilities(paths, at, state, backward, forward):
    """Probability of every path given the state at one step, by both matrices."""
    found = (paths[:, at] == state).astype(float)
    for s in range(at, 0, -1):
        found *= backward[s - 1][paths[:, s], paths[:, s - 1]]
    for s in range(at, paths.shape[1] - 1):
        found *= forward[s][paths[:, s], paths[:, s + 1]]
    return found


def largest_ratio(backward, forward, low, high, at):
    """The largest log ratio over all pairs of states at a step and over every mechanism; low and high have shape (T, n)."""
    n_steps, n = low.shape
    paths = np.array(list(itertools.product(range(n), repeat=n_steps)))
    number = np.arange(len(paths))
    rows, factors = [], []
    for s in range(n_steps):
        for change in range(1, n):
            other = (paths[:, s] + change) % n
            rows.append((number, number + (other - paths[:, s]) * n ** (n_steps - 1 - s)))
            factors.append(np.exp(high[s, paths[:, s]] - low[s, other]))
    first, second = (np.concatenate(side) for side in zip(*rows, strict=True))
    each = np.arange(len(first))
    entries = np.concatenate((np.ones(len(first)), -np.concatenate(factors)))
    neighbours = coo_array((entries, (np.tile(each, 2), np.concatenate((first, second))))).tocsr()
    best = 0.0
    for i, j in itertools.permutations(range(n), 2):
        given_i, given_j = (path_probabilities(paths, at, state, backward, forward) for state in (i, j))
        solved = linprog(-given_i, neighbours, np.zeros(len(first)), given_j[None], [1.0], method="highs")
        assert solved.status == 0, solved.message
        best = max(best, np.log(-solved.fun))
    return best


def check(n, n_steps, kind, seed):
    """Compare BPL, FPL and TPL of a random step with the programs."""
    rng = np.random.default_rng([seed, n, n_steps, KINDS.index(kind)])
    backward, forward = ([random_rows(n, rng) for _ in range(n_steps - 1)] for _ in range(2))
    low, high = (np.minimum(side, 1.0) for side in random_boxes(kind, n_steps, n, rng))
    low = np.maximum(low, -1.0)
    releases = high[:, 0] if kind == "epsilons" else [LikelihoodBox(*box) for box in zip(low, high, strict=True)]
    user = Adversary(*([TransitionMatrix(rows) for rows in side] for side in (backward, forward)))
    series, at = temporal_leakage(user, releases), int(rng.integers(n_steps))
    expected = (
        largest_ratio(backward[:at], [], low[: at + 1], high[: at + 1], at),
        largest_ratio([], forward[at:], low[at:], high[at:], 0),
        largest_ratio(backward, forward, low, high, at),
    )
    found = series.backward[at], series.forward[at], series.temporal[at]
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=CLOSE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES, ids="{0[0]} states, {0[1]} steps".format)
def test_no_mechanism_with_these_guarantees_leaks_more_and_one_leaks_as_much(size, kind):
    check(*size, kind, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", LONG, ids="{0[0]} states, {0[1]} steps".format)
def test_larger_programs_agree(size, kind):
    for seed in range(2 if size[0] ** size[1] < 1000 else 1):
        check(*size, kind, seed=seed + 2)
