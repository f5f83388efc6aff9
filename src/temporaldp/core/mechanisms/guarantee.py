"""Releases known only to be (epsilon, delta)-differentially private."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.values import FloatArray, assign
from temporaldp.core.mechanisms.protocol import ROUNDED, Mechanism, both_sides, probabilities_of


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
