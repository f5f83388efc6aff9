"""Histograms and tables of counts under discrete Laplace or discrete Gaussian noise, drawn exactly by OpenDP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.extras import needing
from temporaldp.base.values import IntArray, positive, whole_number
from temporaldp.core.accounting import accounting_blocks
from temporaldp.core.planning import NoisePlan, Plan
from temporaldp.core.planning.histogram_noise import HISTOGRAM_SENSITIVITY, Noise

LARGEST_COUNT = 2**53
"""Counts beyond this are refused: OpenDP works on 64-bit integers and needs room for the noise."""


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceHistogram:
    """Mechanism: exact discrete Laplace noise on every count of a histogram, drawn by OpenDP.

    epsilon-DP under replacement of one person's state, which lowers one count by 1 and raises another: an L1 sensitivity of 2.
    With groups, one count for each group and state: replacing the state, and even the group, changes two counts of the whole
    table, so that groups do not share the budget. The noise comes from OpenDP's exact sampler, not from floating-point
    arithmetic, whose low bits leak; it has no seed.

    Parameters
    ----------
    n_states : int
        Length of the histograms.
    n_groups : int, optional
        Rows of a table with a histogram for each group.
    digits : int, optional
        Budgets are rounded down to so many digits, so that what is published of them is short and exact.

    Examples
    --------
    >>> mechanism = DiscreteLaplaceHistogram(n_states=3)
    >>> mechanism([10, 0, 5], 0.5).shape
    (3,)
    >>> mechanism.scale(0.5) >= 4.0, mechanism.epsilon_spent(0.5) <= 0.5
    (True, True)
    >>> DiscreteLaplaceHistogram(n_states=3, n_groups=2)([[5, 0, 1], [2, 2, 2]], 0.5).shape
    (2, 3)
    """

    n_states: int
    n_groups: int | None = None
    digits: int | None = None

    def __post_init__(self) -> None:
        whole_number(self.n_states, "n_states", least=1)
        if self.n_groups is not None:
            whole_number(self.n_groups, "n_groups", least=1)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the counts."""
        return (self.n_states,) if self.n_groups is None else (self.n_groups, self.n_states)

    def __call__(self, snapshot: ArrayLike, epsilon: float) -> IntArray:
        """Noisy counts of that shape, integers that may be negative.

        Raises
        ------
        InputError
            The snapshot is not an array of counts of that shape.
        BudgetError
            epsilon is not positive and finite.
        LeakageBudgetError
            Inside the block of a `TemporalAccountant` that refuses the budget. Nothing was drawn.
        """
        counts = checked_counts(snapshot, self.shape)
        accounting_blocks.charge([self.epsilon_spent(epsilon)])
        return with_noise(counts, self.scale(epsilon))

    @property
    def error_at_one(self) -> float:
        """Sum of the mean absolute errors of all counts at epsilon = 1; nearly inversely proportional to epsilon."""
        return float(HISTOGRAM_SENSITIVITY * math.prod(self.shape))

    def scale(self, epsilon: float) -> float:
        """Scale of the noise (2 / epsilon, raised by ulps until OpenDP's own map grants at most epsilon)."""
        budget = positive(epsilon, "epsilon")
        if self.digits is not None:
            budget = float(Context(prec=self.digits, rounding=ROUND_FLOOR).create_decimal_from_float(budget))
        return granted_scale(HISTOGRAM_SENSITIVITY, min(budget, epsilon))

    def epsilon_spent(self, epsilon: float) -> float:
        """Epsilon by OpenDP's privacy map if `epsilon` is requested: at most `epsilon`, and lower by a few ulps at most."""
        return float(_measurement(self.scale(epsilon)).map(HISTOGRAM_SENSITIVITY))


@dataclass(frozen=True, slots=True)
class NoisyHistogram:
    """Mechanism: noise of a given scale, drawn exactly by OpenDP, on each count of a histogram; for plans under approximate DP.

    Its privacy profile under replacement of one person's state is that of `DiscreteGaussianNoise(scale)` or
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
            The snapshot is not a vector of n_states counts.
        BudgetError
            The scale is not positive and finite, or this is the block of an accountant, who counts pure epsilons only. Nothing
            was drawn.
        """
        counts, width = checked_counts(snapshot, (self.n_states,)), positive(scale, "scale")
        if accounting_blocks.charged():
            raise BudgetError(
                "a TemporalAccountant counts epsilons with delta = 0, and this noise is planned for a delta: release outside "
                "its block, under the plan"
            )
        return with_noise(counts, width, self.noise)


def granted_scale(sensitivity: int, epsilon: float) -> float:
    """Scale of discrete Laplace noise: sensitivity / epsilon, raised by ulps until OpenDP's own map grants at most epsilon."""
    scale = sensitivity / epsilon
    for _ in range(64):
        if _measurement(scale).map(sensitivity) <= epsilon:
            return scale
        scale = math.nextafter(scale, math.inf)
    raise InputError(f"OpenDP has no scale near {scale:g} for epsilon = {epsilon:g}; use a larger epsilon")


def with_noise(counts: IntArray, scale: float, noise: Noise = "laplace") -> IntArray:
    """Counts with exact noise, as OpenDP draws it."""
    drawn = _measurement(scale, noise)(counts.ravel().tolist())
    return np.array(drawn, dtype=np.int64).reshape(counts.shape)


def histogram_mechanism(plan: Plan, n_states: int) -> DiscreteLaplaceHistogram | NoisyHistogram:
    """The mechanism that publishes a histogram under a plan."""
    return NoisyHistogram(n_states, plan.noise) if isinstance(plan, NoisePlan) else brief_histogram(n_states)


def brief_histogram(n_states: int) -> DiscreteLaplaceHistogram:
    """The mechanism of a publication, with budgets of six digits."""
    return DiscreteLaplaceHistogram(n_states, digits=6)


def checked_counts(snapshot: ArrayLike, shape: tuple[int, ...]) -> IntArray:
    """Counts as integers.

    Raises
    ------
    InputError
        The argument is not an array of counts of this shape.
    """
    try:
        counts = np.asarray(snapshot)
    except ValueError:  # which prints none of them, but is not an error of this package
        raise InputError(f"expected counts of shape {shape}, got lists of different lengths") from None
    if counts.shape != shape:
        raise InputError(f"expected counts of shape {shape}, got shape {counts.shape}")
    if not np.issubdtype(counts.dtype, np.integer) or counts.min() < 0 or counts.max() > LARGEST_COUNT:
        raise InputError(f"expected whole counts from 0 to 2**53, got others (of type {counts.dtype})")
    return counts.astype(np.int64)


@lru_cache(maxsize=256)
def _measurement(scale: float, noise: Noise = "laplace") -> Any:
    """OpenDP's measurement on vectors of 64-bit integers: Laplace under the L1 distance, Gaussian under the L2 distance."""
    with needing("release"):
        import opendp.prelude as dp

    largest = 2.0**53  # OpenDP would cut off noise of a larger scale at the ends of 64-bit integers
    if scale > largest:
        raise BudgetError(
            f"expected an epsilon of at least {HISTOGRAM_SENSITIVITY / largest:g} for a histogram: noise of scale "
            f"{scale:g} would not fit 64-bit counts"
        )
    dp.enable_features("contrib")
    vector = dp.vector_domain(dp.atom_domain(T="i64"))
    if noise == "gaussian":
        return dp.m.make_gaussian(vector, dp.l2_distance(T="f64"), scale=scale)
    return dp.m.make_laplace(vector, dp.l1_distance(T="i64"), scale=scale)
