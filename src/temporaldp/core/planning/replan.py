"""A new plan for the rest of a release."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.errors import BudgetError, InputError, PlanError
from temporaldp.base.values import FloatArray
from temporaldp.core.accounting import LeakageSeries, TemporalAccountant
from temporaldp.core.accounting.margins import FILTER_MARGIN, STEP_MARGIN
from temporaldp.core.accounting.monotone_search import bisected
from temporaldp.core.planning.budget import plan_of
from temporaldp.core.planning.budget_plan import BudgetPlan
from temporaldp.core.planning.exact_program import least_noise
from temporaldp.core.planning.optimal import Measure, measure, optimise
from temporaldp.core.planning.plan import Objective, Optimality
from temporaldp.core.planning.request import Request, common_planner

Whole: TypeAlias = Callable[[FloatArray], LeakageSeries]
Holds: TypeAlias = Callable[[FloatArray], bool]
Admitted: TypeAlias = Callable[[FloatArray], FloatArray]


def replan(
    accountant: TemporalAccountant,
    *,
    objective: Objective = "mean_absolute_error",
    weights: ArrayLike | None = None,
) -> BudgetPlan:
    """Plan the remaining steps of a release, given the budgets that an accountant has counted.

    Where less was spent than planned, the rest gets more. The plan covers the whole horizon: the budgets spent, then those
    of the future steps, by the accountant's own method. The accountant admits them one after the other. By the exact leakage
    it is a local optimum, by the paper's bound an optimum; by any other method, the plan for the whole horizon with its future
    steps raised as far as the level allows. If the future steps of `plan_budget` are still admitted, the new ones are no worse.

    Parameters
    ----------
    accountant : TemporalAccountant
        With an alpha and a horizon, and without a reserve. Not changed.
    objective : {"mean_absolute_error", "mean_squared_error"}
        Objective over the future steps: the mean of 1 / epsilon, or of 1 / epsilon^2.
    weights : array_like, shape (T - number of steps spent,), optional
        Weight of each future step, >= 0. A step of weight 0 gets budget 0.

    Returns
    -------
    BudgetPlan
        Its `optimality` is that of the future steps, without an `error_bound`.

    Raises
    ------
    BudgetError
        No steps are left, or the weights are not admissible.
    InputError
        The accountant has no alpha or horizon, or keeps a reserve.
    PlanError
        No budget is left.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix, plan_budget
    >>> matrix = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    >>> adversary = Adversary(matrix, matrix)
    >>> plan = plan_budget(adversary, alpha=1.0, horizon=4)
    >>> accountant = TemporalAccountant(adversary, alpha=1.0, horizon=4)
    >>> accountant = accountant.spend(0.1)  # less than the plan's first budget
    >>> rest = replan(accountant)
    >>> plan.epsilons.round(3), rest.epsilons.round(3)
    (array([0.465, 0.354, 0.354, 0.465]), array([0.1  , 0.499, 0.377, 0.496]))
    >>> from temporaldp.publish.release import release_snapshots
    >>> with accountant:
    ...     result = release_snapshots(lambda count, epsilon: count, [7, 8, 9], rest, start=len(accountant))
    >>> result.epsilons.round(3), len(accountant)
    (array([0.499, 0.377, 0.496]), 4)
    """
    alpha, rest = _checked(accountant)
    by = measure(objective, weights, rest)
    spent = accountant.spent
    request = Request(accountant.population, alpha, accountant.horizon, accountant.asked_accounting)

    def whole(epsilons: FloatArray) -> LeakageSeries:
        return accountant.leakage(np.concatenate((spent, epsilons)))

    def holds(epsilons: FloatArray) -> bool:
        return accountant.admits(epsilons, last=True) and whole(epsilons).worst <= alpha * (1.0 - rest * STEP_MARGIN)

    def admitted(epsilons: FloatArray) -> FloatArray:
        for halving in range(53):
            tail = epsilons * (1.0 - (0.0 if halving == 0 else 2.0 ** (halving - 53)))
            if holds(tail):
                return tail
        raise _nothing_left(alpha, rest)

    tail, planner = _constant(accountant, by, admitted), common_planner(accountant.methods)
    if rest > 1 and planner == "by derivatives":
        tail = _exactly(request, by, spent, tail, admitted, whole)
    elif rest > 1 and planner == "by recursion":
        tail = _by_paper(request, by, len(spent), tail, admitted, list(accountant.filters))
    elif rest > 1:
        tail = _as_planned(request, by, tail, admitted, holds)
    return BudgetPlan(
        leakage=whole(tail),
        **request.facts,
        epsilons=np.concatenate((spent, tail)),
        method="optimal",
        optimality=Optimality(by.objective, by.error(tail)),
    )


def _exactly(
    request: Request, by: Measure, spent: FloatArray, start: FloatArray, admitted: Admitted, whole: Whole
) -> FloatArray:
    """The steps to come, as large as the exact leakage of all steps allows; no worse than `start`."""
    n_spent = len(spent)
    found = least_noise(
        list(request.users),
        request.alpha * (1.0 - 4.0 * FILTER_MARGIN),
        Measure(by.objective, np.concatenate((np.zeros(n_spent), by.weights))),
        np.concatenate((spent, (1.0 - 4.0 * FILTER_MARGIN) * start)),
        lambda epsilons: whole(epsilons[n_spent:]),
        n_spent,
    )
    return min(start, admitted(found[n_spent:]), key=by.error)


def _constant(accountant: TemporalAccountant, by: Measure, admitted: Admitted) -> FloatArray:
    """The largest budget that all published steps to come can have."""
    alpha, published = accountant.alpha or 0.0, by.weights > 0.0
    if len(published) == 1:
        level = accountant.remaining(last=True)
    else:  # a start need not be exact
        level = bisected(
            lambda one: accountant.admits(np.where(published, one, 0.0), last=True), 0.0, alpha, 0.0, most=45
        )
    if level <= 0.0:
        raise _nothing_left(alpha, len(published))
    return admitted(np.where(published, level, 0.0))


def _nothing_left(alpha: float, rest: int) -> PlanError:
    return PlanError(f"what was spent leaves nothing below alpha = {alpha:g} for the {rest} steps to come")


def _by_paper(
    request: Request,
    by: Measure,
    n_spent: int,
    start: FloatArray,
    admitted: Admitted,
    filters: list[Any],
) -> FloatArray:
    """The steps to come, optimal by the paper's bound; no worse than `start`."""
    after = [user.between(n_spent, len(by.weights)) for user in request.users]
    return optimise(after, request.alpha, by, [start], admitted, filters)[0]


def _as_planned(request: Request, by: Measure, start: FloatArray, admitted: Admitted, holds: Holds) -> FloatArray:
    """The steps to come by the plan for all steps, raised as far as the level allows; no worse than it and than `start`."""
    assert request.horizon is not None
    rest, high = len(start), request.alpha / request.most_promised
    weights = np.concatenate((np.full(request.horizon - rest, by.weights.mean()), by.weights))
    found = [start]
    with suppress(PlanError):  # there is none, or what was spent leaves less than half of it
        whole = plan_of(request, "optimal", measure(by.objective, weights, request.horizon)).epsilons
        found.append(admitted(np.where(by.weights > 0.0, whole[-rest:], 0.0)))
    best = min(found, key=by.error)
    # Relative precision of the factor and of the level
    best = best * bisected(lambda factor: holds(factor * best), 1.0, max(high / float(best.max()), 1.0), 1e-4)

    def levelled(level: float) -> FloatArray:
        return np.where(by.weights > 0.0, np.maximum(best, level), 0.0)

    return levelled(bisected(lambda level: holds(levelled(level)), 0.0, high, 1e-4))


def _checked(accountant: TemporalAccountant) -> tuple[float, int]:
    """Its alpha and the number of steps that are left."""
    if accountant.alpha is None or accountant.horizon is None:
        raise InputError("expected an accountant with alpha and horizon, which determine the remaining plan")
    if accountant.reserve > 0.0:
        raise InputError(
            f"the accountant keeps {accountant.reserve:g} nats per step in reserve, which a plan for its last steps would "
            "spend; make it with reserve=0"
        )
    if len(accountant) >= accountant.horizon:
        raise BudgetError(f"all {accountant.horizon} steps are over; none are left to plan")
    return accountant.alpha, accountant.horizon - len(accountant)
