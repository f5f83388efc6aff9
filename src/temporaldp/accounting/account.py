"""What an accountant knows: who is accounted for and how, what was spent, and the odometers and filters that follow from it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from temporaldp.accounting.accountant_checks import checked_budget
from temporaldp.accounting.adoption import Adoption, adoption_of
from temporaldp.accounting.counted_odometers import CountedOdometers
from temporaldp.accounting.filter import Filters, filters_at_start
from temporaldp.accounting.kept_state import KeptAdoption, ReadBudgets, checked_state
from temporaldp.accounting.past_budgets import PastBudgets
from temporaldp.accounting.protocol import Accounting, Filter, Leakage, Odometer, grouped, listed
from temporaldp.accounting.refusal import MOST_SHOWN, refusal
from temporaldp.correlation import Adversary, Population
from temporaldp.errors import BudgetError, InputError
from temporaldp.mechanisms.events import release_from

NEVER = -1
"""In place of a number of steps that spent no more than the reserve: one of them did."""

FEW_BEHIND = 64
"""Steps by which filters may lag behind what was spent and still are brought up to date with every spend; if they lag further,
as after a ledger was read, they wait until they are needed."""


class Account:
    """One release's account. What it is given was checked before, and one thread at a time uses it.

    Odometers and filters are made when they are first asked for, and brought up to date with what was spent whenever they are.

    Parameters
    ----------
    population : Population
        With a horizon, with matrices for so many steps.
    accounting : Accounting
        As a user chose it.
    alpha : float or None
        The level to hold, in nats; None for an odometer.
    horizon : int or None
    asked_reserve : float or None
        None for the largest reserve there is.
    """

    def __init__(
        self,
        population: Population,
        accounting: Accounting[Any, Any],
        *,
        alpha: float | None,
        horizon: int | None,
        asked_reserve: float | None,
    ) -> None:
        self.population = self._first = population
        self.accounting, self.delta = accounting, accounting.delta
        self.alpha, self.horizon, self.asked_reserve = alpha, horizon, asked_reserve
        self.spent = PastBudgets()
        self.expected_reserve: float | None = None
        self._methods: list[tuple[Accounting[Any, Any], list[int]]] | None = None
        self._adoptions: tuple[Adoption, ...] = ()
        self._timelines: tuple[Adversary, ...] = ()
        self._last_allowed: Filters | None = None
        self._n_reserved = 0
        self._counted: CountedOdometers | None = None
        self._resumed: CountedOdometers | None = None
        self._end: int | None = None

    def __len__(self) -> int:
        return len(self.spent)

    def __copy__(self) -> Account:
        """An account of its own with the same past: what changes when something is spent is copied."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__ | {"spent": copy(self.spent), "_counted": copy(self._counted)})
        return made

    def methods(self, following: Any = None) -> list[tuple[Accounting[Any, Any], list[int]]]:
        """The methods, and the users whom each accounts for. At a delta the grid depends on the first release.

        That is `following` if nothing was spent yet; nothing is kept then.
        """
        if self._methods is not None:
            return self._methods
        first = [*self.spent[:1], following][:1] if self.delta else []
        found = grouped(self.accounting, self.population.users, first, online=True)
        if self.spent or not self.delta:
            self._methods = found
        return found

    def odometers(self, following: Any = None) -> list[Odometer]:
        """Everybody's odometer, after all that was spent. At a delta, `following` chooses the grid if nothing was spent yet."""
        # Taken out while they change: after an interrupt they are made anew.
        known, self._counted = self._counted or self._nothing_counted(following), None
        counted = known.after(self.spent, self._adoptions)
        if self.spent or not self.delta:
            self._counted = counted
        return counted.each

    def worst(self) -> tuple[float, int, str | None]:
        """The largest leakage so far, in nats, its step, and whose it is; 0 at step 0 before the first one."""
        if not self.spent:
            return 0.0, 0, None
        worst = [odometer.worst() for odometer in self.odometers()]
        found = [(*one, name) for one, name in zip(worst, self.population.names, strict=True)]
        return max(found, key=operator.itemgetter(0))

    @property
    def last_allowed(self) -> Filters | None:
        """What was allowed when it was last asked; looked for when it is first needed. None for an odometer."""
        if self._last_allowed is None and self.alpha is not None:
            self._last_allowed = filters_at_start(
                self._first_methods(),
                self._first.users,
                self.alpha,
                self.horizon,
                self.asked_reserve,
                self.expected_reserve,
            )
        return self._last_allowed

    @property
    def allowed(self) -> Filters | None:
        """What is allowed after all that was spent; None for an odometer."""
        known = self.last_allowed
        self._last_allowed = None if known is None else known.caught_up(self._adoptions, self.spent)
        return self._last_allowed

    @property
    def filters(self) -> tuple[Filter, ...]:
        """What the level still allows each user; empty for an odometer."""
        allowed = self.allowed
        return () if allowed is None else allowed.each

    def expect_reserve(self, reserve: float) -> None:
        """Begin with what an earlier accountant of the same release found that it can keep, if that holds (it is tried)."""
        if not (self.alpha is not None and 0.0 < reserve <= self.alpha):
            raise BudgetError(f"expected a reserve up to alpha = {self.alpha}, got {reserve!r}")
        self.expected_reserve = reserve

    @property
    def reserve(self) -> float:
        """What every later step can still spend, in nats; 0 for nothing."""
        if self.last_allowed is None:
            return 0.0
        return self._adoptions[-1].reserve if self._adoptions else self.last_allowed.reserve

    @property
    def is_over(self) -> bool:
        """Whether a step was declared the last one."""
        return self._end is not None and len(self) >= self._end

    def counted(self, given: Any) -> Any:
        """A release as it is counted: a number, or at a delta mechanisms; `BudgetError` or `InputError` for anything else."""
        return self._countable(given) if self.delta else checked_budget(given, self.accounting)

    def require_steps(self, n_steps: int) -> None:
        """Raise `BudgetError` unless so many steps are left."""
        if self.is_over:
            raise BudgetError(f"step {len(self) - 1} was declared the last, and used what later ones would need")
        left = n_steps if self.horizon is None else self.horizon - len(self)
        if left == 0:
            raise BudgetError(f"all {self.horizon} steps of the horizon are over; nothing may follow")
        if left < n_steps:
            raise BudgetError(f"{n_steps} budgets, but only {left} of the horizon's {self.horizon} steps are left")

    def listed(self, releases: Any) -> list[Any]:
        """Releases of the next steps, one each; each as it is counted: a number, or at a delta mechanisms."""
        several = isinstance(releases, list | np.ndarray) or (isinstance(releases, tuple) and not self.delta)
        each = list(listed(releases, None)) if several else [releases]
        return [self.counted(one) for one in each]

    def require(self, releases: list[Any], last: bool) -> None:
        """Raise `LeakageBudgetError`, or `BudgetError`, unless these may be spent at the next steps."""
        self.require_steps(len(releases))
        now = self
        for number, release in enumerate(releases, start=1):
            final = last and number == len(releases)
            now._require_one(release, final)
            if number < len(releases):
                now = copy(now)
                now.note([release], False)

    def _require_one(self, budget: Any, last: bool) -> None:
        allowed = None if self._are_reserved([budget]) else self.allowed
        number = None if allowed is None else allowed.refusing(budget, last)
        if allowed is not None and number is not None:
            method = next(method for method, numbers in self.methods() if number in numbers)
            user, name = self.population.users[number], self.population.names[number]
            if self._timelines:
                user = self._timelines[number].between(0, len(self) + MOST_SHOWN)
            raise refusal(allowed, method, user, name, self.spent[:], budget, last=last)

    def admits(self, releases: Sequence[Any], last: bool = False) -> bool:
        """Whether these may be spent at the next steps, one each."""
        if self.is_over or (self.horizon is not None and len(self) + len(releases) > self.horizon):
            return False
        return self._are_reserved(releases) or self.allowed is None or self.allowed.admits(releases, last)

    def known_leakage(self) -> list[Leakage] | None:
        """The leakage of every step so far about each user, where odometers keep it up to date; None elsewhere."""
        found = [odometer.leakage(self.spent[:]) for odometer in self.odometers()]
        each = [one for one in found if one is not None]
        return each if len(each) == len(found) else None

    def note(self, budgets: list[Any], last: bool) -> None:
        """Take note of what the next steps spend: in one act, whatever interrupts it; filters and odometers follow."""
        self._end = len(self) + len(budgets) if last else None
        self.spent += budgets
        if self._last_allowed is not None and len(self) - self._last_allowed.n_steps <= FEW_BEHIND:
            _ = self.allowed

    def adopt(self, now: Population, *, both: bool, reserve: float | None) -> None:
        """Account by other matrices from the next step on; as `TemporalAccountant.adopt`."""
        method = self.methods()[0][0]
        made, self._timelines = adoption_of(
            self.population, now, self._timelines, len(self), method, self.allowed if reserve is None else None, self.horizon,
            both=both, reserve=reserve, asked=self.asked_reserve,
        )  # fmt: skip
        self._n_reserved, self._methods = len(self), None
        self.population, self._adoptions = made.population, (*self._adoptions, made)

    def adversaries_until(self, n_steps: int) -> Population:
        """Everybody who is accounted for, with their matrices of so many steps, those before an adoption too."""
        if self._timelines:
            return Population(tuple(one.between(0, n_steps) for one in self._timelines), self.population.names)
        return Population(tuple(one.between(0, n_steps) for one in self.population.users), self.population.names)

    def kept_state(self) -> dict[str, Any] | None:
        """What has to be known of the past to go on from here, as JSON values; None where that is every budget."""
        if self.delta or self.is_over or len(self) == self.horizon:
            return None
        known = {
            "n_steps": len(self),
            "horizon": self.horizon,
            "n_adopted": len(self._adoptions),
            "reserved": self._are_reserved([]),
        }
        allowed = self.allowed
        self.odometers()
        odometers = None if self._counted is None else self._counted.saved()
        filters = None if allowed is None else allowed.saved()
        if odometers is None or (filters is None and allowed is not None):
            return None
        return {**known, "odometers": odometers, "filters": filters}

    def resume(self, state: dict[str, Any], adopted: Sequence[KeptAdoption], read: ReadBudgets) -> None:
        """Go on from a kept state; as `TemporalAccountant.resume`."""
        with checked_state(state, len(self), len(adopted)):
            for one in adopted:
                self.spent = PastBudgets(one.step, read)
                self.adopt(Population.of(one.adversary), both=one.both, reserve=one.reserve)
            self.spent = PastBudgets(state["n_steps"], read)
            self._n_reserved = len(self) if state["reserved"] else NEVER
            if state["horizon"] != self.horizon:
                raise InputError(f"the state is for {state['horizon']} steps")
            if (state["filters"] is None) != (self.alpha is None):
                raise InputError("the state has a filter without a level, or the level no filter")
            timelines = self._timelines or self._first.users
            self._resumed = CountedOdometers.restored(state["odometers"], timelines, len(self), len(adopted))
            if self.alpha is not None:
                self._last_allowed = Filters.restored(state["filters"], timelines, self.alpha, self.horizon)

    def _nothing_counted(self, following: Any) -> CountedOdometers:
        """Before the first step, and before anything was adopted; or a resumed state."""
        if self._resumed is not None:
            return copy(self._resumed)
        return CountedOdometers.at_start(self._first_methods(following), self._first.users)

    def _first_methods(self, following: Any = None) -> list[tuple[Accounting[Any, Any], list[int]]]:
        """The accounting methods of everybody who was known in the beginning."""
        if self._adoptions:
            return grouped(self.accounting, self._first.users, online=True)
        return self.methods(following)

    def _countable(self, given: Any) -> Any:
        """What is published at a step, at a delta, if it can be counted."""
        release = release_from(given)
        for method, numbers in self.methods(release):
            method.require_countable([self.population.users[k] for k in numbers], release)
        return release

    def _are_reserved(self, epsilons: Sequence[float]) -> bool:
        """Whether no step so far spent more than the reserve, nor do these: every step may spend it, and no filter is asked.

        So a release that goes on after many such steps, which a ledger has, begins at once: its filters need not know them.
        """
        if self.last_allowed is None or self._n_reserved == NEVER:
            return False
        number, reserve = self._n_reserved, self.reserve
        while number < len(self) and self.spent[number] <= reserve:
            number += 1
        self._n_reserved = number
        return number == len(self) and max(epsilons, default=0.0) <= reserve
