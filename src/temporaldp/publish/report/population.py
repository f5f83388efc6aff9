"""The figure of a population: the distribution of leakage over people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from temporaldp.base.display import figure_of, number
from temporaldp.lab.studies import LeakageDistribution
from temporaldp.publish.report.style import BLUE, DARK, GREY, ORANGE, legend_above, one_plot, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NAMES = 20
"""Groups that are drawn as one bar each."""


@figure_of.register(LeakageDistribution)
@styled
def population_figure(
    found: LeakageDistribution, *, level: float | None = None, groups: bool = False, axes: Axes | None = None
) -> Figure:
    """Share of people with at most each leakage, or one bar for each of a few groups; `level` is drawn as a line."""
    finite = np.isfinite(found.leakage)
    if groups and len(found.names) <= MOST_NAMES:
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
