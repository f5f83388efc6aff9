"""Confidence bounds of a mean of draws, by the wealth of somebody who bets that the mean is another one.

Let X >= 0 be drawn N times, independently, with mean p, and let c > 0 be a stake that is chosen before. The products of
``(1 + c X) / (1 + c p)`` and, where c X < 1 always, of ``(1 - c X) / (1 - c p)`` have mean 1. So neither reaches
``1 / failure``, but with that probability (Markov), and

    log(1 + c p) >= mean of log(1 + c X) - log(1 / failure) / N
    log(1 - c p) >= mean of log(1 - c X) - log(1 / failure) / N

The first bounds p from below, whatever the largest X may be, and the second from above. The best stake depends on the second
moment of X, so that several are tried, each with a share of the failure probability.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

ROUNDING = 1e-9
"""Relative; adding 10^7 numbers loses less."""


def mean_at_most(logs: Any, draws: Any, stake: Any, log: float) -> FloatArray:
    """Bound from above, by the sum of ``log(1 - stake X)``; at a stake of 0, X is always 0."""
    bound = -np.expm1((np.asarray(logs) * (1.0 + ROUNDING) - log) / draws)
    return np.asarray(
        np.divide(bound, stake, out=np.zeros(np.broadcast_shapes(bound.shape, np.shape(stake))), where=stake > 0.0)
    )


def mean_at_least(logs: Any, draws: Any, stake: Any, log: float) -> FloatArray:
    """Bound from below, by the sum of ``log(1 + stake X)``; at least 0."""
    bound = np.expm1(np.maximum((np.asarray(logs) * (1.0 - ROUNDING) - log) / draws, 0.0))
    return np.asarray(
        np.divide(bound, stake, out=np.zeros(np.broadcast_shapes(bound.shape, np.shape(stake))), where=stake > 0.0)
    )
