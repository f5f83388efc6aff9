"""Renewed levels: a plan that begins again with every epoch, and an odometer that counts the leakage of all epochs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate, groupby, pairwise
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from temporaldp.base.display import apart
from temporaldp.base.errors import BudgetError, InputError, LedgerError, LedgerMismatchError, PlanError, SpentError
from temporaldp.core.accounting import TemporalAccountant, temporal_leakage
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.core.correlation import Population
from temporaldp.core.planning import BudgetPlan, Plan
from temporaldp.core.planning.measurement import Measurement
from temporaldp.core.planning.renewal import leakage_of_epochs
from temporaldp.data.tables.moments import by_the_clock, steps_between, time_zone
from temporaldp.publish.release.guards import Mechanism, PlanGuard
from temporaldp.publish.release.ledger import Ledger
from temporaldp.publish.release.resuming import correlations_of, is_new, plan_digest

Every: TypeAlias = Literal["steps", "daily", "weekly", "monthly", "yearly"]


CALENDAR_PERIODS: dict[str, tuple[str, Callable[[datetime], str]]] = {
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
                f"until the level is renewed ({self.every}). Plan for the longest epoch (a larger horizon)"
            )
        return position

    def after(self, time: str) -> Epochs:
        """The epochs after a step at this time."""
        began, period = (self.n_steps, self._period_of(time)) if self._begins_anew(time) else (self.began, self.period)
        return self._replace(n_steps=self.n_steps + 1, began=began, period=period)

    def starts(self, times: Sequence[str]) -> list[int]:
        """The first step of each epoch, of a release with these times from its beginning."""
        trials = accumulate(times, Epochs.after, initial=Epochs(self.every, self.most, self.zone))
        return [step for step, trial in enumerate(list(trials)[1:]) if trial.began == step]

    def _begins_anew(self, time: str) -> bool:
        if self.every == "steps":
            return self.n_steps - self.began == self.most
        period = self._period_of(time)
        return self.period is None or (period is not None and period > self.period)

    def _period_of(self, time: str) -> str | None:
        if self.every == "steps":
            return None
        when = by_the_clock(time, self.zone)
        if when is None:
            raise InputError(
                f"expected a date for a step of a level that is renewed {self.every}, got {time!r}: without a calendar, renew "
                "it after so many steps"
            )
        return CALENDAR_PERIODS[self.every][1](when)


def phases_of_epochs(every: Every, n_steps: int, period: int, step: str | None, zone: str | None) -> range:
    """Steps after the first one, within a period of a clock, at which an epoch may begin.

    All, unless each day has the same whole number of steps: in a time zone, days may have 23 or 25 hours.
    """
    a_day = None if step is None or zone is not None else steps_between(step, "2024-01-01", "2024-01-02")
    unit = n_steps if every == "steps" else int(a_day) if a_day is not None and a_day.is_integer() else 1
    return range(0, period, math.gcd(unit, period))


def require_enough_steps(every: Every, most: int, step: str | None, zone: str | None = None) -> None:
    """Raise an error for a plan that is shorter than an epoch of the calendar, if the length of a step is known.

    Warns if only the longest epochs by the clock of a zone have more steps.
    """
    if step is None or every == "steps":
        return
    longest = int((steps_between(step, "2024-01-01", CALENDAR_PERIODS[every][0]) or 0.0) * (1.0 + 1e-9))
    if longest > most:
        raise InputError(
            f"expected a plan of at least {longest} steps for a level that is renewed {every} (one step is {step}), got one of "
            f"{most}: plan with a horizon of {longest}"
        )
    if zone is None or step.endswith("months"):
        return
    lasting = timedelta(seconds=_longest_seconds(every, zone))
    between = steps_between(step, "2024-01-01T00:00:00", (datetime(2024, 1, 1) + lasting).isoformat())
    longest = int((between or 0.0) * (1.0 + 1e-9))
    if longest > most:
        warnings.warn(
            f"where the clock of {zone} is put back, {longest - most} of {longest} steps will not be released: the plan has "
            f"{most}. To release them, plan with a horizon of {longest} now",
            stacklevel=2,
        )


def _longest_seconds(every: Every, zone: str) -> float:
    """Length of the longest period of the clock of a zone, by its rules of 2000 to 2037."""
    days = (datetime(2000, 1, 1) + timedelta(days=day) for day in range(38 * 366))
    first = [next(same) for _, same in groupby(days, key=CALENDAR_PERIODS[every][1])]
    begun = [day.replace(tzinfo=time_zone(zone)).timestamp() for day in first[1:-1]]
    return max(after - before for before, after in pairwise(begun))


def repeated_budgets(plan: BudgetPlan, every: Every) -> Any:
    """Budgets of an epoch: those of the plan; the largest one for epochs by the calendar, which have any number of steps."""
    return plan.epsilons if every == "steps" else plan.epsilons.max(keepdims=True)


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


@dataclass(frozen=True, slots=True)
class Renewal:
    """Renewed level of a ledger, in nats.

    Parameters
    ----------
    every : {"steps", "daily", "weekly", "monthly", "yearly"}
    n_steps : int
        Number of steps of an epoch; by the calendar the largest.
    alpha : float
        Level that each epoch satisfies by itself.
    promise : float
        Upper bound on the leakage of all epochs together, for any number of epochs.
    timezone : str or None
        Time zone of the days, weeks, months and years; None for that which times are written with.
    """

    every: Every
    n_steps: int
    alpha: float
    promise: float
    timezone: str | None

    def epochs_of(self, times: Sequence[str]) -> list[tuple[int, int]]:
        """First step of each epoch, and the step after its last one so far."""
        return list(pairwise([*Epochs(self.every, self.n_steps, self.timezone).starts(times), len(times)]))


def renewal_of(ledger: Ledger) -> Renewal | None:
    """Renewal of a ledger's level; None where it is not renewed.

    Raises
    ------
    LedgerError
        It is renewed, but no release has recorded its bound yet.
    """
    every = ledger.configuration.get("renewal")
    if every is None:
        return None
    noted = [event.details for event in ledger.events if event.kind in {"renewal", "adopt"}]
    if not noted:
        raise LedgerError(f"{ledger.place} was created, but its release has no steps yet: run the release once")
    return Renewal(
        "steps" if isinstance(every, int) else checked_every(every),
        int(noted[0]["steps"]),
        float(ledger.configuration["alpha"]),
        float(noted[-1]["promise"]),
        ledger.configuration["timezone"],
    )


class RenewedGuard(PlanGuard):
    """A plan of budgets that begins again with every epoch, and an odometer of all epochs.

    Each epoch satisfies the plan's alpha by itself, since none spends more than the plan at any step. The leakage of all epochs
    together is larger; `promise` bounds it for any number of epochs (Theory, section 19).
    """

    accountant: TemporalAccountant

    def __init__(
        self, plan: BudgetPlan, odometer: TemporalAccountant, every: Every, step: str | None, timezone: str | None
    ) -> None:
        super().__init__(plan)
        assert plan.horizon is not None
        people = odometer.population
        self.has_phases = not people.is_constant
        self._period = math.lcm(*(user.period or 1 for user in people.users))
        self._starts = phases_of_epochs(every, plan.horizon, self._period, step, timezone)
        self.horizon, self._epochs, self._digest = None, Epochs(every, plan.horizon, timezone), plan_digest(plan)
        self.accountant = copy(odometer)
        self.promise = require_renewable(plan, every, people, odometer.accounting, self._starts)
        self._share, self._shared_until = 1.0, 0

    def begin(self, ledger: Ledger) -> None:
        """Store the matrices, record the bound of the renewal once, and continue from the ledger's checkpoint."""
        is_new, zone = not any(event.kind == "renewal" for event in ledger.events), self._epochs.zone
        require_enough_steps(*self._epochs[:2], ledger.configuration["step"], zone if is_new else None)
        if is_new:
            with ledger.writing() as writer:
                if not any(event.kind == "renewal" for event in ledger.events):
                    writer.note(
                        "renewal", by="temporaldp", details={"promise": self.promise, "steps": self._epochs.most}
                    )
        super().begin(ledger)
        if ledger.checkpoint is not None and len(self.accountant):
            self._epochs = Epochs(*self._epochs[:3], *ledger.checkpoint.accountant["epochs"])

    def identity(self, salt: str | None) -> dict[str, Any]:
        """The plan, the period of renewal, and the correlations by salted digests."""
        every = self._epochs.every
        return {
            **super().identity(salt),
            "renewal": self._epochs.most if every == "steps" else every,
            "timezone": self._epochs.zone,
            "accounting": self.accountant.accounting.document(),
            "correlations": correlations_of(self.accountant.population.users, salt=salt),
        }

    def position(self, n_steps: int, time: str) -> int:
        """Position in the epoch, which begins at one of the phases of a clock for which the plan was checked."""
        position = self._epochs.position(time)
        when = None if self._epochs.every == "steps" or n_steps else by_the_clock(time, self._epochs.zone)
        is_within_a_day = when is not None and when.timetuple()[3:6] != (0, 0, 0) and len(self._starts) < self._period
        if position == 0 and (n_steps % self._period not in self._starts or is_within_a_day):
            raise InputError(
                f"an epoch that begins with time {time!r} is at another phase of the clock than the plan was made for: begin "
                "the release with the first step of a day"
            )
        return position

    def measurement(self, mechanism: Mechanism, step: int, epsilon: float | None, *, last: bool) -> Measurement:
        """The plan's, of the step within its epoch; less in an epoch within which another correlation was adopted."""
        is_shared = step > 0 and self._epochs.began < self._shared_until
        granted = float(self._plan.epsilons_for(1, start=step)[0]) * (self._share if is_shared else 1.0)
        made = super().measurement(mechanism, step, granted if epsilon is None else epsilon, last=last)
        if made.epsilon > granted:
            raise BudgetError(
                f"epsilon = {made.epsilon!r} is more than {granted!r}, what is left of this epoch's level after another "
                "correlation was adopted within it"
            )
        return made

    def replay(self, ledger: Ledger) -> None:
        """Count the steps and adoptions of the ledger that were not counted yet."""
        super().replay(ledger)
        for row in ledger[self._epochs.n_steps :]:
            self._epochs = self._epochs.after(row.time)
        if ledger.adoptions:
            last = ledger.adoptions[-1]
            self._share, self._shared_until = float(last.details["share"]), last.step
            if ledger.plan != self._digest:
                raise LedgerMismatchError(
                    f"{ledger.place} has adopted another correlation and another plan since it was opened: open it with these"
                )
        renewal = renewal_of(ledger)
        assert renewal is not None
        self.promise = renewal.promise

    def kept_state(self) -> dict[str, Any] | None:
        """State of the odometer, and the first step of the epoch."""
        state = super().kept_state()
        return None if state is None else {**state, "epochs": self._epochs[3:]}

    def go_on(self, epsilon: float, time: str) -> None:
        """Count a step by the odometer and the epochs."""
        super().go_on(epsilon, time)
        self._epochs = self._epochs.after(time)


def renewed_guard(
    accountant: TemporalAccountant | None, plan: Plan | None, every: object, step: str | None, timezone: str | None
) -> RenewedGuard:
    """The guard of a renewed plan, with an odometer over all epochs.

    Raises
    ------
    InputError
        The plan, the accountant or the time zone is not suitable.
    PlanError
        The plan does not satisfy its level for the odometer's adversary, or the leakage of all epochs is unbounded.
    """
    renewing = checked_every(every)
    if timezone is not None:
        time_zone(timezone)  # raises
        if renewing == "steps":
            raise InputError("a time zone is that of days, weeks, months or years: leave it out of a renewal by steps")
    if not isinstance(plan, BudgetPlan) or plan.horizon is None or plan.accounting.distances is not None:
        raise InputError(
            "expected a budget plan with a horizon and without a metric; a plan without a horizon needs no renewal, and noise "
            "plans cannot be renewed"
        )
    if not plan.guarantee.is_temporal:
        raise InputError(
            f"expected a plan of the temporal level to renew, got one of the {plan.guarantee.wording.label}: where a release "
            "does not end, user:W (privacy.guarantee = user:365d) needs no renewal: the user level within W steps, against the "
            "releases of these steps alone"
        )
    if not isinstance(accountant, TemporalAccountant) or accountant.alpha is not None or not is_new(accountant):
        raise InputError(
            "expected an accountant without alpha that has spent and adopted nothing: an odometer, which computes the leakage "
            "of all epochs together. Each epoch satisfies the plan's alpha by itself"
        )
    method, users = accountant.accounting, accountant.population.users
    is_plain = not method.delta and method.distances is None and not any(user.is_uncertain for user in users)
    if not is_plain or accountant.horizon is not None:
        raise InputError("expected an odometer of budgets, without a horizon or a metric")
    return RenewedGuard(plan, accountant, renewing, step or plan.provenance.step, timezone)
