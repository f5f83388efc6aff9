"""Exact leakage of mechanisms with finitely many outputs, by the likelihoods of their outputs.

The likelihoods that sequences of outputs have, given the state of a step, are vectors. Leakage about two states is the largest
ratio of two of their entries; a transition followed by another output maps vectors linearly, and the ratio is largest at an
extreme vector of their cone. So each step keeps the extreme ones alone. Given the state, past, own output and future are
independent, so that their leakage about a pair adds up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import numpy as np

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.progress import progressed
from temporaldp.base.values import SAME_SIDES, ULP, FloatArray, IntArray, compared_by_value
from temporaldp.core.accounting.protocol import (
    Accounting,
    Attained,
    Direction,
    Evidence,
    Filter,
    Leakage,
    Limits,
    Odometer,
    Side,
    constant_matrix,
)
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.adversary import exactly_known
from temporaldp.core.mechanisms.output_table import OutputTable, RandomizedResponse, require_states
from temporaldp.core.mechanisms.protocol import LARGEST_LOG

MOST_HULL_STATES = 5
"""States up to which the hull of vectors is computed; its time grows with the power of half as many."""

ROUNDED_LOG = 256.0 * ULP
"""In nats: what rounding of probabilities, and of their logarithms, may change a log ratio."""

Outputs = tuple[FloatArray | None, ...]
"""The likelihoods of each step's outputs, shape (m, n), a row for each output; None for a step without a release."""


@dataclass(frozen=True, slots=True, eq=False)
class OutputArrivals:
    """Leakage about each ordered pair of states from one direction, shape (T, n, n), in nats; and what it may lack, (T,)."""

    attained: FloatArray
    lacking: FloatArray


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputLeakage(Evidence):
    """Leakage about each pair of states by the outputs before, at and after each step, shape (T, n, n), and its lower side."""

    states: tuple[str, ...]
    backward: FloatArray
    forward: FloatArray
    temporal: FloatArray
    attained: Attained = field()  # without it, the property of the base class would be taken for a default

    compares_pairs = True

    def __len__(self) -> int:
        return len(self.temporal)

    def metric(self, step: int, direction: Direction = "temporal") -> FloatArray:
        """Leakage of every ordered pair of states at a step, shape (n, n)."""
        return np.asarray(getattr(self, direction)[self.checked_step(step, direction)])


class FiniteOutputs(Accounting[Outputs, OutputArrivals]):
    """The leakage of mechanisms with finitely many outputs, drawn independently at every step; `Exact()` stands for it there.

    `Exact()` bounds every mechanism with an epsilon; this is the leakage of these mechanisms themselves. Exact but for rounding
    with two states, and with up to five as long as few sequences of outputs are extreme; else both sides are reported.
    """

    name = "outputs"
    is_exact = True
    sentence = (
        "Leakage is that of these mechanisms, by the likelihoods of all sequences of their outputs, for outputs that are drawn "
        "independently at every step."
    )

    @property
    def for_epsilons(self) -> Accounting[Any, Any]:
        """`Exact`, which takes epsilons over any number of states."""
        from temporaldp.core.accounting.exact.method import EXACT

        return EXACT

    def convert(self, releases: Sequence[Any], users: Sequence[Adversary]) -> Outputs:
        """Likelihoods of each step's outputs."""
        known = [one for one in releases if not is_none(one)]
        if not known or not all(map(is_finite, known)):
            raise InputError(
                "expected tables of outputs that every state can have (OutputTable, RandomizedResponse), got others: "
                "take Exact()"
            )
        tables = {id(one): OutputTable(one.probabilities) for one in known}
        require_states([tuple(tables.values())], users[0].n_states)
        return tuple(None if is_none(one) else likelihoods(one) for one in releases)

    def of_epsilons(self, epsilons: FloatArray) -> Outputs:
        """Randomised response between two states has the leakage of every mechanism with its epsilon."""
        return tuple(likelihoods(RandomizedResponse(one)) if one else None for one in epsilons.tolist())

    def release_epsilons(self, releases: Outputs) -> FloatArray:
        """The largest log ratio of two likelihoods of one output."""
        found = np.array([0.0 if one is None else float(_ratios(one).max()) + ROUNDED_LOG for one in releases])
        return np.asarray(found * (1.0 + 8.0 * ULP))

    def arrivals(self, user: Adversary, side: Side, releases: Outputs) -> OutputArrivals:
        """Incoming leakage of each step."""
        correlation, n_steps, n = getattr(user, side), len(releases), _n_states(releases)
        attained, lacking, lost = np.zeros((n_steps, n, n)), np.zeros(n_steps), 0.0
        if not correlation:
            return OutputArrivals(attained, lacking)
        order = list(range(n_steps) if side == "backward" else reversed(range(n_steps)))
        vectors = np.ones((1, n))
        for done, (before, now) in enumerate(pairwise(order)):
            progressed("leakage of every step", done / n_steps)
            matrix = exactly_known(correlation.at(min(before, now)))
            vectors, more = _arriving(vectors, releases[before], matrix.dense())
            lost += more
            attained[now], lacking[now] = _ratios(vectors), lost
        return OutputArrivals(attained, lacking)

    def leakage(self, user: Adversary, past: OutputArrivals, releases: Outputs, future: OutputArrivals) -> Leakage:
        """The largest sum over pairs of past, own output and future; no more than `Exact` has for their epsilons."""
        from temporaldp.core.accounting.exact.method import EXACT

        (bound,) = EXACT.series([user], EXACT.of_epsilons(self.release_epsilons(releases)))
        return _leakage(user, past, releases, future, np.array([getattr(bound, name) for name in Attained._fields]))

    def supremum_arrivals(self, user: Adversary, side: Side, release: Outputs) -> OutputArrivals:
        """Incoming leakage over an infinite horizon: of so many steps, and at most of these after anything that precedes."""
        from temporaldp.core.accounting.exact.method import EXACT

        matrix, n = constant_matrix(user, side), _n_states(release)
        if matrix is None:
            return OutputArrivals(np.zeros((1, n, n)), np.zeros(1))
        entries = exactly_known(matrix).dense()
        most = EXACT.limits([Adversary(matrix)], EXACT.of_epsilons(self.release_epsilons(release))).backward
        found, lost, lacking = np.zeros((n, n)), 0.0, math.inf
        if n <= 8 and most <= LARGEST_LOG:  # the number of corners doubles with each state
            inner, outer = np.ones((1, n)), np.exp(most * np.array(list(product((0.0, 1.0), repeat=n))))
            for _ in range(500):
                inner, more = _arriving(inner, release[0], entries)
                outer, too = _arriving(outer, release[0], entries)
                found, lost = np.maximum(found, _ratios(inner)), lost + more + too
                lacking = float((_ratios(outer) - found).max()) + lost
                if lacking <= 10.0 * lost:
                    break
        return OutputArrivals(found[None], np.array([lacking]))

    def supremum_leakage(
        self, user: Adversary, past: OutputArrivals, release: Outputs, future: OutputArrivals
    ) -> Limits:
        """The largest sums over pairs; no more than `Exact` has for their epsilon."""
        from temporaldp.core.accounting.exact.method import EXACT

        bound = EXACT.limits([user], EXACT.of_epsilons(self.release_epsilons(release)))
        ceilings = np.array(np.array([getattr(bound, name) for name in Attained._fields]))
        found = _leakage(user, past, release, future, ceilings[:, None])
        assert found.evidence is not None
        low = np.array(found.evidence.attained)[:, 0]
        backward, forward, temporal = (float(one[0]) for one in (found.backward, found.forward, found.temporal))
        certified = bool((low >= (1.0 - SAME_SIDES) * np.array([backward, forward, temporal])).all())
        return Limits(backward, forward, temporal, certified=certified)

    def odometer(self, user: Adversary) -> Odometer:
        """None: an accountant counts by epsilons."""
        raise BudgetError("an accountant counts any mechanism by its epsilon: use Exact()")

    def filters(
        self, users: Sequence[Adversary], alpha: float, reserve: float | None, horizon: int | None
    ) -> tuple[Sequence[Filter], float]:
        """None: an accountant counts by epsilons."""
        raise BudgetError("a level is enforced by the epsilon of any mechanism: use Exact()")


def is_none(release: Any) -> bool:
    """Whether a step has no release: None, or a budget of 0."""
    is_number = isinstance(release, int | float | np.number) and not isinstance(release, bool)
    return release is None or (is_number and release == 0)


def is_finite(release: Any) -> bool:
    """Whether a release is a mechanism with finitely many outputs and a pure epsilon."""
    if not isinstance(release, OutputTable | RandomizedResponse):
        return False
    # Ratios beyond the range of doubles count by their epsilon
    return math.isfinite(release.pure_epsilon) and bool(likelihoods(release).all())


def likelihoods(release: OutputTable | RandomizedResponse) -> FloatArray:
    """The likelihood of each possible output given each state, shape (m, n)."""
    found = release.probabilities.T
    return np.asarray(found[found.any(axis=1)])


def _leakage(
    user: Adversary,
    past: OutputArrivals,
    releases: Outputs,
    future: OutputArrivals,
    ceilings: Sequence[FloatArray] | FloatArray,
) -> Leakage:
    """The largest sums over pairs of past, own output and future, at most the ceilings of each step and direction."""
    n = _n_states(releases)
    own = np.array([np.zeros((n, n)) if one is None else _ratios(one) for one in releases])
    nothing = OutputArrivals(np.zeros_like(own), np.zeros(len(own)))
    least, most = [], []
    for (first, second), ceiling in zip(((past, nothing), (nothing, future), (past, future)), ceilings, strict=True):
        low = own + first.attained + second.attained
        high = (low + (first.lacking + second.lacking)[:, None, None] + ROUNDED_LOG) * (1.0 + 64.0 * ULP)
        least.append(np.maximum(low.max(axis=(1, 2)) * (1.0 - 64.0 * ULP) - ROUNDED_LOG, 0.0))
        most.append(np.minimum(high, ceiling[:, None, None]))
    states = user.states or tuple(map(str, range(n)))
    backward, forward, temporal = (one.max(axis=(1, 2)) for one in most)
    evidence = OutputLeakage(states, most[0], most[1], most[2], Attained(least[0], least[1], least[2]))
    return Leakage(backward, forward, temporal, evidence)


def _n_states(releases: Outputs) -> int:
    return next(len(one[0]) for one in releases if one is not None)


def _ratios(vectors: FloatArray) -> FloatArray:
    """The largest log ratio of two entries over all vectors, for each ordered pair, shape (n, n)."""
    logs = np.log(vectors)
    return np.asarray((logs[:, :, None] - logs[:, None, :]).max(axis=0))


def _arriving(vectors: FloatArray, outputs: FloatArray | None, entries: FloatArray) -> tuple[FloatArray, float]:
    """Vectors given the state at the other end of a transition, and how much leakage those that were left out may add."""
    if outputs is not None:
        vectors = (outputs[:, None, :] * vectors[None, :, :]).reshape(-1, vectors.shape[1])
    vectors = vectors / vectors.sum(axis=1, keepdims=True)
    kept, lost = _extreme(vectors)
    return vectors[kept] @ entries.T, lost + 16.0 * ULP * vectors.shape[1]


def _extreme(vectors: FloatArray) -> tuple[IntArray, float]:
    """Positions of vectors, each of sum 1, whose cone has all others but for a distance in nats, and this distance."""
    from scipy.spatial import ConvexHull, QhullError

    if vectors.shape[1] == 2:
        return np.array([vectors[:, 0].argmin(), vectors[:, 0].argmax()]), 0.0
    _, kept = np.unique(vectors.round(15), axis=0, return_index=True)
    lost = 4.0 * 1e-15 / float(vectors.min())
    if vectors.shape[1] <= MOST_HULL_STATES and len(kept) > 4 * vectors.shape[1]:
        with suppress(QhullError, np.linalg.LinAlgError):  # they lie in a plane: all are kept
            hull = ConvexHull(vectors[kept, :-1])
            apart = _from_hull(hull, vectors[kept])
            apart[hull.vertices] = np.inf
            # The hull of vectors that are nearly in a plane lacks some; in nats, what is left out at most
            inside = apart <= 1e-11
            kept, lost = kept[~inside], lost + float(apart[inside].max(initial=0.0))
    logs, width = np.log(vectors), 1e-12
    # Beyond so many vectors, those that are nearly equal are merged, and both sides of the leakage differ
    while len(kept) > (2000 if vectors.shape[1] <= MOST_HULL_STATES else 200):
        _, first = np.unique(np.floor(logs[kept] / width), axis=0, return_index=True)
        if len(first) < len(kept):
            kept, lost = kept[first], lost + 2.0 * width
        width *= 4.0
    return kept, lost


def _from_hull(hull: Any, vectors: FloatArray) -> FloatArray:
    """Largest log ratio of two quotients of entries of each vector and one in the hull, in nats: a bound of its distance.

    The hull itself is not trusted: each vector is compared with a mixture of the centre and the corners of a facet.
    """
    corners = vectors[hull.vertices, :-1]
    centre, found = corners.mean(axis=0), []
    normals, room = hull.equations[:, :-1], -(hull.equations[:, :-1] @ centre + hull.equations[:, -1])
    for some in np.array_split(vectors, 1 + len(vectors) * len(room) // 4_000_000):
        away = some[:, :-1] - centre
        facets = (away @ normals.T / room).argmax(axis=1)
        edges = vectors[hull.simplices[facets], :-1] - centre
        shares = np.maximum(np.linalg.solve(edges.transpose(0, 2, 1), away[:, :, None])[:, :, 0], 0.0)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
        mixed = centre + (shares[:, :, None] * edges).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = np.log(some) - np.log(np.column_stack([mixed, 1.0 - mixed.sum(axis=1)]))
        found.append(np.nan_to_num(np.ptp(logs, axis=1), nan=np.inf, posinf=np.inf))
    return np.concatenate(found)
