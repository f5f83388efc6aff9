"""Privacy curves of the leakage, the delta for every epsilon, and their recursion from step to step.

``past_t = kernel(past_{t-1} with release t-1)``; the evidence about step t is ``past_t, release t, future_t``, which
are independent given the state at t (Theory, section 9).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.progress import progressed
from temporaldp.base.values import LARGEST, FloatArray, IntArray, real_number
from temporaldp.core.accounting.curve import grid
from temporaldp.core.accounting.protocol import Side
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.adversary import Matrix
from temporaldp.core.correlation.protocol import Correlation
from temporaldp.core.mechanisms.protocol import ROUNDED, Mechanism, Mechanisms, bounds_of, epsilon_of_one

if TYPE_CHECKING:
    from temporaldp.core.accounting.curve.pair_curves import PairCurves


POINTS = 512
"""Points of the grid up to the epsilon of the release with the most noise, by default."""

COARSEST = 0.01
"""Largest default distance of the grid, in nats."""

TAIL = 1e-9
"""Times delta: what is cut off at the end of a curve, each time, and counted as an infinite loss."""

FINEST = 1e-5
"""Times delta: the largest rounding error of a convolution by FFT; else it is summed term by term."""

INFLATED, STILL = 1.0 + 1e-9, 1.0 + 2.5e-10
"""Factor by which each step raises curves from above, more than rounding; and a quarter of that, by which curves that have
settled may still rise. Steps without that factor then raise nothing (Theory, section 9)."""

LIFTS = 4
"""Attempts to certify settled curves, and lifts in each of them. If doubled, a few more slow chains have a certificate."""

NOTHING = np.zeros(1)
"""Privacy profile of a release that reveals nothing."""

Arrivals: TypeAlias = tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]
"""Incoming leakage at each step, and incoming leakage composed with the step's own release."""


@dataclass(frozen=True, repr=False)
class SingleCurve:
    """One privacy curve for all pairs of states.

    Parameters
    ----------
    h : float
        Distance of the grid of privacy losses, in nats.
    delta : float
    up : bool
        Whether curves are upper bounds; otherwise lower ones.
    """

    h: float
    delta: float
    up: bool = field(kw_only=True)
    _thetas: dict[int, tuple[Matrix, tuple[FloatArray, IntArray, FloatArray], float]] = field(
        default_factory=dict, init=False, compare=False
    )
    _masses: dict[int, tuple[FloatArray, FloatArray, float]] = field(default_factory=dict, init=False, compare=False)
    _near: list[float] = field(default_factory=lambda: [0.0], init=False, compare=False)
    _own: dict[Mechanisms, FloatArray] = field(default_factory=dict, init=False, compare=False)

    @property
    def settled(self) -> float:
        """A curve that the next step raises by less is lifted by a little, and shown to be raised no more."""
        return 1e-7 * self.delta

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy begins without what was computed, which is kept by the identity of matrices and curves of this process."""
        return partial(SingleCurve, up=self.up), (self.h, self.delta)

    def own(self, release: Mechanisms) -> FloatArray:
        """Privacy profile of one release."""
        if release not in self._own:
            found = NOTHING
            for mechanism in release:
                one = self._one(mechanism)
                for _ in range(mechanism.coordinates):
                    found = self.composed(found, one)
            self._own[release] = found
        return self._own[release]

    def _one(self, mechanism: Mechanism) -> FloatArray:
        """One coordinate: on the grid, up to where delta has reached its limit."""
        tail = TAIL * self.delta + 4.0 * ROUNDED * mechanism.limit
        size = POINTS
        while True:
            low, high = bounds_of(mechanism, self.h * np.arange(size + 1, dtype=np.float64))
            if not ((high >= 0.0) & (high <= 1.0) & (low <= high)).all():
                raise InputError(f"expected a profile of {mechanism} between 0 and 1, got other numbers")
            if high[-1] - mechanism.limit <= tail or size >= grid.MOST_POINTS:
                break
            size *= 2
        if high[-1] - mechanism.limit > tail:
            raise InputError(
                f"expected a grid of at most {grid.MOST_POINTS} points, but {mechanism} reaches beyond "
                f"{self.h * size:g} nats at a distance of {self.h:g}, where its upper bound of delta is "
                f"{high[-1] - mechanism.limit:g} above its limit, more than {tail:g}; give a larger grid, or a more "
                "accurate bound"
            )
        if self.up:
            return grid.trimmed(np.maximum.accumulate(high[::-1])[::-1], tail, up=True)
        # beyond the grid nothing is known to be left but the limit
        falling = np.minimum.accumulate(np.maximum(low - max(float(low[-1]) - mechanism.limit, 0.0), 0.0))
        return grid.trimmed(grid.lowered(falling, self.h), tail, up=False)

    def composed(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Privacy profile of two independent outputs."""
        if first is NOTHING or second is NOTHING:
            return second if first is NOTHING else first
        m, infinite = self._masses_of(second)
        made = grid.composed(first, self.h, m, infinite, up=self.up, finest=FINEST * self.delta)
        return grid.trimmed(made, TAIL * self.delta, up=self.up)

    def through(self, matrix: Matrix | None, curve: FloatArray, *, times: float = 1.0) -> FloatArray:
        """Privacy profile after one transition of the correlation, multiplied by a factor."""
        if matrix is None or curve is NOTHING:
            return NOTHING
        reach = self.reach(matrix, curve, TAIL * self.delta)
        passed = grid.arriving_profile(grid.padded(curve, reach), self._passage(matrix, reach), up=self.up)
        if not self.up:
            limit = float(grid.rounded(curve[-1:] * self._thetas[id(matrix)][2], up=False)[0])
            passed = grid.lowered(np.append(passed, min(limit, float(passed[-1]))), self.h)
        passed = np.minimum(grid.trimmed(passed, TAIL * self.delta, up=self.up) * times, 1.0)
        return passed if passed.any() else NOTHING

    def lifted(self, curve: FloatArray, lift: float) -> FloatArray:
        """The curve raised by a margin."""
        return np.minimum(curve * INFLATED + lift, 1.0)

    def worst(self, curve: FloatArray) -> FloatArray:
        """The curve itself, which is that of all pairs."""
        return curve

    def epsilon(self, curve: FloatArray) -> float:
        """Epsilon of a curve at the delta, in nats."""
        return grid.epsilon_at(curve, self.h, self.delta, up=self.up)

    def epsilon_together(self, first: FloatArray, second: FloatArray) -> float:
        """Epsilon of two independent outputs at the delta, in nats: that of `composed`, in a fraction of its time."""
        if first is NOTHING or second is NOTHING:
            return self.epsilon(second if first is NOTHING else first)
        m = grid.masses(second, self.h, up=self.up)
        self._near[0] = grid.composed_epsilon(first, self.h, *m, self.delta, up=self.up, near=self._near[0])
        return self._near[0]

    def variation_together(self, first: FloatArray, second: FloatArray) -> float:
        """Total variation distance of two independent outputs between any two states: their delta at epsilon = 0."""
        if first is NOTHING or second is NOTHING:
            return float(second[0] if first is NOTHING else first[0])
        return grid.composed_variation(first, self.h, *grid.masses(second, self.h, up=self.up), up=self.up)

    def contraction(self, matrix: Matrix) -> float:
        """The largest total variation between rows, by which an infinite loss shrinks in each step."""
        return float(self._passage(matrix, 1)[0][0])

    def reach(self, matrix: Matrix, curve: FloatArray, tail: float) -> int:
        """Points after a step: an infinite loss becomes finite unless a set of states distinguishes two rows with certainty."""
        size = curve.size
        # Times delta: an infinite loss up to which it may stay infinite, where it would make curves several times as long
        if curve[-1] <= max(1e-4 * self.delta, tail):
            return size
        while True:
            theta, limit = self._passage(matrix, size)[0], self._thetas[id(matrix)][2]
            settled = np.flatnonzero((theta - limit) * curve[-1] <= tail)
            if settled.size:
                return max(curve.size, int(settled[0]) + 1)
            if size >= grid.MOST_POINTS:
                return curve.size
            size *= 2

    def _passage(self, matrix: Matrix, size: int) -> tuple[FloatArray, IntArray, FloatArray]:
        """`grid.passage` of the contraction curve at `size` points of the grid or more, on this side."""
        kept = self._thetas.get(id(matrix))
        if kept is None or kept[1][0].size < size:
            losses = np.append(self.h * np.arange(max(2 * size, POINTS), dtype=np.float64), math.inf)
            theta = grid.contraction_bounds(matrix.leakage_profile(), losses)[self.up]
            passed = grid.passage(self.h, theta[:-1], up=self.up)
            kept = self._thetas[id(matrix)] = (matrix, passed, float(theta[-1]))
        return kept[1]

    def _masses_of(self, curve: FloatArray) -> tuple[FloatArray, float]:
        kept = self._masses.get(id(curve))
        if kept is None:
            kept = self._masses[id(curve)] = (curve, *grid.masses(curve, self.h, up=self.up))
        return kept[1], kept[2]


Curves: TypeAlias = "SingleCurve | PairCurves"
"""Privacy curves on one grid: one for all pairs of states, or one for each. All upper bounds, or all lower bounds."""


class Step(NamedTuple):
    """Incoming leakage at a step, the same composed with the step's own release, and whether no later step raises them."""

    arrived: FloatArray
    total: FloatArray
    settled: bool


def arriving_curves(curves: Curves, user: Adversary, side: Side, releases: Sequence[Mechanisms]) -> Arrivals:
    """Incoming leakage of each step in one direction, and the same with the step's own release, in the order of time."""
    if side == "backward":
        steps = list(steps_of(curves, user.backward, releases))
    else:
        steps = list(steps_of(curves, user.forward.in_reverse(), releases[::-1]))[::-1]
    return tuple(step.arrived for step in steps), tuple(step.total for step in steps)


def steps_of(curves: Curves, correlation: Correlation, releases: Sequence[Mechanisms]) -> Iterator[Step]:
    """The steps of `arriving_curves`, one after the other, in the order of `releases`.

    Where releases and matrices repeat and the curves have settled, curves that one more step does not raise are certified, and
    all later steps share them, so that no horizon exceeds them. Lower bounds that have repeated from the first step on never
    fall.
    """
    step = Step(NOTHING, curves.own(releases[0]), False)
    yield step
    last: tuple[int, Mechanisms, Mechanisms] | None = None
    constant, tries, risen = True, 0, math.inf
    for t in range(1, len(releases)):
        progressed("leakage of every step", t / len(releases))
        matrix = correlation.at(t - 1)
        transition = (id(matrix), releases[t - 1], releases[t])
        repeats = transition == last
        if not repeats:
            constant, tries, risen, last = last is None, 0, math.inf, transition
        if not (repeats and step.settled):
            own, before = curves.own(releases[t]), step.total
            passed = curves.through(matrix, before, times=INFLATED if curves.up else 1.0)
            step = Step(passed, curves.composed(passed, own), False)
            rise, fall = grid.raised_by(step.total, before * STILL), grid.raised_by(before, step.total * STILL)
            # Settled curves rise by rounding alone, and do not fall, as they do after a louder release.
            still = (rise <= curves.settled or rise >= risen) and fall <= 4.0 * max(rise, curves.settled)
            risen = rise
            if repeats and (
                np.array_equal(step.total, before) or (constant and not curves.up and rise <= curves.settled)
            ):
                step = step._replace(settled=True)
            elif repeats and curves.up and still and tries < LIFTS:
                tries += 1
                above = certified(curves, matrix, own, step.total, rise)
                if above is not None:
                    step = Step(curves.through(matrix, above), above, True)
        yield step


def certified(
    curves: Curves, matrix: Matrix | None, own: FloatArray, known: FloatArray, rise: float
) -> FloatArray | None:
    """Settled curves, lifted until one more step, computed with its rounding, raises none of them; None if that fails.

    `rise` is what the last step added. A difference of curves shrinks by the contraction of the matrix in each step, so that
    the lift covers all that later steps can add (Theory, section 9).
    """
    share = math.inf if matrix is None else INFLATED * curves.contraction(matrix)
    if share >= 1.0:
        return None
    excess, lift = max(rise, 0.0) + 0.2 * curves.settled, 0.0
    for _ in range(LIFTS):
        lift += 4.0 * excess / (1.0 - share)
        above = curves.lifted(known, lift)
        excess = grid.raised_by(curves.composed(curves.through(matrix, above), own), above)
        if excess <= 0.0:
            return above
    return None


def supremum_curves(
    curves: Curves, matrix: Matrix | None, release: Mechanisms, *, most: int, beyond: float = math.inf
) -> Arrivals | None:
    """Curves to which a long series converges, of one step, which no series exceeds; None without a certificate.

    The search ends after `most` steps, or where the epsilon at the delta exceeds `beyond`.
    """
    own = curves.own(release)
    if matrix is None or own is NOTHING:
        return (NOTHING,), (own,)
    # Where some set of states distinguishes two rows with certainty, leakage never fades
    if curves.contraction(matrix) >= 1.0:
        return None
    for step in steps_of(curves, matrix, (release,) * most):
        if curves.epsilon(step.total) > min(beyond, LARGEST):
            return None
        if step.settled:
            return (step.arrived,), (step.total,)
    return None


def checked_grid(given: float | None) -> float | None:
    """The distance of a grid of privacy losses, if one is given."""
    if given is not None and not (isinstance(given, int | float | np.floating) and 1e-9 <= given <= 1.0):
        raise InputError(f"expected a grid from 1e-9 to 1 nat, got {given!r}")
    return None if given is None else float(given)


def chosen_grid(releases: Iterable[Mechanisms], delta: float, given: float | None) -> float:
    """The distance of the grid: given, or fine enough for the release with the most noise."""
    if given is not None:
        return given
    alone = [epsilon_of_one(mechanism, delta=delta) for release in set(releases) for mechanism in release]
    finite = [epsilon for epsilon in alone if 0.0 < epsilon < math.inf]
    if not finite:
        return COARSEST
    # Times the epsilon of the release with the least noise must fit on the grid
    return max(min(COARSEST, min(finite) / POINTS), max(finite) * 64.0 / grid.MOST_POINTS, 1e-9)


def checked_delta(delta: float) -> float:
    """`delta` as a float; `BudgetError` if it is not admissible."""
    # Smallest delta that is accepted
    return real_number(delta, "delta", ge=1e-60, lt=1.0, error=BudgetError)
