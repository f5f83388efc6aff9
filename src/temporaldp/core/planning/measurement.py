"""Measurement of one step of a plan: a mechanism, the number that it is called with, and what that spends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.values import FloatArray
from temporaldp.core.mechanisms.distances import require_no_nearer
from temporaldp.core.planning.histogram_noise import Noise


@runtime_checkable
class AccountedMechanism(Protocol):
    """A mechanism that reports what it spends for a requested budget."""

    def epsilon_spent(self, epsilon: float) -> float:
        """Privacy loss of one call with that budget, in nats."""


@runtime_checkable
class NoiseMechanism(Protocol):
    """A mechanism that is called with the scale of its noise, such as `NoisyHistogram`."""

    @property
    def noise(self) -> Noise:
        """The kind of its noise."""

    def __call__(self, snapshot: Any, scale: float) -> Any:
        """The snapshot with noise of that scale."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measurement of one step, before it is drawn.

    Parameters
    ----------
    mechanism : callable (snapshot, parameter) -> output
    parameter : float
        Argument of the mechanism: a budget, or a scale of noise. 0 for a step that is not published.
    epsilon : float
        Privacy loss of the measurement by itself, in nats; under a noise plan, the epsilon at the plan's delta.
    """

    mechanism: Callable[[Any, float], Any]
    parameter: float
    epsilon: float

    def draw(self, snapshot: Any) -> Any:
        """The step's output; None where nothing is published."""
        return self.mechanism(snapshot, self.parameter) if self.parameter > 0.0 else None


def budget_measurement(mechanism: Callable[[Any, float], Any], budget: float, step: int) -> Measurement:
    """The measurement of a step with a budget; it spends what the mechanism reports, or the whole budget.

    Raises
    ------
    BudgetError
        The mechanism reports that it spends more than the budget.
    """
    spent = budget
    if budget > 0.0 and isinstance(mechanism, AccountedMechanism):
        spent = float(mechanism.epsilon_spent(budget))
    if not 0.0 <= spent <= budget:
        raise BudgetError(f"the mechanism reports a loss of {spent!r} at step {step}, but the plan grants {budget!r}")
    return Measurement(mechanism, budget, spent)


def require_budget_mechanism(mechanism: Any, *metrics: FloatArray | None) -> None:
    """Refuse a mechanism that cannot be called with a budget, would misread it, or leaks more than is counted.

    `metrics` are those by which the budget is counted: a mechanism that reports a loss means it for any two states, also for
    those which a metric puts closer together than 1.

    Raises
    ------
    InputError
        The mechanism is not callable, expects a scale of noise, or does not fit a metric.
    """
    if not callable(mechanism):
        raise InputError(f"expected a mechanism that can be called with (snapshot, epsilon), got {mechanism!r}")
    if isinstance(mechanism, NoiseMechanism):
        raise InputError(
            f"expected a mechanism that can be called with (snapshot, epsilon), got {mechanism!r}, which is called with the "
            "scale of its noise: it goes with a plan of plan_noise"
        )
    if isinstance(mechanism, AccountedMechanism):
        for metric in metrics:
            require_no_nearer(metric, repr(mechanism))
