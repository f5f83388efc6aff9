"""Matrices, traces and mechanisms that only tests make, and what they ask of them."""

from __future__ import annotations

import numpy as np

from temporaldp import IntervalMatrix, LikelihoodBox, MatrixMechanism, Trajectories, TransitionMatrix
from temporaldp.base.names import in_order, names_of
from temporaldp.core.correlation.lifted_chain import hidden_words, stationary_chain
from temporaldp.data.tables.trajectories import ABSENT


def around(matrix, *, width):
    """The set of matrices whose entries differ from those of `matrix` by at most `width`."""
    entries = matrix.dense()
    return IntervalMatrix(np.maximum(entries - width, 0.0), np.minimum(entries + width, 1.0), matrix.states)


def contains(known, matrix):
    """Whether every entry of `matrix` is within the bounds of a set of the same states, within four roundings of 1."""
    assert known.states == matrix.states
    entries, room = matrix.dense(), 4.0 * np.finfo(np.float64).eps
    return bool(((known.lower <= entries + room) & (entries <= known.upper + room)).all())


def sample(known, rng):
    """Random matrix of a set, between extreme matrices; not uniform."""
    orders = rng.permuted(np.tile(np.arange(known.n_states), (2, known.n_states, 1)), axis=2)
    one, other = (known.corner(order).dense() for order in orders)
    share = rng.random((known.n_states, 1))
    return TransitionMatrix(share * one + (1.0 - share) * other, known.states, normalize=True)


def of_words(probabilities, states=None):
    """The stationary chain of order k with known probabilities, of shape (n, ..., n) with k + 1 axes.

    ``Pr(l[t+1] = c | l[t-1] = a, l[t] = b)`` at ``[a, b, c]`` for order 2; also of words that never occur.
    """
    given = np.asarray(probabilities, dtype=np.float64)
    n, order = given.shape[-1], given.ndim - 1
    assert set(given.shape) == {n}
    known = names_of(n, states)
    return stationary_chain(known, hidden_words(known, order), given.reshape(-1, n))


def laplace_counts(scales):
    """A histogram with independent Laplace noise of these scales, in counts, on the counts of states; inf: not published."""
    epsilons = 1.0 / np.asarray(scales, dtype=np.float64)
    return LikelihoodBox(0.0 - epsilons, epsilons)


def square_root(n_steps, noise):
    """The Toeplitz matrix whose square is the matrix of running counts (Fichtenberger, Henzinger and Upadhyay, 2023)."""
    k = np.arange(1, n_steps)
    return MatrixMechanism.banded(n_steps, np.cumprod([1.0, *((2 * k - 1) / (2 * k))]), noise)


def from_sequences(sequences, *, states=None, users=None):
    """Trajectories of one sequence of states for each user, ``None`` where the user has none; shorter ones end earlier."""
    names = (
        in_order({state for sequence in sequences for state in sequence} - {None}) if states is None else list(states)
    )
    codes = np.full((len(sequences), max(map(len, sequences))), ABSENT, dtype=np.int32)
    for row, sequence in zip(codes, sequences, strict=True):
        row[: len(sequence)] = [ABSENT if state is None else names.index(state) for state in sequence]
    return Trajectories(codes, states=names, users=users)


def strongest_correlation(n_states, *, rng=None):
    """A permutation matrix, under which one state determines the next; without `rng` the identity."""
    order = np.arange(n_states) if rng is None else np.random.default_rng(rng).permutation(n_states)
    return TransitionMatrix(np.eye(n_states)[order])


def smoothed_correlation(matrix, *, s):
    """Laplacian smoothing of the paper's Section VI, in which `s` is added once: a smaller one is a stronger correlation."""
    raised = matrix.dense() + s
    return TransitionMatrix(raised / raised.sum(axis=1, keepdims=True), matrix.states)


def random_correlation(n_states, *, rng):
    """Entries uniform on [0, 1), rows divided by their sums; as in the paper's run-time figure."""
    entries = np.random.default_rng(rng).random((n_states, n_states))
    return TransitionMatrix(entries / entries.sum(axis=1, keepdims=True))
