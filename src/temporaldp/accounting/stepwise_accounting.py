"""An accounting method that is told a step at a time (`Steps`): series, suprema, odometer and filter follow from that alone."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.protocol import SIDES, Accounting, Leakage, Limits, Side, constant_matrix, refused_reserve
from temporaldp.accounting.stepwise import ReserveArrivals, Steps, StepwiseFilter, StepwiseOdometer
from temporaldp.correlation import Adversary

FloatArray: TypeAlias = NDArray[np.float64]
Arrived = TypeVar("Arrived")

MOST_STEPS = 10_000
"""Without a certificate after so many steps the supremum is reported as infinite, which is never too low."""

LIFTS, MOST_ATTEMPTS = tuple(2**k for k in range(11)), 3
"""How many times more a settled arrival is raised, one attempt after the other; and how often all of that is tried."""

LOUDEST = 300.0
"""Nats. A supremum above this is not looked for."""

GIVEN_UP = (0.0, *(1e-12 * 10.0**k for k in range(6)))
"""Shares of the largest reserve that are given up, one after the other, until it holds the level with all roundings."""


class StepwiseAccounting(Accounting[FloatArray, tuple[Arrived, ...]]):
    """Releases are epsilons, shape (T,); what arrives is something at each step, in the order of time.

    A subclass gives `name` and `steps`; it overrides what it knows better.
    """

    @abstractmethod
    def steps(self, user: Adversary) -> Steps[float, Arrived]:
        """What one user's correlation passes on, a step at a time."""

    def of_epsilons(self, epsilons: FloatArray) -> FloatArray:
        """The epsilons themselves."""
        return epsilons

    def promised(self, releases: FloatArray) -> FloatArray:
        """The epsilons themselves."""
        return releases

    def arrivals(self, user: Adversary, side: Side, releases: FloatArray) -> tuple[Arrived, ...]:
        """Nothing at the direction's first step, then step after step."""
        return self._arrivals(self.steps(user), side, releases.tolist(), raised=False)

    @staticmethod
    def _arrivals(
        steps: Steps[float, Arrived], side: Side, epsilons: Sequence[float], *, raised: bool
    ) -> tuple[Arrived, ...]:
        """In the order of time; each a little raised, if asked, so that none that is computed again exceeds it."""
        arrived, n_steps = [steps.nothing], len(epsilons)
        for count in range(n_steps - 1):
            transition = count if side == "backward" else n_steps - 2 - count
            release = epsilons[count if side == "backward" else n_steps - 1 - count]
            after = steps.arriving(side, transition, release, arrived[-1])
            arrived.append(steps.raised(after) if raised else after)
        return tuple(arrived if side == "backward" else arrived[::-1])

    def leakage(
        self, user: Adversary, past: tuple[Arrived, ...], releases: FloatArray, future: tuple[Arrived, ...]
    ) -> Leakage:
        """Step by step."""
        steps = self.steps(user)
        backward, forward, temporal = (
            np.array(
                [
                    steps.leakage(steps.nothing if a is None else a[t], float(e), steps.nothing if f is None else f[t])
                    for t, e in enumerate(releases)
                ]
            )
            for a, f in ((past, None), (None, future), (past, future))
        )
        return Leakage(backward, forward, temporal)

    def lasting_arrivals(self, user: Adversary, side: Side, release: FloatArray) -> tuple[Arrived, ...]:
        """What a step does not raise, in a tuple of one; an empty tuple where that is not found.

        Steps only raise what arrives, from nothing on, so that they never pass what a step does not raise. Where they hardly
        raise it any more, that is looked for a little above, with more room than rounding needs.
        """
        constant_matrix(user, side)
        steps, epsilon = self.steps(user), float(release[0])
        arrived, attempts = steps.nothing, 0
        for _ in range(MOST_STEPS):
            after = steps.arriving(side, 0, epsilon, arrived)
            if steps.never_more(after, steps.raised(arrived)):
                above = after
                for lift in LIFTS:
                    for _ in range(lift):
                        above = steps.raised(above)
                    if steps.never_more(steps.raised(steps.arriving(side, 0, epsilon, above)), above):
                        return (above,)
                attempts += 1
            if attempts == MOST_ATTEMPTS or steps.leakage(after, epsilon, steps.nothing) > LOUDEST:
                break
            arrived = after
        return ()

    def lasting_leakage(
        self, user: Adversary, past: tuple[Arrived, ...], release: FloatArray, future: tuple[Arrived, ...]
    ) -> Limits:
        """As at every step; infinite where nothing is proved of a direction."""
        steps, epsilon = self.steps(user), float(release[0])
        nothing = (steps.nothing,)
        backward, forward, temporal = (
            steps.leakage(a[0], epsilon, f[0]) if a and f else math.inf
            for a, f in ((past, nothing), (nothing, future), (past, future))
        )
        return Limits(backward, forward, temporal)

    def odometer(self, user: Adversary) -> StepwiseOdometer[float, Arrived]:
        """As far back as anything changes."""
        return StepwiseOdometer(self.steps(user))

    def filters(
        self, users: Sequence[Adversary], alpha: float, reserve: float | None, horizon: int | None
    ) -> tuple[list[StepwiseFilter[Arrived]], float]:
        """By trying: what a budget and the reserve after it would leak."""
        largest = 0.0
        if reserve is None and horizon is None:
            largest = self.lasting_epsilon(users, alpha)
        for share in GIVEN_UP if reserve is None else (0.0,):
            kept = largest * (1.0 - share) if reserve is None else reserve
            each = [self._reserve_arrivals(user, alpha, kept) for user in users]
            if kept == 0.0 or None not in each:
                return [
                    StepwiseFilter(one, StepwiseOdometer(one), alpha, kept, known, user.n_steps or horizon)
                    for user, known in zip(users, each, strict=True)
                    for one in [self.steps(user)]
                ], kept
        if reserve is None:
            return self.filters(users, alpha, 0.0, horizon)
        raise refused_reserve(alpha, reserve)

    def _reserve_arrivals(self, user: Adversary, alpha: float, reserve: float) -> ReserveArrivals[Any] | None:
        """What the reserve makes arrive, for ever or as long as matrices are known; None if alpha does not allow it."""
        if reserve == 0.0:
            return None
        steps = self.steps(user)
        if user.n_steps is not None:
            each = [reserve] * user.n_steps
            past, future = (self._arrivals(steps, side, each, raised=True) for side in SIDES)
        else:
            past, future = (self.lasting_arrivals(user, side, np.array([reserve])) for side in SIDES)
        if not (past and future):
            return None
        holds = all(steps.leakage(a, reserve, f) <= alpha for a, f in zip(past, future, strict=True))
        return ReserveArrivals(past, future) if holds else None
