"""Odometer and filter that compute the leakage of all releases again, for methods whose numbers do not follow step by step."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from temporaldp.base.errors import BudgetError
from temporaldp.core.accounting.monotone_search import bisected
from temporaldp.core.accounting.protocol import Accounting, Filter, Leakage, Odometer
from temporaldp.core.correlation import Adversary


@dataclass(slots=True, eq=False)
class RepeatedOdometer(Odometer):
    """The leakage of all releases so far; it is known until another release is added."""

    method: Accounting[Any, Any]
    user: Adversary
    releases: list[float] = field(default_factory=list)
    _known: Leakage | None = None

    def __copy__(self) -> Self:
        return replace(self, releases=list(self.releases))

    def extend(self, releases: Sequence[float]) -> None:
        """Add the releases of the next steps."""
        self.releases += releases
        self._known = None

    def worst(self) -> tuple[float, int]:
        """The largest TPL so far and the first step that has it; (0, 0) before the first step."""
        if not self.releases:
            return 0.0, 0
        if self._known is None:
            self._known = self.series(self.releases)
        return _worst(self._known)

    def worst_with(self, release: float) -> tuple[float, int]:
        """The largest TPL and its step if `release` came next."""
        return _worst(self.series([*self.releases, release]))

    def series(self, releases: Sequence[float]) -> Leakage:
        """The leakage of these releases."""
        return self.method.series([self.user], self.method.of_epsilons(np.array(releases)))[0]


def _worst(found: Leakage) -> tuple[float, int]:
    return float(found.temporal.max()), int(found.temporal.argmax())


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedFilter(Filter):
    """The budgets of one user that satisfy a level: of a known number of steps, or up to a reserve over an infinite horizon."""

    odometer: RepeatedOdometer
    alpha: float
    reserve: float
    horizon: int | None

    def require_reserve(self) -> None:
        """Raise `BudgetError` where the level does not allow the reserve at every step."""
        if self.reserve == 0.0:
            return
        method, user, n_steps = self.odometer.method, self.odometer.user, self.horizon
        if n_steps is None:
            leaked = method.limits([user], method.of_epsilons(np.array([self.reserve]))).temporal
        else:
            leaked = _worst(self.odometer.series([self.reserve] * n_steps))[0]
        if leaked > self.alpha:
            raise BudgetError(
                f"expected a reserve that alpha = {self.alpha:g} allows at every step, got {self.reserve!r}; ask "
                "`sustainable_budget` for the largest, or leave it out"
            )

    def largest(self, last: bool = False) -> float:
        """The largest budget that is admitted next, in nats: a lower bound, to a ten thousandth."""
        if len(self.odometer.releases) == self.horizon:
            return 0.0
        if self.horizon is None and not last:
            return self.reserve if self.admits(self.reserve) else 0.0
        return bisected(lambda epsilon: self.admits(epsilon, last), 0.0, self.alpha, 1e-4)

    def admits(self, epsilon: float, last: bool = False) -> bool:
        """Whether a budget is admitted next. A step without a release always is."""
        if epsilon == 0.0:
            return True
        if self.horizon is None and not last:  # the reserve's supremum holds where no step exceeds it
            return max([epsilon, *self.odometer.releases]) <= self.reserve
        spent, final = [*self.odometer.releases, epsilon], last or self.horizon is None
        left = 0 if final or self.horizon is None else self.horizon - len(spent)
        return _worst(self.odometer.series(spent + [self.reserve] * left * (self.reserve > 0.0)))[0] <= self.alpha

    def after(self, epsilon: float) -> Self:
        """The filter after one more budget, also one that is not admitted."""
        odometer = copy(self.odometer)
        odometer.extend([epsilon])
        return replace(self, odometer=odometer)
