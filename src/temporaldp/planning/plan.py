"""Plans that hold a level at every step: of budgets, or of noise at a delta."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import LeakageSeries, LeakageSupremum, accounting_blocks, leakage_supremum, temporal_leakage
from temporaldp.accounting.protocol import AccountingName, AnyBound, Bound
from temporaldp.arrow import arrow_stream
from temporaldp.correlation import Adversaries, Population
from temporaldp.display import draw, spread, summary
from temporaldp.errors import BudgetError, InputError
from temporaldp.planning.histogram_noise import Noise, histogram_profile, laplace_scales, mean_absolute_noise
from temporaldp.planning.measurement import (
    Measurement,
    budget_measurement,
    require_budget_mechanism,
    require_noise_mechanism,
)
from temporaldp.planning.source import Source
from temporaldp.planning.verified_noise import Verification, is_verified, verified_series
from temporaldp.values import compared_by_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOWHERE = Source()
"""Of a plan that does not say where its correlation comes from."""

FloatArray = NDArray[np.float64]
Method: TypeAlias = Literal["optimal", "upper_bound", "quantified", "uniform"]
Objective: TypeAlias = Literal["mean_absolute_error", "mean_squared_error"]

GRID = 2048.0
"""Points of the grid of privacy losses up to alpha: the same for every scale, so that leakage falls as noise grows."""


PAIR_GRID = 4
"""Times the grid of one curve is that of a curve for each pair: what that costs falls with its square, and is in the plan."""


def planned_discretization(alpha: float, bound: AccountingName = "curve") -> float:
    """The grid on which a noise plan for alpha is held, in nats: who checks it on another may find a little more."""
    return min(alpha / GRID * (PAIR_GRID if bound == "pair_curve" else 1), 0.01)


@dataclass(frozen=True, slots=True)
class Optimality:
    """How good an optimal plan is.

    Parameters
    ----------
    objective : {"mean_absolute_error", "mean_squared_error"}
        What the plan minimises: the mean of 1 / epsilon, or of 1 / epsilon^2, weighted if weights were given.
    error : float
        The objective's value; of a noise plan the mean absolute noise of a count.
    error_bound : float or None
        A certified lower bound: no budgets that hold alpha by the paper's bound have a smaller error, so ``error / error_bound
        - 1`` is the most that the plan can be short of optimal. None by the exact leakage: the plan is a local optimum (no
        small change of its budgets has less noise and holds alpha), and nothing is certified about plans far from it. Of a
        noise plan: no noise of its kind whose leakage its own accounting bounds by alpha has a smaller error.
    """

    objective: Objective
    error: float
    error_bound: float | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Plan(ABC):
    """What budget plans and noise plans have in common.

    Parameters
    ----------
    leakage : LeakageSeries, or LeakageSupremum where the horizon is unknown
        By this package's own accounting; its ``worst`` never exceeds alpha, not by one ulp.
    alpha : float
        The level that is held, in nats.
    source : Source
        Where the correlation comes from.
    """

    leakage: LeakageSeries | LeakageSupremum
    alpha: float
    source: Source = NOWHERE

    def __repr__(self) -> str:
        steps = "any number of steps" if self.horizon is None else f"{self.horizon} steps"
        return (
            f"{type(self).__name__}({self.description}, {self.level}, {steps}, worst leakage {self.leakage.worst:.6g})"
        )

    def plot(self, *, times: Sequence[object] | None = None, ax: Axes | None = None) -> Any:
        """Draw what leaks under a plan with a horizon, and what each step spends; otherwise as `LeakageSeries.plot`.

        A new figure has two plots, one below the other. On `ax`, what the steps spend is a line among the others.

        Raises
        ------
        InputError
            The plan has no horizon.
        """
        return draw(self, ax=ax, times=times)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A row for each step, with the columns step, epsilon and scale (of a count's noise), for any library that reads Arrow.

        Without a horizon, the one row that holds for every step.
        """
        columns = {"step": np.arange(len(self.epsilons)), "epsilon": self.epsilons, "scale": self.scales}
        return arrow_stream(columns, requested_schema)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        shown = {
            "holds": self.level,
            "for": "any number of steps" if self.horizon is None else f"{self.horizon} steps",
            "how": self.description,
            "each release by itself, in nats": spread(self.epsilons),
            "leaks at worst, in nats": f"{self.leakage.worst:.6g}",
            "mean absolute noise of a count": f"{self.mean_absolute_noise:.3g}",
        }
        return summary(type(self).__name__, shown, f"accounted: {self.bound}")

    @property
    def horizon(self) -> int | None:
        """Number of steps T; None if the plan holds for ever."""
        return len(self.leakage) if isinstance(self.leakage, LeakageSeries) else None

    @property
    def epsilons(self) -> FloatArray:
        """What each step leaks by itself, in nats, shape (T,); with an unknown horizon the one number of every step, (1,)."""
        return self.leakage.epsilons if isinstance(self.leakage, LeakageSeries) else _frozen([self.leakage.epsilon])

    @property
    def bound(self) -> AccountingName:
        """The way of accounting by which alpha is held, as its leakage says."""
        return self.leakage.bound

    @property
    def delta(self) -> float:
        """The delta at which epsilons and leakage are; 0 for a plan of budgets."""
        return self.leakage.delta

    @property
    def level(self) -> str:
        """What is held, in words."""
        return f"alpha = {self.alpha:g}" + (f", delta = {self.delta:g}" if self.delta else "")

    @property
    def alpha_in_all(self) -> float:
        """The level that the release and all that is published about its correlation hold together, in nats.

        At a delta it is held at `delta_in_all`.
        """
        return self.source.in_all(self.alpha, self.delta)[0]

    @property
    def delta_in_all(self) -> float:
        """The delta of that level."""
        return self.source.in_all(self.alpha, self.delta)[1]

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
        """Its scale at each step, in counts, of the shape of `epsilons`; inf for a step that is not published."""

    @property
    @abstractmethod
    def description(self) -> str:
        """How the plan was made, in words."""

    @property
    def terms(self) -> dict[str, Any]:
        """What a ledger says of the plan beside its level, as JSON values."""
        return {}

    @property
    def identity(self) -> list[Any]:
        """What makes it another plan than others with the same level, as JSON values."""
        return [self.horizon, self.epsilons.tolist(), self.terms]

    @abstractmethod
    def measurement(
        self, mechanism: Callable[[Any, float], Any], step: int, epsilon: float | None = None
    ) -> Measurement:
        """What a mechanism draws at a step (from 0), and what that spends; `epsilon` asks for another budget than the plan's.

        Raises
        ------
        BudgetError
            The plan has no such step, does not grant that budget, or grants less than the mechanism spends.
        """

    @abstractmethod
    def require_mechanism(self, mechanism: Any) -> None:
        """Refuse a mechanism that does not go with this kind of plan, by InputError."""

    @abstractmethod
    def charge(self, epsilons: Sequence[float], *, last: bool = False) -> None:
        """Charge the accountants of the blocks around the caller with steps of the plan.

        Raises
        ------
        LeakageBudgetError
            One of them refuses; then nobody is charged.
        BudgetError
            They cannot count such steps.
        """

    @abstractmethod
    def leakage_to(self, adversary: Adversaries, n_steps: int, *, bound: Bound = "exact") -> LeakageSeries:
        """What the plan's first steps leak to somebody, who need not be the one that it was made for."""

    @abstractmethod
    def supremum_to(self, adversary: Adversaries, *, bound: Bound = "exact") -> LeakageSupremum | None:
        """What the plan leaks to somebody if it goes on for ever; None for a plan with a horizon."""

    def measurements(
        self, mechanism: Callable[[Any, float], Any], n_steps: int, *, start: int = 0
    ) -> list[Measurement]:
        """The measurements of `n_steps` steps from step `start` on. Errors as for `require_mechanism` and `measurement`."""
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


METHODS: dict[Method, str] = {
    "optimal": "the least noise that was found for this horizon",
    "upper_bound": "one budget that holds for ever",
    "quantified": "larger budgets at both ends",
    "uniform": "alpha divided by the number of steps",
}


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class BudgetPlan(Plan):
    """Budgets that hold temporal privacy leakage at or below alpha at every step; from `plan_budget`.

    Any mechanism can be called with them; a histogram then has discrete Laplace noise of `scales`.

    Parameters
    ----------
    leakage, alpha, source
        As for every plan: the leakage of these budgets, the level, and where the correlation comes from.
    epsilons : array, shape (T,), or (1,) with an unknown horizon
        The budgets, in nats.
    method : {"optimal", "upper_bound", "quantified", "uniform"}
        How it was made.
    optimality : Optimality or None
        Of an optimal plan, what it minimises and how far from least that can be.
    metric : array, shape (n, n), or None
        The distances between values that the budgets multiply; None for plain privacy.
    """

    epsilons: FloatArray = field()  # `field()`, or the base's property would be taken for a default
    method: Method
    optimality: Optimality | None = None
    metric: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in ("epsilons", "metric"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _frozen(getattr(self, name)))

    @property
    def noise(self) -> Noise:
        """Discrete Laplace noise is what a histogram has under a budget."""
        return "laplace"

    @property
    def scales(self) -> FloatArray:
        """The scale of that noise at each step, in counts."""
        return laplace_scales(self.epsilons)

    @property
    def description(self) -> str:
        """The method, and the bound if it is the paper's."""
        made = f"{self.method.replace('_', ' ')}: {METHODS[self.method]}"
        return f"{made}, held by the paper's upper bound" if self.bound == "paper" else made

    def measurement(
        self, mechanism: Callable[[Any, float], Any], step: int, epsilon: float | None = None
    ) -> Measurement:
        """What a mechanism draws with the step's budget, or with a smaller one: spending less leaks less."""
        granted = float(self.epsilons_for(1, start=step)[0])
        found = budget_measurement(mechanism, granted if epsilon is None else epsilon, step)
        if found.epsilon > granted:
            raise BudgetError(
                f"epsilon = {found.epsilon:.10g} is more than the plan grants, epsilons[{step}] = {granted:.10g}"
            )
        return found

    @property
    def identity(self) -> list[Any]:
        """With the metric, if there is one."""
        plain: list[Any] = [self.horizon, self.epsilons.tolist(), self.terms]
        return plain if self.metric is None else [*plain, self.metric.tolist()]

    def require_mechanism(self, mechanism: Any) -> None:
        """One that is called with a budget, and promises no less than the plan and the accountants around count."""
        require_budget_mechanism(mechanism, self.metric, *(one.metric for one in accounting_blocks.charged()))

    def charge(self, epsilons: Sequence[float], *, last: bool = False) -> None:
        """All accountants around with all of them, or nobody with anything."""
        accounting_blocks.charge(epsilons, last=last)

    def drawn_scales(self, steps: list[int], epsilons: FloatArray) -> FloatArray:
        """By what was spent, which may be less than the plan grants."""
        return laplace_scales(epsilons)

    def leakage_to(self, adversary: Adversaries, n_steps: int, *, bound: Bound = "exact") -> LeakageSeries:
        """Of any mechanisms with these epsilons."""
        return temporal_leakage(adversary, epsilons=self.epsilons_for(n_steps), bound=bound, metric=self.metric)

    def supremum_to(self, adversary: Adversaries, *, bound: Bound = "exact") -> LeakageSupremum | None:
        """Of any mechanism with this epsilon."""
        if self.horizon is not None:
            return None
        return leakage_supremum(adversary, epsilon=self.epsilons[0], bound=bound, metric=self.metric)


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class NoisePlan(Plan):
    """Noise on the counts of a histogram that holds (alpha, delta)-DP_T at every step; from `plan_noise`.

    `epsilons` and the leakage are upper bounds at this delta. The noise is fixed before the first step: hockey-stick
    divergences do not compose along paths on which it is chosen by what came out before.

    Parameters
    ----------
    leakage, alpha, source
        As for every plan: the leakage of this noise, at a delta > 0; the level; and where the correlation comes from.
    noise : {"gaussian", "laplace"}
        Discrete Gaussian or discrete Laplace noise, on every count by itself.
    scales : array, of the shape of `epsilons`
        Its scale at each step, in counts.
    optimality : Optimality or None
        With a horizon: how far from least its noise can be, by its own accounting.
    verification : Verification or None
        How less noise was looked for by simulation; None if it was not.
    """

    noise: Noise = field()  # as for `BudgetPlan.epsilons`
    scales: FloatArray = field()
    optimality: Optimality | None = None
    verification: Verification | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", _frozen(self.scales))
        if not self.delta > 0.0:
            raise InputError("expected the leakage of a noise plan to be at a delta > 0, got one with delta = 0")
        if self.scales.shape != self.epsilons.shape or not (np.isfinite(self.scales) & (self.scales > 0.0)).all():
            raise InputError(
                f"expected finite scales > 0, one for each of {len(self.epsilons)} epsilons, got {self.scales}"
            )

    @property
    def description(self) -> str:
        """The noise, and how much of it."""
        low, high = (f"{scale:.4g}" for scale in (self.scales.min(), self.scales.max()))
        noise = f"discrete {self.noise.capitalize()} noise of scale {low if low == high else f'{low} to {high}'} counts"
        return f"{noise}, verified by simulation" if self.bound == "verified" else noise

    @property
    def terms(self) -> dict[str, Any]:
        """Delta, kind of noise, and number of steps."""
        return {"delta": self.delta, "noise": self.noise, "horizon": self.horizon}

    @property
    def identity(self) -> list[Any]:
        """With every scale."""
        return [self.terms, self.epsilons.tolist(), self.scales.tolist()]

    def measurement(
        self, mechanism: Callable[[Any, float], Any], step: int, epsilon: float | None = None
    ) -> Measurement:
        """The step's noise, which nothing that was seen may change."""
        if epsilon is not None:
            raise BudgetError(
                f"expected no epsilon for a step of a noise plan, got {epsilon!r}: at a delta the noise is fixed before the "
                "first step, because hockey-stick divergences do not compose along adaptive paths. Leave the epsilon out, "
                "pass over the step, or plan budgets with delta = 0, which may be chosen as one goes"
            )
        scale, spent = (float(each[0]) for each in (self.scales_for(1, start=step), self.epsilons_for(1, start=step)))
        return Measurement(mechanism, scale, spent)

    def require_mechanism(self, mechanism: Any) -> None:
        """One that is called with the scale of this kind of noise."""
        require_noise_mechanism(mechanism, self.noise)

    def charge(self, epsilons: Sequence[float], *, last: bool = False) -> None:
        """Nobody may be around: an accountant counts budgets with delta = 0."""
        if accounting_blocks.charged():
            raise BudgetError(
                "a TemporalAccountant counts epsilons with delta = 0, and this noise is planned for a delta: release outside "
                "its block, under the plan"
            )

    def drawn_scales(self, steps: list[int], epsilons: FloatArray) -> FloatArray:
        """The plan's, whatever the epsilons are."""
        return np.array([self.scales_for(1, start=step)[0] for step in steps])

    def leakage_to(self, adversary: Adversaries, n_steps: int, *, bound: Bound = "exact") -> LeakageSeries:
        """Of this noise, by the accounting and on the grid by which the plan was made.

        Where that does not show that the level of a verified plan is held, the draws by which it was verified are made again.
        """
        profiles = [histogram_profile(self.noise, scale) for scale in self.scales_for(n_steps).tolist()]
        way, h = self._accounting(bound)
        found = temporal_leakage(adversary, mechanisms=profiles, delta=self.delta, bound=way, discretization=h)
        if self.bound != "verified" or self.verification is None or found.worst <= self.alpha:
            return found
        users = Population.of(adversary).over(len(self.scales)).users  # all planned steps: the first ones leak no more
        level = {"alpha": self.alpha, "delta": self.delta}
        held = is_verified(users, self.noise, self.scales, by=self.verification, **level)
        return verified_series(found, self.alpha) if held else found

    def supremum_to(self, adversary: Adversaries, *, bound: Bound = "exact") -> LeakageSupremum | None:
        """Of this noise, by the accounting and on the grid by which the plan was made."""
        if self.horizon is not None:
            return None
        profile, (way, h) = histogram_profile(self.noise, float(self.scales[0])), self._accounting(bound)
        return leakage_supremum(adversary, mechanism=profile, delta=self.delta, bound=way, discretization=h)

    def _accounting(self, bound: Bound) -> tuple[AnyBound, float]:
        """The plan's own way of accounting, and its grid; the paper's bound is refused where it is used."""
        way: AnyBound = bound
        if bound == "exact":
            way = "curve" if self.bound == "curve" else "pair_curve"
        return way, planned_discretization(self.alpha, "pair_curve" if way == "pair_curve" else self.bound)


def _frozen(values: Any) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array
