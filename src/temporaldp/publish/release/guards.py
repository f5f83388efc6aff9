"""Guards, which enforce the level of a continual release: a plan, or an accountant with or without a plan of budgets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from temporaldp.base.errors import InputError, SpentError
from temporaldp.base.values import FloatArray, refuse
from temporaldp.core.accounting import TemporalAccountant, accounting_blocks
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.core.mechanisms.distances import require_same_distances
from temporaldp.core.planning import BudgetPlan, Guarantee, Plan, replan
from temporaldp.core.planning.guarantee import TEMPORAL
from temporaldp.core.planning.histogram_noise import Noise, laplace_scales
from temporaldp.core.planning.measurement import (
    Measurement,
    budget_measurement,
    require_budget_mechanism,
)
from temporaldp.data.tables.moments import require_phase
from temporaldp.publish.release.calendar import Calendar
from temporaldp.publish.release.chain import LedgerRow
from temporaldp.publish.release.ledger import Ledger
from temporaldp.publish.release.resuming import begun, correlations_of, is_new, plan_digest, take_in
from temporaldp.publish.release.step import StepRequest

Mechanism = Callable[[Any, float], Any]


@dataclass(frozen=True, slots=True)
class Forecast:
    """Forecast of the budget and the leakage of a step.

    Parameters
    ----------
    time : str
    parameter : float
        Argument of the mechanism: a budget in nats, or under a noise plan a scale; 0 for a step that would not be published.
    epsilon : float
        In nats.
    leakage : float or None
        Largest leakage of any step after it, in nats; None where it is not computed.
    """

    time: str
    parameter: float
    epsilon: float
    leakage: float | None


class Guard(ABC):
    """Enforcement of the level of a release; base class of guards, for releases that spend budgets.

    `promise` is an upper bound on the leakage of every step, in nats: alpha, except where alpha is renewed.
    """

    alpha: float
    accounting: Accounting[Any, Any]
    delta: float = 0.0
    noise: Noise = "laplace"
    guarantee: Guarantee = TEMPORAL
    horizon: int | None
    accountant: TemporalAccountant | None = None
    promise: float
    has_phases = False
    """Whether each step has matrices or a budget of its own."""

    @abstractmethod
    def identity(self, salt: str | None) -> dict[str, Any]:
        """Configuration of a ledger, as JSON values; `salt` is that of the digests in it, None for a new one."""

    def position(self, n_steps: int, time: str) -> int:
        """Position of the next step in the plan, after n steps, at this time."""
        return n_steps

    @abstractmethod
    def measurement(self, mechanism: Mechanism, step: int, epsilon: float | None, *, last: bool) -> Measurement:
        """Return the measurement of the step, empty if epsilon is 0; raise an error if the level does not permit it."""

    def begin(self, ledger: Ledger) -> None:
        """Prepare for the steps of a matching ledger: an accountant continues from its checkpoint.

        The accountant's matrices are kept beside the ledger.
        """
        if self.accountant is not None:
            self.accountant = begun(self.accountant, ledger)

    def require_mechanism(self, mechanism: Mechanism) -> None:
        """Raise an error for a mechanism that does not fit the budgets or scales of the steps, or leaks more."""
        counting = (self.accountant, *accounting_blocks.charged())
        require_budget_mechanism(mechanism, *(one.accounting.distances for one in counting if one is not None))

    def recognised(
        self, request: StepRequest, time: str, calendar: Calendar, others: Sequence[LedgerRow]
    ) -> int | None:
        """The step of an earlier request that this one repeats; None if it requests the next one, which has this time.

        `others` are the rows that other processes added since the request was made.
        """
        return calendar.position(time)

    def charge(self, epsilon: float, *, last: bool) -> None:
        """Charge the accountants of the blocks around the caller."""
        accounting_blocks.charge([epsilon], last=last, counted=self.accounting)

    def drawn_scales(self, steps: list[int], epsilons: FloatArray) -> FloatArray:
        """The scales of a histogram's noise, in counts, at steps that spent these epsilons."""
        return laplace_scales(epsilons)

    def forecast(self, mechanism: Mechanism, start: int, times: list[str], left_out: set[str]) -> list[Forecast]:
        """Budgets and leakage of the steps from `start` on, if some are left out. Changes nothing."""
        trial, found = copy(self), []
        trial.accountant = copy(self.accountant)
        for n_steps, time in enumerate(times, start=start):
            at = trial.position(n_steps, time)
            made = trial.measurement(mechanism, at, 0.0 if time in left_out else None, last=False)
            found.append(Forecast(time, made.parameter, made.epsilon, trial.leakage_after(made.epsilon)))
            trial.go_on(made.epsilon, time)
        return found

    def go_on(self, epsilon: float, time: str) -> None:
        """Count a step that spends this."""
        if self.accountant is not None:
            self.accountant.spend(epsilon)

    def replay(self, ledger: Ledger) -> None:
        """Count the steps of the ledger that the accountant has not counted yet; without one, nothing."""
        if self.accountant is not None:
            known = len(self.accountant)
            if known > len(ledger):
                raise InputError(
                    f"the accountant has {known} steps and the ledger {len(ledger)}: something else was charged to the "
                    "release's own accountant; open the release again"
                )
            take_in(self.accountant, ledger)

    def kept_state(self) -> dict[str, Any] | None:
        """State of the accountant after the steps so far, as JSON values; None if all steps are needed.

        A plan alone has nothing to keep; one that is made anew reads what was spent.
        """
        return {} if self.accountant is None else self.accountant.kept_state()

    def leakage_after(self, epsilon: float) -> float | None:
        """Largest leakage of any step once the next one has spent epsilon; None where it is not computed."""
        return None if self.accountant is None else self.accountant.total(epsilon)


class PlanGuard(Guard):
    """A plan that satisfies the level by itself: spending less than it grants leaks less, and its noise is fixed."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.alpha, self.accounting, self.delta = plan.alpha, plan.accounting, plan.delta
        self.promise = self.alpha
        self.noise, self.horizon, self.guarantee = plan.noise, plan.horizon, plan.guarantee
        self.has_phases = plan.has_phases

    def position(self, n_steps: int, time: str) -> int:
        """Position of the next step; an error if its time is at another phase of a clock than the plan's step."""
        require_phase(self._plan, time, n_steps)
        return n_steps

    def identity(self, salt: str | None) -> dict[str, Any]:
        """The level, the digest of the plan, and the plan's terms."""
        return {
            "alpha": self.alpha,
            "guarantee": str(self.guarantee),
            "accounting": self.accounting.document(),
            "plan": plan_digest(self._plan),
            **self._plan.terms,
        }

    def measurement(self, mechanism: Mechanism, step: int, epsilon: float | None, *, last: bool) -> Measurement:
        """Return the measurement of the next step of the plan."""
        return self._plan.measurement(mechanism, step, epsilon)

    def require_mechanism(self, mechanism: Mechanism) -> None:
        """Raise an error for a mechanism that does not fit the plan."""
        self._plan.require_mechanism(mechanism)

    def charge(self, epsilon: float, *, last: bool) -> None:
        """Charge the accountants of the blocks around the caller, as the plan does."""
        self._plan.charge([epsilon], last=last)

    def drawn_scales(self, steps: list[int], epsilons: FloatArray) -> FloatArray:
        """Scales of the plan's noise at some steps."""
        return self._plan.drawn_scales(steps, epsilons)


class AccountantGuard(Guard):
    """An accountant, and a plan of budgets that is made again if less was spent than planned."""

    accountant: TemporalAccountant

    def __init__(self, accountant: TemporalAccountant, plan: BudgetPlan | None) -> None:
        self.alpha = self.promise = _checked_alpha(accountant, plan)
        self.accountant, self.horizon, self._given, self._plan = copy(accountant), accountant.horizon, plan, plan
        self.accounting = accountant.accounting
        self.has_phases = not accountant.population.is_constant

    def identity(self, salt: str | None) -> dict[str, Any]:
        """The level, the given plan, and the correlations by salted digests."""
        return {
            "alpha": self.alpha,
            "guarantee": str(self.guarantee),
            "horizon": self.horizon,
            "reserve": self.accountant.asked_reserve,
            "accounting": self.accounting.document(),
            "plan": None if self._given is None else plan_digest(self._given),
            "correlations": correlations_of(self.accountant.population.users, salt=salt),
        }

    def next_epsilon(self, step: int, *, last: bool) -> float:
        """Budget of the plan; without a plan the sustainable budget, and all that remains at the last step."""
        plan = self._current_plan()
        if plan is not None:
            usual = float(plan.epsilons_for(1, start=step)[0])
        elif last:
            return self.accountant.remaining(last=True)
        else:
            usual = self.accountant.reserve
            if usual == 0.0:
                raise SpentError(
                    "no positive budget is sustainable over an infinite horizon, so there is no default: give an epsilon for "
                    "each step, a plan, or a horizon"
                )
        # A plan made elsewhere may use alpha to the last digit; the accountant keeps a few for rounding. Whether it admits a
        # budget takes much less time than what it admits at most.
        is_admitted = self.accountant.admits([usual], last=last)
        return usual if is_admitted else min(usual, self.accountant.remaining(last=last))

    def measurement(self, mechanism: Mechanism, step: int, epsilon: float | None, *, last: bool) -> Measurement:
        """Return the measurement with the requested budget, if the accountant admits it."""
        budget = self.next_epsilon(step, last=last) if epsilon is None else epsilon
        made = budget_measurement(mechanism, budget, step)
        self.accountant.check(made.epsilon, last=last)
        return made

    def _current_plan(self) -> BudgetPlan | None:
        """The plan, made again if less was spent than planned."""
        accountant = self.accountant
        if accountant.horizon is None or accountant.reserve > 0.0 or len(accountant) >= accountant.horizon:
            return self._plan
        planned = 0.0 if self._plan is None else self._plan.epsilons[: len(accountant)].sum()
        if self._plan is None or accountant.spent.sum() < planned * (
            1.0 - 2e-5
        ):  # less than budgets of six digits explain
            self._plan = replan(accountant)
        return self._plan


def guard_of(accountant: TemporalAccountant | None, plan: Plan | None) -> Guard:
    """Guard of an accountant, a plan, or both.

    Raises
    ------
    InputError
        Neither is given, or they do not fit one another.
    """
    for given, kind in ((accountant, TemporalAccountant), (plan, Plan)):
        if given is not None and not isinstance(given, kind):
            raise InputError(f"expected a {kind.__name__}, got {type(given).__name__}")
    if accountant is None:
        if plan is None:
            raise InputError("expected an accountant or a plan (or both): one of them must enforce the level")
        return PlanGuard(plan)
    if plan is not None and not isinstance(plan, BudgetPlan):
        raise InputError(
            "expected a noise plan without an accountant: an accountant admits adaptive budgets, which approximate DP does "
            "not allow here, because hockey-stick divergences do not compose along adaptive paths. The noise is fixed "
            "beforehand, and the plan alone enforces the level"
        )
    return AccountantGuard(accountant, plan)


def _checked_alpha(accountant: TemporalAccountant, plan: BudgetPlan | None) -> float:
    """The level of an accountant that has just begun, and that the plan fits."""
    if accountant.alpha is None:
        raise InputError("expected an accountant with alpha: an odometer refuses nothing")
    if not is_new(accountant):
        raise InputError(
            f"expected an accountant that has spent nothing yet, and adopted nothing, got one with {len(accountant)} steps"
        )
    if plan is None:
        return accountant.alpha
    require_same_distances(plan.accounting.distances, accountant.accounting.distances)
    refuse(
        (
            not plan.guarantee.is_temporal,
            InputError(
                f"expected a plan of the temporal level beside an accountant, got one of the {plan.guarantee.wording.label}, "
                "which enforces its level alone: leave out the accountant"
            ),
        ),
        (
            plan.accounting.is_exact and not accountant.accounting.is_exact,
            InputError(
                "the plan satisfies alpha by the exact leakage, and this accountant computes an upper bound of it, which would "
                "exceed alpha under the plan: make the accountant with accounting=Exact(), plan by the same method, or give "
                "the plan alone"
            ),
        ),
        (
            plan.alpha > accountant.alpha,
            InputError(f"the plan has alpha = {plan.alpha:g}, more than the accountant's {accountant.alpha:g}"),
        ),
        (
            plan.horizon is not None and accountant.horizon != plan.horizon,
            InputError(
                f"the plan has {plan.horizon} steps, so the accountant needs a horizon of {plan.horizon}, got "
                f"{accountant.horizon}"
            ),
        ),
    )
    return accountant.alpha
