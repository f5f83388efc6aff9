"""A histogram under discrete Laplace or discrete Gaussian noise, drawn exactly by OpenDP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting import accounting_blocks
from temporaldp.errors import BudgetError, InputError
from temporaldp.extras import needing
from temporaldp.planning import BudgetPlan, NoisePlan, Plan
from temporaldp.planning.histogram_noise import HISTOGRAM_SENSITIVITY, Noise
from temporaldp.values import positive

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

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
        accounting_blocks.charge([self.epsilon_spent(epsilon)])
        return np.array(measurement(counts.tolist()), dtype=np.int64)

    @property
    def error_at_one(self) -> float:
        """Mean absolute errors of all counts, added up, at epsilon = 1; at another epsilon, divided by it, nearly."""
        return float(HISTOGRAM_SENSITIVITY * self.n_states)

    def scale(self, epsilon: float) -> float:
        """Scale of the noise (2 / epsilon, raised by ulps until OpenDP's own map grants at most epsilon)."""
        return granted_scale(HISTOGRAM_SENSITIVITY, positive(epsilon, "epsilon"))

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
        if accounting_blocks.charged():
            raise BudgetError(
                "a TemporalAccountant counts epsilons with delta = 0, and this noise is planned for a delta: release outside "
                "its block, under the plan"
            )
        return np.array(measurement(counts.tolist()), dtype=np.int64)


def granted_scale(sensitivity: int, epsilon: float) -> float:
    """Scale of discrete Laplace noise: sensitivity / epsilon, raised by ulps until OpenDP's own map grants at most epsilon."""
    scale = sensitivity / epsilon
    for _ in range(64):
        if _measurement(scale).map(sensitivity) <= epsilon:
            return scale
        scale = math.nextafter(scale, math.inf)
    raise InputError(f"OpenDP grants no scale near {scale:g} for epsilon = {epsilon:g}; use a larger epsilon")


def exact_laplace(counts: IntArray, scale: float) -> IntArray:
    """Counts with exact discrete Laplace noise, as OpenDP draws it."""
    return np.array(_measurement(scale)(counts.tolist()), dtype=np.int64)


@singledispatch
def histogram_mechanism(plan: Plan, n_states: int) -> DiscreteLaplaceHistogram | NoisyHistogram:
    """The mechanism that publishes a histogram under a plan."""
    raise InputError(f"expected a plan of plan_budget or plan_noise, got {type(plan).__name__}")


@histogram_mechanism.register
def _(plan: BudgetPlan, n_states: int) -> DiscreteLaplaceHistogram:
    return DiscreteLaplaceHistogram(n_states)


@histogram_mechanism.register
def _(plan: NoisePlan, n_states: int) -> NoisyHistogram:
    return NoisyHistogram(n_states, plan.noise)


def checked_counts(snapshot: ArrayLike, n_states: int) -> IntArray:
    """A histogram as integers.

    Raises
    ------
    InputError
        It is no vector of n_states counts.
    """
    try:
        counts = np.asarray(snapshot)
    except ValueError:  # which prints none of them, but is no error of ours
        raise InputError(f"expected a histogram of {n_states} counts, got lists of different lengths") from None
    if counts.shape != (n_states,):
        raise InputError(f"expected a histogram of {n_states} counts, got shape {counts.shape}")
    if not np.issubdtype(counts.dtype, np.integer) or counts.min() < 0 or counts.max() > LARGEST_COUNT:
        raise InputError(f"expected whole counts from 0 to 2**53, got others (of type {counts.dtype})")
    return counts.astype(np.int64)


@lru_cache(maxsize=256)
def _measurement(scale: float, noise: Noise = "laplace") -> Any:
    """OpenDP's measurement on vectors of 64-bit integers: Laplace under the L1 distance, Gaussian under the L2 distance."""
    with needing("release"):
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
