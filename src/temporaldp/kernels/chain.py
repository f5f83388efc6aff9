"""One direction of a correlation with what each step's output can say, and the pairs of values that are asked about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.values import ROUNDOFF as U

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """One direction of a correlation with what each step's output can say.

    Parameters
    ----------
    matrices : tuple of arrays, shape (n, n), dense or ``csr_array``
        Rows sum to 1, to rounding.
    into : int array, shape (T,)
        Number of the matrix of the transition into each step; that of the first is not used.
    up, down : array, shape (T, n), or (T, 1) where all values are alike
        The largest factor of each value at each step less 1, and the smallest less 1.
    endless : bool
        Each step repeats for ever by itself, and rollouts end where nothing that lies before can change the answer.
    """

    matrices: tuple[Any, ...]
    into: IntArray
    up: FloatArray
    down: FloatArray
    endless: bool = False

    @property
    def n(self) -> int:
        """Number of values."""
        return int(self.matrices[0].shape[0])

    @property
    def plain(self) -> bool:
        """Whether every step treats all values alike and no factor is below 1: plain differential privacy."""
        return self.up.shape[1] == 1 and not self.down.any()

    def rounding(self, *, compiled: bool = False, extended: bool = False) -> float:
        """Relative error of an entry in one step: a sum of n products, a factor (three roundings), rows that sum to 1 (two).

        Machine code adds eight products at a time, then four; of others nothing is known but their number. In extended
        precision what matrices and factors are rounded to is all that counts. Factors are 1 or more, so that they have all
        their digits.
        """
        if extended:
            return 3.0 * U + (self.n + 4) * float(np.finfo(np.longdouble).eps)
        return (self.n // 8 + self.n % 8 // 4 + self.n % 4 + 8 if compiled else self.n + 5) * U

    def rows(self, t: IntArray, i: IntArray) -> FloatArray:
        """The rows of values i of the matrices into steps t, shape (m, n)."""
        which = self.into[self.step(t, -1)]
        found = np.empty((len(t), self.n))
        for number in np.unique(which):
            here = which == number
            part = self.matrices[number][i[here]]
            found[here] = part if isinstance(part, np.ndarray) else part.toarray()
        return found

    def silent(self, t: IntArray, spread: FloatArray) -> BoolArray:
        """Whether nothing arrives at steps t, because nothing that tells values apart was published before."""
        none = spread[np.maximum(self.step(t, 0), 0)] <= 0.0
        return none if self.endless else none | (t == 0)

    def step(self, t: IntArray, depth: int) -> IntArray:
        """The step that a rollout from t reaches at a depth."""
        return t if self.endless else t - 1 - depth

    def through(self, matrices: tuple[Any, ...], rows: FloatArray, s: IntArray) -> FloatArray:
        """Each row times the matrix of the transition into its step; `matrices` are the chain's, or stand for them."""
        if len(matrices) == 1:
            return np.asarray(rows @ matrices[0])
        which = self.into[s]
        result = np.empty_like(rows)
        for number in np.unique(which):
            here = which == number
            result[here] = rows[here] @ matrices[number]
        return result


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """Pairs of values at steps: each asks what arrives at step `t` about telling value `i` from value `j`."""

    t: IntArray
    i: IntArray
    j: IntArray

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, which: BoolArray | IntArray | slice) -> Items:
        return Items(self.t[which], self.i[which], self.j[which])

    @property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray]:
        """t, i and j."""
        return self.t, self.i, self.j
