"""One direction of the correlations of some users, with the likelihoods of each step's output, and products with its matrices.

Notation as in `temporaldp.core.kernels.rollouts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from temporaldp.base.progress import in_blocks
from temporaldp.base.values import ROUNDOFF as UNIT
from temporaldp.base.values import BoolArray, FloatArray, IntArray

LARGEST_EXPONENT = 600.0
"""Nats. Ratios beyond e^600 are not looked for, and a spread beyond does not cut a rollout short."""

LARGEST_LEVEL = 300.0
"""Nats. Levels and spreads up to this keep all coefficients within the range of doubles."""

CHAIN_ENTRIES = 1 << 16
"""Coefficients of one block of pairs, half a megabyte: several arrays of them fit the cache."""

ROWS = 32
"""Rows of a dense matrix that are summed at once: rounding grows with them, and with their number."""


Items: TypeAlias = tuple[IntArray, IntArray, IntArray, IntArray]
"""User, step t, and the two states i and j of each item, arrays of shape (m,)."""


@dataclass(frozen=True, eq=False)
class Chain:
    """One direction of the correlations of some users, with the likelihoods of each step's output.

    Parameters
    ----------
    matrices : array, shape (k, n, n), or tuple of csr_array
        The distinct matrices. Rows sum to 1, to rounding.
    into : int array, shape (users, T)
        Number of the matrix of the transition into each step; that of the first is not used.
    up, down : array, shape (T, n), or (T, 1) where all states are alike
        For each state at each step, the largest factor less 1 and the smallest less 1; both >= 0.
    spreads : array, shape (users, T)
        Log spread of the likelihoods up to and including each step, from above, in nats.
    infinite : bool
        Whether each step repeats over an infinite horizon.
    """

    matrices: FloatArray | tuple[Any, ...]
    into: IntArray
    up: FloatArray
    down: FloatArray
    spreads: FloatArray
    infinite: bool = False
    rows_at_once: int = ROWS
    unit: float = UNIT

    @classmethod
    def of(
        cls,
        matrices: Sequence[Any] | FloatArray,
        into: IntArray,
        up: FloatArray,
        down: FloatArray,
        spread: FloatArray,
        *,
        infinite: bool = False,
    ) -> Chain:
        """A chain of one user; matrices are dense, in one array or several, or all sparse."""
        dense = all(isinstance(one, np.ndarray) for one in matrices)
        held = np.asarray(matrices, dtype=np.float64) if dense else tuple(_sparse(one) for one in matrices)
        return cls(held, np.asarray(into, np.int64)[None], up, down, spread[None], infinite)

    @cached_property
    def n(self) -> int:
        """Number of states."""
        return int(self.matrices[0].shape[0])

    @cached_property
    def is_dense(self) -> bool:
        """Whether matrices are dense."""
        return isinstance(self.matrices, np.ndarray)

    @cached_property
    def is_plain(self) -> bool:
        """Whether all factors lie between 1 and one number a step: plain differential privacy."""
        return self.up.shape[1] == 1 and not self.down.any()

    @cached_property
    def repeats(self) -> bool:
        """Whether the factors of all steps are alike."""
        return bool((self.up == self.up[0]).all() and (self.down == self.down[0]).all())

    @cached_property
    def is_steep(self) -> bool:
        """Whether a step can more than double coefficients."""
        return float(max(self.up.max(), self.down.max())) > 1.0

    @cached_property
    def middles(self) -> FloatArray:
        """Means of the largest and smallest factors less 1, and half of their differences, shape (2, T, n) or (2, T, 1)."""
        return 0.5 * np.stack((self.up + self.down, self.up - self.down))

    def factors(self, s: IntArray) -> tuple[FloatArray, FloatArray | None]:
        """The largest and the smallest factors less 1 of steps; the smallest are None where they are 0."""
        which: Any = slice(1) if self.repeats else s
        return self.up[which], None if self.is_plain else self.down[which]

    def raise_all(self, s: IntArray, c: FloatArray, positive: FloatArray) -> None:
        """Multiply coefficients by the factors of a step; `positive`, the positive ones, is written over."""
        up, down = self.factors(s)
        if down is not None:
            c += (c - positive) * down
        positive *= up
        c += positive

    @cached_property
    def gamma(self) -> float:
        """Relative error of an entry in one step."""
        if self.is_dense:
            return rounding(self.n, self.rows_at_once, self.unit)
        most = max(int(np.bincount(one.indices, minlength=1).max()) for one in self.matrices)
        return rounding(most, most)

    @cached_property
    def rough(self) -> Chain:
        """Return the chain in single precision where states are many and the horizon is known, else the chain itself."""
        # States from which on signs are looked for in single precision first: products take half as long
        if not self.is_dense or self.infinite or self.n < 64:
            return self
        assert isinstance(self.matrices, np.ndarray)
        # Products that underflow, by 1e-38 each, are nothing compared with the margin, with all that they can grow by later on.
        if float(self.up.max()) > 1.0 or float(self.spreads.max()) > 12.0:
            return self
        matrices, up, down = (one.astype(np.float32) for one in (self.matrices, self.up, self.down))
        return replace(self, matrices=matrices, up=up, down=down, unit=2.0**-24, rows_at_once=self.n)  # type: ignore[arg-type]

    @property
    def few_steps(self) -> int:
        """Steps that rollouts without bounds of rounding are followed."""
        return 24 if self.unit > UNIT else 256

    @cached_property
    def growth_less_1(self) -> FloatArray:
        """e^a - 1 of each step; inf where it is too large to cut a rollout short."""
        found = np.full(self.spreads.shape, np.inf)
        return np.expm1(self.spreads, out=found, where=self.spreads <= LARGEST_EXPONENT)

    def blur(self, depth: IntArray) -> FloatArray:
        """Nats by which the rounding of so many steps can move a root, at most."""
        return np.asarray(2.0 * (self.gamma * (depth + 2.0) + 2.0 * (self.n + 4) * self.unit))

    def arriving(self, user: IntArray, t: IntArray) -> FloatArray:
        """Spread of the incoming leakage of steps: 0 where no earlier step distinguishes states."""
        if self.infinite:
            return self.spreads[user, t]
        return np.where(t > 0, self.spreads[user, t - 1], 0.0)

    def rows(self, user: IntArray, t: IntArray, k: IntArray) -> FloatArray:
        """Rows of the matrices into steps, shape (m, n)."""
        number = self.into[user, t]
        if self.is_dense:
            return np.asarray(self.matrices[number, k])  # type: ignore[call-overload]
        found = np.empty((len(k), self.n))
        for one in np.unique(number):
            here = number == one
            found[here] = self.matrices[one][k[here]].toarray()
        return found

    def through(self, user: IntArray, s: IntArray, g: FloatArray) -> FloatArray:
        """``g P`` row by row, P the transition into step s of a user."""
        if len(self.matrices) == 1:
            return product(g, self.matrices[0], self.rows_at_once)
        number = self.into[user, s]
        first = int(number[0])
        if (number == first).all():
            return product(g, self.matrices[first], self.rows_at_once)
        if self.is_dense and self.n <= ROWS and len(self.matrices) > 8:
            return self._gathered(number, g)
        out = np.empty_like(g)
        for one in np.unique(number):
            some = number == one
            out[some] = product(g[some], self.matrices[one], self.rows_at_once)
        return out

    def through_pairs(self, user: IntArray, s: IntArray, both: FloatArray) -> FloatArray:
        """`through` of two rows for each item, shape (2, m, n), in any order of summation."""
        if len(self.matrices) == 1:
            return (both.reshape(-1, self.n) @ self.matrices[0]).reshape(both.shape)  # type: ignore[no-any-return]
        if len(self.matrices) > 8 and self.is_dense and self.n <= ROWS:
            return self._gathered(self.into[user, s], both.transpose(1, 0, 2)).transpose(1, 0, 2).copy()
        return self.through(np.tile(user, 2), np.tile(s, 2), both.reshape(-1, self.n)).reshape(both.shape)

    def _gathered(self, number: IntArray, g: FloatArray) -> FloatArray:
        """``g P`` for a small matrix P of each row's own, or for each row of g by itself; g has shape (..., n)."""
        assert isinstance(self.matrices, np.ndarray)
        ends = np.append(np.flatnonzero(number[1:] != number[:-1]) + 1, len(g))
        starts = np.append(0, ends[:-1])
        counts = ends - starts
        width, r = int(counts.max(initial=1)), g.size // max(len(g), 1) // self.n
        if len(starts) * width > 2 * len(g):  # too few of a matrix follow one another to be filled up
            starts, width, place = np.arange(len(g)), 1, np.arange(len(g))
        else:
            place = np.repeat(np.arange(len(starts)) * width - starts, counts) + np.arange(len(g))
        filled = g.reshape(-1, r, self.n)
        if len(starts) * width > len(g):
            filled = np.zeros((len(starts) * width, r, self.n))
            filled[place] = g.reshape(-1, r, self.n)
        filled = filled.reshape(len(starts), width * r, self.n)
        out = np.empty(filled.shape)
        step = max(1, CHAIN_ENTRIES // self.n**2)
        for first in range(0, len(starts), step):
            some = slice(first, first + step)
            np.matmul(filled[some], self.matrices[number[starts[some]]], out=out[some])
        out = out.reshape(-1, r, self.n)
        return (out if len(out) == len(g) else out[place]).reshape(g.shape)

    @cached_property
    def most_at_once(self) -> int:
        """Steps over an infinite horizon that are taken at once where signs stay the same; 0 where none are.

        Few enough that the rounding of a step's signs, in units of all steps, stays below 1.
        """
        if (
            not self.infinite
            or len(self.up) > 1
            or self.into.shape != (1, 1)
            or not self.is_dense
            or self.n > ROWS // 2
        ):
            return 0
        # Steps that shrink differences to their last digits, up to which single ones take less time. If doubled, suprema of
        # chains that hardly forget take twice as long; if halved, those of others
        second = float(np.sort(np.abs(np.linalg.eigvals(self.matrices[int(self.into[0, 0])])))[-2:][0])
        if second**1000 < 1e-13:
            return 0
        # Steps over an infinite horizon taken at once, at most
        most = min(256, int(2.0 / max(float(self.up.max()), float(self.down.max()), 1e-6)))
        return most if most >= 4 else 0

    @cached_property
    def _powers(self) -> dict[bytes, tuple[FloatArray, FloatArray]]:
        return {}

    def powers(self, positive: BoolArray) -> tuple[FloatArray, FloatArray]:
        """The matrices of 1, 2, ... steps through which these signs stay, side by side, and factors less 1 of each state."""
        known = self._powers.get(key := positive.tobytes())
        if known is None:
            factors = np.where(positive, self.up[0], self.down[0])
            step = (1.0 + factors)[:, None] * self.matrices[int(self.into[0, 0])]
            found = step[None]
            while len(found) < self.most_at_once:
                found = np.concatenate((found, found @ found[-1]))[: self.most_at_once]
            # Signs for which the matrices of several steps are kept
            if len(self._powers) >= 32:
                self._powers.clear()
            known = self._powers[key] = found.transpose(1, 0, 2).reshape(self.n, -1), factors
        return known

    def jumped(self, x: FloatArray) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
        """Rows after as many steps as the first row of each item keeps its signs.

        x has shape (r, m, n). With the numbers of steps, by how much the sums of rows grew, shape (r, m), and the sum of all
        sizes of the first row, shape (m,).
        """
        r, m, n = x.shape
        most, positive = self.most_at_once, x[0] > 0.0
        out, taken, gained, size = np.empty_like(x), np.zeros(m, np.int64), np.empty((r, m)), np.empty(m)
        _, first, which = np.unique(positive @ (1 << np.arange(n)), return_index=True, return_inverse=True)
        for number, pattern in enumerate(positive[first]):
            here = np.flatnonzero(which == number)
            powers, factors = self.powers(pattern)
            after = (x[:, here].reshape(-1, n) @ powers).reshape(r, len(here), most, n)
            same = ((after[0] > 0.0) == pattern).all(axis=2)
            steps = np.where(same.all(axis=1), most, same.argmin(axis=1) + 1)
            out[:, here], taken[here] = after[:, np.arange(len(here)), steps - 1], steps
            passed = np.concatenate((x[:, here, None], after[:, :, :-1]), axis=2)
            counted = (np.arange(most) < steps[:, None]).astype(np.float64)
            gained[:, here] = ((passed @ factors) * counted).sum(axis=2)
            size[here] = (np.abs(passed[0]).sum(axis=2) * counted).sum(axis=1)
        return out, taken, gained, size

    def before(self, user: IntArray, s: IntArray, x: FloatArray) -> FloatArray:
        """``P x`` row by row, P the transition into step s of a user."""
        number, out = self.into[user, s], np.empty(x.shape)
        for one in np.unique(number):
            some = number == one
            out[some] = (self.matrices[one] @ x[some].T).T
        return out

    def blocks(self, m: int) -> Iterator[slice]:
        """Blocks of m items whose coefficients fit the cache."""
        return in_blocks(m, max(16, CHAIN_ENTRIES // self.n))


def rounding(n: int, rows: int = ROWS, unit: float = UNIT) -> float:
    """Relative error of an entry in one step: sums of so many products at a time, a factor (3), rows that sum to 1 (2)."""
    return (min(n, rows) + -(-n // rows) - 1 + 5) * unit


def backward(n: int, depth: float) -> float:
    """Nats by which the rounding of so many steps of a dense matrix can move a root, at most."""
    return 2.0 * (rounding(n) * (depth + 2.0) + 2.0 * (n + 4) * UNIT)


def _sparse(matrix: Any) -> Any:
    from scipy.sparse import csr_array

    return csr_array(matrix)


def product(g: FloatArray, matrix: Any, rows: int) -> FloatArray:
    """``g P`` for one matrix, so many of its rows at a time where P is dense."""
    n = g.shape[1]
    if n <= rows or not isinstance(matrix, np.ndarray):
        return np.asarray(g @ matrix)
    found = g[:, :rows] @ matrix[:rows]
    for first in range(rows, n, rows):
        found += g[:, first : first + rows] @ matrix[first : first + rows]
    return found
