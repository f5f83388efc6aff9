"""Privacy curves of every step of a series, and the leakage of several steps together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting.curve import grid
from temporaldp.accounting.curve.arrivals import NOTHING, SingleCurve, checked_delta
from temporaldp.accounting.curve.pair_curves import PairCurves
from temporaldp.accounting.protocol import Direction
from temporaldp.errors import BudgetError, InputError
from temporaldp.mechanisms.protocol import Mechanisms
from temporaldp.values import compared_by_value, copy_in

FloatArray = NDArray[np.float64]
Curves = tuple[FloatArray, ...]
Arithmetic = TypeVar("Arithmetic", SingleCurve, PairCurves)


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrivacyCurve:
    """The delta of every epsilon: an upper bound, with a lower bound of the same quantity to show how much is discretisation.

    Parameters
    ----------
    grid : float
        Distance of the grid of epsilons, in nats.
    deltas, lower_deltas : array, shape (K,) each
        At epsilon = 0, grid, 2 grid, ...; beyond, the last value stays. Between, lines in e^epsilon.
    pure_epsilon : float
        From this epsilon on delta is 0, in nats; inf where nothing is known.

    Examples
    --------
    >>> from temporaldp import Adversary, ApproximateDP, GaussianNoise, TransitionMatrix, temporal_leakage
    >>> walk = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]))
    >>> noise = [GaussianNoise(10.0, sensitivity=1.0)] * 20
    >>> series = temporal_leakage(walk, noise, accounting=ApproximateDP(delta=1e-6))
    >>> curve = series.evidence.curve(19)
    >>> round(curve.epsilon(1e-6), 3), round(curve.epsilon(1e-9), 3), f"{curve.delta(0.3):.1e}"
    (0.503, 0.673, '3.9e-04')
    """

    grid: float
    deltas: FloatArray
    lower_deltas: FloatArray
    pure_epsilon: float = math.inf

    def __post_init__(self) -> None:
        copy_in(self, "deltas", "lower_deltas")

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike) -> FloatArray | float: ...
    def delta(self, epsilon: ArrayLike) -> FloatArray | float:
        """Delta at any epsilon, also below 0: the largest hockey-stick divergence at e^epsilon. An upper bound.

        Below 0 by symmetry: ``1 - e^epsilon + e^epsilon delta(-epsilon)``.
        """
        levels = np.asarray(epsilon, dtype=np.float64)
        if np.isnan(levels).any():
            raise BudgetError("expected epsilon to be a number, got nan")
        above = grid.interpolated(self.deltas, self.grid, np.abs(levels).ravel())
        above = np.where(np.abs(levels).ravel() >= self.pure_epsilon, 0.0, above)
        below = np.exp(np.minimum(levels.ravel(), 0.0))
        found = np.minimum(np.where(levels.ravel() < 0.0, (1.0 - below) + below * above, above), 1.0)
        return float(found[0]) if levels.ndim == 0 else found.reshape(levels.shape)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon >= 0 with at most this delta, in nats: an upper bound; inf where there is none."""
        found = grid.epsilon_at(self.deltas, self.grid, checked_delta(delta), up=True)
        return min(found, self.pure_epsilon)

    def gap(self, delta: float) -> float:
        """How much of `epsilon(delta)` discretisation and rounding can be, at most, in nats."""
        low = grid.epsilon_at(self.lower_deltas, self.grid, checked_delta(delta), up=False)
        found = self.epsilon(delta)
        return 0.0 if found == low else max(found - low, 0.0)

    def __repr__(self) -> str:
        return f"PrivacyCurve({self.deltas.size} points, {self.grid:g} nats apart, delta(0) = {self.deltas[0]:.4g})"


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Run(Generic[Arithmetic]):
    """The curves of one run: what arrives at each step, and what is known with the step's own release."""

    side: Arithmetic
    past: Curves
    backward: Curves
    future: Curves
    forward: Curves

    def curve(self, step: int, direction: Direction) -> FloatArray:
        """The profile at a step."""
        if direction == "temporal":
            return self.side.composed(self.backward[step], self.future[step])
        return self.backward[step] if direction == "backward" else self.forward[step]

    def epsilons(self, direction: Direction) -> FloatArray:
        """The epsilon of every step; of steps with the same curves once."""
        known: dict[tuple[int, int], float] = {}
        found = np.empty(len(self.past))
        for t in range(len(self.past)):
            key = (id(self.backward[t]), id(self.future[t])) if direction == "temporal" else (t, -1)
            if key not in known:
                known[key] = self.side.epsilon(self.curve(t, direction))
            found[t] = known[key]
        return found


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakageCurves:
    """The privacy curves of every step of a sequence of releases, for one adversary; `LeakageSeries.evidence`.

    Parameters
    ----------
    releases : tuple of T tuples of mechanisms
        What was published at each step; an empty tuple where nothing was.
    upper, lower : Run of one curve
        Upper bounds, and lower bounds of the same quantities.
    pure : dict of arrays, shape (T,) each, or None
        BPL, FPL and TPL with delta = 0, where every mechanism has a pure epsilon.
    """

    releases: tuple[Mechanisms, ...]
    upper: Run[SingleCurve]
    lower: Run[SingleCurve]
    pure: dict[Direction, FloatArray] | None = None

    def __len__(self) -> int:
        return len(self.releases)

    def __repr__(self) -> str:
        return f"LeakageCurves({len(self)} steps, grid {self.upper.side.h:.3g} nats)"

    @property
    def grid(self) -> float:
        """Distance of the grid of privacy losses, in nats."""
        return self.upper.side.h

    def curve(self, step: int, direction: Direction = "temporal") -> PrivacyCurve:
        """Privacy curve of the state at a step: delta for every epsilon.

        Far below the series' delta it is an upper bound still, but a loose one: tails of a billionth of delta were cut off.

        Raises
        ------
        InputError
            There is no such step or direction.
        """
        at = checked_step(len(self), step, direction)
        pure = math.inf if self.pure is None else float(self.pure[direction][at])
        return PrivacyCurve(self.grid, self.upper.curve(at, direction), self.lower.curve(at, direction), pure)

    @property
    def promised(self) -> FloatArray:
        """What each release leaks by itself at the series' delta, shape (T,), in nats; an upper bound."""
        return promised(self.upper.side, self.releases)

    def epsilons(self, direction: Direction) -> FloatArray:
        """Leakage of every step at the series' delta, shape (T,), in nats; an upper bound."""
        found = self.upper.epsilons(direction)
        return found if self.pure is None else np.minimum(found, self.pure[direction])

    def gaps(self, direction: Direction = "temporal") -> FloatArray:
        """How much of it discretisation and rounding can be, at most, shape (T,), in nats."""
        high, low = self.epsilons(direction), self.lower.epsilons(direction)
        with np.errstate(invalid="ignore"):
            return np.where(high == low, 0.0, np.maximum(high - low, 0.0))

    def window(self, first: int, end: int) -> float:
        """Leakage at the series' delta about all values in steps ``first:end`` together (Theorem 2 of the paper, composed)."""
        if end - first == 1:
            return float(self.epsilons("temporal")[first])
        side = self.upper.side
        between = composition(side, self.releases[first + 1 : end - 1])
        whole = side.composed(side.composed(self.upper.backward[first], between), self.upper.forward[end - 1])
        if self.pure is None:
            return side.epsilon(whole)
        inside = [mechanism.pure_epsilon for release in self.releases[first + 1 : end - 1] for mechanism in release]
        pure = math.fsum([self.pure["backward"][first], self.pure["forward"][end - 1], *inside])
        return min(side.epsilon(whole), pure)

    @property
    def user_level(self) -> float:
        """Epsilon at the series' delta of all releases together, whatever the correlation: their composition."""
        side = self.upper.side
        found = side.epsilon(composition(side, self.releases))
        pure = math.fsum(mechanism.pure_epsilon for release in self.releases for mechanism in release)
        return min(found, pure)


def promised(side: SingleCurve, releases: Sequence[Mechanisms]) -> FloatArray:
    """What each release leaks by itself at the delta in question, shape (T,), in nats; an upper bound."""
    known = {
        release: min(side.epsilon(side.own(release)), math.fsum(one.pure_epsilon for one in release))
        for release in set(releases)
    }
    return np.array([known[release] for release in releases])


def composition(side: SingleCurve, releases: Sequence[Mechanisms]) -> FloatArray:
    """What all these releases say together about somebody whose values may all differ; equal ones by repeated squaring."""
    found = NOTHING
    for release, count in Counter(releases).items():
        power, left = side.own(release), count
        while left:
            if left & 1:
                found = side.composed(found, power)
            left >>= 1
            if left:
                power = side.composed(power, power)
    return found


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PairLeakageCurves:
    """The privacy curves of every ordered pair of values at every step, for one adversary; `LeakageSeries.evidence`.

    Parameters
    ----------
    one : LeakageCurves
        The one curve for all pairs, which nothing here exceeds; `one.gaps()` says how much of *it* is discretisation.
    run : Run
        The curves of the pairs, arrays of shape (n, n, K + 1).
    states : tuple of str
        In the order of rows and columns.
    """

    one: LeakageCurves
    run: Run[PairCurves]
    states: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.one)

    def __repr__(self) -> str:
        return f"PairLeakageCurves({len(self)} steps, {len(self.states)} states, grid {self.grid:.3g} nats)"

    @property
    def grid(self) -> float:
        """Distance of the grid of privacy losses of the pairs, in nats."""
        return self.run.side.h

    @property
    def releases(self) -> tuple[Mechanisms, ...]:
        """What was published at each step."""
        return self.one.releases

    @property
    def promised(self) -> FloatArray:
        """What each release leaks by itself at the series' delta, shape (T,), in nats; an upper bound."""
        return self.one.promised

    @property
    def user_level(self) -> float:
        """Epsilon at the series' delta of all releases together, whatever the correlation: their composition."""
        return self.one.user_level

    def metric(self, step: int, direction: Direction = "temporal") -> FloatArray:
        """The epsilon of every ordered pair at the series' delta, shape (n, n), in nats: an upper bound.

        Row: the value; column: the one it is told from; in the order of `states`.

        Raises
        ------
        InputError
            There is no such step or direction.
        """
        at = checked_step(len(self), step, direction)
        return np.minimum(
            self.run.side.epsilons(self.run.curve(at, direction)), float(self.one.epsilons(direction)[at])
        )

    def worst_pair(self, step: int, direction: Direction = "temporal") -> tuple[str, str]:
        """The value that is leaked about most at a step, and the one it is told from."""
        each = self.metric(step, direction) - np.eye(len(self.states))
        i, j = np.unravel_index(int(np.argmax(each)), each.shape)
        return self.states[i], self.states[j]

    def pair_curve(self, step: int, value: str, other: str, direction: Direction = "temporal") -> PrivacyCurve:
        """The delta of every epsilon of one value against another at a step: an upper bound; nothing is known from below.

        Raises
        ------
        InputError
            There is no such step, value or direction, or both values are one.
        """
        at = checked_step(len(self), step, direction)
        for name in (value, other):
            if name not in self.states:
                raise InputError(f"expected one of the states {', '.join(self.states)}, got {name!r}")
        if value == other:
            raise InputError(f"expected two different values, got {value!r} twice")
        curves = self.run.curve(at, direction)
        a, b = (self.states.index(name) % len(curves) for name in (value, other))
        deltas = curves[a, b] if curves.ndim > 1 else NOTHING
        return PrivacyCurve(self.grid, deltas, np.zeros_like(deltas), self._pure(at, direction))

    def curve(self, step: int, direction: Direction = "temporal") -> PrivacyCurve:
        """What is known about the value at a step: the largest delta of any pair at every epsilon, an upper bound.

        No lower curve is computed pair by pair: `gap` is the whole epsilon.
        """
        at = checked_step(len(self), step, direction)
        curves = self.run.curve(at, direction)
        deltas = curves if curves.ndim == 1 else curves.max(axis=(0, 1))
        return PrivacyCurve(self.grid, deltas, np.zeros_like(deltas), self._pure(at, direction))

    def epsilons(self, direction: Direction) -> FloatArray:
        """Leakage of every step at the series' delta, shape (T,), in nats; an upper bound."""
        return np.minimum(self.run.epsilons(direction), self.one.epsilons(direction))

    def window(self, first: int, end: int) -> float:
        """Leakage at the series' delta about all values in steps ``first:end`` together; an upper bound.

        The pairs of values at both ends are any: the worst of the past and the worst of the future are composed, as for one
        curve.
        """
        if end - first == 1:
            return float(self.epsilons("temporal")[first])
        pairs = self.run.side
        whole = _worst_of(self.run.backward[first])
        for release in self.releases[first + 1 : end - 1]:
            whole = pairs.composed(whole, _worst_of(pairs.own(release)))
        whole = pairs.composed(whole, _worst_of(self.run.forward[end - 1]))
        return min(pairs.epsilon(whole), self.one.window(first, end))

    def _pure(self, step: int, direction: Direction) -> float:
        return np.inf if self.one.pure is None else float(self.one.pure[direction][step])


def checked_step(n_steps: int, step: int, direction: Direction) -> int:
    """The step, counted from 0; `InputError` where there is no such step or direction."""
    if not (isinstance(step, int | np.integer) and -n_steps <= step < n_steps):
        raise InputError(f"expected a step from 0 to {n_steps - 1}, got {step!r}")
    if direction not in ("backward", "forward", "temporal"):
        raise InputError(f"expected direction to be backward, forward or temporal, got {direction!r}")
    return range(n_steps)[step]


def _worst_of(curves: FloatArray) -> FloatArray:
    """One curve for all pairs, shape (1, 1, K + 1)."""
    return curves if curves.ndim == 1 else np.asarray(curves.max(axis=(0, 1), keepdims=True))
