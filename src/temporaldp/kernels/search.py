"""The leakage profile of a matrix: its vertices, their sums and their witnesses.

The matrix is a checked dense array or ``scipy.sparse.csr_array``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import scipy

from temporaldp.kernels.pairs import vertex_sums
from temporaldp.kernels.profile import LeakageProfile
from temporaldp.kernels.refinement import TIE, refine
from temporaldp.kernels.screening import hull_edges, screen, screen_sparse
from temporaldp.kernels.threads import spread
from temporaldp.kernels.witness import Witness
from temporaldp.values import FloatArray, IntArray

Store: TypeAlias = tuple[FloatArray, IntArray, IntArray, FloatArray]
"""A matrix as the kernels take it; see `temporaldp.kernels.pairs`."""

UNSCREENED_STATES = 24
"""Rows up to which all pairs are refined without a screen, which would take longer than it saves."""

SAMPLED_PAIRS = 4
"""Pairs of each row that make the hull with which all pairs are compared. If doubled, half as many pairs rise above it."""


def compute_profile(matrix: Any, states: Sequence[str]) -> LeakageProfile:
    """Return the exact leakage profile: every vertex is attained by a pair of rows and a set of columns."""
    store, steepest, pair = stored(matrix), steepest_slope(matrix), disjoint_pair(matrix)
    # Disjoint rows leak everything: no pair leaks more, at any level.
    found = vertices(store, len(states), steepest) if pair is None else np.array([[*pair, steepest]])
    d, x, q, c = vertex_sums(store, found).T
    each = zip(*found.T.tolist(), q.tolist(), d.tolist(), strict=True)
    with np.errstate(over="ignore"):
        witnesses = [_witness(matrix, states, int(i), int(j), *rest) for i, j, *rest in each]
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


def stored(matrix: Any) -> Store:
    """A matrix, dense (n, n) or ``csr_array``, as kernels take it."""
    n = matrix.shape[0]
    # Share of entries and largest number of rows from which, and up to which, a sparse matrix is searched by the dense
    # kernels
    if scipy.sparse.issparse(matrix) and n <= 5_000 and matrix.nnz > 0.1 * n**2:
        matrix = matrix.toarray()
    if scipy.sparse.issparse(matrix):
        ordered = matrix.sorted_indices()
        return np.zeros((0, 0)), ordered.indptr.astype(np.int64), ordered.indices.astype(np.int64), ordered.data.copy()
    # A copy: Numba compiles anew for arrays that are read-only or parts of others.
    nothing = np.empty(0, np.int64)
    return np.array(matrix, order="C"), nothing, nothing, np.empty(0)


def vertices(store: Store, n: int, steepest: float) -> FloatArray:
    """Row, other row and limit of each vertex, by falling slope, shape (m, 3); S is ``{k : q_k - d_k > limit d_k}``."""
    if n <= UNSCREENED_STATES:
        pairs = np.array(np.nonzero(~np.eye(n, dtype=bool)))
    else:
        # Pairs of every row with others at random. Only speed depends on them.
        rows = np.tile(np.arange(n), SAMPLED_PAIRS)
        others = (rows + np.random.default_rng(0).integers(1, n, rows.size)) % n
        # Factor by which a pair must exceed an edge of their hull. If its distance from 1 is doubled, fewer edges
        # are compared with.
        hull = refine(store, rows, others, steepest, 1.01)
        # At least one pair, also where all rows are equal.
        above = _pairs_above(store, n, *hull_edges(store, hull, steepest))
        pairs = np.concatenate((above, hull[:, :2].astype(np.int64), [[0, 1]])).T.copy()
    return np.asarray(refine(store, *pairs, steepest, TIE)[:, :3])


def _pairs_above(store: Store, n: int, slopes: FloatArray, levels: FloatArray) -> IntArray:
    """The pairs that rise above a hull with these edges, shape (m, 2), found on all cores."""
    if store[1].size:
        columns, heavy, vectors = _by_columns(store, n)
        screened = partial(screen_sparse, store, columns, heavy, vectors)
        work = n * (n * (len(vectors) + 3) + store[2].size) * slopes.size
    else:
        screened = partial(screen, store[0])
        work = 4 * n**3  # a pair is summed at about 4 n slopes
    return np.concatenate(spread(lambda first, last: screened(first, last, slopes, levels), n, step=1, work=work))


def _by_columns(store: Store, n: int) -> Any:
    """A sparse matrix by columns, and its heavy columns as dense vectors."""
    _, indptr, indices, data = store
    columns = scipy.sparse.csr_array((data, indices, indptr), shape=(n, n)).tocsc()
    # Share of entries from which a column of a sparse matrix is kept as a dense vector: both ways then cost about the same
    chosen = np.flatnonzero(np.diff(columns.indptr) > 0.125 * n)
    heavy = np.full(n, -1, dtype=np.int64)
    heavy[chosen] = np.arange(chosen.size)
    vectors = np.ascontiguousarray(columns[:, chosen].toarray().T)
    return (columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data.copy()), heavy, vectors
