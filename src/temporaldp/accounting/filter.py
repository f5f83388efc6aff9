"""What a level still allows everybody: the filters of all users together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

from temporaldp.accounting.adoption import Adoption
from temporaldp.accounting.exact.online import ExactFilter
from temporaldp.accounting.protocol import Accounting, Filter
from temporaldp.correlation import Adversary
from temporaldp.errors import BudgetError
from temporaldp.values import ROUNDOFF

BISECTIONS = 60
"""Halvings of the bracket for a budget of several steps: the last digits of a double."""

SPARE = 64.0 * ROUNDOFF
"""Share of alpha that a promise for several steps keeps, for the roundings of each of them."""

CLOSE_RESERVES, CLOSE_RESERVE = 1e-9, 1e-7
"""Relative distances: reserves that count as equal, and where the search for the largest reserve ends."""


@dataclass(frozen=True, slots=True)
class Filters:
    """The largest epsilons that hold a level for everybody; a spend gives another one.

    Parameters
    ----------
    each : tuple of Filter, one per user
    alpha : float
        The level, in nats.
    reserve : float
        The epsilon that stays admissible at every later step, in nats.
    horizon : int or None
        Number of steps; nothing is kept at the last one.
    n_steps : int
        Number of steps so far.
    n_adopted : int
        How often another correlation was taken over.
    """

    each: tuple[Filter, ...]
    alpha: float
    reserve: float
    horizon: int | None
    n_steps: int = 0
    n_adopted: int = 0

    def saved(self) -> dict[str, Any] | None:
        """All filters as JSON values; None where one of them has no such state."""
        each = [one.saved() for one in self.each]
        if None in each:
            return None
        return {"reserve": self.reserve, "n_steps": self.n_steps, "n_adopted": self.n_adopted, "each": each}

    @classmethod
    def restored(
        cls, document: dict[str, Any], adversaries: Sequence[Adversary], alpha: float, horizon: int | None
    ) -> Self:
        """Undo `saved`, given the matrices of all steps."""
        of = zip(document["each"], adversaries, strict=True)
        each = tuple(ExactFilter.restored(one, line, alpha=alpha, horizon=horizon) for one, line in of)
        return cls(each, alpha, document["reserve"], horizon, int(document["n_steps"]), int(document["n_adopted"]))

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

    def after(self, epsilon: float) -> Self:
        """What is allowed after one more epsilon."""
        return replace(self, each=tuple(one.after(epsilon) for one in self.each), n_steps=self.n_steps + 1)

    def continued(self, lines: Sequence[tuple[int, Adversary]]) -> Self:
        """The filters with another correlation, by the number of each one's predecessor; without a reserve."""
        each = tuple(self.each[parent].adopted(user) for parent, user in lines)
        return replace(self, each=each, reserve=0.0, n_adopted=self.n_adopted + 1)

    def with_reserve(self, reserve: float) -> Self | None:
        """The filters with a reserve, or one smaller by some billionths; None if the level does not allow it."""
        if reserve <= 0.0:
            return self
        each = []
        for one in self.each:
            found = one.with_reserve(reserve)
            if found is None:
                return None
            each.append(found)
        filters, kept = zip(*each, strict=True)
        return replace(self, each=filters, reserve=min(kept))

    def with_largest_reserve(self, most: float) -> Self:
        """The filters with the largest reserve up to `most` that the level allows: a lower bound."""
        low, high, middle, best = 0.0, most, most, self
        for _ in range(BISECTIONS):
            found = self.with_reserve(middle)
            if found is None:
                high = middle
            else:
                low, best = middle, found
            if high - low <= CLOSE_RESERVE * high:
                break
            middle = 0.5 * (low + high)
        return best

    def caught_up(self, adoptions: Sequence[Adoption], spent: Sequence[float]) -> Self:
        """The filters after all that was spent and adopted."""
        now = self
        for adoption in (*adoptions[self.n_adopted :], None):
            for epsilon in spent[now.n_steps : adoption.step if adoption else len(spent)]:
                now = now.after(epsilon)
            if adoption is not None:
                plain = now.continued(adoption.lines)
                # Where rounding no longer allows a reserve that was found when the change was made, there is none.
                now = replace(plain.with_reserve(adoption.reserve) or plain, reserve=adoption.reserve)
        return now

    def admits(self, epsilons: Sequence[float], last: bool = False) -> bool:
        """Whether these may be spent one after the other."""
        now = self
        for step, epsilon in enumerate(epsilons, start=1):
            if now.refusing(epsilon, last and step == len(epsilons)) is not None:
                return False
            if step < len(epsilons):
                now = now.after(epsilon)
        return True

    def constant(self, steps: int, last: bool) -> float:
        """The largest epsilon for each of the next steps; a lower bound."""
        if steps == 1:
            return self.largest(last)
        low, high = 0.0, max(self.largest(either) for either in (False, last))
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.admits([middle] * steps, last) else (low, middle)
            if high - low <= 1e-12 * high:
                break
        # Just inside the level, room grows from step to step; exactly on it, the roundings given away would.
        return max(low - steps * SPARE * self.alpha, 0.0)


def filters_at_start(
    methods: Sequence[tuple[Accounting[Any, Any], list[int]]],
    users: Sequence[Adversary],
    alpha: float,
    horizon: int | None,
    asked: float | None,
    expected: float | None,
) -> Filters:
    """Everybody's filters before the first step, by the accounting methods and the numbers of the users counted by each.

    `asked` is the reserve to keep; None for the largest, which `expected` may be.

    Raises
    ------
    BudgetError
        alpha does not allow the reserve, or budgets cannot be chosen as one goes.
    """
    groups = [(method, [users[k] for k in numbers]) for method, numbers in methods]
    reserve, found = asked, None
    if asked is None and expected is not None:
        with suppress(BudgetError):
            found = [method.filters(some, alpha, expected, horizon) for method, some in groups]
            reserve = expected
    if found is None:
        found = [method.filters(some, alpha, asked, horizon) for method, some in groups]
    kept = min(reserve for _, reserve in found)
    if reserve is None:  # nobody need keep more than is kept about everybody
        for number, (method, some) in enumerate(groups):
            if found[number][1] > kept * (1.0 + CLOSE_RESERVES):
                found[number] = method.filters(some, alpha, kept, horizon)
    order = [k for _, numbers in methods for k in numbers]
    each = dict(zip(order, [one for filters, _ in found for one in filters], strict=True))
    return Filters(tuple(each[k] for k in range(len(users))), alpha, kept, horizon)
