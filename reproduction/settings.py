"""The paper's settings, and the quantities of the package that its figures and claims are made of.

Every call of `temporal_leakage`, `leakage_supremum`, `sustainable_budget`, `plan_budget` and `compare_plans` stands here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp import (
    Adversary,
    BudgetPlan,
    LeakageSeries,
    PaperBound,
    TransitionMatrix,
    compare_plans,
    leakage_supremum,
    plan_budget,
    sustainable_budget,
    temporal_leakage,
)

FloatArray: TypeAlias = NDArray[np.float64]
Method: TypeAlias = Literal["optimal", "upper_bound", "quantified", "uniform"]
Users: TypeAlias = Adversary | Iterable[Adversary]

UNCHANGING = TransitionMatrix([[1.0, 0.0], [0.0, 1.0]])
"""The strongest correlation: one value determines the other (Examples 2 and 3)."""

MODERATE = TransitionMatrix([[0.8, 0.2], [0.0, 1.0]])
"""Example 2, Figure 3 (ii)."""

OVERLAPPING = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])
"""A matrix without zeros (d > 0): our choice for Figure 4 (d); the paper's P^F of Figure 7."""

THREE_PLACES = TransitionMatrix([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]])
"""The matrix of Figure 2 (a) as the authors' program has it; the text gives only its 0.7."""

ALLOCATED = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]), OVERLAPPING)
"""Section VI-C, Figure 7."""

EPSILON = 0.1
"""Budget of each step in Examples 2 and 3, in nats."""

N_STEPS = 10
"""Number of steps in Examples 2 and 3."""

PAPER = PaperBound()

BY_RECURSION = "temporal_leakage, the paper's bound"
BY_DEFINITION = "temporal_leakage, exact"
"""Sources of the two kinds of curves: the paper's recursion, and the supremum of its Definitions 5 to 7."""


def smoothed(n_states: int, s: float) -> TransitionMatrix:
    """Strongest correlation after Laplacian smoothing, Section VI; leakage does not depend on the permutation."""
    rows = np.eye(n_states) + s
    return TransitionMatrix(rows / rows.sum(axis=1, keepdims=True))


def random_correlation(n_states: int, *, rng: int) -> TransitionMatrix:
    """Entries uniform on [0, 1), rows divided by their sums, as in the run-time figure."""
    entries = np.random.default_rng(rng).random((n_states, n_states))
    return TransitionMatrix(entries / entries.sum(axis=1, keepdims=True))


def in_both(matrix: TransitionMatrix) -> Adversary:
    """Adversary with the same matrix in both directions, as in Figures 3 and 8."""
    return Adversary(matrix, matrix)


def recursion_series(users: Users, epsilons: ArrayLike) -> LeakageSeries:
    """Leakage by the paper's recursion (Equations 10 to 15), in nats: an upper bound."""
    return temporal_leakage(users, epsilons, accounting=PAPER)


def exact_series(users: Users, epsilons: ArrayLike) -> LeakageSeries:
    """Leakage by the paper's Definitions 5 to 7, in nats: the supremum over all mechanisms with these epsilons."""
    return temporal_leakage(users, epsilons)


def recursion_supremum(matrix: TransitionMatrix, epsilon: float) -> float:
    """Supremum of BPL under a constant budget by the paper's recursion, in nats; `math.inf` if there is none."""
    return leakage_supremum(Adversary(backward=matrix), epsilon, accounting=PAPER).backward


def exact_supremum(matrix: TransitionMatrix, epsilon: float) -> float:
    """Supremum of BPL under a constant budget by the definition, in nats."""
    return leakage_supremum(Adversary(backward=matrix), epsilon).backward


def recursion_budget(adversary: Adversary, alpha: float) -> float:
    """Largest constant budget whose supremum by the paper's recursion is at most alpha, in nats."""
    return sustainable_budget(adversary, alpha, accounting=PAPER)


def recursion_plan(users: Users, *, alpha: float, horizon: int | None = None, method: Method = "optimal") -> BudgetPlan:
    """Plan that satisfies alpha-DP_T by the paper's recursion."""
    return plan_budget(users, alpha, horizon, method=method, accounting=PAPER)


def recursion_plans(adversary: Adversary, *, alpha: float, horizon: int) -> dict[Method, BudgetPlan]:
    """Plans of all methods that satisfy alpha-DP_T by the paper's recursion."""
    return dict(compare_plans(adversary, alpha, horizon, accounting=PAPER).plans)


def exact_plan(adversary: Adversary, *, alpha: float, horizon: int) -> BudgetPlan:
    """Optimal plan that satisfies alpha-DP_T by the definition."""
    return plan_budget(adversary, alpha, horizon)
