"""A card as a figure, as one self-contained HTML page, and as a proposed field of the registry."""

from __future__ import annotations

import math
import re
import textwrap
from typing import TYPE_CHECKING, Any

from temporaldp.base.display import number
from temporaldp.base.errors import InputError
from temporaldp.base.extras import needing
from temporaldp.publish.report.page import template
from temporaldp.publish.report.sentences import INFERENCE_ONLY, INFINITE_HORIZON, UNKNOWN_FIT, at_delta
from temporaldp.publish.report.style import BLUE, DARK, GREY, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from temporaldp.publish.deployment.card import DeploymentCard


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
    shown = (INFERENCE_ONLY, UNKNOWN_FIT, *card.explained("assumed"), *chosen)
    # 96 letters of 9 points are as wide as the figure, and 0.155 inches high.
    lines = [line for sentence in shown for line in (*textwrap.wrap(sentence, 96), "")]
    figure, axes = new_figure(0.65 + 0.155 * len(lines) + (0.0 if found is None else 3.4))
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


def render_card(card: DeploymentCard) -> str:
    """Return the card as an HTML document that loads nothing from outside."""
    return template("publish/deployment/card.html.j2").render(card=card, quoted=_quoted, curve_figure=curve_figure)


def _quoted(text: str) -> str:
    """The first 400 letters of a field on one line, with TeX letters, which the pages of the registry typeset, as letters."""
    line = re.sub(r"\\\\[()]|\$", "", " ".join(text.split()))
    letters = {"epsilon": "ε", "delta": "δ", "rho": "ρ", "tau": "τ", "times": "×", "max": "max"}
    for name, letter in letters.items():
        line = line.replace(f"\\{name}", letter)
    return textwrap.shorten(line, 400, placeholder=" [...]")


def registry_field(card: DeploymentCard) -> dict[str, Any]:
    """The field as a mapping: steps, secret, unit of change, range of chains, resulting leakage.

    Raises
    ------
    InputError
        The card has no number.
    """
    found, asked = card.leakage, card.asked
    if found is None:
        raise InputError(f"expected a record with a number, but there is none: {card.reason}")
    chains = {
        "order": 1,
        "form": "stays, otherwise moves to every other state with equal probability",
        "stays": list(asked.stays),
    }
    if asked.correlation is not None:
        chains |= {"form": f"given as a matrix ({asked.correlation_name})", "stays": list(card.stays)}
    stated = {
        "step": card.period,
        "steps": card.horizon,
        "secret": {
            "states": list(asked.states),
            "unit_of_change": card.unit.name,
            "units_between_states": found.units,
            **({"tables": dict(card.unit.parts)} if card.unit.parts else {}),
        },
        "chains": chains,
        "leakage": {
            "delta": found.delta,
            "one_step_alone": _rounded(found.alone),
            "infinite_horizon": [
                {"stays": p, "at_most": _rounded(leak)} for p, leak in zip(card.stays, card.over_time, strict=True)
            ],
            "kind": found.kind,
            "all_steps_together": _rounded(found.together),
        },
    }
    return {"temporal_correlation": stated}


def registry_yaml(card: DeploymentCard) -> str:
    """The proposed field of a card as YAML, with a comment about its place and its limits."""
    with needing("deployment"):
        import yaml

    field = registry_field(card)
    about = (
        "Proposed field of the deployments registry, for `deployment:`, next to `privacy_loss:`. Leakage is in nats."
    )
    assumed = "The chains are an assumption about the people in the data."
    comment = "".join(f"# {line}\n" for line in textwrap.wrap(f"{about} {INFERENCE_ONLY} {assumed}", 110))
    return comment + yaml.safe_dump(field, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)


def _rounded(leakage: float) -> float | str:
    """Four digits, rounded up; parsers of YAML differ about infinity."""
    return float(number(leakage, up=True)) if math.isfinite(leakage) else "without bound"
