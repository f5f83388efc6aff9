"""Figure 3: leakage over ten steps of 0.1 nats under the strongest, a moderate and no correlation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from temporaldp import Adversary, temporal_leakage
from temporaldp.paper import printed
from temporaldp.paper.drawing import draw_panels
from temporaldp.paper.exact import EXACT, SOURCE
from temporaldp.paper.exhibit import Curve, Exhibit, Panel
from temporaldp.paper.settings import EPSILON, MODERATE, N_STEPS, UNCHANGING, in_both

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = (
    Panel("a", "BPL, from the past", "time step", "leakage (nats)"),
    Panel("b", "FPL, from the future", "time step", "leakage (nats)"),
    Panel("c", "TPL, from everything", "time step", "leakage (nats)"),
)


def compute() -> Exhibit:
    """BPL, FPL and TPL at steps 1 to 10, in nats: Examples 2 and 3 of Section III-B, equation by equation.

    The adversary of (c) knows the matrix of (a) and (b) in both directions. The authors' program printed the moderate BPL.
    """
    known = {
        "(i) strongest": in_both(UNCHANGING),
        "(ii) moderate": in_both(MODERATE),
        "(iii) none": Adversary(),
    }
    steps = np.arange(1.0, N_STEPS + 1)
    curves = []
    for name, adversary in known.items():
        paper, exact = (
            temporal_leakage(adversary, epsilons=[EPSILON] * N_STEPS, bound=bound) for bound in ("paper", "exact")
        )
        for panel, direction in (("a", "backward"), ("b", "forward"), ("c", "temporal")):
            curves.append(Curve(panel, name, "temporal_leakage(bound='paper')", steps, getattr(paper, direction)))
            curves.append(Curve(panel, EXACT, SOURCE, steps, getattr(exact, direction), name))
    check = Curve("a", printed.AUTHORS, printed.AUTHORS, steps, np.array(printed.MODERATE_BPL), "(ii) moderate")
    notes = (
        "The exact leakage is the paper's at every step of all three panels: of two values with these matrices, the same one "
        "is given away best by the past and by the future.",
    )
    return Exhibit(
        "3", "Leakage over ten steps of 0.1 nats", "Section III-B, Examples 2 and 3", PANELS, (*curves, check), notes
    )


def draw(exhibit: Exhibit) -> Figure:
    """Three panels side by side, one scale."""
    return draw_panels(exhibit, height=2.9, share=True, columns=4)
