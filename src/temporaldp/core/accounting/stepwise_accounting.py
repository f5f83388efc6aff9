"""Accounting methods that are defined by one step (`Steps`), from which series, suprema, odometer and filter follow."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from temporaldp.base.errors import BudgetError
from temporaldp.base.progress import progressed
from temporaldp.base.values import FloatArray
from temporaldp.core.accounting.protocol import SIDES, Accounting, Filter, Leakage, Limits, Side, constant_matrix
from temporaldp.core.accounting.stepwise import Arrived, ReserveArrivals, Steps, StepwiseFilter, StepwiseOdometer
from temporaldp.core.correlation import Adversary

Item = TypeVar("Item")


class StepwiseAccounting(Accounting[FloatArray, tuple[Arrived, ...]]):
    """Base of methods whose releases are epsilons, shape (T,), and whose incoming leakage is one object per step.

    A subclass defines `name` and `steps`, and overrides methods for which it has a tighter or faster form.
    """

    @abstractmethod
    def steps(self, user: Adversary) -> Steps[float, Arrived]:
        """Return the steps of one user's correlation."""

    def arrivals(self, user: Adversary, side: Side, releases: FloatArray) -> tuple[Arrived, ...]:
        """Incoming leakage of each step, in the order of time.

        Where budgets and matrices repeat and incoming leakage has settled, an amount that no further step raises is certified,
        and all later steps share it.
        """
        return _ordered(side, [one for one, _ in self._settling(user, side, _leading(side, releases))])

    def _settling(
        self, user: Adversary, side: Side, spent: Sequence[tuple[int, float]]
    ) -> Iterator[tuple[Arrived, bool]]:
        """Incoming leakage of each step in the direction's own order, and whether no further step of the same kind raises it.

        `spent` has the transition to each further step, and the release that comes before it.
        """
        steps, correlation = self.steps(user), getattr(user, side)
        arrived, last, settled, attempts = steps.nothing, (-1, -1.0), False, 0
        yield arrived, settled
        for count, (transition, release) in enumerate(spent):
            progressed("leakage of every step", count / len(spent))
            now = (id(correlation.at(transition)), release)
            repeats, last = now == last, now
            if not repeats:
                settled, attempts = False, 0
            if not settled:
                before, arrived = arrived, steps.arriving(side, transition, release, arrived)
                # Searches for a certificate in a row of equal steps. If doubled, a few more slow chains have one.
                if repeats and attempts < 3 and self.is_still(steps, before, arrived):
                    attempts += 1
                    above = self.certified(steps, side, transition, release, before, arrived)
                    settled, arrived = above is not None, arrived if above is None else above
            yield arrived, settled

    def is_still(self, steps: Steps[float, Arrived], before: Arrived, after: Arrived) -> bool:
        """Whether one step changed incoming leakage by rounding alone, up or down."""
        return steps.never_more(after, steps.raised(before)) and steps.never_more(before, steps.raised(after))

    def certified(
        self,
        steps: Steps[float, Arrived],
        side: Side,
        transition: int,
        release: float,
        before: Arrived,
        after: Arrived,
    ) -> Arrived | None:
        """Incoming leakage of at least `after` that no further step of the same kind raises; None where none is found."""
        # Near the fixed point of a step that adds a little more than rounding, the step itself raises nothing.
        above = after
        # Steps of a search; if doubled, a few more slow chains have a certificate
        for _ in range(500):
            following = steps.raised(steps.arriving(side, transition, release, above))
            if steps.never_more(following, above):
                return above
            above = steps.raised(following)
        return None

    def leakage(
        self, user: Adversary, past: tuple[Arrived, ...], releases: FloatArray, future: tuple[Arrived, ...]
    ) -> Leakage:
        """Leakage of each step, by `Steps.leakage`."""
        steps = self.steps(user)
        nothing = (steps.nothing,) * len(releases)
        backward, forward, temporal = (
            np.array([steps.leakage(a, e, f) for a, e, f in zip(before, releases.tolist(), after, strict=True)])
            for before, after in ((past, nothing), (nothing, future), (past, future))
        )
        return Leakage(backward, forward, temporal)

    def supremum_arrivals(self, user: Adversary, side: Side, release: FloatArray) -> tuple[Arrived, ...]:
        """Incoming leakage that no step raises, in a tuple of one; an empty tuple where none is certified.

        That is where a long series settles, so that no series exceeds it.
        """
        constant_matrix(user, side)
        steps, epsilon = self.steps(user), float(release[0])
        # Steps after which a supremum without a certificate is reported as infinite. If doubled, chains that forget
        # half as fast have one, and those without one take twice as long.
        for arrived, settled in self._settling(user, side, [(0, epsilon)] * 10_000):
            if settled:
                return (arrived,)
            # Nats. A supremum above this is not looked for
            if steps.leakage(arrived, epsilon, steps.nothing) > 300.0:
                break
        return ()

    def supremum_leakage(
        self, user: Adversary, past: tuple[Arrived, ...], release: FloatArray, future: tuple[Arrived, ...]
    ) -> Limits:
        """Supremum of the leakage of every step; infinite where nothing is proved for a direction."""
        steps, epsilon = self.steps(user), float(release[0])
        nothing = (steps.nothing,)
        backward, forward, temporal = (
            steps.leakage(a[0], epsilon, f[0]) if a and f else math.inf
            for a, f in ((past, nothing), (nothing, future), (past, future))
        )
        return Limits(backward, forward, temporal)

    def odometer(self, user: Adversary) -> StepwiseOdometer[float, Arrived]:
        """Odometer that updates earlier steps as far back as they change."""
        return StepwiseOdometer(self.steps(user))

    def filters(
        self, users: Sequence[Adversary], alpha: float, reserve: float | None, horizon: int | None
    ) -> tuple[Sequence[Filter], float]:
        """Filters by trial: the leakage of a budget and the reserve after it."""
        largest, shares = reserve, [0.0]
        if largest is None:
            largest = 0.0 if horizon is not None else self.sustainable_epsilon(users, alpha)
            # Of the largest reserve, given up one after the other, until the level is satisfied with all roundings
            shares = [0.0, *(1e-12 * 10.0**k for k in range(6)), 1.0]
        for share in shares:
            kept = largest * (1.0 - share)
            each = [self._reserve_arrivals(user, alpha, kept) for user in users]
            if kept == 0.0 or None not in each:
                return [
                    StepwiseFilter(one, StepwiseOdometer(one), alpha, kept, known, user.n_steps or horizon)
                    for user, known in zip(users, each, strict=True)
                    for one in [self.steps(user)]
                ], kept
        raise BudgetError(
            f"expected a reserve that alpha = {alpha:g} allows at every step of an infinite horizon, got {reserve!r}; ask "
            "`sustainable_budget` for the largest, or leave it out"
        )

    def _reserve_arrivals(self, user: Adversary, alpha: float, reserve: float) -> ReserveArrivals[Any] | None:
        """Incoming leakage of the reserve over an infinite horizon; None if alpha is too small."""
        if reserve == 0.0:
            return None
        past, future = (self.supremum_arrivals(user, side, np.array([reserve])) for side in SIDES)
        kept = next(zip(past, future, strict=False), None)  # none where a direction has no supremum
        return kept if kept and self.steps(user).leakage(kept[0], reserve, kept[1]) <= alpha else None


def _leading(side: Side, releases: FloatArray) -> tuple[tuple[int, float], ...]:
    """The transition to each further step of a direction, in its own order, and the release that comes before it."""
    before = releases[:-1] if side == "backward" else releases[1:]
    return _ordered(side, enumerate(before.tolist()))


def _ordered(side: Side, items: Iterable[Item]) -> tuple[Item, ...]:
    """Put what is in the order of time in a direction's own order of steps, or the other way round."""
    return tuple(items) if side == "backward" else tuple(items)[::-1]
