"""Exhibits as pictures: one line style and marker a curve, so that the curves differ in grey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from reproduction import printed
from reproduction.exhibit import Curve, Exhibit, Panel

EXACT = "exact"
"""Name of the exact leakage's curves, one for each curve of the paper's."""

STYLE: Any = {
    "font.size": 10,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.88",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "temporaldp",
}
"""Matplotlib settings of all pictures; the salt makes the same data give the same SVG file."""

BLUE, ORANGE, DARK, GREY, GREEN, PURPLE = "#2166ac", "#d6604d", "#1a1a1a", "#8c8c8c", "#4d9221", "#762a83"
WIDTH = 7.2  # inches

Look = Mapping[str, Any]

LOOKS: tuple[Look, ...] = (
    {"color": DARK, "linestyle": "-", "marker": "o"},
    {"color": BLUE, "linestyle": "--", "marker": "s"},
    {"color": ORANGE, "linestyle": "-.", "marker": "^"},
    {"color": GREEN, "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "D"},
    {"color": PURPLE, "linestyle": (0, (1, 1)), "marker": "v"},
    {"color": GREY, "linestyle": (0, (8, 2)), "marker": "P"},
    {"color": DARK, "linestyle": (0, (3, 3)), "marker": "x"},
)
RING: Look = {"color": DARK, "marker": "o"}
STAR: Look = {"color": DARK, "marker": "*", "markersize": 11}
THIN: Look = {"color": "#ffc53d", "linestyle": (0, (3, 2)), "linewidth": 1.0, "marker": "none", "zorder": 5}
"""Look of the exact leakage, drawn on top of the curve of the paper's bound."""

FEW_POINTS = 8
"""Number of points below which the exact leakage is drawn as dots."""

MOST_MARKERS = 16
"""Largest number of markers on a curve."""


@mpl.rc_context(STYLE)
def draw_panels(
    exhibit: Exhibit,
    *,
    height: float,
    share: bool = False,
    logarithmic: Mapping[str, str] | None = None,
    looks: Mapping[str, Look] | None = None,
    columns: int = 3,
) -> Figure:
    """Draw the panels side by side under one legend.

    `logarithmic` names the logarithmic axes of a panel by its key ("x", "y", "xy"); `share` gives all panels one vertical
    scale; `looks` replaces the look of curves by their names; `columns` is the legend's.
    """
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    every = figure.subplots(1, len(exhibit.panels), squeeze=False)[0]
    chosen = {**_looks(exhibit.curves), **(looks or {})}
    for axes, panel in zip(every, exhibit.panels, strict=True):
        for curve in exhibit.in_panel(panel):
            draw_curve(axes, curve, chosen[curve.name])
        _describe(axes, panel, (logarithmic or {}).get(panel.key, ""))
    if share:
        top = max(axes.get_ylim()[1] for axes in every)
        for axes in every:
            axes.set_ylim(0.0, top)
        for axes in every[1:]:
            axes.set_ylabel("")
            axes.tick_params(labelleft=False)
    named = {label: handle for axes in every for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if EXACT in named:
        named[EXACT] = named.pop(EXACT)  # the last, as it belongs to all
    figure.legend(named.values(), named.keys(), loc="outside upper left", ncols=columns, fontsize=9, handlelength=3.2)
    return figure


@mpl.rc_context(STYLE)
def save_figure(figure: Figure, path: Path) -> None:
    """Write a picture as PNG or SVG, by the suffix of its path."""
    metadata: Any = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, dpi=160, metadata=metadata)


def draw_curve(axes: Axes, curve: Curve, look: Look) -> None:
    """Draw a line with markers; published or sampled numbers as hollow points; the exact leakage as a thin line."""
    shown = np.isfinite(curve.y)
    x, y = curve.x[shown], curve.y[shown]
    if curve.name == EXACT:
        # A line through few points would leave the curve that they lie on.
        look = {**THIN, "linestyle": "none", "marker": "."} if len(x) < FEW_POINTS else THIN
        axes.plot(x, y, **look, label=curve.name)
        return
    if is_reference(curve):
        points: dict[str, Any] = {
            "linestyle": "none",
            "markerfacecolor": "none",
            "markersize": look.get("markersize", 9),
            "clip_on": False,
        }
        spread = None if curve.spread is None else 2.0 * curve.spread[shown]
        axes.errorbar(x, y, spread, **{**look, **points}, zorder=4, label=curve.name, elinewidth=1)
        return
    every = max(1, -(-len(x) // MOST_MARKERS))
    axes.plot(x, y, **{"markersize": 4, "linewidth": 1.5, **look}, markevery=every, label=curve.name)


def is_reference(curve: Curve) -> bool:
    """Return whether the numbers are published ones, or check another curve."""
    return curve.checks is not None or curve.source == printed.PAPER


def _looks(curves: Sequence[Curve]) -> dict[str, Look]:
    """Return a look for each name, in the order of the curves; references are dark rings."""
    own = list(dict.fromkeys(curve.name for curve in curves if not is_reference(curve)))
    found = {curve.name: RING for curve in curves if is_reference(curve)}
    return found | {name: LOOKS[k % len(LOOKS)] for k, name in enumerate(own)}


def _describe(axes: Axes, panel: Panel, logarithmic: str) -> None:
    axes.set_title(f"({panel.key}) {panel.title}" if panel.key else panel.title, fontsize=10, loc="left")
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    for name in logarithmic:
        plain_logarithmic(axes, name)


def plain_logarithmic(axes: Axes, name: str) -> None:
    """Make an axis, "x" or "y", logarithmic with plain numbers: 0.001, 10, 1000, 1e+06."""
    (axes.set_xscale if name == "x" else axes.set_yscale)("log")
    axis = axes.xaxis if name == "x" else axes.yaxis
    low, high = sorted(axis.get_view_interval())
    axis.set_major_locator(LogLocator(base=10.0, numticks=9, subs=(1.0, 3.0) if high / low < 50.0 else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
