"""Figure 7: how Algorithms 2 and 3, and the optimal plan, share out a level of 1 nat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from temporaldp import compare_plans, plan_budget, temporal_leakage
from temporaldp.paper import printed
from temporaldp.paper.drawing import draw_panels
from temporaldp.paper.exact import EXACT, PLAN, SOURCE
from temporaldp.paper.exhibit import Curve, Exhibit, Panel, points
from temporaldp.paper.settings import ALLOCATED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from temporaldp.planning.plan import Method

ALPHA = 1.0
HORIZON = 30
NAMES: dict[Method, str] = {"upper_bound": "Algorithm 2", "quantified": "Algorithm 3", "optimal": "optimal plan"}
PANELS = (
    Panel("a", "budget of each step", "time step", "epsilon (nats)"),
    Panel("b", "what each step leaks", "time step", "TPL (nats)"),
)


def compute(horizon: int = HORIZON) -> Exhibit:
    """Budgets and TPL in nats at each step, alpha = 1: Section VI-C."""
    plans = compare_plans(ALLOCATED, alpha=ALPHA, horizon=horizon, bound="paper").plans
    exact_plan = plan_budget(ALLOCATED, alpha=ALPHA, horizon=horizon)
    steps = np.arange(1.0, horizon + 1)
    curves = []
    for method, name in NAMES.items():
        spent = plans[method].epsilons
        paper, exact = (
            temporal_leakage(ALLOCATED, epsilons=spent, bound=bound).temporal for bound in ("paper", "exact")
        )
        curves.append(Curve("a", name, f"plan_budget(method={method!r}, bound='paper')", steps, spent))
        curves.append(Curve("b", name, "temporal_leakage(bound='paper')", steps, paper))
        curves.append(Curve("b", EXACT, SOURCE, steps, exact, name))
    curves.append(Curve("a", EXACT, PLAN, steps, exact_plan.epsilons, NAMES["optimal"]))
    first, middle, last = printed.ALGORITHM_3
    three = [(1.0, first), (float(horizon // 2), middle), (float(horizon), last)]
    curves.append(points("a", printed.AUTHORS, printed.AUTHORS, three, NAMES["quantified"]))
    constant = [(float(horizon // 2), printed.ALGORITHM_2)]
    curves.append(points("a", printed.AUTHORS, printed.AUTHORS, constant, NAMES["upper_bound"]))
    notes = (
        "The horizon stands only in the paper's picture, which we do not have; 30 is ours, and changes only the "
        "length.",
        "Each plan leaks by the exact leakage what it leaks by the paper's bound, so that the optimal plan for the exact "
        "leakage spends the same budgets.",
    )
    return Exhibit("7", "Budgets that hold 1 nat", "Section VI-C", PANELS, tuple(curves), notes)


def draw(exhibit: Exhibit) -> Figure:
    """Budgets on the left, what they leak on the right."""
    figure = draw_panels(exhibit, height=3.2, columns=4)
    for axes in figure.axes:
        axes.set_ylim(bottom=0.0)
    return figure
