"""Budgets that hold a level at every step: the optimal plan, the paper's Algorithms 2 and 3, and alpha / T."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting.curves import checked_delta
from temporaldp.accounting.metrics import Bound, checked_bound, checked_guarantee, largest_distance
from temporaldp.accounting.population import Adversaries, named
from temporaldp.correlation import Adversary
from temporaldp.errors import BudgetError, InputError, PlanError
from temporaldp.planning.exact_plan import exact_plan
from temporaldp.planning.holding import together
from temporaldp.planning.lasting import lasting_budget
from temporaldp.planning.noise import checked_noise, noise_plan
from temporaldp.planning.optimal import Objective, measure
from temporaldp.planning.paper_plan import lasting_by_paper, paper_plan
from temporaldp.planning.plan import BudgetPlan, Method
from temporaldp.values import positive, whole_number

FloatArray = NDArray[np.float64]

ULP = float(np.finfo(np.float64).eps)

METHODS: tuple[Method, ...] = ("optimal", "upper_bound", "quantified", "uniform")


def plan_budget(
    adversary: Adversaries,
    *,
    alpha: float,
    horizon: int | None = None,
    method: Method | None = None,
    objective: Objective | ArrayLike = "mean_absolute_error",
    weights: ArrayLike | None = None,
    bound: Bound = "exact",
    delta: float | None = None,
    mechanism: str | None = None,
) -> BudgetPlan:
    """Choose budgets so that temporal privacy leakage stays at or below alpha at every step.

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        Several: budgets that hold for each of them. "optimal" chooses them jointly; the other methods take the paper's minimum
        over users.
    alpha : float, > 0
        Level to hold, in nats, under substitution of one person's value.
    horizon : int, optional
        Number of steps T. Without it, the plan holds for ever.
    method : {"optimal", "upper_bound", "quantified", "uniform"}, optional
        "optimal": least noise by `objective` (needs the horizon), never worse than the others.
        "upper_bound": one constant budget that holds for any number of steps (the paper's Algorithm 2).
        "quantified": larger budgets at both ends, TPL equal to alpha at every step for a single user (Algorithm 3; needs
        the horizon). "uniform": alpha / T (needs the horizon), which holds whatever the correlation is and beats both at
        short horizons under strong correlation. Default: "optimal" if the horizon is known, else "upper_bound".
    objective : {"mean_absolute_error", "mean_squared_error"}, or array_like, shape (T,)
        What "optimal" minimises: the mean over steps of 1 / epsilon, or of 1 / epsilon^2. Weights in its place mean the first,
        weighted.
    weights : array_like, shape (T,), optional
        How much each step matters to "optimal", >= 0. A step of weight 0 is not published and gets budget 0.
    bound : {"exact", "paper"}
        By which leakage alpha is held. "exact": "optimal" is a local optimum of all budgets whose exact leakage is at most
        alpha, found with exact derivatives, and not certified (`error_bound` is None); "upper_bound" is what lasts for ever;
        "quantified" is the paper's plan, enlarged as far as holds; "uniform" stays alpha / T. "paper": the paper's
        recursion, by which an accountant counts; "optimal" then comes with a certificate.
    delta : float, optional
        Plan noise for (alpha, delta)-DP_T instead: the least scale of noise on a histogram, constant or, with a horizon, less
        at the ends, whose leakage at this delta is at most alpha at every step. Method, objective and weights do not apply.
    mechanism : {"gaussian", "laplace"}, optional
        With `delta`: discrete Gaussian noise (the default) or discrete Laplace noise.

    Returns
    -------
    BudgetPlan
        A lower bound on what could be spent, by rounding and by method; its leakage never exceeds alpha. An optimal plan says
        how far from optimal it can be (`error`, `error_bound`).

    Raises
    ------
    BudgetError
        alpha, the horizon or the weights are not admissible, or contradict the adversary's matrices or one another.
    PlanError
        No positive budget holds alpha with this method; names the two states that are told apart for certain.

    Notes
    -----
    Matrices that vary with time enter the paper's two methods by the merged profile of each direction, which leaks at least as
    much as each of them: the level is held, at some loss of budget. "optimal" and the accounting take them as they are.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix
    >>> adversary = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]), TransitionMatrix([[0.8, 0.2], [0.1, 0.9]]))
    >>> plan = plan_budget(adversary, alpha=1.0, horizon=5)
    >>> plan.epsilons.round(4), round(plan.error, 4)
    (array([0.367 , 0.2812, 0.2761, 0.3274, 0.3874]), 3.1078)
    >>> paper = plan_budget(adversary, alpha=1.0, horizon=5, bound="paper")
    >>> paper.epsilons.round(4), paper.error_bound <= paper.error
    (array([0.367 , 0.2812, 0.2761, 0.3274, 0.3874]), True)
    >>> plan_budget(adversary, alpha=1.0, horizon=5, method="quantified", bound="paper").epsilons.round(4)
    array([0.4998, 0.2039, 0.2039, 0.2039, 0.7041])
    >>> plan_budget(adversary, alpha=1.0, delta=1e-6).scales.round(2)         # Gaussian noise that holds for ever
    array([9.55])
    """
    if not isinstance(objective, str):
        if weights is not None:
            raise InputError("weights are given twice: as the objective, and as weights")
        objective, weights = "mean_absolute_error", objective
    level = positive(alpha, "alpha")
    n_steps = _checked_horizon(horizon)
    if delta is not None or mechanism is not None:
        if method is not None or weights is not None or checked_bound(bound) == "paper":
            raise BudgetError("with a delta there is neither a method, nor weights, nor bound='paper' to choose")
        return _noise(adversary, level, n_steps, delta, mechanism)
    chosen = method or ("upper_bound" if n_steps is None else "optimal")
    if chosen not in METHODS:
        raise InputError(f"expected method to be one of {', '.join(METHODS)}, got {method!r}")
    if n_steps is None and chosen != "upper_bound":
        raise BudgetError(f"method {chosen!r} needs the horizon (number of steps); without one use 'upper_bound'")
    if weights is not None and chosen != "optimal":
        raise BudgetError(f"weights are for the method 'optimal'; {chosen!r} treats all steps alike")
    users = list(named(adversary))
    for name, one in users:
        _check_steps(one, name, n_steps)
    by = None if chosen != "optimal" or n_steps is None else measure(objective, weights, n_steps)
    make = paper_plan if checked_bound(bound) == "paper" else exact_plan
    return make(users, level, n_steps, chosen, by)


def _noise(
    adversary: Adversaries, alpha: float, horizon: int | None, delta: float | None, mechanism: str | None
) -> BudgetPlan:
    if delta is None:
        raise BudgetError("a mechanism is planned for a delta, as in delta=1e-6; without one, plan budgets")
    level, kind = checked_delta(delta), checked_noise(mechanism or "gaussian")
    users = list(named(adversary))
    for name, one in users:
        _check_steps(one, name, horizon)
    shape = None
    if horizon is not None and horizon > 1:
        with suppress(PlanError):
            shape = paper_plan(users, alpha, horizon, "optimal", measure("mean_absolute_error", None, horizon)).epsilons
    return noise_plan(users, alpha, level, horizon, kind, shape)


def sustainable_budget(
    adversary: Adversaries, *, alpha: float, bound: Bound = "exact", metric: ArrayLike | None = None
) -> float:
    """The budget that every step can spend for ever while temporal privacy leakage stays at or below alpha, in nats.

    The largest budget, to 1e-8, whose certified exact supremum is at most alpha. By the paper's bound: Algorithm 2, without its
    loop. A lower bound by that and by rounding; 0 if there is none.

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        With constant matrices.
    alpha : float, > 0
    bound : {"exact", "paper"}
    metric : array_like, shape (n, n), optional
        As for `temporal_leakage`: the answer multiplies the distances, and alpha bounds the odds between any two values.

    Raises
    ------
    BudgetError
        alpha is not admissible.
    InputError
        No such bound or metric, or matrices that vary with time.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix
    >>> from scipy.linalg import circulant
    >>> ring = TransitionMatrix(circulant([0.6, 0.2, 0, 0, 0, 0.2]))
    >>> [round(sustainable_budget(Adversary(ring, ring), alpha=1.0, bound=bound), 4) for bound in ("paper", "exact")]
    [0.0, 0.0885]
    """
    level = positive(alpha, "alpha")
    users = list(named(adversary))
    if any(one.n_steps is not None for _, one in users):
        raise InputError(
            "what lasts for ever needs constant matrices; for those that vary, plan_budget takes a horizon"
        )
    distances = None
    for _, one in users:
        distances = checked_guarantee(metric, one.states)
    known = lasting_by_paper(users, level) / largest_distance(distances) * (1.0 - 4.0 * ULP)
    if checked_bound(bound) == "paper":
        return known
    return lasting_budget(users, level, known=known, metric=distances)


def compare_plans(
    adversary: Adversaries,
    *,
    alpha: float,
    horizon: int,
    objective: Objective | ArrayLike = "mean_absolute_error",
    weights: ArrayLike | None = None,
    bound: Bound = "exact",
) -> dict[Method, BudgetPlan]:
    """The plan of every method that has one, side by side; arguments and errors as for `plan_budget`.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix
    >>> matrix = TransitionMatrix([[0.9, 0.1], [0.2, 0.8]])
    >>> plans = compare_plans(Adversary(matrix, matrix), alpha=1.0, horizon=8)
    >>> {method: round(float((1 / plan.epsilons).mean()), 2) for method, plan in plans.items()}
    {'optimal': 4.25, 'upper_bound': 5.91, 'quantified': 4.86, 'uniform': 8.0}
    """
    single = together(list(named(adversary)))
    found: dict[Method, BudgetPlan] = {}
    for method in METHODS:
        own: dict[str, Any] = {"objective": objective, "weights": weights} if method == "optimal" else {}
        with suppress(PlanError):
            found[method] = plan_budget(single, alpha=alpha, horizon=horizon, method=method, bound=bound, **own)
    return found


def _checked_horizon(horizon: int | None) -> int | None:
    return None if horizon is None else whole_number(horizon, "the horizon", least=1, error=BudgetError)


def _check_steps(adversary: Adversary, name: str | None, n_steps: int | None) -> None:
    if adversary.n_steps in {None, n_steps}:
        return
    who = "the adversary" if name is None else f"adversary {name!r}"
    raise BudgetError(
        f"{who} has matrices for {adversary.n_steps} steps, but the horizon is {n_steps or 'unknown'}; "
        f"plan with horizon={adversary.n_steps}, or give constant matrices"
    )
