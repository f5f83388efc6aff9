"""From a matrix to its leakage profile: find the vertices, sum them exactly, name their witnesses; and the loss at one level.

The matrix is a checked dense array or ``scipy.sparse.csr_array``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from temporaldp.errors import BudgetError, InputError
from temporaldp.kernels.pairs import set_sums, steeper, vertex_sums
from temporaldp.kernels.profile import LeakageProfile
from temporaldp.kernels.refinement import ascend, best_pair, climb, divergences, plan_slopes, refine, sampled
from temporaldp.kernels.screening import BAND, Tangents, screen, screen_sparse, tabulate
from temporaldp.kernels.threads import spread
from temporaldp.kernels.vertex import DIRECT_LIMIT, vertex_loss
from temporaldp.kernels.witness import WitnessList

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Rows: TypeAlias = Any

DENSE_SHARE, DENSE_LIMIT = 0.1, 5_000
"""Share of entries from which a sparse matrix of so many rows is searched as a dense one, whose kernels are faster an entry."""

SPARSE_ROWS = 8
"""Rows with the fewest entries that are compared with all others for disjoint supports before anything else is done."""

UNSCREENED_STATES = 24
"""Rows up to which all pairs are refined without a screen, which would take longer than it saves."""

HEAVY_SHARE = 1.0 / 8.0
"""Share of entries from which a column of a sparse matrix is kept as a dense vector: both ways then cost about the same."""

SINGLE_ROUNDING, TIE_SHARE = 1e-6, 1e-14
"""Shares by which thresholds are lowered, for their own rounding to single precision and that of the chord, and raised in
double precision, where pairs that tie with a tangent add nothing."""

SCATTER = 2654435761
"""Knuth's multiplicative hash: 2^32 over the golden ratio."""


class RowsWithNames(Protocol):
    """The part of a `TransitionMatrix` that a loss needs."""

    @property
    def probabilities(self) -> Any: ...  # noqa: D102


def compute_profile(matrix: Rows, states: Sequence[str]) -> LeakageProfile:
    """Exact leakage profile of a matrix: every vertex is attained by a pair of rows and a set of columns."""
    search, pair = Search(matrix), disjoint_pair(matrix)
    # Disjoint rows are told apart with certainty: nothing leaks more, at any level.
    found = search.vertices() if pair is None else np.array([[*pair, search.steepest]])
    sums, members, starts = vertex_sums(search.store, found)
    d, x, q, c = sums.T
    witnesses = WitnessList(tuple(states), found[:, :2].astype(np.int64), members, starts, np.stack((d, q), axis=1))
    return LeakageProfile.from_points(d=d, x=x, q=q, c=c, witnesses=witnesses)


def loss(matrix: RowsWithNames, *, alpha: float) -> float:
    """What leaks through one step at one incoming leakage, in nats: L(alpha) of the paper's Equations 23 and 24.

    The same number as ``matrix.leakage_profile().loss(alpha)``, exact to rounding (relative error below 1e-13), without the
    profile: one or two passes over all pairs of rows. The profile costs a few more; use it for more than one level.

    Parameters
    ----------
    matrix : TransitionMatrix
        Shape (n, n), dense or sparse.
    alpha : float, >= 0
        Leakage at the step before (backward) or after (forward), in nats.

    Returns
    -------
    float

    Raises
    ------
    BudgetError
        alpha is negative or not a number.
    InputError
        `matrix` is no TransitionMatrix.

    Notes
    -----
    The global root of ``(e^alpha - 1) theta(g) = g - 1`` by Newton's (Dinkelbach's) steps, kept for all pairs at once
    (`docs/theory.md`, section 1). Beyond 700 nats the profile is computed.

    Examples
    --------
    >>> from temporaldp import TransitionMatrix
    >>> round(loss(TransitionMatrix([[0.8, 0.2], [0.0, 1.0]]), alpha=0.1), 6)
    0.080784
    """
    try:
        level = float(alpha)
    except (TypeError, ValueError):
        raise BudgetError(f"expected alpha to be a number (nats), got {alpha!r}") from None
    if not level >= 0.0:
        raise BudgetError(f"expected alpha >= 0, got {alpha}")
    if not hasattr(matrix, "leakage_profile"):
        raise InputError(f"expected a TransitionMatrix, got {type(matrix).__name__}; wrap it: TransitionMatrix(matrix)")
    if level > DIRECT_LIMIT:
        return float(matrix.leakage_profile().loss(level))
    if level == 0.0 or disjoint_pair(matrix.probabilities) is not None:
        return level
    search = Search(matrix.probabilities)
    ((d, x, _, _),) = vertex_sums(search.store, search.best_at(math.exp(-level) / -math.expm1(-level)))[0]
    return float(vertex_loss(d, x, level, math.exp(-level))) if x > 0.0 else 0.0


def all_pairs(n: int) -> IntArray:
    """Rows and other rows of all ordered pairs, shape (2, n (n - 1))."""
    return np.array(np.nonzero(~np.eye(n, dtype=bool)))


def steepest_slope(matrix: Rows) -> float:
    """A bound of every finite ratio (q_k - d_k) / d_k: from here on theta is constant."""
    if scipy.sparse.issparse(matrix):
        largest, smallest = matrix.max(axis=0).toarray().ravel(), np.full(matrix.shape[1], np.inf)
        np.minimum.at(smallest, matrix.indices, matrix.data)
    else:
        largest, smallest = matrix.max(axis=0), np.where(matrix > 0.0, matrix, np.inf).min(axis=0)
    return float((largest / smallest).max()) * (1.0 + 1e-12)


def disjoint_pair(matrix: Rows) -> tuple[int, int] | None:
    """Two rows without a common column, looked for from the rows with the fewest entries; None: there is none among these."""
    if not scipy.sparse.issparse(matrix):
        if matrix.min(axis=0).max() > 0.0:
            return None  # a column without a zero
        matrix = scipy.sparse.csr_array(matrix)
    columns = matrix.tocsc()
    for i in np.argsort(np.diff(matrix.indptr), kind="stable")[:SPARSE_ROWS]:
        apart = np.ones(matrix.shape[0], dtype=bool)
        for k in matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]]:
            apart[columns.indices[columns.indptr[k] : columns.indptr[k + 1]]] = False
        if apart.any():
            return int(i), int(np.argmax(apart))
    return None


class Search:
    """The pairs of rows that matter in one matrix, dense (n, n) or ``csr_array``, found on all cores."""

    def __init__(self, matrix: Any) -> None:
        self.n = matrix.shape[0]
        if scipy.sparse.issparse(matrix) and self.n <= DENSE_LIMIT and matrix.nnz > DENSE_SHARE * self.n**2:
            matrix = matrix.toarray()
        self.is_sparse, self._matrix = scipy.sparse.issparse(matrix), matrix
        if self.is_sparse:
            ordered = matrix.sorted_indices()
            parts = (ordered.indptr.astype(np.int64), ordered.indices.astype(np.int64), ordered.data)
            self.store = (np.zeros((0, 0)), *(np.array(part) for part in parts))
        else:
            # A copy: Numba compiles anew for arrays that are read-only or parts of others.
            nothing = np.empty(0, np.int64)
            self.store = (np.array(matrix, order="C"), nothing, nothing, np.empty(0))

    def vertices(self) -> FloatArray:
        """Row, other row and limit of each vertex, by falling slope, shape (m, 3); S is ``{k : q_k - d_k > limit d_k}``."""
        if self.n <= UNSCREENED_STATES:
            rows, others = all_pairs(self.n)
        else:
            slopes, pairs, lines = plan_slopes(self.store, self.n, self._partners(), self.steepest)
            rows, others = self._alive(Tangents.of_lines(slopes, *lines.T))
            rows, others = np.append(rows, pairs[:, 0]), np.append(others, pairs[:, 1])
        found: FloatArray = refine(self.store, rows, others, self.steepest)
        return found

    def best_at(self, weight: float) -> FloatArray:
        """Row, other row and limit of the set with the largest x / (weight + d), shape (1, 3); weight = 1 / (e^alpha - 1)."""
        best = sampled(self.store, self.n, self._partners(), weight)
        ascend(self.store, self.n, weight, best)
        while climb(self.store, *self._contraction(best[0] * steeper(self.store)), weight, best):
            ascend(self.store, self.n, weight, best)
        return np.array([best[1:]])

    def _contraction(self, slope: float) -> tuple[int, int]:
        """The pair with the largest hockey-stick divergence at 1 + slope."""
        known = np.empty((0, 2), np.int64)
        i, j = best_pair(self.store, self.n, slope, self._partners(), known, np.empty(self.n))
        rows, others = self._alive(Tangents.at(slope, set_sums(self.store, i, j, slope, slope)[2]))
        rows, others = np.append(rows, i), np.append(others, j)
        best = int(np.argmax(divergences(self.store, rows, others, slope)))
        return int(rows[best]), int(others[best])

    def _partners(self) -> IntArray:
        """Another row for every row, scattered: a pattern could meet the matrix's own. Only speed depends on it."""
        rows = np.arange(self.n, dtype=np.int64)
        partners: IntArray = (rows + 1 + (rows * SCATTER >> 16) % (self.n - 1)) % self.n
        return partners

    def _alive(self, tangents: Tangents) -> tuple[IntArray, IntArray]:
        """The pairs above a tangent somewhere; pairs that tie with one in double precision are left out."""
        if self.is_sparse:
            columns, heavy, vectors = self._by_columns
            raised = tangents.scaled(1.0 + TIE_SHARE)
            limits = raised.slopes, raised.ends, raised.shares, raised.levels

            def block(first: int, last: int) -> Any:
                return screen_sparse(self.store, columns, heavy, vectors, first, last, *limits)

            work = self.n * (self.n * (len(vectors) + 3) + self.store[2].size) * tangents.slopes.size
        else:
            table = self._table
            lowered = tangents.scaled(float(table[-1]) * (1.0 - SINGLE_ROUNDING))
            thin = [part.astype(np.float32) for part in (lowered.ends, lowered.shares, lowered.levels)]

            def block(first: int, last: int) -> Any:
                return screen(table, first, last, tangents.slopes, *thin)

            work = self.n**3
        found = spread(block, self.n, step=BAND, work=work)
        rows, others = (np.concatenate([one[k] for one in found]).astype(np.int64) for k in (0, 1))
        return rows, others

    @cached_property
    def steepest(self) -> float:
        """A bound of every finite ratio (q_k - d_k) / d_k: from here on theta is constant."""
        return steepest_slope(self._matrix)

    @cached_property
    def _table(self) -> Any:
        """The dense matrix in single precision; small matrices and ties do without."""
        return tabulate(self.store[0])

    @cached_property
    def _by_columns(self) -> Any:
        """A sparse matrix by columns, and its heavy columns as dense vectors."""
        columns = self._matrix.sorted_indices().tocsc()
        chosen = np.flatnonzero(np.diff(columns.indptr) > HEAVY_SHARE * self.n)
        heavy = np.full(self.n, -1, dtype=np.int64)
        heavy[chosen] = np.arange(chosen.size)
        vectors = np.ascontiguousarray(columns[:, chosen].toarray().T)
        return (columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data.copy()), heavy, vectors
