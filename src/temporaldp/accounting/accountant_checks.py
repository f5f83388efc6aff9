"""What an accountant is given, checked once: budgets, a reserve, a horizon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from temporaldp.accounting.protocol import budgets, listed
from temporaldp.correlation import Population
from temporaldp.errors import BudgetError
from temporaldp.mechanisms.events import release_from
from temporaldp.values import LARGEST, whole_number


def checked_budget(epsilon: Any) -> float:
    """A budget in nats, 0 or more; `BudgetError` for anything else."""
    try:
        budget = math.nan if isinstance(epsilon, str | bytes | bool) else float(epsilon)
    except (TypeError, ValueError):
        budget = math.nan
    if not 0.0 <= budget <= LARGEST:
        raise BudgetError(
            f"expected epsilon to be a number from 0 to {LARGEST:g} nats, got {epsilon!r}; mechanisms are counted at a delta"
        )
    return budget


def checked_reserve(reserve: float | None, alpha: float | None) -> float | None:
    """A reserve in nats, if there is one; `BudgetError` if it is none, or kept below no level."""
    if reserve is None:
        return None
    if not 0.0 <= reserve <= LARGEST:
        raise BudgetError(f"expected a reserve from 0 to {LARGEST:g} nats, got {reserve!r}")
    if alpha is None and reserve:
        raise BudgetError("a reserve is kept below a level: give alpha as well, or leave the reserve out")
    return float(reserve)


def checked_horizon(population: Population, horizon: int | None) -> int | None:
    """The number of steps, from what is given and what the matrices serve; `BudgetError` if they differ."""
    known = None if horizon is None else whole_number(horizon, "horizon", least=1, error=BudgetError)
    for name, user in population:
        serves = user.n_steps
        if serves is not None and known is not None and serves != known:
            who = "the adversary" if name is None else f"adversary {name!r}"
            raise BudgetError(f"{who} has matrices for {serves} steps, but the horizon is {known}")
        known = known if serves is None else serves
    return known


def checked_releases(given: ArrayLike | Sequence[Any], delta: float) -> list[Any]:
    """What is published at each of some steps: budgets in nats, or at a delta releases; `BudgetError` for anything else."""
    if not delta:
        return list(budgets(given).tolist())
    return [release_from(one) for one in listed(given, None)]
