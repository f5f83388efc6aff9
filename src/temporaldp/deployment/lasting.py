"""Leakage about one step's state under a promise for each step, a privacy unit and a chain."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import (
    Accounting,
    ApproximateDP,
    Exact,
    LeakageSeries,
    MarkovQuilt,
    MetricPrivacy,
    PaperBound,
    leakage_supremum,
    temporal_leakage,
)
from temporaldp.correlation import Adversary, TransitionMatrix
from temporaldp.deployment.promise import Promise
from temporaldp.errors import InputError
from temporaldp.mechanisms.protocol import epsilon_of_one
from temporaldp.planning import sustainable_budget

GRID_POINTS, COARSEST_GRID = 128, 0.01
"""Points of a privacy curve up to the epsilon of one step, and the largest distance between them in nats: two more digits than
a card shows would cost ten times as long."""

SETTLED_SHARE = 0.01
"""Distance from the supremum, as a share of it, at which backward leakage has settled."""

SERIES_LENGTHS, SERIES_LENGTHS_AT_DELTA = (64, 1024, 20_000), (50, 400)
"""Numbers of steps of the series in which backward leakage is searched for the step at which it settles."""

HALVINGS = 14
"""Bisection steps for a budget at a delta: to a ten-thousandth."""


@dataclass(frozen=True, slots=True)
class Lasting:
    """Supremum of the leakage about one step's state over an infinite horizon, in nats.

    Parameters
    ----------
    temporal : float
        From all releases; inf if it is unbounded.
    past : float
        From the releases up to the step.
    exact : bool
        Whether it is the least such number for every mechanism with the promise; an upper bound otherwise.
    """

    temporal: float
    past: float
    exact: bool

    @property
    def kind(self) -> str:
        """Exact or upper bound."""
        return "exact" if self.exact else "upper bound"


@dataclass(frozen=True, slots=True, eq=False)
class Leaking:
    """A promise for each step about states at given distances.

    At delta = 0, leakage is exact over all mechanisms with the promise if a tight method exists. At a delta, one privacy curve
    for all pairs of states gives an upper bound.

    Parameters
    ----------
    promise : Promise
        About one privacy unit.
    distances : float array, shape (n, n)
        Privacy units between any two states.
    delta : float
    fresh_noise : bool
        Whether the noise of each step is independent of all other noise. If not, leakage is an upper bound for every mechanism
        whose outputs at all steps satisfy the promise when the state of one step is replaced; for delta = 0.

    Raises
    ------
    InputError
        The promise needs a delta, and delta is 0.
    """

    promise: Promise
    distances: NDArray[np.float64]
    delta: float
    fresh_noise: bool = True

    def __post_init__(self) -> None:
        if self.delta == 0.0 and self.promise.default_delta:
            raise InputError(
                f"expected a delta > 0 for a promise of {self.promise.sentence}; give --delta D, such as 1e-6"
            )

    @property
    def units(self) -> int:
        """Privacy units between the two states that are furthest apart."""
        return int(self.distances.max())

    @property
    def alone(self) -> float:
        """Leakage of one release by itself, between the two states that are furthest apart."""
        if not self.delta:
            return self.promise.together(self.units, 1, 0.0)
        return epsilon_of_one(self.promise.mechanism(self.units), delta=self.delta)

    def lasting(self, adversary: Adversary) -> Lasting:
        """Supremum over an infinite horizon."""
        release, method = self._accounted(adversary)
        found = leakage_supremum(adversary, release, accounting=method)
        is_tight = isinstance(method, PaperBound) or (found.accounting.is_exact and found.certified)
        return Lasting(found.temporal, found.backward, is_tight)

    def within(self, adversary: Adversary, horizon: int, limit: Lasting) -> float:
        """Largest leakage about any step of a horizon; of a long one, a bound from the supremum."""
        if self.delta and horizon > SERIES_LENGTHS_AT_DELTA[0]:
            return limit.temporal
        if horizon > SERIES_LENGTHS[-1]:
            return min(limit.temporal, self.together(horizon))
        return min(self._series(adversary, horizon).worst, limit.temporal)

    def settles(self, adversary: Adversary, limit: Lasting) -> int | None:
        """Number of releases after which backward leakage is within 1 % of its supremum; None if it is not."""
        if not math.isfinite(limit.past):
            return None
        past = Adversary(backward=adversary.backward)
        for length in SERIES_LENGTHS_AT_DELTA if self.delta else SERIES_LENGTHS:
            settled = np.flatnonzero(self._series(past, length).backward >= (1.0 - SETTLED_SHARE) * limit.past)
            if settled.size:
                return int(settled[0]) + 1
        return None

    def held(self, adversary: Adversary) -> Promise | None:
        """Largest promise found whose supremum is at most the leakage of one release now; None if there is none."""
        if not self.delta:
            budget = sustainable_budget(adversary, self.alone, accounting=self._accounted(adversary)[1])
            by_units = len(self.distances) == 2 or not self.fresh_noise
            share = budget / self.promise.together(self.units if by_units else 1, 1, 0.0)
            return self.promise.times(share) if share > 0.0 else None
        level, low, high = self.alone, 0.0, 1.0
        for _ in range(HALVINGS):
            share = 0.5 * (low + high)
            smaller = replace(self, promise=self.promise.times(share))
            low, high = (share, high) if smaller.lasting(adversary).temporal <= level else (low, share)
        return self.promise.times(low) if low > 0.0 else None

    def together(self, horizon: int) -> float:
        """Leakage about all states of a person within a horizon, by composition of the promise."""
        return self.promise.together(self.units, horizon, self.delta)

    def _accounted(self, adversary: Adversary) -> tuple[Any, Accounting[Any, Any]]:
        """The release of each step, and the tightest accounting method for it."""
        if not self.fresh_noise:
            return self.alone, MarkovQuilt()
        if self.delta:
            alone = self.alone
            grid = min(COARSEST_GRID, alone / GRID_POINTS) if 0.0 < alone < math.inf else COARSEST_GRID
            return self.promise.mechanism(self.units), ApproximateDP(self.delta, grid=grid)
        if len(self.distances) > 2:
            return self.promise.together(1, 1, 0.0), MetricPrivacy(self.distances)
        return self.alone, PaperBound() if _symmetric(adversary) else Exact()

    def _series(self, adversary: Adversary, length: int) -> LeakageSeries:
        release, method = self._accounted(adversary)
        return temporal_leakage(adversary, [release] * length, accounting=method)


def _symmetric(adversary: Adversary) -> bool:
    """Whether the two states are interchangeable: then the paper's recursion is exact (Theory, section 10)."""
    return all(
        matrix is None
        or (
            isinstance(matrix, TransitionMatrix)
            and matrix.n_states == 2
            and np.array_equal(matrix.dense(), matrix.dense()[::-1, ::-1])
        )
        for matrix in (adversary.backward, adversary.forward)
    )
