"""Correlations without data: one for a probability of staying."""

from collections.abc import Sequence

import numpy as np

from temporaldp.base.errors import MatrixError
from temporaldp.base.values import real_number, whole_number
from temporaldp.core.correlation.transition import TransitionMatrix


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
