"""What a level still allows everybody: the filters of all users together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from temporaldp.accounting.protocol import Filter
from temporaldp.accounting.scalar import U

BISECTIONS = 60
"""Halvings of the bracket for a budget of several steps: the last digits of a double."""

SPARE = 64.0 * U
"""Share of alpha that a promise for several steps keeps, for the roundings of each of them."""


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
    """

    each: tuple[Filter, ...]
    alpha: float
    reserve: float
    horizon: int | None
    n_steps: int = 0

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
