"""Choice of a guarantee and a level: what each costs in noise, and in the error of smoothed estimates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from temporaldp.base.arrow import Table
from temporaldp.base.display import draw, number, summary
from temporaldp.base.errors import BudgetError, InputError, PlanError
from temporaldp.base.progress import part
from temporaldp.base.values import plural, positive, whole_number
from temporaldp.core.accounting import leakage_supremum, temporal_leakage
from temporaldp.core.accounting.curve.arrivals import checked_delta
from temporaldp.core.accounting.curve.method import ApproximateDP
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.monotone_search import bisected
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.core.correlation import Adversaries
from temporaldp.core.planning import Guarantee, Plan, plan_budget, plan_guarantee, plan_noise
from temporaldp.core.planning.every_correlation import epochs_together, leakage_together
from temporaldp.core.planning.histogram_noise import (
    HISTOGRAM_SENSITIVITY,
    Noise,
    checked_noise,
    histogram_profile,
    mean_absolute_noise,
)
from temporaldp.data.smoothing.public_correlation import PublicCorrelation, require_public
from temporaldp.data.smoothing.simulation import SimulatedCounts, simulated_counts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BETTER = 0.75
"""The temporal level is advised where its error is at most this share of that of the user level, which holds for more."""

HALF = 0.5
"""A delta is advised where it reduces the noise or the error to this share."""

MANY_STEPS = 200
"""Steps above which the temporal level with delta = 0 has one budget: the ends, which could spend more, are then few."""


@dataclass(frozen=True, slots=True)
class GuaranteeRow:
    """One guarantee at one level.

    Parameters
    ----------
    guarantee : Guarantee
    alpha, delta : float
        The level, in nats; 0 for pure differential privacy.
    plan : Plan or None
        A plan that satisfies it; None where there is none.
    refusal : str
        Why there is no plan; empty where there is one.
    error : float or None
        Mean absolute error of a smoothed count, in people, simulated for people who move by the public correlation; None
        without one.
    """

    guarantee: Guarantee
    alpha: float
    delta: float
    plan: Plan | None
    refusal: str = ""
    error: float | None = None

    @property
    def noise(self) -> float:
        """Mean absolute noise of a count, in people, averaged over the steps; inf without a plan."""
        return math.inf if self.plan is None else self.plan.mean_absolute_noise

    @property
    def published(self) -> float:
        """Mean absolute error of what is read, in people: of estimates where there are some, else the noise."""
        return self.noise if self.error is None else self.error

    @property
    def five_epochs(self) -> float | None:
        """Leakage of five times as many steps, by their releases, about all states in them; None without `epochs`."""
        return epochs_together(self.plan, 5) if self.guarantee.is_of_epochs and self.plan is not None else None

    @property
    def name(self) -> str:
        """The guarantee and its delta, in words."""
        return f"{self.guarantee.wording.label}, {f'delta = {self.delta:g}' if self.delta else 'pure'}"


@dataclass(frozen=True, slots=True)
class GuaranteeComparison(Table):
    """Guarantees at one or several levels, from `compare_guarantees`.

    Parameters
    ----------
    rows : tuple of GuaranteeRow
        Level by level.
    n_people, n_states : int or None
    horizon : int or None
    observers : str
        For whom the temporal level holds, in words.
    """

    rows: tuple[GuaranteeRow, ...]
    n_people: int | None
    n_states: int | None
    horizon: int | None
    observers: str = Guarantee().wording.condition

    def columns(self) -> dict[str, list[Any]]:
        """One row per guarantee and level: noise and errors in people and as shares, and what five epochs leak together."""
        columns: dict[str, list[Any]] = {
            "guarantee": [str(row.guarantee) for row in self.rows],
            "alpha": [row.alpha for row in self.rows],
            "delta": [row.delta for row in self.rows],
            "noise": [None if row.plan is None else row.noise for row in self.rows],
            "share": [self.share(row.noise) for row in self.rows],
            "error": [row.error for row in self.rows],
            "error_share": [None if row.error is None else self.share(row.error) for row in self.rows],
            "five_epochs": [row.five_epochs for row in self.rows],
            "condition": [self.condition(row) for row in self.rows],
            "refusal": [row.refusal or None for row in self.rows],
        }
        return columns

    def plot(self, *, ax: Axes | None = None) -> Any:
        """Draw the noise under each guarantee as bars (needs Matplotlib); `ax` and the result as of `LeakageSeries.plot`."""
        return draw(self, ax=ax)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        shown = {row.name: "no plan" if row.plan is None else _error_of(row) for row in self.rows}
        return summary(
            f"Guarantees for at most {plural(number(self.rows[0].alpha, up=True), 'nat')}", shown, self.advice
        )

    def condition(self, row: GuaranteeRow) -> str:
        """For which observers the guarantee of a row holds, in words."""
        return self.observers if row.guarantee.is_temporal else row.guarantee.wording.condition

    def share(self, error: float) -> float | None:
        """An error in people as a share of an average count; None where that is unknown."""
        if self.n_people is None or self.n_states is None or math.isinf(error):
            return None
        return error * self.n_states / self.n_people

    @property
    def advised(self) -> GuaranteeRow | None:
        """The row that `advice` is for, at the first level; None where nothing can be planned.

        At the same delta, the temporal level if its error is at most 75 % of that of the user level, which holds for every
        correlation; a window where there is no user level. A delta if it halves the noise or the error.
        """
        alpha = self.rows[0].alpha
        found = [
            row for row in self.rows if row.alpha == alpha and row.plan is not None and row.guarantee.kind != "event"
        ]
        pure, approximate = (
            _chosen([row for row in found if (row.delta > 0.0) == is_approximate]) for is_approximate in (False, True)
        )
        if pure is None or approximate is None:
            return pure or approximate
        halves = approximate.published <= HALF * pure.published or approximate.noise <= HALF * pure.noise
        return approximate if halves else pure

    @property
    def advice(self) -> str:
        """What to take, for whom it holds, and why."""
        best = self.advised
        if best is None:
            return "No guarantee can be planned at this level: see the reasons."
        others = [row for row in self.rows if row.alpha == best.alpha and row.plan is not None]
        said = f"Take the {best.name}, for {self.condition(best)}: {_error_of(best)}"
        rival = "user" if best.guarantee.is_temporal else "temporal"
        other = next((one for one in others if (one.delta, one.guarantee.kind) == (best.delta, rival)), None)
        if other is not None:
            said += f". The {other.guarantee.wording.label}, for {self.condition(other)}, has {_error_of(other)}"
            said += "" if best.guarantee.is_temporal else ", less than 25 % better"
        if best.delta:
            pure = next((one for one in others if one.guarantee == best.guarantee and not one.delta), None)
            said += "" if pure is None else f". The {best.guarantee.wording.label} with delta = 0 has {_error_of(pure)}"
        return said + "."


def _error_of(row: GuaranteeRow) -> str:
    return f"{'noise' if row.error is None else 'a simulated error'} of {number(row.published)} people on a count"


def _chosen(rows: Sequence[GuaranteeRow]) -> GuaranteeRow | None:
    """The temporal level where it is clearly better than a guarantee for every correlation; else that, if there is one."""
    temporal = next((row for row in rows if row.guarantee.is_temporal), None)
    user = next((row for row in rows if row.guarantee == Guarantee("user")), None)
    if temporal is None or user is None:
        return temporal or user or next(iter(rows), None)
    return temporal if temporal.published <= BETTER * user.published else user


def compare_guarantees(
    adversary: Adversaries | None = None,
    *,
    alphas: float | Sequence[float] = 1.0,
    horizon: int | None = None,
    delta: float = 1e-6,
    windows: Sequence[int] = (),
    epochs: Sequence[int] = (),
    n_people: int | None = None,
    n_states: int | None = None,
    correlation: PublicCorrelation | None = None,
    noise: Noise = "gaussian",
    plan: Plan | None = None,
    accounting: Accounting[Any, Any] = EXACT,
    seed: int = 0,
) -> GuaranteeComparison:
    """Compare what each guarantee costs, from public knowledge alone.

    The temporal level is planned by the adversaries; the user level, windows and the event level need none, and each has its
    condition. All with delta = 0 and at `delta`, where noise is the same at every step: a plan has slightly less.

    Parameters
    ----------
    adversary : Adversary, or several, optional
        Of the temporal level; without, its rows have no plan.
    alphas : float, or several
        Levels, in nats, at least one.
    horizon : int, optional
        Number of steps. Without one there is no user level but that of `epochs`.
    delta : float
        Of the rows that are not pure; with 0, all rows are.
    windows : sequence of int
        Numbers of steps of windows, if any.
    epochs : sequence of int
        Numbers of steps, such as those of a year, for rows of the user level against the releases of these steps alone.
    n_people, n_states : int, optional
        Public numbers, for shares of an average count.
    correlation : PublicCorrelation, optional
        With `n_people` and `horizon`: errors of smoothed counts are simulated for people who move by it.
    noise : {"gaussian", "laplace"}
        For a delta.
    plan : Plan, optional
        A plan in use, for the row of its guarantee, level and delta.
    accounting : Accounting
        With delta = 0, of the temporal level.
    seed : int
        Seed of the simulation.

    Raises
    ------
    InputError
        The correlation is not public.
    BudgetError
        A level, a delta or a number of steps is not admissible. Where there is no plan, its row has the reason.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix
    >>> chain = TransitionMatrix([[0.7, 0.3], [0.4, 0.6]])
    >>> found = compare_guarantees(Adversary(chain, chain), horizon=50, n_people=400, n_states=2)
    >>> {f"{row.guarantee} {row.delta:g}": round(row.noise, 1) for row in found.rows[:4]}
    {'temporal 0': 3.6, 'temporal 1e-06': 5.2, 'user 0': 100.0, 'user 1e-06': 33.7}
    >>> found.advised.name
    'temporal level, pure'
    """
    setting = _Setting.of(adversary, horizon, noise, accounting, n_people, correlation, seed)
    n_steps = setting.horizon
    n = n_states if correlation is None else len(correlation.states)
    levels = [positive(one, "alpha") for one in np.atleast_1d(np.asarray(alphas, dtype=np.float64)).tolist()]
    if not levels:
        raise BudgetError("expected at least one level alpha, got none")
    deltas = [0.0] if delta == 0.0 else [0.0, checked_delta(delta)]
    kinds = [Guarantee(), *([] if n_steps is None else [Guarantee("user")])]
    kinds += [Guarantee("window", steps) for steps in windows] + [Guarantee("user", steps) for steps in epochs]
    kinds.append(Guarantee("event"))
    asked = [(alpha, kind, one) for alpha in levels for kind in kinds for one in deltas]
    rows = []
    for k, (alpha, kind, one) in enumerate(asked):
        with part(k / len(asked), (k + 1) / len(asked), "guarantees"):
            fits = plan is not None and plan.horizon in {None, n_steps}
            in_use = fits and (plan.alpha, plan.guarantee, plan.delta) == (alpha, kind, one)  # type: ignore[union-attr]
            rows.append(setting.row(kind, alpha, one, plan if in_use else None))
    return GuaranteeComparison(tuple(rows), n_people, n, n_steps)


def level_for_error(
    largest_error: float,
    adversary: Adversaries | None = None,
    *,
    guarantee: str | Guarantee = "temporal",
    horizon: int | None = None,
    delta: float = 0.0,
    n_people: int | None = None,
    correlation: PublicCorrelation | None = None,
    noise: Noise = "gaussian",
    accounting: Accounting[Any, Any] = EXACT,
    seed: int = 0,
) -> float:
    """Find the level at which counts have at most this error, with equal noise at every step: an upper bound, in nats.

    Parameters
    ----------
    largest_error : float
        Mean absolute error of a count, in people: smoothed, where `compare_guarantees` can simulate that, else as released.
    adversary, horizon, delta, n_people, correlation, noise, accounting, seed
        As for `compare_guarantees`.
    guarantee : {"temporal", "user", "user:W", "window:W", "event"} or Guarantee

    Raises
    ------
    BudgetError
        No noise has so small an error, or the user level has no horizon.
    InputError
        The temporal level has no adversary.

    Examples
    --------
    >>> round(level_for_error(20.0, guarantee="user", horizon=10), 2)
    1.0
    """
    setting = _Setting.of(adversary, horizon, noise, accounting, n_people, correlation, seed)
    return setting.level_of_error(Guarantee.of(guarantee), delta, positive(largest_error, "largest_error"))


@dataclass(frozen=True, slots=True)
class _Setting:
    """What all guarantees share."""

    adversary: Adversaries | None
    horizon: int | None
    noise: Noise
    accounting: Accounting[Any, Any]
    simulated: SimulatedCounts | None

    @classmethod
    def of(
        cls,
        adversary: Adversaries | None,
        horizon: int | None,
        noise: Noise,
        accounting: Accounting[Any, Any],
        n_people: int | None,
        correlation: PublicCorrelation | None,
        seed: int,
    ) -> _Setting:
        """The checked setting; people are simulated where their number, a chain and the number of steps are known."""
        people = None if n_people is None else whole_number(n_people, "n_people", least=1)
        n_steps = None if horizon is None else whole_number(horizon, "horizon", least=1, error=BudgetError)
        simulated = None
        if correlation is not None and people is not None and n_steps is not None:
            counts = n_steps * len(require_public(correlation).states)
            # 2,000 counts at least are simulated, in up to four populations if one has fewer.
            times = min(max(2_000 // counts, 1), 4)
            simulated = simulated_counts(correlation, n_people=people, horizon=n_steps, repetitions=times, seed=seed)
        return cls(adversary, n_steps, checked_noise(noise), accounting, simulated)

    def row(self, guarantee: Guarantee, alpha: float, delta: float, plan: Plan | None) -> GuaranteeRow:
        """The row of a guarantee, with its plan unless that is given."""
        try:
            made = self._plan(guarantee, alpha, delta) if plan is None else plan
        except (BudgetError, PlanError, InputError) as error:
            return GuaranteeRow(guarantee, alpha, delta, None, str(error))
        scales = made.scales if made.horizon is None else made.scales_for(made.horizon)
        return GuaranteeRow(guarantee, alpha, delta, made, error=self.error(scales, made.noise))

    def _plan(self, guarantee: Guarantee, alpha: float, delta: float) -> Plan:
        if not guarantee.is_temporal:
            return plan_guarantee(guarantee, alpha, self.horizon, delta=delta, noise=self.noise if delta else None)
        if self.adversary is None:
            raise InputError("the temporal level needs a correlation: give an adversary, or a history")
        if delta:
            method = ApproximateDP(delta)
            return plan_noise(self.adversary, alpha, self.horizon, accounting=method, noise=self.noise, equal=True)
        is_long = self.horizon is not None and self.horizon > MANY_STEPS
        if is_long:
            with suppress(PlanError):  # where no budget lasts, a plan still is
                return plan_budget(
                    self.adversary, alpha, self.horizon, method="upper_bound", accounting=self.accounting
                )
        return plan_budget(self.adversary, alpha, self.horizon, accounting=self.accounting)

    def error(self, scales: Any, noise: Noise) -> float | None:
        """Error of smoothed counts, where they can be simulated."""
        return None if self.simulated is None else self.simulated.smoothed_error(scales, noise)

    def level_of_error(self, guarantee: Guarantee, delta: float, largest: float) -> float:
        """Level of the most noise that has at most this error, found to a hundredth of the scale; equal at every step."""
        noise: Noise = self.noise if delta else "laplace"

        def has_it(exponent: float) -> bool:
            scale = math.exp(exponent)
            found = self.error(np.array([scale]), noise)
            return (mean_absolute_noise([scale], noise) if found is None else found) <= largest

        # Counts: noise of the first scale is 0 but for one count in a hundred, and of one of nine million it is all there is.
        low, most, width = math.log(0.2), 16.0, 2.0
        if not has_it(low):
            raise BudgetError(f"no noise has an error of at most {largest:g} people: take a larger one")
        while low + width <= most and has_it(low + width):
            low += width
        scale = math.exp(bisected(has_it, low, low + width, 0.0, most=8) if low + width <= most else low)
        release = histogram_profile(noise, scale) if delta else HISTOGRAM_SENSITIVITY / scale
        method: Accounting[Any, Any] = ApproximateDP(delta) if delta else self.accounting
        if not guarantee.is_temporal:
            return leakage_together(release, guarantee.width(self.horizon), method)
        if self.adversary is None:
            raise InputError("the temporal level needs a correlation: give an adversary, or another guarantee")
        if self.horizon is None:
            return leakage_supremum(self.adversary, release, accounting=method).worst
        return temporal_leakage(self.adversary, [release] * self.horizon, accounting=method).worst
