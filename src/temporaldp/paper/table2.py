"""Table II: event-level, w-event and user-level privacy, as numbers for one adversary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from temporaldp import Adversary, temporal_leakage
from temporaldp.paper.drawing import STAR, draw_panels
from temporaldp.paper.exhibit import Curve, Exhibit, Panel, points
from temporaldp.paper.settings import EPSILON, MODERATE, N_STEPS, UNCHANGING, in_both

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KNOWN = {
    "independent": Adversary(),
    "moderate": in_both(MODERATE),
    "strongest": in_both(UNCHANGING),
}
PANELS = (Panel("", "", "steps protected together, w", "leakage (nats)"),)


def compute(n_steps: int = N_STEPS) -> Exhibit:
    """What leaks about any w successive values together, in nats: Theorem 2 at the worst place, for T = 10 steps of 0.1.

    w = 1 is event-level privacy (TPL), w = T user-level privacy (Corollary 1), what lies between is w-event privacy. For
    independent data it is w epsilon.
    """
    widths = np.arange(1.0, n_steps + 1)
    curves = []
    for name, adversary in KNOWN.items():
        series = temporal_leakage(adversary, epsilons=[EPSILON] * n_steps, bound="paper")
        worst = [
            max(series.window(start, start + w) for start in range(n_steps - w + 1)) for w in range(1, n_steps + 1)
        ]
        curves.append(Curve("", name, "LeakageSeries.window, worst place", widths, np.array(worst)))
    user = [(float(n_steps), n_steps * EPSILON)]
    curves += [points("", "T eps, Corollary 1", "Corollary 1", user, name) for name in KNOWN]
    curves.append(points("", "w eps, Table II", "Table II", [(w, w * EPSILON) for w in widths.tolist()], "independent"))
    notes = ("Table II has no numbers: it is the paper's one table of guarantees, here for its moderate correlation.",)
    return Exhibit(
        "table2", "What leaks about w steps together", "Section III-C, Table II", PANELS, tuple(curves), notes
    )


def draw(exhibit: Exhibit) -> Figure:
    """From event level on the left to user level on the right."""
    figure = draw_panels(exhibit, height=3.2, looks={"T eps, Corollary 1": STAR}, columns=3)
    figure.axes[0].set_ylim(bottom=0.0)
    return figure
