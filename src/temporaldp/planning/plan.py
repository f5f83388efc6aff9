"""A budget plan: how much each step may spend, and what it leaks then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import LeakageSeries, LeakageSupremum
from temporaldp.accounting.metrics import Accounting
from temporaldp.errors import BudgetError, InputError
from temporaldp.values import REPLACE_ONE, compared_by_value

FloatArray = NDArray[np.float64]
Method: TypeAlias = Literal["optimal", "upper_bound", "quantified", "uniform", "calibrated"]
Noise: TypeAlias = Literal["gaussian", "laplace"]


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BudgetPlan:
    """Budgets that hold temporal privacy leakage at or below alpha at every step; from `plan_budget`.

    Parameters
    ----------
    epsilons : array, shape (T,), or (1,) where the horizon is unknown
        Budget of each step, in nats. With an unknown horizon, the one budget of every step; see `budgets`.
    alpha : float
        The level that is held, in nats.
    horizon : int or None
        T; None if the plan holds for ever.
    method : str
        How it was made.
    leakage : LeakageSeries, or LeakageSupremum where the horizon is unknown
        By this package's own accounting; its ``worst`` never exceeds alpha, not by one ulp.
    states : tuple of str or None
        The states that the correlations name.
    neighboring_relation : str
        What the budgets refer to.
    step : str or None
        How long one step is, where the traces that the correlation comes from say so.
    provenance : str or None
        Where the correlation comes from, in words. A plan made from the very data that it protects depends on them.
    warning : str or None
        What a reader must know before publishing anything made with the plan; None if nothing.
    objective : str or None
        What an optimal plan was made for: "mean_absolute_error" (mean of 1 / epsilon) or "mean_squared_error" (mean of
        1 / epsilon^2), weighted if weights were given.
    error : float or None
        The objective's value for an optimal plan.
    error_bound : float or None
        A certified lower bound: no budgets that hold alpha by the paper's bound have a smaller error, so ``error / error_bound
        - 1`` is the most that an optimal plan can be short of optimal. None by the exact leakage: the plan is a local optimum
        (no small change of its budgets has less noise and holds alpha), and nothing is certified about plans far from it.
    bound : {"exact", "paper", "curve"}
        By which leakage alpha is held: the exact one, the paper's upper bound, or, with a delta, one privacy curve a step.
    delta : float
        0 for pure differential privacy. Otherwise the plan holds (alpha, delta)-DP_T, and budgets and leakage are the epsilon
        at this delta.
    mechanism : {"gaussian", "laplace"} or None
        With a delta: the noise that is planned, discrete Gaussian or discrete Laplace noise on every count of a histogram.
    scales : array, of the shape of `epsilons`, or None
        With a delta: the scale of the noise of each step, in counts.
    """

    epsilons: FloatArray
    alpha: float
    horizon: int | None
    method: Method
    leakage: LeakageSeries | LeakageSupremum
    states: tuple[str, ...] | None = None
    neighboring_relation: str = REPLACE_ONE
    step: str | None = None
    provenance: str | None = None
    warning: str | None = None
    objective: str | None = None
    error: float | None = None
    error_bound: float | None = None
    bound: Accounting = "exact"
    delta: float = 0.0
    mechanism: Noise | None = None
    scales: FloatArray | None = None

    def __post_init__(self) -> None:
        if (self.delta > 0.0) != (self.scales is not None) or (self.scales is None) != (self.mechanism is None):
            raise InputError("a plan with a delta has a mechanism and its scales, and one without has neither")
        for field in ("epsilons", "scales"):
            if getattr(self, field) is not None:
                array = np.array(getattr(self, field), dtype=np.float64)
                array.flags.writeable = False
                object.__setattr__(self, field, array)
        if self.scales is not None and self.scales.shape != self.epsilons.shape:
            raise InputError(f"expected {self.epsilons.shape} scales like epsilons, got {self.scales.shape}")

    def __repr__(self) -> str:
        steps = "any number of steps" if self.horizon is None else f"{self.horizon} steps"
        how = self.mechanism or (f"{self.method}, by the paper's bound" if self.bound == "paper" else self.method)
        level = f"alpha = {self.alpha:g}" + (f", delta = {self.delta:g}" if self.delta else "")
        return f"BudgetPlan({how}, {level} for {steps}, worst leakage {self.leakage.worst:.6g})"

    def budgets(self, n_steps: int, *, start: int = 0) -> FloatArray:
        """Budgets of `n_steps` steps from step `start` on, shape (n_steps,). Stopping early leaks less, never more.

        With a delta, the epsilon of each release by itself at that delta; what is drawn are the `noise_scales`.

        Raises
        ------
        BudgetError
            The plan has fewer steps.
        """
        return self._steps(self.epsilons, n_steps, start)

    def noise_scales(self, n_steps: int, *, start: int = 0) -> FloatArray:
        """Scales of the noise of `n_steps` steps from step `start` on, shape (n_steps,), in counts.

        Raises
        ------
        BudgetError
            The plan has fewer steps, or budgets only.
        """
        if self.scales is None:
            raise BudgetError("the plan has budgets, not scales of noise; plan with a delta for those")
        return self._steps(self.scales, n_steps, start)

    def _steps(self, each: FloatArray, n_steps: int, start: int) -> FloatArray:
        if n_steps < 1 or start < 0:
            raise BudgetError(f"expected at least 1 step from step 0 or later, got {n_steps} from step {start}")
        if self.horizon is None:
            return np.full(n_steps, each[0])
        end = start + n_steps
        if end > self.horizon:
            needed = f"{n_steps}" if not start else f"{n_steps} after {start}"
            raise BudgetError(
                f"the plan is shorter than the data: it has budgets for {self.horizon} steps, the data have {needed}; "
                f"plan again with horizon={end}, or without a horizon"
            )
        return np.array(each[start:end])
