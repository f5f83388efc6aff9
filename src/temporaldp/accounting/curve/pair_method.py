"""Approximate DP by one privacy curve for each ordered pair of states, an upper bound.

The single curve of `temporaldp.accounting.curve.method` is computed too, at little cost, and the smaller result is reported.
Proofs: docs/theory.md, section 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.curve.arrivals import INFLATED, LIFTS, NOTHING, SingleCurve
from temporaldp.accounting.curve.evidence import PairLeakageCurves, Run
from temporaldp.accounting.curve.method import ApproximateDP, CurveArrivals, CurveLimits
from temporaldp.accounting.curve.pair_curves import PairCurves, raised_by
from temporaldp.accounting.protocol import DIRECTIONS, Accounting, Leakage, Limits, Side, constant_matrix
from temporaldp.correlation import Adversary, TransitionMatrix
from temporaldp.correlation.adversary import Matrix, exactly_known
from temporaldp.correlation.protocol import Correlation
from temporaldp.errors import InputError
from temporaldp.mechanisms.protocol import Mechanisms
from temporaldp.progress import progressed
from temporaldp.values import compared_by_value

FloatArray = NDArray[np.float64]
Curves = list[FloatArray]

MOST_STEPS = 300
"""Steps until the curves must have settled. Where they have not, no certificate is found, and that of the one curve serves."""


SETTLED = 1e-5
"""Times delta: curves that a step changes by less are lifted by a little, and shown to be raised no more."""

SMALLEST_DELTA = 1e-9
"""Below, the rounding of the best tests, about 1e-14 a step, would count."""

MOST_WORK = 4e9
"""States to the fourth, times points, times steps, up to which pairwise curves are the default: about 5 to 8 states,
three minutes on two cores. Doubled, a call may take twice as long."""

GROWTH = 4
"""Length of a curve of a series, as a multiple of that of one release, about."""

SETTLING = 64
"""Number of steps in which the curves of a chain settle, about."""


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class PairCurveLimits:
    """The certificates of suprema pair by pair, for a single user.

    Parameters
    ----------
    grid : float
        Distance of the grid, in nats.
    states : tuple of str
    backward, forward : array, shape (n, n, K + 1), or None
        Deltas at epsilon = 0, grid, ... of each ordered pair, which one more step raises nowhere. None where none was
        found: the supremum is then that of the one curve.
    one : CurveLimits
        The certificates of the one curve.
    """

    grid: float
    states: tuple[str, ...]
    backward: FloatArray | None
    forward: FloatArray | None
    one: CurveLimits


class PairwiseCurves(ApproximateDP):
    """Releases are tuples of mechanisms; what arrives is a privacy curve for each ordered pair of values.

    Parameters
    ----------
    one : ApproximateDP
        The one curve, with its own grid.
    grid : float
        Distance of the grid of the pairs, in nats.
    """

    takes_sets = False

    def __init__(self, one: ApproximateDP, grid: float) -> None:
        super().__init__(one.delta, pairwise=True, grid=grid)
        self.one = one
        self._curves: tuple[Adversary, PairCurves] | None = None

    def _pairs_for(self, user: Adversary) -> PairCurves:
        """What was computed about the last user is kept, about others not."""
        if self._curves is None or self._curves[0] is not user:
            assert user.n_states is not None
            self._curves = (user, PairCurves(SingleCurve(self._h, self.delta, up=True), user.n_states))
        return self._curves[1]

    def promised(self, releases: tuple[Mechanisms, ...]) -> FloatArray:
        """The epsilon of each release at the delta."""
        return self.one.promised(releases)

    def arrivals(self, user: Adversary, side: Side, releases: tuple[Mechanisms, ...]) -> CurveArrivals:
        """The best tests of each transition, and composition with each release."""
        one = self.one.arrivals(user, side, releases)
        if not goes_by_pairs(user):
            return one
        pairs = self._pairs_for(user)
        if side == "backward":
            return replace(one, pairs=arriving_pair_curves(pairs, user.backward, releases))
        arrived, total = arriving_pair_curves(pairs, user.forward.in_reverse(), releases[::-1])
        return replace(one, pairs=(arrived[::-1], total[::-1]))

    def leakage(
        self, user: Adversary, past: CurveArrivals, releases: tuple[Mechanisms, ...], future: CurveArrivals
    ) -> Leakage:
        """Composition pair by pair, and the epsilon of the worst pair; never above the one curve."""
        known = self.one.leakage(user, past, releases, future)
        if past.pairs is None or future.pairs is None:
            return known
        run = Run(self._pairs_for(user), *map(tuple, (*past.pairs, *future.pairs)))
        evidence = PairLeakageCurves(known.evidence, run, user.states or ())
        backward, forward, temporal = (evidence.epsilons(direction) for direction in DIRECTIONS)
        return Leakage(backward, forward, temporal, evidence)

    def series(self, users: Sequence[Adversary], releases: tuple[Mechanisms, ...]) -> list[Leakage]:
        """User by user, without the shortcut for one curve."""
        return Accounting.series(self, users, releases)

    def worst(self, users: Sequence[Adversary], releases: tuple[Mechanisms, ...]) -> float:
        """The largest TPL of the pairs alone: for planners, which have tried the one curve before."""
        return max(float(self.temporal(user, releases).max()) for user in users)

    def temporal(self, user: Adversary, releases: tuple[Mechanisms, ...]) -> FloatArray:
        """TPL of every step by the pairs alone; where these do not serve, the largest one by one curve."""
        if not goes_by_pairs(user):
            return np.full(len(releases), self.one.worst([user], releases))
        pairs = self._pairs_for(user)
        _, backward = arriving_pair_curves(pairs, user.backward, releases)
        future, _ = arriving_pair_curves(pairs, user.forward.in_reverse(), releases[::-1])
        sides = [(id(a), id(f)) for a, f in zip(backward, future[::-1], strict=True)]
        curves = dict(zip(sides, zip(backward, future[::-1], strict=True), strict=True))
        found = {key: pairs.epsilon(pairs.composed(*both)) for key, both in curves.items()}
        return np.array([found[key] for key in sides])

    def lasting_arrivals(self, user: Adversary, side: Side, release: tuple[Mechanisms, ...]) -> CurveArrivals:
        """Curves that no further step raises."""
        one = self.one.lasting_arrivals(user, side, release)
        if not goes_by_pairs(user):
            return one
        found = supremum_pair_curves(self._pairs_for(user), known_matrix(constant_matrix(user, side)), release[0])
        return replace(one, pairs=None if found is None else ([found[0]], [found[1]]))

    def lasting_leakage(
        self, user: Adversary, past: CurveArrivals, release: tuple[Mechanisms, ...], future: CurveArrivals
    ) -> Limits:
        """Composition pair by pair; never above the one curve."""
        known = self.one.lasting_leakage(user, past, release, future)
        if not goes_by_pairs(user):
            return known
        pairs, found = self._pairs_for(user), [known.backward, known.forward, known.temporal]
        for k, side in enumerate((past, future)):
            if side.pairs is not None:
                found[k] = min(found[k], pairs.epsilon(side.pairs[1][0]))
        if past.pairs is not None and future.pairs is not None:
            found[2] = min(found[2], pairs.epsilon(pairs.composed(past.pairs[1][0], future.pairs[0][0])))
        before, after = (None if side.pairs is None else side.pairs[1][0] for side in (past, future))
        evidence = PairCurveLimits(self._h, user.states or (), before, after, known.evidence)
        return Limits(found[0], found[1], found[2], evidence=evidence)


def arriving_pair_curves(
    pairs: PairCurves, correlation: Correlation, releases: Sequence[Mechanisms]
) -> tuple[Curves, Curves]:
    """(what arrives at each step, that and the step's own release), in the order of `releases`.

    Where release and matrix stay and the curves have settled, some that no further step raises are shown to be so, and kept.
    """
    arrived, total = [NOTHING], [pairs.own(releases[0])]
    last: tuple[int, Mechanisms] | None = None
    stays, tries = False, 0
    for t in range(1, len(releases)):
        progressed("leakage of every pair", t / len(releases))
        matrix = known_matrix(correlation.at(t - 1))
        same = last == (id(matrix), releases[t - 1]) and releases[t] == releases[t - 1]
        stays, tries = stays and same, tries if same else 0
        if not stays:
            own = pairs.own(releases[t])
            passed = pairs.through(matrix, total[-1])
            after = pairs.composed(passed, own)
            if same and tries < LIFTS and _settled(pairs, after, total[-1]):
                tries, above = tries + 1, _certified(pairs, matrix, own, after)
                if above is not None:
                    stays, passed, after = True, pairs.through(matrix, above), above
        arrived.append(arrived[-1] if same and stays and total[-1] is after else passed)
        total.append(after)
        last = (id(matrix), releases[t - 1])
    return arrived, total


def supremum_pair_curves(
    pairs: PairCurves, matrix: TransitionMatrix | None, release: Mechanisms
) -> tuple[FloatArray, FloatArray] | None:
    """(what arrives, that and a release): curves that one more step does not raise anywhere; None if none are found.

    They are those that a long series arrives at, so that no series is above them.
    """
    if matrix is None or pairs.own(release) is NOTHING:
        return NOTHING, pairs.own(release)
    if pairs.one.contraction(matrix) >= 1.0:
        return None
    arrived, total = arriving_pair_curves(pairs, matrix, (release,) * MOST_STEPS)
    return (arrived[-1], total[-1]) if total[-1] is total[-2] else None


def _settled(pairs: PairCurves, after: FloatArray, before: FloatArray) -> bool:
    """Whether hardly any curve changes, one way or the other."""
    return max(raised_by(after, before), raised_by(before, after)) <= SETTLED * pairs.delta


def _certified(
    pairs: PairCurves, matrix: TransitionMatrix | None, own: FloatArray, settled: FloatArray
) -> FloatArray | None:
    """The settled curves, lifted until one more step, computed with its rounding, raises none of them; None if that fails."""
    if matrix is None or INFLATED * pairs.one.contraction(matrix) >= 1.0:
        return None
    share = INFLATED * pairs.one.contraction(matrix)
    apart = 1.0 - np.eye(len(settled))[..., None] if len(settled) > 1 else np.ones((1, 1, 1))
    excess, lift = SETTLED * pairs.delta + 2.0 * pairs.tail, 0.0
    for _ in range(LIFTS):
        lift += 4.0 * excess / (1.0 - share)
        above = np.asarray(np.minimum(settled * INFLATED + lift, 1.0) * apart)
        excess = raised_by(pairs.composed(pairs.through(matrix, above), own), above)
        if excess <= 0.0:
            return above
    return None


def goes_by_pairs(user: Adversary) -> bool:
    """Whether all matrices are known exactly, and do not depend on a clock; else the one curve serves."""
    return user.states is not None and not user.is_uncertain and user.period is None


def known_matrix(matrix: Matrix | None) -> TransitionMatrix | None:
    """The matrix, or None where nothing is known; `InputError` for intervals."""
    return None if matrix is None else exactly_known(matrix)


def affordable(
    users: Sequence[Adversary],
    releases: Sequence[Mechanisms],
    grid: float,
    delta: float,
    *,
    steps: int,
    settling: int = SETTLING,
) -> bool:
    """Whether pairwise curves take minutes at most (about 5 to 8 states), so that they are the default.

    `steps` is how many are looked at, or, where release and matrices stay the same, `settling`. Not for two states, for which
    a single curve is nearly the same.
    """
    if delta < SMALLEST_DELTA:
        return False
    side = SingleCurve(grid, delta, up=True)
    points = GROWTH * max(side.own(release).size for release in set(releases))
    work = 0.0
    for user in users:
        n_values = len(user.states or ()) if goes_by_pairs(user) else 0
        constant = user.n_steps is None and len(set(releases)) == 1
        looked_at = min(steps, settling) if constant else steps
        work += sum(bool(known) for known in user.directions) * n_values**4 * points * looked_at
    return work <= MOST_WORK and any(goes_by_pairs(user) and len(user.states or ()) > 2 for user in users)


def checked_pairs(delta: float) -> None:
    """Refuse what pair by pair cannot be computed.

    Raises
    ------
    InputError
        delta is so small that rounding would count.
    """
    if delta < SMALLEST_DELTA:
        raise InputError(
            f"expected a delta of {SMALLEST_DELTA:g} or more with pairwise=True, got {delta:g}: rounding, which is added, "
            "would no longer be small beside it; pairwise=False has no such limit"
        )
