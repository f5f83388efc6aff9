"""The figure of an attack: its true and false positives beside those that the guarantee allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from temporaldp.base.display import number
from temporaldp.lab.studies import ReleaseAttack
from temporaldp.publish.report.sentences import at_delta
from temporaldp.publish.report.style import BLUE, DARK, GREY, ORANGE, legend_above, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def attack_figure(found: ReleaseAttack) -> Figure:
    """True over false positives: guessing, the attack on the release, the mean over other draws, and the excluded region."""
    _, axes = new_figure(5.6, width=5.6)
    rates = np.linspace(0.0, 1.0, 501)
    limit = found.allowed(rates)
    axes.fill_between(rates, limit, 1.0, color="0.9", linewidth=0.0)
    allowed = f"largest rate for {number(found.epsilon, up=True)} nats{at_delta(found.delta)}"
    axes.plot(rates, limit, color=ORANGE, linewidth=2, label=allowed)
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
    axes.annotate("excluded by the guarantee", (0.03, 0.97), fontsize=9, va="top", color="0.35")
    axes.set(
        xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal", xlabel="false positive rate", ylabel="true positive rate"
    )
    return legend_above(axes, 1)
