"""Figures 7 and 8: budgets that satisfy alpha-DP_T, and the noise that they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reproduction import printed
from reproduction.drawing import EXACT, GREY, LOOKS, STAR, Look, draw_panels
from reproduction.exhibit import Curve, Exhibit, Panel, points
from reproduction.settings import (
    ALLOCATED,
    BY_DEFINITION,
    BY_RECURSION,
    FloatArray,
    Method,
    exact_plan,
    exact_series,
    in_both,
    recursion_plans,
    recursion_series,
    smoothed,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Figure 7

FIGURE_7_ALPHA = 1.0
FIGURE_7_HORIZON = 30
ALLOCATIONS: dict[Method, str] = {
    "upper_bound": "Algorithm 2",
    "quantified": "Algorithm 3",
    "optimal": "optimal plan",
}
EXACT_PLAN = "plan_budget, exact"


def figure_7(horizon: int = FIGURE_7_HORIZON) -> Exhibit:
    """Budgets and TPL in nats at each step, alpha = 1: Section VI-C."""
    plans = recursion_plans(ALLOCATED, alpha=FIGURE_7_ALPHA, horizon=horizon)
    steps = np.arange(1.0, horizon + 1)
    curves = []
    for method, name in ALLOCATIONS.items():
        spent = plans[method].epsilons
        paper, exact = (series(ALLOCATED, spent).temporal for series in (recursion_series, exact_series))
        curves.append(Curve("a", name, f"plan_budget(method={method!r}), the paper's bound", steps, spent))
        curves.append(Curve("b", name, BY_RECURSION, steps, paper))
        curves.append(Curve("b", EXACT, BY_DEFINITION, steps, exact, name))
    optimal = exact_plan(ALLOCATED, alpha=FIGURE_7_ALPHA, horizon=horizon).epsilons
    curves.append(Curve("a", EXACT, EXACT_PLAN, steps, optimal, ALLOCATIONS["optimal"]))
    first, middle, last = printed.ALGORITHM_3
    three = [(1.0, first), (float(horizon // 2), middle), (float(horizon), last)]
    curves.append(points("a", printed.AUTHORS, printed.AUTHORS, three, ALLOCATIONS["quantified"]))
    constant = [(float(horizon // 2), printed.ALGORITHM_2)]
    curves.append(points("a", printed.AUTHORS, printed.AUTHORS, constant, ALLOCATIONS["upper_bound"]))
    panels = (
        Panel("a", "budget of each step", "time step", "epsilon (nats)"),
        Panel("b", "leakage of each step", "time step", "TPL (nats)"),
    )
    notes = (
        "The horizon stands only in the paper's picture, which is not in the source; 30 is ours, and changes only the "
        "length.",
        "The exact leakage of each plan equals its leakage by the paper's bound, so that the optimal plan for the exact "
        "leakage has the same budgets.",
    )
    return Exhibit("7", "Budgets that satisfy 1-DP_T", "Section VI-C", panels, tuple(curves), notes)


def draw_figure_7(exhibit: Exhibit) -> Figure:
    """Budgets on the left, their leakage on the right."""
    figure = draw_panels(exhibit, height=3.2, columns=4)
    for axes in figure.axes:
        axes.set_ylim(bottom=0.0)
    return figure


# Figure 8

FIGURE_8_ALPHA = 2.0
N_STATES = 50
STRONG = 0.001
HORIZONS = (2, 5, 10, 20, 50, 100, 200, 500)
DEGREES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
HORIZON = 10
"""Horizon of the panel against s, which the text does not give."""

DRAWS = 20_000
"""Draws of Laplace noise for a point, distributed over its steps."""

SEED = 2017
METHODS: dict[Method, str] = {
    "upper_bound": "Algorithm 2",
    "quantified": "Algorithm 3",
    "uniform": "alpha / T",
    "optimal": "optimal plan",
}
SAMPLED = "sampled, two standard errors"
KNOWN = "reference values"
UNCORRELATED = "no correlation"


def figure_8(horizons: tuple[int, ...] = HORIZONS, degrees: tuple[float, ...] = DEGREES) -> Exhibit:
    """Mean absolute value of the paper's Lap(1/epsilon_t) over the steps, in counts: Section VI-C.

    Closed form: the mean of 1/epsilon_t. Sampled: NumPy's Laplace draws with a fixed seed, because the paper's noise is
    continuous and OpenDP's takes no seed. Each count has sensitivity 1, as in the paper; a histogram under replacement of
    one person's state has sensitivity 2, which doubles every number here.
    """
    rng = np.random.default_rng(SEED)
    places = [("a", float(T), STRONG, T) for T in horizons] + [("b", s, s, HORIZON) for s in degrees]
    exact: dict[tuple[str, str], list[tuple[float, float]]] = {}
    drawn: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for panel, x, s, horizon in places:
        plans = recursion_plans(in_both(smoothed(N_STATES, s)), alpha=FIGURE_8_ALPHA, horizon=horizon)
        for method, plan in plans.items():
            key = panel, METHODS[method]
            exact.setdefault(key, []).append((x, float(np.mean(1.0 / plan.epsilons))))
            drawn.setdefault(key, []).append((x, *_sampled(plan.epsilons, rng)))
        exact.setdefault((panel, UNCORRELATED), []).append((x, 1.0 / FIGURE_8_ALPHA))
    curves = []
    for (panel, name), values in exact.items():
        source = "1/alpha" if name == UNCORRELATED else "mean of 1/epsilon, compare_plans, the paper's bound"
        curves.append(points(panel, name, source, values))
    source = f"{DRAWS} draws of numpy's Laplace noise, seed {SEED}"
    for (panel, name), found in drawn.items():
        x_values, means, spread = np.array(found).T
        curves.append(Curve(panel, SAMPLED, source, x_values, means, name, spread))
    curves += _by_others(set(horizons), set(degrees))
    panels = (
        Panel("a", f"s = {STRONG:g}", "horizon T (steps)", "mean absolute noise (counts)"),
        Panel("b", f"T = {HORIZON}", "s, degree of smoothing", "mean absolute noise (counts)"),
    )
    notes = (
        f"n = {N_STATES} and, for (b), T = {HORIZON} are ours: the text does not give them.",
        "Lap(1/epsilon) is the paper's noise: sensitivity 1. Under replacement of one person's state every number doubles.",
        "There is no second curve for the exact leakage: for these matrices it equals the paper's bound, and so does the "
        "optimal plan.",
    )
    return Exhibit("8", "Noise that satisfies 2-DP_T", "Section VI-C", panels, tuple(curves), notes)


def draw_figure_8(exhibit: Exhibit) -> Figure:
    """Against the horizon on the left, against the degree of correlation on the right."""
    looks: dict[str, Look] = {
        SAMPLED: {"color": GREY, "marker": "+", "markersize": 11},
        KNOWN: STAR,
        UNCORRELATED: {**LOOKS[6], "marker": "none"},
    }
    return draw_panels(exhibit, height=3.9, logarithmic={"a": "xy", "b": "xy"}, looks=looks, columns=3)


def _sampled(epsilons: FloatArray, rng: np.random.Generator) -> tuple[float, float]:
    """Mean absolute noise and its standard error: the same number of draws at every step."""
    noise = np.abs(rng.laplace(scale=1.0 / epsilons, size=(-(-DRAWS // len(epsilons)), len(epsilons))))
    return float(noise.mean()), float(np.sqrt((noise.var(axis=0, ddof=1)).mean() / noise.size))


def _by_others(horizons: set[int], degrees: set[float]) -> list[Curve]:
    curves = []
    for name, values in printed.NOISE.items():
        source = printed.OTHERS if name == "optimal plan" else printed.REFERENCE
        known = {
            "a": [(float(T), y) for (s, T), y in values.items() if s == STRONG and T in horizons],
            "b": [(s, y) for (s, T), y in values.items() if T == HORIZON and s in degrees],
        }
        curves += [points(panel, KNOWN, source, found, name) for panel, found in known.items() if found]
    return curves
