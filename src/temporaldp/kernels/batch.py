"""The profiles of many small matrices in one call, their merge, and those that no other dominates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from temporaldp.kernels.hull import undominated, upper_hull
from temporaldp.kernels.profile import LeakageProfile
from temporaldp.kernels.refinement import stack_vertices
from temporaldp.kernels.search import all_pairs
from temporaldp.kernels.threads import spread
from temporaldp.kernels.witness import Witness, WitnessList
from temporaldp.values import compared_by_value

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BATCHED = 64
"""Rows up to which all pairs of a matrix are searched at once, without a screen."""


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakageProfiles(Sequence[LeakageProfile]):
    """The exact profiles of many matrices of one size, as flat arrays; from `leakage_profiles`.

    A sequence of `LeakageProfile`, each made when asked for. Quantities are exact to rounding, like those of one profile.

    Parameters
    ----------
    matrices : array, shape (count, n, n)
    states : tuple of n str
        Names for the witnesses.
    points : array, shape (m, 4)
        d, ``q - d``, q and ``1 - q`` of all vertices, profile by profile, by increasing d.
    sets : array, shape (m, 3)
        Row, other row and limit: the vertex's set is ``{k : q_k - d_k > limit d_k}``.
    starts : array, shape (count + 1,)
        The vertices of profile k are ``points[starts[k] : starts[k + 1]]``.
    """

    matrices: FloatArray
    states: tuple[str, ...]
    points: FloatArray
    sets: FloatArray
    starts: IntArray

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, index: int) -> LeakageProfile: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[LeakageProfile, ...]: ...
    def __getitem__(self, index: int | slice) -> LeakageProfile | tuple[LeakageProfile, ...]:
        if isinstance(index, slice):
            return tuple(self[k] for k in range(*index.indices(len(self))))
        number = range(len(self))[index]
        vertices = np.arange(self.starts[number], self.starts[number + 1])
        d, x, q, c = self.points[vertices].T
        return LeakageProfile.from_points(d=d, x=x, q=q, c=c, witnesses=self._witnesses(number, vertices))

    @property
    def merged(self) -> LeakageProfile:
        """The pointwise maximum of all: what the worst of these users leaks, at every alpha."""
        kept = upper_hull(self.points[:, 0], self.points[:, 1])
        d, x, q, c = self.points[kept].T
        owners = np.searchsorted(self.starts, kept, side="right") - 1
        witnesses = [
            self._witnesses(int(owner), np.array([vertex]))[0] for owner, vertex in zip(owners, kept, strict=True)
        ]
        return LeakageProfile.from_points(d=d, x=x, q=q, c=c, witnesses=witnesses)

    @property
    def undominated(self) -> IntArray:
        """Numbers of the profiles that no other one dominates, in order; of equal profiles, one. The others never leak more.

        Where two profiles differ by rounding only, both may stay.
        """
        nonempty = np.diff(self.starts) > 0
        leftmost = np.ones(len(self))
        leftmost[nonempty] = self.points[self.starts[:-1][nonempty], 0]
        order = np.lexsort((leftmost, -self._areas()))
        return np.asarray(undominated(self.points[:, 0].copy(), self.points[:, 1].copy(), self.starts, order))

    def __repr__(self) -> str:
        return f"LeakageProfiles({len(self)} matrices of {len(self.states)} states, {len(self.points)} vertices)"

    def _witnesses(self, number: int, vertices: IntArray) -> WitnessList | Sequence[Witness]:
        rows, others = self.sets[vertices, :2].T.astype(np.int64)
        matrix, limits = self.matrices[number], self.sets[vertices, 2]
        with np.errstate(over="ignore"):
            excess = matrix[rows] - matrix[others]
            inside = (excess > 0.0) & (excess > limits[:, None] * matrix[others])
        starts = np.concatenate(([0], np.cumsum(inside.sum(axis=1))))
        pairs, probabilities = np.stack((rows, others), axis=1), self.points[vertices][:, [0, 2]]
        return WitnessList(self.states, pairs, np.nonzero(inside)[1].astype(np.int64), starts, probabilities)

    def _areas(self) -> FloatArray:
        """Area under each hull up to d = 1: a profile that dominates another has no less."""
        first = np.zeros(len(self.points), dtype=bool)
        first[self.starts[:-1][np.diff(self.starts) > 0]] = True
        d, x = self.points[:, 0], self.points[:, 1]
        left_d = np.where(first, 0.0, np.concatenate(([0.0], d[:-1])))
        left_x = np.where(first, np.where(d == 0.0, x, 0.0), np.concatenate(([0.0], x[:-1])))
        last = np.roll(first, -1)
        pieces = (d - left_d) * (x + left_x) / 2.0 + np.where(last, (1.0 - d) * x, 0.0)
        owner = np.repeat(np.arange(len(self)), np.diff(self.starts))
        return np.bincount(owner, weights=pieces, minlength=len(self)).astype(np.float64)


def compute_profiles(stack: FloatArray, states: tuple[str, ...]) -> LeakageProfiles:
    """The exact profiles of a checked stack of matrices, shape (count, n, n)."""
    count, n, _ = stack.shape
    stack = np.array(stack, order="C")  # Numba compiles anew for arrays that are read-only
    with np.errstate(divide="ignore"):
        ratios = stack.max(axis=1) / np.where(stack > 0.0, stack, np.inf).min(axis=1)
    steepest = ratios.max(axis=1) * (1.0 + 1e-12)
    rows, others = all_pairs(n)
    found = spread(
        lambda first, last: stack_vertices(stack, steepest, rows, others, first, last),
        count,
        step=1,
        work=count * n**3,
    )
    table, sizes = (np.concatenate([part[k] for part in found]) for k in range(2))
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return LeakageProfiles(stack, states, table[:, :4], table[:, 4:], starts)
