"""Plans that need no correlation: of all states of a person together, or of any so many consecutive steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.values import FloatArray, positive, whole_number
from temporaldp.core.accounting import LeakageSeries, LeakageSupremum, temporal_leakage
from temporaldp.core.accounting.curve.method import ApproximateDP
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.core.correlation import Adversary, TransitionMatrix
from temporaldp.core.planning.budget_plan import BudgetPlan
from temporaldp.core.planning.guarantee import Guarantee
from temporaldp.core.planning.histogram_noise import Noise
from temporaldp.core.planning.noise import plan_noise
from temporaldp.core.planning.noise_plan import NoisePlan
from temporaldp.core.planning.plan import Plan


@cache
def same_state() -> Adversary:
    """Adversary who knows that states never change: all releases are about one secret. No correlation reveals more."""
    return Adversary(TransitionMatrix(np.eye(2)))


def plan_guarantee(
    guarantee: str | Guarantee,
    alpha: float,
    horizon: int | None = None,
    *,
    delta: float = 0.0,
    noise: Noise | None = None,
) -> Plan:
    """Plan a release that satisfies a level without a correlation: no adversary is needed.

    The user level holds for every correlation; a window where states outside of it reveal nothing about those inside
    (`Guarantee.condition`): the temporal leakage about its states can be larger.

    Every step has the same budget or noise. With delta = 0, budgets of a window add up (Theory, section 3); for a delta, the
    privacy curves of its releases are composed.

    Parameters
    ----------
    guarantee : {"user", "window:W", "event"} or Guarantee
        All states of a person together, those of any W consecutive steps, or that of one step (for comparison).
    alpha : float, > 0
        Level, in nats: the epsilon of all releases that depend on the protected states together, at `delta`. An upper bound.
    horizon : int, optional
        Number of steps T; the user level needs it.
    delta : float
        0 for pure differential privacy.
    noise : {"gaussian", "laplace"}, optional
        Noise on every count for a delta; default "gaussian". With delta = 0, a histogram has Laplace noise.

    Returns
    -------
    BudgetPlan, or NoisePlan for a delta
        `leakage` is about all protected states together.

    Raises
    ------
    BudgetError
        A level, delta or horizon is not admissible, or the user level has no horizon.
    InputError
        The guarantee is temporal, which needs an adversary (`plan_budget`, `plan_noise`), or there is no such noise.

    Examples
    --------
    >>> plan_guarantee("user", 1.0, 50).epsilons[:2]
    array([0.02, 0.02])
    >>> plan_guarantee("user", 1.0, 50, delta=1e-6).scales[:2].round(1)
    array([42.2, 42.2])
    """
    kept = Guarantee.of(guarantee)
    if kept.is_temporal:
        raise InputError(
            "the temporal level holds for given correlations: plan_budget and plan_noise take the adversaries"
        )
    level = positive(alpha, "alpha")
    n_steps = None if horizon is None else whole_number(horizon, "the horizon", least=1, error=BudgetError)
    width = kept.width(n_steps)
    if not delta:
        if noise not in {None, "laplace"}:
            raise BudgetError("Gaussian noise has no epsilon with delta = 0: give a delta, such as 1e-6")
        budget = level / width
        while (together := temporal_leakage(same_state(), [budget] * width)).worst > level:  # by an ulp or two
            budget = math.nextafter(budget, 0.0)
        leakage = _of_windows(together, n_steps)
        budgets = np.full(n_steps or 1, budget)
        return BudgetPlan(leakage=leakage, alpha=level, epsilons=budgets, method="uniform", guarantee=kept)
    method = ApproximateDP(delta, pairwise=False)
    composed = plan_noise(same_state(), level, width, accounting=method, noise=noise or "gaussian", equal=True)
    leakage = _of_windows(composed.leakage, n_steps)
    scales = np.full(n_steps or 1, composed.scales[0])
    return NoisePlan(leakage=leakage, alpha=level, noise=composed.noise, scales=scales, guarantee=kept)


def guaranteed_leakage(
    guarantee: Guarantee,
    releases: Sequence[Any] | FloatArray,
    horizon: int | None,
    accounting: Accounting[Any, Any] = EXACT,
) -> LeakageSeries:
    """Leakage about the states that a guarantee protects together, under its condition; `temporal` is of the worst window.

    Releases are budgets or, for a delta, equal mechanisms. An upper bound, attained where states never change.
    """
    n_steps = len(releases)
    width = min(guarantee.width(n_steps if horizon is None else horizon), n_steps)
    if accounting.delta:
        found = _of_windows(temporal_leakage(same_state(), releases[:width], accounting=accounting), n_steps)
        assert isinstance(found, LeakageSeries)
        return replace(found, details=temporal_leakage(Adversary(), releases, accounting=accounting).details)
    spent = [float(epsilon) for epsilon in releases]
    before = [math.fsum(spent[max(t + 1 - width, 0) : t + 1]) for t in range(n_steps)]
    after = [math.fsum(spent[t : t + width]) for t in range(n_steps)]
    both = np.full(n_steps, max(before))
    return LeakageSeries(np.array(spent), np.array(before), np.array(after), both, accounting=accounting)


def _of_windows(together: LeakageSeries | LeakageSupremum, horizon: int | None) -> LeakageSeries | LeakageSupremum:
    """Leakage about the protected states at every step, from that of the first so many steps together, for equal releases."""
    assert isinstance(together, LeakageSeries)
    each, worst = float(together.epsilons[0]), together.worst
    if horizon is None:
        return LeakageSupremum(each, worst, worst, worst, accounting=together.accounting)
    before = together.backward[np.minimum(np.arange(horizon), len(together) - 1)]
    return LeakageSeries(
        np.full(horizon, each), before, before[::-1], np.full(horizon, worst), accounting=together.accounting
    )
