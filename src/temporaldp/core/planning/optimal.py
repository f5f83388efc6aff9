"""The optimal plan: least noise, by the user's measure, among all budgets that satisfy alpha at every step."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.errors import BudgetError, InputError, PlanError
from temporaldp.base.values import FloatArray, real_array
from temporaldp.core.accounting.monotone_search import bisected
from temporaldp.core.accounting.paper.online import PaperFilter
from temporaldp.core.correlation import Adversary
from temporaldp.core.planning.arrivals import arrivals, undominated
from temporaldp.core.planning.barrier import PaperProgram, minimise
from temporaldp.core.planning.bound import lower_bound
from temporaldp.core.planning.plan import Objective

POWERS: dict[str, int] = {"mean_absolute_error": 1, "mean_squared_error": 2}


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """Objective of a plan: the weighted mean over steps of ``1 / epsilon`` or ``1 / epsilon^2``.

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
    equal = np.ones(horizon)
    given = real_array(equal if weights is None else weights, "weights", shape=equal.shape, ge=0.0, error=BudgetError)
    if not given.any():
        raise BudgetError("expected at least one weight above 0")
    share = given / given.max()
    return Measure("mean_squared_error" if POWERS[objective] == 2 else "mean_absolute_error", share / share.sum())


def optimise(
    users: list[Adversary],
    alpha: float,
    by: Measure,
    starts: list[FloatArray],
    within_level: Callable[[FloatArray], FloatArray],
    filters: list[PaperFilter] | None = None,
) -> tuple[FloatArray, float]:
    """The best budgets found from the given plans, never worse than any of them, and a certified lower bound of the measure.

    Parameters
    ----------
    users : list of Adversary
    alpha : float
    by : Measure
    starts : list of array, shape (T,)
        Plans that satisfy alpha by this package's accounting.
    within_level : callable
        Shrinks budgets by ulps until this package's accounting computes at most alpha.
    filters : list of PaperFilter, optional
        State of each user after earlier steps. The bound is then that of the level alone: each step spends at most alpha.
    """
    horizon = len(by.weights)
    power = POWERS[by.objective]
    if horizon == 1 and filters is None:
        return np.array([alpha]), by.error(np.array([alpha]))
    on = by.weights > 0.0
    program = _program(users, alpha, by, filters)
    # The solver raises weights to at least this share of the largest; the measure does not
    eased = replace(program, weights=np.where(on, np.maximum(by.weights, 1e-20 * by.weights.max()), 0.0))
    # Longer horizons start from the two best plans only
    long = horizon > 1_000
    known = [np.where(on, start, 0.0) for start in starts]  # spending less at some steps keeps them below alpha
    candidates, bounds = list(known), []
    if np.ptp(by.weights[on]) > 0.0:
        # Without correlation the best budgets are proportional to ``weight^(1 / (p + 1))``; powers around it make
        # further starts
        powers = (1.0 / (power + 1), 1.0, 0.5, 0.25)
        known += [
            _raised(program, np.where(on, eased.weights**share, 0.0)) for share in (powers[:1] if long else powers)
        ]
    # A start with a smaller budget has derivatives out of the range of doubles
    inside = [start for start in known if start[on].min() >= 1e-40 * alpha]
    ranked = sorted(inside, key=by.error)[: 2 if long else None]
    plans = [] if long else known[len(candidates) :]
    for start in ranked:
        # Shares of a known plan that the solver starts from: inside, so that no arrival is tight. Leakage is not
        # convex, and starts differ in the local optimum that they lead to where weights are uneven and alpha is large.
        for share in (0.9, 0.5)[: 1 if long else None]:
            epsilons, multipliers = minimise(eased, share * start)
            if filters is None:
                bounds.append(lower_bound(program, multipliers))
            plans.append(epsilons)
    for plan in plans:
        with suppress(PlanError):  # where rounding cannot be undone, another plan is used
            candidates.append(within_level(plan))
    best = min(candidates, key=by.error)
    error = by.error(best)
    # A bound above a plan that satisfies alpha would be a rounding error, and is ignored; no step spends more than alpha.
    believed = [bound for bound in bounds if bound <= error * (1.0 + 1e-9)]
    return best, min(max([*believed, alpha**-power]), error)


def _program(users: list[Adversary], alpha: float, by: Measure, filters: list[PaperFilter] | None) -> PaperProgram:
    """The problem, with what earlier steps sent on and the room that they left."""
    horizon = len(by.weights)
    worst_users = undominated(users)
    levels = np.full((len(worst_users), horizon), alpha)
    found = arrivals(worst_users, alpha)
    if filters is not None:
        known = {id(user): own for user, own in zip(users, filters, strict=True)}
        left = [known[id(user)] for user in worst_users]
        with_backward = {c.user for c in found if c.backward}  # the others have no variable that could arrive
        levels[:, 0] = [at.room + (at.arrived if user in with_backward else 0.0) for user, at in enumerate(left)]
        found = [replace(c, initial=left[c.user].arrived) if c.backward else c for c in found]
    return PaperProgram(alpha, by.weights, POWERS[by.objective], found, levels)


def _raised(program: PaperProgram, shape: FloatArray) -> FloatArray:
    """Budgets of this shape, as large as alpha allows by the solver's own recursion."""

    def holds(factor: float) -> bool:
        epsilons = factor * shape
        arrived = [arrival.arrived(epsilons) for arrival in program.arrivals]
        sums = [epsilons + sum(v for v, c in zip(arrived, program.arrivals, strict=True) if c.user == user)
                for user in range(len(program.levels))]  # fmt: skip
        return bool((np.array(sums) <= program.levels).all())

    # TPL lies between the largest budget and the sum of all: a bracket, where nothing was spent before.
    low, high = program.alpha / float(shape.sum()), program.alpha / float(shape.max())
    low = low if holds(low) else 0.0
    return bisected(holds, low, high, 0.0, most=20) * shape  # a start need not be exact
