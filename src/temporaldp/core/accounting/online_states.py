"""The online states of all users: odometers, and with a level filters; and the error of a refused budget.

Both are states after a number of steps and of adopted correlations, brought up to date in the same way (`OnlineStates.after`).
Filters never change, so that copies of an account share them; odometers do, as their past may be long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np

from temporaldp.base.display import apart, number
from temporaldp.base.errors import BudgetError, LeakageBudgetError
from temporaldp.base.values import sum_up
from temporaldp.core.accounting.monotone_search import bisected
from temporaldp.core.accounting.protocol import Accounting, Filter, Group, OnlineState
from temporaldp.core.correlation import Adversary

if TYPE_CHECKING:
    from temporaldp.core.accounting.adoption import Adoption

State = TypeVar("State", bound=OnlineState)

RECENT, TO_COME = 256, (0, 64, 512, 4096)
"""Steps before and after a refused one, with the reserve, whose leakage shows why it was refused: as many as are needed."""

MOST_SHOWN = TO_COME[-1] + 2
"""Steps from a refused one on whose matrices are needed to say why."""


@dataclass(frozen=True, slots=True, eq=False)
class OnlineStates(Generic[State]):
    """The online states of all users after a number of steps and adoptions.

    `after` changes odometers in place: use its result alone.

    Parameters
    ----------
    each : tuple, one per user
    n_steps, n_adopted : int
        Number of steps so far, and of adopted correlations.
    """

    each: tuple[State, ...]
    n_steps: int = 0
    n_adopted: int = 0

    def after(self, spent: Sequence[Any], adoptions: Sequence[Adoption]) -> Self:
        """Return the states after all budgets and adoptions."""
        now = self
        for adoption in adoptions[self.n_adopted :]:
            now = now.extended(spent[now.n_steps : adoption.step]).adopted(adoption)
        return now.extended(spent[now.n_steps : len(spent)])

    def adopted(self, adoption: Adoption) -> Self:
        """Return the states with another correlation from the next step on."""
        each = tuple(self.each[parent].adopted(user) for parent, user in adoption.lines)
        return replace(self, each=each, n_adopted=self.n_adopted + 1)

    def extended(self, releases: Sequence[Any]) -> Self:
        """Return the states after the releases of the next steps."""
        each = tuple(one.extended(releases) for one in self.each)
        return replace(self, each=each, n_steps=self.n_steps + len(releases))

    def __copy__(self) -> Self:
        return replace(self, each=tuple(map(copy, self.each)))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Filters(OnlineStates[Filter]):
    """The largest epsilons that satisfy a level for every user.

    Parameters
    ----------
    alpha : float
        The level, in nats.
    reserve : float
        The epsilon that stays admissible at every later step, in nats.
    horizon : int or None
        Number of steps; nothing is kept at the last one.
    """

    alpha: float
    reserve: float
    horizon: int | None

    def adopted(self, adoption: Adoption) -> Self:
        """Return the filters with another correlation, and with its reserve where rounding still allows it."""
        plain = super(Filters, self).adopted(adoption)
        return replace(plain.with_reserve(adoption.reserve) or plain, reserve=adoption.reserve)

    def before_each(self, epsilons: Sequence[float]) -> Iterator[Self]:
        """The filters before each of these, if all of them are spent one after the other."""
        return accumulate(epsilons[:-1], lambda now, epsilon: now.extended([epsilon]), initial=self)

    def is_final(self, last: bool) -> bool:
        """Whether the next step is the last one."""
        return last or self.horizon == self.n_steps + 1

    def largest(self, last: bool = False) -> float:
        """The largest epsilon that is admitted next."""
        return min(one.largest(self.is_final(last)) for one in self.each)

    def refusing(self, epsilon: float, last: bool = False) -> int | None:
        """The number of a user whose filter refuses an epsilon; None if it may be spent next."""
        final = self.is_final(last)
        return next((number for number, one in enumerate(self.each) if not one.admits(epsilon, final)), None)

    def with_reserve(self, reserve: float) -> Self | None:
        """The filters with a reserve, or one smaller by some billionths; None if the level does not allow it."""
        if reserve <= 0.0:
            return self
        each = []
        for one in self.each:
            if (found := one.with_reserve(reserve)) is None:
                return None
            each.append(found)
        filters, kept = zip(*each, strict=True)
        return replace(self, each=filters, reserve=min(kept))

    def with_largest_reserve(self, most: float) -> Self:
        """The filters with the largest reserve up to `most` that the level allows: a lower bound."""
        whole = self.with_reserve(most)
        if whole is not None:
            return whole
        found = bisected(lambda reserve: self.with_reserve(reserve) is not None, 0.0, most, 1e-7)
        return self.with_reserve(found) or self


def filters_at_start(
    groups: Sequence[Group],
    alpha: float,
    horizon: int | None,
    asked: float | None,
    expected: float | None,
) -> Filters:
    """Each user's filter before the first step, by the accounting method of each group of users.

    `asked` is the reserve to keep; None for the largest, which `expected` may be.

    Raises
    ------
    BudgetError
        alpha does not allow the reserve, or budgets cannot be chosen as one goes.
    """
    reserve, found = asked, None
    if asked is None and expected is not None:
        with suppress(BudgetError):
            reserve, found = expected, [method.filters(users, alpha, expected, horizon) for method, _, users in groups]
    if found is None:
        found = [method.filters(users, alpha, asked, horizon) for method, _, users in groups]
    kept = min(reserve for _, reserve in found)
    if reserve is None:  # no user needs a larger reserve than the smallest one
        for number, (method, _, users) in enumerate(groups):
            # Relative distances: reserves that count as equal, and where the search for the largest reserve ends
            if found[number][1] > kept * (1.0 + 1e-9):
                found[number] = method.filters(users, alpha, kept, horizon)
    order = [k for _, numbers, _ in groups for k in numbers]
    each = dict(zip(order, [one for filters, _ in found for one in filters], strict=True))
    return Filters(tuple(each[k] for k in range(len(each))), alpha=alpha, reserve=kept, horizon=horizon)


def refusal(
    allowed: Filters,
    method: Accounting[Any, Any],
    user: Adversary,
    name: str | None,
    spent: Sequence[float],
    epsilon: float,
    *,
    last: bool,
    left: float,
) -> LeakageBudgetError:
    """Return the error that explains why `epsilon` cannot be spent next.

    Parameters
    ----------
    allowed : Filters
        Filters after all budgets.
    method : Accounting
        Accounting method of the user.
    user, name : Adversary, str or None
        User whose filter refuses the budget.
    spent : sequence of float
        Budgets of all earlier steps.
    epsilon : float
        Requested budget, in nats.
    last : bool
        Whether no step follows.
    left : float
        What the level leaves of the sum of all budgets, for a step that no other follows.
    """
    kept = 0.0 if allowed.is_final(last) else allowed.reserve
    at_last = max(allowed.largest(last=True), left)
    largest = at_last if allowed.is_final(last) else allowed.largest()
    leakage, time = _leakage_around(method, user, spent, epsilon, kept, allowed.alpha)
    admitted, asked = apart(largest, epsilon)
    advice = f"the largest epsilon admitted at that step is {admitted}"
    if kept > 0.0:
        advice += f" ({number(at_last, down=True, digits=10)} with last=True, if no step follows)"
    about = "" if name is None else f" about {name!r}"
    later = f", with {kept:.6g} per step kept for later" if kept > 0.0 else ""
    if leakage > allowed.alpha:
        level, leaked = apart(allowed.alpha, leakage)
        reason = f"would leak {leaked} nats{about} at step {time}{later}, above alpha = {level}"
    else:
        reason = (
            f"could leak more than alpha = {allowed.alpha!r}{about} at step {time}{later}: the leakage is less, but within the "
            "billionth of alpha by which a filter stays below it"
        )
    return LeakageBudgetError(
        f"epsilon = {asked} at step {len(spent)} {reason}; {advice}. Nothing was spent (steps count from 0)",
        requested=epsilon,
        largest=largest,
        worst_time=time,
        leakage=max(leakage, allowed.alpha),
        alpha=allowed.alpha,
        user=name,
    )


def _leakage_around(
    method: Accounting[Any, Any], user: Adversary, spent: Sequence[float], epsilon: float, kept: float, alpha: float
) -> tuple[float, int]:
    """The largest leakage, and its step, if the refused epsilon and then the reserve were spent; as far as shows it."""
    first = max(0, len(spent) - RECENT)
    leakage, time = 0.0, 0
    for following in TO_COME if kept > 0.0 else (0,):
        steps = [*spent[first:], epsilon, *[kept] * following]
        if user.n_steps is not None:
            steps = steps[: user.n_steps - first]
        releases = method.of_epsilons(np.array(steps))
        (found,) = method.series([user.between(first, len(steps))], releases)
        step = int(np.argmax(found.temporal))
        leakage, time = min(float(found.temporal[step]), sum_up(method.release_epsilons(releases))), first + step
        if leakage > alpha:
            break
    return leakage, time
