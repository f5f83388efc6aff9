"""A plan of budgets, for any mechanism that is called with one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from temporaldp.base.display import apart
from temporaldp.base.errors import BudgetError
from temporaldp.base.names import state_names
from temporaldp.base.values import FloatArray, compared_by_value, copy_in
from temporaldp.core.accounting import accounting_blocks
from temporaldp.core.accounting.exact.method import Exact
from temporaldp.core.accounting.paper.method import PAPER
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.core.planning.histogram_noise import Noise, laplace_scales
from temporaldp.core.planning.measurement import (
    Measurement,
    budget_measurement,
    require_budget_mechanism,
)
from temporaldp.core.planning.plan import Method, Plan

PLANNERS: dict[Method, str] = {
    "optimal": "the least noise that was found for this horizon",
    "upper_bound": "one budget for an infinite horizon",
    "quantified": "larger budgets at both ends",
    "uniform": "alpha divided by the number of steps",
}


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class BudgetPlan(Plan):
    """Budgets that keep temporal privacy leakage at or below alpha at every step; from `plan_budget`.

    Any mechanism can be called with these budgets; a histogram has discrete Laplace noise of `scales`.

    Parameters
    ----------
    leakage, alpha, states, has_phases, provenance, optimality
        As of every plan: the leakage of these budgets, the level; the states of the correlation, whether steps differ, and
        where it comes from; and the objective of an optimal plan with a bound on its distance from the optimum.
    epsilons : array, shape (T,), or (1,) with an unknown horizon
        The budgets, in nats.
    method : {"optimal", "upper_bound", "quantified", "uniform"}
        The method of planning.
    """

    epsilons: FloatArray = field()  # `field()`, or the base's property would be taken for a default
    method: Method

    def __post_init__(self) -> None:
        copy_in(self, "epsilons")
        state_names(self.states or ())

    @property
    def noise(self) -> Noise:
        """Noise of a histogram under a budget: discrete Laplace."""
        return "laplace"

    @property
    def scales(self) -> FloatArray:
        """Scale of the noise of a histogram at each step, in counts."""
        return laplace_scales(self.epsilons)

    @property
    def description(self) -> str:
        """The method, and the paper's bound where the leakage is by that."""
        made = f"{self.method.replace('_', ' ')}: {PLANNERS[self.method]}"
        return f"{made}, held by the paper's upper bound" if self.accounting == PAPER else made

    def measurement(
        self, mechanism: Callable[[Any, float], Any], step: int, epsilon: float | None = None
    ) -> Measurement:
        """Measurement by a mechanism with the step's budget, or with a smaller one: spending less leaks less."""
        granted = float(self.epsilons_for(1, start=step)[0])
        found = budget_measurement(mechanism, granted if epsilon is None else epsilon, step)
        if found.epsilon > granted:
            most, asked = apart(granted, found.epsilon)
            raise BudgetError(f"epsilon = {asked} is more than the plan grants, epsilons[{step}] = {most}")
        return found

    @property
    def identity(self) -> list[Any]:
        """Data that identify the plan, with the accounting method."""
        return [self.horizon, self.epsilons.tolist(), self.terms, self.accounting.document()]

    def require_mechanism(self, mechanism: Any) -> None:
        """Refuse a mechanism that is not called with a budget, or leaks more than the plan or an accountant counts."""
        require_budget_mechanism(
            mechanism, self.accounting.distances, *(one.accounting.distances for one in accounting_blocks.charged())
        )

    def charge(self, epsilons: Sequence[float], *, last: bool = False) -> None:
        """Charge all accountants of the enclosing blocks, or none."""
        accounting_blocks.charge(epsilons, last=last, counted=self.accounting)

    def drawn_scales(self, steps: list[int], epsilons: FloatArray) -> FloatArray:
        """Scales of the noise of the budgets that were spent, which may be smaller than the plan's."""
        return laplace_scales(epsilons)

    def releases(self, n_steps: int) -> FloatArray:
        """The budgets, which stand for any mechanisms."""
        return self.epsilons_for(n_steps)

    @property
    def for_others(self) -> Accounting[Any, Any]:
        """The exact leakage, of the plan's distances if it has some."""
        has_distances = self.accounting.distances is not None
        return self.accounting if has_distances else Exact(effort=self.accounting.effort)
