"""Release of snapshots by any differentially private mechanism: one call per step, with its planned budget or noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from temporaldp.base.display import bound
from temporaldp.base.errors import BudgetError
from temporaldp.base.values import FloatArray, compared_by_value, copy_in, sum_up
from temporaldp.core.accounting import accounting_blocks
from temporaldp.core.planning import Plan

Snapshot = TypeVar("Snapshot")
Output = TypeVar("Output")


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Release(Generic[Output]):
    """Outputs of a release and the budget spent at each step.

    Parameters
    ----------
    outputs : tuple of length T
        One for each step, of the mechanism's own type; None for a step without a budget.
    epsilons : array, shape (T,)
        Budget of each step in nats, as the mechanism reports it: at most that of the plan. Under a noise plan, the epsilon of
        the plan at its delta.
    """

    outputs: tuple[Output | None, ...]
    epsilons: FloatArray

    def __post_init__(self) -> None:
        copy_in(self, "epsilons")

    def __repr__(self) -> str:
        return f"Release({len(self.outputs)} steps, spent {bound(sum_up(self.epsilons))} nats in all)"


def release_snapshots(
    mechanism: Callable[[Snapshot, float], Output], snapshots: Iterable[Snapshot], plan: Plan, *, start: int = 0
) -> Release[Output]:
    """Run a mechanism once per snapshot under a plan, so that every step satisfies the plan's alpha.

    The paper's conversion of any DP mechanism into one with alpha-DP_T (Section V). All snapshots are read, and their number
    is checked against the plan, before the first noise is drawn.

    Parameters
    ----------
    mechanism : callable (snapshot, epsilon) -> output, or under a noise plan (snapshot, scale) -> output
        epsilon-DP under replacement of one person's state in the snapshot, with fresh randomness at every call; this
        cannot be checked here. If it has a method ``epsilon_spent(epsilon)``, that is what counts as spent, otherwise the
        budget itself. Under a noise plan, a histogram with noise of the given scale; its attribute ``noise`` names the kind.
    snapshots : iterable of length T
        The database, or counts of it, at each step.
    plan : BudgetPlan or NoisePlan
    start : int
        The plan's step (from 0) of the first snapshot: ``len(accountant)`` for a plan from `replan`.

    Returns
    -------
    Release
        A step with budget 0 is not published: the mechanism is not called for it.

    Raises
    ------
    BudgetError
        There are no snapshots, more of them than the plan has steps, or the mechanism reports an epsilon above the budget that
        it was given. Nothing was drawn.
    InputError
        The mechanism does not fit the kind of plan.
    LeakageBudgetError
        Inside the block of a `TemporalAccountant` that refuses the budgets. Nothing was drawn or spent.

    Examples
    --------
    >>> from temporaldp import Adversary, plan_budget
    >>> plan = plan_budget(Adversary(), alpha=1.0)
    >>> release_snapshots(lambda count, epsilon: f"{count} with {epsilon:.0f}", [7, 8], plan).outputs
    ('7 with 1', '8 with 1')
    """
    taken = list(snapshots)
    if not taken:
        raise BudgetError("expected at least one snapshot, got none")
    steps = plan.measurements(mechanism, len(taken), start=start)
    spent = [step.epsilon for step in steps]
    plan.charge(spent)
    with accounting_blocks.settled():
        outputs = tuple(step.draw(one) for step, one in zip(steps, taken, strict=True))
    return Release(outputs, np.array(spent))
