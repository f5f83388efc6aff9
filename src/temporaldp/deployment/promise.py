"""What a record promises of one step, by kind: epsilon; epsilon and delta; rho. Several units add up by group privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from temporaldp.errors import InputError
from temporaldp.mechanisms import Mechanism, PrivacyGuarantee
from temporaldp.mechanisms.concentrated import LARGEST_RHO, LEAST_RHO, ConcentratedGuarantee
from temporaldp.mechanisms.protocol import epsilon_of_one

DELTA = 1e-6
"""At which leakage is told where a promise is no pure one and nobody says otherwise."""

ABOVE_THE_PROMISED = 1000.0
"""Times the delta of a step: the deltas of many steps are in the delta of one value."""

LARGEST_EPSILON = 1e4
"""Nats. A record with more has something else in mind."""


class Promise(Protocol):
    """What one step promises about one privacy unit."""

    @property
    def sentence(self) -> str:
        """In the record's terms."""

    @property
    def brief(self) -> str:
        """In a table, without its name where it is an epsilon."""

    @property
    def default_delta(self) -> float:
        """At which delta leakage is told unless somebody says; 0 for pure differential privacy."""

    def mechanism(self, units: int) -> Mechanism:
        """What is known of a release when so many units change: group privacy."""

    def times(self, share: float) -> Promise:
        """The same promise with a larger or smaller budget."""

    def together(self, units: int, steps: int, delta: float) -> float:
        """The epsilon at this delta of so many steps, each with so many units; an upper bound, inf if there is none."""


@dataclass(frozen=True, slots=True)
class PurePromise:
    """epsilon-differential privacy a step."""

    epsilon: float

    def __post_init__(self) -> None:
        _require("epsilon", self.epsilon, LARGEST_EPSILON)

    @property
    def sentence(self) -> str:
        """In the record's terms."""
        return f"epsilon = {self.epsilon:.10g}"

    @property
    def brief(self) -> str:
        """The number."""
        return f"{self.epsilon:.6g}"

    @property
    def default_delta(self) -> float:
        """None is needed."""
        return 0.0

    def mechanism(self, units: int) -> PrivacyGuarantee:
        """Epsilons add up."""
        return PrivacyGuarantee(self.epsilon * units)

    def times(self, share: float) -> PurePromise:
        """Another epsilon."""
        return PurePromise(self.epsilon * share)

    def together(self, units: int, steps: int, delta: float) -> float:
        """Epsilons add up."""
        return self.epsilon * units * steps


@dataclass(frozen=True, slots=True)
class ApproximatePromise:
    """(epsilon, delta)-differential privacy a step."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _require("epsilon", self.epsilon, LARGEST_EPSILON)
        if not 0.0 < self.delta < 1.0:
            raise InputError(f"expected delta between 0 and 1, got {self.delta!r}")

    @property
    def sentence(self) -> str:
        """In the record's terms."""
        return f"epsilon = {self.epsilon:.10g}, delta = {self.delta:.10g}"

    @property
    def brief(self) -> str:
        """Both numbers."""
        return f"{self.epsilon:.6g} ({self.delta:.3g})"

    @property
    def default_delta(self) -> float:
        """Well above the delta of a step, since those of many steps add up."""
        return min(max(DELTA, ABOVE_THE_PROMISED * self.delta), 0.5)

    def mechanism(self, units: int) -> PrivacyGuarantee:
        """Group privacy: epsilons add up, and the k-th delta counts ``e^((k - 1) epsilon)`` times."""
        total = math.fsum(self.delta * math.exp(min(k * self.epsilon, 700.0)) for k in range(units))
        if total >= 1.0:
            raise InputError(
                f"expected a promise that says something about {units} units together, but by group privacy its delta is "
                f"{total:.3g}, above 1; choose a --unit in which a change of value is one unit"
            )
        return PrivacyGuarantee(self.epsilon * units, total)

    def times(self, share: float) -> ApproximatePromise:
        """Another epsilon, the same delta."""
        return ApproximatePromise(self.epsilon * share, self.delta)

    def together(self, units: int, steps: int, delta: float) -> float:
        """Basic composition."""
        one = self.mechanism(units)
        return one.epsilon * steps if one.delta * steps <= delta else math.inf


@dataclass(frozen=True, slots=True)
class ConcentratedPromise:
    """rho-zero-concentrated differential privacy a step."""

    rho: float

    def __post_init__(self) -> None:
        if not LEAST_RHO <= self.rho <= LARGEST_RHO:
            raise InputError(f"expected rho from {LEAST_RHO:g} to {LARGEST_RHO:g}, got {self.rho!r}")

    @property
    def sentence(self) -> str:
        """In the record's terms."""
        return f"rho = {self.rho:.10g} (zero-concentrated)"

    @property
    def brief(self) -> str:
        """The number with its name."""
        return f"rho {self.rho:.6g}"

    @property
    def default_delta(self) -> float:
        """Rho has none of its own."""
        return DELTA

    def mechanism(self, units: int) -> ConcentratedGuarantee:
        """Group privacy: k units, k^2 rho."""
        return ConcentratedGuarantee(self.rho * units**2)

    def times(self, share: float) -> ConcentratedPromise:
        """Another rho."""
        return ConcentratedPromise(self.rho * share)

    def together(self, units: int, steps: int, delta: float) -> float:
        """Rhos add up."""
        total = self.rho * units**2 * steps
        return epsilon_of_one(ConcentratedGuarantee(total), delta=delta) if total <= LARGEST_RHO else math.inf


def _require(name: str, value: float, most: float) -> None:
    if not (math.isfinite(value) and 0.0 < value <= most):
        raise InputError(f"expected {name} to be a number > 0 and at most {most:g} (nats), got {value!r}")
