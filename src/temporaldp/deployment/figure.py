"""A card as a picture: limits, the promise, what leaks for ever over the range of chains."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from temporaldp.report.style import BLUE, DARK, GREY, new_figure, styled
from temporaldp.report.words import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from temporaldp.deployment.card import DeploymentCard, LeakageOverTime

LETTERS = 98
"""In a line of 9 points."""

LINE = 0.155
"""Inches from one line to the next."""

SHORT_LIMITS = (
    "Bounds on inference under a correlation that is assumed; no break of the deployment's differential privacy. Whether "
    "such a chain fits these data cannot be known from the record."
)


@styled
def curve_figure(card: DeploymentCard) -> Figure:
    """What leaks for ever over the range of chains, beside what a step says by itself."""
    figure, axes = new_figure(3.6)
    _draw_curve(axes, card)
    return figure


@styled
def card_figure(card: DeploymentCard) -> Figure:
    """The whole card: title, limits, promise, what it is worth, and the curve where there is one."""
    found = card.leakage
    chosen = card.sentences if found is None else (_assumed(card), *card.sentences[:4], card.sentences[-1])
    lines = [line for sentence in (SHORT_LIMITS, *chosen) for line in (*textwrap.wrap(sentence, LETTERS), "")]
    told = 0.65 + LINE * len(lines)
    if found is None:
        figure, above = new_figure(told)
    else:
        figure, (above, below) = new_figure(told + 3.4, subplots=(2, 1), height_ratios=(told, 3.4))
        _draw_curve(below, card)
    above.set_axis_off()
    who = ", ".join(card.deployment.curators)
    title = card.deployment.name + (f" ({who})" if who else "")
    height = float(figure.get_figheight())
    figure.text(
        0.02,
        1.0 - 0.12 / height,
        title if len(title) <= 70 else f"{title[:67]}...",
        fontsize=12,
        fontweight="bold",
        va="top",
    )
    text = figure.text(0.02, 1.0 - 0.42 / height, "\n".join(lines), fontsize=9, va="top", color=DARK, linespacing=1.25)
    text.set_in_layout(False)
    return figure


def _assumed(card: DeploymentCard) -> str:
    """The assumptions without which nobody should read the picture."""
    states = card.question.states
    named = ", ".join(states[:4]) + (", ..." if len(states) > 4 else "")
    units = card.unit.most(states)
    apart = "1 promised unit" if units == 1 else f"up to {units} promised units"
    return (
        f"Assumed: the secret is one of {len(states)} values of a {card.period} ({named}), which are {apart} apart "
        f"({card.unit.name}) and follow a first-order Markov chain."
    )


def _draw_curve(axes: Axes, card: DeploymentCard) -> None:
    found = card.leakage
    assert found is not None
    step = card.period or "step"
    finite = [(p, leak) for p, leak in zip(found.stays, found.lasting, strict=True) if math.isfinite(leak)]
    kind = "exact" if found.limit.exact else "upper bound"
    axes.axhline(found.alone, color=GREY, linestyle=":", linewidth=2, label=f"one {step} by itself")
    if len(finite) > 1:
        axes.plot(
            *zip(*finite, strict=True),
            color=BLUE,
            linewidth=2,
            marker="o",
            markersize=3,
            label=f"all {step}s together ({kind})",
        )
    elif finite:
        axes.plot(*finite[0], color=BLUE, marker="o", linestyle="none", label=f"all {step}s together ({kind})")
    for p, leak in _named(found, finite):
        axes.annotate(
            number(leak, up=True), (p, leak), (-4, 6), textcoords="offset points", ha="right", fontsize=9, color=DARK
        )
    highest = max([found.alone, *(leak for _, leak in finite)])
    axes.set_ylim(0.0, 1.15 * highest)
    at = f", at delta {found.delta:g}" if found.delta else ""
    axes.set_ylabel(f"leakage about one {step}\nfor ever (nats{at})")
    axes.set_xlabel(f"probability that a value stays from one {step} to the next (assumed)")
    endless = [p for p, leak in zip(found.stays, found.lasting, strict=True) if math.isinf(leak)]
    if endless:
        axes.set_title("without bound at " + ", ".join(f"{p:g}" for p in endless), fontsize=9, loc="right")
    axes.legend(loc="upper left", fontsize=9, frameon=False)


def _named(found: LeakageOverTime, finite: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points with their number beside them: the one that is explained, both ends, and one between."""
    wanted = {found.at, 0.7, finite[-1][0] if finite else 0.0}
    return [(p, leak) for p, leak in finite if p in wanted]
