"""Source of the correlation of a plan, and the cost of learning it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from temporaldp.base.names import printable, state_names
from temporaldp.base.values import ULP
from temporaldp.core.planning.clock import Clock


@dataclass(frozen=True, slots=True)
class Source:
    """Source of the correlation that a plan was made for.

    Parameters
    ----------
    states : tuple of str or None
        The states that the correlation names.
    step : str or None
        Length of a step, where the traces that the correlation was estimated from have times.
    provenance : str or None
        Description of the source. A plan that was made from the protected data depends on them.
    warning : str or None
        Warning to print before anything made with the plan is published; None without one.
    learning_epsilon : float
        Cost of learning the correlation with differential privacy, in nats; 0 otherwise.
    has_phases : bool
        Whether matrices vary from step to step, as with a clock, so that the budgets of a plan belong to certain steps.
    clock : Clock or None
        The clock and the phase of the first step, where they are known.
    """

    states: tuple[str, ...] | None = None
    step: str | None = None
    provenance: str | None = None
    warning: str | None = None
    learning_epsilon: float = 0.0
    has_phases: bool = False
    clock: Clock | None = None

    def __post_init__(self) -> None:
        state_names(self.states or ())
        for name in ("step", "provenance", "warning"):
            printable(getattr(self, name), f"{name} of a plan")

    def in_all(self, alpha: float, delta: float) -> tuple[float, float]:
        """The level of a release at (alpha, delta) together with all that is published about its correlation.

        alpha + epsilon, at a delta up to e^epsilon times as large (Theory, section 12); both rounded up.
        """
        spent = self.learning_epsilon
        level = alpha + spent
        if Fraction(level) < Fraction(alpha) + Fraction(spent):
            level = math.nextafter(level, math.inf)
        return level, min(1.0, delta * math.exp(spent) * (1.0 + 4.0 * ULP)) if delta else 0.0

    def with_learning_of(self, other: Source) -> Source:
        """Add the cost of learning another correlation, unless both sources are the same."""
        if not other.learning_epsilon or other.provenance == self.provenance:
            return self
        spent = math.nextafter(self.learning_epsilon + other.learning_epsilon, math.inf)
        return replace(self, learning_epsilon=spent if self.learning_epsilon else other.learning_epsilon)
