"""Privacy curves: the delta for every epsilon of what leaks, and how one step follows from the one before.

``past_t = kernel(past_{t-1} with release t-1)``; about step t everything together says ``past_t, release t, future_t``, which
are independent given the value at t (docs/theory.md, Theorem 6).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.curve import grid
from temporaldp.correlation.adversary import Matrix
from temporaldp.correlation.protocol import Correlation
from temporaldp.errors import BudgetError, InputError
from temporaldp.mechanisms.protocol import ROUNDED, Mechanism, Mechanisms, epsilon_of_one

FloatArray = NDArray[np.float64]

SMALLEST_DELTA = 1e-60
"""Smallest delta that is accepted."""

POINTS = 512
"""Points of the grid up to the epsilon of the release with the most noise, unless told otherwise."""

SPREAD = 64.0
"""Times the epsilon of the release with the least noise must fit on the grid."""

COARSEST = 0.01
"""Largest default distance of the grid, in nats."""

TAIL = 1e-9
"""Times delta: what is cut off at the end of a curve, each time, and counted as an infinite loss."""

FINEST = 1e-5
"""Times delta: the largest rounding error of a convolution by FFT; else it is summed term by term."""

SETTLED = 1e-7
"""Times delta: a curve that the next step raises by less is lifted by a little, and shown to be raised no more."""

INFLATED = 1.0 + 1e-9
"""What a step passes on is raised by this factor where a certificate is sought: more than rounding, less than anybody sees."""

LIFTS = 4
"""How often a curve is lifted by more where rounding, which is never the same twice, raised it."""

NOTHING = np.zeros(1)
"""Privacy profile of a release that reveals nothing."""


class SingleCurve:
    """Curves on one grid, all upper bounds or all lower bounds."""

    def __init__(self, distance: float, delta: float, *, up: bool) -> None:
        self.h, self.delta, self.up = distance, delta, up
        self._thetas: dict[int, tuple[Matrix, FloatArray, float]] = {}
        self._masses: dict[int, tuple[FloatArray, FloatArray, float]] = {}
        self._own: dict[Mechanisms, FloatArray] = {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SingleCurve):
            return NotImplemented
        return (self.h, self.delta, self.up) == (other.h, other.delta, other.up)

    def __hash__(self) -> int:
        return hash((self.h, self.delta, self.up))

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
            low, high = mechanism.bounds(self.h * np.arange(size + 1, dtype=np.float64))
            if not ((high >= 0.0) & (high <= 1.0) & (low <= high)).all():
                raise InputError(f"expected a profile of {mechanism} between 0 and 1, got other values")
            if high[-1] - mechanism.limit <= tail or size >= grid.MOST_POINTS:
                break
            size *= 2
        if high[-1] - mechanism.limit > tail:
            raise InputError(
                f"expected a grid of at most {grid.MOST_POINTS} points, but {mechanism} reaches beyond "
                f"{self.h * size:g} nats at a distance of {self.h:g}; give a larger grid"
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
        """Privacy profile after one transition of the correlation, raised by a factor."""
        if matrix is None or curve is NOTHING:
            return NOTHING
        reach = self.reach(matrix, curve, TAIL * self.delta)
        passed = grid.arriving_profile(grid.padded(curve, reach), self.h, self._theta(matrix, reach), up=self.up)
        if not self.up:
            limit = float(grid.rounded(curve[-1:] * self._thetas[id(matrix)][2], up=False)[0])
            passed = grid.lowered(np.append(passed, min(limit, float(passed[-1]))), self.h)
        passed = np.minimum(grid.trimmed(passed, TAIL * self.delta, up=self.up) * times, 1.0)
        return passed if passed.any() else NOTHING

    def epsilon(self, curve: FloatArray) -> float:
        """Epsilon of a curve at the delta."""
        return grid.epsilon_at(curve, self.h, self.delta, up=self.up)

    def contraction(self, matrix: Matrix) -> float:
        """The largest total variation between rows: what an infinite loss is multiplied by in each step."""
        return float(self._theta(matrix, 1)[0])

    def reach(self, matrix: Matrix, curve: FloatArray, tail: float) -> int:
        """Points after a step: an infinite loss becomes finite unless a set of values tells two rows apart for certain."""
        size = curve.size
        if curve[-1] <= tail:
            return size
        while True:
            theta, limit = self._theta(matrix, size), self._thetas[id(matrix)][2]
            settled = np.flatnonzero((theta - limit) * curve[-1] <= tail)
            if settled.size:
                return max(curve.size, int(settled[0]) + 1)
            if size >= grid.MOST_POINTS:
                return curve.size
            size *= 2

    def _theta(self, matrix: Matrix, size: int) -> FloatArray:
        """The contraction curve at `size` points of the grid or more, and what it falls to, on this side."""
        kept = self._thetas.get(id(matrix))
        if kept is None or kept[1].size < size:
            profile = matrix.leakage_profile()
            losses = self.h * np.arange(max(2 * size, POINTS), dtype=np.float64)
            bounds = grid.contraction_bounds(profile, losses)
            limits = grid.contraction_bounds(profile, np.array([math.inf]))
            kept = self._thetas[id(matrix)] = (matrix, bounds[int(self.up)], float(limits[int(self.up)][0]))
        return kept[1]

    def _masses_of(self, curve: FloatArray) -> tuple[FloatArray, float]:
        kept = self._masses.get(id(curve))
        if kept is None:
            kept = self._masses[id(curve)] = (curve, *grid.masses(curve, self.h, up=self.up))
        return kept[1], kept[2]


def arriving_curves(
    side: SingleCurve, correlation: Correlation, releases: Sequence[Mechanisms]
) -> tuple[list[FloatArray], list[FloatArray]]:
    """(what arrives at each step, that and the step's own release), in the order of `releases`.

    Where release and matrix stay the same and the curve settles, one that no further step raises is shown to be one, and kept.
    """
    arrived, total = [NOTHING], [side.own(releases[0])]
    last: tuple[Matrix | None, Mechanisms] | None = None
    settled, passed, after = False, NOTHING, total[0]
    since, tried, rise = 0, False, math.inf
    for t in range(1, len(releases)):
        matrix = correlation.at(t - 1)
        now = (matrix, releases[t - 1])
        same = last is not None and now[0] is last[0] and now[1] == last[1] and releases[t] == releases[t - 1]
        if not (settled and same):
            settled = False
            own = side.own(releases[t])
            before = total[-1]
            passed = side.through(matrix, before)
            after = side.composed(passed, own)
            if same and after.size == before.size and (after == before).all():
                settled, passed, after = True, arrived[-1], before
            elif same and not (since or side.up) and grid.raised_by(after, before) <= SETTLED * side.delta:
                # What arrives of the same releases never falls with their number: a lower bound stays one.
                settled, passed, after = True, arrived[-1], before
            elif same and side.up and matrix is not None:
                rise, risen = max(grid.raised_by(after, before * INFLATED), 0.0), rise
                least = SETTLED * side.delta
                falls = grid.raised_by(before, after * INFLATED) > 4.0 * max(rise, least)  # after a louder release
                if not (tried or falls) and (rise <= least or rise >= risen):
                    # Where nothing ever changed, the certificate is that of the supremum, which is then never exceeded.
                    start = before if since else own
                    above, _ = ceiling(side, matrix, own, start, most=len(releases) - t)
                    tried = True
                    if above is not None and grid.raised_by(after, above) <= 0.0:
                        settled, passed, after = True, side.through(matrix, above), above
            if not same and last is not None:
                since, tried, rise = t, False, math.inf
        arrived.append(passed)
        total.append(after)
        last = now
    return arrived, total


def ceiling(
    side: SingleCurve,
    matrix: Matrix,
    own: FloatArray,
    start: FloatArray,
    *,
    most: int,
    beyond: float = math.inf,
) -> tuple[FloatArray | None, int]:
    """(a curve that one more step does not raise anywhere, or None; how many steps from `start` on were looked at).

    Steps are inflated by a share that rounding cannot hide: what they add then falls by a factor each time until only rounding
    is left, and slightly above where they arrive there is a certificate (docs/theory.md, section 9). That it is one is
    computed, with rounding, before it is returned. None also once the epsilon at delta is above `beyond`.
    """
    share = INFLATED * side.contraction(matrix)
    high, risen = start, math.inf
    if share >= 1.0:
        return None, 0
    for steps in range(1, most + 1):
        after = side.composed(side.through(matrix, high, times=INFLATED), own)
        rise = max(grid.raised_by(after, high * (1.0 + (INFLATED - 1.0) / 4.0)), 0.0)
        if rise <= SETTLED * side.delta or rise >= risen:
            excess, lift = (
                rise + 2.0 * TAIL * side.delta,
                0.0,
            )  # two tails are cut off in a step, at most TAIL delta each
            for _ in range(LIFTS):
                lift += 4.0 * excess / (1.0 - share)
                above = np.minimum(high * INFLATED + lift, 1.0)
                excess = grid.raised_by(side.composed(side.through(matrix, above), own), above)
                if excess <= 0.0:
                    return above, steps
        if after[-1] > side.delta or (beyond < math.inf and side.epsilon(after) > beyond):
            return None, steps  # it only rises
        high, risen = after, rise
    return None, most


def checked_grid(given: float | None) -> float | None:
    """The distance of a grid of privacy losses, if one is given."""
    if given is not None and not (isinstance(given, int | float | np.floating) and 1e-9 <= given <= 1.0):
        raise InputError(f"expected a grid from 1e-9 to 1 nats, got {given!r}")
    return None if given is None else float(given)


def chosen_grid(releases: Iterable[Mechanisms], delta: float, given: float | None) -> float:
    """The distance of the grid: given, or fine enough for the release with the most noise."""
    if given is not None:
        return given
    alone = [epsilon_of_one(mechanism, delta=delta) for release in set(releases) for mechanism in release]
    finite = [epsilon for epsilon in alone if 0.0 < epsilon < math.inf]
    if not finite:
        return COARSEST
    return max(min(COARSEST, min(finite) / POINTS), max(finite) * SPREAD / grid.MOST_POINTS, 1e-9)


def checked_delta(delta: float) -> float:
    """`delta` as a float; `BudgetError` if it is not admissible."""
    try:
        number = float(delta)
    except (TypeError, ValueError):
        number = math.nan
    if not SMALLEST_DELTA <= number < 1.0:
        raise BudgetError(f"expected delta from {SMALLEST_DELTA:g} to below 1, got {delta!r}")
    return number
