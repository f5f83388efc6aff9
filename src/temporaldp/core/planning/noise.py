"""Noise for (alpha, delta)-DP_T: the least scale that satisfies it, by a search over scales.

Leakage falls as the noise grows, so the least constant scale is found by bisection, and the safe side is returned. Where the
horizon is known, less noise suffices at the ends: its shape is found by derivatives, with a certified lower bound.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from temporaldp.base.errors import BudgetError, InputError, PlanError
from temporaldp.base.values import FloatArray, real_number
from temporaldp.core.accounting import LeakageSeries, LeakageSupremum, leakage_supremum, temporal_leakage
from temporaldp.core.accounting.curve.method import ApproximateDP
from temporaldp.core.accounting.curve.pair_curves import affordable, checked_pairs
from temporaldp.core.accounting.monotone_search import largest_in_few_tries, reported
from temporaldp.core.accounting.periodic import limits_of
from temporaldp.core.accounting.protocol import SIDES
from temporaldp.core.correlation import Adversaries
from temporaldp.core.mechanisms.protocol import Mechanisms, epsilon_of_one
from temporaldp.core.planning.histogram_noise import Noise, checked_noise, histogram_profile, mean_absolute_noise
from temporaldp.core.planning.noise_bound import least_mean_noise
from temporaldp.core.planning.noise_plan import NoisePlan, planned_grid
from temporaldp.core.planning.noise_shape import least_shape
from temporaldp.core.planning.plan import Optimality
from temporaldp.core.planning.request import Request

CLOSE_SCALES = 1e-5
"""Relative distance from the least scale at which a search ends: always on the side that satisfies alpha."""

LARGEST_SCALE = 50_000.0
"""In counts. If so much noise does not satisfy the level, none is planned."""

NEAR = 1e-3
"""Relative distance at which a search with a curve for each pair of states ends, which takes seconds for each scale."""


def plan_noise(
    adversary: Adversaries,
    alpha: float,
    horizon: int | None = None,
    *,
    accounting: ApproximateDP,
    noise: Noise = "gaussian",
    equal: bool = False,
) -> NoisePlan:
    """Choose the least noise on a histogram whose temporal leakage at a delta stays at or below alpha at every step.

    The scale is constant or, with a horizon, less at the ends. It is an upper bound of the least one, by rounding and by the
    accounting (Theory, section 9): the release is (alpha, delta)-DP_T.

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        Several: noise that satisfies the level for each of them.
    alpha : float, > 0
        Level that every step must satisfy, in nats; neighbouring data sets replace one person's state.
    accounting : ApproximateDP
        The delta, and whether there is one privacy curve for all pairs of states or one for each. Default: one for each, if
        that takes minutes at most (``plan.accounting.pairwise``). The grid is the plan's own.
    noise : {"gaussian", "laplace"}
        Discrete Gaussian or discrete Laplace noise on every count.
    horizon : int, optional
        Number of steps T. Default: an infinite horizon.
    equal : bool
        The same noise at every step, which is found in seconds where the least noise takes minutes. With one curve for each
        pair of states it is within about 0.5 % of the least such noise.

    Raises
    ------
    BudgetError
        alpha, delta or the horizon is not admissible, or contradicts the adversary's matrices.
    InputError
        There is no such noise.
    PlanError
        No noise satisfies the level.

    Examples
    --------
    >>> from temporaldp import Adversary, ApproximateDP, TransitionMatrix
    >>> adversary = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]), TransitionMatrix([[0.8, 0.2], [0.1, 0.9]]))
    >>> plan_noise(adversary, alpha=1.0, accounting=ApproximateDP(delta=1e-6)).scales.round(2)
    array([9.55])
    """
    if not getattr(accounting, "delta", 0.0):
        raise InputError(
            f"expected accounting to be ApproximateDP(delta), got {accounting!r}: noise is planned for a delta. Use "
            "plan_budget for pure differential privacy"
        )
    request = Request.checked(adversary, alpha, horizon)
    # Nats. Levels beyond it, which promise nothing, would need grids that overflow.
    real_number(alpha, "alpha of a noise plan", le=1e5, error=BudgetError)
    sought = _Calibration(request, accounting.delta, checked_noise(noise))
    if accounting.pairwise:
        checked_pairs(sought.delta)
    if horizon is None:
        _require_forgetting(request, accounting)
    scales = _least_scales(sought, equal=equal)
    of_pairs, coarser = replace(sought, by_pairs=True), 4 if equal else 1
    if accounting.pairwise or (accounting.pairwise is None and of_pairs.is_worthwhile(scales, coarser)):
        sought, scales = of_pairs, of_pairs.least(scales, NEAR, coarser) if equal else _tightened(of_pairs, scales)
    else:
        coarser = 1
    leakage = sought.leakage(scales, coarser)
    while leakage.worst > request.alpha:  # the same sums in the same order, so it should not happen
        scales = scales * (1.0 + CLOSE_SCALES)
        leakage = sought.leakage(scales, coarser)
    plan = NoisePlan(leakage=leakage, **request.facts, noise=sought.noise, scales=scales)
    return plan if horizon is None or equal else replace(plan, optimality=_optimality(sought, plan))


def _optimality(sought: _Calibration, plan: NoisePlan) -> Optimality:
    """Lower bound of the noise that satisfies the level by the plan's own accounting."""
    constant = sought.request.has_constant_matrices
    least = least_mean_noise(
        len(plan.scales),
        plan.alpha,
        lambda scale: sought.worst(np.array([scale])) if constant else sought.promised(scale),
        (lambda one, other: sought.worst(np.array([one, other]))) if constant else None,
        lambda scale: mean_absolute_noise([scale], plan.noise) if scale > 0.0 else 0.0,
    )
    return Optimality("mean_absolute_error", plan.mean_absolute_noise, min(least, plan.mean_absolute_noise))


@dataclass(frozen=True, eq=False)
class _Calibration:
    """Search for the least noise of one kind that satisfies a level at a delta, by one curve or by a curve for each pair."""

    request: Request
    delta: float
    noise: Noise
    by_pairs: bool = False

    def leakage(self, scales: FloatArray, coarser: int = 1) -> LeakageSeries | LeakageSupremum:
        """Leakage of the scales, on a grid that is `coarser` times as wide."""
        made, everyone = self.releases(scales), self.request.population
        if self.request.horizon is None:
            return leakage_supremum(everyone, made[0], accounting=self.method(coarser))
        return temporal_leakage(everyone, made, accounting=self.method(coarser))

    def is_worthwhile(self, scales: FloatArray, coarser: int) -> bool:
        """Whether a curve for each pair of states is tighter and takes minutes at most for the whole search.

        Over an infinite horizon it is tighter only where its curves settle, which coarse ones show.
        """
        users, grid = self.request.users, coarser * planned_grid(self.request.alpha, pairwise=True)
        made = self.releases(scales) * (1 if self.request.horizon else 1000)
        # A search looks at about twelve scales; one for a comparison, on a coarse grid, may take a tenth of the time
        if not affordable(users, made, grid, self.delta, times=12 if coarser == 1 else 120):
            return False
        if self.request.horizon is not None:
            return True
        method, release = self.method(8), self.releases(scales)
        each = ([method.supremum_arrivals(user, side, release) for side in SIDES] for user in users)
        return any(all(side.pairs is not None for side in sides) for sides in each)

    def worst(self, scales: FloatArray, coarser: int = 1) -> float:
        """The worst leakage of the scales on a grid that is `coarser` times as wide, without the bound of its error."""
        made = self.releases(scales)
        method = self.method(coarser, beyond=math.inf if self.by_pairs else self.request.alpha)
        if self.request.horizon is None:
            return limits_of(method, self.request.users, made).temporal
        return method.worst(self.request.users, made)

    @cached_property
    def alone(self) -> float:
        """A scale, at most twice the least, at which a single release leaks at most alpha: the start of a search."""
        # Counts. Less noise than this is none: a count is right with all but a probability of e^-20.
        scale = 0.05
        while self.promised(scale) > self.request.alpha and scale < LARGEST_SCALE:
            scale *= 2.0
        return scale

    def promised(self, scale: float) -> float:
        """Leakage of a single release."""
        return epsilon_of_one(histogram_profile(self.noise, scale), delta=self.delta)

    def method(self, coarser: int = 1, *, beyond: float = math.inf) -> ApproximateDP:
        """Return the accounting method, on a grid that is `coarser` times as wide as that of the plan."""
        grid = coarser * planned_grid(self.request.alpha, pairwise=self.by_pairs)
        return ApproximateDP(self.delta, pairwise=self.by_pairs, grid=grid, beyond=beyond)

    def releases(self, scales: FloatArray) -> tuple[Mechanisms, ...]:
        """The mechanism of each step."""
        return tuple((histogram_profile(self.noise, scale),) for scale in scales.tolist())

    def least(self, shape: FloatArray, close: float, coarser: int = 1) -> FloatArray:
        """The least multiple of `shape` that satisfies alpha, within `close` of it or of the level, on the side that does."""
        leaked = cache(reported(lambda less: self.worst(shape / less, coarser), "least noise"))
        alpha, low, high = self.request.alpha, 1.0, max(2.0 * float(shape.min()) / self.alone, 1.0)
        while leaked(low) > alpha:
            low, high = 0.5 * low, low
            if float(shape.max()) > LARGEST_SCALE * low:
                raise PlanError(
                    f"no noise up to a scale of {LARGEST_SCALE:g} satisfies alpha = {alpha:g} for so long at this delta: the "
                    "correlation is too strong. Give a (shorter) horizon T, a larger alpha, or a larger delta"
                )
        return shape * (1.0 / largest_in_few_tries(leaked, low, high, alpha, close))

    def refined(self, shape: FloatArray, close: float) -> FloatArray:
        """The least multiple of `shape` that satisfies alpha; searched on a coarse grid first, which rounds up more."""
        with suppress(PlanError):
            shape = self.least(shape, NEAR, coarser=4)
        return self.least(shape, close)


def _least_scales(sought: _Calibration, *, equal: bool) -> FloatArray:
    """The scales with the least mean that were found: constant or, with a horizon, shaped by derivatives."""
    request = sought.request
    scales = sought.refined(np.full(request.n_shares, sought.alone), CLOSE_SCALES)
    if equal or request.n_shares == 1:
        return scales
    shape = least_shape(request.users, sought.noise, scales, alpha=request.alpha, delta=sought.delta)
    if shape is None or shape.mean() >= scales[0]:
        return scales
    with suppress(PlanError):
        return min(sought.least(shape, CLOSE_SCALES), scales, key=np.mean)
    return scales


def _tightened(sought: _Calibration, scales: FloatArray) -> FloatArray:
    """Less of the same noise, as much less as a curve for each pair allows; the search begins with the result of one curve."""
    request, method = sought.request, sought.method()

    best = min(sought.refined(scales, NEAR), scales, key=np.mean)
    # Times at most that scales are shaped again, by what each pair leaks at every step
    for _ in range(2 if request.n_shares > 1 else 0):
        leaks = np.stack([method.temporal(user, sought.releases(best)) for user in request.users])
        shape = least_shape(request.users, sought.noise, best, alpha=request.alpha, delta=sought.delta, tighter=leaks)
        if shape is None or shape.mean() >= best.mean():
            break
        found = sought.refined(shape, NEAR)
        if found.mean() >= best.mean() * (1.0 - NEAR):
            break
        best = found
    return best


def _require_forgetting(request: Request, accounting: ApproximateDP) -> None:
    """Constant matrices that distinguish no two states with certainty: otherwise no noise suffices over an infinite horizon."""
    for user, one in enumerate(request.users):
        if any(matrix.leakage_profile().contraction(1.0) >= 1.0 for matrix in one.matrices):
            raise request.nothing_lasts(user, accounting=accounting)
