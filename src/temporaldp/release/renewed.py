"""A plan whose level is renewed: after its last step it begins again, and an odometer counts what all of it leaks together."""

from __future__ import annotations

import math
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any

from temporaldp.accounting import TemporalAccountant, renewal_leakage
from temporaldp.accounting.protocol import Bound
from temporaldp.errors import InputError, LedgerError, PlanError
from temporaldp.planning import BudgetPlan, Plan
from temporaldp.planning.measurement import NOTHING, Measurement
from temporaldp.release.adopting import resumed, take_in
from temporaldp.release.guards import Mechanism, PlanGuard
from temporaldp.release.identity import correlations_of
from temporaldp.release.kept_correlations import keep_correlations
from temporaldp.release.ledger import Ledger

RENEWAL = "renewal"
"""The kind of event that says, before the first step, what a renewed level promises for ever."""

ROUNDED = 1e-9
"""Relative: by which a plan may miss its level as it is counted again, on another machine."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """What a ledger says of a level that is renewed, in nats.

    Parameters
    ----------
    n_steps : int
        Of an epoch.
    alpha : float
        What each epoch by itself holds.
    for_ever : float
        What all of them together never exceed, however many follow.
    """

    n_steps: int
    alpha: float
    for_ever: float

    def epochs_of(self, epsilons: Any) -> list[Any]:
        """What each epoch spent, the last one as far as it has come."""
        return [epsilons[start : start + self.n_steps] for start in range(0, len(epsilons), self.n_steps)]


def renewal_of(ledger: Ledger) -> Renewal | None:
    """How a ledger's level is renewed; None where it is not.

    Raises
    ------
    LedgerError
        It is, but the ledger was never opened by a release, which notes what that promises.
    """
    n_steps = ledger.configuration.get("renewal")
    if n_steps is None:
        return None
    noted = next((event for event in ledger.events if event.kind == RENEWAL), None)
    if noted is None:
        raise LedgerError(f"{ledger.place} was made, but no release has begun: run the release once")
    return Renewal(int(n_steps), float(ledger.configuration["alpha"]), float(noted.details["for_ever"]))


class RenewedGuard(PlanGuard):
    """A plan of budgets that begins again after its last step, and an odometer of all epochs.

    Each epoch holds the plan's alpha by itself, since none spends more than the plan at any step. What all of them leak
    together is more: `promise` is never exceeded, however many follow (docs/theory.md, section 19).
    """

    accountant: TemporalAccountant

    def __init__(self, plan: BudgetPlan, odometer: TemporalAccountant) -> None:
        super().__init__(plan)
        assert plan.horizon is not None
        self.horizon, self._n_steps, self._budgets = None, plan.horizon, plan
        self.accountant = copy(odometer)
        counted: Bound = "paper" if odometer.bound == "paper" else "exact"
        found = renewal_leakage(odometer.population, plan.epsilons, n_epochs=2, bound=counted)
        if found.alone > plan.alpha * (1.0 + ROUNDED):
            raise PlanError(
                f"the plan's {plan.horizon} steps leak {found.alone:.6g} nats by themselves against this correlation, more "
                f"than its alpha = {plan.alpha:g}: plan with the correlation, and by the bound, that the release is counted by"
            )
        if math.isinf(found.for_ever):
            raise PlanError(
                f"renewing this plan every {plan.horizon} steps promises nothing: under this correlation what an epoch says "
                "about a value is not forgotten within the next one, and adds up without end. Plan without a horizon, which "
                "lasts for ever, or with longer epochs"
            )
        self.promise = found.for_ever

    def begin(self, ledger: Ledger) -> None:
        """Keep the matrices beside the ledger, and note in it what a renewal promises, once; then what it has of the steps."""
        known = ledger.configuration["correlations"]
        with suppress(LedgerError):  # a disk that is full or read-only: a report needs it, a step does not
            keep_correlations(ledger.store, self.accountant.population, known["salt"])
        if not any(event.kind == RENEWAL for event in ledger.events):
            with ledger.writing() as writer:
                if not any(event.kind == RENEWAL for event in ledger.events):
                    writer.note(RENEWAL, by="temporaldp", details={"for_ever": self.promise, "steps": self._n_steps})
        found = renewal_of(ledger)
        assert found is not None
        self.promise = found.for_ever
        self.accountant, _ = resumed(self.accountant, ledger)

    def identity(self, kept: dict[str, Any]) -> dict[str, Any]:
        """The plan, that it is renewed, and the correlations by salted digests."""
        salt = (kept.get("correlations") or {}).get("salt")
        return {
            **super().identity(kept),
            "renewal": self._n_steps,
            "bound": self.accountant.bound,
            "metric": None,
            "correlations": correlations_of(self.accountant.population.users, salt=salt),
        }

    def next_epsilon(self, step: int, *, last: bool) -> float:
        """The plan's, of the step within its epoch."""
        return super().next_epsilon(step % self._n_steps, last=last)

    def measurement(self, mechanism: Mechanism, step: int, epsilon: float | None, *, last: bool) -> Measurement:
        """The plan's, of the step within its epoch."""
        return super().measurement(mechanism, step % self._n_steps, epsilon, last=last)

    def pass_over(self, step: int) -> Measurement:
        """Who leaves a step out leaks no more."""
        return NOTHING

    def replay(self, ledger: Ledger) -> None:
        """Tell the odometer what it does not know."""
        take_in(self.accountant, ledger)

    def kept_state(self) -> dict[str, Any] | None:  # type: ignore[override]
        """The odometer's."""
        return self.accountant.kept_state()

    def leakage_after(self, epsilon: float) -> float:  # type: ignore[override]
        """Of all epochs together."""
        return self.accountant.total_after(epsilon)

    def drawn_scales(self, steps: list[int], epsilons: Any) -> Any:
        """The plan's, of steps within their epochs."""
        return super().drawn_scales([step % self._n_steps for step in steps], epsilons)


def renewed_guard(accountant: TemporalAccountant | None, plan: Plan | None) -> RenewedGuard:
    """A plan that is renewed, with the odometer that counts across.

    Raises
    ------
    InputError
        They are not what that needs.
    PlanError
        The plan does not hold its level against the odometer's adversary, or renewing it leaks without end.
    """
    if not isinstance(plan, BudgetPlan) or plan.horizon is None or plan.metric is not None:
        raise InputError(
            "expected a plan of budgets with a horizon, without a metric, to be renewed after its last step; one without a "
            "horizon lasts for ever, and noise at a delta does not begin again"
        )
    if not isinstance(accountant, TemporalAccountant) or accountant.alpha is not None or len(accountant):
        raise InputError(
            "expected an accountant without alpha that has spent nothing: an odometer, which says what all epochs leak "
            "together. Each of them holds the plan's alpha by itself"
        )
    if accountant.bound not in {"exact", "paper"} or accountant.metric is not None or accountant.horizon is not None:
        raise InputError("expected an odometer of budgets with constant matrices, and without a horizon or a metric")
    return RenewedGuard(plan, accountant)
