"""What an attack recognises, against what is guaranteed: what alpha means, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from temporaldp.report.style import BLUE, DARK, GREY, ORANGE, legend_above, new_figure, styled
from temporaldp.report.words import number
from temporaldp.studies import ReleaseAttack

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def attack_figure(found: ReleaseAttack) -> Figure:
    """True over false positives: guessing, the attack on the release, the mean over other draws, and what is not allowed."""
    figure, axes = new_figure(5.6, width=5.6)
    rates = np.linspace(0.0, 1.0, 501)
    at = f" at delta {found.delta:g}" if found.delta else ""
    limit = found.allowed(rates)
    axes.fill_between(rates, limit, 1.0, color="0.9", linewidth=0.0)
    axes.plot(
        rates, limit, color=ORANGE, linewidth=2, label=f"the most that {number(found.epsilon, up=True)} nats{at} allow"
    )
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
    axes.annotate("ruled out by the guarantee", (0.03, 0.97), fontsize=9, va="top", color="0.35")
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.0)
    axes.set_aspect("equal")
    axes.set_xlabel("false alarms: another value is taken for the one in question")
    axes.set_ylabel("recognised: the value in question is taken for itself")
    legend_above(axes, 1)
    return figure
