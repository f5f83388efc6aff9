"""A histogram under discrete Laplace or discrete Gaussian noise, drawn exactly by OpenDP."""

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
from temporaldp.planning.plan import BudgetPlan, Noise
from temporaldp.values import positive

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

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
        counts = checked_counts(snapshot, self.n_states)
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


@dataclass(frozen=True, slots=True)
class NoisyHistogram:
    """Mechanism: exact noise of a given scale on every count of a histogram, as OpenDP draws it; for plans with a delta.

    What it leaks by itself under replacement of one person's value is `DiscreteGaussianNoise(scale)` or
    `DiscreteLaplaceNoise(scale)`.

    Parameters
    ----------
    n_states : int
        Length of the histograms.
    noise : {"gaussian", "laplace"}

    Examples
    --------
    >>> NoisyHistogram(n_states=3, noise="gaussian")([10, 0, 5], 4.0).shape
    (3,)
    """

    n_states: int
    noise: Noise

    def __call__(self, snapshot: ArrayLike, scale: float) -> IntArray:
        """Noisy counts, shape (n_states,), integers that may be negative.

        Raises
        ------
        InputError
            The snapshot is no vector of n_states counts.
        BudgetError
            The scale is not positive and finite, or this is the block of an accountant, who counts pure epsilons only. Nothing
            was drawn.
        """
        counts = checked_counts(snapshot, self.n_states)
        measurement = _measurement(positive(scale, "scale"), self.noise)
        if charging.charged():
            raise BudgetError(
                "a TemporalAccountant counts epsilons with delta = 0, and this noise is planned for a delta: release outside "
                "its block, under the plan"
            )
        return np.array(measurement(counts.tolist()), dtype=np.int64)


def checked_counts(snapshot: ArrayLike, n_states: int) -> IntArray:
    """A histogram as integers.

    Raises
    ------
    InputError
        It is no vector of n_states counts.
    """
    counts = np.asarray(snapshot)
    if counts.shape != (n_states,):
        raise InputError(f"expected a histogram of {n_states} counts, got shape {counts.shape}")
    if not np.issubdtype(counts.dtype, np.integer) or counts.min() < 0 or counts.max() > LARGEST_COUNT:
        raise InputError(f"expected whole counts from 0 to 2**53, got {counts.dtype} {counts.min()}..{counts.max()}")
    return counts.astype(np.int64)


@lru_cache(maxsize=256)
def _measurement(scale: float, noise: Noise = "laplace") -> Any:
    """OpenDP's measurement on vectors of 64-bit integers: Laplace under the L1 distance, Gaussian under the L2 distance."""
    import opendp.prelude as dp

    if scale > LARGEST_SCALE:
        raise BudgetError(
            f"expected an epsilon of at least {HISTOGRAM_SENSITIVITY / LARGEST_SCALE:g} for a histogram: noise of scale "
            f"{scale:g} would not fit 64-bit counts"
        )
    dp.enable_features("contrib")
    vector = dp.vector_domain(dp.atom_domain(T="i64"))
    if noise == "gaussian":
        return dp.m.make_gaussian(vector, dp.l2_distance(T="f64"), scale=scale)
    return dp.m.make_laplace(vector, dp.l1_distance(T="i64"), scale=scale)


def laplace_scales(epsilons: Sequence[float] | FloatArray) -> FloatArray:
    """The scale of a histogram's discrete Laplace noise for each budget."""
    return HISTOGRAM_SENSITIVITY / np.asarray(epsilons, dtype=np.float64)


def noise_quantile(scale: float, probability: float, noise: Noise = "laplace") -> float:
    """Half-width w with ``Pr(|noise| <= w) >= probability`` for one count; for error bars."""
    if noise == "gaussian":
        within = np.cumsum(_gaussian(scale) * np.where(np.arange(_reach(scale)) == 0, 1.0, 2.0))
        return float(np.searchsorted(within, probability * within[-1]))
    # Pr(|Z| > k) = 2 r^(k + 1) / (1 + r) with r = exp(-1 / scale).
    ratio = math.exp(-1.0 / scale)
    return max(0.0, math.ceil(math.log((1.0 - probability) * (1.0 + ratio) / 2.0) / math.log(ratio) - 1.0))


def mean_absolute_noise(scales: Sequence[float] | FloatArray, noise: Noise = "laplace") -> float:
    """Expected absolute noise of one count, averaged over the steps.

    Discrete Laplace: ``2 r / (1 - r^2)``, ``r = exp(-1 / scale)``. Discrete Gaussian: by its probabilities.
    """
    each = np.asarray(scales, dtype=np.float64)
    if noise == "laplace":
        return float(np.mean(1.0 / np.sinh(1.0 / each)))
    found, times = np.unique(each, return_counts=True)
    means = [2.0 * float(_gaussian(scale) @ np.arange(_reach(scale))) / _total(scale) for scale in found.tolist()]
    return float(np.average(means, weights=times))


def _reach(scale: float) -> int:
    return math.ceil(12.0 * scale) + 2


def _gaussian(scale: float) -> FloatArray:
    """Discrete Gaussian weights of 0, 1, 2, ... up to 12 scales."""
    return np.asarray(np.exp(-0.5 * np.square(np.arange(_reach(scale)) / scale)))


def _total(scale: float) -> float:
    return 2.0 * float(_gaussian(scale).sum()) - 1.0


def planned_noise(plan: BudgetPlan) -> float:
    """Expected absolute noise of one count of a histogram under a plan, averaged over its steps."""
    if plan.scales is None or plan.mechanism is None:
        return mean_absolute_noise(laplace_scales(plan.epsilons[plan.epsilons > 0.0]))
    return mean_absolute_noise(plan.scales, plan.mechanism)
