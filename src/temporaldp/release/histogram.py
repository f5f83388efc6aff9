"""A histogram under discrete Laplace noise, drawn exactly by OpenDP."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting import charging
from temporaldp.errors import BudgetError, InputError
from temporaldp.leakage.profile import positive

IntArray = NDArray[np.int64]

HISTOGRAM_SENSITIVITY = 2
"""L1 sensitivity of a histogram when one person's value is replaced: one count falls by 1, another rises by 1."""

LARGEST_SCALE = 2.0**53
"""Noise of a larger scale is refused: OpenDP would cut it off at the ends of 64-bit integers."""

LARGEST_COUNT = 2**53
"""Counts beyond this are refused: OpenDP works on 64-bit integers and needs room for the noise."""


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceHistogram:
    """Mechanism: exact discrete Laplace noise on every count of a histogram, as OpenDP draws it.

    epsilon-DP under replacement of one person's value (L1 sensitivity 2). The noise comes from OpenDP's exact sampler,
    not from floating-point arithmetic, whose low bits leak; it has no seed.

    Parameters
    ----------
    n_states : int
        Length of the histograms.

    Examples
    --------
    >>> mechanism = DiscreteLaplaceHistogram(n_states=3)
    >>> mechanism([10, 0, 5], 0.5).shape
    (3,)
    >>> mechanism.scale(0.5) >= 4.0, mechanism.epsilon_spent(0.5) <= 0.5
    (True, True)
    """

    n_states: int

    def __call__(self, snapshot: ArrayLike, epsilon: float) -> IntArray:
        """Noisy counts, shape (n_states,), integers that may be negative.

        Raises
        ------
        InputError
            The snapshot is no vector of n_states counts.
        BudgetError
            epsilon is not positive and finite.
        LeakageBudgetError
            Inside the block of a `TemporalAccountant` that refuses the budget. Nothing was drawn.
        """
        counts = self._checked(snapshot)
        measurement = _measurement(self.scale(epsilon))
        charging.charge([self.epsilon_spent(epsilon)])
        return np.array(measurement(counts.tolist()), dtype=np.int64)

    def scale(self, epsilon: float) -> float:
        """Scale of the noise (2 / epsilon, raised by ulps until OpenDP's own map grants at most epsilon)."""
        budget = positive(epsilon, "epsilon")
        scale = HISTOGRAM_SENSITIVITY / budget
        for _ in range(64):
            if _measurement(scale).map(HISTOGRAM_SENSITIVITY) <= budget:
                return scale
            scale = math.nextafter(scale, math.inf)
        raise InputError(f"OpenDP grants no scale near {scale:g} for epsilon = {epsilon:g}; use a larger epsilon")

    def epsilon_spent(self, epsilon: float) -> float:
        """What OpenDP's privacy map says is spent when `epsilon` is asked for; never more, by a few ulps less."""
        return float(_measurement(self.scale(epsilon)).map(HISTOGRAM_SENSITIVITY))

    def _checked(self, snapshot: ArrayLike) -> IntArray:
        counts = np.asarray(snapshot)
        if counts.shape != (self.n_states,):
            raise InputError(f"expected a histogram of {self.n_states} counts, got shape {counts.shape}")
        if not np.issubdtype(counts.dtype, np.integer) or counts.min() < 0 or counts.max() > LARGEST_COUNT:
            raise InputError(
                f"expected whole counts from 0 to 2**53, got {counts.dtype} {counts.min()}..{counts.max()}"
            )
        return counts.astype(np.int64)


@lru_cache(maxsize=256)
def _measurement(scale: float) -> Any:
    """OpenDP's discrete Laplace measurement on vectors of 64-bit integers under the L1 distance."""
    import opendp.prelude as dp

    if scale > LARGEST_SCALE:
        raise BudgetError(
            f"expected an epsilon of at least {HISTOGRAM_SENSITIVITY / LARGEST_SCALE:g} for a histogram: noise of scale "
            f"{scale:g} would not fit 64-bit counts"
        )
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return dp.m.make_laplace(*space, scale=scale)


def noise_quantile(epsilon: float, probability: float) -> float:
    """Half-width w with ``Pr(|noise| <= w) >= probability`` for one count; for error bars."""
    scale = HISTOGRAM_SENSITIVITY / epsilon
    # Pr(|Z| > k) = 2 r^(k + 1) / (1 + r) with r = exp(-1 / scale).
    ratio = math.exp(-1.0 / scale)
    return max(0.0, math.ceil(math.log((1.0 - probability) * (1.0 + ratio) / 2.0) / math.log(ratio) - 1.0))


def mean_absolute_noise(epsilons: Sequence[float] | NDArray[np.float64]) -> float:
    """Expected absolute noise of one count, averaged over the steps: ``2 r / (1 - r^2)``, ``r = exp(-epsilon / 2)``."""
    half = np.asarray(epsilons, dtype=np.float64) / HISTOGRAM_SENSITIVITY
    return float(np.mean(1.0 / np.sinh(half)))
