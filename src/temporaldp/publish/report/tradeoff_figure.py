"""The figure of the tradeoff between alpha and the error of a count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from temporaldp.base.display import figure_of, number
from temporaldp.base.extras import needing
from temporaldp.data.smoothing import Tradeoff
from temporaldp.publish.report.sentences import at_delta
from temporaldp.publish.report.style import BLUE, DARK, GREY, ORANGE, legend_above, one_plot, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@figure_of.register(Tradeoff)
@styled
def tradeoff_figure(found: Tradeoff, *, axes: Axes | None = None) -> Figure:
    """Error of released and smoothed counts over alpha; where computed, also under w-event and user-level privacy."""
    with needing("report"):
        from matplotlib.ticker import LogLocator, NullLocator

    _, axes = one_plot(3.8, axes)
    alphas = [point.alpha for point in found.points]
    axes.plot(alphas, [p.error for p in found.points], color=ORANGE, marker="o", markersize=4, label="as released")
    axes.plot(
        alphas,
        [p.smoothed_error for p in found.points],
        color=BLUE,
        marker="o",
        markersize=4,
        linewidth=2,
        label="smoothed by the public correlation",
    )
    for points, name, line in (
        (found.window_points, f"smoothed, {found.window}-event privacy at this alpha", "--"),
        (found.user_points, "smoothed, user-level privacy at this alpha", ":"),
    ):
        if points:
            axes.plot(alphas, [p.smoothed_error for p in points], color=GREY, linestyle=line, label=name)
    if found.largest_error is not None:
        axes.axhline(found.largest_error, color=DARK, linewidth=0.8)
        if found.within is not None:
            where = (found.within.alpha, found.largest_error)
            axes.plot(*where, marker="D", color=DARK, markersize=6)
            axes.annotate(
                f"alpha = {number(found.within.alpha, up=True)}", where, (6, 6), textcoords="offset points", fontsize=9
            )
    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    xlabel = f"alpha: largest leakage of any step (nats{at_delta(found.delta)})"
    axes.set(xlabel=xlabel, ylabel="mean error of a count (people)")
    return legend_above(axes, 2)
