"""Figures of studies: the uncertainty of a correlation, its diagnosis, people, the tradeoff of alpha and error, attacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from temporaldp.base.display import figure_of, number
from temporaldp.base.extras import needing
from temporaldp.data.smoothing import GuaranteeComparison
from temporaldp.lab.studies import Diagnosis, LeakageDistribution, LeakageUncertainty, ReleaseAttack
from temporaldp.publish.report.sentences import at_delta
from temporaldp.publish.report.style import BLUE, DARK, GREY, ORANGE, legend_above, new_figure, one_plot, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
def uncertainty_figure(found: LeakageUncertainty) -> Figure:
    """Draws of the posterior and of resampled people, the estimate, the worst matrices found, and the guarantee."""
    _, axes = new_figure(3.2)
    people = np.empty(0) if found.people is None else found.people
    bins = np.histogram_bin_edges(np.concatenate([found.posterior, people]), 30).tolist()
    axes.hist(found.posterior, bins, color=BLUE, alpha=0.6, label="posterior")
    if found.people is not None:
        axes.hist(people, bins, histtype="step", color=ORANGE, linewidth=1.5, label="resampled people")
    if math.isfinite(found.estimate):
        axes.axvline(found.estimate, color=DARK, linestyle=":", linewidth=2, label="estimate")
    axes.axvline(found.attained, color=DARK, linestyle="--", linewidth=1.5, label="worst matrices found")
    axes.axvline(found.guaranteed, color=DARK, linewidth=2, label=f"guaranteed at {100.0 * found.confidence:g} %")
    xlabel = "largest temporal privacy leakage of any step (nats)"
    axes.set(xlim=(0.0, 1.03 * axes.get_xlim()[1]), xlabel=xlabel, ylabel="draws")
    return legend_above(axes, 3)


@styled
def range_figure(stays: Sequence[float], leakage: Sequence[float], guaranteed: float) -> Figure:
    """Exact leakage of chains that stay with a given probability and otherwise move uniformly, and the bound of the range."""
    _, axes = new_figure(3.2)
    axes.plot(stays, leakage, color=BLUE, marker="o", markersize=3, label="uniform otherwise (exact)")
    axes.axhline(guaranteed, color=DARK, linewidth=2, label="every matrix of the range (upper bound)")
    axes.set(
        xlabel="probability of staying",
        ylabel="largest leakage of any step (nats)",
        ylim=(0.0, 1.08 * max(guaranteed, *leakage)),
    )
    return legend_above(axes, 2)


@styled
def diagnosis_figure(found: Diagnosis) -> Figure:
    """Leakage under each model: bars from below, lines up to the upper bound."""
    known = [one for one in found.models if math.isfinite(one.proved)]
    _, axes = new_figure(1.2 + 0.35 * max(1, len(known)))
    places = np.arange(len(known))
    axes.barh(places, [one.attained for one in known], color=BLUE, height=0.6, label="attained")
    axes.hlines(places, [one.attained for one in known], [one.proved for one in known], color=GREY, linewidth=2)
    axes.plot([one.proved for one in known], places, "|", color=DARK, markersize=12, label="upper bound")
    axes.set_yticks(places.tolist(), [one.model for one in known])
    axes.invert_yaxis()
    axes.set_xlabel(f"largest temporal leakage of any step (nats),\nepsilon {found.epsilon:g} a step")
    return legend_above(axes, 2)


@figure_of.register(LeakageDistribution)
@styled
def population_figure(
    found: LeakageDistribution, *, level: float | None = None, groups: bool = False, axes: Axes | None = None
) -> Figure:
    """Share of people with at most each leakage, or one bar for each of a few groups; `level` is drawn as a line."""
    finite = np.isfinite(found.leakage)
    if groups and len(found.names) <= 20:
        _, axes = one_plot(1.2 + 0.3 * len(found.names), axes)
        places = np.arange(len(found.names))[::-1]
        axes.barh(places[finite], found.leakage[finite], color=BLUE, height=0.6, label="largest leakage of a step")
        axes.set_yticks(places, found.names)
        axes.grid(axis="y", visible=False)
    else:
        _, axes = one_plot(3.4, axes)
        axes.ecdf(found.leakage, found.people, color=BLUE, label="people with at most this leakage")
        axes.set(ylabel="share of people", ylim=(0.0, 1.03))
    axes.axvline(found.epsilon, color=GREY, linestyle="--", label=f"each release by itself: {found.epsilon:g}")
    if level is not None:
        axes.axvline(level, color=ORANGE, label=f"{number(100.0 * found.share_above(level))} % are above {level:g}")
    if not finite.all():
        lost = found.people[~finite].sum() / found.n_people
        axes.plot([], [], color=DARK, linestyle="none", label=f"{number(100.0 * lost)} % without bound")
    axes.set(xlim=(0.0, None), xlabel="largest temporal privacy leakage of a step (nats)")
    return legend_above(axes, 2)


@figure_of.register(GuaranteeComparison)
@styled
def guarantees_figure(found: GuaranteeComparison, *, axes: Axes | None = None) -> Figure:
    """Noise and, where it was simulated, the error of estimates under each guarantee."""
    with needing("report"):
        from matplotlib.ticker import LogLocator, NullLocator

    rows = [row for row in found.rows if row.plan is not None]
    _, axes = one_plot(1.2 + 0.5 * len(rows), axes)
    places = np.arange(len(rows))[::-1]
    axes.barh(places + 0.2, [row.noise for row in rows], 0.36, color=ORANGE, label="noise")
    if any(row.error is not None for row in rows):
        axes.barh(places - 0.2, [row.error or 0.0 for row in rows], 0.36, color=BLUE, label="error of estimates")
    levels = len({row.alpha for row in rows}) > 1
    names = [row.name + (f", alpha = {row.alpha:g}" if levels else "") for row in rows]
    axes.set_yticks(places, names, fontsize=9)
    axes.set(xscale="log", xlabel="people on a count")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    return legend_above(axes, 2)


@styled
def attack_figure(found: ReleaseAttack) -> Figure:
    """True over false positives: guessing, the attack on the release, the mean over other draws, and the excluded region."""
    _, axes = new_figure(5.6, width=5.6)
    rates = np.linspace(0.0, 1.0, 501)
    limit = found.allowed(rates)
    axes.fill_between(rates, limit, 1.0, color="0.9", linewidth=0.0)
    allowed = f"largest rate for {number(found.epsilon, up=True)} nats{at_delta(found.delta)}"
    axes.plot(rates, limit, color=ORANGE, linewidth=2, label=allowed)
    axes.plot(found.false_positives, found.true_positives, color=BLUE, linewidth=2, label="attack on this release")
    if found.repeats:
        axes.plot(
            found.mean_false_positives,
            found.mean_true_positives,
            color=DARK,
            linestyle="--",
            linewidth=1.2,
            label=f"mean over {found.repeats} other draws of the noise",
        )
    axes.plot([0, 1], [0, 1], color=GREY, linestyle=":", label="guessing")
    axes.annotate("excluded by the guarantee", (0.03, 0.97), fontsize=9, va="top", color="0.35")
    axes.set(
        xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal", xlabel="false positive rate", ylabel="true positive rate"
    )
    return legend_above(axes, 1)
