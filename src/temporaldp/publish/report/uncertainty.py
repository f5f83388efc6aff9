"""Figures of the uncertainty of a correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from temporaldp.lab.studies import Diagnosis, LeakageUncertainty
from temporaldp.publish.report.style import BLUE, DARK, GREY, ORANGE, legend_above, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def uncertainty_figure(found: LeakageUncertainty) -> Figure:
    """Draws of the posterior and of resampled people, the estimate, the worst matrices found, and the guarantee."""
    _, axes = new_figure(3.2)
    people = [] if found.people is None else [found.people.worst]
    bins = np.histogram_bin_edges(np.concatenate([found.posterior.worst, *people]), 30).tolist()
    axes.hist(found.posterior.worst, bins, color=BLUE, alpha=0.6, label="posterior")
    for worst in people:
        axes.hist(worst, bins, histtype="step", color=ORANGE, linewidth=1.5, label="resampled people")
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
