"""Budgets for a population: for the person with the largest leakage, or for a share of people."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from temporaldp.base.display import bound
from temporaldp.base.errors import InputError, PlanError
from temporaldp.base.progress import effort, estimated, part
from temporaldp.base.values import FloatArray, compared_by_value, plural, real_number
from temporaldp.core.accounting.exact.estimate import BUDGETS, seconds_of_supremum
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.core.correlation import Adversary
from temporaldp.core.planning.budget import sustainable_budget


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class SharePlan:
    """One budget for every step that satisfies a level for a share of all people.

    Parameters
    ----------
    epsilon : float
        In nats; rounded down.
    alpha : float
    share : float
        Share of people whose leakage is at most alpha.
    names : tuple of str
        People whose leakage is above alpha, largest first.
    budgets : array, shape (m,)
        Sustainable budget of each person, ascending.
    """

    epsilon: float
    alpha: float
    share: float
    names: tuple[str, ...]
    budgets: FloatArray

    @property
    def sentence(self) -> str:
        """Limits of the plan, in words."""
        if not self.names:
            return f"no person leaks more than {plural(bound(self.alpha), 'nat')}"
        left = math.ceil(1e6 * (1.0 - self.share)) / 1e4
        return (
            f"{left:g} % of people ({len(self.names)}) leak more than {plural(bound(self.alpha), 'nat')} "
            "about some step: the plan does not satisfy the level for them"
        )


def plan_for_share(
    adversaries: Iterable[Adversary], *, alpha: float, share: float, accounting: Accounting[Any, Any] = EXACT
) -> SharePlan:
    """Largest sustainable budget under which at least a share of people leak at most alpha at every step.

    The sustainable budget of each person is computed; the plan is a quantile of them. A share of 1 is the plan of
    the person with the smallest. A user whose own budget is smaller than the plan's may exceed alpha.

    Parameters
    ----------
    adversaries : iterable of Adversary
        One per person, named.
    alpha : float, > 0
        In nats.
    share : float
        Above 0, at most 1.
    accounting : Accounting
        The effort of `Exact(effort=...)` is for all people together, in equal shares.

    Raises
    ------
    InputError, BudgetError, PlanError
        No share, no people, no admissible level, or no positive budget for so many.

    Examples
    --------
    >>> from temporaldp import Trajectories, estimate_adversaries
    >>> codes = [[0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 1, 0, 0, 1, 0, 1, -1, -1]]
    >>> walks = Trajectories(codes, states=["a", "b"], users=["Ann", "Ben"])
    >>> people = list(estimate_adversaries(walks, prior=1.0, per_user=True))
    >>> plan = plan_for_share(people, alpha=1.0, share=0.5)
    >>> plan.names, plan.sentence
    (('Ann',), '50 % of people (1) leak more than 1 nat about some step: the plan does not satisfy the level for them')
    """
    real_number(share, "share of people", gt=0.0, le=1.0)
    people, budgets = list(adversaries), []
    names = [str(k) if one.name is None else one.name for k, one in enumerate(people)]

    def seconds() -> float:
        return BUDGETS * seconds_of_supremum(people) if accounting.is_exact else 0.0

    with effort(accounting.effort), estimated("budgets of single users", seconds):
        for k, one in enumerate(people):
            with (
                part(k / len(people), (k + 1) / len(people), "budgets of single users"),
                effort(share=1.0 / (len(people) - k)),
            ):
                budgets.append(sustainable_budget(one, alpha=alpha, accounting=accounting))
    if not names:
        raise InputError("expected at least one adversary, got none")
    order = np.argsort(budgets, kind="stable")
    ascending = np.array(budgets)[order]
    bearing = max(math.ceil(share * len(names) - 1e-9), 1)  # people who must bear it
    epsilon = float(ascending[len(names) - bearing])
    if epsilon <= 0.0:
        raise PlanError(
            f"no budget is sustainable at alpha = {alpha:g} for {100.0 * share:g} % of the people: take a smaller share, or a "
            "horizon (plan_budget)"
        )
    above = tuple(names[k] for k in order[: int(np.searchsorted(ascending, epsilon))])
    return SharePlan(epsilon, alpha, 1.0 - len(above) / len(names), above, ascending)
