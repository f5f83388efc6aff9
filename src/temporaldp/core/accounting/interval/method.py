"""Accounting where matrices are known up to intervals: an upper bound for every matrix of the set, chosen anew at each step.

Theory, section 12. A release counts by its epsilon; incoming leakage is one number for each pair of states
(`arrivals.py`). Never above the paper's bound for the profile of intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from temporaldp.base.values import FloatArray
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.interval.arrivals import IntervalArrival, IntervalSteps, unraised_arrival
from temporaldp.core.accounting.margins import SET_MARGIN
from temporaldp.core.accounting.monotone_search import largest_in_few_tries
from temporaldp.core.accounting.pairwise import PairwiseAccounting, PairwiseLeakage
from temporaldp.core.accounting.paper.method import PAPER
from temporaldp.core.accounting.protocol import Accounting, Side, constant_matrix
from temporaldp.core.accounting.stepwise import Steps
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.adversary import Matrix
from temporaldp.core.kernels.interval import LARGEST_SPREAD
from temporaldp.core.kernels.lifting import off_diagonal

SETTLED, AHEAD = 1e-10, 100.0
"""Share of the spread that may still change where one that no step raises is looked for; and how far ahead, in changes."""

ROOM, SHARE_OF_ROOM = 2e-8, 0.1
"""Share by which a claim over an infinite horizon is above the smallest one in its spread, and of that in every pair."""

MOST_STEPS = 400
"""Steps upwards after which a supremum is reported as the paper's bound, or as infinite."""


class IntervalBound(PairwiseAccounting[IntervalArrival]):
    """An upper bound for every matrix of a set, also where it changes within the set at every step.

    `Exact()` stands for it where an adversary has an `IntervalMatrix` (Theory, section 12). Releases are numbers
    (epsilons in nats) or boxes of likelihoods, which count by their width. A matrix that is known exactly counts as an interval
    of no width.
    """

    name = "interval"
    takes_sets = True
    looser: ClassVar[Accounting[Any, Any] | None] = PAPER
    scope = "for every matrix of the set"
    remedy = "Give narrower bounds."

    supremum_factor = 1.0 + 3.0 * AHEAD * SETTLED
    """A series may stop so much above where it settles."""

    sentence = (
        "Leakage is an upper bound for every matrix within the intervals, also if it changes at every step: TPL(t) is the "
        "largest entry of b(t) + f(t), plus epsilon(t), where b(t) and f(t) bound the incoming leakage of each pair of "
        "states from earlier and from later releases."
    )

    def specialised(
        self, users: Sequence[Adversary], releases: Sequence[Any] = (), *, online: bool = False
    ) -> Accounting[Any, Any]:
        """The method itself; that of `Exact` for chains with a longer memory, where several models have both."""
        return EXACT.specialised(users, releases, online=online) if users[0].is_lifted else self

    def convert(self, releases: Sequence[Any], users: Sequence[Adversary]) -> FloatArray:
        """The epsilon of each step; the width of a box."""
        return PAPER.convert(releases, users)

    def steps(self, user: Adversary) -> IntervalSteps:
        """Return the steps of one user."""
        return IntervalSteps(user, self.widest)

    def is_still(self, steps: Steps[float, IntervalArrival], before: IntervalArrival, after: IntervalArrival) -> bool:
        """Whether one step hardly changed incoming leakage, which only approaches its limit."""
        return abs(float(after.pairs.max() - before.pairs.max())) <= SETTLED * float(after.pairs.max())

    def certified(
        self,
        steps: Steps[float, IntervalArrival],
        side: Side,
        transition: int,
        release: float,
        before: IntervalArrival,
        after: IntervalArrival,
    ) -> IntervalArrival | None:
        """A claim about this step that no further one raises: that of a spread slightly above the present one."""
        assert isinstance(steps, IntervalSteps)
        matrix, own = getattr(steps.user, side).at(transition), release * steps.distance
        if matrix is None:
            return None
        spread = after.spread_with(own)
        ahead = AHEAD * max(spread - before.spread_with(own), 0.0)
        found = unraised_arrival(matrix, own, spread + ahead + SETTLED * spread)
        return found if found is not None and steps.never_more(after, found) else None

    def evidence(
        self,
        states: tuple[str, ...],
        past: tuple[IntervalArrival, ...],
        releases: FloatArray,
        future: tuple[IntervalArrival, ...],
    ) -> PairwiseLeakage:
        """Return the incoming leakage of every pair, and the epsilon between the two states furthest apart."""
        before, after = (tuple(one.pairs for one in arrived) for arrived in (past, future))
        return PairwiseLeakage(states, self.release_epsilons(releases), off_diagonal(len(states)), before, after)

    def supremum_arrivals(self, user: Adversary, side: Side, release: FloatArray) -> tuple[IntervalArrival, ...]:
        """A claim that no step raises, close to the smallest; an empty tuple where none is found."""
        matrix, steps, epsilon = constant_matrix(user, side), self.steps(user), float(self.release_epsilons(release)[0])
        if matrix is None:
            return (steps.nothing,)
        ceiling = float(
            (PAPER.supremum_arrivals(user, side, self.release_epsilons(release)) + self.release_epsilons(release))[0]
        )
        below = _from_below(steps, side, matrix, epsilon, min(ceiling, LARGEST_SPREAD))
        found = below or unraised_arrival(matrix, epsilon, ceiling)
        if found is None:
            return ()
        for _ in range(MOST_STEPS):
            spread = found.spread_with(epsilon)
            lower = unraised_arrival(matrix, epsilon, spread)
            # Steps downwards end where they change the spread by this share
            if lower is None or lower.spread_with(epsilon) >= spread * (1.0 - 1e-7):
                break
            found = lower
        return (_with_room(matrix, epsilon, found),)

    def plan_margin(self, alpha: float, horizon: int, n_states: int) -> float:
        """Half of what a sustainable budget leaves."""
        return 0.5 * SET_MARGIN

    def sustainable_epsilon(self, users: Sequence[Adversary], alpha: float) -> float:
        """Search from the paper's budget upwards, to a thousandth: each try computes a supremum."""
        known = PAPER.sustainable_epsilon(users, alpha) / self.widest
        ceiling = alpha * (1.0 - SET_MARGIN)
        # Share of alpha below which no sustainable budget is sought
        least = max(known * (1.0 - SET_MARGIN), 1e-6 * alpha / self.widest)
        found = largest_in_few_tries(
            lambda one: self.limits(users, np.array([one])).temporal, least, alpha / self.widest, ceiling
        )
        return found or (known if known > least else 0.0)


def _with_room(matrix: Matrix, epsilon: float, found: IntervalArrival) -> IntervalArrival:
    """A claim a little above one that no step raises, and that none raises either; that one itself where it is not found.

    A filter waits until what a loud step left behind falls below it, which would not end without room.
    """
    spread = found.spread_with(epsilon) * (1.0 + ROOM)
    above = unraised_arrival(matrix, epsilon, spread)
    if above is None:
        return found
    above = IntervalArrival(above.pairs * (1.0 + SHARE_OF_ROOM * ROOM), above.steps)
    return above if above.spread_with(epsilon) <= spread else found


def _from_below(
    steps: IntervalSteps, side: Side, matrix: Matrix, epsilon: float, most: float
) -> IntervalArrival | None:
    """Steps upwards until a little more than where they lead to is no longer raised; None if that is not found."""
    spread, change, arrived, linear = epsilon, math.inf, steps.nothing, 0
    for _ in range(MOST_STEPS):
        # Steps a state, one after the other, of which each adds its whole budget: then nothing is forgotten, and no more are
        # taken
        if spread > most or linear > 10 * matrix.n_states:
            return None
        arrived = steps.arriving(side, 0, epsilon / steps.distance, arrived)
        after = arrived.spread_with(epsilon)
        rate, change = (after - spread) / change, after - spread
        linear = linear + 1 if change >= (1.0 - 1e-6) * epsilon else 0
        # Share of the spread that a step may still add where one that no step raises is looked for; and how far above the
        # guess
        if change <= 1e-3 * after and rate < 1.0:
            ahead = after + max(change, 0.0) * rate / (1.0 - rate)
            for added in (1e-6, 1e-4, 1e-2):
                found = unraised_arrival(matrix, epsilon, ahead * (1.0 + added))
                if found is not None:
                    return found
        spread = after
    return None
