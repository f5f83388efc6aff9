"""Accounting pair by pair, for mechanisms with metric privacy whose distances make no box: an upper bound.

Notation
--------
D       the distances of one step: its log ratios are at most ``e_t D(i, j)``
K       the lifting of a matrix (`temporaldp.core.kernels.lifting`)
b_t     ``K_B(b_{t-1}) + e_t D``: evidence of the releases up to t about each pair of states at t; forward with time reversed
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.errors import InputError
from temporaldp.base.names import labels_of, state_names
from temporaldp.base.values import FloatArray
from temporaldp.core.accounting.exact.arrivals import Releases
from temporaldp.core.accounting.exact.method import EXACT, Exact
from temporaldp.core.accounting.interval.method import IntervalBound
from temporaldp.core.accounting.pairwise import PairwiseAccounting, PairwiseLeakage
from temporaldp.core.accounting.protocol import SIDES, Accounting, Limits, Side
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.adversary import exactly_known
from temporaldp.core.kernels.lifting import Trees, lifted, no_trees, off_diagonal
from temporaldp.core.mechanisms.distances import box_of, checked_distances, require_no_nearer
from temporaldp.core.mechanisms.events import is_mechanism
from temporaldp.core.mechanisms.likelihood_box import LikelihoodBox


class _ByDistances(Accounting[Any, Any]):
    """What the methods have in common whose epsilons multiply distances."""

    distances: FloatArray
    looser: ClassVar[Accounting[Any, Any] | None] = None  # without distances, a bound may be lower than the leakage

    def __init__(self, distances: ArrayLike, states: Iterable[object] | None = None) -> None:
        self._given, self._states = distances, None if states is None else state_names(states)
        self.distances = checked_distances(distances, self._states)
        self.widest = float(self.distances.max())
        self.by_position = self._states is None and labels_of(distances) is None

    def specialised(
        self, users: Sequence[Adversary], releases: Sequence[Any] = (), *, online: bool = False
    ) -> Accounting[Any, Any]:
        """Reorder the distances as the users' states; exact for boxes, unless releases come one after the other.

        Raises
        ------
        InputError
            A user's chain has a longer memory.
        """
        if users[0].is_lifted:
            raise InputError(
                "expected a chain of first order under metric privacy, got one with a longer memory, among whose states "
                "there are no distances"
            )
        distances = checked_distances(self._given, users[0].states, self._states)
        # Without names of their own, states have numbers
        has_names = users[0].states != tuple(map(str, range(len(distances))))
        states = (users[0].states if has_names else None) or self._states
        if users[0].is_uncertain:
            return IntervalMetric(distances, states)
        if online and (distances + np.eye(len(distances)) != 1.0).any():
            return MetricPrivacy(distances, states)
        return MetricPrivacy(distances, states) if box_of(distances) is None else BoxMetric(distances, states)

    def document(self) -> dict[str, Any]:
        """The name, the distances, and the names of their rows, if known."""
        named = {} if self._states is None else {"states": list(self._states)}
        return {"method": self.name, "distances": self.distances.tolist()} | named

    @property
    def for_epsilons(self) -> Exact:
        """Exact leakage without distances."""
        return EXACT

    def convert(self, releases: Sequence[Any], users: Sequence[Adversary]) -> Any:
        """Releases with these epsilons; `InputError` for a box of likelihoods."""
        if any(isinstance(one, LikelihoodBox) for one in releases):
            raise InputError(
                "expected epsilons under metric privacy, got a LikelihoodBox, which describes a release completely: use "
                "Exact() or PaperBound()"
            )
        if any(is_mechanism(one) for one in releases):
            require_no_nearer(self.distances, "a mechanism")
        return super().convert(releases, users)


class MetricPrivacy(_ByDistances, PairwiseAccounting[FloatArray]):
    """Metric privacy (geo-indistinguishability): a release with budget e changes the odds of i against j by at most e D(i, j).

    One number for each pair of states is carried, an upper bound (Theory, section 8; the lifting of Chatzikokolakis et
    al., CONCUR 2014). Where the distances are those of a box of likelihoods, leakage is exact (`BoxMetric`). For
    interval matrices the largest distance counts (`IntervalMetric`).

    Parameters
    ----------
    distances : array_like, shape (n, n)
        At least 0, zeros on the diagonal; it may be asymmetric. A pandas table with the states' names is put in their order.
        Distances are replaced by the shortest paths over other states.
    states : sequence of str, optional
        Names of the rows and columns. Default: those of the table, or the order of the correlation's states.

    Raises
    ------
    InputError
        The distances are not a metric; `StateError` where they are used with other states.
    """

    name = "metric"
    takes_sets = True

    sentence = (
        "Leakage is an upper bound by the distances D between states: TPL(t) is the largest entry of b(t) + epsilon(t) D "
        "+ f(t), where b(t) = K_B(b(t-1) + epsilon(t-1) D) and f(t) = K_F(f(t+1) + epsilon(t+1) D) are the incoming leakages "
        "of each pair of states and K_B and K_F the liftings of the transition matrices."
    )

    def evidence(
        self,
        states: tuple[str, ...],
        past: tuple[FloatArray, ...],
        releases: FloatArray,
        future: tuple[FloatArray, ...],
    ) -> PairwiseLeakage:
        """Return the metrics of every step."""
        return PairwiseLeakage(states, releases, self.distances, past, future)

    def supremum_leakage(
        self, user: Adversary, past: tuple[FloatArray, ...], release: FloatArray, future: tuple[FloatArray, ...]
    ) -> Limits:
        """The largest entry of each sum, with the metrics that prove it."""
        found = super().supremum_leakage(user, past, release, future)
        certificates = tuple(
            one[0] + release[0] * self.distances if one and getattr(user, side) else None
            for side, one in zip(SIDES, (past, future), strict=True)
        )
        return found if user.states is None else replace(found, evidence=certificates)

    def steps(self, user: Adversary) -> MetricSteps:
        """Return the steps of one user."""
        return MetricSteps(user, self.distances)


class MetricSteps:
    """One user's liftings, one transition at a time; a `temporaldp.core.accounting.stepwise.Steps` of metrics, shape (n, n)."""

    def __init__(self, user: Adversary, distances: FloatArray) -> None:
        self._user, self._distances = user, distances
        self.nothing = np.zeros_like(distances)
        self._trees: dict[Side, Trees] = {}

    def arriving(self, side: Side, transition: int, release: float, before: FloatArray) -> FloatArray:
        """The lifting of the metric one step before."""
        matrix = getattr(self._user, side).at(transition)
        if matrix is None:
            return self.nothing
        known = before + release * self._distances
        trees = self._trees.setdefault(side, no_trees(len(known)))
        return lifted(exactly_known(matrix).dense(), known, matrix.leakage_profile(), trees)

    def leakage(self, past: FloatArray, release: float, future: FloatArray) -> float:
        """The largest entry of the sum."""
        return float((past + release * self._distances + future).max())

    def never_more(self, one: FloatArray, other: FloatArray) -> bool:
        """Whether no entry is larger."""
        return bool((one <= other).all())

    def raised(self, arrived: FloatArray) -> FloatArray:
        """Raise the metric by what a settled step may still change."""
        apart = off_diagonal(len(arrived))
        # Share of the largest entry, and so much for every state, by which a metric is raised: more than a lifting rounds
        return arrived + (8e-14 * float(arrived.max()) + (2.0**-50) * (len(arrived) + 8)) * apart


class IntervalMetric(_ByDistances, IntervalBound):
    """`IntervalBound` where epsilons count by the largest distance."""

    name = "interval metric"


class BoxMetric(_ByDistances, Exact):
    """`Exact` for distances that are those of a box of likelihoods, ``high[i] - low[j]``; `InputError` for others."""

    name = "exact metric"
    plans = "by scaling"

    def __init__(self, distances: ArrayLike, states: Iterable[object] | None = None) -> None:
        super().__init__(distances, states)
        box = box_of(self.distances)
        if box is None:
            raise InputError("expected distances of a box of likelihoods, high[i] - low[j], whose leakage is exact")
        self.unit = Releases(box.high[None], box.low[None])
