"""The exact way of accounting: what the definitions say, between what an observation attains and what is proved of all.

A release is a box of likelihoods (`Releases`); plain differential privacy is the box from 0 to epsilon for every value. What
arrives is kept as rollouts (docs/theory.md, section 10), of which few are ever made. The paper's bound, in microseconds, says
beforehand what is never exceeded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting.exact.arrivals import Releases, arrivals, both_ways
from temporaldp.accounting.exact.evidence import Attained, ExactLeakage, likely_pairs, ordered_matrices, rows_of
from temporaldp.accounting.exact.odometer import CountedExactly, ExactOdometer
from temporaldp.accounting.exact.online import ExactStanding
from temporaldp.accounting.exact.pair_bounds import Direction
from temporaldp.accounting.exact.pair_search import RISE, Maxima
from temporaldp.accounting.exact.population import MemberLeakage, exact_population, worth_the_kernel
from temporaldp.accounting.exact.sides import SLACK
from temporaldp.accounting.exact.supremum import Limit, both_limits, exact_limit, leakage_if_held, never_above
from temporaldp.accounting.monotone_search import CLOSE as CLOSE_TO_LARGEST
from temporaldp.accounting.monotone_search import largest_lasting
from temporaldp.accounting.paper.method import PaperBound
from temporaldp.accounting.protocol import (
    DIRECTIONS,
    SIDES,
    Accounting,
    Filter,
    Leakage,
    Limits,
    Odometer,
    Side,
    budgets,
    constant_known_matrix,
    largest_limits,
)
from temporaldp.correlation import Adversary, TransitionMatrix
from temporaldp.correlation.adversary import exactly_known
from temporaldp.correlation.transition import know_profiles
from temporaldp.errors import InputError
from temporaldp.kernels.batch import BATCHED
from temporaldp.kernels.kernels import SEARCHED, chosen_kernels, repeated
from temporaldp.kernels.recurrence import has_supremum
from temporaldp.mechanisms.distances import box_of, checked_distances
from temporaldp.mechanisms.likelihood_box import intervals
from temporaldp.progress import part
from temporaldp.values import ROUNDOFF as U
from temporaldp.values import compared_by_value

FloatArray = NDArray[np.float64]

SPARED = 3e-11
"""Share of alpha that is not spent for ever: the supremum and a long series are proved by rollouts of their own, 1e-12 apart,
and an accountant admits only what leaves it 1e-11, so that it can leave steps behind."""

PAPER = PaperBound()
"""Its bound is never exceeded."""

CLOSE = 1e-9
"""Relative distance from what some horizon attains up to which an exact supremum counts as certified."""

GIVEN_UP, NOT_CLOSE = 1e-9, 1e-12
"""Distance of both sides, as a share of a user's largest leakage, from which on the kernel of populations gave a pair up;
and for a user alone, whom it costs little to ask about again."""

FIRST_USERS, PAIRS_AT_ONCE = 4, 1 << 19
"""Users whose suprema are computed before others are compared with them; and pairs of all users that are compared at once."""


@dataclass(frozen=True, slots=True, eq=False)
class ExactArrivals:
    """Rollouts of one direction and the largest of what arrives with the step's own part, in the direction's order of steps."""

    direction: Direction
    maxima: Maxima


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class ExactLimits:
    """The lower sides of exact suprema, and who they are about: for a single user.

    Parameters
    ----------
    backward, forward, temporal : float
        What some horizon comes as close to as one likes; equal to the supremum but for 1e-9 (relative), unless that is inf.
    pair : tuple of two str
        The two values that are told apart best by past and future together; by the one of them that has no supremum, if any.
    """

    backward: float
    forward: float
    temporal: float
    pair: tuple[str, str]


class Exact(Accounting[Releases, ExactArrivals | Limit | None]):
    """The supremum of the definitions over every mechanism with the given guarantees: the default accounting method.

    Each number is the upper side of a certified pair of states, and `LeakageSeries.attained` has the lower side, which an
    observation attains (the sign rule; docs/theory.md, section 10). For a histogram with Laplace noise it is the leakage of
    that release itself. Releases are numbers (epsilons in nats), `LikelihoodBox`, or None for a step that publishes nothing.
    For interval matrices it stands for `IntervalBound`, an upper bound over all matrices of the set.

    Parameters
    ----------
    distances : array_like, shape (n, n), optional
        Of metric privacy, where they are those of a box; `MetricPrivacy` chooses this method then.
    """

    name = "exact"
    is_exact = True
    takes_sets = True

    def __init__(self, distances: ArrayLike | None = None) -> None:
        self._unit = Releases.of_epsilons(np.ones(1))
        if distances is not None:
            self.distances = checked_distances(distances, None)
            box = box_of(self.distances)
            if box is None:
                raise InputError(
                    "expected distances of a box of likelihoods, high[i] - low[j], whose leakage is exact; use "
                    "MetricPrivacy(distances), an upper bound for any distances"
                )
            self._unit = Releases(box.high[None], box.low[None])

    @property
    def sentence(self) -> str:
        """How leakage was computed."""
        return "Leakage is exact: the largest likelihood ratio of any observation, over every mechanism with these budgets."

    def document(self) -> dict[str, Any]:
        """The name, and the distances if there are some."""
        return {"method": self.name} | ({} if self.distances is None else {"distances": self.distances.tolist()})

    def applied(
        self, users: Sequence[Adversary], releases: Sequence[Any] = (), *, online: bool = False
    ) -> Accounting[Any, Any]:
        """`IntervalBound` for interval matrices; with distances, as `MetricPrivacy` with them."""
        from temporaldp.accounting.interval.method import IntervalBound
        from temporaldp.accounting.metric.method import MetricPrivacy

        if self.distances is not None:
            return MetricPrivacy(self.distances).applied(users, releases, online=online)
        return IntervalBound() if users[0].is_uncertain else self

    @property
    def for_epsilons(self) -> Exact:
        """Without distances."""
        return Exact()

    def of(self, releases: Sequence[Any], users: Sequence[Adversary]) -> Releases:
        """A box of likelihoods for each step."""
        boxes = intervals(releases, users[0].n_states, self.distances)
        return self.of_epsilons(budgets(releases)) if boxes is None else Releases(*boxes)

    def of_epsilons(self, epsilons: FloatArray) -> Releases:
        """Plain differential privacy, or multiples of the box of a metric."""
        return Releases(epsilons[:, None] * self._unit.lift, epsilons[:, None] * self._unit.drop)

    def promised(self, releases: Releases) -> FloatArray:
        """The largest log ratio of each box."""
        return releases.width

    def arrivals(self, user: Adversary, side: Side, releases: Releases) -> ExactArrivals | None:
        """Rollouts, and the pair of values that each step's tell apart best."""
        correlation = getattr(user, side)
        if not correlation:
            return None
        ceiling = PAPER.arrivals(user, side, releases.width) + releases.width
        narrowed, _ = releases.narrowed
        turned = side == "forward"
        if turned:
            narrowed, ceiling = narrowed.reversed, ceiling[::-1]
        matrices, into = ordered_matrices(correlation, len(releases), turned=turned)
        return ExactArrivals(
            *arrivals(matrices, into, narrowed, ceiling, likely_pairs(exactly_known(correlation.at(0))))
        )

    def leakage(
        self,
        user: Adversary,
        past: ExactArrivals | Limit | None,
        releases: Releases,
        future: ExactArrivals | Limit | None,
    ) -> Leakage:
        """The largest over pairs of values of what arrives from both directions and the step's own part."""
        assert not isinstance(past, Limit)
        assert not isinstance(future, Limit)
        (paper,) = PAPER.series([user], releases.width)
        if user.states is None:  # nothing is known of how values follow one another: each release stands alone
            return paper
        n_steps = len(releases)
        roundings = 1.0 + 16.0 * U * (n_steps + 2)  # of the paper's bound: a dozen a step
        narrowed, beyond = releases.narrowed
        alone = Maxima.empty(n_steps)
        alone.attained[:], alone.proved[:] = narrowed.attained, narrowed.width
        alone.i[:], alone.j[:] = narrowed.widest
        before = past.maxima if past else alone
        after = future.maxima.reversed() if future else alone
        both = before if past else after
        if past and future:
            ceiling = paper.temporal * roundings
            both = both_ways(past.direction, before, future.direction, future.maxima, narrowed, ceiling)
        if beyond:
            for one, way in zip((before, after, both), DIRECTIONS, strict=True):
                one.proved[:] = np.minimum(one.proved + beyond, getattr(paper, way) * roundings)
        evidence = ExactLeakage(
            user.states,
            narrowed,
            past.direction if past else None,
            future.direction.reversed() if future else None,
            Attained(before.attained, after.attained, both.attained),
            {"backward": before.pair, "forward": after.pair, "temporal": both.pair},
            beyond,
        )
        return Leakage(before.proved, after.proved, both.proved, evidence)

    def series(self, users: Sequence[Adversary], releases: Releases) -> list[Leakage]:
        """User by user, or all at once where machine code for many users is worth loading."""
        epsilons = releases.width
        if not (releases.is_plain and worth_the_kernel(users, epsilons)):
            return super().series(users, releases)
        found = exact_population(users, epsilons)
        too_far = GIVEN_UP if len(users) > 1 else NOT_CLOSE
        members = []
        for user, row in zip(users, found.which.tolist(), strict=True):
            low, high = found.attained[row], found.proved[row]
            if user.states is None or (high - low).max() > too_far * high.max():
                members += super().series([user], releases)
            else:
                past, future, both = high
                members.append(Leakage(past, future, both, MemberLeakage(user, found, row)))
        return members

    def lasting_arrivals(self, user: Adversary, side: Side, release: Releases) -> Limit | None:
        """The supremum of what arrives and the step's own part."""
        matrix = constant_known_matrix(user, side)
        if matrix is None:
            return None
        if release.is_plain and not has_supremum(matrix.probabilities, float(release.width[0])):
            i, j = likely_pairs(matrix)
            return Limit(math.inf, math.inf, int(i[0]), int(j[0]), None)
        ceiling = float((PAPER.lasting_arrivals(user, side, release.width) + release.width)[0])
        return exact_limit(rows_of(matrix), release, ceiling, likely_pairs(matrix))

    def lasting_leakage(
        self,
        user: Adversary,
        past: ExactArrivals | Limit | None,
        release: Releases,
        future: ExactArrivals | Limit | None,
    ) -> Limits:
        """The largest over pairs; the paper's bound where a direction grows for ever or was given up."""
        assert not isinstance(past, ExactArrivals)
        assert not isinstance(future, ExactArrivals)
        paper = PAPER.limits([user], release.width)
        if user.states is None:
            return paper
        own = float(release.width[0])
        known = [one for one in (past, future) if one is not None]
        if any(one.direction is None for one in known):
            worst = max(known, key=lambda one: (one.direction is None, one.attained))
            both = Limit(worst.attained, paper.temporal, worst.i, worst.j, None)
        else:
            both = both_limits(known[0], known[1], release) if len(known) == 2 else known[0]
        alone = Limit(float(release.attained[0]), own, 0, 1, None)
        before, after = past or alone, future or alone
        return Limits(
            before.proved,
            after.proved,
            min(both.proved, paper.temporal * (1.0 + 1e-12)),
            certified=all(
                one.attained == one.proved or one.attained >= (1.0 - CLOSE) * one.proved
                for one in (before, after, both)
            ),
            evidence=ExactLimits(
                before.attained, after.attained, both.attained, (user.states[both.i], user.states[both.j])
            ),
        )

    def limits(self, users: Sequence[Adversary], release: Releases) -> Limits:
        """The largest suprema. Few users' need to be known: others are proved not to exceed the largest found so far."""
        if len(users) == 1 or not release.is_plain:
            return super().limits(users, release)
        known = [matrix for user in users for matrix in (constant_known_matrix(user, side) for side in SIDES)]
        know_profiles([matrix for matrix in known if matrix is not None])
        papers = [PAPER.limits([user], release.width) for user in users]
        above = np.array([[getattr(paper, way) for way in DIRECTIONS] for paper in papers])
        found: list[tuple[int, Limits]] = []
        largest = np.full(3, float(release.width[0]))
        waiting = np.argsort(-above[:, 2], kind="stable")
        length = FIRST_USERS
        with repeated(len(users)):
            while waiting.size:
                for k in waiting[:length].tolist():
                    if not found or (above[k] > largest).any():
                        done = 1.0 - len(waiting) / len(users)
                        with part(done, done + 1.0 / len(users), "leakage for ever"):
                            found.append((k, super().limits([users[k]], release)))
                        largest = np.maximum(largest, [getattr(found[-1][1], way) for way in DIRECTIONS])
                        largest[2] = largest.max()  # TPL is no less than BPL and FPL, but for the rounding of each
                waiting = waiting[length:]
                waiting = waiting[(above[waiting] > largest).any(axis=1)]
                length *= 2
                if waiting.size > length:
                    waiting = waiting[~_dominated([users[k] for k in waiting], release, largest)]
        numbers, each = zip(*found, strict=True)
        worst = largest_limits(each)
        rise = RISE if len(found) < len(users) else 1.0
        past, future, both = (float(level) * rise for level in largest)
        return Limits(past, future, both, numbers[worst.worst], worst.certified)

    def unspent(self, horizon: int) -> float:
        """As much as a filter gives away, and as much again."""
        return 2.0 * SLACK

    @repeated(SEARCHED)
    def lasting_epsilon(self, users: Sequence[Adversary], alpha: float) -> float:
        """Suppose that the level holds, and see whether rollouts that end within it prove it: one search is enough."""

        def worst(epsilon: float) -> float:
            release = self.of_epsilons(np.array([epsilon]))
            return max(self._leakage_if_held(user, release, alpha) for user in users)

        largest_distance = float(self._unit.width[0])
        known = PaperBound(self.distances).lasting_epsilon(users, alpha)
        ceiling = alpha * (1.0 - SPARED)
        found = largest_lasting(worst, alpha / largest_distance, ceiling, known=known)
        # What counts is the public number, which may differ in its last digits.
        while found > known and self.limits(users, self.of_epsilons(np.array([found]))).temporal > ceiling:
            found = max(known, found * (1.0 - CLOSE_TO_LARGEST))
        return found

    def _leakage_if_held(self, user: Adversary, release: Releases, alpha: float) -> float:
        """TPL for ever, if it is at most alpha; otherwise more than alpha."""
        matrices = [constant_known_matrix(user, side) for side in SIDES]
        if release.is_plain and any(
            matrix is not None and not has_supremum(matrix.probabilities, float(release.width[0]))
            for matrix in matrices
        ):
            return math.inf
        past, future = (_rows(matrix) for matrix in matrices)
        return leakage_if_held(past, future, release, alpha)

    def odometer(self, user: Adversary) -> Odometer:
        """By rollouts that are continued from step to step; of plain privacy only."""
        return CountedExactly(ExactOdometer.at_start(user))

    def filters(
        self, users: Sequence[Adversary], alpha: float, reserve: float | None, horizon: int | None
    ) -> tuple[Sequence[Filter], float]:
        """By the signs of rollouts; of plain privacy only."""
        kept = reserve
        if kept is None:
            kept = 0.0 if horizon is not None else self.lasting_epsilon(users, alpha)
        found = [ExactStanding.at_start(user, alpha=alpha, reserve=kept, horizon=horizon) for user in users]
        return found, min(one.reserve for one in found)


def _dominated(users: list[Adversary], release: Releases, largest: FloatArray) -> NDArray[np.bool_]:
    """Who is proved never to leak more than the largest; nobody where machine code for small matrices does not apply."""
    below = np.zeros(len(users), bool)
    sizes = {0 if user.states is None else len(user.states) for user in users}
    n = max(sizes)
    if len(sizes) > 1 or n > BATCHED or chosen_kernels(len(users) * n**3) != "numba" or release.narrowed[1] > 0.0:
        return below
    length = max(1, PAIRS_AT_ONCE // n**2)
    for first in range(0, len(users), length):
        some = users[first : first + length]
        rows = [tuple(_rows(constant_known_matrix(user, side)) for side in SIDES) for user in some]
        dense = not any(m is not None and not isinstance(m, np.ndarray) for user in rows for m in user)
        if dense and np.isfinite(largest).all():
            below[first : first + length] = never_above(rows, release, largest)
    return below


def _rows(matrix: TransitionMatrix | None) -> Any:
    """Rows that sum to 1, to rounding; None for an unknown correlation."""
    return None if matrix is None else rows_of(matrix)
