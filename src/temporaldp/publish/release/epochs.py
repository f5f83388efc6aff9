"""Epochs of a renewed level: a number of steps each, or the days, weeks, months or years of the calendar."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import accumulate, groupby, pairwise
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from temporaldp.base.display import apart
from temporaldp.base.errors import InputError, PlanError, SpentError
from temporaldp.core.accounting import temporal_leakage
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.core.correlation import Population
from temporaldp.core.planning.budget_plan import BudgetPlan
from temporaldp.core.planning.renewal import leakage_of_epochs
from temporaldp.data.tables.moments import by_the_clock, steps_between, time_zone

Every: TypeAlias = Literal["steps", "daily", "weekly", "monthly", "yearly"]

STEPS: Literal["steps"] = "steps"
"""A new epoch after so many steps, whenever they were."""

PERIODS: dict[str, tuple[str, Callable[[datetime], str]]] = {
    "daily": ("2024-01-02", lambda when: when.isoformat()[:10]),
    "weekly": ("2024-01-08", lambda when: "{:04}-{:02}".format(*when.isocalendar())),
    "monthly": ("2024-02-01", lambda when: when.isoformat()[:7]),
    "yearly": ("2025-01-01", lambda when: when.isoformat()[:4]),
}
"""End of a longest one that begins with 2024, and which day, week (from Monday), month or year a moment is in. Later ones are
greater, as text."""


def checked_every(every: object) -> Every:
    """A checked period of renewal; `InputError` for anything else."""
    if every not in get_args(Every):
        raise InputError(f"expected a level to be renewed by one of {', '.join(get_args(Every))}, got {every!r}")
    return cast(Every, every)


class Epochs(NamedTuple):
    """Epoch of the next step of a release.

    A time belongs to the day, week, month or year of the clock of the time zone, or else of that which it is written with. An
    epoch begins with the first step of a later period than that of the last step.

    Parameters
    ----------
    every : {"steps", "daily", "weekly", "monthly", "yearly"}
    most : int
        Number of steps of an epoch; by the calendar the largest number.
    zone : str or None
        Time zone of the calendar, for times with an offset.
    n_steps : int
        Steps so far.
    began : int
        First step (from 0) of the current epoch.
    period : str or None
        The current day, week, month or year.
    """

    every: Every
    most: int
    zone: str | None = None
    n_steps: int = 0
    began: int = 0
    period: str | None = None

    def position(self, time: str) -> int:
        """Position of the next step in its epoch, from 0.

        Raises
        ------
        SpentError
            The epoch of the calendar has no steps left.
        InputError
            The time has no date.
        """
        if self._begins_anew(time):
            return 0
        position = self.n_steps - self.began
        if position >= self.most:
            raise SpentError(
                f"the plan has {self.most} steps for each epoch, and all of this one are over: the next step is held back "
                f"until the level is renewed ({self.every}). Plan for the longest epoch (`temporaldp plan --horizon`)"
            )
        return position

    def after(self, time: str) -> Epochs:
        """The epochs after a step at this time."""
        going_on = self._replace(n_steps=self.n_steps + 1)
        return (
            going_on._replace(began=self.n_steps, period=self._period_of(time)) if self._begins_anew(time) else going_on
        )

    def starts(self, times: Sequence[str]) -> list[int]:
        """The first step of each epoch, of a release with these times from its beginning."""
        trials = accumulate(times, Epochs.after, initial=Epochs(self.every, self.most, self.zone))
        return [step for step, trial in enumerate(list(trials)[1:]) if trial.began == step]

    def _begins_anew(self, time: str) -> bool:
        if self.every == STEPS:
            return self.n_steps - self.began == self.most
        period = self._period_of(time)
        return self.period is None or (period is not None and period > self.period)

    def _period_of(self, time: str) -> str | None:
        if self.every == STEPS:
            return None
        when = by_the_clock(time, self.zone)
        if when is None:
            raise InputError(
                f"expected a date for a step of a level that is renewed {self.every}, got {time!r}: without a calendar, renew "
                "it after so many steps"
            )
        return PERIODS[self.every][1](when)


def phases_of_epochs(every: Every, n_steps: int, period: int, step: str | None, zone: str | None) -> range:
    """Steps after the first one, within a period of a clock, at which an epoch may begin.

    All, unless each day has the same whole number of steps: in a time zone, days may have 23 or 25 hours.
    """
    a_day = None if step is None or zone is not None else steps_between(step, "2024-01-01", "2024-01-02")
    unit = n_steps if every == STEPS else int(a_day) if a_day is not None and a_day.is_integer() else 1
    return range(0, period, math.gcd(unit, period))


def require_enough_steps(every: Every, most: int, step: str | None, zone: str | None = None) -> None:
    """Raise an error for a plan that is shorter than an epoch of the calendar, if the length of a step is known.

    Warns if only the longest epochs by the clock of a zone have more steps.
    """
    if step is None or every == STEPS:
        return
    longest = int((steps_between(step, "2024-01-01", PERIODS[every][0]) or 0.0) * (1.0 + 1e-9))
    if longest > most:
        raise InputError(
            f"expected a plan of at least {longest} steps for a level that is renewed {every} (one step is {step}), got one of "
            f"{most}: plan with --horizon {longest}"
        )
    if zone is None or step.endswith("months"):
        return
    lasting = timedelta(seconds=_longest_seconds(every, zone))
    between = steps_between(step, "2024-01-01T00:00:00", (datetime(2024, 1, 1) + lasting).isoformat())
    longest = int((between or 0.0) * (1.0 + 1e-9))
    if longest > most:
        warnings.warn(
            f"where the clock of {zone} is put back, {longest - most} of {longest} steps will not be released: the plan has "
            f"{most}. To release them, plan with --horizon {longest} now",
            stacklevel=2,
        )


def _longest_seconds(every: Every, zone: str) -> float:
    """Length of the longest period of the clock of a zone, by its rules of 2000 to 2037."""
    days = (datetime(2000, 1, 1) + timedelta(days=day) for day in range(38 * 366))
    first = [next(same) for _, same in groupby(days, key=PERIODS[every][1])]
    begun = [day.replace(tzinfo=time_zone(zone)).timestamp() for day in first[1:-1]]
    return max(after - before for before, after in pairwise(begun))


def repeated_budgets(plan: BudgetPlan, every: Every) -> Any:
    """Budgets of an epoch: those of the plan; the largest one for epochs by the calendar, which have any number of steps."""
    return plan.epsilons if every == STEPS else plan.epsilons.max(keepdims=True)


def require_renewable(
    plan: BudgetPlan, every: Every, people: Population, accounting: Accounting[Any, Any], starts: Sequence[int] = (0,)
) -> float:
    """Upper bound on the leakage of all epochs of a plan together, in nats.

    An epoch may begin at each of the `starts`, steps after the first phase of a clock.

    Raises
    ------
    PlanError
        The plan does not satisfy its level for these people, or the leakage of all epochs is unbounded.
    """
    horizon = len(plan.epsilons)
    each = (Population(tuple(one.between(start, horizon) for one in people.users), people.names) for start in starts)
    alone = max(temporal_leakage(one, plan.epsilons, accounting=accounting).worst for one in each)
    if alone > plan.alpha * (1.0 + 1e-9):  # another machine may have rounded otherwise
        level, leaked = apart(plan.alpha, alone)
        raise PlanError(
            f"the plan's {plan.horizon} steps leak {leaked} nats by themselves against this correlation, more than its alpha = "
            f"{level}: plan with the correlation, and by the bound, that the release is counted by"
        )
    promise = leakage_of_epochs(people, repeated_budgets(plan, every), accounting=accounting)
    if math.isinf(promise):
        raise PlanError(
            f"renewing this plan of {plan.horizon} steps has no finite bound: under this correlation the leakage of one "
            "epoch about a state does not vanish within the next one, and accumulates without bound. Plan for an infinite "
            "horizon (without a horizon), or with longer epochs"
        )
    return promise
