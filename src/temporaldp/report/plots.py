"""What `plot` of each result draws. Importing this registers it; Matplotlib loads with the first picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import LeakageSeries
from temporaldp.correlation import TransitionMatrix
from temporaldp.display import figure_of
from temporaldp.errors import InputError
from temporaldp.planning import BudgetPlan, NoisePlan, PlanComparison
from temporaldp.release import ReleasedHistograms
from temporaldp.report.figures import comparison_figure, leakage_figure, matrix_figure, plan_figure, release_figure
from temporaldp.report.population import population_figure
from temporaldp.report.tradeoff_figure import tradeoff_figure
from temporaldp.smoothing import Tradeoff
from temporaldp.studies import LeakageDistribution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from temporaldp.release import SmoothedHistograms


def _labels(times: Sequence[object] | None, n_steps: int) -> list[str]:
    """The labels of the steps: as given, or their numbers from 0."""
    if times is None:
        return [str(step) for step in range(n_steps)]
    if len(times) != n_steps:
        raise InputError(f"expected a label for each of the {n_steps} steps, got {len(times)}")
    return [str(time) for time in times]


@figure_of.register(LeakageSeries)
def _series(
    series: LeakageSeries,
    *,
    times: Sequence[object] | None = None,
    alpha: float | None = None,
    paper: LeakageSeries | None = None,
    axes: Axes | None = None,
) -> Figure:
    return leakage_figure(series, _labels(times, len(series)), alpha=alpha, paper=paper, axes=axes)


@figure_of.register(BudgetPlan)
@figure_of.register(NoisePlan)
def _plan(plan: BudgetPlan | NoisePlan, *, times: Sequence[object] | None = None, axes: Axes | None = None) -> Figure:
    if not isinstance(plan.leakage, LeakageSeries):
        raise InputError(
            "a plan without a horizon spends the same at every step, so that there is nothing to draw; give a horizon, or draw "
            "plan.leakage_to(adversary, n_steps)"
        )
    labels = _labels(times, len(plan.leakage))
    if axes is not None:  # one plot: what the steps spend is a line of it
        return leakage_figure(plan.leakage, labels, alpha=plan.alpha, axes=axes)
    return plan_figure(plan, labels)


@figure_of.register(PlanComparison)
def _comparison(plans: PlanComparison, *, times: Sequence[object] | None = None, axes: Axes | None = None) -> Figure:
    if not plans.plans:
        raise InputError("no method has a plan, so that there is nothing to draw; plans.refusals says why")
    horizon = len(next(iter(plans.plans.values())).epsilons)
    return comparison_figure(plans.plans, _labels(times, horizon), axes=axes)


@figure_of.register(TransitionMatrix)
def _matrix(matrix: TransitionMatrix, *, backward: bool = False, axes: Axes | None = None) -> Figure:
    return matrix_figure(matrix, backward=backward, axes=axes)


@figure_of.register(ReleasedHistograms)
def _released(
    released: ReleasedHistograms,
    *,
    true_counts: NDArray[np.int64] | None = None,
    smoothed: SmoothedHistograms | None = None,
) -> Figure:
    return release_figure(released, true_counts, smoothed=smoothed)


@figure_of.register(LeakageDistribution)
def _distribution(
    found: LeakageDistribution, *, level: float | None = None, groups: bool = False, axes: Axes | None = None
) -> Figure:
    return population_figure(found, level=level, groups=groups, axes=axes)


@figure_of.register(Tradeoff)
def _tradeoff(found: Tradeoff, *, axes: Axes | None = None) -> Figure:
    return tradeoff_figure(found, axes=axes)
