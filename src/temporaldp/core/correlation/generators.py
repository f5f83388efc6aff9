"""Correlations without data: those of the paper's experiments (Section VI), and one for a probability of staying."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.errors import MatrixError
from temporaldp.base.values import real_number, whole_number
from temporaldp.core.correlation.transition import TransitionMatrix


def strongest_correlation(n_states: int, *, rng: np.random.Generator | int | None = None) -> TransitionMatrix:
    """Return the strongest correlation: a permutation matrix, under which one state determines the next.

    Parameters
    ----------
    n_states : int, >= 2
    rng : numpy Generator or seed, optional
        Source of a random permutation. Default: the identity matrix, under which states never change.

    Returns
    -------
    TransitionMatrix

    Examples
    --------
    >>> strongest_correlation(2).dense()
    array([[1., 0.],
           [0., 1.]])
    """
    whole_number(n_states, "the number of states", least=2, error=MatrixError)
    order = np.arange(n_states) if rng is None else np.random.default_rng(rng).permutation(n_states)
    return TransitionMatrix(np.eye(n_states)[order])


def smoothed_correlation(matrix: TransitionMatrix | ArrayLike, *, s: float) -> TransitionMatrix:
    """Laplacian smoothing: ``(p[j, k] + s) / sum_u (p[j, u] + s)``, the paper's Section VI. `s` is added once.

    Parameters
    ----------
    matrix : TransitionMatrix, or what one is made from
    s : float, > 0
        Smaller is a stronger correlation. Degrees are comparable between matrices of the same size only.

    Examples
    --------
    >>> smoothed_correlation(strongest_correlation(2), s=0.5).dense()
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    real_number(s, "smoothing parameter s", gt=0.0)
    known = TransitionMatrix(matrix)
    raised = known.dense() + s
    return TransitionMatrix(raised / raised.sum(axis=1, keepdims=True), known.states)


def random_correlation(n_states: int, *, rng: np.random.Generator | int) -> TransitionMatrix:
    """Random matrix: entries uniform on [0, 1), rows divided by their sums; as in the paper's run-time figure."""
    whole_number(n_states, "the number of states", least=2, error=MatrixError)
    entries = np.random.default_rng(rng).random((n_states, n_states))
    return TransitionMatrix(entries / entries.sum(axis=1, keepdims=True))


def lazy_walk(stays: float, states: Sequence[object] | int = 2) -> TransitionMatrix:
    """Matrix of people who stay in their state with one probability, and else move to any other state alike.

    Symmetric, and so the matrix of both directions of its stationary chain.

    Parameters
    ----------
    stays : float, 0 <= stays <= 1
    states : sequence of names, or their number
        At least 2.

    Examples
    --------
    >>> lazy_walk(0.8, 3).dense()
    array([[0.8, 0.1, 0.1],
           [0.1, 0.8, 0.1],
           [0.1, 0.1, 0.8]])
    """
    real_number(stays, "the probability of staying", ge=0.0, le=1.0, error=MatrixError)
    names = range(states) if isinstance(states, int) else states
    n_states = whole_number(len(names), "the number of states", least=2, error=MatrixError)
    own = np.eye(n_states, dtype=bool)
    return TransitionMatrix(np.where(own, stays, (1.0 - stays) / (n_states - 1)), names, normalize=True)
