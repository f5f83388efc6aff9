"""Approximate DP: accounting for any mechanisms by privacy curves on a grid of privacy losses, an upper bound.

One curve for all pairs of states is computed from above and from below; the difference bounds the discretisation error. Where
it takes minutes at most, one curve for each pair is computed too, and the smaller result is reported. For pure mechanisms the
result never exceeds the leakage at delta = 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.values import LARGEST, FloatArray
from temporaldp.core.accounting.curve import grid
from temporaldp.core.accounting.curve.arrivals import (
    COARSEST,
    INFLATED,
    NOTHING,
    TAIL,
    Arrivals,
    Curves,
    SingleCurve,
    arriving_curves,
    checked_delta,
    checked_grid,
    chosen_grid,
    supremum_curves,
)
from temporaldp.core.accounting.curve.evidence import LeakageCurves, Run
from temporaldp.core.accounting.curve.pair_curves import PairCurves, affordable, checked_pairs, goes_by_pairs
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.paper.method import PaperBound
from temporaldp.core.accounting.protocol import (
    DIRECTIONS,
    SIDES,
    Accounting,
    Filter,
    Leakage,
    Limits,
    Side,
    constant_matrix,
)
from temporaldp.core.accounting.stepwise import StepwiseOdometer
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.adversary import exactly_known
from temporaldp.core.mechanisms.events import release_from
from temporaldp.core.mechanisms.guarantee import PrivacyGuarantee
from temporaldp.core.mechanisms.output_table import require_states
from temporaldp.core.mechanisms.protocol import Mechanisms

MOST_CURVE_STEPS = 20_000
"""Steps until one curve must have settled for a supremum. If doubled, chains that forget half as fast have a certificate, and
those without one take twice as long."""


class UserCurves(NamedTuple):
    """The kinds of curves for one user: one for all pairs, from above and from below; and pairwise ones."""

    upper: SingleCurve
    lower: SingleCurve
    pairs: PairCurves | None


class CurveArrivals(NamedTuple):
    """Incoming leakage of each step in one direction by each kind of curve, in the order of time.

    Over an infinite horizon of one step; None where no certificate was found.
    """

    upper: Arrivals | None
    lower: Arrivals | None
    pairs: Arrivals | None


class ApproximateDP(Accounting[tuple[Mechanisms, ...], CurveArrivals]):
    """(epsilon, delta)-DP_T: the leakage of any mechanisms as the epsilon at one delta, an upper bound.

    Privacy profiles are propagated through the correlation and composed with each release (Theory, sections 9 and 16),
    on a grid of privacy losses that rounds up. ``series.evidence`` has the whole curves and the discretisation error.

    Releases are mechanisms (`GaussianNoise`, `LaplaceNoise`, `DiscreteGaussianNoise`, `DiscreteLaplaceNoise`,
    `RandomizedResponse`, `OutputTable`, `PrivacyGuarantee`), events or privacy loss distributions of dp-accounting under
    replacement, numbers (any mechanism with that epsilon), None, or a tuple of several that are published at one step. The
    noise of each step must be independent of that of others, so numbers of `event_epsilons`, whose outputs share noise, are
    not covered. Mechanisms must not depend on earlier outputs: hockey-stick divergences do not compose along adaptive paths.

    Parameters
    ----------
    delta : float
        From 1e-60 to below 1; for 0, the method is `Exact()`.
    pairwise : bool, optional
        One privacy curve for each ordered pair of states, which is tighter and takes longer, or one for all pairs. Default: for
        each pair where that takes minutes at most; ``series.accounting.pairwise`` is the choice that was made.
    grid : float, optional
        Distance of the grid of privacy losses, in nats. Default: a 512th of the epsilon of the release with the most noise, at
        most 0.01.

    Raises
    ------
    BudgetError
        delta is not admissible.
    InputError
        The grid is not, or delta is too small for pairwise curves.

    Examples
    --------
    >>> from temporaldp import Adversary, GaussianNoise, TransitionMatrix, temporal_leakage
    >>> walk = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]))
    >>> series = temporal_leakage(walk, [GaussianNoise(10.0, sensitivity=1.0)] * 20, accounting=ApproximateDP(delta=1e-6))
    >>> series.backward.round(3)[[0, 1, 2, 19]], series.accounting.pairwise
    (array([0.397, 0.467, 0.49 , 0.503]), False)
    """

    name = "approximate"
    takes_sets = True

    def __new__(cls, delta: float, **options: Any) -> Any:
        """The method; `Exact` for a delta of 0."""
        return EXACT if type(delta) in {int, float} and delta == 0.0 and not options else super().__new__(cls)

    def __getnewargs__(self) -> tuple[float]:
        """For copies."""
        return (self.delta,)

    def __init__(
        self, delta: float, *, pairwise: bool | None = None, grid: float | None = None, beyond: float = math.inf
    ) -> None:
        self.delta, self.pairwise, self.grid = checked_delta(delta), pairwise, checked_grid(grid)
        # A supremum that is found to be above `beyond` is inf: planners need no more.
        self.beyond = beyond
        self._single_grid = self.grid
        self._kept: tuple[Adversary, UserCurves] | None = None

    @property
    def sentence(self) -> str:
        """Description of the computation, for reports."""
        kept = (
            "one privacy curve for each pair of states"
            if self.pairwise
            else "one privacy curve for all pairs of states"
        )
        return (
            f"Leakage is the epsilon at delta = {self.delta:g}, an upper bound by {kept}: each transition maps the curve by "
            "the kernel of its matrix, and the curves of earlier releases, of the release at t and of later ones are composed, "
            "on a grid of privacy losses that is rounded up."
        )

    def document(self) -> dict[str, Any]:
        """The name, delta, and the chosen parameters."""
        return {"method": self.name, "delta": self.delta, "pairwise": self.pairwise, "grid": self.grid}

    def specialised(
        self, users: Sequence[Adversary], releases: Sequence[Any] = (), *, online: bool = False
    ) -> Accounting[Any, Any]:
        """Choose the grid from the releases, and a curve for each pair where that is requested or takes minutes at most."""
        known = tuple(release_from(one) for one in releases)
        h = chosen_grid(known, self.delta, self.grid)
        single = ApproximateDP(self.delta, pairwise=False, grid=h, beyond=self.beyond)
        if online and self.pairwise:
            raise InputError(
                "an accountant counts by one privacy curve: at every step all earlier ones change, for which a curve for each "
                "pair takes too long. Leave out pairwise=True, or call temporal_leakage with the mechanisms so far"
            )
        if online or self.pairwise is False:
            return single
        if self.pairwise:
            checked_pairs(self.delta)
            for matrix in (matrix for user in users for matrix in user.matrices):
                exactly_known(matrix)
        # Ratio of the grid of pairwise curves to that of one curve, unless a grid is given: their cost falls with its square
        coarser = max(h if self.grid is not None else min(4 * h, COARSEST), h)
        # Over an infinite horizon there is one release, and in a search none yet; curves settle in fewer steps, or never
        made = known if len(known) > 1 else (known or (release_from(0.1),)) * 1000
        # A search computes many series
        if not (self.pairwise or affordable(users, made, coarser, self.delta, times=1 if known else 12)):
            return single
        both = ApproximateDP(self.delta, pairwise=True, grid=coarser, beyond=self.beyond)
        both._single_grid = h
        return both

    def convert(self, releases: Sequence[Any], users: Sequence[Adversary]) -> tuple[Mechanisms, ...]:
        """The mechanisms of each step."""
        return tuple(release_from(one) for one in releases)

    def curves(self, user: Adversary) -> UserCurves:
        """The kinds of curves for a user. Those of the last user are cached with their results."""
        if self._kept is None or self._kept[0] is not user:
            upper, lower = (SingleCurve(self._single_grid or COARSEST, self.delta, up=up) for up in (True, False))
            pairs = None
            if self.pairwise and goes_by_pairs(user):
                pairs = PairCurves(SingleCurve(self.grid or COARSEST, self.delta, up=True), len(user.states or ()))
            self._kept = user, UserCurves(upper, lower, pairs)
        return self._kept[1]

    def of_epsilons(self, epsilons: FloatArray) -> tuple[Mechanisms, ...]:
        """Any mechanisms with these guarantees."""
        return tuple((PrivacyGuarantee(epsilon),) if epsilon else () for epsilon in epsilons.tolist())

    def release_epsilons(self, releases: tuple[Mechanisms, ...]) -> FloatArray:
        """The epsilon of each release at the delta; an upper bound."""
        curves = SingleCurve(self._single_grid or COARSEST, self.delta, up=True)
        known = {
            release: min(curves.epsilon(curves.own(release)), math.fsum(one.pure_epsilon for one in release))
            for release in set(releases)
        }
        return np.array([known[release] for release in releases])

    def arrivals(self, user: Adversary, side: Side, releases: tuple[Mechanisms, ...]) -> CurveArrivals:
        """Incoming leakage by each kind of curve: each transition, and composition with each release."""
        require_states(releases, None if user.states is None else len(user.states))
        upper, lower, pairs = self.curves(user)
        return CurveArrivals(
            arriving_curves(upper, user, side, releases),
            arriving_curves(lower, user, side, releases),
            None if pairs is None else arriving_curves(pairs, user, side, releases),
        )

    def leakage(
        self, user: Adversary, past: CurveArrivals, releases: tuple[Mechanisms, ...], future: CurveArrivals
    ) -> Leakage:
        """Epsilon of the composition; at most the leakage with delta = 0."""
        runs = [
            None if one is None or before is None or after is None else Run(one, *before, *after)
            for one, before, after in zip(self.curves(user), past, future, strict=True)
        ]
        upper, lower, pairs = runs
        assert upper is not None
        assert lower is not None
        pure, known, method = _pure_epsilons(releases), None, EXACT.specialised([user])
        if pure is not None:
            (without,) = method.series([user], method.of_epsilons(pure))
            known = {direction: getattr(without, direction) for direction in DIRECTIONS}
        evidence = LeakageCurves(releases, upper, lower, known, pairs, user.states or (), method.is_first_order)
        backward, forward, temporal = (evidence.epsilons(direction) for direction in DIRECTIONS)
        return Leakage(backward, forward, temporal, evidence)

    def temporal(self, user: Adversary, releases: tuple[Mechanisms, ...]) -> FloatArray:
        """TPL of every step by the tightest kind of curve, upper bounds alone, shape (T,); for planners."""
        known = self.curves(user)
        curves: Curves = known.pairs or known.upper
        past, future = (arriving_curves(curves, user, side, releases) for side in SIDES)
        return Run(curves, *past, *future).epsilons("temporal")

    def worst(self, users: Sequence[Adversary], releases: tuple[Mechanisms, ...]) -> float:
        """The largest TPL by `temporal`, in nats."""
        found = max(float(self.temporal(user, releases).max()) for user in users)
        pure = _pure_epsilons(releases)
        if pure is None:
            return found
        return min(found, max(float(one.temporal.max()) for one in PaperBound().series(users, pure)))

    def supremum_arrivals(self, user: Adversary, side: Side, release: tuple[Mechanisms, ...]) -> CurveArrivals:
        """Curves that no further step raises."""
        matrix = constant_matrix(user, side)
        require_states(release, None if user.states is None else len(user.states))
        upper, _, pairs = self.curves(user)
        above = supremum_curves(upper, matrix, release[0], most=MOST_CURVE_STEPS, beyond=self.beyond)
        # Each step of pairs takes far longer
        of_pairs = None if pairs is None else supremum_curves(pairs, matrix, release[0], most=300)
        return CurveArrivals(above, None, of_pairs)

    def supremum_leakage(
        self, user: Adversary, past: CurveArrivals, release: tuple[Mechanisms, ...], future: CurveArrivals
    ) -> Limits:
        """Epsilon of the composition: the smallest over all kinds of curves, and the exact leakage with delta = 0, if any."""
        upper, _, pairs = self.curves(user)
        found = _limits(upper, past.upper, future.upper)
        if pairs is not None:
            found = [min(both) for both in zip(found, _limits(pairs, past.pairs, future.pairs), strict=True)]
        pure = _pure_epsilons(release)
        if pure is not None and pure[0] > 0.0:
            method = EXACT.specialised([user])
            known = method.limits([user], method.of_epsilons(pure))
            found = [min(one, getattr(known, direction)) for one, direction in zip(found, DIRECTIONS, strict=True)]
        return Limits(found[0], found[1], found[2])

    def require_countable(self, users: Sequence[Adversary], release: Mechanisms) -> None:
        """Refuse a table for other states (`StateError`), or a mechanism that the grid cannot hold (`InputError`)."""
        for states in {user.states for user in users}:
            require_states((release,), None if states is None else len(states))
        self.release_epsilons((release,))

    def odometer(self, user: Adversary) -> StepwiseOdometer[Mechanisms, FloatArray]:
        """Curves from above, as far back as any of them changes."""
        return StepwiseOdometer(CurveSteps(user, self.curves(user).upper))

    def filters(
        self, users: Sequence[Adversary], alpha: float, reserve: float | None, horizon: int | None
    ) -> tuple[Sequence[Filter], float]:
        """Refuse filters: releases under approximate DP cannot be chosen adaptively."""
        raise BudgetError(
            "under approximate DP, releases cannot be chosen adaptively: hockey-stick divergences do not compose along paths "
            "on which the noise depends on earlier outputs. Plan the noise beforehand (plan_noise) and release by the plan, or "
            "leave alpha out and count what was published"
        )


class CurveSteps:
    """Transitions of one user, one at a time; a `temporaldp.core.accounting.stepwise.Steps` of upper curves."""

    nothing = NOTHING

    def __init__(self, user: Adversary, curves: SingleCurve) -> None:
        self._user, self._curves = user, curves

    def arriving(self, side: Side, transition: int, release: Mechanisms, before: FloatArray) -> FloatArray:
        """Curve one step before, through the transition."""
        matrix = getattr(self._user, side).at(transition)
        known = self._curves.composed(before, self._curves.own(release))
        return self._curves.through(matrix, known, times=INFLATED)

    def leakage(self, past: FloatArray, release: Mechanisms, future: FloatArray) -> float:
        """The epsilon of the composition."""
        own = self._curves.own(release)
        return self._curves.epsilon_together(self._curves.composed(past, own), future)

    def never_more(self, one: FloatArray, other: FloatArray) -> bool:
        """Whether delta is at most as large at every epsilon."""
        return one is other or grid.raised_by(one, other) <= 0.0

    def raised(self, arrived: FloatArray) -> FloatArray:
        """Add the tail that is cut off at the end of a curve, a billionth of delta."""
        return arrived if arrived is NOTHING else np.minimum(arrived + TAIL * self._curves.delta, 1.0)


def _limits(curves: Curves, past: Arrivals | None, future: Arrivals | None) -> list[float]:
    """The epsilons of both directions and of their composition; inf without a certificate."""
    found = [math.inf if one is None else curves.epsilon(one[1][0]) for one in (past, future)]
    if past is None or future is None:
        return [*found, math.inf]
    return [*found, curves.epsilon_together(past[1][0], future[0][0])]


def _pure_epsilons(releases: Sequence[Mechanisms]) -> FloatArray | None:
    """Pure epsilons of the releases; None where one of them has none."""
    pure = np.array([math.fsum(mechanism.pure_epsilon for mechanism in release) for release in releases])
    return None if (pure > LARGEST).any() else pure
