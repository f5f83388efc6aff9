"""What a level still allows: the standings of all users together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from temporaldp.accounting.history import History
from temporaldp.accounting.standing import SPARE, Reserve, Standing, UserLosses
from temporaldp.errors import LeakageBudgetError

BISECTIONS = 60
"""Halvings of the bracket for a budget of several steps: the last digits of a double."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The largest budgets that hold a level for everybody; a spend gives another one.

    Parameters
    ----------
    users : tuple of UserLosses
    alpha : float
        The level, in nats.
    reserve : Reserve
        What is kept for later steps.
    horizon : int or None
        Number of steps; nothing is kept at the last one.
    standings : tuple of Standing, one per user
    """

    users: tuple[UserLosses, ...]
    alpha: float
    reserve: Reserve
    horizon: int | None
    standings: tuple[Standing, ...]

    @classmethod
    def at_start(cls, users: Sequence[UserLosses], alpha: float, reserve: Reserve, horizon: int | None) -> Self:
        """Before the first step."""
        return cls(tuple(users), alpha, reserve, horizon, (Standing.at_start(alpha),) * len(users))

    @property
    def n_steps(self) -> int:
        """Number of steps so far."""
        return self.standings[0].n_steps

    def is_final(self, last: bool) -> bool:
        """Whether the next step is the last one."""
        return last or self.horizon == self.n_steps + 1

    def largest(self, last: bool = False) -> tuple[float, int]:
        """The largest budget that everybody's standing admits next, and the number of the user who decides."""
        kept = (0.0,) * len(self.users) if self.is_final(last) else self.reserve.arriving
        limits = [at.room - v for at, v in zip(self.standings, kept, strict=True)]
        number = min(range(len(limits)), key=limits.__getitem__)
        return max(limits[number], 0.0), number

    def after(self, epsilon: float) -> Self:
        """What is allowed after one more budget."""
        pairs = zip(self.users, self.standings, strict=True)
        return replace(self, standings=tuple(at.after(user, self.alpha, epsilon) for user, at in pairs))

    def admits(self, epsilons: Sequence[float], last: bool = False) -> bool:
        """Whether these may be spent one after the other."""
        now = self
        for step, epsilon in enumerate(epsilons, start=1):
            if epsilon > now.largest(last and step == len(epsilons))[0]:
                return False
            now = now.after(epsilon)
        return True

    def refusal(self, epsilon: float, last: bool, histories: Sequence[History]) -> LeakageBudgetError:
        """Why `epsilon` is refused at the next step: which step would leak how much, and what would be admitted."""
        largest, number = self.largest(last)
        final, name = self.is_final(last), self.users[number].name
        leakage, time = histories[number].worst_with(epsilon, 0.0 if final else self.reserve.arriving[number])
        advice = f"the largest epsilon admitted at that step is {largest:.10g}"
        kept = 0.0 if final else self.reserve.epsilon
        if kept > 0.0:
            advice += f" ({self.largest(last=True)[0]:.10g} with last=True, if no step follows)"
        about = "" if name is None else f" about {name!r}"
        later = f", with the {kept:.6g} a step kept for later" if kept > 0.0 else ""
        return LeakageBudgetError(
            f"epsilon = {epsilon:.10g} at step {self.n_steps} would leak {leakage:.10g} nats{about} at step {time}{later}, "
            f"above alpha = {self.alpha:g}; {advice}. Nothing was spent",
            requested=epsilon,
            largest=largest,
            worst_time=time,
            leakage=leakage,
            alpha=self.alpha,
            user=name,
        )

    def constant(self, steps: int, last: bool) -> float:
        """The largest budget for each of the next steps; a lower bound."""
        if steps == 1:
            return self.largest(last)[0]
        low, high = 0.0, max(self.largest(either)[0] for either in (False, last))
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.admits([middle] * steps, last) else (low, middle)
        # Just inside the level, room grows from step to step; exactly on it, the roundings given away would.
        return max(low - steps * SPARE * self.alpha, 0.0)
