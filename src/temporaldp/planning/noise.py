"""Noise for (alpha, delta)-DP_T: the least scale that holds, by evaluating what leaks and moving the scale.

Leakage falls as the noise grows, so the least constant scale is found by halving, and the safe side is returned. Where the
horizon is known, less noise can do at the ends: powers of the shape of the optimal pure budgets are tried too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import LeakageSeries, LeakageSupremum, leakage_supremum, temporal_leakage
from temporaldp.accounting.curve import CurveAccounting
from temporaldp.accounting.curves import checked_delta
from temporaldp.accounting.mechanisms import epsilon_of_one
from temporaldp.correlation import Adversaries
from temporaldp.errors import PlanError
from temporaldp.planning.histogram_noise import Noise, checked_noise, histogram_profile
from temporaldp.planning.optimal import measure
from temporaldp.planning.paper_plan import paper_plan
from temporaldp.planning.plan import NoisePlan, planned_discretization
from temporaldp.planning.request import Request

FloatArray = NDArray[np.float64]
Worst: TypeAlias = Callable[[FloatArray], float]

CLOSE = 1e-5
"""Relative distance from the least scale at which a search ends: always on the side that holds."""

LARGEST_SCALE = 50_000.0
"""Counts. If so much noise does not hold the level, none is planned."""

ROUGH = 3e-3
"""Relative distance at which a search ends while shapes are compared."""

POWERS = (0.1, 0.5, 1.0)
"""Of the shape of pure budgets: what is learnt at a delta adds up more slowly, so that less is to be gained at the ends."""

SMALLEST_SCALE = 0.05
"""Counts. Less noise than this is none: a count is right with all but a probability of e^-20."""


def plan_noise(
    adversary: Adversaries, *, alpha: float, delta: float, noise: Noise = "gaussian", horizon: int | None = None
) -> NoisePlan:
    """Choose the least noise on a histogram whose temporal leakage at a delta stays at or below alpha at every step.

    The scale is constant or, with a horizon, less at the ends. It is an upper bound of the least one, by rounding and by the
    accounting (docs/theory.md, section 9): the release is (alpha, delta)-DP_T.

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        Several: noise that holds for each of them.
    alpha : float, > 0
        Level to hold, in nats, under substitution of one person's value.
    delta : float, between 0 and 1
        At which leakage is counted.
    noise : {"gaussian", "laplace"}
        Discrete Gaussian or discrete Laplace noise on every count.
    horizon : int, optional
        Number of steps T. Without it, the plan holds for ever.

    Raises
    ------
    BudgetError
        alpha, delta or the horizon is not admissible, or contradicts the adversary's matrices.
    InputError
        There is no such noise.
    PlanError
        No noise holds alpha.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix
    >>> adversary = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]), TransitionMatrix([[0.8, 0.2], [0.1, 0.9]]))
    >>> plan_noise(adversary, alpha=1.0, delta=1e-6).scales.round(2)
    array([9.55])
    """
    request = Request.checked(adversary, alpha, horizon)
    sought = _Calibration(request, checked_delta(delta), checked_noise(noise))
    if horizon is None:
        _require_forgetting(request)
    scales = _least_scales(sought)
    leakage = sought.leakage(scales)
    while leakage.worst > request.alpha:  # the same sums in the same order, so it should not happen
        scales = scales * (1.0 + CLOSE)
        leakage = sought.leakage(scales)
    return NoisePlan(leakage=leakage, alpha=request.alpha, source=request.source, noise=sought.noise, scales=scales)


@dataclass(frozen=True, slots=True, eq=False)
class _Calibration:
    """What is looked for: one kind of noise, as little of it as holds a level at a delta."""

    request: Request
    delta: float
    noise: Noise

    @property
    def discretization(self) -> float:
        """The grid of privacy losses."""
        return planned_discretization(self.request.alpha)

    def leakage(self, scales: FloatArray) -> LeakageSeries | LeakageSupremum:
        """By the public accounting."""
        made = self._profiles(scales)
        everyone, delta, h = self.request.population, self.delta, self.discretization
        if self.request.horizon is None:
            return leakage_supremum(everyone, mechanism=made[0], delta=delta, discretization=h)
        return temporal_leakage(everyone, mechanisms=made, delta=delta, discretization=h)

    def worst(self, scales: FloatArray) -> float:
        """The worst leakage that `leakage` tells, without the lower run that tells how much of it is discretisation."""
        made = tuple((one,) for one in self._profiles(scales))
        way = CurveAccounting(self.delta, self.discretization, beyond=self.request.alpha)
        if self.request.horizon is None:
            return way.limits(self.request.users, made).temporal
        return way.worst(self.request.users, made)

    def alone(self) -> float:
        """A scale, up to twice too large, at which a single release leaks at most alpha: where a search begins."""
        scale = SMALLEST_SCALE
        while (
            epsilon_of_one(histogram_profile(self.noise, scale), delta=self.delta) > self.request.alpha
            and scale < LARGEST_SCALE
        ):
            scale *= 2.0
        return scale

    def _profiles(self, scales: FloatArray) -> list[Any]:
        return [histogram_profile(self.noise, scale) for scale in scales.tolist()]


def _least_scales(sought: _Calibration) -> FloatArray:
    """The scales with the least mean that were found: constant, or bent like the optimal budgets."""
    request = sought.request
    flat = np.ones(request.n_shares)
    scales = flat * _least(flat, sought.worst, request.alpha, sought.alone(), CLOSE)
    roughly: list[tuple[float, FloatArray]] = []
    for shape in _shapes(request):
        with suppress(PlanError):
            roughly.append((_least(shape, sought.worst, request.alpha, float(scales[0] / shape.mean()), ROUGH), shape))
    factor, shape = min(roughly, key=lambda found: found[0] * float(found[1].mean()), default=(math.inf, flat))
    if factor * float(shape.mean()) >= float(scales[0]):
        return scales
    return shape * _least(shape, sought.worst, request.alpha, factor, CLOSE, low=factor * (1.0 - ROUGH))


def _shapes(request: Request) -> list[FloatArray]:
    """Scales relative to the least, bent by powers of the optimal budgets; none where these are the same at every step."""
    if request.n_shares == 1:
        return []
    with suppress(PlanError):
        budgets = paper_plan(request, "optimal", measure("mean_absolute_error", None, request.n_shares)).epsilons
        if np.ptp(budgets) > 0.0:
            return [(budgets.max() / budgets) ** power for power in POWERS]
    return []


def _require_forgetting(request: Request) -> None:
    """Constant matrices, none of which tells two values apart for certain: else nothing lasts, however much noise there is."""
    for user, one in enumerate(request.users):
        if any(matrix.leakage_profile().contraction(1.0) >= 1.0 for matrix in one.matrices):
            raise request.nothing_lasts("curve", user)


def _least(
    shape: FloatArray, worst: Worst, alpha: float, start: float, close: float, *, low: float | None = None
) -> float:
    """The least factor by which `shape` holds alpha, to a relative `close`, on the side that holds; looked for from `start`."""
    high, low = start, 0.5 * start if low is None else low
    while worst(shape * high) > alpha:
        low, high = high, 2.0 * high
        if high * float(shape.max()) > LARGEST_SCALE:
            raise PlanError(
                f"no noise up to a scale of {LARGEST_SCALE:g} holds alpha = {alpha:g} for so long at this delta: the "
                "correlation is too strong. Give a (shorter) horizon T, a larger alpha, or a larger delta"
            )
    while low > SMALLEST_SCALE and worst(shape * low) <= alpha:
        low, high = 0.5 * low, low
    while high - low > close * high:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if worst(shape * middle) <= alpha else (middle, high)
    return high
