"""From a matrix to its leakage profile: find the vertices, add them up exactly, name their witnesses.

The matrix is a checked dense array or ``scipy.sparse.csr_array``: this room knows rows and names, not who made them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from temporaldp.kernels.kernels import chosen_kernels
from temporaldp.kernels.profile import LeakageProfile
from temporaldp.kernels.witness import WitnessList

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Rows: TypeAlias = Any

DENSE_SHARE, DENSE_LIMIT = 0.1, 5_000
"""Share of entries from which a sparse matrix of so many rows is searched as a dense one, whose kernels are faster an entry."""

LOOKED_AT = 8
"""Rows with the fewest entries that are compared with all others for disjoint supports before anything else is done."""


class Search(Protocol):
    """The pairs of rows that matter in one matrix; `CompiledSearch` and `ArraySearch` are the two ways to find them."""

    @property
    def steepest(self) -> float:
        """A bound of every finite ratio (q_k - d_k) / d_k."""

    def vertices(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Row, other row and limit of each vertex; its set is ``{k : q_k - d_k > limit d_k}``."""

    def best_at(self, weight: float) -> tuple[int, int, float]:
        """Row, other row and limit of the set with the largest x / (weight + d); weight = 1 / (e^alpha - 1)."""

    def sums(self, rows: IntArray, others: IntArray, limits: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
        """d, x, q and c of each vertex, rounded once, shape (m, 4); the members of all sets in a row, and where each begins."""


def compute_profile(matrix: Rows, states: Sequence[str]) -> LeakageProfile:
    """The exact leakage profile of a matrix: every vertex is attained by a pair of rows and a set of columns."""
    search = search_of(matrix)
    pair = disjoint_pair(matrix)
    if pair is not None:  # told apart with certainty: nothing leaks more, at any alpha
        return _profile_of(search, tuple(states), np.array(pair[:1]), np.array(pair[1:]), np.array([search.steepest]))
    return _profile_of(search, tuple(states), *search.vertices())


def search_of(matrix: Rows) -> Search:
    """The search for this matrix, by the kernels that the environment and its size choose."""
    n = matrix.shape[0]
    if scipy.sparse.issparse(matrix) and n <= DENSE_LIMIT and matrix.nnz > DENSE_SHARE * n * n:
        matrix = matrix.toarray()
    kernels = chosen_kernels(matrix.nnz * n if scipy.sparse.issparse(matrix) else n**3)
    if kernels == "numba":
        from temporaldp.kernels.compiled.search import CompiledSearch

        return CompiledSearch(matrix)
    from temporaldp.kernels.arrays import ArraySearch, numpy_distance, torch_distance

    return ArraySearch(matrix, torch_distance if kernels == "torch" else numpy_distance)


def disjoint_pair(matrix: Rows) -> tuple[int, int] | None:
    """Two rows without a common column, looked for from the rows with the fewest entries; None says only: not among these."""
    if not scipy.sparse.issparse(matrix):
        if matrix.min(axis=0).max() > 0.0:
            return None  # a column without a zero
        matrix = scipy.sparse.csr_array(matrix)
    columns = matrix.tocsc()
    counts = np.diff(matrix.indptr)
    for i in np.argsort(counts, kind="stable")[:LOOKED_AT]:
        support = matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]]
        apart = np.ones(matrix.shape[0], dtype=bool)
        for k in support:
            apart[columns.indices[columns.indptr[k] : columns.indptr[k + 1]]] = False
        if apart.any():
            return int(i), int(np.argmax(apart))
    return None


def _profile_of(
    search: Search, states: tuple[str, ...], rows: IntArray, others: IntArray, limits: FloatArray
) -> LeakageProfile:
    """The profile whose vertices are the given sets."""
    sums, members, starts = search.sums(rows, others, limits)
    d, x, q, c = sums.T
    witnesses = WitnessList(states, np.stack((rows, others), axis=1), members, starts, np.stack((d, q), axis=1))
    return LeakageProfile.from_points(d=d, x=x, q=q, c=c, witnesses=witnesses)
