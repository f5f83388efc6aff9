"""The exact accounting method: the leakage of the definitions, between what an observation attains and what is proved of all.

A release is a box of likelihoods (`Releases`); plain differential privacy is the box from 0 to epsilon for every state. The
paper's bound is never exceeded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from temporaldp.base.errors import BudgetError
from temporaldp.base.progress import effort, estimated, part
from temporaldp.base.values import SAME_SIDES, FloatArray, IntArray, real_number
from temporaldp.core.accounting.exact.arrivals import (
    ExactArrivals,
    Largest,
    Releases,
    arrivals,
    both_directions,
    dense_matrices,
    population_series,
)
from temporaldp.core.accounting.exact.estimate import BUDGETS, seconds_of_series, seconds_of_supremum
from temporaldp.core.accounting.exact.evidence import ExactLeakage
from temporaldp.core.accounting.exact.filter import ExactFilter
from temporaldp.core.accounting.exact.incoming import not_admitted
from temporaldp.core.accounting.exact.odometer import ExactOdometer
from temporaldp.core.accounting.exact.outputs import FiniteOutputs, is_finite, is_none
from temporaldp.core.accounting.exact.supremum import (
    Limit,
    Repeated,
    both_limits,
    exact_limit,
    has_supremum,
)
from temporaldp.core.accounting.margins import FILTER_MARGIN
from temporaldp.core.accounting.monotone_search import CLOSE, largest_sustainable
from temporaldp.core.accounting.paper.arrivals import added
from temporaldp.core.accounting.paper.method import PAPER
from temporaldp.core.accounting.protocol import (
    DIRECTIONS,
    SIDES,
    Accounting,
    Attained,
    Filter,
    Leakage,
    Limits,
    Odometer,
    Planner,
    Side,
    budgets,
    constant_matrix,
    largest_limits,
)
from temporaldp.core.correlation import Adversary, TransitionMatrix
from temporaldp.core.correlation.adversary import exactly_known
from temporaldp.core.kernels.chain import LARGEST_LEVEL
from temporaldp.core.mechanisms.likelihood_box import intervals

SMALLER_RESERVES = (0.0, 0.01, 1.0)
"""Shares of the largest reserve that are given up, one after the other, where a correlation remembers for so long that a larger
one has no certificate."""


class Exact(Accounting[Releases, Any]):
    """The supremum of the definitions over every mechanism with the given guarantees: the default accounting method.

    The guarantees are event-level epsilons of all outputs together; the noise may be of any kind, also shared between steps
    (Theory, section 20; for a chain with a longer memory, fresh at each step). Each number is an upper bound, and
    `LeakageSeries.attained` has the lower bound, which an observation attains (the sign rule; section 10). For a histogram with
    Laplace noise it is the leakage of that release itself. Releases are numbers (epsilons in nats), `LikelihoodBox`, pure
    mechanisms and events (by their epsilon), or None for a step without a release; `event_epsilons` returns the epsilons of
    outputs about several steps. Where all are tables of outputs (`OutputTable`, `RandomizedResponse`), it stands for
    `FiniteOutputs`, the leakage of these mechanisms themselves; for interval matrices for `IntervalBound`, an upper bound over
    all matrices of the set.

    Parameters
    ----------
    effort : float
        Seconds after which a series, a supremum or a plan stops comparing pairs of states, with the bounds that it has: both
        sides may then differ by more than rounding (`LeakageSeries.is_exact`), and plans and the reserve of a filter use the
        upper one. Without limit by default.
    """

    name = "exact"
    is_exact = True
    looser: ClassVar[Accounting[Any, Any] | None] = PAPER
    plans: ClassVar[Planner] = "by derivatives"
    takes_sets = True
    allows_any_level = True

    unit = Releases(np.ones((1, 1)), np.zeros((1, 1)))
    """The release of an epsilon of 1: any box for which it stands."""

    def __init__(self, *, effort: float = math.inf) -> None:
        self.effort = effort if effort == math.inf else real_number(effort, "effort", ge=0.0)

    sentence = (
        "Leakage is exact: BPL(t), FPL(t) and TPL(t) are the largest log-likelihood ratios of two states at step t, over "
        "all observations of the releases up to t, from t on and altogether, and over every mechanism with these budgets. "
        "TPL(t) is at most BPL(t) + FPL(t) - epsilon(t), and usually less."
    )

    def __repr__(self) -> str:
        return "Exact()" if math.isinf(self.effort) else f"Exact(effort={self.effort:g})"

    def specialised(
        self, users: Sequence[Adversary], releases: Sequence[Any] = (), *, online: bool = False
    ) -> Accounting[Any, Any]:
        """`IntervalBound` for interval matrices, `LongerMemory` for longer memory, `FiniteOutputs` for tables of outputs."""
        from temporaldp.core.accounting.interval.method import IntervalBound
        from temporaldp.core.accounting.memory.method import LongerMemory

        if users[0].is_lifted:
            return LongerMemory()
        if users[0].is_uncertain:
            return IntervalBound()
        known = [one for one in releases if not is_none(one)]
        has_tables = bool(known) and all(map(is_finite, known))
        return FiniteOutputs() if has_tables else self

    def convert(self, releases: Sequence[Any], users: Sequence[Adversary]) -> Releases:
        """A box of likelihoods for each step."""
        boxes = intervals(releases, users[0].n_states)
        return self.of_epsilons(budgets(releases)) if boxes is None else Releases(*boxes)

    def of_epsilons(self, epsilons: FloatArray) -> Releases:
        """Multiples of the release of an epsilon of 1: of plain differential privacy."""
        return Releases(epsilons[:, None] * self.unit.lift, epsilons[:, None] * self.unit.drop)

    def release_epsilons(self, releases: Releases) -> FloatArray:
        """Return the epsilon of each release: the largest log ratio of its box, in nats."""
        return releases.width

    def arrivals(self, user: Adversary, side: Side, releases: Releases) -> ExactArrivals | None:
        """The largest incoming leakage with each step's own part, and the rollouts that prove it."""
        correlation = getattr(user, side)
        if not correlation or not releases.is_countable:
            return None
        ceiling = added(PAPER.arrivals(user, side, releases.width), releases.width)
        return arrivals(correlation, releases, ceiling, turned=side == "forward")

    def both_sides(
        self, user: Adversary, releases: Releases, arrivals: Callable[[Adversary, Side, Releases], Any]
    ) -> tuple[Any, Any]:
        """Both directions; one is computed where both have one matrix, and the releases are the same in reverse order."""
        is_mirrored = user.is_constant and user.backward == user.forward
        if not is_mirrored or releases != releases[::-1]:
            return super().both_sides(user, releases, arrivals)
        found = arrivals(user, SIDES[0], releases)
        return found, found

    def leakage(
        self,
        user: Adversary,
        past: ExactArrivals | None,
        releases: Releases,
        future: ExactArrivals | None,
    ) -> Leakage:
        """The largest sum over pairs of states of incoming leakage from both directions and the step's own part."""
        (paper,) = PAPER.series([user], releases.width)
        if user.states is None:  # nothing is known of how states follow one another: each release stands alone
            return paper
        if not releases.is_countable or _exceeds_range([one.largest.proved for one in (past, future) if one]):
            return replace(paper, method=PAPER)
        alone = Largest(releases.attained[None], releases.width[None], releases.widest[None])
        before = past.largest if past else alone
        after = future.largest.reversed if future else alone
        both = before if past else after
        if past and future:
            both = both_directions(past, future, releases, paper.temporal[None])
        attained, proved, codes = (
            np.stack([getattr(one, name)[0] for one in (before, after, both)])
            for name in ("attained", "proved", "pairs")
        )
        return _leakage(user, releases, attained, proved, codes)

    def series(self, users: Sequence[Adversary], releases: Releases) -> list[Leakage]:
        """User by user, or all in one kernel where each has constant dense matrices."""
        width = releases.width

        def seconds() -> float:
            return seconds_of_series(users, len(width), alike=bool((width == width[0]).all()))

        with effort(self.effort), estimated("leakage of every step", seconds):
            return self._series(users, releases)

    def _series(self, users: Sequence[Adversary], releases: Releases) -> list[Leakage]:
        matrices = dense_matrices(users) if releases.is_plain and len(users) > 1 and releases.is_countable else None
        if matrices is None:
            return super().series(users, releases)
        papers = PAPER.series(users, releases.width)
        ceilings = np.array([[one.backward, one.forward, one.temporal] for one in papers])
        attained, proved, codes = population_series(*matrices, releases, ceilings)
        found = []
        for k, (user, paper) in enumerate(zip(users, papers, strict=True)):
            if user.states is None:
                found.append(paper)
            elif _exceeds_range(proved[k, :2]):
                found.append(replace(paper, method=PAPER))
            else:
                found.append(_leakage(user, releases, attained[k], proved[k], codes[k]))
        return found

    def supremum_arrivals(self, user: Adversary, side: Side, release: Releases) -> Limit | None:
        """The supremum of incoming leakage and the step's own part."""
        matrix = _known_matrix(user, side)
        if matrix is None:
            return None
        ceiling = added(float(PAPER.supremum_arrivals(user, side, release.width)[0]), float(release.width[0]))
        return exact_limit(matrix, release, ceiling)

    def supremum_leakage(
        self,
        user: Adversary,
        past: Limit | None,
        release: Releases,
        future: Limit | None,
    ) -> Limits:
        """The largest over pairs; the paper's bound where a direction grows without bound or no certificate is found."""
        paper = PAPER.limits([user], release.width)
        if user.states is None:
            return paper
        known = [one for one in (past, future) if one is not None]
        if any(one.rollouts is None for one in known):
            both = Limit(max(one.attained for one in known), paper.temporal, known[0].pair)
        else:
            both = both_limits(known[0], known[1], release, paper.temporal) if len(known) == 2 else known[0]
        alone = Limit(float(release.attained[0]), float(release.width[0]), 1)
        before, after = past or alone, future or alone
        return Limits(
            before.proved,
            after.proved,
            both.proved,
            # So close to what some horizon attains, an exact supremum counts as certified.
            certified=all(
                one.attained == one.proved or one.attained >= (1.0 - SAME_SIDES) * one.proved
                for one in (before, after, both)
            ),
            lower=Attained(*np.array([before.attained, after.attained, both.attained])),
        )

    def limits(self, users: Sequence[Adversary], release: Releases) -> Limits:
        """The largest suprema. Users whose paper's bound is at most the largest so far are not computed."""
        with effort(self.effort), estimated("leakage over an infinite horizon", lambda: seconds_of_supremum(users)):
            return self._limits(users, release)

    def _limits(self, users: Sequence[Adversary], release: Releases) -> Limits:
        if len(users) == 1 or not release.is_plain:
            return super().limits(users, release)
        each = [PAPER.limits([user], release.width) for user in users]
        papers = np.array([[getattr(paper, direction) for direction in DIRECTIONS] for paper in each])
        found: dict[int, Limits] = {}
        largest = np.full(3, float(release.width[0]))
        for k in np.argsort(-papers[:, 2], kind="stable").tolist():
            if not found or (papers[k] > largest).any():
                with part(len(found) / len(users), (len(found) + 1) / len(users), "leakage over an infinite horizon"):
                    found[k] = super().limits([users[k]], release)
                largest = np.maximum(largest, [getattr(found[k], direction) for direction in DIRECTIONS])
        largest[2] = largest.max()  # TPL is no less than BPL and FPL, but for the rounding of each
        worst = largest_limits(list(found.values()))
        past, future, both = (float(level) for level in largest)
        number = list(found)[worst.worst]
        return Limits(past, future, both, number, worst.certified, found[number].lower)

    def plan_margin(self, alpha: float, horizon: int, n_states: int) -> float:
        """Share of alpha that plans leave unspent: a little more than a filter leaves at most."""
        return not_admitted(alpha, n_states, horizon) / alpha + FILTER_MARGIN

    def sustainable_epsilon(self, users: Sequence[Adversary], alpha: float) -> float:
        """Largest budget for which rollouts prove, by induction on the horizon, that no horizon exceeds the level."""
        with effort(self.effort), estimated("sustainable budget", lambda: BUDGETS * seconds_of_supremum(users)):
            return self._sustainable_epsilon(users, alpha)

    def _sustainable_epsilon(self, users: Sequence[Adversary], alpha: float) -> float:
        """At least that of the paper; half of the effort is for the search, and half for the public number."""
        known = PAPER.sustainable_epsilon(users, alpha) / float(self.unit.width[0])
        directions = [[one for side in SIDES if (one := _known_matrix(user, side)) is not None] for user in users]
        repeated = [Repeated(matrices) for matrices in directions]

        def worst(epsilon: float) -> float:
            release = self.of_epsilons(np.array([epsilon]))
            return max(_leakage_within(one, release, alpha) for one in repeated)

        ceiling = alpha * (1.0 - 3.0 * FILTER_MARGIN)
        with effort(share=0.5):
            found = largest_sustainable(worst, alpha / float(self.unit.width[0]), ceiling, known=known)
        # What counts is the public number, which may differ in its last digits, or have no certificate near the largest budget.
        share = CLOSE
        while found > known and self.limits(users, self.of_epsilons(np.array([found]))).temporal > ceiling:
            # By how much the share of a budget that is given up grows from try to try. If doubled, more is given up.
            found, share = max(known, found * (1.0 - min(share, 1.0))), 8.0 * share
        return found

    def odometer(self, user: Adversary) -> Odometer:
        """Odometer of rollouts that are continued from step to step; for plain privacy only."""
        return ExactOdometer.at_start(user)

    def filters(
        self, users: Sequence[Adversary], alpha: float, reserve: float | None, horizon: int | None
    ) -> tuple[Sequence[Filter], float]:
        """Filters by the signs of rollouts; for plain privacy only."""
        kept, shares = reserve, SMALLER_RESERVES if reserve is None else SMALLER_RESERVES[:1]
        if kept is None:
            kept = 0.0 if horizon is not None else self.sustainable_epsilon(users, alpha)
        for share in shares:
            try:
                found = [
                    ExactFilter.at_start(user, alpha=alpha, reserve=kept * (1.0 - share), horizon=horizon)
                    for user in users
                ]
                break
            except BudgetError:
                if share == shares[-1]:
                    raise
        return found, min(one.reserve for one in found)

    def require_adoptable(self) -> None:
        """Return: rollouts continue through other matrices."""

    def restored_odometer(self, state: dict[str, Any], user: Adversary) -> Odometer:
        """Undo `ExactOdometer.saved`."""
        return ExactOdometer.restored(state, user)

    def restored_filter(self, state: dict[str, Any], user: Adversary, alpha: float, horizon: int | None) -> Filter:
        """Undo `ExactFilter.saved`."""
        return ExactFilter.restored(state, user, alpha=alpha, horizon=horizon)


def _leakage(user: Adversary, releases: Releases, attained: FloatArray, proved: FloatArray, codes: IntArray) -> Leakage:
    """What rollouts found of one user, arrays of shape (3, T); sides differ by more than rounding if the effort ended."""
    assert user.states is not None
    evidence = ExactLeakage(user.states, user, releases, Attained(*attained), proved[:2], codes)
    past, future, both = proved
    return Leakage(past, future, both, evidence)


def _leakage_within(repeated: Repeated, release: Releases, alpha: float) -> float:
    """TPL over an infinite horizon, if it is at most alpha; otherwise more than alpha."""
    epsilon = float(release.width[0])
    if alpha > LARGEST_LEVEL or (
        release.is_plain and not all(has_supremum(one.probabilities, epsilon) for one in repeated.matrices)
    ):
        return math.inf
    return repeated.leakage_within(release, alpha) if repeated.matrices else epsilon


def _exceeds_range(proved: Sequence[FloatArray] | FloatArray) -> bool:
    """Whether some BPL or FPL may be more than rollouts can represent: an entry of a later step may then have underflowed.

    The first step of which that is true is proved by rollouts that end within the range, so that it is noticed.
    """
    return any(not float(one.max()) <= LARGEST_LEVEL for one in proved)


def _known_matrix(user: Adversary, side: Side) -> TransitionMatrix | None:
    """The one matrix of a direction, or None; `InputError` where it varies with time or is known by intervals only."""
    matrix = constant_matrix(user, side)
    return None if matrix is None else exactly_known(matrix)


EXACT = Exact()
"""The default accounting method."""
