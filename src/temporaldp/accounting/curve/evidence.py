"""What can be told of (epsilon, delta) leakage: a curve for every step, and what several steps say together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.curve.curves import NOTHING, PrivacyCurve, Side
from temporaldp.accounting.protocol import Direction
from temporaldp.errors import InputError
from temporaldp.mechanisms.protocol import Mechanisms
from temporaldp.values import compared_by_value

FloatArray = NDArray[np.float64]
Curves = tuple[FloatArray, ...]


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Run:
    """The curves of one run: what arrives at each step, and what is known with the step's own release."""

    side: Side
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
    upper, lower : Run
        Upper bounds, and lower bounds of the same quantities.
    pure : dict of arrays, shape (T,) each, or None
        BPL, FPL and TPL with delta = 0, where every mechanism has a pure epsilon.
    """

    releases: tuple[Mechanisms, ...]
    upper: Run
    lower: Run
    pure: dict[Direction, FloatArray] | None = None

    def __len__(self) -> int:
        return len(self.releases)

    def __repr__(self) -> str:
        return f"LeakageCurves({len(self)} steps, discretization {self.upper.side.h:.3g} nats)"

    @property
    def discretization(self) -> float:
        """Distance of the grid of privacy losses, in nats."""
        return self.upper.side.h

    def curve(self, step: int, direction: Direction = "temporal") -> PrivacyCurve:
        """What is known about the value at a step: delta for every epsilon.

        Far below the series' delta it is an upper bound still, but a loose one: tails of a billionth of delta were cut off.

        Raises
        ------
        InputError
            There is no such step or direction.
        """
        if not (isinstance(step, int | np.integer) and -len(self) <= step < len(self)):
            raise InputError(f"expected a step from 0 to {len(self) - 1}, got {step!r}")
        if direction not in ("backward", "forward", "temporal"):
            raise InputError(f"expected direction to be backward, forward or temporal, got {direction!r}")
        at = range(len(self))[step]
        pure = math.inf if self.pure is None else float(self.pure[direction][at])
        return PrivacyCurve(self.discretization, self.upper.curve(at, direction), self.lower.curve(at, direction), pure)

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


def promised(side: Side, releases: Sequence[Mechanisms]) -> FloatArray:
    """What each release leaks by itself at the delta in question, shape (T,), in nats; an upper bound."""
    known = {
        release: min(side.epsilon(side.own(release)), math.fsum(one.pure_epsilon for one in release))
        for release in set(releases)
    }
    return np.array([known[release] for release in releases])


def composition(side: Side, releases: Sequence[Mechanisms]) -> FloatArray:
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
