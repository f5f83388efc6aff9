"""Budgets that satisfy a level at every step: the optimal plan, the paper's Algorithms 2 and 3, and alpha / T."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.display import draw, summary
from temporaldp.base.errors import BudgetError, InputError, PlanError
from temporaldp.base.progress import effort, estimated, part
from temporaldp.base.values import compared_by_value
from temporaldp.core.accounting.exact.estimate import PLANS, seconds_of_series
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.monotone_search import largest
from temporaldp.core.accounting.paper.method import PaperBound
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.core.correlation import Adversaries
from temporaldp.core.planning.budget_plan import PLANNERS, BudgetPlan
from temporaldp.core.planning.enlarged_plan import enlarged_plan
from temporaldp.core.planning.exact_plan import exact_plan
from temporaldp.core.planning.optimal import Measure, measure
from temporaldp.core.planning.paper_plan import paper_plan
from temporaldp.core.planning.plan import Method, Objective
from temporaldp.core.planning.request import Request, common_planner
from temporaldp.core.planning.within_level import plan_within_level, sustainable_plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plan_budget(
    adversary: Adversaries,
    alpha: float,
    horizon: int | None = None,
    *,
    method: Method | None = None,
    objective: Objective | ArrayLike = "mean_absolute_error",
    weights: ArrayLike | None = None,
    accounting: Accounting[Any, Any] = EXACT,
) -> BudgetPlan:
    """Choose budgets so that temporal privacy leakage stays at or below alpha at every step.

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        Several: budgets that satisfy the level for each of them. "optimal" chooses them jointly; the other methods take the
        paper's minimum over users.
    alpha : float, > 0
        Level that every step must satisfy, in nats; neighbouring data sets replace one person's state.
    horizon : int, optional
        Number of steps T. Default: an infinite horizon.
    method : {"optimal", "upper_bound", "quantified", "uniform"}, optional
        "optimal": least noise by `objective` (needs the horizon), never worse than the others.
        "upper_bound": one constant budget for any number of steps (the paper's Algorithm 2).
        "quantified": larger budgets at both ends, TPL equal to alpha at every step for a single user (Algorithm 3; needs
        the horizon). "uniform": alpha / T (needs the horizon), which satisfies alpha for every correlation and beats both at
        short horizons under strong correlation. Default: "optimal" if the horizon is known, else "upper_bound".
    objective : {"mean_absolute_error", "mean_squared_error"}, or array_like, shape (T,)
        What "optimal" minimises: the mean over steps of 1 / epsilon, or of 1 / epsilon^2. Weights in its place mean the first,
        weighted.
    weights : array_like, shape (T,), optional
        Weight of each step in the objective of "optimal", >= 0. A step of weight 0 is not published and gets budget 0.
    accounting : Accounting
        The method by which alpha is satisfied. `Exact()`: "optimal" is a local optimum of all budgets whose exact leakage is at
        most alpha, found with exact derivatives, and not certified (`error_bound` is None); "upper_bound" is the sustainable
        budget; "quantified" is the paper's plan, enlarged as far as alpha allows; "uniform" stays alpha / T. `PaperBound()`:
        "optimal" comes with a certificate. By any other method (interval matrices, metric privacy, a method of your own): the
        plans for one matrix, enlarged as far as its bound allows.

    Returns
    -------
    BudgetPlan
        Its leakage never exceeds alpha. `optimality` is a bound on the distance of an optimal plan from the optimum.

    Raises
    ------
    BudgetError
        alpha, the horizon or the weights are not admissible, or contradict the adversary's matrices or one another.
    InputError
        No such method or objective, or the accounting method does not apply.
    PlanError
        No positive budget satisfies alpha with this method; the message names two states that are distinguished with certainty.

    Notes
    -----
    Matrices that vary with time enter the paper's two methods by the merged profile of each direction, which leaks at least as
    much as each of them: the level is satisfied, with smaller budgets. "optimal" and the accounting take them as they are.

    Examples
    --------
    >>> from temporaldp import Adversary, PaperBound, TransitionMatrix
    >>> adversary = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]), TransitionMatrix([[0.8, 0.2], [0.1, 0.9]]))
    >>> plan = plan_budget(adversary, alpha=1.0, horizon=5)
    >>> plan.epsilons.round(4), round(plan.optimality.error, 4)
    (array([0.367 , 0.2812, 0.2761, 0.3274, 0.3874]), 3.1078)
    >>> paper = plan_budget(adversary, alpha=1.0, horizon=5, accounting=PaperBound())
    >>> paper.epsilons.round(4), paper.optimality.error_bound <= paper.optimality.error
    (array([0.367 , 0.2812, 0.2761, 0.3274, 0.3874]), True)
    >>> plan_budget(adversary, alpha=1.0, horizon=5, method="quantified", accounting=PaperBound()).epsilons.round(4)
    array([0.4998, 0.2039, 0.2039, 0.2039, 0.7041])
    """
    if not isinstance(objective, str):
        if weights is not None:
            raise InputError("weights are given twice: as the objective, and as weights")
        objective, weights = "mean_absolute_error", objective
    request = Request.checked(adversary, alpha, horizon, accounting)
    chosen = method or ("upper_bound" if request.horizon is None else "optimal")
    if chosen not in PLANNERS:
        raise InputError(f"expected method to be one of {', '.join(PLANNERS)}, got {method!r}")
    if request.horizon is None and chosen != "upper_bound":
        raise BudgetError(f"method {chosen!r} needs the horizon (number of steps); without one use 'upper_bound'")
    if weights is not None and chosen != "optimal":
        raise BudgetError(f"weights are for the method 'optimal'; {chosen!r} treats all steps alike")
    by = measure(objective, weights, request.horizon) if chosen == "optimal" and request.horizon is not None else None
    return plan_of(request, chosen, by)


def plan_of(request: Request, method: Method, by: Measure | None) -> BudgetPlan:
    """The plan, by the planner for the methods that account for the users."""
    with effort(request.accounting.effort):
        return _plan_of(request, method, by)


def _plan_of(request: Request, method: Method, by: Measure | None) -> BudgetPlan:
    by_method = common_planner([one for one, _ in request.methods()])
    if by_method == "by recursion":
        return paper_plan(request, method, by)
    if request.horizon is None or (method == "upper_bound" and request.has_constant_matrices):
        return sustainable_plan(request, method)
    if method == "uniform":
        shares = paper_plan(request.by(PaperBound()), method, by).epsilons
        return plan_within_level(request, shares / request.most_promised, method)
    if by_method == "by derivatives":
        with estimated("plan", lambda: PLANS * seconds_of_series(request.users, request.n_shares, alike=False)):
            return exact_plan(request, method, by)
    return enlarged_plan(request, method, by)


def sustainable_budget(
    adversary: Adversaries, alpha: float, horizon: int | None = None, *, accounting: Accounting[Any, Any] = EXACT
) -> float:
    """Largest constant budget with which temporal privacy leakage stays at or below alpha, in nats.

    By default over an infinite horizon: the largest budget, to 1e-8, whose certified exact supremum is at most alpha. By the
    paper's bound: Algorithm 2, without its loop. With a horizon: the largest budget of so many equal releases. The result is a
    lower bound, because of the tolerance and of rounding; 0 if no budget is sustainable.

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        With constant matrices, or with `Periodic`; with a horizon, of any kind.
    alpha : float, > 0
    horizon : int, optional
        Number of steps T. Default: any number of steps.
    accounting : Accounting
        As for `temporal_leakage`.

    Raises
    ------
    BudgetError
        alpha or the horizon is not admissible.
    InputError
        Matrices that vary with time without a horizon, or a method that does not apply.

    Examples
    --------
    >>> from temporaldp import Adversary, PaperBound, TransitionMatrix
    >>> from scipy.linalg import circulant
    >>> ring = TransitionMatrix(circulant([0.6, 0.2, 0, 0, 0, 0.2]))
    >>> round(sustainable_budget(Adversary(ring, ring), 1.0), 4), round(sustainable_budget(Adversary(ring, ring), 1.0, 12), 4)
    (0.0885, 0.1202)
    >>> sustainable_budget(Adversary(ring, ring), 1.0, accounting=PaperBound())
    0.0
    """
    request = Request.checked(adversary, alpha, horizon, accounting)
    if accounting == EXACT and all(user.is_interchangeable for user in request.users):
        request = request.by(PaperBound())  # which is exact there, in closed form
    if request.horizon is None:
        return request.sustainable_epsilon()
    ceiling, equal = request.alpha * (1.0 - 2.0 * request.plan_margin), np.ones(request.horizon)

    def worst(epsilon: float) -> float:
        return request.series(epsilon * equal).worst

    most = ceiling / request.most_promised
    least = most / request.horizon  # no step leaks more than all releases together; a user's own method may count more
    return largest(worst, least, most, ceiling) if worst(least) <= request.alpha else 0.0


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class PlanComparison:
    """The plans of all methods for one level and horizon; from `compare_plans`.

    Parameters
    ----------
    plans : dict of str to BudgetPlan
        Plans by the name of their method.
    refusals : dict of str to PlanError
        The errors of the methods that have no plan.
    """

    plans: dict[Method, BudgetPlan]
    refusals: dict[Method, PlanError]

    def plot(self, *, times: Sequence[object] | None = None, ax: Axes | None = None) -> Any:
        """Draw the budgets of all plans over time (needs Matplotlib); arguments and result as of `BudgetPlan.plot`."""
        return draw(self, ax=ax, times=times)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        shown: dict[str, object] = {
            method: f"mean absolute noise of a count {plan.mean_absolute_noise:.3g}"
            for method, plan in self.plans.items()
        }
        return summary("Plans for one level", shown | {method: str(why) for method, why in self.refusals.items()})


def compare_plans(
    adversary: Adversaries,
    alpha: float,
    horizon: int,
    *,
    objective: Objective | ArrayLike = "mean_absolute_error",
    weights: ArrayLike | None = None,
    accounting: Accounting[Any, Any] = EXACT,
) -> PlanComparison:
    """Compare the plans of all methods, and why some have none; arguments and errors as for `plan_budget`.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix
    >>> matrix = TransitionMatrix([[0.9, 0.1], [0.2, 0.8]])
    >>> found = compare_plans(Adversary(matrix, matrix), alpha=1.0, horizon=8)
    >>> {method: round(float((1 / plan.epsilons).mean()), 2) for method, plan in found.plans.items()}
    {'optimal': 4.25, 'upper_bound': 5.91, 'quantified': 4.86, 'uniform': 8.0}
    """
    everyone = Request.checked(adversary, alpha, horizon).population

    plans, refusals = dict[Method, BudgetPlan](), dict[Method, PlanError]()
    for k, method in enumerate(PLANNERS):
        own: dict[str, Any] = {"objective": objective, "weights": weights} if method == "optimal" else {}
        with part(k / len(PLANNERS), (k + 1) / len(PLANNERS), "plans by all methods"):
            try:
                plans[method] = plan_budget(everyone, alpha, horizon, method=method, accounting=accounting, **own)
            except PlanError as error:
                refusals[method] = error
    return PlanComparison(plans, refusals)
