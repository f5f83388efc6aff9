"""Any differentially private mechanism, converted: one call per step, each with its planned budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import charging
from temporaldp.errors import BudgetError
from temporaldp.planning import BudgetPlan
from temporaldp.values import compared_by_value

FloatArray = NDArray[np.float64]
Snapshot = TypeVar("Snapshot")
Output = TypeVar("Output")


@runtime_checkable
class AccountedMechanism(Protocol):
    """A mechanism that knows what it spends when it is asked for a budget."""

    def epsilon_spent(self, epsilon: float) -> float:
        """Privacy loss of one call with that budget, in nats."""
        ...


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Release(Generic[Output]):
    """What was released: one output per step, and what each step spent.

    Parameters
    ----------
    outputs : tuple of length T
        In order; the mechanism's own type, or None for a step that the plan gives no budget.
    epsilons : array, shape (T,)
        Privacy loss of each step in nats, as the mechanism states it: at most the plan's budget.
    """

    outputs: tuple[Output | None, ...]
    epsilons: FloatArray

    def __post_init__(self) -> None:
        epsilons = np.array(self.epsilons, dtype=np.float64)
        epsilons.flags.writeable = False
        object.__setattr__(self, "epsilons", epsilons)

    def __repr__(self) -> str:
        return f"Release({len(self.outputs)} steps, spent {self.epsilons.sum():.6g} nats in all)"


def release(
    mechanism: Callable[[Snapshot, float], Output], snapshots: Iterable[Snapshot], plan: BudgetPlan, *, start: int = 0
) -> Release[Output]:
    """Run a mechanism once per snapshot with the plan's budget, so that the whole holds the plan's alpha at every step.

    The paper's conversion of any DP mechanism into one with alpha-DP_T (Section V). All snapshots are taken in, and their
    number checked against the plan, before the first noise is drawn.

    Parameters
    ----------
    mechanism : callable (snapshot, epsilon) -> output
        epsilon-DP under replacement of one person's value in the snapshot, with fresh randomness at every call; this
        cannot be checked here. If it has a method ``epsilon_spent(epsilon)``, that is what counts as spent, otherwise the
        budget itself.
    snapshots : iterable of length T
        The database, or what is counted of it, at each step.
    plan : BudgetPlan
    start : int
        The plan's step (from 0) of the first snapshot: ``len(accountant)`` for a plan from `replan`.

    Returns
    -------
    Release
        A step with budget 0 is not published: the mechanism is not called for it.

    Raises
    ------
    BudgetError
        There are no snapshots, more of them than the plan has steps, or the mechanism says that it spends more than it was
        given. Nothing was drawn then.
    LeakageBudgetError
        Inside the block of a `TemporalAccountant` that refuses the budgets. Nothing was drawn or spent.

    Examples
    --------
    >>> from temporaldp import Adversary, plan_budget
    >>> plan = plan_budget(Adversary(), alpha=1.0)
    >>> release(lambda count, epsilon: f"{count} with {epsilon:.0f}", [7, 8], plan).outputs
    ('7 with 1', '8 with 1')
    """
    if plan.delta:
        raise BudgetError(
            "the plan is for a delta: it has scales of noise, not epsilons that a mechanism could be called with; "
            "release_histograms draws them"
        )
    taken = list(snapshots)
    if not taken:
        raise BudgetError("expected at least one snapshot, got none")
    budgets = plan.budgets(len(taken), start=start).tolist()
    spent = [spent_by(mechanism, budget, step) for step, budget in enumerate(budgets, start=start)]
    charging.charge(spent)
    with charging.settled():
        outputs = tuple(
            mechanism(one, budget) if budget > 0.0 else None for one, budget in zip(taken, budgets, strict=True)
        )
    return Release(outputs, np.array(spent))


def spent_by(mechanism: Any, budget: float, step: int) -> float:
    """What the mechanism says that it spends when it is given a budget; the budget itself if it does not say."""
    if budget == 0.0 or not isinstance(mechanism, AccountedMechanism):
        return budget
    spent = float(mechanism.epsilon_spent(budget))
    if not 0.0 <= spent <= budget:
        raise BudgetError(f"the mechanism says it spends {spent!r} at step {step}, but the plan grants {budget!r}")
    return spent
