"""A plan of noise on the counts of a histogram, at a delta."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.names import state_names
from temporaldp.base.values import FloatArray, compared_by_value, copy_in, real_array
from temporaldp.core.accounting import accounting_blocks
from temporaldp.core.accounting.curve.method import ApproximateDP
from temporaldp.core.mechanisms import Mechanism
from temporaldp.core.planning.histogram_noise import Noise, histogram_profile
from temporaldp.core.planning.measurement import Measurement, NoiseMechanism
from temporaldp.core.planning.plan import Plan


def planned_grid(alpha: float, *, pairwise: bool = False) -> float:
    """Grid on which a noise plan satisfies alpha, in nats; on another grid the bound may be slightly larger."""
    # As many points up to alpha for every scale, so that leakage falls as noise grows. Curves of pairs have a coarser grid,
    # because their time falls with the square of its width; the leakage of the plan includes what that costs.
    return min(alpha / 2048.0 * (4 if pairwise else 1), 0.01)


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class NoisePlan(Plan):
    """Noise on the counts of a histogram that satisfies (alpha, delta)-DP_T at every step; from `plan_noise`.

    `epsilons` and the leakage are upper bounds at this delta. The noise is fixed before the first step: hockey-stick
    divergences do not compose along paths on which it is chosen by what came out before.

    Parameters
    ----------
    leakage, alpha, states, has_phases, provenance, optimality
        As of every plan: the leakage of this noise, at a delta > 0; the level; the states of the correlation, whether steps
        differ, and where it comes from; and, with a horizon, the mean noise with its lower bound by the same accounting.
    noise : {"gaussian", "laplace"}
        Discrete Gaussian or discrete Laplace noise, independent on every count.
    scales : array, of the shape of `epsilons`
        Scale of the noise at each step, in counts.
    """

    noise: Noise = field()  # as for `BudgetPlan.epsilons`
    scales: FloatArray = field()

    def __post_init__(self) -> None:
        copy_in(self, "scales")
        state_names(self.states or ())
        if not self.delta > 0.0:
            raise InputError("expected the leakage of a noise plan to be at a delta > 0, got one with delta = 0")
        real_array(self.scales, "scales", shape=self.epsilons.shape, gt=0.0)

    @property
    def description(self) -> str:
        """Kind and scale of the noise."""
        low, high = (f"{scale:.4g}" for scale in (self.scales.min(), self.scales.max()))
        return f"discrete {self.noise.capitalize()} noise of scale {low if low == high else f'{low} to {high}'} counts"

    @property
    def terms(self) -> dict[str, Any]:
        """Delta, kind of noise, and number of steps."""
        return {"delta": self.delta, "noise": self.noise, "horizon": self.horizon}

    @property
    def identity(self) -> list[Any]:
        """Data that identify the plan, including every scale."""
        return [self.terms, self.epsilons.tolist(), self.scales.tolist()]

    def measurement(
        self, mechanism: Callable[[Any, float], Any], step: int, epsilon: float | None = None
    ) -> Measurement:
        """Measurement with the step's noise, which may not depend on earlier outputs; with epsilon 0, none."""
        scale, spent = (float(each[0]) for each in (self.scales_for(1, start=step), self.epsilons_for(1, start=step)))
        if epsilon == 0.0:
            return Measurement(mechanism, 0.0, 0.0)
        if epsilon is not None:
            raise BudgetError(
                f"expected no epsilon for a step of a noise plan, got {epsilon!r}: at a delta the noise is fixed before the "
                "first step, because hockey-stick divergences do not compose along adaptive paths. Leave the epsilon out, "
                "pass over the step, or plan budgets with delta = 0, which may be chosen as one goes"
            )
        return Measurement(mechanism, scale, spent)

    def require_mechanism(self, mechanism: Any) -> None:
        """Refuse a mechanism that is not called with the scale of this kind of noise."""
        if not isinstance(mechanism, NoiseMechanism):
            raise InputError(
                f"expected a mechanism that can be called with (snapshot, scale) and names its noise, such as "
                f"NoisyHistogram(n_states, {self.noise!r}), got {mechanism!r}: a plan of plan_noise gives scales, not budgets"
            )
        if mechanism.noise != self.noise:
            raise InputError(f"expected a mechanism with {self.noise} noise, which the plan is for, got {mechanism!r}")

    def charge(self, epsilons: Sequence[float], *, last: bool = False) -> None:
        """Refuse enclosing accountants, which count budgets with delta = 0."""
        if accounting_blocks.charged():
            raise BudgetError(
                "a TemporalAccountant counts epsilons with delta = 0, and this noise is planned for a delta: release outside "
                "its block, under the plan"
            )

    def drawn_scales(self, steps: list[int], epsilons: FloatArray) -> FloatArray:
        """Scales of the plan, independent of the epsilons."""
        return np.array([self.scales_for(1, start=step)[0] for step in steps])

    def releases(self, n_steps: int) -> list[Mechanism]:
        """The noise of the histogram of each step."""
        return [histogram_profile(self.noise, scale) for scale in self.scales_for(n_steps).tolist()]

    @property
    def for_others(self) -> ApproximateDP:
        """The plan's own method, on its own grid."""
        own = self.accounting
        pairwise = getattr(own, "pairwise", None) is not False
        return ApproximateDP(self.delta, pairwise=pairwise, grid=planned_grid(self.alpha, pairwise=pairwise))
