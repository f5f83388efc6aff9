"""The transition matrix of a first-order Markov chain, checked once and immutable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, DTypeLike, NDArray

from temporaldp.base.display import ROWS_SHOWN, draw, grid
from temporaldp.base.errors import MatrixError, StateError
from temporaldp.base.names import labels_of, listed, names_of, positions, row_names, state_names
from temporaldp.base.values import FloatArray, IntArray, assign, compared_by_value, locked, read_only
from temporaldp.core.correlation.protocol import Constant
from temporaldp.core.kernels import LeakageProfile, compute_profiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW_SUM_TOLERANCE = 1e-12
"""Largest admitted distance of a row sum of doubles from 1. Dividing a row of 20,000 doubles by its own sum leaves less than
1e-13; a row rounded to six decimals is refused rather than renormalised in silence."""


SMALLEST_PROBABILITY = 1e-290
"""Smallest probability beside 0. Differences of smaller ones lose digits, and ratios of them leave the range of doubles."""


@compared_by_value
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class TransitionMatrix(Constant):
    """Transition probabilities between consecutive steps: row = the given state, column = the state at the other time.

    A *forward* matrix holds ``Pr(l[t+1] = column | l[t] = row)``, a *backward* matrix
    ``Pr(l[t-1] = column | l[t] = row)``; the paper's Definition 3 (temporal correlations). The class is the same
    for both: the argument of `Adversary` determines the direction.

    Parameters
    ----------
    probabilities : array_like, scipy.sparse matrix or TransitionMatrix, shape (n, n), n >= 2
        Entries are 0 or at least 1e-290, and every row sums to 1 within `ROW_SUM_TOLERANCE`. Rows in single or half precision
        sum to 1 within 16 units in the last place, and are divided by their sums in double precision. The input is copied;
        sparse input stays sparse. A table with names (pandas) is read by its row and column names, in any order.
        `numpy.asarray` of a `TransitionMatrix` returns its dense probabilities.
    states : sequence of n distinct names, optional
        Defaults to the names of the table's rows, or ``"0", "1", ...``. Other objects are named by ``str``.
    normalize : bool
        Divide every row by its sum, whatever that is, such as rows of counts.

    Raises
    ------
    MatrixError
        An entry or the sum of a row is invalid; the message names the entry, or the row, its sum and the tolerance.
    StateError
        Names are missing, repeated, or not n.

    Examples
    --------
    >>> matrix = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=["home", "work"])
    >>> matrix
    TransitionMatrix(2 states: 'home', 'work')
    >>> float(matrix["home", "work"]), matrix["work"], matrix.shape
    (0.2, array([0.1, 0.9]), (2, 2))
    >>> (matrix @ matrix)["home"].round(2)                           # two steps
    array([0.66, 0.34])
    >>> TransitionMatrix([[8, 2], [3, 27]], normalize=True) == TransitionMatrix(matrix, states=["0", "1"])
    True
    """

    probabilities: FloatArray | scipy.sparse.csr_array
    states: tuple[str, ...]
    _profile: LeakageProfile | None

    def __init__(
        self, probabilities: ArrayLike | Any, states: Iterable[object] | None = None, *, normalize: bool = False
    ) -> None:
        if isinstance(probabilities, TransitionMatrix):  # its names come along, unless others are given
            states = probabilities.states if states is None else states
            probabilities = probabilities.probabilities
        matrix = checked_square(probabilities)
        n = matrix.shape[0]
        precision = _precision(probabilities)
        labels = labels_of(probabilities)
        names = names_of(n, labels[0] if states is None and labels else states)
        if labels is not None:
            rows, columns = labels
            order = (
                positions(rows, names, what="the table's rows"),
                positions(columns, names, what="the table's columns"),
            )
            matrix = checked_square(matrix[np.ix_(*order)])
        _check_entries(matrix, names)
        if not normalize:
            # Rounding of entries moves a row's sum by half a unit at most, however many there are, and dividing by a sum that
            # was added up in that precision by a few more
            _check_row_sums(matrix, names, max(16.0 * precision, ROW_SUM_TOLERANCE))
        if normalize or precision > ROW_SUM_TOLERANCE:
            matrix = _normalized(matrix, names)
            _check_entries(matrix, names)
        assign(self, probabilities=matrix, states=names, _profile=None)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Convert the matrix to an array: its probabilities, shape (n, n), dense."""
        return np.array(self.dense(), dtype=dtype, copy=True) if copy else np.asarray(self.dense(), dtype=dtype)

    def __getitem__(self, at: Any) -> Any:
        """Probabilities by a name or as of the array: an entry, a row or a block; `StateError` for a name of no state."""
        given = at if type(at) is tuple else (at,)
        unknown = [one for one in given if isinstance(one, str) and one not in self.states]
        if unknown:
            raise StateError(f"expected a state ({listed(self.states)}), got {unknown[0]!r}")
        each = tuple(self.states.index(one) if isinstance(one, str) else one for one in given)
        found = self.probabilities[each]
        return found.toarray().squeeze() if scipy.sparse.issparse(found) else found

    def __matmul__(self, other: Any) -> Any:
        """Product with an array; with another matrix of the same states, the matrix of both transitions."""
        if not isinstance(other, TransitionMatrix):
            return self.probabilities @ other
        return TransitionMatrix(
            self.probabilities @ other.reordered(self.states).probabilities, self.states, normalize=True
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns, (n, n)."""
        return len(self.states), len(self.states)

    @property
    def T(self) -> FloatArray | scipy.sparse.csr_array:
        """The transposed array, whose columns sum to 1."""
        return self.probabilities.T

    def central(self) -> TransitionMatrix:
        """The matrix itself: it is known exactly."""
        return self

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """The probabilities as their own bounds, shape (n, n) each."""
        return self.dense(), self.dense()

    def update_digest(self, digest: Any) -> None:
        """Add states and entries to a hash, alike whether they are stored dense or sparse."""
        entries = scipy.sparse.csr_array(self.probabilities)
        entries.sum_duplicates()
        digest.update(repr(self.states).encode("utf-8"))
        for array, kind in ((entries.indptr, np.int64), (entries.indices, np.int64), (entries.data, np.float64)):
            digest.update(np.ascontiguousarray(array, dtype=kind).tobytes())

    def document(self) -> dict[str, Any]:
        """The states, and the probabilities: row by row, or as the parts of a CSR matrix."""
        stored = self.probabilities
        if not isinstance(stored, scipy.sparse.csr_array):
            return {"states": list(self.states), "probabilities": stored.tolist()}
        rows, columns, entries = stored.indptr.tolist(), stored.indices.tolist(), stored.data.tolist()
        return {"states": list(self.states), "rows": rows, "columns": columns, "probabilities": entries}

    def dense(self) -> FloatArray:
        """The probabilities as an (n, n) array, whether stored dense or sparse."""
        stored = self.probabilities
        return stored.toarray() if isinstance(stored, scipy.sparse.csr_array) else stored

    def reversed(self, initial: ArrayLike) -> TransitionMatrix:
        """The matrix of the same chain seen in the other direction of time, by Bayes' rule.

        ``reversed[y, x] = P[x, y] initial[x] / sum_u P[u, y] initial[u]``: with P forward and `initial` the
        distribution at time t, it is the backward matrix ``Pr(l[t] = x | l[t+1] = y)`` (the paper's Section III-A).

        Parameters
        ----------
        initial : array_like, shape (n,)
            Distribution of the row variable; non-negative, summing to 1 within `ROW_SUM_TOLERANCE`.

        Raises
        ------
        MatrixError
            `initial` is not a distribution, or a state cannot be reached from it: it then has no reversed row,
            and none is invented.
        """
        weights = distribution(initial, self.states)
        joint = (
            scipy.sparse.diags_array(weights) @ self.probabilities
            if self.is_sparse
            else weights[:, None] * self.dense()
        )
        reached = np.asarray(joint.sum(axis=0)).ravel()
        # Probability below which a state counts as not reached: the products of Bayes' rule would lose their digits
        unreached = np.flatnonzero(~(reached >= 1e-280))
        if unreached.size:
            raise MatrixError(
                f"{listed([self.states[k] for k in unreached])} cannot be reached from the given distribution, so "
                "Bayes' rule gives no row for it; "
                "use an initial distribution and a matrix that reach every state (a prior does), or drop the state"
            )
        if self.is_sparse:
            turned = scipy.sparse.csr_array(joint.T)
            turned.data /= np.repeat(reached, np.diff(turned.indptr))
            return TransitionMatrix(turned, self.states)
        return TransitionMatrix(joint.T / reached[:, None], self.states)

    def stationary_distribution(self) -> FloatArray:
        """The unique pi, shape (n,), with ``pi P = pi``; accurate to rounding in every entry down to 1e-300.

        Grassmann, Taksar and Heyman's elimination on the chain's one closed class: no subtraction, so nothing cancels.
        States outside the class get 0. Works on a dense copy, in O(n^3).

        Raises
        ------
        MatrixError
            The chain has several closed classes, hence no unique stationary distribution; the message names one state
            of each.
        """
        label, closed = closed_classes(self.probabilities)
        if len(closed) != 1:
            members = [self.states[int(np.flatnonzero(label == c)[0])] for c in closed]
            raise MatrixError(
                f"no unique stationary distribution: the chain has {len(closed)} closed classes, one around each of "
                f"{listed(members)}; give the initial distribution yourself"
            )
        inside = np.flatnonzero(label == closed[0])
        pi = np.zeros(self.n_states)
        pi[inside] = _gth(self.dense()[np.ix_(inside, inside)])
        return pi

    def leakage_profile(self) -> LeakageProfile:
        """Return what one step through this matrix leaks at every level, exactly; computed once, then kept.

        See Also
        --------
        temporaldp.kernels.LeakageProfile
        """
        if self._profile is None:
            compute_missing_profiles([self])
        assert self._profile is not None
        return self._profile

    @property
    def is_sparse(self) -> bool:
        """Whether the probabilities are stored as a ``scipy.sparse.csr_array``."""
        return isinstance(self.probabilities, scipy.sparse.csr_array)

    def reordered(self, states: Iterable[object]) -> TransitionMatrix:
        """The same matrix with its states in the given order, which must name the same states."""
        names = state_names(states)
        order = positions(self.states, names, what="the matrix")
        return self if names == self.states else TransitionMatrix(self.probabilities[order][:, order], names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TransitionMatrix):
            return NotImplemented
        if not (self.is_sparse or other.is_sparse):
            return self.states == other.states and np.array_equal(self.probabilities, other.probabilities)
        both = [scipy.sparse.csr_array(matrix.probabilities) for matrix in (self, other)]
        parts = zip(*((m.data, m.indices, m.indptr) for m in both), strict=True)
        return self.states == other.states and all(np.array_equal(*pair) for pair in parts)

    def __hash__(self) -> int:
        return hash(self.states)

    def __repr__(self) -> str:
        kind = "sparse, " if self.is_sparse else ""
        return f"TransitionMatrix({kind}{self.n_states} states: {listed(self.states, 4)})"

    def plot(self, *, backward: bool = False, ax: Axes | None = None) -> Any:
        """Draw the matrix as a greyscale image, with its entries if they fit (requires Matplotlib).

        Parameters
        ----------
        backward : bool
            Whether the columns are the states one step before, rather than one step later.
        ax : matplotlib.axes.Axes, optional
            Where to draw. Default: a new figure.

        Returns
        -------
        matplotlib.figure.Figure or matplotlib.axes.Axes
            A new figure, or `ax`.
        """
        return draw(self, ax=ax, backward=backward)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        corner = self.probabilities[:ROWS_SHOWN, :ROWS_SHOWN]
        values = corner if isinstance(corner, np.ndarray) else corner.toarray()
        return grid(f"TransitionMatrix, {self.n_states} values: from a row to a column", self.states, values)


def compute_missing_profiles(matrices: Iterable[object]) -> None:
    """Compute the leakage profiles of those transition matrices that have none yet, small ones together."""
    missing = [one for one in matrices if isinstance(one, TransitionMatrix) and one._profile is None]
    found = compute_profiles([one.probabilities for one in missing], [one.states for one in missing])
    for one, profile in zip(missing, found, strict=True):
        assign(one, _profile=profile)


def closed_classes(matrix: FloatArray | scipy.sparse.csr_array) -> tuple[IntArray, IntArray]:
    """The number of each state's class of states that reach one another, and the classes that no transition leaves."""
    graph = scipy.sparse.csr_array(matrix)
    n_classes, label = scipy.sparse.csgraph.connected_components(graph, directed=True, connection="strong")
    rows, columns = graph.nonzero()
    return label, np.setdiff1d(np.arange(n_classes), label[rows[label[rows] != label[columns]]])


def in_proportion(weights: FloatArray, states: tuple[str, ...]) -> TransitionMatrix:
    """Return the matrix whose rows are in proportion to weights; one that is too small for a probability counts as 0."""
    rows = np.where(weights < SMALLEST_PROBABILITY, 0.0, weights)
    return TransitionMatrix(rows / rows.sum(axis=1, keepdims=True), states)


def distribution(weights: ArrayLike, states: tuple[str, ...]) -> FloatArray:
    """`weights` as a checked probability vector over `states`."""
    vector, names = np.array(weights, dtype=np.float64), row_names(weights)
    if names is not None:
        vector = vector[positions(names, states, what="the distribution")]
    if vector.shape != (len(states),):
        raise MatrixError(f"expected {len(states)} probabilities, one per state, got an array of shape {vector.shape}")
    if not np.isfinite(vector).all() or (vector < 0).any():
        bad = int(np.flatnonzero(~(np.isfinite(vector) & (vector >= 0)))[0])
        raise MatrixError(f"expected finite, non-negative probabilities, got {vector[bad]} for state {states[bad]!r}")
    if abs(vector.sum() - 1.0) > ROW_SUM_TOLERANCE:
        raise MatrixError(f"expected probabilities that sum to 1 within {ROW_SUM_TOLERANCE}, got {vector.sum():.17g}")
    return vector


def checked_square(entries: Any, what: str = "matrix") -> FloatArray | scipy.sparse.csr_array:
    """A private, read-only float64 copy, dense or CSR."""
    if np.ma.is_masked(entries):
        raise MatrixError(f"expected a {what} without masked entries")
    try:
        given = entries if scipy.sparse.issparse(entries) else np.asarray(entries)
    except ValueError as error:
        raise MatrixError(f"expected a {what}, a square array of numbers, got something else: {error}") from None
    if given.dtype.kind not in "biuf":
        raise MatrixError(f"expected a {what} of real numbers, got entries of type {given.dtype}")
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise MatrixError(
            f"expected a square {what}, got shape {given.shape}"
            + "; Adversary takes one matrix per transition, shape (T - 1, n, n)" * (given.ndim == 3)
        )
    if given.shape[0] < 2:
        raise MatrixError(f"expected at least 2 states, got {given.shape[0]}: a single state reveals nothing")
    if not scipy.sparse.issparse(given):
        return read_only(given)
    compressed = scipy.sparse.csr_array(given, dtype=np.float64, copy=True)
    compressed.sum_duplicates()
    compressed.eliminate_zeros()
    return locked(compressed)


def _check_entries(matrix: FloatArray | scipy.sparse.csr_array, names: tuple[str, ...]) -> None:
    values = matrix.data if isinstance(matrix, scipy.sparse.csr_array) else matrix.ravel()
    bad = np.flatnonzero(~(np.isfinite(values) & ((values == 0.0) | (values >= SMALLEST_PROBABILITY))))
    if bad.size:
        if isinstance(matrix, scipy.sparse.csr_array):
            i, j = (int(part[bad[0]]) for part in matrix.tocoo().coords)
        else:
            i, j = divmod(int(bad[0]), matrix.shape[1])
        raise MatrixError(
            f"expected finite probabilities, 0 or at least {SMALLEST_PROBABILITY:.3g}, got {values[bad[0]]} in row "
            f"{names[i]!r} (row {i}), column {names[j]!r} (column {j}); {bad.size} such entries in all"
        )


def _precision(entries: Any) -> float:
    """Unit in the last place of entries next to 1; 0 for those that are no floating-point numbers."""
    kind = getattr(entries, "dtype", None)
    if kind is None and hasattr(entries, "to_numpy"):
        kind = entries.to_numpy().dtype
    return float(np.finfo(kind).eps) if kind is not None and kind.kind == "f" else 0.0


def _normalized(
    matrix: FloatArray | scipy.sparse.csr_array, names: tuple[str, ...]
) -> FloatArray | scipy.sparse.csr_array:
    """Rows divided by their sums."""
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    bad = np.flatnonzero(~(np.isfinite(sums) & (sums > 0.0)))
    if bad.size:
        raise MatrixError(
            f"expected rows with a sum above 0 to divide by, but row {names[bad[0]]!r} (row {bad[0]}) sums to "
            f"{sums[bad[0]]:g}; a row without observations needs a prior"
        )
    if isinstance(matrix, scipy.sparse.csr_array):
        return locked(scipy.sparse.csr_array(scipy.sparse.diags_array(1.0 / sums) @ matrix))
    return read_only(matrix / sums[:, None])


def _check_row_sums(matrix: FloatArray | scipy.sparse.csr_array, names: tuple[str, ...], tolerance: float) -> None:
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    bad = np.flatnonzero(~(np.abs(sums - 1.0) <= tolerance))
    if bad.size:
        i = int(bad[0])
        advice = (
            "a row without observations needs a prior"
            if sums[i] == 0.0
            else "write the probabilities with all their digits, or divide each row by its sum (normalize=True)"
        )
        raise MatrixError(
            f"expected every row to sum to 1 within {tolerance:.3g}, but row {names[i]!r} (row {i}) sums to "
            f"{sums[i]:.17g}; {bad.size} such rows in all; {advice}"
        )


def _gth(chain: FloatArray) -> FloatArray:
    """Stationary distribution of an irreducible chain (Grassmann, Taksar, Heyman, Operations Research 33(5), 1985)."""
    work = chain.copy()
    n = work.shape[0]
    for k in range(n - 1, 0, -1):
        leaving = work[k, :k].sum()
        if not leaving >= SMALLEST_PROBABILITY:
            raise MatrixError(
                "the stationary distribution leaves the range of doubles: some states are all but never left"
            )
        work[:k, k] /= leaving
        work[:k, :k] += np.outer(work[:k, k], work[k, :k])
    pi = np.ones(n)
    for k in range(1, n):
        pi[k] = pi[:k] @ work[:k, k]
        pi[: k + 1] /= max(1.0, pi[k])
    return np.asarray(pi / pi.sum(), dtype=np.float64)
