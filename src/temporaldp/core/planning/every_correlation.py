"""Plans that need no correlation: of all states of a person together, or of any W consecutive steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np

from temporaldp.base.errors import BudgetError, InputError, PlanError
from temporaldp.base.values import FloatArray, positive, sum_up, whole_number
from temporaldp.core.accounting import LeakageSeries, LeakageSupremum, temporal_leakage
from temporaldp.core.accounting.curve.arrivals import SingleCurve, chosen_grid
from temporaldp.core.accounting.curve.evidence import composition
from temporaldp.core.accounting.curve.method import ApproximateDP
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.monotone_search import largest_in_few_tries
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.core.correlation import Adversary, TransitionMatrix
from temporaldp.core.mechanisms.events import release_from
from temporaldp.core.mechanisms.protocol import Mechanisms, epsilon_of_one
from temporaldp.core.planning.budget_plan import BudgetPlan
from temporaldp.core.planning.guarantee import Guarantee
from temporaldp.core.planning.histogram_noise import Noise, checked_noise, histogram_profile
from temporaldp.core.planning.noise import CLOSE_SCALES, LARGEST_SCALE
from temporaldp.core.planning.noise_plan import NoisePlan, planned_grid
from temporaldp.core.planning.plan import Plan


def checked_draw_every(draw_every: int, horizon: int | None, delta: float) -> int:
    """Return the number of steps from one draw to the next.

    Raises
    ------
    BudgetError
        Steps are left out at a delta, or without a horizon.
    """
    every = whole_number(draw_every, "draw_every", least=1)
    if every > 1 and (delta or horizon is None):
        raise BudgetError(
            "draw_every is for delta = 0 and a horizon of T steps: few draws of Gaussian noise contain no more than many, and "
            "a stream can have longer steps. Leave it out"
        )
    return every


def drawn_steps(n_steps: int, every: int) -> FloatArray:
    """Weights of steps of which the first is drawn, and every so many after it: 1, or 0 in between."""
    return np.asarray(np.arange(n_steps) % every == 0, dtype=np.float64)


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
    draw_every: int = 1,
) -> Plan:
    """Plan a release that satisfies a level without a correlation: no adversary is needed.

    "user" holds for every correlation, against all releases; "user:W" for every correlation, against the releases of these W
    steps alone, each about its own step, with noise of its own; "window:W" against all releases, where states outside of the
    window reveal nothing about those inside. The temporal leakage about one of its states can be larger.

    Every step that is drawn has the same budget or noise. With delta = 0, budgets of a window add up (Theory, section 2); for a
    delta, the privacy curves of its releases are composed.

    Parameters
    ----------
    guarantee : {"user", "user:W", "window:W", "event"} or Guarantee
        All states of a person together, those of any W consecutive steps, or that of one step (for comparison).
    alpha : float, > 0
        Level, in nats: the epsilon of all releases that depend on the protected states together, at `delta`. An upper bound.
    horizon : int, optional
        Number of steps T; "user" needs it.
    delta : float
        0 for pure differential privacy.
    noise : {"gaussian", "laplace"}, optional
        Noise on every count for a delta; default "gaussian". With delta = 0, a histogram has Laplace noise.
    draw_every : int
        With delta = 0 and a horizon: the steps that are drawn, the first and every so many after it; the others have budget 0.

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
    every = checked_draw_every(draw_every, n_steps, delta)
    width = kept.width(n_steps)
    if not delta:
        if noise not in {None, "laplace"}:
            raise BudgetError("Gaussian noise has no epsilon with delta = 0: give a delta, such as 1e-6")
        n_draws = -(-width // every)
        budget = level / n_draws
        while leakage_together(budget, n_draws) > level:  # by an ulp or two
            budget = math.nextafter(budget, 0.0)
        budgets = np.full(n_steps or 1, budget)
        leakage = _of_windows(budget, width, n_steps, EXACT)
        if every > 1:
            budgets *= drawn_steps(len(budgets), every)
            leakage = guaranteed_leakage(kept, budgets, n_steps)
        return BudgetPlan(leakage=leakage, alpha=level, epsilons=budgets, method="uniform", guarantee=kept)
    kind = checked_noise(noise or "gaussian")
    # What a grid rounds up adds up over the releases: above 400 of them, it is finer
    grid = max(planned_grid(level) / max(math.sqrt(width / 400.0), 1.0), 1e-9)
    method = ApproximateDP(delta, pairwise=False, grid=grid)
    scale = _least_scale(kind, level, width, method)
    leakage = _of_windows(histogram_profile(kind, scale), width, n_steps, method)
    return NoisePlan(leakage=leakage, alpha=level, noise=kind, scales=np.full(n_steps or 1, scale), guarantee=kept)


def _least_scale(noise: Noise, level: float, width: int, method: Accounting[Any, Any]) -> float:
    """The least noise, to a hundred-thousandth, with which so many releases together satisfy a level."""

    def leaked(inverse: float) -> float:
        return leakage_together(histogram_profile(noise, 1.0 / inverse), width, method)

    # Counts. One release needs at least half of this, and many of them about its multiple by the root of their number.
    scale = 0.05
    while scale < LARGEST_SCALE and epsilon_of_one(histogram_profile(noise, scale), delta=method.delta) > level:
        scale *= 2.0
    inverse = 3.0 / (scale * math.sqrt(width))
    while leaked(inverse) > level:
        inverse *= 0.5
        if inverse * LARGEST_SCALE < 1.0:
            raise PlanError(
                f"no noise up to a scale of {LARGEST_SCALE:g} satisfies alpha = {level:g} for {width} steps together at this "
                "delta: give fewer steps, a larger alpha, or a larger delta"
            )
    return 1.0 / largest_in_few_tries(leaked, inverse, 2.0 * inverse, level, CLOSE_SCALES)


def leakage_together(release: Any, n_steps: int, accounting: Accounting[Any, Any] = EXACT) -> float:
    """Leakage of so many equal releases about all their states together, for every correlation, in nats: an upper bound.

    Attained where states never change. Budgets add up; for a delta, privacy curves are composed by repeated squaring.
    """
    if not accounting.delta:
        exact = Fraction(float(release)) * n_steps
        return float(exact) if Fraction(float(exact)) >= exact else math.nextafter(float(exact), math.inf)
    curves, own = _curves(release, accounting)
    return min(curves.epsilon(composition(curves, [own] * n_steps)), n_steps * math.fsum(m.pure_epsilon for m in own))


def epochs_together(plan: Plan, n_epochs: int) -> float:
    """Leakage about all states of a person in so many epochs together, for every correlation, where each satisfies the plan.

    An upper bound, in nats, against the releases of these epochs; at the plan's delta, once for all of them.

    Parameters
    ----------
    plan : BudgetPlan or NoisePlan
        Of `plan_guarantee` for "user:W".
    n_epochs : int, >= 1

    Raises
    ------
    InputError
        The plan is of another guarantee.

    Examples
    --------
    >>> year = plan_guarantee("user:365", 1.0, delta=1e-6)
    >>> round(epochs_together(year, 1), 2), round(epochs_together(year, 5), 2)
    (1.0, 2.4)
    """
    if not plan.guarantee.is_of_epochs:
        raise InputError(
            f"expected a plan of the user level of W steps (user:W), got one of the {plan.guarantee.wording.label}"
        )
    width = plan.guarantee.width(None)
    # The first step is drawn, and so no epoch has more draws than the first one
    n_draws = width if plan.n_drawn == plan.horizon else int(np.count_nonzero(plan.epsilons[:width]))
    n_releases = whole_number(n_epochs, "the number of epochs", least=1) * n_draws
    return leakage_together(plan.releases(1)[0], n_releases, plan.accounting)


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
        found = _of_windows(releases[0], width, n_steps, accounting)
        assert isinstance(found, LeakageSeries)
        return replace(found, details=temporal_leakage(Adversary(), releases, accounting=accounting).details)
    spent = [float(epsilon) for epsilon in releases]
    before = [sum_up(spent[max(t + 1 - width, 0) : t + 1]) for t in range(n_steps)]
    after = [sum_up(spent[t : t + width]) for t in range(n_steps)]
    both = np.full(n_steps, max(before))
    return LeakageSeries(np.array(spent), np.array(before), np.array(after), both, accounting=accounting)


def _of_windows(
    release: Any, width: int, horizon: int | None, accounting: Accounting[Any, Any]
) -> LeakageSeries | LeakageSupremum:
    """Leakage about the protected states at every step, for equal releases, of which `width` are about the same states."""
    each, worst = leakage_together(release, 1, accounting), leakage_together(release, width, accounting)
    if horizon is None:
        return LeakageSupremum(each, worst, worst, worst, accounting=accounting)
    before = np.minimum(_accumulated(release, min(width, horizon), accounting), worst)
    before = before[np.minimum(np.arange(horizon), len(before) - 1)]
    return LeakageSeries(np.full(horizon, each), before, before[::-1], np.full(horizon, worst), accounting=accounting)


def _accumulated(release: Any, n_steps: int, accounting: Accounting[Any, Any]) -> FloatArray:
    """Leakage of the first 1, 2, ... of equal releases together, in nats."""
    if not accounting.delta:
        return float(release) * np.arange(1.0, n_steps + 1.0)
    curves, own = _curves(release, accounting)
    each = curves.own(own)
    return np.array([curves.epsilon(one) for one in accumulate([each] * n_steps, curves.composed)])


def _curves(release: Any, accounting: Accounting[Any, Any]) -> tuple[SingleCurve, Mechanisms]:
    """Upper curves on the grid of the accounting, and the mechanisms of a release."""
    own = release_from(release)
    return SingleCurve(
        chosen_grid([own], accounting.delta, getattr(accounting, "grid", None)), accounting.delta, up=True
    ), own
