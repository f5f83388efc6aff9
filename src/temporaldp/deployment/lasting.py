"""What steps leak about one value, now and for ever: a promise and a unit against a chain, by the ways of the accounting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import (
    Accounting,
    ApproximateDP,
    Exact,
    LeakageSeries,
    MetricPrivacy,
    PaperBound,
    leakage_supremum,
    temporal_leakage,
)
from temporaldp.correlation import Adversary, TransitionMatrix
from temporaldp.deployment.promise import Promise, PurePromise
from temporaldp.deployment.unit import PrivacyUnit
from temporaldp.errors import InputError
from temporaldp.mechanisms.protocol import epsilon_of_one
from temporaldp.planning import sustainable_budget

FloatArray = NDArray[np.float64]

GRID = 128
"""Points of a privacy curve up to the epsilon of one step: two digits more than a card shows cost ten times as long."""

COARSEST = 0.01
"""Nats between them at most."""

SETTLED = 0.01
"""Share of the limit by which what arrives from the past may still be short of it when it is said to have settled."""

LONGEST, LONGEST_AT_DELTA = 20_000, 400
"""Steps beyond which nobody looks for where it settles, and what a horizon leaks is bounded by what leaks for ever."""

HALVINGS = 14
"""Of the search for a budget at a delta: to a ten-thousandth."""


@dataclass(frozen=True, slots=True)
class Lasting:
    """What leaks about one step's value, however long the release goes on, in nats.

    Parameters
    ----------
    temporal : float
        inf where it grows for ever.
    past : float
        What all releases so far say about the present value.
    exact : bool
        Whether it is the least such number for every mechanism with the promise; an upper bound otherwise.
    """

    temporal: float
    past: float
    exact: bool


class Leaking(Protocol):
    """A promise about values, against any chain."""

    @property
    def alone(self) -> float:
        """What one step says by itself of the two values that are furthest apart."""

    def lasting(self, adversary: Adversary) -> Lasting:
        """For ever."""

    def within(self, adversary: Adversary, horizon: int, limit: Lasting) -> float:
        """The most about any of so many steps; an upper bound where `limit` is one."""

    def settles(self, adversary: Adversary, limit: Lasting) -> int | None:
        """Releases after which what is known from them is within a hundredth of its limit; None if it never is."""

    def held(self, adversary: Adversary) -> Promise | None:
        """What a step could promise so that for ever no more leaks than a step says now; None if there is no such budget."""

    def together(self, horizon: int) -> float:
        """About all values of a person in so many steps together, whatever the correlation."""


def leaking(promise: Promise, unit: PrivacyUnit, states: tuple[str, ...], delta: float) -> Leaking:
    """The accounting method that a promise asks for."""
    distances = unit.distances(states)
    if isinstance(promise, PurePromise) and delta == 0.0:
        return PureLeaking(promise, distances)
    if delta == 0.0:
        raise InputError(f"expected a delta > 0 for a promise of {promise.sentence}; give --delta D, such as 1e-6")
    return LeakingAtDelta(promise, int(distances.max()), delta)


def _tight_method(adversary: Adversary) -> Accounting[Any, Any]:
    """The closed form where it is exact, rollouts elsewhere."""
    return PaperBound() if symmetric_pair(adversary) else Exact()


def symmetric_pair(adversary: Adversary) -> bool:
    """Whether there are two values that may change places: then the paper's recursion is exact (docs/theory.md, section 10)."""
    known = (adversary.backward, adversary.forward)
    return all(m is None or _symmetric(m) for m in known)


def _symmetric(matrix: Any) -> bool:
    if not isinstance(matrix, TransitionMatrix) or matrix.n_states != 2:
        return False
    rows = matrix.dense()
    return bool(rows[0, 0] == rows[1, 1] and rows[0, 1] == rows[1, 0])


@dataclass(frozen=True, slots=True, eq=False)
class PureLeaking:
    """Pure differential privacy: exact for every mechanism with the promise."""

    promise: PurePromise
    distances: FloatArray

    @property
    def alone(self) -> float:
        """Promises between the two values, times epsilon."""
        return self.promise.epsilon * float(self.distances.max())

    def lasting(self, adversary: Adversary) -> Lasting:
        """By the closed form for two values that may change places, by certified rollouts elsewhere."""
        epsilon, method = self._spends(adversary)
        found = leakage_supremum(adversary, epsilon, accounting=method)
        is_tight = isinstance(method, PaperBound) or (found.accounting.is_exact and found.certified)
        return Lasting(found.temporal, found.backward, is_tight)

    def within(self, adversary: Adversary, horizon: int, limit: Lasting) -> float:
        """The largest temporal leakage of the series."""
        if horizon > LONGEST:
            return min(limit.temporal, self.together(horizon))
        return min(self._series(adversary, horizon).worst, limit.temporal)

    def settles(self, adversary: Adversary, limit: Lasting) -> int | None:
        """From the backward leakage."""
        if not math.isfinite(limit.past):
            return None
        for length in (64, 1024, LONGEST):
            arrived = np.flatnonzero(self._series(adversary, length).backward >= (1.0 - SETTLED) * limit.past)
            if arrived.size:
                return int(arrived[0]) + 1
        return None

    def held(self, adversary: Adversary) -> PurePromise | None:
        """By planning: the largest budget that lasts, from below."""
        budget = sustainable_budget(adversary, self.alone, accounting=self._spends(adversary)[1])
        budget /= float(self.distances.max()) if len(self.distances) == 2 else 1.0
        return PurePromise(budget) if budget > 0.0 else None

    def together(self, horizon: int) -> float:
        """Corollary 1: the sum."""
        return self.alone * horizon

    def _spends(self, adversary: Adversary) -> tuple[float, Accounting[Any, Any]]:
        """The epsilon of each step, and the method that is exact for it."""
        if len(self.distances) > 2:
            return self.promise.epsilon, MetricPrivacy(self.distances)
        return self.alone, _tight_method(adversary)

    def _series(self, adversary: Adversary, length: int) -> LeakageSeries:
        epsilon, method = self._spends(adversary)
        return temporal_leakage(adversary, epsilon, accounting=method, horizon=length)


@dataclass(frozen=True, slots=True, eq=False)
class LeakingAtDelta:
    """At a delta: one privacy curve for all pairs of values, an upper bound for every mechanism with the promise."""

    promise: Promise
    units: int
    delta: float

    @property
    def alone(self) -> float:
        """The epsilon of one release at the delta."""
        return epsilon_of_one(self._mechanism, delta=self.delta)

    @property
    def _mechanism(self) -> Any:
        return self.promise.mechanism(self.units)

    @property
    def _step(self) -> float:
        alone = self.alone
        return min(COARSEST, alone / GRID) if 0.0 < alone < math.inf else COARSEST

    def lasting(self, adversary: Adversary) -> Lasting:
        """By a certified fixed point of curves."""
        found = leakage_supremum(adversary, self._mechanism, accounting=ApproximateDP(self.delta, grid=self._step))
        return Lasting(found.temporal, found.backward, False)

    def within(self, adversary: Adversary, horizon: int, limit: Lasting) -> float:
        """The largest temporal leakage of the series, or what leaks for ever if that is less or the horizon is long."""
        if horizon > LONGEST_AT_DELTA // 8:
            return limit.temporal
        return min(self._series(adversary, horizon).worst, limit.temporal)

    def settles(self, adversary: Adversary, limit: Lasting) -> int | None:
        """From the backward leakage."""
        if not math.isfinite(limit.past):
            return None
        past = Adversary(backward=adversary.backward)
        for length in (50, LONGEST_AT_DELTA):
            arrived = np.flatnonzero(self._series(past, length).backward >= (1.0 - SETTLED) * limit.past)
            if arrived.size:
                return int(arrived[0]) + 1
        return None

    def held(self, adversary: Adversary) -> Promise | None:
        """By halving; the side that was seen to hold."""
        level, low, high = self.alone, 0.0, 1.0
        for _ in range(HALVINGS):
            share = 0.5 * (low + high)
            if LeakingAtDelta(self.promise.times(share), self.units, self.delta).lasting(adversary).temporal <= level:
                low = share
            else:
                high = share
        return self.promise.times(low) if low > 0.0 else None

    def together(self, horizon: int) -> float:
        """By composition of the promise itself."""
        return self.promise.together(self.units, horizon, self.delta)

    def _series(self, adversary: Adversary, length: int) -> LeakageSeries:
        releases = [self._mechanism] * length
        return temporal_leakage(adversary, releases, accounting=ApproximateDP(self.delta, grid=self._step))
