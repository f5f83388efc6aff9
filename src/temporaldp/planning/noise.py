"""Noise for (alpha, delta)-DP_T: the least scale that holds, by evaluating what leaks and moving the scale.

Leakage falls as the noise grows, so the least constant scale is found by halving, and the safe side is returned. Where the
horizon is known, less noise can do at the ends: powers of the shape of the optimal pure budgets are tried too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import DiscreteGaussianNoise, DiscreteLaplaceNoise, leakage_supremum, temporal_leakage
from temporaldp.accounting.curve import CurveAccounting
from temporaldp.accounting.mechanisms import epsilon_of_one
from temporaldp.errors import InputError, PlanError
from temporaldp.planning.holding import Users, nothing_lasts, together
from temporaldp.planning.plan import BudgetPlan, Noise

FloatArray = NDArray[np.float64]
Worst: TypeAlias = Callable[[FloatArray], float]

CLOSE = 1e-5
"""Relative distance from the least scale at which a search ends: always on the side that holds."""

LARGEST_SCALE = 50_000.0
"""Counts. If so much noise does not hold the level, none is planned."""

ROUGH = 3e-3
"""The same while shapes are compared."""

POWERS = (0.1, 0.5, 1.0)
"""Of the shape of pure budgets: what is learnt at a delta adds up more slowly, so that less is to be gained at the ends."""

SMALLEST_SCALE = 0.05
"""Counts. Less noise than this is none: a count is right with all but a probability of e^-20."""

GRID = 2048.0
"""Points of the grid of privacy losses up to alpha: the same for every scale, so that leakage falls as noise grows."""


def histogram_noise(kind: Noise, scale: float) -> DiscreteGaussianNoise | DiscreteLaplaceNoise:
    """The noise of a histogram under replacement: one count falls by 1, another rises by 1."""
    return DiscreteGaussianNoise(scale) if kind == "gaussian" else DiscreteLaplaceNoise(scale)


def checked_noise(kind: str | None) -> Noise:
    """The name of a kind of noise."""
    if kind not in get_args(Noise):
        raise InputError(f"expected mechanism to be 'gaussian' or 'laplace', got {kind!r}")
    return "gaussian" if kind == "gaussian" else "laplace"


def planned_discretization(alpha: float) -> float:
    """The grid on which a plan for alpha is held, in nats: who checks the plan on another may find a little more."""
    return min(alpha / GRID, 0.01)


def noise_plan(
    users: Users, alpha: float, delta: float, horizon: int | None, kind: Noise, shape: FloatArray | None
) -> BudgetPlan:
    """The plan with the least mean scale that was found.

    Parameters
    ----------
    users : list of (name, Adversary)
    alpha, delta : float
    horizon : int or None
    kind : {"gaussian", "laplace"}
    shape : array, shape (T,), or None
        Budgets to whose inverses scales may be proportional.
    """
    everyone = together(users)
    fine = planned_discretization(alpha)

    def leakage(scales: FloatArray) -> Any:
        made = [histogram_noise(kind, float(scale)) for scale in scales]
        if horizon is None:
            return leakage_supremum(everyone, mechanism=made[0], delta=delta, discretization=fine)
        return temporal_leakage(everyone, mechanisms=made, delta=delta, discretization=fine)

    def worst(scales: FloatArray) -> float:
        if horizon is not None:
            return _worst_of(users, [histogram_noise(kind, float(scale)) for scale in scales], delta, fine)
        release = (histogram_noise(kind, float(scales[0])),)
        way = CurveAccounting(delta, fine, beyond=alpha)
        return way.limits([one for _, one in users], (release,)).temporal

    if horizon is None:
        _require_forgetting(users, alpha)
    scales = np.ones(horizon or 1) * _least(np.ones(horizon or 1), worst, alpha, _alone(kind, alpha, delta), CLOSE)
    if shape is not None and np.ptp(shape) > 0.0:
        bent = {power: (shape.max() / shape) ** power for power in POWERS}
        roughly = {}
        for power, each in bent.items():
            with suppress(PlanError):
                roughly[power] = _least(each, worst, alpha, float(scales[0] / each.mean()), ROUGH)
        best = min(roughly, key=lambda power: roughly[power] * float(bent[power].mean()), default=None)
        if best is not None and roughly[best] * float(bent[best].mean()) < float(scales[0]):
            scales = bent[best] * _least(
                bent[best], worst, alpha, roughly[best], CLOSE, low=roughly[best] * (1.0 - ROUGH)
            )
    found = leakage(scales)
    while found.worst > alpha:  # the same sums in the same order, so it should not happen
        scales = scales * (1.0 + CLOSE)
        found = leakage(scales)
    epsilons = np.array([found.epsilon]) if horizon is None else found.epsilons
    return BudgetPlan(
        epsilons,
        alpha,
        horizon,
        "calibrated",
        found,
        users[0][1].states,
        bound="curve",
        delta=delta,
        mechanism=kind,
        scales=scales,
    )


def _worst_of(
    users: Users, noise: list[DiscreteGaussianNoise | DiscreteLaplaceNoise], delta: float, discretization: float
) -> float:
    """What `temporal_leakage` says of the worst step, without the lower run that tells how much of it is discretisation."""
    releases = tuple((one,) for one in noise)
    way = CurveAccounting(delta, discretization)
    found = max(float(way.upper_run(one, releases).epsilons("temporal").max()) for _, one in users)
    if any(math.isinf(one.pure_epsilon) for one in noise):
        return found
    pure = temporal_leakage(together(users), epsilons=[one.pure_epsilon for one in noise], bound="paper")
    return min(found, pure.worst)


def _require_forgetting(users: Users, alpha: float) -> None:
    """Constant matrices, none of which tells two values apart for certain: else nothing lasts, however much noise there is."""
    for name, one in users:
        leakage_supremum(one, epsilon=alpha, bound="paper")  # refuses matrices that vary
        if any(matrix.leakage_profile().contraction(1.0) >= 1.0 for matrix in one.matrices):
            raise PlanError(nothing_lasts(one, name, alpha, "curve"))


def _alone(kind: Noise, alpha: float, delta: float) -> float:
    """A scale, up to twice too large, at which a single release leaks at most alpha: where the search begins."""
    scale = SMALLEST_SCALE
    while epsilon_of_one(histogram_noise(kind, scale), delta=delta) > alpha and scale < LARGEST_SCALE:
        scale *= 2.0
    return scale


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
