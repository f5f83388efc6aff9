"""Matrices, sets and chains that only tests make, and what they ask of them."""

from __future__ import annotations

import numpy as np

from temporaldp import TransitionMatrix
from temporaldp.core.correlation import IntervalMatrix


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
