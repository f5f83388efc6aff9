"""Choice of a guarantee and a level: what each costs in noise, and in the error of smoothed estimates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.errors import BudgetError, InputError, PlanError
from temporaldp.base.progress import part
from temporaldp.base.values import FloatArray, positive, real_array, whole_number
from temporaldp.core.accounting import leakage_supremum, temporal_leakage
from temporaldp.core.accounting.curve.arrivals import checked_delta
from temporaldp.core.accounting.curve.method import ApproximateDP
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.monotone_search import bisected, largest_in_few_tries
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.core.correlation import Adversaries, Population
from temporaldp.core.planning import Guarantee, Plan, plan_budget, plan_guarantee, plan_noise
from temporaldp.core.planning.every_correlation import (
    checked_draw_every,
    drawn_steps,
    leakage_together,
)
from temporaldp.core.planning.histogram_noise import (
    HISTOGRAM_SENSITIVITY,
    Noise,
    checked_noise,
    histogram_profile,
    laplace_scales,
    mean_absolute_noise,
)
from temporaldp.data.smoothing.comparison import GuaranteeComparison, GuaranteeRow
from temporaldp.data.smoothing.public_correlation import PublicCorrelation, require_public
from temporaldp.data.smoothing.simulation import SimulatedCounts, similar_counts, simulated_counts

MANY_STEPS = 200
"""Steps above which the temporal level with delta = 0 has one budget: the ends, which could spend more, are then few."""


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
    past_counts: ArrayLike | None = None,
    noise: Noise = "gaussian",
    plan: Plan | None = None,
    accounting: Accounting[Any, Any] = EXACT,
    seed: int = 0,
) -> GuaranteeComparison:
    """Compare what each guarantee costs, from public knowledge alone.

    The temporal level is planned by the adversaries; the user level, windows and the event level need none, and each has its
    condition. All with delta = 0 and at `delta`, where noise is the same at every step: a plan has slightly less. At one level,
    with delta = 0, a row is added for counts that are drawn at every k-th step alone, with the k that suits smoothed estimates,
    where that reduces their error by a tenth at least.

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
        With `n_people` and `horizon`: errors of smoothed counts are simulated, for people who move by it or as in
        `past_counts`.
    past_counts : array, shape (T, n), optional
        Public numbers of other people at T >= `horizon` steps, in the order of the correlation's states. People seldom move
        by a chain, and errors are larger than for those who do. Left out where the correlation depends on a clock.
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
    setting = _Setting.of(adversary, horizon, noise, accounting, n_people, correlation, past_counts, seed)
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
            has_gaps = in_use and plan.n_drawn != plan.horizon  # type: ignore[union-attr]
            rows.append(setting.row(kind, alpha, one, plan if in_use and not has_gaps else None))
            if has_gaps:
                rows.append(setting.row(kind, alpha, one, plan))
            elif len(levels) == 1:
                rows += filter(None, [setting.with_gaps(rows[-1])])
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
    past_counts: ArrayLike | None = None,
    noise: Noise = "gaussian",
    accounting: Accounting[Any, Any] = EXACT,
    draw_every: int = 1,
    seed: int = 0,
) -> float:
    """Find the level at which counts have at most this error, with equal noise where they are drawn: an upper bound, in nats.

    Parameters
    ----------
    largest_error : float
        Mean absolute error of a count, in people: smoothed, where `compare_guarantees` can simulate that, else as released.
    adversary, horizon, delta, n_people, correlation, past_counts, noise, accounting, seed
        As for `compare_guarantees`.
    guarantee : {"temporal", "user", "user:W", "window:W", "event"} or Guarantee
    draw_every : int
        As for `plan_guarantee`.

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
    setting = _Setting.of(adversary, horizon, noise, accounting, n_people, correlation, past_counts, seed)
    every = checked_draw_every(draw_every, setting.horizon, delta)
    return setting.level_of_error(Guarantee.of(guarantee), delta, positive(largest_error, "largest_error"), every)


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
        past_counts: ArrayLike | None,
        seed: int,
    ) -> _Setting:
        """The checked setting; counts are simulated where their number, a chain and the number of steps are known."""
        people = None if n_people is None else whole_number(n_people, "n_people", least=1)
        n_steps = None if horizon is None else whole_number(horizon, "horizon", least=1, error=BudgetError)
        simulated = None
        if correlation is not None and people is not None and n_steps is not None:
            counts = n_steps * len(require_public(correlation).states)
            # 4,000 counts at least are simulated, in up to eight populations if one has fewer.
            times = min(max(4_000 // counts, 1), 8)
            terms: dict[str, Any] = {"n_people": people, "horizon": n_steps, "repetitions": times, "seed": seed}
            past = None if past_counts is None else real_array(past_counts, "past counts", ge=0.0)
            if past is not None and past.shape[1:] != (len(correlation.states),):
                raise InputError(
                    f"expected past counts of shape (T, {len(correlation.states)}), a column for each state of the "
                    f"correlation, got {past.shape}"
                )
            has_clock = not correlation.forward.is_constant  # of which the first step's phase in the past is unknown
            if past is None or has_clock or len(past) < n_steps or not past.any(axis=1).all():
                simulated = simulated_counts(correlation, **terms)
            else:
                simulated = similar_counts(past, correlation, **terms)
        return cls(adversary, n_steps, checked_noise(noise), accounting, simulated)

    def row(self, guarantee: Guarantee, alpha: float, delta: float, plan: Plan | None) -> GuaranteeRow:
        """The row of a guarantee, with its plan unless that is given."""
        try:
            made = self._plan(guarantee, alpha, delta) if plan is None else plan
        except (BudgetError, PlanError, InputError) as error:
            return GuaranteeRow(guarantee, alpha, delta, None, str(error))
        scales = made.scales if made.horizon is None else made.scales_for(made.horizon)
        return GuaranteeRow(guarantee, alpha, delta, made, error=self.error(scales, made.noise))

    def _plan(self, guarantee: Guarantee, alpha: float, delta: float, draw_every: int = 1) -> Plan:
        if not guarantee.is_temporal:
            noise = self.noise if delta else None
            return plan_guarantee(guarantee, alpha, self.horizon, delta=delta, noise=noise, draw_every=draw_every)
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
        weights = None if draw_every == 1 else drawn_steps(self.horizon or 1, draw_every)
        return plan_budget(self.adversary, alpha, self.horizon, weights=weights, accounting=self.accounting)

    def with_gaps(self, row: GuaranteeRow) -> GuaranteeRow | None:
        """The guarantee with counts drawn at every k-th step alone; None where that does not reduce the error by a tenth.

        Of intervals up to a quarter of the horizon, the shortest whose error is within 3 % of the least. Their noise is in
        proportion to that for the first adversary without a longer memory.
        """
        n_steps, is_temporal = self.horizon, row.guarantee.is_temporal
        if n_steps is None or n_steps > MANY_STEPS or row.delta or row.error is None:
            return None
        if row.guarantee.kind not in {"temporal", "user"}:
            return None
        errors, first = dict[int, float](), 1.0
        for every in (1, 2, 3, 4, 6, 8, 12, 16, 24):
            drawn = drawn_steps(n_steps, every)
            if every > 1 and 4 * every > n_steps:
                break
            budget = self._equal_budget(drawn, row.alpha) if is_temporal else row.alpha / drawn.sum()
            if every == 1:
                first = budget * row.noise
            by_noise = HISTOGRAM_SENSITIVITY / first if is_temporal else 1.0
            scales = laplace_scales(by_noise * budget * drawn)
            errors[every] = self.simulated.smoothed_error(scales, "laplace")  # type: ignore[union-attr]
        best = next(every for every, error in errors.items() if error <= 1.03 * min(errors.values()))
        if best == 1:
            return None
        with suppress(PlanError):
            found = self.row(row.guarantee, row.alpha, 0.0, self._plan(row.guarantee, row.alpha, 0.0, best))
            return found if found.is_clearly_better(row) else None
        return None

    def _equal_budget(self, drawn: FloatArray, alpha: float) -> float:
        """Nearly the largest budget of these steps that satisfies the level for the first adversary without a longer memory."""
        users = Population.of(self.adversary).users  # type: ignore[arg-type]
        user = next((one for one in users if not one.is_lifted), users[0])

        def worst(budget: float) -> float:
            return temporal_leakage(user, budget * drawn, accounting=self.accounting).worst

        return largest_in_few_tries(worst, alpha / float(drawn.sum()) * (1.0 - 1e-9), alpha, alpha, 0.02)

    def error(self, scales: Any, noise: Noise) -> float | None:
        """Error of smoothed counts, where they can be simulated."""
        return None if self.simulated is None else self.simulated.smoothed_error(scales, noise)

    def level_of_error(self, guarantee: Guarantee, delta: float, largest: float, draw_every: int) -> float:
        """Level of the most noise that has at most this error, found to a hundredth of the scale; equal where it is drawn."""
        noise: Noise = self.noise if delta else "laplace"
        drawn = drawn_steps(self.horizon or 1, draw_every)

        def has_it(exponent: float) -> bool:
            scale = math.exp(exponent)
            found = self.error(np.where(drawn, scale, np.inf), noise)
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
            return leakage_together(release, -(-guarantee.width(self.horizon) // draw_every), method)
        if self.adversary is None:
            raise InputError("the temporal level needs a correlation: give an adversary, or another guarantee")
        if self.horizon is None:
            return leakage_supremum(self.adversary, release, accounting=method).worst
        releases = [release if one else 0.0 for one in drawn]
        return temporal_leakage(self.adversary, releases, accounting=method).worst
