"""Privacy curves of every step of a series, and the leakage of several steps together."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.values import FloatArray, compared_by_value, copy_in
from temporaldp.core.accounting.curve import grid
from temporaldp.core.accounting.curve.arrivals import NOTHING, Curves, checked_delta
from temporaldp.core.accounting.protocol import Direction, Evidence
from temporaldp.core.mechanisms.protocol import Mechanisms


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrivacyCurve:
    """The delta of every epsilon: an upper bound, and a lower bound that shows the discretisation error.

    Parameters
    ----------
    grid : float
        Distance of the grid of epsilons, in nats.
    deltas, lower_deltas : array, shape (K,) each
        Deltas at epsilon = 0, grid, 2 grid, ...; constant beyond the last one, linear in e^epsilon between.
    pure_epsilon : float
        Epsilon, in nats, from which on delta is 0; inf if unknown.

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

    def delta(self, epsilon: ArrayLike) -> Any:
        """Delta at any epsilon, also below 0: the largest hockey-stick divergence at e^epsilon. An upper bound.

        Below 0 by symmetry: ``1 - e^epsilon + e^epsilon delta(-epsilon)``.
        """
        levels = np.asarray(epsilon, dtype=np.float64)
        if np.isnan(levels).any():
            raise BudgetError("expected epsilon to be a number, got nan")
        above = grid.interpolated(self.deltas, *grid.cells(self.grid, np.abs(levels).ravel()))
        above = np.where(np.abs(levels).ravel() >= self.pure_epsilon, 0.0, above)
        below = np.exp(np.minimum(levels.ravel(), 0.0))
        found = np.minimum(np.where(levels.ravel() < 0.0, (1.0 - below) + below * above, above), 1.0)
        return float(found[0]) if levels.ndim == 0 else found.reshape(levels.shape)

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon >= 0 with at most this delta, in nats: an upper bound; inf where there is none."""
        found = grid.epsilon_at(self.deltas, self.grid, checked_delta(delta), up=True)
        return min(found, self.pure_epsilon)

    def __repr__(self) -> str:
        return f"PrivacyCurve({self.deltas.size} points, {self.grid:g} nats apart, delta(0) = {self.deltas[0]:.4g})"


class Guesses(NamedTuple):
    """Largest probabilities that a guess between two equally likely alternatives is right; upper bounds.

    By one release about a state at its step; by all, about a state at any step; and by all, about all states of a person, for
    every correlation. Each is half of 1 plus the total variation distance of the outputs, which is delta at epsilon = 0.
    """

    alone: float
    state: float
    everything: float


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Run:
    """The curves of every step by one kind of curve: incoming leakage, and incoming leakage with the step's own release."""

    curves: Curves
    past: tuple[FloatArray, ...]
    backward: tuple[FloatArray, ...]
    future: tuple[FloatArray, ...]
    forward: tuple[FloatArray, ...]

    def curve(self, step: int, direction: Direction) -> FloatArray:
        """The curves at a step."""
        if direction == "temporal":
            return self.curves.composed(self.backward[step], self.future[step])
        return self.backward[step] if direction == "backward" else self.forward[step]

    def epsilons(self, direction: Direction) -> FloatArray:
        """The epsilon of every step, in nats; steps that share curves are computed once."""
        is_one = direction != "temporal"
        arrays = (getattr(self, direction),) if is_one else (self.backward, self.future)
        found = self.curves.epsilon if is_one else self.curves.epsilon_together
        each = list(zip(*arrays, strict=True))
        known = {tuple(map(id, one)): one for one in each}
        epsilons = {key: found(*one) for key, one in known.items()}
        return np.array([epsilons[tuple(map(id, one))] for one in each])

    def window(self, first: int, end: int, releases: Sequence[Mechanisms]) -> float:
        """The epsilon of all outputs about the states of steps ``first:end``, at least two, in nats."""
        worst = self.curves.worst
        whole = self.curves.composed(
            worst(self.backward[first]), composition(self.curves, releases[first + 1 : end - 1])
        )
        return self.curves.epsilon_together(whole, worst(self.forward[end - 1]))


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakageCurves(Evidence):
    """Privacy curves of every step of a sequence of releases for one adversary; `LeakageSeries.evidence` of `ApproximateDP`.

    Parameters
    ----------
    releases : tuple of T tuples of mechanisms
        The mechanisms of each step; an empty tuple for a step without a release.
    upper, lower : Run
        One curve for all pairs of states: upper bounds, and lower bounds of the same quantities.
    pure : dict of arrays, shape (T,) each, or None
        BPL, FPL and TPL with delta = 0, where every mechanism has a pure epsilon.
    pairs : Run or None
        One curve for each ordered pair of states, arrays of shape (n, n, K + 1): upper bounds; None for one curve alone.
    states : tuple of str
        In the order of rows and columns of `pairs`.
    is_first_order : bool
        Whether releases before a step and after it are independent given its state.
    """

    releases: tuple[Mechanisms, ...]
    upper: Run
    lower: Run
    pure: dict[Direction, FloatArray] | None = None
    pairs: Run | None = None
    states: tuple[str, ...] = ()
    is_first_order: bool = True

    def __len__(self) -> int:
        return len(self.releases)

    def __repr__(self) -> str:
        return f"LeakageCurves({len(self)} steps, grid {self.grid:.3g} nats)"

    @property
    def grid(self) -> float:
        """Distance of the grid of privacy losses, in nats."""
        return (self.pairs or self.upper).curves.h

    def curve(self, step: int, direction: Direction = "temporal") -> PrivacyCurve:
        """Privacy curve of the state at a step: delta for every epsilon, an upper bound.

        Far below the series' delta it is loose, as tails of a billionth of delta are cut off. With a curve for each pair it is
        the largest of them, without a lower curve, so that `gap` is the whole epsilon.

        Raises
        ------
        InputError
            There is no such step or direction.
        """
        at = self.checked_step(step, direction)
        if self.pairs is None:
            return self._shown(at, direction, self.upper.curve(at, direction), self.lower.curve(at, direction))
        return self._shown(at, direction, self.pairs.curves.worst(self.pairs.curve(at, direction)).ravel())

    def metric(self, step: int, direction: Direction = "temporal") -> FloatArray:
        """The epsilon of every ordered pair at the series' delta, shape (n, n), in nats: an upper bound.

        Row: the state; column: the state it is compared with; in the order of `states`.

        Raises
        ------
        InputError
            There is no such step or direction, or there is one curve for all pairs.
        """
        at, run = self.checked_step(step, direction), self.pairs
        if run is None:
            raise InputError(
                "expected one privacy curve for each pair of states; use ApproximateDP(delta, pairwise=True)"
            )
        curves, n = run.curve(at, direction), len(self.states)
        found = np.zeros((n, n))
        for a, b in itertools.permutations(range(n), 2):
            found[a, b] = run.curves.epsilon(curve_of_pair(curves, a, b))
        return np.minimum(found, float(self._by_one(direction)[at]))

    def worst_pair(self, step: int, direction: Direction = "temporal") -> tuple[str, str] | None:
        """The pair of states with the largest leakage at a step, state and other state; None for one curve for all pairs."""
        return None if self.pairs is None else super(LeakageCurves, self).worst_pair(step, direction)

    def epsilons(self, direction: Direction) -> FloatArray:
        """Leakage of every step at the series' delta, shape (T,), in nats; an upper bound."""
        found = self._by_one(direction)
        return found if self.pairs is None else np.minimum(found, self.pairs.epsilons(direction))

    def gaps(self, direction: Direction = "temporal") -> FloatArray:
        """Upper bounds of the discretisation and rounding error of the one curve for all pairs, shape (T,), in nats."""
        high, low = self._by_one(direction), self.lower.epsilons(direction)
        with np.errstate(invalid="ignore"):
            return np.where(high == low, 0.0, np.maximum(high - low, 0.0))

    def gap(self, step: int) -> float | None:
        """That of the one curve for all pairs; None for one curve for each."""
        return None if self.pairs is not None else float(self.gaps()[step])

    def window(self, first: int, end: int) -> float:
        """Leakage at the series' delta about all states in steps ``first:end`` together (Theorem 2 of the paper, composed).

        The worst curve of the past and the worst of the future, over all pairs of states, are composed.
        """
        if end - first == 1:
            return float(self.epsilons("temporal")[first])
        found = [run.window(first, end, self.releases) for run in (self.upper, self.pairs) if run is not None]
        if self.pure is not None and self.is_first_order:
            inside = [mechanism.pure_epsilon for release in self.releases[first + 1 : end - 1] for mechanism in release]
            found.append(math.fsum([self.pure["backward"][first], self.pure["forward"][end - 1], *inside]))
        return min(found)

    @property
    def user_level(self) -> float:
        """Epsilon at the series' delta of all releases together, for every correlation: their composition."""
        found = self.upper.curves.epsilon(composition(self.upper.curves, self.releases))
        pure = math.fsum(mechanism.pure_epsilon for release in self.releases for mechanism in release)
        return min(found, pure)

    @property
    def guesses(self) -> Guesses:
        """Largest probabilities of right guesses, by the tightest kind of curve."""
        run = self.pairs or self.upper
        curves = run.curves
        each = {(id(one), id(other)): (one, other) for one, other in zip(run.backward, run.future, strict=True)}
        return Guesses(
            0.5 + 0.5 * max(curves.variation_together(curves.own(release), NOTHING) for release in set(self.releases)),
            0.5 + 0.5 * max(curves.variation_together(*both) for both in each.values()),
            0.5 + 0.5 * curves.variation_together(composition(curves, self.releases), NOTHING),
        )

    def _by_one(self, direction: Direction) -> FloatArray:
        """Leakage of every step by one curve for all pairs."""
        found = self.upper.epsilons(direction)
        return found if self.pure is None else np.minimum(found, self.pure[direction])

    def _shown(self, step: int, direction: Direction, high: FloatArray, low: FloatArray | None = None) -> PrivacyCurve:
        pure = math.inf if self.pure is None else float(self.pure[direction][step])
        return PrivacyCurve(self.grid, high, np.zeros_like(high) if low is None else low, pure)


def curve_of_pair(curves: FloatArray, a: int, b: int) -> FloatArray:
    """The curve of one pair of states, shape (K + 1,); all pairs may have the same one."""
    return curves if curves.ndim == 1 else np.asarray(curves[a % len(curves), b % len(curves)])


def composition(curves: Curves, releases: Sequence[Mechanisms]) -> FloatArray:
    """The worst curve of all these releases about any states; equal releases by repeated squaring."""
    found = NOTHING
    for release, count in Counter(releases).items():
        power = curves.worst(curves.own(release))
        for bit in range(count.bit_length()):
            if bit:
                power = curves.composed(power, power)
            if count >> bit & 1:
                found = curves.composed(found, power)
    return found
