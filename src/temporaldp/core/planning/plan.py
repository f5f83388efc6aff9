"""Base class of plans that satisfy a level at every step: of budgets, or of noise at a delta."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from temporaldp.base.arrow import Table
from temporaldp.base.display import bound, draw, spread, summary
from temporaldp.base.errors import BudgetError
from temporaldp.base.values import FloatArray, read_only
from temporaldp.core.accounting import LeakageSeries, LeakageSupremum, leakage_supremum, temporal_leakage
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.core.correlation import Adversaries, Provenance
from temporaldp.core.correlation.provenance import UNSTATED
from temporaldp.core.planning.guarantee import TEMPORAL, Guarantee
from temporaldp.core.planning.histogram_noise import Noise, mean_absolute_noise
from temporaldp.core.planning.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Method: TypeAlias = Literal["optimal", "upper_bound", "quantified", "uniform"]
Objective: TypeAlias = Literal["mean_absolute_error", "mean_squared_error"]


@dataclass(frozen=True, slots=True)
class Optimality:
    """Objective of an optimal plan, and a bound on its distance from the optimum.

    Parameters
    ----------
    objective : {"mean_absolute_error", "mean_squared_error"}
        What the plan minimises: the mean of 1 / epsilon, or of 1 / epsilon^2, weighted if weights were given.
    error : float
        Value of the objective; for a noise plan, the mean absolute noise of a count, in people.
    error_bound : float or None
        Certified lower bound of the error of all budgets that satisfy alpha by the paper's bound, so that ``error / error_bound
        - 1`` bounds the relative distance from the optimum. None for the exact leakage, where the plan is a local optimum
        without a certificate. For a noise plan: lower bound over all noise of its kind that satisfies alpha by the same
        accounting method.
    """

    objective: Objective
    error: float
    error_bound: float | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Plan(Table):
    """Base class of budget plans and noise plans.

    Parameters
    ----------
    leakage : LeakageSeries, or LeakageSupremum where the horizon is unknown
        By this package's accounting; its ``worst`` never exceeds alpha, not by one ulp.
    alpha : float
        The level that is satisfied, in nats.
    states : tuple of str or None
        The states that the correlation names.
    has_phases : bool
        Whether budgets belong to certain steps, so that no step may be left out, as with a clock and a horizon.
    provenance : Provenance
        Where the correlation comes from. A plan that was made from the protected data depends on them.
    optimality : Optimality or None
        The objective of an optimal plan, and a bound on its distance from the optimum.
    guarantee : Guarantee
        What alpha is about. By default, the temporal level.
    """

    leakage: LeakageSeries | LeakageSupremum
    alpha: float
    states: tuple[str, ...] | None = None
    has_phases: bool = False
    provenance: Provenance = UNSTATED
    optimality: Optimality | None = None
    guarantee: Guarantee = TEMPORAL

    def __repr__(self) -> str:
        steps = "any number of steps" if self.horizon is None else f"{self.horizon} steps"
        worst = self.leakage.written(digits=6)
        return f"{type(self).__name__}({self.description}, {self.level}, {steps}, worst leakage {worst})"

    def plot(self, *, times: Sequence[object] | None = None, ax: Axes | None = None) -> Any:
        """Draw the leakage and the budgets of a plan with a horizon; otherwise as `LeakageSeries.plot`.

        A new figure has two plots, one below the other. On `ax`, budgets are a line among the others.

        Raises
        ------
        InputError
            The plan has no horizon.
        """
        return draw(self, ax=ax, times=times)

    def columns(self) -> dict[str, Any]:
        """One row per step: step, epsilon and scale (of the noise of a count); one row in all without a horizon."""
        return {"step": np.arange(len(self.epsilons)), "epsilon": self.epsilons, "scale": self.scales}

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        shown = {
            "holds": self.level,
            "for": "any number of steps" if self.horizon is None else f"{self.horizon} steps",
            "how": self.description,
            "each release by itself, in nats": spread(self.epsilons, down=True),
            "leaks at worst, in nats": self.leakage.written(digits=6),
            "mean absolute noise of a count": f"{self.mean_absolute_noise:.3g}",
        }
        return summary(type(self).__name__, shown, f"accounted: {self.leakage.label}")

    @property
    def horizon(self) -> int | None:
        """Number of steps T; None for a plan over an infinite horizon."""
        return len(self.leakage) if isinstance(self.leakage, LeakageSeries) else None

    @property
    def n_drawn(self) -> int | None:
        """Number of steps whose counts are drawn; others, of weight 0, are not published. None for an infinite horizon."""
        return None if self.horizon is None else int(np.isfinite(self.scales).sum())

    @property
    def epsilons(self) -> FloatArray:
        """Leakage of each step by itself, in nats, shape (T,); shape (1,), for every step, with an unknown horizon."""
        return self.leakage.epsilons if isinstance(self.leakage, LeakageSeries) else read_only([self.leakage.epsilon])

    @property
    def accounting(self) -> Accounting[Any, Any]:
        """The method by which alpha is satisfied: that of the leakage."""
        return self.leakage.accounting

    @property
    def delta(self) -> float:
        """The delta of the epsilons and the leakage; 0 for a plan of budgets."""
        return self.leakage.delta

    @property
    def level(self) -> str:
        """The level that is satisfied, in words."""
        at = f", delta = {self.delta:g}" if self.delta else ""
        if self.guarantee.is_temporal:
            return f"alpha = {bound(self.alpha)}{at}"
        return f"epsilon = {bound(self.alpha)}{at}, {self.guarantee.wording.label}"

    @property
    def alpha_in_all(self) -> float:
        """The level that the release satisfies together with all that is published about its correlation, in nats.

        At a delta, so much is added to it as `provenance` names.
        """
        return self.provenance.in_all(self.alpha, self.delta)[0]

    @property
    def mean_absolute_noise(self) -> float:
        """Expected absolute noise of one count of a histogram under the plan, averaged over the steps."""
        return mean_absolute_noise(self.scales, self.noise)

    @property
    @abstractmethod
    def noise(self) -> Noise:
        """The noise of a histogram that is released under the plan."""

    @property
    @abstractmethod
    def scales(self) -> FloatArray:
        """Scale of the noise at each step, in counts, of the shape of `epsilons`; inf for a step that is not published."""

    @property
    @abstractmethod
    def description(self) -> str:
        """Description of the method, in words."""

    @property
    def terms(self) -> dict[str, Any]:
        """Terms of the plan that a ledger records beside its level, as JSON values."""
        return {}

    @property
    @abstractmethod
    def identity(self) -> list[Any]:
        """Data that distinguish the plan from others with the same level, as JSON values."""

    @abstractmethod
    def measurement(
        self, mechanism: Callable[[Any, float], Any], step: int, epsilon: float | None = None
    ) -> Measurement:
        """Measurement by a mechanism at a step (from 0); `epsilon` requests another budget, 0 to publish nothing.

        Raises
        ------
        BudgetError
            The plan has no such step, does not grant that budget, or grants less than the mechanism spends.
        """

    @abstractmethod
    def require_mechanism(self, mechanism: Any) -> None:
        """Raise `InputError` for a mechanism that does not fit this kind of plan."""

    @abstractmethod
    def charge(self, epsilons: Sequence[float], *, last: bool = False) -> None:
        """Charge the accountants of the blocks around the caller with steps of the plan.

        Raises
        ------
        LeakageBudgetError
            One of them refuses; then none is charged.
        BudgetError
            They cannot count such steps.
        """

    @abstractmethod
    def releases(self, n_steps: int) -> Sequence[Any] | FloatArray:
        """The first steps of the plan as an accounting method takes them: budgets, or mechanisms."""

    @property
    @abstractmethod
    def for_others(self) -> Accounting[Any, Any]:
        """The accounting method for adversaries that the plan was not made for."""

    def leakage_to(
        self, adversary: Adversaries, n_steps: int, *, accounting: Accounting[Any, Any] | None = None
    ) -> LeakageSeries:
        """Leakage of the plan's first steps to any adversary, by the plan's accounting method or another one."""
        return temporal_leakage(adversary, self.releases(n_steps), accounting=accounting or self.for_others)

    def supremum_to(
        self, adversary: Adversaries, *, accounting: Accounting[Any, Any] | None = None
    ) -> LeakageSupremum | None:
        """Leakage of the plan over an infinite horizon; None for a plan with a horizon."""
        if self.horizon is not None:
            return None
        return leakage_supremum(adversary, self.releases(1)[0], accounting=accounting or self.for_others)

    def measurements(
        self, mechanism: Callable[[Any, float], Any], n_steps: int, *, start: int = 0
    ) -> list[Measurement]:
        """Return the measurements of `n_steps` steps from step `start` on.

        Errors are those of `require_mechanism` and `measurement`.
        """
        self.require_mechanism(mechanism)
        self.epsilons_for(n_steps, start=start)  # refuses what the plan is too short for
        return [self.measurement(mechanism, step) for step in range(start, start + n_steps)]

    def epsilons_for(self, n_steps: int, *, start: int = 0) -> FloatArray:
        """The epsilons of `n_steps` steps from step `start` on, shape (n_steps,). Stopping early leaks less, never more.

        Raises
        ------
        BudgetError
            The plan has fewer steps.
        """
        return self._for_steps(self.epsilons, n_steps, start)

    def scales_for(self, n_steps: int, *, start: int = 0) -> FloatArray:
        """The scales of a histogram's noise at `n_steps` steps from step `start` on, shape (n_steps,), in counts.

        Raises
        ------
        BudgetError
            The plan has fewer steps.
        """
        return self._for_steps(self.scales, n_steps, start)

    @abstractmethod
    def drawn_scales(self, steps: list[int], epsilons: FloatArray) -> FloatArray:
        """The scales of a histogram's noise, in counts, at steps (from 0) that spent these epsilons."""

    def _for_steps(self, each: FloatArray, n_steps: int, start: int) -> FloatArray:
        if n_steps < 1 or start < 0:
            raise BudgetError(f"expected at least 1 step from step 0 or later, got {n_steps} from step {start}")
        if self.horizon is None:
            return np.full(n_steps, each[0])
        end = start + n_steps
        if end > self.horizon:
            needed = f"{n_steps}" if not start else f"{n_steps} after {start}"
            raise BudgetError(
                f"the plan is shorter than the data: it is for {self.horizon} steps, the data have {needed}; plan again for "
                f"{end} steps, or without a horizon"
            )
        return np.array(each[start:end])
