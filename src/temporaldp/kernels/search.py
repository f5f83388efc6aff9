"""The leakage profile of a matrix: its vertices, their sums and their witnesses.

The matrix is a checked dense array or ``scipy.sparse.csr_array``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy

from temporaldp.kernels.pairs import vertex_sums
from temporaldp.kernels.profile import LeakageProfile
from temporaldp.kernels.refinement import TIE, refine
from temporaldp.kernels.screening import hull_edges, screen, screen_sparse
from temporaldp.kernels.threads import spread
from temporaldp.kernels.witness import Witness
from temporaldp.values import FloatArray, IntArray

UNSCREENED_STATES = 24
"""Rows up to which all pairs are refined without a screen, which would take longer than it saves."""

SAMPLED_PAIRS = 4
"""Pairs of each row that make the hull with which all pairs are compared. If doubled, half as many pairs rise above it."""


def compute_profile(matrix: Any, states: Sequence[str]) -> LeakageProfile:
    """Return the exact leakage profile: every vertex is attained by a pair of rows and a set of columns."""
    search, pair = Search(matrix), disjoint_pair(matrix)
    # Disjoint rows leak everything: no pair leaks more, at any level.
    found = search.vertices() if pair is None else np.array([[*pair, search.steepest]])
    d, x, q, c = vertex_sums(search.store, found).T
    vertices = zip(*found.T.tolist(), q.tolist(), d.tolist(), strict=True)
    with np.errstate(over="ignore"):
        witnesses = [_witness(matrix, states, int(i), int(j), *rest) for i, j, *rest in vertices]
    return LeakageProfile.from_points(d=d, x=x, q=q, c=c, witnesses=witnesses)


def _witness(matrix: Any, states: Sequence[str], i: int, j: int, limit: float, q: float, d: float) -> Witness:
    """Name the states of a vertex, whose set is ``{k : q_k - d_k > limit d_k}``."""
    above, below = matrix[[i, j]].toarray() if scipy.sparse.issparse(matrix) else (matrix[i], matrix[j])
    inside = (above > below) & (above - below > limit * below)
    return Witness(states[i], states[j], tuple(states[k] for k in inside.nonzero()[0].tolist()), q, d)


def steepest_slope(matrix: Any) -> float:
    """A bound of every finite ratio (q_k - d_k) / d_k: from here on theta is constant."""
    if scipy.sparse.issparse(matrix):
        largest, smallest = matrix.max(axis=0).toarray().ravel(), np.full(matrix.shape[1], np.inf)
        np.minimum.at(smallest, matrix.indices, matrix.data)
    else:
        largest, smallest = matrix.max(axis=0), np.where(matrix > 0.0, matrix, np.inf).min(axis=0)
    return float((largest / smallest).max()) * (1.0 + 1e-12)


def disjoint_pair(matrix: Any) -> tuple[int, int] | None:
    """Two rows without a common column, one of them among the rows with the fewest entries; None if there are no such rows."""
    if not scipy.sparse.issparse(matrix):
        if matrix.min(axis=0).max() > 0.0:
            return None  # a column without a zero
        matrix = scipy.sparse.csr_array(matrix)
    columns = matrix.tocsc()
    # Rows with the fewest entries that are compared with all others for disjoint supports before anything else is done
    for i in np.argsort(np.diff(matrix.indptr), kind="stable")[:8]:
        apart = np.ones(matrix.shape[0], dtype=bool)
        for k in matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]]:
            apart[columns.indices[columns.indptr[k] : columns.indptr[k + 1]]] = False
        if apart.any():
            return int(i), int(np.argmax(apart))
    return None


class Search:
    """The pairs of rows that matter in one matrix, dense (n, n) or ``csr_array``, found on all cores."""

    def __init__(self, matrix: Any) -> None:
        self.n, self.steepest = matrix.shape[0], steepest_slope(matrix)
        # Share of entries and largest number of rows from which, and up to which, a sparse matrix is searched by the dense
        # kernels
        if scipy.sparse.issparse(matrix) and self.n <= 5_000 and matrix.nnz > 0.1 * self.n**2:
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
            pairs = np.array(np.nonzero(~np.eye(self.n, dtype=bool)))
        else:
            # Factor by which a pair must exceed an edge of that hull. If its distance from 1 is doubled, fewer edges
            # are compared with.
            hull = refine(self.store, *self._sample(), self.steepest, 1.01)
            # At least one pair, also where all rows are equal.
            pairs = np.concatenate((self._pairs_above(hull), hull[:, :2].astype(np.int64), [[0, 1]])).T.copy()
        return np.asarray(refine(self.store, *pairs, self.steepest, TIE)[:, :3])

    def _sample(self) -> IntArray:
        """Pairs of every row with others at random, shape (2, m). Only speed depends on them."""
        rows = np.tile(np.arange(self.n), SAMPLED_PAIRS)
        return np.stack((rows, (rows + np.random.default_rng(0).integers(1, self.n, rows.size)) % self.n))

    def _pairs_above(self, hull: FloatArray) -> IntArray:
        """The pairs that rise above a hull, shape (m, 2)."""
        slopes, levels = hull_edges(self.store, hull, self.steepest)
        if self.is_sparse:
            columns, heavy, vectors = self._by_columns()
            screened = partial(screen_sparse, self.store, columns, heavy, vectors)
            work = self.n * (self.n * (len(vectors) + 3) + self.store[2].size) * slopes.size
        else:
            screened = partial(screen, self.store[0])
            work = 4 * self.n**3  # a pair is summed at about so many slopes
        found = spread(lambda first, last: screened(first, last, slopes, levels), self.n, step=1, work=work)
        return np.concatenate(found)

    def _by_columns(self) -> Any:
        """A sparse matrix by columns, and its heavy columns as dense vectors."""
        columns = self._matrix.sorted_indices().tocsc()
        # Share of entries from which a column of a sparse matrix is kept as a dense vector: both ways then cost about the same
        chosen = np.flatnonzero(np.diff(columns.indptr) > 0.125 * self.n)
        heavy = np.full(self.n, -1, dtype=np.int64)
        heavy[chosen] = np.arange(chosen.size)
        vectors = np.ascontiguousarray(columns[:, chosen].toarray().T)
        return (columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data.copy()), heavy, vectors
