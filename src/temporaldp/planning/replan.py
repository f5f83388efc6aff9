"""The rest of a release, planned anew after some of it was spent."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting import LeakageSeries, TemporalAccountant, temporal_leakage
from temporaldp.accounting.standing import SPARE
from temporaldp.correlation import Adversary
from temporaldp.errors import BudgetError, InputError, PlanError
from temporaldp.planning.optimal import Objective, measure, optimise
from temporaldp.planning.plan import BudgetPlan

FloatArray = NDArray[np.float64]


def replan(
    accountant: TemporalAccountant,
    *,
    objective: Objective = "mean_absolute_error",
    weights: ArrayLike | None = None,
) -> BudgetPlan:
    """Plan the steps that are left, optimally, after what an accountant has seen spent.

    Where less was spent than planned, the rest gets more. The plan covers the whole horizon: what was spent, then the budgets
    of the steps to come. The accountant admits them one after the other, each as it stands in the plan.

    Parameters
    ----------
    accountant : TemporalAccountant
        With an alpha and a horizon, and without a reserve. Not changed.
    objective : {"mean_absolute_error", "mean_squared_error"}
        What is minimised over the steps to come: the mean of 1 / epsilon, or of 1 / epsilon^2.
    weights : array_like, shape (T - number of steps spent,), optional
        How much each step to come matters. A step of weight 0 gets budget 0.

    Returns
    -------
    BudgetPlan
        Its `error` is that of the steps to come; it has no `error_bound`. A lower bound on what could be spent.

    Raises
    ------
    BudgetError
        No steps are left, or the weights are not admissible.
    InputError
        The accountant has no alpha or horizon, or keeps a reserve.
    PlanError
        What was spent leaves nothing.

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
    >>> from temporaldp import release
    >>> with accountant:
    ...     result = release(lambda count, epsilon: count, [7, 8, 9], rest, start=len(accountant))
    >>> result.epsilons.round(3), len(accountant)
    (array([0.499, 0.377, 0.496]), 4)
    """
    alpha, rest = _checked(accountant)
    by = measure(objective, weights, rest)
    spent = accountant.ledger
    users = accountant.adversaries
    single = next(iter(users.values())) if len(users) == 1 else {str(name): one for name, one in users.items()}

    def whole(epsilons: FloatArray) -> LeakageSeries:
        return temporal_leakage(single, epsilons=np.concatenate((spent, epsilons)), bound="paper")

    def held(epsilons: FloatArray) -> FloatArray:
        for halving in range(53):
            tail = epsilons * (1.0 - (0.0 if halving == 0 else 2.0 ** (halving - 53)))
            if accountant.admits(tail, last=True) and whole(tail).worst <= alpha * (1.0 - rest * SPARE):
                return tail
        raise PlanError(f"what was spent leaves nothing below alpha = {alpha:g} for the {rest} steps to come")

    constant = accountant.remaining(rest, last=True)
    if constant <= 0.0:
        raise PlanError(f"what was spent leaves nothing below alpha = {alpha:g} for the {rest} steps to come")
    start = held(np.full(rest, constant))
    tail = start
    if rest > 1:
        after = [_to_come(one, rest) for one in users.values()]
        tail = optimise(after, alpha, by, [start], held, list(accountant.standings)).epsilons
    states = next(iter(users.values())).states
    return BudgetPlan(
        np.concatenate((spent, tail)),
        alpha,
        len(spent) + rest,
        "optimal",
        whole(tail),
        states,
        objective=by.objective,
        error=by.error(tail),
    )


def _to_come(adversary: Adversary, rest: int) -> Adversary:
    """What the adversary knows of the transitions between the steps to come."""
    known = (adversary.backward, adversary.forward)
    return Adversary(*(one[1 - rest :] if isinstance(one, tuple) else one for one in known))


def _checked(accountant: TemporalAccountant) -> tuple[float, int]:
    """Its alpha and the number of steps that are left."""
    if accountant.alpha is None or accountant.horizon is None:
        raise InputError("expected an accountant with alpha and horizon, so that there is something to plan for")
    if accountant.reserve > 0.0:
        raise InputError(
            f"the accountant keeps {accountant.reserve:g} nats a step in reserve, which a plan for its last steps would spend; "
            "make it with reserve=0"
        )
    if len(accountant) >= accountant.horizon:
        raise BudgetError(f"all {accountant.horizon} steps are over; none are left to plan")
    return accountant.alpha, accountant.horizon - len(accountant)
