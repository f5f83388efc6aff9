"""The optimal plan: least noise, by the user's measure, among all budgets that hold alpha at every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.correlation import Adversary
from temporaldp.errors import BudgetError, InputError
from temporaldp.planning.barrier import Program, minimise
from temporaldp.planning.bound import lower_bound
from temporaldp.planning.carriers import carriers, undominated

FloatArray = NDArray[np.float64]
Objective: TypeAlias = Literal["mean_absolute_error", "mean_squared_error"]

POWERS: dict[str, int] = {"mean_absolute_error": 1, "mean_squared_error": 2}

START_SHARE = 0.9
"""Share of a known plan that the solver starts from: well inside, so that no constraint is tight."""

MOST_STEPS_FOR_EVERY_START = 2_000
"""Longer horizons start from the best known plan only; every start has given the same optimum so far."""


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """What a plan is judged by: the weighted mean over steps of ``1 / epsilon`` or ``1 / epsilon^2``.

    For Laplace noise of sensitivity s, the expected absolute error of a count is s times the first, the expected squared error
    2 s^2 times the second.
    """

    objective: Objective
    weights: FloatArray

    def error(self, epsilons: FloatArray) -> float:
        """The measure of these budgets; inf where a step with a weight has none."""
        on = self.weights > 0.0
        with np.errstate(divide="ignore"):
            return float((self.weights[on] / epsilons[on] ** POWERS[self.objective]).sum())


def measure(objective: str, weights: ArrayLike | None, horizon: int) -> Measure:
    """A checked measure over `horizon` steps; weights sum to 1."""
    if objective not in POWERS:
        raise InputError(f"expected objective to be one of {', '.join(POWERS)}, got {objective!r}")
    given = np.ones(horizon) if weights is None else np.array(weights, dtype=np.float64)
    if given.shape != (horizon,):
        raise BudgetError(f"expected {horizon} weights, one per step, got an array of shape {given.shape}")
    if not (np.isfinite(given) & (given >= 0.0)).all() or not given.any():
        raise BudgetError("expected finite weights >= 0, and at least one above 0")
    return Measure("mean_squared_error" if POWERS[objective] == 2 else "mean_absolute_error", given / given.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """Budgets, and a number that the measure of no plan lies below."""

    epsilons: FloatArray
    bound: float


def optimise(
    users: list[Adversary],
    alpha: float,
    by: Measure,
    starts: list[FloatArray],
    held: Callable[[FloatArray], FloatArray],
) -> Optimum:
    """The best budgets found from the given plans, never worse than any of them, with a certified lower bound.

    Parameters
    ----------
    users : list of Adversary
    alpha : float
    by : Measure
    starts : list of array, shape (T,)
        Plans that hold alpha.
    held : callable
        Shrinks budgets by ulps until our own accounting says at most alpha.
    """
    horizon = len(by.weights)
    on = by.weights > 0.0
    if horizon == 1:
        return Optimum(np.array([alpha]), by.error(np.array([alpha])))
    worst_users = undominated(users)
    known = [np.where(on, start, 0.0) for start in starts]
    program = Program(alpha, by.weights, POWERS[by.objective], carriers(worst_users, alpha), len(worst_users))
    candidates, bounds = [held(plan) for plan in known], []
    ranked = sorted(known, key=by.error)
    for start in ranked if horizon <= MOST_STEPS_FOR_EVERY_START else ranked[:1]:
        solution = minimise(program, START_SHARE * start)
        candidates.append(held(solution.epsilons))
        bounds.append(lower_bound(program, solution.multipliers))
    best = min(candidates, key=by.error)
    # Nobody can spend more than alpha at a step: a bound that is always there.
    bounds.append(alpha ** -POWERS[by.objective])
    return Optimum(best, min(max(bounds), by.error(best)))
