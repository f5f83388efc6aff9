"""Sums and means of one bounded number per person, with Laplace noise from OpenDP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.errors import InputError
from temporaldp.base.extras import needing
from temporaldp.base.values import assign, positive, real_array, whole_number
from temporaldp.core.accounting import accounting_blocks

REPLACED = 2
"""Symmetric distance between data that differ in one person's number."""


@dataclass(frozen=True, slots=True)
class ClampedSum:
    """Mechanism: the sum of one number per person, clamped to bounds, with Laplace noise.

    epsilon-DP under replacement of one person's number. The sensitivity is ``upper - lower`` (and what OpenDP adds for
    rounding); numbers outside of the bounds are moved to them, which is a bias that the noise does not include.

    Parameters
    ----------
    lower, upper : float
        Public bounds, not taken from the data.
    n_people : int
        Public number of people.

    Examples
    --------
    >>> mechanism = ClampedSum(lower=0.0, upper=24.0, n_people=3)
    >>> mechanism.sensitivity, isinstance(mechanism([7.5, 8.0, 30.0], 1.0), float)
    (24.0, True)
    """

    lower: float
    upper: float
    n_people: int

    def __post_init__(self) -> None:
        whole_number(self.n_people, "n_people", least=1)
        assign(self, lower=float(self.lower), upper=float(self.upper))
        if not (math.isfinite(self.lower) and math.isfinite(self.upper) and self.lower < self.upper):
            raise InputError(
                f"expected finite bounds, the lower one below the upper, got {self.lower} and {self.upper}"
            )

    @property
    def sensitivity(self) -> float:
        """Largest change of the sum if one person's number is replaced."""
        return self.upper - self.lower

    @property
    def error_at_one(self) -> float:
        """Mean absolute error at epsilon = 1; inversely proportional to epsilon."""
        return self.sensitivity

    def __call__(self, snapshot: ArrayLike, epsilon: float) -> float:
        """The noisy sum.

        Raises
        ------
        InputError
            The snapshot is not a vector of n_people finite numbers.
        BudgetError
            epsilon is not positive and finite.
        LeakageBudgetError
            Inside the block of a `TemporalAccountant` that refuses the budget. Nothing was drawn.
        """
        given = np.asarray(snapshot, dtype=float) if getattr(snapshot, "dtype", None) == np.bool_ else snapshot
        numbers = real_array(given, "the numbers of the people", shape=(self.n_people,), is_protected=True)
        measurement = self._measurement(epsilon)
        accounting_blocks.charge([self.epsilon_spent(epsilon)])
        return float(measurement(numbers.tolist()))

    def epsilon_spent(self, epsilon: float) -> float:
        """Epsilon by OpenDP's privacy map if `epsilon` is requested: at most `epsilon`."""
        return float(self._measurement(epsilon).map(REPLACED))

    def _measurement(self, epsilon: float) -> Any:
        return _laplace_sum(self.lower, self.upper, self.n_people, positive(epsilon, "epsilon"))


class ClampedMean(ClampedSum):
    """Mechanism: the mean of one number per person, clamped to bounds: a `ClampedSum` divided by the public n_people.

    The sensitivity is ``(upper - lower) / n_people``.

    Parameters
    ----------
    lower, upper : float
        Public bounds, not taken from the data.
    n_people : int
        How many people there are, which is public.
    """

    __slots__ = ()

    @property
    def sensitivity(self) -> float:
        """Largest change of the mean if one person's number is replaced."""
        return super().sensitivity / self.n_people

    def __call__(self, snapshot: ArrayLike, epsilon: float) -> float:
        """The noisy mean. Errors as for `ClampedSum`."""
        return super().__call__(snapshot, epsilon) / self.n_people


@lru_cache(maxsize=256)
def _laplace_sum(lower: float, upper: float, n_people: int, epsilon: float) -> Any:
    """OpenDP's clamping, sum and Laplace noise, whose privacy map grants at most epsilon for one replaced number."""
    with needing("release"):
        import opendp.prelude as dp

    dp.enable_features("contrib")
    # Replacing a number takes one away and adds one. Where the size is known, the sum then moves by the range at most.
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=n_people), dp.symmetric_distance()
    clamped = space >> dp.t.then_clamp((lower, upper))
    summed = clamped >> dp.t.make_sum(clamped.output_domain, clamped.output_metric)
    scale = float(summed.map(REPLACED)) / epsilon
    while (made := summed >> dp.m.then_laplace(scale)).map(REPLACED) > epsilon:
        scale *= 1.0 + 1e-15
    return made
