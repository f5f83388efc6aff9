"""Promises about one step: epsilon and delta, or rho. Several units add up by group privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from temporaldp.base.display import number
from temporaldp.base.values import real_number
from temporaldp.core.mechanisms import PrivacyGuarantee
from temporaldp.core.mechanisms.concentrated import LARGEST_RHO, ConcentratedGuarantee
from temporaldp.core.mechanisms.protocol import epsilon_of_one


@dataclass(frozen=True, slots=True)
class EpsilonPromise(PrivacyGuarantee):
    """(epsilon, delta)-differential privacy of each step; pure differential privacy by default."""

    def __post_init__(self) -> None:
        real_number(self.epsilon, "epsilon", gt=0.0, le=1e4)  # a larger epsilon in a record is an error
        real_number(self.delta, "delta", ge=0.0, lt=1.0)

    @property
    def sentence(self) -> str:
        """The promise in the terms of the record."""
        return f"epsilon = {self.epsilon:.10g}" + (f", delta = {self.delta:.10g}" if self.delta else "")

    @property
    def default_delta(self) -> float:
        """Delta of the accounting if none is given: 0, or 1,000 times the delta of a step, as deltas add up; at least 1e-6."""
        return min(max(1e-6, 1000.0 * self.delta), 0.5) if self.delta else 0.0

    def times(self, share: float) -> EpsilonPromise:
        """The promise with a share of its epsilon, rounded down to four digits."""
        return EpsilonPromise(float(number(self.epsilon * share, down=True)), self.delta)

    def together(self, units: int, steps: int, delta: float) -> float:
        """Upper bound of the epsilon at a delta of several steps by basic composition; inf if there is none."""
        one = self.grouped(units)
        return one.epsilon * steps if one.delta * steps <= delta else math.inf


@dataclass(frozen=True, slots=True)
class ConcentratedPromise(ConcentratedGuarantee):
    """rho-zero-concentrated differential privacy of each step."""

    @property
    def sentence(self) -> str:
        """The promise in the terms of the record."""
        return f"rho = {self.rho:.10g} (zero-concentrated)"

    @property
    def default_delta(self) -> float:
        """Delta of the accounting if none is given: 1e-6."""
        return 1e-6

    def times(self, share: float) -> ConcentratedPromise:
        """The promise with a share of rho, rounded down to four digits."""
        return ConcentratedPromise(float(number(self.rho * share, down=True)))

    def together(self, units: int, steps: int, delta: float) -> float:
        """Upper bound of the epsilon at a delta of several steps, whose rhos add up; inf if there is none."""
        total = self.rho * units**2 * steps
        return epsilon_of_one(ConcentratedGuarantee(total), delta=delta) if total <= LARGEST_RHO else math.inf


Promise: TypeAlias = EpsilonPromise | ConcentratedPromise
"""The guarantee of one step about one privacy unit."""
