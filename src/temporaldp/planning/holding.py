"""Holding a plan to alpha: whatever made the budgets, our own accounting has the last word."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import LeakageSeries, LeakageSupremum, leakage_supremum, temporal_leakage
from temporaldp.accounting.balance import merged_profile
from temporaldp.accounting.metrics import Accounting, Bound
from temporaldp.accounting.population import Adversaries
from temporaldp.accounting.standing import SPARE
from temporaldp.correlation import Adversary
from temporaldp.correlation.adversary import Correlation
from temporaldp.errors import PlanError
from temporaldp.leakage import Witness
from temporaldp.planning.plan import BudgetPlan, Method
from temporaldp.values import SMALLEST

FloatArray = NDArray[np.float64]
Users: TypeAlias = list[tuple[str | None, Adversary]]


def together(users: Users) -> Adversaries:
    """The users as accounting takes them: one adversary, or a mapping by name."""
    return {str(name): one for name, one in users} if len(users) > 1 else users[0][1]


def held(
    users: Users,
    epsilons: FloatArray,
    alpha: float,
    horizon: int | None,
    method: Method,
    bound: Bound,
    leakage: LeakageSeries | LeakageSupremum | None = None,
) -> BudgetPlan:
    """The plan, shrunk by ulps, then by more, until our own accounting says at most alpha; the last factor is a half.

    `leakage` is that of these very budgets, if it is known.

    By the paper's bound and with a horizon, a few roundings a step stay unspent: an accountant then admits the plan step by
    step.
    """
    ceiling = alpha * (1.0 - (horizon or 0) * SPARE) if bound == "paper" else alpha
    everyone = together(users)
    states = users[0][1].states
    for halving in range(53):
        spent = epsilons * (1.0 - (0.0 if halving == 0 else 2.0 ** (halving - 53)))
        if horizon is None and spent[0] < SMALLEST:
            break
        if leakage is None or halving:
            leakage = (
                leakage_supremum(everyone, epsilon=float(spent[0]), bound=bound)
                if horizon is None
                else temporal_leakage(everyone, epsilons=spent, bound=bound)
            )
        if leakage.worst <= ceiling:
            return BudgetPlan(spent, alpha, horizon, method, leakage, states, bound=bound)
    raise PlanError(nothing_lasts(users[0][1], users[0][0], alpha, bound))


def nothing_lasts(adversary: Adversary, name: str | None, alpha: float, bound: Accounting) -> str:
    """Why no budget ("curve": no noise) holds alpha for ever, and what to do."""
    who = "" if name is None else f" of {name!r}"
    otherwise = (
        "Give a horizon of T steps, each of which can spend at least alpha / T; or estimate with a prior, if certainty is only "
        "an artefact of short traces"
    )
    if bound == "exact":
        return (
            f"no positive budget holds alpha = {alpha:g} for ever: the correlation{who} has values that never lead to a common "
            f"one (several closed classes of values, or values that take turns), so that leakage about them adds up with every "
            f"step, or alpha is too small for doubles. {otherwise}"
        )
    certain = [w for w in map(_certain, (adversary.backward, adversary.forward)) if w is not None]
    why = (
        f"the correlation{who} tells {certain[0].value!r} and {certain[0].other_value!r} apart with certainty (their rows "
        "have no state in common), so by this bound leakage adds up with every step"
        if certain
        else f"the correlation{who} is so strong that a step's budget vanishes in rounding"
    )
    if bound == "paper":
        return (
            f"no positive budget holds alpha = {alpha:g} for ever by the paper's bound: {why}. Plan by the exact leakage, "
            f"which is the default. {otherwise}"
        )
    return f"no noise holds alpha = {alpha:g} for ever at any delta: {why}. {otherwise}"


def _certain(correlation: Correlation) -> Witness | None:
    profile = merged_profile(correlation)
    if profile is None or not len(profile):
        return None
    first = profile.witnesses[0]
    return first if first.other_probability == 0.0 and first.probability == 1.0 else None
