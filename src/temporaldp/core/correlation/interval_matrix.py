"""Sets of transition matrices between entrywise bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from temporaldp.base.errors import InputError, MatrixError
from temporaldp.base.names import listed, names_of, positions, require_unnamed, state_names
from temporaldp.base.values import FloatArray, assign, compared_by_value
from temporaldp.core.correlation.protocol import Constant
from temporaldp.core.correlation.provenance import Provenance
from temporaldp.core.correlation.transition import ROW_SUM_TOLERANCE, TransitionMatrix, checked_square, in_proportion
from temporaldp.core.kernels import LeakageProfile
from temporaldp.core.kernels.interval import interval_profile

STATED = Provenance("stated", "Stated as bounds of every transition probability.")


@compared_by_value
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class IntervalMatrix(Constant):
    """Set of all transition matrices between two bounds: a correlation that is not known exactly.

    Rows and columns are those of `TransitionMatrix`, which it replaces in an `Adversary`. Results hold for every matrix in the
    set, also if the matrix changes within the bounds from step to step.

    Parameters
    ----------
    lower, upper : array_like, shape (n, n), n >= 2
        Bounds of every entry, ``0 <= lower <= upper <= 1``, with rows of `lower` that sum to at most 1 and rows of `upper`
        that sum to at least 1, within 1e-12. Copied in.
    states : sequence of n distinct names, optional
        Defaults to ``"0", "1", ...``.
    provenance : Provenance, optional
        Source of the bounds. Default: stated.

    Raises
    ------
    MatrixError
        No distribution is within the bounds of a row; the message names the entry or the row.
    StateError
        Names are missing, repeated, or not n.

    Examples
    --------
    >>> nearly = IntervalMatrix([[0.7, 0.1], [0.0, 0.8]], [[0.9, 0.3], [0.2, 1.0]], states=["home", "work"])
    >>> nearly.central().dense()
    array([[0.8, 0.2],
           [0.1, 0.9]])
    >>> round(nearly.leakage_profile().loss(0.1), 4)
    0.0904
    """

    lower: FloatArray
    upper: FloatArray
    states: tuple[str, ...]
    provenance: Provenance = field(compare=False)
    _profile: LeakageProfile | None = field(compare=False)
    is_set = True

    def __init__(
        self,
        lower: ArrayLike,
        upper: ArrayLike,
        states: Iterable[object] | None = None,
        *,
        provenance: Provenance = STATED,
    ) -> None:
        for bound, which in ((lower, "lower"), (upper, "upper")):
            require_unnamed(bound, f"the {which} bound")
        low, high = _checked_bound(lower, "lower"), _checked_bound(upper, "upper")
        if low.shape != high.shape:
            raise MatrixError(f"expected bounds of one shape, got lower {low.shape} and upper {high.shape}")
        names = names_of(len(low), states)
        _require_distributions(low, high, names)
        assign(self, lower=low, upper=high, states=names, provenance=provenance, _profile=None)

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """The lower and the upper bound of each entry, shape (n, n) each."""
        return self.lower, self.upper

    def update_digest(self, digest: Any) -> None:
        """Add states and bounds to a hash."""
        digest.update(f"|interval {self.states!r}".encode())
        for bound in self.bounds:
            digest.update(np.ascontiguousarray(bound, dtype="<f8").tobytes())

    def document(self) -> dict[str, Any]:
        """The states, both bounds of each entry, and their provenance, as JSON values."""
        return {
            "states": list(self.states),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
            "provenance": asdict(self.provenance),
        }

    def leakage_profile(self) -> LeakageProfile:
        """Largest incoming leakage through any matrix of the set in one step, for all levels; cached.

        Up to 12 states it is exact for the set: two rows vary independently, so that some matrix attains it in one step (one
        matrix need not attain it in several steps). For more states it is an upper bound, at most its `tolerance` above the
        attained leakage.
        """
        if self._profile is None:
            assign(self, _profile=interval_profile(self.lower, self.upper, self.states))
        assert self._profile is not None
        return self._profile

    def central(self) -> TransitionMatrix:
        """The matrix of the set with all entries of a row at the same share of their intervals; without its provenance."""
        reach = self.upper - self.lower
        total = reach.sum(axis=1)
        share = np.where(total > 0.0, (1.0 - self.lower.sum(axis=1)) / np.where(total > 0.0, total, 1.0), 0.0)
        return in_proportion(self.lower + np.clip(share, 0.0, 1.0)[:, None] * reach, self.states)

    def corner(self, order: ArrayLike) -> TransitionMatrix:
        """The extreme matrix whose row k has the largest entry ``order[k, 0]``, then the largest ``order[k, 1]``, and so on.

        Parameters
        ----------
        order : int array, shape (n, n)
            A permutation of the columns for each row.
        """
        columns = np.asarray(order)
        if columns.shape != self.lower.shape or (np.sort(columns, axis=1) != np.arange(self.n_states)).any():
            raise InputError(f"expected a permutation of the {self.n_states} columns for every row")
        reach = np.take_along_axis(self.upper - self.lower, columns, axis=1)
        free = 1.0 - self.lower.sum(axis=1, keepdims=True)
        before = np.cumsum(reach, axis=1) - reach
        entries = self.lower.copy()
        np.put_along_axis(
            entries, columns, np.take_along_axis(entries, columns, 1) + np.clip(free - before, 0.0, reach), 1
        )
        return in_proportion(entries, self.states)

    def reordered(self, states: Iterable[object]) -> IntervalMatrix:
        """The set with its states in another order."""
        names = state_names(states)
        order = np.ix_(*[positions(self.states, names, what="the interval matrix")] * 2)
        lower, upper = self.lower[order], self.upper[order]
        return self if names == self.states else IntervalMatrix(lower, upper, names, provenance=self.provenance)

    def __hash__(self) -> int:
        return hash(self.states)

    def __repr__(self) -> str:
        widest = float((self.upper - self.lower).max())
        return f"IntervalMatrix({self.n_states} states: {listed(self.states, 4)}; intervals up to {widest:.3g} wide)"


def sticky(
    n_states: int | None = None, *, stays: tuple[float, float], states: Iterable[object] | None = None
) -> IntervalMatrix:
    """Set of all matrices with probabilities of staying within a range, and any distribution over the other states.

    It bounds how fast states change, which can be stated without data.

    Parameters
    ----------
    n_states : int, optional
        Needed without `states`.
    stays : tuple of two float
        The smallest and the largest probability of staying, ``0 <= first <= second <= 1``.
    states : sequence of distinct names, optional

    Raises
    ------
    InputError
        The range is not admissible, or neither the number of states nor their names are given.

    Examples
    --------
    >>> sticky(stays=(0.7, 0.95), states=["home", "work", "elsewhere"]).upper[0].round(2)
    array([0.95, 0.3 , 0.3 ])
    """
    try:
        least, most = (float(value) for value in stays)
    except (TypeError, ValueError):
        raise InputError(f"expected stays=(smallest, largest), two probabilities, got {stays!r}") from None
    if not 0.0 <= least <= most <= 1.0:
        raise InputError(
            f"expected 0 <= smallest <= largest <= 1 for the probability of staying, got {least:g} and {most:g}"
        )
    if (n_states is None) == (states is None):
        raise InputError("expected either n_states or states=")
    names = state_names(range(n_states or 0) if states is None else states)
    own = np.eye(len(names), dtype=bool)
    elsewhere = 1.0 - most if len(names) == 2 else 0.0  # of two states, the other one has all the rest
    lower, upper = np.where(own, least, elsewhere), np.where(own, most, 1.0 - least)
    stated = Provenance(
        "stated", f"Stated: the state stays the same with probability {least:g} to {most:g}, and goes anywhere else."
    )
    return IntervalMatrix(lower, upper, names, provenance=stated)


def _checked_bound(bound: Any, which: str) -> FloatArray:
    # A sparse bound would be written out: most entries of an upper bound are not 0.
    entries = checked_square(bound.toarray() if scipy.sparse.issparse(bound) else bound, f"{which} bound")
    bad = ~((entries >= 0.0) & (entries <= 1.0))
    if bad.any():
        i, j = (int(k[0]) for k in np.nonzero(bad))
        raise MatrixError(
            f"expected a {which} bound from 0 to 1 for every entry, got {entries[i, j]} in row {i}, column {j}"
        )
    return entries


def _require_distributions(low: FloatArray, high: FloatArray, names: tuple[str, ...]) -> None:
    """`MatrixError` for a row between whose bounds there is no distribution."""
    if (crossed := low > high).any():
        i, j = (int(k[0]) for k in np.nonzero(crossed))
        raise MatrixError(
            f"the bounds of row {names[i]!r}, column {names[j]!r} hold nothing: lower {low[i, j]} is above upper "
            f"{high[i, j]}; {int(crossed.sum())} such entries in all"
        )
    for bound, what, word, wrong in (
        (low, "lower", "at most", low.sum(axis=1) > 1.0 + ROW_SUM_TOLERANCE),
        (high, "upper", "at least", high.sum(axis=1) < 1.0 - ROW_SUM_TOLERANCE),
    ):
        if wrong.any():
            i = int(np.argmax(wrong))
            raise MatrixError(
                f"the bounds of row {names[i]!r} hold no distribution: expected {what} bounds that sum to {word} 1 within "
                f"{ROW_SUM_TOLERANCE}, got {bound[i].sum():.17g}; {int(wrong.sum())} such rows in all"
            )
