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
from temporaldp.accounting.curve_supremum import curve_limits
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
            return float(leakage(scales).worst)
        release = (histogram_noise(kind, float(scales[0])),)
        return max(curve_limits(one, release, delta, fine, beyond=alpha).temporal for _, one in users)

    if horizon is None:
        _require_forgetting(users, alpha)
    constant = np.ones(horizon or 1)
    candidates = [_least(constant, worst, alpha, _alone(kind, alpha, delta))]
    if shape is not None and np.ptp(shape) > 0.0:
        for power in POWERS:
            with suppress(PlanError):
                bent = (shape.max() / shape) ** power
                candidates.append(_least(bent, worst, alpha, _alone(kind, alpha, delta)))
    scales = min(candidates, key=lambda each: float(each.mean()))
    found = leakage(scales)
    epsilons = np.array([found.epsilon]) if horizon is None else found.epsilons
    return BudgetPlan(
        epsilons,
        alpha,
        horizon,
        "calibrated",
        found,
        users[0][1].states,
        delta=delta,
        mechanism=kind,
        scales=scales,
    )


def _require_forgetting(users: Users, alpha: float) -> None:
    """Constant matrices, none of which tells two values apart for certain: else nothing lasts, however much noise there is."""
    for name, one in users:
        leakage_supremum(one, epsilon=alpha)  # refuses matrices that vary
        if any(matrix.leakage_profile().contraction(1.0) >= 1.0 for matrix in one.matrices):
            raise PlanError(nothing_lasts(one, name, alpha, None))


def _alone(kind: Noise, alpha: float, delta: float) -> float:
    """A scale, up to twice too large, at which a single release leaks at most alpha: where the search begins."""
    scale = SMALLEST_SCALE
    while epsilon_of_one(histogram_noise(kind, scale), delta=delta) > alpha and scale < LARGEST_SCALE:
        scale *= 2.0
    return scale


def _least(shape: FloatArray, worst: Worst, alpha: float, start: float) -> FloatArray:
    """`shape` times the least factor that holds alpha, to 1e-5; evaluated there."""
    low, high = 0.5 * start, start
    while worst(shape * high) > alpha:
        low, high = high, 2.0 * high
        if high * float(shape.max()) > LARGEST_SCALE:
            raise PlanError(
                f"no noise up to a scale of {LARGEST_SCALE:g} holds alpha = {alpha:g} for so long at this delta: the "
                "correlation is too strong. Give a (shorter) horizon T, a larger alpha, or a larger delta"
            )
    while low > SMALLEST_SCALE and worst(shape * low) <= alpha:
        low, high = 0.5 * low, low
    while high - low > CLOSE * high:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if worst(shape * middle) <= alpha else (middle, high)
    return shape * high
