"""The loss at one level, without the profile."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from temporaldp.errors import BudgetError, InputError
from temporaldp.kernels.search import disjoint_pair, search_of
from temporaldp.kernels.vertex import DIRECT_LIMIT, largest_loss


class RowsWithNames(Protocol):
    """A `TransitionMatrix`, as far as this room knows it."""

    @property
    def probabilities(self) -> Any: ...  # noqa: D102

    @property
    def states(self) -> tuple[str, ...]: ...  # noqa: D102


def loss(matrix: RowsWithNames, *, alpha: float) -> float:
    """What leaks through one step at one incoming leakage, in nats: L(alpha) of the paper's Equations 23 and 24.

    The same number as ``matrix.leakage_profile().loss(alpha)``, exact to rounding (relative error below 1e-13), without the
    profile: about one pass over all pairs of rows, less at a large alpha, where few columns count. The profile costs a few
    such passes; ask for it if you need more than one level.

    Parameters
    ----------
    matrix : TransitionMatrix
        Shape (n, n), dense or sparse.
    alpha : float, >= 0
        Leakage at the step before (backward) or after (forward), in nats.

    Returns
    -------
    float

    Raises
    ------
    BudgetError
        alpha is negative or not a number.
    InputError
        `matrix` is no TransitionMatrix.

    Notes
    -----
    The global root of ``(e^alpha - 1) theta(g) = g - 1`` by Newton's (Dinkelbach's) steps, kept for all pairs at once
    (`docs/theory.md`, section 1). Beyond 700 nats the profile is computed.

    Examples
    --------
    >>> from temporaldp import TransitionMatrix
    >>> round(loss(TransitionMatrix([[0.8, 0.2], [0.0, 1.0]]), alpha=0.1), 6)
    0.080784
    """
    try:
        level = float(alpha)
    except (TypeError, ValueError):
        raise BudgetError(f"expected alpha to be a number (nats), got {alpha!r}") from None
    if not level >= 0.0:
        raise BudgetError(f"expected alpha >= 0, got {alpha}")
    if not hasattr(matrix, "leakage_profile"):
        raise InputError(f"expected a TransitionMatrix, got {type(matrix).__name__}; wrap it: TransitionMatrix(matrix)")
    if level > DIRECT_LIMIT:
        return float(matrix.leakage_profile().loss(level))
    if level == 0.0 or disjoint_pair(matrix.probabilities) is not None:
        return level
    search = search_of(matrix.probabilities)
    i, j, limit = search.best_at(math.exp(-level) / -math.expm1(-level))
    sums, _, _ = search.sums(np.array([i]), np.array([j]), np.array([limit]))
    d, x, q, c = (column[:, None] for column in sums.T)
    if x[0, 0] <= 0.0:
        return 0.0
    return float(largest_loss(d, q, x, c, np.array([[level]]))[0])
