"""Figures of leakage and budgets over time, of a matrix, and of released counts.

Each function returns a Matplotlib ``Figure`` outside of pyplot. Functions that are registered with `figure_of` are the `plot`
methods of results; Matplotlib is loaded with the first figure. All figures are readable in grey.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.display import bound, figure_of, number
from temporaldp.base.errors import InputError
from temporaldp.base.values import FloatArray
from temporaldp.core.accounting import LeakageSeries, LeakageSupremum, Observation
from temporaldp.core.correlation import TransitionMatrix
from temporaldp.core.planning import BudgetPlan, NoisePlan, PlanComparison
from temporaldp.core.planning.histogram_noise import noise_quantile
from temporaldp.data.counts import ReleasedHistograms
from temporaldp.publish.report.sentences import PAPER_BOUND
from temporaldp.publish.report.style import (
    BLUE,
    DARK,
    GREY,
    ORANGE,
    label_lines,
    legend_above,
    new_figure,
    one_plot,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@figure_of.register(LeakageSeries)
@styled
def leakage_figure(
    series: LeakageSeries,
    times: Sequence[object] | None = None,
    *,
    alpha: float | None = None,
    paper: LeakageSeries | None = None,
    axes: Axes | None = None,
) -> Figure:
    """BPL, FPL and TPL over time, with the epsilon of each release and the level alpha if there is one.

    With `paper`, the paper's bound of TPL as a thin line.
    """
    figure, axes = one_plot(3.6, axes)
    _draw_leakage(axes, series, _step_labels(times, len(series)), alpha, paper)
    return figure


@figure_of.register(LeakageSupremum)
@styled
def supremum_figure(found: LeakageSupremum, *, axes: Axes | None = None) -> Figure:
    """One release, and all of them from the past, from the future and together, as labelled bars."""
    figure, axes = one_plot(2.0, axes)
    known = {
        "one release": found.epsilon,
        "the past": found.backward,
        "the future": found.forward,
        "all": found.temporal,
    }
    bounded = {name: value for name, value in known.items() if math.isfinite(value)}
    bars = axes.barh(list(bounded), list(bounded.values()), 0.6, color=BLUE)
    axes.bar_label(bars, [bound(value) for value in bounded.values()], padding=3, fontsize=9)
    axes.invert_yaxis()
    axes.set(
        xlabel="leakage over an infinite horizon (nats)" + ("" if len(bounded) == 4 else "; the others have no bound")
    )
    axes.margins(x=0.15)
    return figure


@styled
def witness_figure(observation: Observation, times: Sequence[str]) -> Figure:
    """Steps by states: the high counts of the most revealing observation about one step are filled."""
    figure, axes = new_figure(1.3 + _height(observation))
    _draw_witness(axes, observation, times)
    return figure


@styled
def audit_figure(
    series: LeakageSeries, times: Sequence[str], observation: Observation, *, paper: LeakageSeries | None = None
) -> Figure:
    """`leakage_figure` above `witness_figure`."""
    heights = 3.4, 1.2 + _height(observation)
    figure, (above, below) = new_figure(sum(heights), subplots=(2, 1), height_ratios=heights)
    _draw_leakage(above, series, times, None, paper)
    _draw_witness(below, observation, times)
    return figure


def _draw_leakage(
    axes: Axes, series: LeakageSeries, times: Sequence[str], alpha: float | None, paper: LeakageSeries | None
) -> None:
    mark: dict[str, Any] = {"marker": "o", "markersize": 3} if len(series) <= 60 else {}
    axes.plot(series.temporal, color=DARK, linewidth=2, label="TPL, from all releases", **mark)
    axes.plot(series.backward, color=BLUE, linestyle="--", label="BPL, from the past", **mark)
    axes.plot(series.forward, color=ORANGE, linestyle="-.", label="FPL, from the future", **mark)
    axes.plot(
        series.epsilons, drawstyle="steps-mid", color=GREY, linestyle=":", linewidth=2, label="epsilon of the release"
    )
    if paper is not None:
        axes.plot(paper.temporal, color=GREY, linewidth=0.8, label=f"{PAPER_BOUND} of TPL")
    if alpha is not None:
        axes.axhline(alpha, color=DARK, linewidth=0.8, label=f"alpha = {alpha:g}")
    axes.set(ylabel="privacy leakage (nats)", ylim=(0.0, None))
    _time_axis(axes, times)
    label_lines(axes)


def _draw_witness(axes: Axes, observation: Observation, times: Sequence[str]) -> None:
    """Draw an observation, of a long series the steps around the explained one."""
    at, n = observation.time, len(observation.states)
    first = max(0, min(at - 60, len(observation) - 121))
    drawn = slice(first, first + 121)
    frame: dict[str, Any] = {"fill": False, "edgecolor": ORANGE, "linewidth": 2, "clip_on": False, "zorder": 3}
    axes.imshow(observation.high[drawn].T, cmap="Greys", vmin=-0.1, vmax=1.3, aspect="auto", interpolation="nearest")
    axes.grid(visible=False)
    for line in range(n + 1) if n <= 30 else ():
        axes.axhline(line - 0.5, color="white", linewidth=1)
    axes.axvspan(at - first - 0.5, at - first + 0.5, **frame)
    axes.set_yticks(*_labels(observation.states))
    axes.set_ylim(n - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_title(
        f"High counts (filled) of the most revealing observation about step {at + 1} (framed):\n"
        f"{_short(observation.state, 30)} rather than {_short(observation.other_state, 30)}",
        fontsize=9,
        loc="left",
    )
    _time_axis(axes, times[drawn])


def _height(observation: Observation) -> float:
    """Inches for the rows of an observation: at most half a page."""
    return min(5.0, 0.2 * len(observation.states))


@styled
def budget_figure(series: LeakageSeries, times: Sequence[str]) -> Figure:
    """The budget of each step, and the mean."""
    _, axes = new_figure(2.8)
    mean = float(series.epsilons.mean())
    _draw_budgets(axes, series.epsilons, times)
    axes.axhline(mean, color=DARK, linestyle="--", linewidth=1, label=f"mean {number(mean)}")
    return legend_above(axes, 2)


@figure_of.register(BudgetPlan)
@figure_of.register(NoisePlan)
@styled
def plan_figure(
    plan: BudgetPlan | NoisePlan, times: Sequence[object] | None = None, *, axes: Axes | None = None
) -> Figure:
    """Leakage under a plan with a horizon, and below it the budget of each step; on `axes`, both in one plot."""
    if not isinstance(plan.leakage, LeakageSeries):
        raise InputError(
            "expected a plan with a horizon, got one that spends the same at every step: give a horizon, or draw "
            "plan.leakage_to(adversary, n_steps)"
        )
    if axes is not None:
        return leakage_figure(plan.leakage, times, alpha=plan.alpha, axes=axes)
    labels = _step_labels(times, len(plan.leakage))
    heights = 3.2, 2.0
    figure, (above, below) = new_figure(sum(heights), subplots=(2, 1), height_ratios=heights)
    _draw_leakage(above, plan.leakage, labels, plan.alpha, None)
    above.set_xlabel("")
    _draw_budgets(below, plan.epsilons, labels)
    return figure


def _draw_budgets(axes: Axes, epsilons: FloatArray, times: Sequence[str]) -> None:
    """Draw the budget of each step; of a long series the largest budget of each run of steps."""
    n, together = len(epsilons), -(-len(epsilons) // 2_000)
    starts = np.arange(0, n, together)
    label = "budget of the step (epsilon)" if together == 1 else f"largest budget of {together} steps (epsilon)"
    edges = np.append(starts, n) - 0.5
    axes.stairs(np.maximum.reduceat(epsilons, starts), edges, fill=True, color=BLUE, label=label)
    axes.set_ylabel("budget (nats)")
    axes.grid(visible=False, axis="x")
    _time_axis(axes, times)


@figure_of.register(PlanComparison)
@styled
def comparison_figure(
    plans: PlanComparison, times: Sequence[object] | None = None, *, axes: Axes | None = None
) -> Figure:
    """Budgets over time of several plans for the same level; a larger budget means less noise."""
    if not plans.plans:
        raise InputError("expected at least one method with a plan, got none; see plans.refusals for the reasons")
    labels = _step_labels(times, len(next(iter(plans.plans.values())).epsilons))
    _, axes = one_plot(3.4, axes)
    mark: dict[str, Any] = {"marker": "o", "markersize": 3} if len(labels) <= 60 else {}
    looks: dict[str, dict[str, Any]] = {
        "optimal": {"linestyle": "-", "color": DARK, "linewidth": 2.2, **mark},
        "quantified": {"linestyle": "--", "color": BLUE},
        "upper_bound": {"linestyle": "-.", "color": ORANGE},
        "uniform": {"linestyle": ":", "color": GREY},
    }
    for method, plan in plans.plans.items():
        label = f"{method.replace('_', ' ')}: mean noise {plan.mean_absolute_noise:.1f} people"
        axes.plot(plan.epsilons, label=label, **looks[method])
    axes.set(ylabel="budget (nats)", ylim=(0.0, None))
    _time_axis(axes, labels)
    return legend_above(axes, 2)


@figure_of.register(TransitionMatrix)
@styled
def matrix_figure(matrix: TransitionMatrix, *, backward: bool = False, axes: Axes | None = None) -> Figure:
    """A transition matrix as a heat map, with numbers in up to ten rows, and every k-th state named if not all names fit."""
    n = matrix.n_states
    side = min(6.0, 2.2 + 0.42 * n)
    figure, axes = one_plot(side, axes, width=side + 1.0)
    darkest = 1.0 if n <= 10 else float(matrix.dense().max())  # many small probabilities would all be white
    image = axes.imshow(matrix.dense(), cmap="Greys", vmin=0.0, vmax=darkest)
    axes.grid(visible=False)
    now, other = "state now", "state one step before" if backward else "state one step later"
    positions, names = _labels(matrix.states)
    axes.set(xlabel=other, ylabel=now if len(names) == n else f"{now} ({len(names)} of {n} are named)")
    upright = max(map(len, names)) > 3 or sum(map(len, names)) > 40
    axes.set_xticks(positions, names, rotation=90 if upright else 0)
    axes.set_yticks(positions, names)
    if n <= 10:
        for (i, j), value in np.ndenumerate(matrix.dense()):
            shown = "0" if value == 0.0 else "<.005" if value < 0.005 else f"{value:.2f}"
            shade = "white" if value > 0.55 else "black"
            axes.text(j, i, shown, ha="center", va="center", color=shade, fontsize=9)
    figure.colorbar(image, ax=axes, label="probability", shrink=0.8)
    return figure


@figure_of.register(ReleasedHistograms)
@styled
def release_figure(released: ReleasedHistograms, true_counts: NDArray[np.int64] | None = None) -> Figure:
    """Published counts over time of the six largest states, as dots, with a band of 95 %; true counts are a line.

    The band is that of estimates; without them it is 95 % of the noise. Of a long
    series, every k-th step is drawn.
    """
    every = -(-len(released.times) // 2_000)
    steps = np.arange(0, len(released.times), every)
    estimates = released.estimates
    low, high, band = (
        _noise_band(released) if estimates is None else (estimates.lower, estimates.upper, "95 % interval")
    )
    chosen = np.sort(np.argsort(-released.counts.sum(axis=0), kind="stable")[:6]).tolist()
    columns = 3 if len(chosen) > 4 else min(2, len(chosen))
    height = -(-len(chosen) // columns)
    figure, grid = new_figure(0.5 + 1.45 * height, subplots=(height, columns))
    panels, line, dot = np.ravel(grid), 1.8 if len(steps) < 100 else 1.2, 3.0 if len(steps) < 100 else 1.2
    for panel in panels[len(chosen) :]:
        panel.set_visible(False)
    for k, (panel, state) in enumerate(zip(panels, chosen, strict=False)):
        counts, label = np.where(released.drawn, released.counts[:, state], np.nan)[steps], "released"
        panel.fill_between(
            steps, low[steps, state], high[steps, state], color=BLUE, alpha=0.25, linewidth=0.0, label=band, zorder=2.0
        )
        if estimates is not None:
            panel.plot(steps, estimates.counts[steps, state], color=BLUE, linewidth=line, label="estimate", zorder=3.0)
            most = 1.25 * float(high[:, state].max()) + 2.0
            counts, label = np.clip(counts, -0.15 * most, most), "released (clipped at the edge)"
            panel.set_ylim(-0.19 * most, 1.04 * most)
        if true_counts is not None:
            panel.plot(steps, true_counts[steps, state], color=DARK, linewidth=1.2, label="true", zorder=3.0)
        label += "" if every == 1 else f", 1 of {every} steps"
        panel.plot(steps, counts, ".", color=ORANGE, markersize=dot, label=label, zorder=1.0)
        panel.set_title(_short(released.states[state], 40 if columns < 3 else 28), fontsize=10, loc="left")
        panel.set_ylabel("" if k % columns else "people")
        _time_axis(panel, released.times, most=6 if columns < 3 else 4)
    for panel in panels[: len(chosen) - columns]:  # the panel below has the labels
        panel.set_xlabel("")
        panel.tick_params(labelbottom=False)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=4, fontsize=9, frameon=False)
    return figure


def _noise_band(released: ReleasedHistograms) -> tuple[FloatArray, FloatArray, str]:
    """Counts less and plus 95 % of the noise, at least 0, and the name of the band."""
    scales, of_step = np.unique(np.where(released.drawn, released.scales, 1.0), return_inverse=True)
    reach = np.array([noise_quantile(scale, 0.95, released.noise) for scale in scales.tolist()])[of_step]
    reach = np.where(released.drawn, reach, np.nan)[:, None]
    return np.maximum(released.counts - reach, 0.0), np.maximum(released.counts + reach, 0.0), "95 % of the noise"


def _labels(states: Sequence[str]) -> tuple[list[int], list[str]]:
    """Positions and names of at most 30 labels of an axis of states: every k-th if not all of them fit."""
    shown = list(range(0, len(states), -(-len(states) // 30)))
    return shown, [_short(states[k]) for k in shown]


def _step_labels(times: Sequence[object] | None, n_steps: int) -> list[str]:
    """The given labels of the steps, or their numbers from 0."""
    if times is not None and len(times) != n_steps:
        raise InputError(f"expected a label for each of the {n_steps} steps, got {len(times)}")
    return [str(time) for time in (range(n_steps) if times is None else times)]


def _time_axis(axes: Axes, times: Sequence[str], most: int = 12) -> None:
    every = max(1, -(-len(times) // most))
    shown = list(range(0, len(times), every))
    labels = [_short(times[k]) for k in shown]
    if all("T" in label for label in times):  # of one day the hours, else without the year
        hours = len({label.partition("T")[0] for label in times}) == 1
        labels = [label.partition("T")[2] if hours else label[5:].replace("T", " ") for label in labels]
    crowded = sum(map(len, labels)) > 5 * most
    axes.set_xticks(shown, labels, rotation=30 if crowded else 0, ha="right" if crowded else "center")
    numbered = all(time.lstrip("st").isdecimal() for time in times)
    axes.set(xlim=(-0.6, len(times) - 0.4), xlabel="step" if numbered else "time")


def _short(name: str, most: int = 20) -> str:
    return name if len(name) <= most else f"{name[: most - 3]}..."
