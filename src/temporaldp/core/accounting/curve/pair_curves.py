"""A privacy curve for every ordered pair of states: composition with a release, and transition through a correlation.

Notation
--------
D        shape (n, n, K + 1): ``D[a, b, k]`` is an upper bound of the hockey-stick divergence of a against b at ``e^(k h)``;
         beyond K the last value stays. Below 0 by symmetry: ``D[a, b](-x) = 1 - e^-x + e^-x D[b, a](x)``. Zeros for a = b.
         Shape (1, 1, K + 1) where all pairs have one curve, (1,) where nothing is said
(Theory, section 16)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.values import ULP, FloatArray
from temporaldp.core.accounting.curve import grid
from temporaldp.core.accounting.curve.arrivals import FINEST, INFLATED, NOTHING, SingleCurve, steps_of
from temporaldp.core.accounting.curve.pair_kernels import Searches, lowest_lines, made_convex
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.adversary import Matrix, exactly_known
from temporaldp.core.mechanisms.output_table import OutputTable
from temporaldp.core.mechanisms.protocol import Mechanisms

SMALLEST_DELTA = 1e-9
"""Below, the rounding of the best tests, about 1e-14 a step, would count."""

TOGETHER = 1 << 11
"""Problems that are searched together, about. Doubled: fewer, larger operations, also beyond the end of curves."""


@dataclass(unsafe_hash=True, repr=False)
class PairCurves:
    """One privacy curve for each ordered pair of states: upper bounds.

    Parameters
    ----------
    one : SingleCurve
        Curves of releases; it has the grid and the delta.
    n_states : int
    """

    one: SingleCurve
    n_states: int

    def __post_init__(self) -> None:
        self.h, self.delta, self.up = self.one.h, self.one.delta, True
        # Times delta: what is cut off at the end of the curves, each time, and counted as an infinite loss
        # Times delta: curves that a step changes by less are tried as curves that no further step raises
        self.tail, self.settled = 1e-6 * self.delta, 1e-5 * self.delta
        self._own: dict[Mechanisms, FloatArray] = {}
        self._masses: tuple[FloatArray, FloatArray, FloatArray] | None = None
        self._searches: dict[int, tuple[Matrix, list[Searches]]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy begins without what was computed."""
        return PairCurves, (self.one, self.n_states)

    def own(self, release: Mechanisms) -> FloatArray:
        """Privacy curves of one release by itself, for every pair."""
        if release not in self._own:
            common = tuple(one for one in release if not isinstance(one, OutputTable))
            found = self._cut(self.one.own(common)[None, None]) if common else NOTHING
            for mechanism in release:
                if isinstance(mechanism, OutputTable):
                    found = self.composed(found, self._of_table(mechanism))
            self._own[release] = found
        return self._own[release]

    def _of_table(self, table: OutputTable) -> FloatArray:
        """On a grid that reaches as far as the curve for all pairs."""
        size = self.one.own((table,)).size
        losses = self.h * np.arange(size, dtype=np.float64)
        found = np.zeros((self.n_states, self.n_states, size))
        for a, b in itertools.permutations(range(self.n_states), 2):
            found[a, b] = table.pair_bounds(a, b, losses)[1]
        return self._cut(found)

    def composed(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Compose the curves of two independent outputs."""
        if first.ndim == 1 or second.ndim == 1:
            return second if first.ndim == 1 else first
        m, infinite = self._masses_of(second)
        J, K = m.shape[-1] // 2, first.shape[-1] - 1
        back = np.arange(J, 0, -1)
        fallen = np.exp(-self.h * back)
        below = -np.expm1(-self.h * back) + fallen * first.transpose(1, 0, 2)[..., np.minimum(back, K)]
        last = np.broadcast_to(first[..., -1:], (*first.shape[:2], 2 * J))
        sums = self._convolved(np.concatenate((below, first, last), axis=-1), m) + infinite[..., None]
        falling = np.maximum.accumulate(sums[..., ::-1], axis=-1)[..., ::-1]
        return self._cut(grid.rounded(falling, up=True))

    def _convolved(self, extended: FloatArray, m: FloatArray) -> FloatArray:
        """Sums over losses for every pair, rounding added: by Fourier transforms where their error is small beside delta."""
        by_fft = grid.fft_error(
            extended.shape[-1] + m.shape[-1], math.prod(np.linalg.norm(one, axis=-1).max() for one in (extended, m))
        )
        pairs = np.broadcast_shapes(extended.shape[:2], m.shape[:2])
        if by_fft <= FINEST * self.delta and m.shape[-1] > 64:
            return np.asarray(np.add(*grid.convolved(extended, m)))
        extended = np.broadcast_to(extended, (*pairs, extended.shape[-1]))
        m = np.broadcast_to(m, (*pairs, m.shape[-1]))
        sums = np.array(
            [[np.convolve(extended[a, b], m[a, b], mode="valid") for b in range(pairs[1])] for a in range(pairs[0])]
        )
        return np.asarray(sums * (1.0 + m.shape[-1] * ULP))

    def _masses_of(self, D: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(probabilities of losses, infinite) of every pair; those of the last release are kept."""
        if self._masses is not None and self._masses[0] is D:
            return self._masses[1], self._masses[2]
        n, _, size = D.shape
        m, infinite = np.zeros((n, n, 2 * size - 1)), np.zeros((n, n))
        if n == 1:
            m[0, 0], infinite[0, 0] = grid.masses(D[0, 0], self.h, up=True)
        for a, b in itertools.permutations(range(n), 2):
            m[a, b], infinite[a, b] = grid.pair_masses(D[a, b], D[b, a], self.h)
        self._masses = (D, m, infinite)
        return m, infinite

    def through(self, matrix: Matrix | None, D: FloatArray, *, times: float = 1.0) -> FloatArray:
        """The curves after one transition of the correlation, multiplied by a factor; `InputError` for intervals."""
        n = self.n_states
        if matrix is None or D.ndim == 1:
            return NOTHING
        reach = self.one.reach(matrix, D.max(axis=(0, 1)), self.tail)
        passed = self._best_tests(matrix, np.broadcast_to(D, (n, n, D.shape[-1])), reach)
        passed = self._cut(np.minimum(passed * times, 1.0))
        return passed if passed.any() else NOTHING

    def _best_tests(self, matrix: Matrix, D: FloatArray, reach: int) -> FloatArray:
        """Incoming leakage at `reach` points, or fewer where it falls below the tail; block by block of points."""
        rows, n = exactly_known(matrix).dense(), self.n_states
        one, other = np.nonzero(~np.eye(n, dtype=bool))
        envelopes, per_block = lowest_lines(D, self.h), max(TOGETHER // one.size, 1)
        # Taken out meanwhile, so that no other thread moves them
        _, blocks = self._searches.pop(id(matrix), (matrix, []))
        values: list[FloatArray] = []
        for number, first in enumerate(range(0, reach, per_block)):
            if number < len(blocks):
                known = blocks[number]
                known.moved_to(D, self.h)
            else:
                points = np.exp(np.minimum(self.h * np.arange(first, first + per_block), grid.LARGEST_LOSS))
                p, q = (np.tile(rows[side], (per_block, 1)) for side in (one, other))
                known = Searches.begun(p, q, np.repeat(points, one.size))
                # Entries of inverses that are kept for the next step, for one matrix (128 MiB)
                if (number + 1) * TOGETHER * n * n <= (1 << 24):
                    blocks.append(known)
            known.solve(envelopes)
            values.append(known.proved_values().reshape(per_block, one.size))
            if values[-1][-1].max() <= self.tail:
                break
        # Matrices whose best tests are kept: planners go back and forth between two directions
        while len(self._searches) >= 2:
            self._searches.pop(next(iter(self._searches)), None)
        self._searches[id(matrix)] = matrix, blocks
        falling = np.minimum.accumulate(np.concatenate(values)[:reach], axis=0)
        passed = np.zeros((n, n, len(falling)))
        for a, b, curve in zip(one, other, falling.T, strict=True):
            passed[a, b] = made_convex(curve, self.h)
        return passed

    def contraction(self, matrix: Matrix) -> float:
        """The largest total variation between two rows."""
        return self.one.contraction(matrix)

    def lifted(self, D: FloatArray, lift: float) -> FloatArray:
        """The curves raised by a margin; those of a state and itself stay 0."""
        apart = 1.0 - np.eye(len(D))[..., None] if len(D) > 1 else np.ones((1, 1, 1))
        return np.asarray(np.minimum(D * INFLATED + lift, 1.0) * apart)

    def _cut(self, D: FloatArray) -> FloatArray:
        """Without the end at which no curve differs by more than the tail from its last value; zeros for a = b."""
        if D.ndim == 1:
            return D
        far = np.flatnonzero((D - D[..., -1:] > self.tail).any(axis=(0, 1)))
        kept = np.array(D[..., : int(far[-1]) + 2 if far.size else 1])
        if len(kept) > 1:
            kept[np.arange(len(kept)), np.arange(len(kept))] = 0.0
        return kept

    def worst(self, D: FloatArray) -> FloatArray:
        """The largest curve of any pair, shape (1, 1, K + 1)."""
        return D if D.ndim == 1 else np.asarray(D.max(axis=(0, 1), keepdims=True))

    def epsilon(self, D: FloatArray) -> float:
        """The largest epsilon of any pair at the delta, in nats."""
        return grid.epsilon_at(self.worst(D).ravel(), self.h, self.delta, up=True)

    def variation_together(self, first: FloatArray, second: FloatArray) -> float:
        """The largest total variation distance of two independent outputs between any two states."""
        return float(np.max(self.composed(first, second)[..., 0]))

    def epsilon_together(self, first: FloatArray, second: FloatArray) -> float:
        """The largest epsilon of two independent outputs of any pair at the delta, in nats."""
        return self.epsilon(self.composed(first, second))


def goes_by_pairs(user: Adversary) -> bool:
    """Whether all matrices are known exactly, and do not depend on a clock; else one curve for all pairs is used."""
    return user.states is not None and not user.is_uncertain and user.period is None


def affordable(
    users: Sequence[Adversary], releases: Sequence[Mechanisms], grid: float, delta: float, *, times: int = 1
) -> bool:
    """Whether pairwise curves of these releases, computed so many times, take minutes at most: so that they are the default.

    Their cost is counted along one curve for all pairs, which is as long and settles as late. False where all users have two
    states that can be exchanged: one curve is then the same.
    """
    by_pairs = [user for user in users if goes_by_pairs(user)]
    if delta < SMALLEST_DELTA or all(_are_exchangeable(user, releases) for user in by_pairs):
        return False
    # States to the fourth, times points, over all steps: about eight minutes on one core; doubled, twice as long
    left, one = 4e9 / times, SingleCurve(grid, delta, up=True)
    for user in by_pairs:
        sides = (user.backward, releases), (user.forward.in_reverse(), releases[::-1])
        for correlation, made in sides:
            for step in steps_of(one, correlation, made):
                if step.settled:
                    break
                left -= len(user.states or ()) ** 4 * step.total.size
                if left < 0.0:
                    return False
    return True


def _are_exchangeable(user: Adversary, releases: Sequence[Mechanisms]) -> bool:
    """Whether there are two states, and nothing changes if each takes the other's place."""
    rows = [exactly_known(matrix).dense() for matrix in user.matrices]
    return all(np.array_equal(one, one[::-1, ::-1]) and len(one) == 2 for one in rows) and not any(
        isinstance(mechanism, OutputTable) for release in set(releases) for mechanism in release
    )


def checked_pairs(delta: float) -> None:
    """Check that pairwise curves can be computed at this delta.

    Raises
    ------
    InputError
        delta is so small that rounding errors would matter.
    """
    if delta < SMALLEST_DELTA:
        raise InputError(
            f"expected a delta of {SMALLEST_DELTA:g} or more with pairwise=True, got {delta:g}: rounding, which is added, "
            "would no longer be small beside it; pairwise=False has no such limit"
        )
