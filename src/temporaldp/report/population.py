"""The picture of a population: which share of people is leaked about up to how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from temporaldp.report.style import BLUE, DARK, GREY, ORANGE, legend_above, one_plot, styled
from temporaldp.studies import LeakageDistribution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NAMES = 20
"""Groups up to which each has a bar with its name."""


@styled
def population_figure(
    found: LeakageDistribution, *, level: float | None = None, groups: bool = False, axes: Axes | None = None
) -> Figure:
    """The share of people whose leakage is at most each level; of few groups, a bar each. `level` is drawn as a line."""
    finite = np.isfinite(found.leakage)
    if groups and len(found.names) <= MOST_NAMES:
        figure, axes = one_plot(1.2 + 0.3 * len(found.names), axes)
        places = np.arange(len(found.names))[::-1]
        axes.barh(places[finite], found.leakage[finite], color=BLUE, height=0.6, label="leakage at worst")
        axes.set_yticks(places, found.names)
        axes.grid(axis="y", visible=False)
    else:
        figure, axes = one_plot(3.4, axes)
        order = np.flatnonzero(finite)[::-1]
        share = np.cumsum(found.people[order]) / found.n_people
        axes.step(
            found.leakage[order], 100.0 * share, where="post", color=BLUE, label="people leaked about at most so much"
        )
        axes.set_ylabel("% of people")
        axes.set_ylim(0.0, 103.0)
    axes.axvline(found.epsilon, color=GREY, linestyle="--", label=f"each release on its own: {found.epsilon:g}")
    if level is not None:
        axes.axvline(level, color=ORANGE, label=f"{100.0 * found.share_above(level):.2g} % are above {level:g}")
    if not finite.all():
        lost = found.people[~finite].sum() / found.n_people
        axes.plot([], [], color=DARK, linestyle="none", label=f"{100.0 * lost:.2g} % without bound")
    axes.set_xlim(left=0.0)
    axes.set_xlabel("temporal privacy leakage at worst (nats)")
    legend_above(axes, 2)
    return figure
