"""A plan whose level is renewed: it begins again with every epoch, and an odometer counts the leakage of all epochs."""

from __future__ import annotations

import math
from copy import copy
from typing import Any

from temporaldp.base.errors import BudgetError, InputError, LedgerMismatchError
from temporaldp.core.accounting import TemporalAccountant
from temporaldp.core.accounting.exact.method import Exact
from temporaldp.core.accounting.paper.method import PaperBound
from temporaldp.core.planning import BudgetPlan, Plan
from temporaldp.core.planning.measurement import Measurement
from temporaldp.data.tables.moments import by_the_clock, time_zone
from temporaldp.publish.release.adopting import is_new
from temporaldp.publish.release.epochs import (
    STEPS,
    Epochs,
    Every,
    checked_every,
    phases_of_epochs,
    require_enough_steps,
    require_renewable,
)
from temporaldp.publish.release.guards import Mechanism, PlanGuard
from temporaldp.publish.release.kept import correlations_of, plan_digest
from temporaldp.publish.release.ledger import Ledger
from temporaldp.publish.release.renewal import RENEWAL, renewal_of


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
        is_new, zone = not any(event.kind == RENEWAL for event in ledger.events), self._epochs.zone
        require_enough_steps(*self._epochs[:2], ledger.configuration["step"], zone if is_new else None)
        if is_new:
            with ledger.writing() as writer:
                if not any(event.kind == RENEWAL for event in ledger.events):
                    writer.note(RENEWAL, by="temporaldp", details={"promise": self.promise, "steps": self._epochs.most})
        super().begin(ledger)
        if ledger.checkpoint is not None and len(self.accountant):
            self._epochs = Epochs(*self._epochs[:3], *ledger.checkpoint.accountant["epochs"])

    def identity(self, salt: str | None) -> dict[str, Any]:
        """The plan, the period of renewal, and the correlations by salted digests."""
        every = self._epochs.every
        return {
            **super().identity(salt),
            "renewal": self._epochs.most if every == STEPS else every,
            "timezone": self._epochs.zone,
            "accounting": self.accountant.accounting.document(),
            "correlations": correlations_of(self.accountant.population.users, salt=salt),
        }

    def position(self, n_steps: int, time: str) -> int:
        """Position in the epoch, which begins at one of the phases of a clock for which the plan was checked."""
        position = self._epochs.position(time)
        when = None if self._epochs.every == STEPS or n_steps else by_the_clock(time, self._epochs.zone)
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
        if renewing == STEPS:
            raise InputError("a time zone is that of days, weeks, months or years: leave it out of a renewal by steps")
    if not isinstance(plan, BudgetPlan) or plan.horizon is None or plan.accounting.distances is not None:
        raise InputError(
            "expected a budget plan with a horizon and without a metric; a plan without a horizon needs no renewal, and noise "
            "plans cannot be renewed"
        )
    if not isinstance(accountant, TemporalAccountant) or accountant.alpha is not None or not is_new(accountant):
        raise InputError(
            "expected an accountant without alpha that has spent and adopted nothing: an odometer, which computes the leakage "
            "of all epochs together. Each epoch satisfies the plan's alpha by itself"
        )
    if (
        not isinstance(accountant.accounting, Exact | PaperBound)
        or accountant.accounting.distances is not None
        or accountant.horizon is not None
    ):
        raise InputError("expected an odometer of budgets, without a horizon or a metric")
    return RenewedGuard(plan, accountant, renewing, step or plan.source.step, timezone)
