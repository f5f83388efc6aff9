"""Budgets that hold a level at every step: the paper's Algorithms 2 and 3, and alpha / T."""

from __future__ import annotations

import operator
from math import fsum, nextafter

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import leakage_supremum, temporal_leakage
from temporaldp.accounting.population import Adversaries, named
from temporaldp.correlation import Adversary
from temporaldp.errors import BudgetError, InputError, PlanError
from temporaldp.leakage import LeakageProfile, Witness
from temporaldp.leakage.profile import positive
from temporaldp.planning.balance import Balance, balance
from temporaldp.planning.plan import BudgetPlan, Method

FloatArray = NDArray[np.float64]

ULP = float(np.finfo(np.float64).eps)
SMALLEST_SHARE = 64.0 * ULP
"""A budget below this share of alpha is lost in the rounding of a step, and no plan for ever is made of it."""

METHODS: tuple[Method, ...] = ("upper_bound", "quantified", "uniform")


def plan_budget(
    adversary: Adversaries, *, alpha: float, horizon: int | None = None, method: Method | None = None
) -> BudgetPlan:
    """Choose budgets so that temporal privacy leakage stays at or below alpha at every step.

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        Several: budgets that hold for each of them, the paper's minimum over users.
    alpha : float, > 0
        Level to hold, in nats, under substitution of one person's value.
    horizon : int, optional
        Number of steps T. Without it, the plan holds for ever.
    method : {"upper_bound", "quantified", "uniform"}, optional
        "upper_bound": one constant budget that holds for any number of steps (the paper's Algorithm 2).
        "quantified": larger budgets at both ends, TPL equal to alpha at every step for a single user (Algorithm 3; needs
        the horizon). "uniform": alpha / T (needs the horizon), which holds whatever the correlation is and beats both at
        short horizons under strong correlation. Default: "quantified" if the horizon is known, else "upper_bound".

    Returns
    -------
    BudgetPlan
        A lower bound on what could be spent, by rounding and by method; its leakage never exceeds alpha.

    Raises
    ------
    BudgetError
        alpha or the horizon is not admissible, or contradicts the adversary's matrices.
    PlanError
        No positive budget holds alpha with this method; names the two states that are told apart for certain.

    Notes
    -----
    Matrices that vary with time enter the first two methods by the merged profile of each direction, which leaks at least as
    much as each of them: the level is held, at some loss of budget.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix
    >>> adversary = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]), TransitionMatrix([[0.8, 0.2], [0.1, 0.9]]))
    >>> plan_budget(adversary, alpha=1.0, horizon=5).epsilons.round(4)
    array([0.4998, 0.2039, 0.2039, 0.2039, 0.7041])
    """
    level = positive(alpha, "alpha")
    n_steps = _checked_horizon(horizon)
    chosen = method or ("upper_bound" if n_steps is None else "quantified")
    if chosen not in METHODS:
        raise InputError(f"expected method to be one of {', '.join(METHODS)}, got {method!r}")
    if n_steps is None and chosen != "upper_bound":
        raise BudgetError(f"method {chosen!r} needs the horizon (number of steps); without one use 'upper_bound'")
    users = list(named(adversary))
    for name, one in users:
        _check_steps(one, name, n_steps)
    if chosen == "uniform":
        assert n_steps is not None
        share = level / n_steps
        epsilons = np.full(n_steps, share if fsum([share] * n_steps) <= level else nextafter(share, 0.0))
    elif chosen == "quantified":
        assert n_steps is not None
        epsilons = np.min([_quantified(one, name, level, n_steps) for name, one in users], axis=0)
    else:
        constant = min(_upper_bound(one, name, level) for name, one in users)
        epsilons = np.full(n_steps or 1, constant)
    return _held(users, epsilons, level, n_steps, chosen)


def _upper_bound(adversary: Adversary, name: str | None, alpha: float) -> float:
    """Algorithm 2. Budget e with ``L(a) + e <= a`` in both directions, so that no step of any horizon exceeds alpha."""
    found = _balance(adversary, alpha)
    if found.budget < SMALLEST_SHARE * alpha:
        raise PlanError(_nothing_lasts(adversary, name, alpha))
    # Four ulps of alpha stay unspent: BPL and FPL then remain below their levels through any number of rounded steps.
    return found.budget - 4.0 * ULP * alpha


def _quantified(adversary: Adversary, name: str | None, alpha: float, n_steps: int) -> FloatArray:
    """Algorithm 3: ends at the levels themselves, the middle at the sustainable budget."""
    if n_steps == 1:
        return np.array([alpha])
    found = _balance(adversary, alpha)
    if found.budget <= 0.0:
        raise PlanError(_nothing_lasts(adversary, name, alpha))
    return np.array([found.backward_level, *[found.budget] * (n_steps - 2), found.forward_level])


def _balance(adversary: Adversary, alpha: float) -> Balance:
    return balance(_merged(adversary, "backward"), _merged(adversary, "forward"), alpha)


def _merged(adversary: Adversary, direction: str) -> LeakageProfile | None:
    """The pointwise largest loss over the matrices of one direction; None if the adversary knows none."""
    known = getattr(adversary, direction)
    matrices = known if isinstance(known, tuple) else () if known is None else (known,)
    merged: LeakageProfile | None = None
    for matrix in matrices:
        profile = matrix.leakage_profile()
        merged = profile if merged is None else merged.merge(profile)
    return merged


def _held(
    users: list[tuple[str | None, Adversary]], epsilons: FloatArray, alpha: float, horizon: int | None, method: Method
) -> BudgetPlan:
    """The plan, shrunk by ulps until our own accounting says at most alpha. Ends: at the last factor nothing is spent."""
    everyone = {str(name): one for name, one in users} if len(users) > 1 else users[0][1]
    states = users[0][1].states
    for halving in range(53):
        spent = epsilons * (1.0 - (0.0 if halving == 0 else 2.0 ** (halving - 53)))
        leakage = (
            leakage_supremum(everyone, epsilon=float(spent[0]))
            if horizon is None
            else temporal_leakage(everyone, epsilons=spent)
        )
        if leakage.worst <= alpha:
            return BudgetPlan(spent, alpha, horizon, method, leakage, states)
    raise PlanError(_nothing_lasts(users[0][1], users[0][0], alpha))


def _nothing_lasts(adversary: Adversary, name: str | None, alpha: float) -> str:
    certain = [w for w in (_certain(adversary, direction) for direction in ("backward", "forward")) if w is not None]
    who = "" if name is None else f" of {name!r}"
    why = (
        f"the correlation{who} tells {certain[0].value!r} and {certain[0].other_value!r} apart with certainty (their rows "
        "have no state in common), so leakage adds up with every step"
        if certain
        else f"the correlation{who} is so strong that a step's budget vanishes in rounding"
    )
    return (
        f"no positive budget holds alpha = {alpha:g} for ever: {why}. Give a horizon T with method='uniform' (alpha / T at "
        "every step), or estimate with a prior if certainty is only an artefact of short traces"
    )


def _certain(adversary: Adversary, direction: str) -> Witness | None:
    profile = _merged(adversary, direction)
    if profile is None or not len(profile):
        return None
    first = profile.witnesses[0]
    return first if first.other_probability == 0.0 and first.probability == 1.0 else None


def _checked_horizon(horizon: int | None) -> int | None:
    if horizon is None:
        return None
    try:
        n_steps = operator.index(horizon)
    except TypeError:
        raise BudgetError(f"expected the horizon to be a whole number of steps, got {horizon!r}") from None
    if n_steps < 1:
        raise BudgetError(f"expected a horizon of at least 1 step, got {horizon}")
    return n_steps


def _check_steps(adversary: Adversary, name: str | None, n_steps: int | None) -> None:
    if adversary.n_steps in {None, n_steps}:
        return
    who = "the adversary" if name is None else f"adversary {name!r}"
    raise BudgetError(
        f"{who} has matrices for {adversary.n_steps} steps, but the horizon is {n_steps or 'unknown'}; "
        f"plan with horizon={adversary.n_steps}, or give constant matrices"
    )
