"""Pictures: leakage over time, budgets over time, the matrix, released against true counts.

Each function returns a matplotlib ``Figure`` that belongs to nobody's global state; all are readable in grey.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import LeakageSeries, Observation
from temporaldp.correlation import TransitionMatrix
from temporaldp.extras import needing
from temporaldp.planning import BudgetPlan, NoisePlan
from temporaldp.planning.histogram_noise import noise_quantile
from temporaldp.planning.plan import Method
from temporaldp.release import ReleasedHistograms, SmoothedHistograms
from temporaldp.report.style import BLUE, DARK, GREY, ORANGE, legend_above, new_figure, one_plot, styled
from temporaldp.report.thinning import drawn_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

FloatArray = NDArray[np.float64]

MOST_TICKS = 12
MOST_PANELS = 6
MOST_LABELS = 30
MOST_LETTERS = 40
MOST_NUMBERED = 10
MOST_STEPS = 121
MOST_BARS = 2_000


@styled
def leakage_figure(
    series: LeakageSeries,
    times: Sequence[str],
    *,
    alpha: float | None = None,
    paper: LeakageSeries | None = None,
    axes: Axes | None = None,
) -> Figure:
    """BPL, FPL and TPL over time against what each release promises on its own, and the level alpha if there is one.

    With `paper`, the paper's bound of TPL as a thin line.
    """
    figure, axes = one_plot(3.6, axes)
    _draw_leakage(axes, series, times, alpha, paper)
    return figure


@styled
def witness_figure(observation: Observation, times: Sequence[str]) -> Figure:
    """Steps by values: dark where the count comes out high in the observation that gives most away about one step."""
    figure, axes = new_figure(1.3 + _height(observation))
    _draw_witness(axes, observation, times)
    return figure


@styled
def audit_figure(
    series: LeakageSeries, times: Sequence[str], observation: Observation, *, paper: LeakageSeries | None = None
) -> Figure:
    """`leakage_figure` with the picture of `witness_figure` below it."""
    heights = 3.4, 1.2 + _height(observation)
    figure, (above, below) = new_figure(sum(heights), subplots=(2, 1), height_ratios=heights)
    _draw_leakage(above, series, times, None, paper)
    _draw_witness(below, observation, times)
    return figure


def _draw_leakage(
    axes: Axes, series: LeakageSeries, times: Sequence[str], alpha: float | None, paper: LeakageSeries | None
) -> None:
    mark: dict[str, Any] = {"marker": "o", "markersize": 3} if len(series) <= 60 else {}
    _draw_line(axes, series.temporal, color=DARK, linewidth=2, label="TPL, from all releases", **mark)
    _draw_line(axes, series.backward, color=BLUE, linestyle="--", label="BPL, from the past", **mark)
    _draw_line(axes, series.forward, color=ORANGE, linestyle="-.", label="FPL, from the future", **mark)
    _draw_line(
        axes,
        series.epsilons,
        color=GREY,
        linestyle=":",
        linewidth=2,
        drawstyle="steps-mid",
        label="promised at the step (epsilon)",
    )
    if paper is not None:
        _draw_line(axes, paper.temporal, color=GREY, linewidth=0.8, label="the paper's upper bound of TPL")
    if alpha is not None:
        axes.axhline(alpha, color=DARK, linewidth=0.8)
        axes.annotate(
            f"alpha = {alpha:g}", (len(series) - 1, alpha), (0, 6), textcoords="offset points", fontsize=9, ha="right"
        )
    axes.set_ylabel("privacy leakage (nats)")
    axes.set_ylim(0, 1.12 * max(float((paper or series).temporal.max()), alpha or 0.0))
    _time_axis(axes, times)
    legend_above(axes, 2)


def _draw_line(axes: Axes, values: NDArray[Any], **look: Any) -> None:
    """One value a step."""
    steps = drawn_points(values)
    axes.plot(steps, values[steps], **look)


def _draw_witness(axes: Axes, observation: Observation, times: Sequence[str]) -> None:
    """Of a long series the steps around the one in question."""
    at, n = observation.time, len(observation.states)
    first = max(0, min(at - MOST_STEPS // 2, len(observation) - MOST_STEPS))
    high = observation.high[first : first + MOST_STEPS]
    shown = times[first : first + MOST_STEPS]
    axes.imshow(high.T, cmap="Greys", vmin=-0.1, vmax=1.3, aspect="auto", interpolation="nearest")
    axes.grid(visible=False)
    for line in range(n + 1) if n <= MOST_LABELS else ():
        axes.axhline(line - 0.5, color="white", linewidth=1)
    axes.add_patch(_frame(at - first, n))
    axes.set_yticks(*_labels(observation.states))
    axes.set_ylim(n - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_title(
        f"Counts that come out high (dark) if most is to be learnt about step {at + 1} (framed):\n"
        f"{_short(observation.value, 30)} rather than {_short(observation.other_value, 30)}",
        fontsize=9,
        loc="left",
    )
    _time_axis(axes, shown)


def _frame(step: int, n: int) -> Rectangle:
    with needing("report"):
        from matplotlib.patches import Rectangle

    return Rectangle((step - 0.5, -0.5), 1.0, n, fill=False, edgecolor=ORANGE, linewidth=2, clip_on=False, zorder=3)


def _height(observation: Observation) -> float:
    """Inches for the rows of a witness: more values, more room, up to half a page."""
    return min(5.0, 0.2 * len(observation.states))


@styled
def budget_figure(series: LeakageSeries, times: Sequence[str]) -> Figure:
    """The budget of each step."""
    figure, axes = new_figure(2.8)
    _draw_budgets(axes, series.epsilons)
    axes.axhline(
        float(series.epsilons.mean()),
        color=DARK,
        linestyle="--",
        linewidth=1,
        label=f"mean {series.epsilons.mean():.3g}",
    )
    axes.set_ylabel("budget (nats)")
    axes.grid(visible=False, axis="x")
    _time_axis(axes, times)
    legend_above(axes, 2)
    return figure


@styled
def plan_figure(plan: BudgetPlan | NoisePlan, times: Sequence[str]) -> Figure:
    """What leaks under a plan with a horizon, and below it what each step spends."""
    assert isinstance(plan.leakage, LeakageSeries)
    heights = 3.2, 2.0
    figure, (above, below) = new_figure(sum(heights), subplots=(2, 1), height_ratios=heights)
    _draw_leakage(above, plan.leakage, times, plan.alpha, None)
    above.set_xlabel("")
    _draw_budgets(below, plan.epsilons)
    below.set_ylabel("budget (nats)")
    below.grid(visible=False, axis="x")
    _time_axis(below, times)
    return figure


def _draw_budgets(axes: Axes, epsilons: FloatArray) -> None:
    """A bar a step; of a long series one for so many steps, as high as the largest of them."""
    n, together = len(epsilons), -(-len(epsilons) // MOST_BARS)
    if together == 1:
        axes.bar(np.arange(n), epsilons, width=0.8, color=BLUE, label="budget of the step (epsilon)")
        return
    starts = np.arange(0, n, together)
    largest = np.maximum.reduceat(epsilons, starts)
    label = f"budget of a step (epsilon), the largest of {together}"
    axes.stairs(largest, np.append(starts, n) - 0.5, fill=True, color=BLUE, label=label)


@styled
def comparison_figure(plans: Mapping[Method, BudgetPlan], times: Sequence[str], *, axes: Axes | None = None) -> Figure:
    """Budgets over time of several plans for the same level; less noise is a larger budget."""
    figure, axes = one_plot(3.4, axes)
    lines = {"optimal": "-", "quantified": "--", "upper_bound": "-.", "uniform": ":"}
    colours = {"optimal": DARK, "quantified": BLUE, "upper_bound": ORANGE, "uniform": GREY}
    for method, plan in plans.items():
        noise = float(np.mean(1.0 / plan.epsilons))
        label = f"{method.replace('_', ' ')}: mean 1/epsilon {noise:.4g}"
        axes.plot(
            np.arange(len(times)),
            plan.epsilons,
            color=colours[method],
            linestyle=lines[method],
            linewidth=2.2 if method == "optimal" else 1.6,
            marker="o" if len(times) <= 60 and method == "optimal" else None,
            markersize=3,
            label=label,
        )
    axes.set_ylabel("budget (nats)")
    axes.set_ylim(bottom=0.0)
    _time_axis(axes, times)
    legend_above(axes, 2)
    return figure


@styled
def matrix_figure(matrix: TransitionMatrix, *, backward: bool, axes: Axes | None = None) -> Figure:
    """The transition matrix as a heat map, with numbers where they fit, and every k-th value named where not all names fit."""
    n = matrix.n_states
    side = min(6.0, 2.2 + 0.42 * n)
    figure, axes = one_plot(side, axes, width=side + 1.0)
    darkest = 1.0 if n <= MOST_NUMBERED else float(matrix.dense().max())  # many small probabilities would all be white
    image = axes.imshow(matrix.dense(), cmap="Greys", vmin=0.0, vmax=darkest)
    axes.grid(visible=False)
    now, other = "state now", "state one step before" if backward else "state one step later"
    positions, names = _labels(matrix.states)
    axes.set_ylabel(now if len(names) == n else f"{now} ({len(names)} of {n} are named)")
    axes.set_xlabel(other)
    upright = max(map(len, names)) > 3 or sum(map(len, names)) > MOST_LETTERS
    axes.set_xticks(positions, names, rotation=90 if upright else 0)
    axes.set_yticks(positions, names)
    if n <= MOST_NUMBERED:
        for (i, j), value in np.ndenumerate(matrix.dense()):
            shade = "white" if value > 0.55 else "black"
            axes.text(j, i, _cell(float(value)), ha="center", va="center", color=shade, fontsize=9)
    figure.colorbar(image, ax=axes, label="probability", shrink=0.8)
    return figure


@styled
def release_figure(
    released: ReleasedHistograms,
    true_counts: NDArray[np.int64] | None = None,
    *,
    smoothed: SmoothedHistograms | None = None,
) -> Figure:
    """Released counts per state over time; with the true counts, these and the band that holds 95 % of the noise.

    With smoothed counts of the same steps, these and their 95 % intervals in place of that band, released counts as dots.
    """
    chosen = np.argsort(-released.counts.sum(axis=0), kind="stable")[:MOST_PANELS]
    chosen = np.sort(chosen)
    columns = min(2, len(chosen))
    rows = -(-len(chosen) // columns)
    figure, grid = new_figure(0.6 + 1.75 * rows, subplots=(rows, columns))
    steps = np.arange(len(released.times))
    scales, of_step = np.unique(released.scales, return_inverse=True)
    reach = np.array([noise_quantile(scale, 0.95, released.noise) for scale in scales.tolist()])[of_step]
    noise = "95 % of the noise" + (", before post-processing" if released.consistent else "")
    panels = np.atleast_1d(np.asarray(grid, dtype=object)).ravel()
    for panel in panels[len(chosen) :]:
        panel.set_visible(False)
    for panel, state in zip(panels, chosen, strict=False):
        if smoothed is not None:
            _draw_smoothed(panel, released, smoothed, int(state))
        if true_counts is not None and smoothed is not None:
            _draw_line(panel, true_counts[:, state], color=DARK, linewidth=1.2, label="true")
        elif true_counts is not None:
            truth = true_counts[:, state]
            low = truth - reach if not released.consistent else np.maximum(truth - reach, 0)
            panel.fill_between(steps, low, truth + reach, color="0.85", label=noise)
            _draw_line(panel, truth, color=DARK, linewidth=1.6, label="true")
        if smoothed is None:
            _draw_line(panel, released.counts[:, state], color=ORANGE, linewidth=1.2, label="released")
        panel.set_title(_short(released.states[state], 40), fontsize=10, loc="left")
        panel.set_ylabel("people")
        _time_axis(panel, released.times, most=6)
    for panel in panels[: len(chosen) - columns]:  # the panel below says it
        panel.set_xlabel("")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper left", ncols=4 if smoothed is not None else 3, fontsize=9, frameon=False
    )
    return figure


def _draw_smoothed(panel: Axes, released: ReleasedHistograms, smoothed: SmoothedHistograms, state: int) -> None:
    """Dots as released, cut off where most of the picture would be noise; a line and its band as smoothed."""
    steps = np.arange(len(released.times))
    rows = [smoothed.times.index(time) for time in released.times]
    lower, upper = smoothed.lower[rows, state], smoothed.upper[rows, state]
    most = 1.25 * float(upper.max()) + 2.0
    shown = np.clip(released.counts[:, state], -0.15 * most, most)
    panel.plot(steps, shown, ".", color=ORANGE, markersize=4, label="released (on the edge: beyond)")
    panel.fill_between(steps, lower, upper, color=BLUE, alpha=0.25, linewidth=0.0, label="95 % interval")
    panel.plot(steps, smoothed.counts[rows, state], color=BLUE, linewidth=1.8, label="smoothed")
    panel.set_ylim(-0.19 * most, 1.04 * most)


def _labels(states: Sequence[str]) -> tuple[list[int], list[str]]:
    """Where an axis of values has its labels, and what they say: every k-th where not all of them fit."""
    shown = list(range(0, len(states), -(-len(states) // MOST_LABELS)))
    return shown, [_short(states[k]) for k in shown]


def _time_axis(axes: Axes, times: Sequence[str], most: int = MOST_TICKS) -> None:
    every = max(1, -(-len(times) // most))
    shown = list(range(0, len(times), every))
    crowded = sum(len(times[k]) for k in shown) > 5 * most
    axes.set_xticks(
        shown, [_short(times[k]) for k in shown], rotation=30 if crowded else 0, ha="right" if crowded else "center"
    )
    axes.set_xlim(-0.6, len(times) - 0.4)
    axes.set_xlabel("time")


def _cell(value: float) -> str:
    return "0" if value == 0.0 else "<.005" if value < 0.005 else f"{value:.2f}"


def _short(name: str, most: int = 20) -> str:
    return name if len(name) <= most else f"{name[: most - 3]}..."
