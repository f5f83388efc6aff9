"""The search for a profile's vertices, with compiled kernels on all cores."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from temporaldp.kernels.compiled.pairs import divergences, set_sums
from temporaldp.kernels.compiled.refinement import refine
from temporaldp.kernels.compiled.screening import BAND, screen
from temporaldp.kernels.compiled.single import (
    SAFE,
    ascend,
    climb,
    column_maxima,
    loss_among,
    loss_by_rows,
    row_bounds,
    sampled,
)
from temporaldp.kernels.compiled.slopes import best_pair, plan_slopes
from temporaldp.kernels.compiled.sparse import screen_sparse
from temporaldp.kernels.compiled.sums import vertex_sums
from temporaldp.kernels.compiled.table import tabulate
from temporaldp.kernels.kernels import spread
from temporaldp.kernels.screens import Tangents, steeper, steepest_slope

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FEW = 24
"""Rows up to which all pairs go to the last stage at once: screening them first would take longer."""

HEAVY = 1.0 / 8.0
"""Share of entries from which a column of a sparse matrix is kept as a dense vector: both ways then cost about the same."""

SINGLE = 1e-6
"""How far thresholds are lowered, relative, for their own rounding to single precision and that of the chord."""

TIED = 1e-14
"""How far thresholds are raised, relative, in double precision: pairs that tie with a tangent add nothing."""

FEW_COLUMNS = 1.0 / 256.0
"""Share of the entries of all pairs up to which one loss is found row by row: it takes single entries, where the screen takes
whole registers, but needs no table."""

LITTLE = 1 << 20
"""Entries up to which a matrix is copied: kernels are compiled for each kind of array, and copies are all of one kind, while a
matrix may be read-only, or a part of another one."""

SCATTER = 2654435761
"""Knuth's multiplicative hash: 2^32 over the golden ratio."""


class CompiledSearch:
    """One matrix, dense (n, n) or ``csr_array``, and the pairs of rows that matter in it."""

    def __init__(self, matrix: Any) -> None:
        self.n = matrix.shape[0]
        self._matrix = matrix
        self.is_sparse = scipy.sparse.issparse(matrix)
        empty = np.zeros((0, 0)), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        if self.is_sparse:
            ordered = matrix.sorted_indices()
            parts = (ordered.indptr.astype(np.int64), ordered.indices.astype(np.int64), ordered.data)
            self._store = (empty[0], *(np.array(part) for part in parts))
            self._table: Any = _by_columns(ordered)
        else:
            copied = matrix.size <= LITTLE
            self._store = (np.array(matrix, order="C") if copied else np.ascontiguousarray(matrix), *empty[1:])
            self._table = None  # made when first needed: small matrices and ties do without

    @cached_property
    def steepest(self) -> float:
        """A bound of every finite ratio (q_k - d_k) / d_k."""
        return steepest_slope(self._matrix)

    def vertices(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Row, other row and limit of each vertex, by falling slope; its set is ``{k : q_k - d_k > limit d_k}``."""
        if self.n <= FEW:
            rows, others = (one.copy() for one in np.nonzero(~np.eye(self.n, dtype=bool)))
        else:
            slopes, pairs, lines = plan_slopes(self._store, self.n, self._partners(), self.steepest)
            rows, others = self._alive(Tangents.of_lines(slopes, *lines.T))
            rows, others = np.append(rows, pairs[:, 0]), np.append(others, pairs[:, 1])
        found: tuple[IntArray, IntArray, FloatArray] = refine(self._store, rows, others, self.steepest)
        return found

    def contraction(self, slope: float) -> tuple[int, int]:
        """The pair with the largest hockey-stick divergence at 1 + slope."""
        i, j = best_pair(self._store, self.n, slope, self._partners(), np.empty((0, 2), np.int64), np.empty(self.n))
        rows, others = self._alive(Tangents.at(slope, set_sums(self._store, i, j, slope, slope)[2]))
        rows, others = np.append(rows, i), np.append(others, j)
        best = int(np.argmax(divergences(self._store, rows, others, slope)))
        return int(rows[best]), int(others[best])

    def best_at(self, weight: float) -> tuple[int, int, float]:
        """Row, other row and limit of the set with the largest x / (weight + d); weight = 1 / (e^alpha - 1)."""
        best = sampled(self._store, self.n, self._partners(), weight)
        if self.is_sparse:
            while climb(self._store, *self.contraction(best[0] * steeper(self.n)), weight, best):
                pass
        elif not self._raised_by_rows(best, weight):
            best = self._raised_by_screen(best, weight)
        return int(best[1]), int(best[2]), float(best[3])

    def _raised_by_rows(self, best: FloatArray, weight: float) -> bool:
        """Raise `best` to the largest over all pairs if few columns can count, as at a large alpha; whether they were few."""
        tall = column_maxima(self._store[0])
        bounds, n_open = row_bounds(self._store[0], tall, best[0])
        alive = bounds > best[0] * weight * SAFE
        if n_open[alive].sum() > self.n**2 * FEW_COLUMNS:
            return False
        loss_by_rows(self._store, tall, np.argsort(-bounds), bounds, weight, best)
        return True

    def _raised_by_screen(self, best: FloatArray, weight: float) -> FloatArray:
        """The largest over all pairs, screened in single precision on all cores."""
        ascend(self._store, self.n, weight, best)
        table, shared = self._tabulated(), best[:1].copy()

        def among(first: int, last: int) -> FloatArray:
            mine: FloatArray = best.copy()
            loss_among(self._store, table, first, last, weight, mine, shared)
            return mine

        found = [best, *spread(among, self.n, step=BAND, work=self.n**3)]
        return max((one for one in found if one[1] >= 0.0), key=lambda one: float(one[0]))

    def sums(self, rows: IntArray, others: IntArray, limits: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
        """d, x, q and c of each vertex, rounded once, shape (m, 4); the members of all sets in a row, and where each begins."""
        found: tuple[FloatArray, IntArray, IntArray] = vertex_sums(self._store, rows, others, limits)
        return found

    def _partners(self) -> IntArray:
        """Another row for every row, scattered: a pattern could meet the matrix's own. Only speed depends on it."""
        rows = np.arange(self.n, dtype=np.int64)
        partners: IntArray = (rows + 1 + (rows * SCATTER >> 16) % (self.n - 1)) % self.n
        return partners

    def _tabulated(self) -> Any:
        if self._table is None:
            self._table = tabulate(self._store[0])
        return self._table

    def _alive(self, tangents: Tangents) -> tuple[IntArray, IntArray]:
        """The pairs above a tangent somewhere; pairs that tie with one in double precision are left out."""
        table = self._tabulated()
        if self.is_sparse:
            columns, heavy, vectors = table
            raised = tangents.scaled(1.0 + TIED)
            limits = raised.slopes, raised.ends, raised.shares, raised.levels

            def block(first: int, last: int) -> Any:
                return screen_sparse(self._store, columns, heavy, vectors, first, last, *limits)

            work = self.n * (self.n * (len(vectors) + 3) + self._store[2].size) * tangents.slopes.size
        else:
            lowered = tangents.scaled(float(table[-1]) * (1.0 - SINGLE))
            thin = [part.astype(np.float32) for part in (lowered.ends, lowered.shares, lowered.levels)]

            def block(first: int, last: int) -> Any:
                return screen(table, first, last, tangents.slopes, *thin)

            work = self.n**3
        found = spread(block, self.n, step=BAND, work=work)
        rows, others = (np.concatenate([one[k] for one in found]).astype(np.int64) for k in (0, 1))
        return rows, others


def _by_columns(matrix: Any) -> Any:
    """A sparse matrix by columns, and its heavy columns as dense vectors (see `compiled/sparse.py`)."""
    columns = matrix.tocsc()
    counts = np.diff(columns.indptr)
    chosen = np.flatnonzero(counts > HEAVY * matrix.shape[0])
    heavy = np.full(matrix.shape[1], -1, dtype=np.int64)
    heavy[chosen] = np.arange(chosen.size)
    vectors = np.ascontiguousarray(columns[:, chosen].toarray().T)
    return (columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data.copy()), heavy, vectors
