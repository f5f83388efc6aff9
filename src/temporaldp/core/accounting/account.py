"""The account of one release: users, accounting method and budgets spent, and the odometers and filters computed from them.

An account is a population, a level, the budgets so far and the adopted correlations; `OnlineStates.after` computes the rest.
Odometers and filters are computed on request, so that a ledger of many steps opens at once. A saved state equals a computed
one.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from copy import copy
from typing import Any, TypeAlias

import numpy as np

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.values import LARGEST, exact_sum, is_at_most, real_number, sum_up, whole_number
from temporaldp.core.accounting.adoption import Adoption, KeptAdoption, continued, require_adoptable
from temporaldp.core.accounting.exact.online import ExactFilter, ExactOdometer
from temporaldp.core.accounting.online_states import MOST_SHOWN, Filters, OnlineStates, filters_at_start, refusal
from temporaldp.core.accounting.protocol import Accounting, Filter, Group, Leakage, Odometer, grouped, listed
from temporaldp.core.correlation import Population
from temporaldp.core.mechanisms.distances import require_no_nearer
from temporaldp.core.mechanisms.events import epsilon_of, release_from

ReadBudgets: TypeAlias = Callable[[], Sequence[float]]
"""Returns what the steps before a saved state spent."""


class Account:
    """Account of one release, for one thread at a time. Its arguments are checked by the caller.

    Odometers and filters are made on first request, and brought up to date with the budgets spent on every request.

    Parameters
    ----------
    population : Population
        Users; with a horizon, with matrices for that number of steps.
    accounting : Accounting
        Accounting method, as chosen by the user.
    alpha : float or None
        The level to satisfy, in nats; None for an odometer.
    horizon : int or None
    asked_reserve : float or None
        Requested reserve, in nats; None for the largest.
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
        self._spent: list[Any] = []
        self._total: tuple[float, ...] = ()  # of all budgets, without rounding
        self._n_unread = 0
        self._read: ReadBudgets = tuple
        self.expected_reserve: float | None = None
        self._methods: list[Group] | None = None
        self._adoptions: tuple[Adoption, ...] = ()
        self._timelines = population.users
        self._last_allowed: Filters | None = None
        self._n_reserved: int | None = 0
        self._counted: OnlineStates[Odometer] | None = None
        self._end: int | None = None

    def __len__(self) -> int:
        return len(self._spent)

    def __copy__(self) -> Account:
        """An account of its own with the same past: what changes when something is spent is copied."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        # After that: budgets that another thread reads meanwhile would only be read once more.
        made._spent, made._counted = list(self._spent), copy(self._counted)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Whole: a copy in another process cannot read the budgets before a saved state."""
        return self.__dict__ | {"_spent": self.spent, "_n_unread": 0, "_read": tuple}

    @property
    def content(self) -> tuple[Any, ...]:
        """All that determines the account, for comparisons."""
        adoptions = tuple((one.step, tuple(one.lines), one.reserve) for one in self._adoptions)
        asked = self.accounting, self.alpha, self.horizon, self.asked_reserve, self._first
        return (*asked, adoptions, tuple(self.spent), self._end)

    @property
    def spent(self) -> list[Any]:
        """Budgets of all steps so far; those before a saved state are read when they are first needed."""
        if self._n_unread:
            before = list(self._read())[: self._n_unread]
            if len(before) != self._n_unread:
                raise IndexError(f"expected what {self._n_unread} steps spent, got {len(before)}")
            self._spent[: self._n_unread], self._n_unread = before, 0
        return self._spent

    def _spent_from(self, step: int) -> list[Any]:
        """The budgets of all steps, of which those before `step` may be missing."""
        return self._spent if step >= self._n_unread else self.spent

    def methods(self, following: Any = None) -> list[Group]:
        """Return the accounting methods, with the users of each.

        Under approximate DP the grid depends on the first release: `following`, if nothing was spent yet. The result is
        then not stored.
        """
        if self._methods is not None:
            return self._methods
        first = [*self._spent[:1], following][:1] if self.delta else []
        found = grouped(self.accounting, self.population.users, first, online=True)
        if self._spent or not self.delta:
            self._methods = found
        return found

    def odometers(self, following: Any = None) -> tuple[Odometer, ...]:
        """Each user's odometer after all budgets. Under approximate DP, `following` determines the first grid."""
        # Taken out while they change: after an interrupt they are computed from the first step on.
        known, self._counted = self._counted, None
        if known is None:
            made = {
                number: method.odometer(user)
                for method, numbers, users in self._first_methods(following)
                for number, user in zip(numbers, users, strict=True)
            }
            known = OnlineStates(tuple(made[k] for k in range(len(made))))
        counted = known.after(self._spent_from(known.n_steps), self._adoptions)
        if self._spent or not self.delta:
            self._counted = counted
        return counted.each

    def worst(self) -> tuple[float, int, str | None]:
        """The largest leakage so far, in nats, its step, and its user; 0 at step 0 before the first one."""
        if not self._spent:
            return 0.0, 0, None
        each = zip(self.odometers(), self.population.names, strict=True)
        level, step, name = max(((*odometer.worst(), name) for odometer, name in each), key=operator.itemgetter(0))
        return min(level, self._most()), step, name

    def worst_with(self, release: Any) -> float:
        """The largest leakage if a release, as it is counted, were spent next; changes nothing."""
        return min(max(one.worst_with(release)[0] for one in self.odometers(release)), self._most(release))

    @property
    def last_allowed(self) -> Filters | None:
        """Filters of the last request, computed on the first; None for an odometer."""
        if self._last_allowed is None and self.alpha is not None:
            self._last_allowed = filters_at_start(
                self._first_methods(), self.alpha, self.horizon, self.asked_reserve, self.expected_reserve
            )
        return self._last_allowed

    @property
    def allowed(self) -> Filters | None:
        """Filters after all budgets; None for an odometer."""
        known = self.last_allowed
        self._last_allowed = None if known is None else known.after(self._spent_from(known.n_steps), self._adoptions)
        return self._last_allowed

    @property
    def filters(self) -> tuple[Filter, ...]:
        """Each user's filter after all budgets; empty for an odometer."""
        allowed = self.allowed
        return () if allowed is None else allowed.each

    def expect_reserve(self, reserve: float) -> None:
        """Try the reserve of an earlier accountant of the same release first."""
        if not (self.alpha is not None and 0.0 < reserve <= self.alpha):
            raise BudgetError(f"expected a reserve up to alpha = {self.alpha}, got {reserve!r}")
        self.expected_reserve = reserve

    @property
    def reserve(self) -> float:
        """Budget that every later step can still spend, in nats; 0 if there is none."""
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
        """Raise `BudgetError` unless `n_steps` further steps are left."""
        if self.is_over:
            raise BudgetError(f"step {len(self) - 1} was declared the last and used the reserve of later steps")
        left = n_steps if self.horizon is None else self.horizon - len(self)
        if left == 0:
            raise BudgetError(f"all {self.horizon} steps of the horizon are over; no step may follow")
        if left < n_steps:
            raise BudgetError(f"{n_steps} budgets, but only {left} of the horizon's {self.horizon} steps are left")

    def listed(self, releases: Any) -> list[Any]:
        """Releases of the next steps, one each, in the form that is counted: a number, or mechanisms under approximate DP."""
        several = isinstance(releases, list | np.ndarray | Iterator | Set | Mapping)
        several = several or (isinstance(releases, tuple) and not self.delta)
        each = list(listed(releases, None)) if several else [releases]
        return [self.counted(one) for one in each]

    def require(self, releases: list[Any], last: bool) -> None:
        """Raise `LeakageBudgetError` or `BudgetError` unless these releases are admitted at the next steps."""
        self.require_steps(len(releases))
        refused = self._refused(releases, last)
        if refused is None:
            return
        step, number, before = refused
        method = next(method for method, numbers, _ in self.methods() if number in numbers)
        user, name = self.population.users[number], self.population.names[number]
        if self._adoptions:
            user = self._timelines[number].between(0, len(self) + step + MOST_SHOWN)
        spent, final = [*self.spent, *releases[:step]], last and step == len(releases) - 1
        left = self._left(exact_sum([*self._total, *releases[:step]]), 1)
        raise refusal(before, method, user, name, spent, releases[step], last=final, left=left)

    def admits(self, releases: Sequence[Any], last: bool = False) -> bool:
        """Whether these releases are admitted at the next steps, one each."""
        if self.is_over or (self.horizon is not None and len(self) + len(releases) > self.horizon):
            return False
        return self._refused(list(releases), last) is None

    def remaining(self, steps: int, last: bool) -> float:
        """The largest epsilon for each of the next steps, in nats; a lower bound, inf for an odometer."""
        allowed = self.allowed
        if allowed is None:
            return math.inf
        adds_up = (last or self.horizon == len(self) + steps) and (steps == 1 or not self.reserve)
        return max(allowed.constant(steps, last), self._left(self._total, steps) if adds_up else 0.0)

    def known_leakage(self) -> list[Leakage] | None:
        """The leakage of every step so far for each user, where odometers keep it; None elsewhere."""
        found = [odometer.leakage(self.spent) for odometer in self.odometers()]
        return None if None in found else found  # type: ignore[return-value]

    def note(self, budgets: list[Any], last: bool) -> None:
        """Record the budgets of the next steps, atomically; filters and odometers are updated on request."""
        self._end = len(self) + len(budgets) if last else None
        self._spent += budgets
        if not self.delta:
            self._total = exact_sum([*self._total, *budgets])
        # Steps by which filters may lag behind what was spent and still are brought up to date with every spend; if they lag
        # further, as after a ledger was read, they wait until they are needed
        if self._last_allowed is not None and len(self) - self._last_allowed.n_steps <= 64:
            _ = self.allowed

    def adopt(self, now: Population, *, both: bool, reserve: float | None) -> None:
        """Account with other matrices from the next step on; as `TemporalAccountant.adopt`."""
        method = self.methods()[0][0]
        require_adoptable(self.horizon, method.name)
        lines, known = continued(self.population, now, both=both), self._timelines
        names = tuple(self.population.names[parent] for parent, _ in lines)
        timelines = tuple(
            known[parent]
            if user.directions == known[parent].current.directions
            else known[parent].changed(len(self), user)
            for parent, user in lines
        )
        kept = reserve or 0.0
        allowed = self.allowed if reserve is None and self.asked_reserve != 0.0 else None
        if allowed is not None:
            most = method.sustainable_epsilon(list({id(user): user for _, user in lines}.values()), allowed.alpha)
            most = most if self.asked_reserve is None else min(most, self.asked_reserve)
            kept = allowed.adopted(Adoption(len(self), lines, 0.0)).with_largest_reserve(most).reserve
        self._n_reserved, self._methods, self._timelines = len(self), None, timelines
        self.population = Population(tuple(user for _, user in lines), names)
        self._adoptions = (*self._adoptions, Adoption(len(self), lines, kept))

    def require_reserve(self) -> None:
        """Raise `BudgetError` unless every filter keeps the reserve of the last adoption, or one smaller by some billionths."""
        least = min((one.reserve for one in self.filters if isinstance(one, ExactFilter)), default=0.0)
        if least < self.reserve * (1.0 - 1e-6):
            raise BudgetError(
                f"expected a reserve that alpha = {self.alpha:g} allows at every later step after what was spent, got "
                f"{self.reserve!r}; leave it out for the largest one, or give 0"
            )

    def adversaries_until(self, n_steps: int) -> Population:
        """All users, with their matrices of this number of steps, including those before an adoption."""
        return Population(tuple(one.between(0, n_steps) for one in self._timelines), self.population.names)

    @property
    def n_adopted(self) -> int:
        """Number of adoptions so far."""
        return len(self._adoptions)

    def kept_state(self) -> dict[str, Any] | None:
        """State from which an account can resume, as JSON values; None where all budgets are needed."""
        if self.delta or self.is_over or len(self) == self.horizon:
            return None
        allowed = self.allowed
        filters = None if allowed is None else [one.saved() for one in allowed.each]
        odometers = [] if None in (filters or ()) else [one.saved() for one in self.odometers()]
        if not odometers or None in odometers:
            return None
        return {
            "n_steps": len(self),
            "total": list(self._total),
            "horizon": self.horizon,
            "n_adopted": self.n_adopted,
            "reserved": self._are_reserved([]),
            "reserve": None if allowed is None else allowed.reserve,
            "odometers": odometers,
            "filters": filters,
        }

    def resume(self, state: dict[str, Any], adopted: Sequence[KeptAdoption], read: ReadBudgets) -> None:
        """Continue from a saved state. After an `InputError`, the account must not be used any more.

        Parameters
        ----------
        state : dict
            As `kept_state` of an account of the same release returned it.
        adopted : sequence of KeptAdoption
            The adoptions before it.
        read : callable
            Returns the budgets of the steps before it; called only if they are needed.
        """
        if len(self):
            raise InputError(f"expected an accountant that has spent nothing yet, got one with {len(self)} steps")
        try:
            self._restore(state, adopted, read)
        except (KeyError, TypeError, ValueError, AttributeError, AssertionError, IndexError) as error:
            raise InputError(f"expected the kept state of an accountant like this one: {error}") from error

    def _restore(self, state: dict[str, Any], adopted: Sequence[KeptAdoption], read: ReadBudgets) -> None:
        found = state["n_adopted"], state["horizon"], state["filters"] is None
        if found != (len(adopted), self.horizon, self.alpha is None):
            raise ValueError(
                f"the state is after {found[0]} adoptions, for the horizon {found[1]} and {'without' if found[2] else 'with'} "
                f"filters; expected {len(adopted)} adoptions, the horizon {self.horizon} and alpha = {self.alpha}"
            )
        self._read = read
        for one in adopted:
            self._spent, self._n_unread = [None] * one.step, one.step
            self.adopt(Population.of(one.adversary), both=one.both, reserve=one.reserve)
        self._n_unread = whole_number(state["n_steps"], "n_steps", least=0)
        self._spent = [None] * self._n_unread
        self._n_reserved = len(self) if state["reserved"] else None
        self._total = tuple(map(float, state["total"]))
        at = len(self), len(adopted)
        odometers = zip(state["odometers"], self._timelines, strict=True)
        self._counted = OnlineStates(tuple(ExactOdometer.restored(*one) for one in odometers), *at)
        if self.alpha is not None:
            alpha, horizon = self.alpha, self.horizon
            filters = zip(state["filters"], self._timelines, strict=True)
            each = tuple(ExactFilter.restored(*one, alpha=alpha, horizon=horizon) for one in filters)
            self._last_allowed = Filters(each, *at, alpha=alpha, reserve=float(state["reserve"]), horizon=horizon)

    def _first_methods(self, following: Any = None) -> list[Group]:
        """The accounting methods of the users before any adoption."""
        if self._adoptions:
            return grouped(self.accounting, self._first.users, online=True)
        return self.methods(following)

    def _countable(self, given: Any) -> Any:
        """Return the mechanisms of a step at a delta, if they can be accounted for."""
        release = release_from(given)
        for method, _, users in self.methods(release):
            method.require_countable(users, release)
        return release

    def _refused(self, releases: list[Any], last: bool) -> tuple[int, int, Filters] | None:
        """The first of these releases that is not admitted, the user whose filter refuses it, and the filters before it."""
        allowed, total = None if self._are_reserved(releases) else self.allowed, self._total
        if allowed is None:
            return None
        for step, (epsilon, before) in enumerate(zip(releases, allowed.before_each(releases), strict=True)):
            final, total = last and step == len(releases) - 1, exact_sum([*total, epsilon])
            adds_up = (before.is_final(final) or not self.reserve) and self._adds_up and is_at_most(total, before.alpha)
            is_admitted = adds_up or self._are_reserved(releases[: step + 1])
            if not is_admitted and (number := before.refusing(epsilon, final)) is not None:
                return step, number, before
        return None

    @property
    def _adds_up(self) -> bool:
        """Whether a step leaks no more than all budgets together, whatever the correlation: nats, not multiples of a metric."""
        one = np.ones(1)
        return not self.delta and all(
            method.promised(method.of_epsilons(one))[0] == 1.0 for method, *_ in self.methods()
        )

    def _most(self, *following: Any) -> float:
        """The sum of all budgets, rounded up, which no step's leakage exceeds; inf where they do not add up."""
        return sum_up([*self._total, *following]) if self._adds_up else math.inf

    def _left(self, total: Sequence[float], steps: int) -> float:
        """What the level leaves of the sum of all budgets for each of so many steps, rounded down; 0 for nothing."""
        level = (self.alpha or 0.0) * self._adds_up
        share = max(math.fsum([level, *(-part for part in total)]) / steps, 0.0)
        while share > 0.0 and not is_at_most([*total, *[share] * steps], level):
            share = math.nextafter(share, 0.0)
        return share

    def _are_reserved(self, epsilons: Sequence[float]) -> bool:
        """Whether no step so far spent more than the reserve, nor do these: every step may spend it, and no filter is asked.

        So a release that continues after many such steps, which a ledger has, begins at once: its filters need not know them.
        """
        if self.last_allowed is None or self._n_reserved is None:
            return False
        number, reserve = self._n_reserved, self.reserve
        while number < len(self) and self._spent_from(number)[number] <= reserve:
            number += 1
        self._n_reserved = number
        return number == len(self) and max(epsilons, default=0.0) <= reserve


def checked_budget(epsilon: Any, accounting: Accounting[Any, Any]) -> float:
    """A budget in nats, 0 or more, also of an event of dp-accounting; `BudgetError` for anything else."""
    if type(epsilon).__module__.startswith("dp_accounting."):
        spent = epsilon_of(epsilon)
        if spent > 0.0:
            require_no_nearer(accounting.distances, repr(epsilon))
        return spent
    advice = "; mechanisms are counted with accounting=ApproximateDP(delta)"
    return real_number(epsilon, "epsilon", ge=0.0, le=LARGEST, error=BudgetError, advice=advice)


def checked_reserve(reserve: float | None, alpha: float | None) -> float | None:
    """A reserve in nats, or None; `BudgetError` if it is not admissible, or there is no level."""
    if reserve is None:
        return None
    level = real_number(reserve, "reserve", ge=0.0, le=LARGEST, error=BudgetError)
    if alpha is None and reserve:
        raise BudgetError("a reserve requires a level: give alpha as well, or leave the reserve out")
    return level


def checked_horizon(population: Population, horizon: int | None) -> int | None:
    """The number of steps, from the horizon and the matrices; `BudgetError` if they differ."""
    known = None if horizon is None else whole_number(horizon, "horizon", least=1, error=BudgetError)
    for name, user in population:
        serves = user.n_steps
        if serves is not None and known is not None and serves != known:
            who = "the adversary" if name is None else f"adversary {name!r}"
            raise BudgetError(f"{who} has matrices for {serves} steps, but the horizon is {known}")
        known = known if serves is None else serves
    return known
