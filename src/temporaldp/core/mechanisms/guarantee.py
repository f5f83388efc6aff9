"""Releases known only to be (epsilon, delta)-differentially private."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.values import FloatArray, assign, sum_up
from temporaldp.core.mechanisms.protocol import ROUNDED, ROUNDED_UP, Mechanism, both_sides, probabilities_of


@dataclass(frozen=True, slots=True)
class PrivacyGuarantee(Mechanism):
    """Any mechanism with a guarantee of (epsilon, delta)-differential privacy under replacement of one person's state.

    Parameters
    ----------
    epsilon : float, >= 0
        In nats.
    delta : float, from 0 to 1

    Notes
    -----
    Dominated by the mechanism that reveals everything with probability delta and else answers by randomised response (Kairouz,
    Oh, Viswanath, ICML 2015).
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        numbers = all(isinstance(value, int | float | np.number) for value in (self.epsilon, self.delta))
        if not (numbers and 0.0 <= self.epsilon < math.inf and 0.0 <= self.delta < 1.0):
            raise InputError(
                f"expected epsilon >= 0 and delta from 0 to below 1, got epsilon={self.epsilon!r}, delta={self.delta!r}"
            )
        assign(self, epsilon=float(self.epsilon), delta=float(self.delta))

    @property
    def pure_epsilon(self) -> float:
        """Epsilon, if delta is 0."""
        return self.epsilon if self.delta == 0.0 else math.inf

    @property
    def limit(self) -> float:
        """The delta of the guarantee."""
        return self.delta

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The delta at each epsilon."""
        gap = self.epsilon - losses
        rest = 1.0 - self.delta
        low, up = both_sides(
            rest * -np.expm1(-np.maximum(gap, 0.0)) / (1.0 + math.exp(-self.epsilon)), gap, self.epsilon
        )
        above = np.where(up > 0.0, (self.delta + up) * (1.0 + ROUNDED), self.delta)  # from epsilon on, delta itself
        return probabilities_of((self.delta + low) * (1.0 - ROUNDED)), probabilities_of(above)

    def grouped(self, n_units: int) -> PrivacyGuarantee:
        """The guarantee where so many units of it change together (group privacy), rounded up.

        n epsilon, and delta (1 + e^epsilon + ... + e^((n - 1) epsilon)); `BudgetError` if that is 1 or more.
        """
        # Beyond 700, e^x is not a double; delta is far above 1 long before
        more = (
            self.delta * math.exp(min(k * self.epsilon, 700.0) * ROUNDED_UP) * ROUNDED_UP for k in range(1, n_units)
        )
        grown = sum_up([self.delta, *more])
        if grown >= 1.0:
            raise BudgetError(
                f"expected a promise whose delta is below 1 for {n_units} units together, but by group privacy its delta is "
                f"{grown:.3g}; choose a unit of which a change of state is one"
            )
        return PrivacyGuarantee(sum_up([self.epsilon] * n_units), grown)
