"""What can be told of leakage at a delta pair by pair: a curve for every pair at every step, and what several steps say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.curve.curves import NOTHING, PrivacyCurve
from temporaldp.accounting.curve.evidence import LeakageCurves
from temporaldp.accounting.curve.pair_curves import PairCurves
from temporaldp.accounting.protocol import Direction
from temporaldp.errors import InputError
from temporaldp.mechanisms.protocol import Mechanisms
from temporaldp.values import compared_by_value

FloatArray = NDArray[np.float64]
Curves = tuple[FloatArray, ...]


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PairLeakageCurves:
    """The privacy curves of every ordered pair of values at every step, for one adversary; `LeakageSeries.evidence`.

    Parameters
    ----------
    one : LeakageCurves
        The one curve for all pairs, which nothing here exceeds; `one.gaps()` says how much of *it* is discretisation.
    pairs : PairCurves
        The grid, and how curves compose.
    states : tuple of str
        The values, in the order of rows and columns.
    past, backward, future, forward : tuple of T arrays, shape (n, n, K + 1)
        What arrives at each step from before, that with the step's own release, and both from after.
    """

    one: LeakageCurves
    pairs: PairCurves
    states: tuple[str, ...]
    past: Curves
    backward: Curves
    future: Curves
    forward: Curves

    def __len__(self) -> int:
        return len(self.past)

    def __repr__(self) -> str:
        return f"PairLeakageCurves({len(self)} steps, {len(self.states)} states, discretization {self.discretization:.3g} nats)"

    @property
    def discretization(self) -> float:
        """Distance of the grid of privacy losses of the pairs, in nats."""
        return self.pairs.h

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
        at = self._step(step, direction)
        return np.minimum(self.pairs.epsilons(self._curves(at, direction)), float(self.one.epsilons(direction)[at]))

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
        at = self._step(step, direction)
        for name in (value, other):
            if name not in self.states:
                raise InputError(f"expected one of the states {', '.join(self.states)}, got {name!r}")
        if value == other:
            raise InputError(f"expected two different values, got {value!r} twice")
        curves = self._curves(at, direction)
        a, b = (self.states.index(name) % len(curves) for name in (value, other))
        deltas = curves[a, b] if curves.ndim > 1 else NOTHING
        return PrivacyCurve(self.discretization, deltas, np.zeros_like(deltas), self._pure(at, direction))

    def curve(self, step: int, direction: Direction = "temporal") -> PrivacyCurve:
        """What is known about the value at a step: the largest delta of any pair at every epsilon, an upper bound.

        No lower curve is computed pair by pair: `gap` is the whole epsilon.
        """
        at = self._step(step, direction)
        curves = self._curves(at, direction)
        deltas = curves if curves.ndim == 1 else curves.max(axis=(0, 1))
        return PrivacyCurve(self.discretization, deltas, np.zeros_like(deltas), self._pure(at, direction))

    def epsilons(self, direction: Direction) -> FloatArray:
        """Leakage of every step at the series' delta, shape (T,), in nats; an upper bound."""
        known: dict[tuple[int, int], float] = {}
        found = np.empty(len(self))
        for t in range(len(self)):
            key = (id(self.backward[t]), id(self.future[t])) if direction == "temporal" else (t, -1)
            if key not in known:
                known[key] = self.pairs.epsilon(self._curves(t, direction))
            found[t] = known[key]
        return np.minimum(found, self.one.epsilons(direction))

    def window(self, first: int, end: int) -> float:
        """Leakage at the series' delta about all values in steps ``first:end`` together; an upper bound.

        The pairs of values at both ends are any: the worst of the past and the worst of the future are composed, as for one
        curve.
        """
        if end - first == 1:
            return float(self.epsilons("temporal")[first])
        pairs = self.pairs
        whole = _worst_of(self.backward[first])
        for release in self.releases[first + 1 : end - 1]:
            whole = pairs.composed(whole, _worst_of(pairs.own(release)))
        whole = pairs.composed(whole, _worst_of(self.forward[end - 1]))
        return min(pairs.epsilon(whole), self.one.window(first, end))

    def _curves(self, step: int, direction: Direction) -> FloatArray:
        if direction == "temporal":
            return self.pairs.composed(self.backward[step], self.future[step])
        return self.backward[step] if direction == "backward" else self.forward[step]

    def _pure(self, step: int, direction: Direction) -> float:
        return np.inf if self.one.pure is None else float(self.one.pure[direction][step])

    def _step(self, step: int, direction: Direction) -> int:
        if not (isinstance(step, int | np.integer) and -len(self) <= step < len(self)):
            raise InputError(f"expected a step from 0 to {len(self) - 1}, got {step!r}")
        if direction not in ("backward", "forward", "temporal"):
            raise InputError(f"expected direction to be backward, forward or temporal, got {direction!r}")
        return range(len(self))[step]


def _worst_of(curves: FloatArray) -> FloatArray:
    """One curve for all pairs, shape (1, 1, K + 1)."""
    return curves if curves.ndim == 1 else np.asarray(curves.max(axis=(0, 1), keepdims=True))
