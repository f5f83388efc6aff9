"""Figures of a card: the supremum of the leakage over the range of chains, beside the leakage of one step."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from temporaldp.report.sentences import INFERENCE_ONLY, INFINITE_HORIZON, UNKNOWN_FIT, at_delta, number
from temporaldp.report.style import BLUE, DARK, GREY, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from temporaldp.deployment.card import DeploymentCard
    from temporaldp.deployment.lasting import LeakageOverTime

LINE_LETTERS, LINE_HEIGHT = 98, 0.155
"""Letters of a line of 9 points, and the distance between lines in inches."""


@styled
def curve_figure(card: DeploymentCard) -> Figure:
    """The supremum over the range of chains, beside the leakage of one step by itself."""
    assert card.leakage is not None
    figure, axes = new_figure(3.6)
    _draw_curve(axes, card, card.leakage)
    return figure


@styled
def card_figure(card: DeploymentCard) -> Figure:
    """The whole card: title, limits, promise, numbers, and the curve if there is one."""
    found, name = card.leakage, heading(card)
    chosen = card.sentences if found is None else (_assumed(card), *card.sentences[:4], card.sentences[-1])
    shown = (INFERENCE_ONLY, UNKNOWN_FIT, *chosen)
    lines = [line for sentence in shown for line in (*textwrap.wrap(sentence, LINE_LETTERS), "")]
    height = 0.65 + LINE_HEIGHT * len(lines)
    if found is None:
        figure, above = new_figure(height)
    else:
        figure, (above, below) = new_figure(height + 3.4, subplots=(2, 1), height_ratios=(height, 3.4))
        _draw_curve(below, card, found)
    above.set_axis_off()
    title = textwrap.shorten(name, 70, placeholder=" ...")
    top = float(figure.get_figheight())
    figure.text(0.02, 1.0 - 0.12 / top, title, fontsize=12, fontweight="bold", va="top")
    text = figure.text(0.02, 1.0 - 0.42 / top, "\n".join(lines), fontsize=9, va="top", color=DARK, linespacing=1.25)
    text.set_in_layout(False)
    return figure


def heading(card: DeploymentCard) -> str:
    """Name of the deployment and its curators."""
    curators = ", ".join(card.deployment.record.curators)
    return card.deployment.name + (f" ({curators})" if curators else "")


def _assumed(card: DeploymentCard) -> str:
    """The main assumptions in one sentence."""
    states, units = card.question.states, card.unit.most(card.question.states)
    named = ", ".join(states[:4]) + (", ..." if len(states) > 4 else "")
    apart = "1 promised unit" if units == 1 else f"up to {units} promised units"
    return (
        f"Assumptions: the secret is one of {len(states)} states of a {card.period} ({named}), which are {apart} apart "
        f"({card.unit.name}) and form a first-order Markov chain."
    )


def _draw_curve(axes: Axes, card: DeploymentCard, found: LeakageOverTime) -> None:
    step = card.step
    points = list(zip(card.stays, card.lasting, strict=True))
    finite = [(p, leakage) for p, leakage in points if math.isfinite(leakage)]
    unbounded = [f"{p:g}" for p, leakage in points if math.isinf(leakage)]
    axes.axhline(found.alone, color=GREY, linestyle=":", linewidth=2, label=f"one {step} by itself")
    if finite:
        label = f"all {step}s together ({found.kind})"
        axes.plot(*zip(*finite, strict=True), color=BLUE, linewidth=2, marker="o", markersize=3, label=label)
    named = {found.at, 0.7, *(p for p, _ in finite[-1:])}
    look: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "fontsize": 9, "color": DARK}
    for p, leakage in finite:
        if p in named:
            axes.annotate(number(leakage, up=True), (p, leakage), (-4, 6), **look)
    axes.set_ylim(0.0, 1.15 * max([found.alone, *(leakage for _, leakage in finite)]))
    axes.set(
        xlabel=f"probability that the state stays the same from one {step} to the next (assumed)",
        ylabel=f"leakage about one {step}:\n{INFINITE_HORIZON}\n(nats{at_delta(found.delta)})",
    )
    if unbounded:
        axes.set_title(f"without bound at {', '.join(unbounded)}", fontsize=9, loc="right")
    axes.legend(loc="upper left", fontsize=9, frameon=False)
