"""Figures of a card: the supremum of the leakage over the range of chains, beside the leakage of one step."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from temporaldp.base.display import number
from temporaldp.publish.deployment.explanation import explained
from temporaldp.publish.report.sentences import INFERENCE_ONLY, INFINITE_HORIZON, UNKNOWN_FIT, at_delta
from temporaldp.publish.report.style import BLUE, DARK, GREY, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from temporaldp.publish.deployment.card import DeploymentCard

LINE_LETTERS, LINE_HEIGHT = 96, 0.155
"""Letters of a line of 9 points, and the distance between lines in inches."""


@styled
def curve_figure(card: DeploymentCard) -> Figure:
    """The supremum over the range of chains, beside the leakage of one step by itself."""
    figure, axes = new_figure(3.6)
    _draw_curve(axes, card)
    return figure


@styled
def card_figure(card: DeploymentCard) -> Figure:
    """The whole card: title, limits, promise, numbers, and the curve if there is one."""
    found = card.leakage
    chosen = card.sentences if found is None else (*card.sentences[:4], card.sentences[-1])
    shown = (INFERENCE_ONLY, UNKNOWN_FIT, *explained(card, "assumed"), *chosen)
    lines = [line for sentence in shown for line in (*textwrap.wrap(sentence, LINE_LETTERS), "")]
    figure, axes = new_figure(0.65 + LINE_HEIGHT * len(lines) + (0.0 if found is None else 3.4))
    title = textwrap.shorten(heading(card), 70, placeholder=" ...")
    figure.text(0.02, 1.0 - 0.06 / figure.get_figheight(), title, fontsize=12, fontweight="bold", va="top")
    figure.suptitle("\n".join(("", "", *lines)), x=0.02, ha="left", fontsize=9, color=DARK, linespacing=1.25)
    if found is None:
        axes.set_axis_off()
    else:
        _draw_curve(axes, card)
    return figure


def heading(card: DeploymentCard) -> str:
    """Name of the deployment and its curators."""
    curators = ", ".join(card.deployment.record.curators)
    return card.deployment.name + (f" ({curators})" if curators else "")


def _draw_curve(axes: Axes, card: DeploymentCard) -> None:
    found, step = card.leakage, card.period
    assert found is not None
    finite = {p: leakage for p, leakage in zip(card.stays, card.over_time, strict=True) if math.isfinite(leakage)}
    unbounded = [f"{p:g}" for p in card.stays if p not in finite]
    beyond = f"\nwithout bound at {', '.join(unbounded)}" if unbounded else ""
    axes.axhline(found.alone, color=GREY, linestyle=":", linewidth=2, label=f"one {step} by itself")
    if finite:
        label = f"all {step}s together ({found.kind})"
        axes.plot(*zip(*finite.items(), strict=True), color=BLUE, linewidth=2, marker="o", markersize=3, label=label)
    for p in {found.at, 0.7, max(finite, default=1.0)} & set(finite):
        axes.annotate(
            number(finite[p], up=True), (p, finite[p]), (-4, 6), textcoords="offset points", ha="right", fontsize=9
        )
    axes.set(
        xlabel=f"probability that the state stays the same from one {step} to the next (assumed){beyond}",
        ylim=(0.0, 1.15 * max([found.alone, *finite.values()])),
        ylabel=f"leakage about one {step}:\n{INFINITE_HORIZON}\n(nats{at_delta(found.delta)})",
    )
    axes.legend(loc="upper left", fontsize=9, frameon=False)
