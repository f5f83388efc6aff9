"""What an accountant is given, checked once: budgets, a reserve, a horizon."""

from __future__ import annotations

import math
from typing import Any

from temporaldp.accounting.protocol import Accounting
from temporaldp.correlation import Population
from temporaldp.errors import BudgetError
from temporaldp.mechanisms.distances import require_no_nearer
from temporaldp.mechanisms.events import epsilon_of
from temporaldp.values import LARGEST, whole_number


def checked_budget(epsilon: Any, accounting: Accounting[Any, Any]) -> float:
    """A budget in nats, 0 or more, also of an event of dp-accounting; `BudgetError` for anything else."""
    if type(epsilon).__module__.startswith("dp_accounting."):
        spent = epsilon_of(epsilon)
        if spent > 0.0:
            require_no_nearer(accounting.distances, repr(epsilon))
        return spent
    try:
        budget = math.nan if isinstance(epsilon, str | bytes | bool) else float(epsilon)
    except (TypeError, ValueError):
        budget = math.nan
    if not 0.0 <= budget <= LARGEST:
        raise BudgetError(
            f"expected epsilon to be a number from 0 to {LARGEST:g} nats, got {epsilon!r}; mechanisms are "
            "counted with accounting=ApproximateDP(delta)"
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
