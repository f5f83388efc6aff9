"""Leakage about one step's state under a promise for each step, a privacy unit and a chain."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.errors import InputError
from temporaldp.base.values import assign, compared_by_value
from temporaldp.core.accounting import (
    Accounting,
    ApproximateDP,
    Exact,
    LeakageSeries,
    LeakageSupremum,
    MetricPrivacy,
    PaperBound,
    leakage_supremum,
    temporal_leakage,
)
from temporaldp.core.correlation import Adversary
from temporaldp.core.mechanisms.protocol import epsilon_of_one
from temporaldp.core.planning import Guarantee, refresh_interval, sustainable_budget
from temporaldp.core.planning.refresh import NEAR_PROMISE
from temporaldp.publish.deployment.promise import Promise

SERIES_LENGTHS, SERIES_LENGTHS_AT_DELTA = (64, 1024, 20_000), (50, 400)
"""Numbers of steps of the series in which backward leakage is searched for the step at which it settles."""


@compared_by_value
@dataclass(frozen=True, eq=False)
class LeakageOverTime:
    """Leakage about one step's state under a promise for each step and one correlation, in nats.

    Without a delta, leakage is that of every mechanism whose outputs at all steps satisfy the promise when the state of one
    step is replaced, whatever its noise (Theory, section 20): exact if a tight method exists, else an upper bound. At a delta
    it is the epsilon at this delta, an upper bound by one privacy curve for all pairs of states, if noise is independent at
    every step.

    Parameters
    ----------
    promise : EpsilonPromise or ConcentratedPromise
        Promise of a step about one privacy unit.
    distances : float array, shape (n, n)
        Privacy units between any two states.
    delta : float
    adversary : Adversary
        The correlation.
    horizon : int
        Number of steps.
    at : float
        The probability of staying.
    one_contributes : bool
        Whether one of two states is assumed to contribute nothing.

    Attributes
    ----------
    limit : LeakageSupremum
        The supremum of the leakage about one step over an infinite horizon.

    Raises
    ------
    InputError
        The delta is not above that of the promise.
    """

    promise: Promise
    distances: NDArray[np.float64]
    delta: float
    adversary: Adversary
    horizon: int
    at: float
    one_contributes: bool = False
    limit: LeakageSupremum = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not math.isfinite(self.alone):
            raise InputError(
                f"expected a delta above that of the promise ({self.promise.sentence}), got {self.delta:g}; give a larger "
                "--delta, such as 1e-6"
            )
        release, method = self._accounted
        assign(self, limit=leakage_supremum(self.adversary, release, accounting=method))

    @cached_property
    def promised(self) -> float:
        """Promise of a step about one privacy unit."""
        return self._of_one(1)

    @cached_property
    def alone(self) -> float:
        """Leakage of one release by itself, between the two states that are furthest apart."""
        return self._of_one(self.units)

    @property
    def units(self) -> int:
        """Privacy units between the two states that are furthest apart."""
        return int(self.distances.max())

    @property
    def is_exact(self) -> bool:
        """Whether the supremum is the least bound for every mechanism with the promise; an upper bound otherwise."""
        symmetric = self._accounted[1] == PaperBound()
        return symmetric or (self.limit.accounting.is_exact and self.limit.certified)

    @property
    def kind(self) -> str:
        """Exact or upper bound."""
        return "exact" if self.is_exact else "upper bound"

    @cached_property
    def within(self) -> float:
        """Largest leakage about any step of the horizon; of a long one, a bound from the supremum."""
        if self.delta and self.horizon > SERIES_LENGTHS_AT_DELTA[0]:
            return self.limit.temporal
        if self.horizon > SERIES_LENGTHS[-1]:
            return min(self.limit.temporal, self.together)
        return min(self._series(self.adversary, self.horizon).worst, self.limit.temporal)

    @cached_property
    def settles(self) -> int | None:
        """Number of releases after which backward leakage is within 1 % of its supremum; None if it is not."""
        if not math.isfinite(self.limit.backward):
            return None
        past = Adversary(backward=self.adversary.backward)
        for length in SERIES_LENGTHS_AT_DELTA if self.delta else SERIES_LENGTHS:
            settled = np.flatnonzero(self._series(past, length).backward >= 0.99 * self.limit.backward)
            if settled.size:
                return int(settled[0]) + 1
        return None

    @cached_property
    def held(self) -> Promise | None:
        """Largest promise found whose supremum is at most the leakage of one release now; None if there is none."""
        if not self.delta:
            budget = sustainable_budget(self.adversary, self.alone, accounting=self._accounted[1])
            share = budget / self.promise.together(self.units if self._has_one_distance else 1, 1, 0.0)
            return self.promise.times(share) if share > 0.0 else None
        # of the multiples of a part of the promise
        parts = 2**14
        found = bisect_left(
            range(1, parts),
            True,
            key=lambda k: replace(self, promise=self.promise.times(k / parts)).limit.temporal > self.alone,
        )
        return self.promise.times(found / parts) if found else None

    @cached_property
    def refresh(self) -> int | None:
        """Number of steps between releases with which leakage is at most 1.1 times that of one now; None if none was found."""
        if self.delta or not self._has_one_distance or not self.adversary.is_constant:
            return None
        return refresh_interval(self.adversary, self.alone, NEAR_PROMISE * self.alone)

    def about(self, guarantee: Guarantee) -> float:
        """Leakage about what a guarantee protects, under its condition; inf if no bound is known."""
        if guarantee.is_temporal or guarantee.kind == "event":
            return self.limit.temporal if guarantee.is_temporal else self.alone
        return self.promise.together(self.units, guarantee.width(self.horizon), self.delta)

    @property
    def together(self) -> float:
        """Leakage about all states of a person within the horizon (user level), for every correlation; inf if unknown."""
        return self.promise.together(self.units, self.horizon, self.delta)

    @cached_property
    def doubled(self) -> float | None:
        """The supremum if both of two states contribute, where one is assumed not to; inf if no bound is known."""
        if not self.one_contributes:
            return None
        try:
            return replace(self, distances=2.0 * self.distances).limit.temporal
        except InputError:  # by group privacy, two units of an (epsilon, delta) promise may have no guarantee
            return math.inf

    def _of_one(self, units: int) -> float:
        """Leakage of one release by itself between two states that are `units` privacy units apart."""
        if not self.delta:
            return self.promise.together(units, 1, 0.0)
        return epsilon_of_one(self.promise.grouped(units), delta=self.delta)

    @property
    def _accounted(self) -> tuple[Any, Accounting[Any, Any]]:
        """The release of each step, and the tightest accounting method for it."""
        if self.delta:
            # 128 points of a privacy curve up to the epsilon of one step, at most 0.01 nats apart: two more digits than a card
            # shows would cost ten times as long
            grid = min(0.01, self.alone / 128) if self.alone > 0.0 else 0.01
            return self.promise.grouped(self.units), ApproximateDP(self.delta, grid=grid)
        if not self._has_one_distance:
            return self.promise.together(1, 1, 0.0), MetricPrivacy(self.distances)
        return self.alone, PaperBound() if self.adversary.is_interchangeable else Exact()

    @property
    def _has_one_distance(self) -> bool:
        """Whether any two states are equally far apart."""
        return bool((self.distances[~np.eye(len(self.distances), dtype=bool)] == self.units).all())

    def _series(self, adversary: Adversary, length: int) -> LeakageSeries:
        release, method = self._accounted
        return temporal_leakage(adversary, [release] * length, accounting=method)
