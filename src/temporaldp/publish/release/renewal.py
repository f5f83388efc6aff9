"""Bound on the leakage of all epochs of a renewed level, recorded in the ledger at its start and with every adoption."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from temporaldp.base.errors import InputError, LedgerError, PlanError
from temporaldp.core.accounting import TemporalAccountant, temporal_leakage
from temporaldp.core.accounting.exact.method import Exact
from temporaldp.core.accounting.monotone_search import largest
from temporaldp.core.planning import BudgetPlan, Plan
from temporaldp.core.planning.renewal import leakage_going_on
from temporaldp.publish.release.epochs import STEPS, Epochs, Every, checked_every, repeated_budgets, require_renewable
from temporaldp.publish.release.kept import plan_digest
from temporaldp.publish.release.ledger import ADOPT, Ledger

RENEWAL = "renewal"
"""Kind of an event that records, before the first step, the bound on the leakage of all epochs together."""


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
    noted = [event.details for event in ledger.events if event.kind in {RENEWAL, ADOPT}]
    if not noted:
        raise LedgerError(f"{ledger.place} was created, but its release has no steps yet: run the release once")
    return Renewal(
        STEPS if isinstance(every, int) else checked_every(every),
        int(noted[0]["steps"]),
        float(ledger.configuration["alpha"]),
        float(noted[-1]["promise"]),
        ledger.configuration["timezone"],
    )


def terms_after_adoption(ledger: Ledger, accountant: TemporalAccountant, plan: Plan | None) -> dict[str, Any]:
    """Details of the event by which a renewed level adopts another correlation, as JSON values.

    The plan, made with that correlation, is valid from the next step on. The remaining steps of the current epoch spend a
    share of it, so that the epoch by itself satisfies alpha exactly, with the old matrices for its first steps and the new ones
    for its last.

    Raises
    ------
    InputError
        There is no plan, or one of another kind, level or length.
    PlanError
        It does not satisfy its level for the new correlation, or the leakage of all epochs is unbounded.
    """
    renewal = renewal_of(ledger)
    assert renewal is not None
    if not isinstance(plan, BudgetPlan) or plan.accounting.distances is not None:
        raise InputError(
            f"the level of {ledger.place} is renewed, by a plan that rests on the correlation that it was made with: make a "
            "plan with the new one (`temporaldp plan`), and give it too (--plan)"
        )
    if (plan.alpha, plan.horizon) != (renewal.alpha, renewal.n_steps):
        raise InputError(
            f"expected a plan of alpha = {renewal.alpha:g} for {renewal.n_steps} steps, as {ledger.place} has, got one of "
            f"{plan.alpha:g} for {'an infinite horizon' if plan.horizon is None else f'{plan.horizon} steps'}"
        )
    require_renewable(plan, renewal.every, accountant.population, Exact())
    spent, first = ledger.epsilons, (renewal.epochs_of(ledger.times) or [(0, 0)])[-1][0]
    done = len(spent) - first
    rest = plan.epsilons[done:] if done else plan.epsilons[:0]
    people = accountant.adversaries_until(len(spent) + len(rest)).users
    of_epoch = [user.between(first, done + len(rest)) for user in people]

    def alone(share: float) -> float:
        return temporal_leakage(of_epoch, [*spent[first:], *(share * rest)]).worst

    share = largest(alone, 0.0, 1.0, plan.alpha) if len(rest) else 1.0
    repeated = repeated_budgets(plan, renewal.every)
    going_on = np.concatenate((spent, share * rest)) if renewal.every == STEPS else spent
    promise = leakage_going_on(accountant.adversaries_until, accountant.population, going_on, repeated)
    if math.isinf(promise):
        raise PlanError(
            "the leakage of the releases so far does not vanish within an epoch of the new plan: there is no finite bound"
        )
    return {"plan": plan_digest(plan), "share": share, "promise": promise}
