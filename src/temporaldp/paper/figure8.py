"""Figure 8: how much noise a level of 2 nats costs, by algorithm, horizon and degree of correlation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from temporaldp import compare_plans
from temporaldp.paper import printed
from temporaldp.paper.drawing import LOOKS, STAR, Look, draw_panels
from temporaldp.paper.exhibit import Curve, Exhibit, FloatArray, Panel, points
from temporaldp.paper.settings import in_both, smoothed
from temporaldp.report.style import GREY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from temporaldp.planning.plan import Method

ALPHA = 2.0
N_STATES = 50
STRONG = 0.001
HORIZONS = (2, 5, 10, 20, 50, 100, 200, 500)
DEGREES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
HORIZON = 10
"""Of the panel against s, which the text does not give."""

DRAWS = 20_000
"""Draws of Laplace noise a point, spread over its steps."""

SEED = 2017
NAMES: dict[Method, str] = {
    "upper_bound": "Algorithm 2",
    "quantified": "Algorithm 3",
    "uniform": "alpha / T",
    "optimal": "optimal plan",
}
SAMPLED = "sampled, two standard errors"
KNOWN = "reference values"
UNCORRELATED = "no correlation"
PANELS = (
    Panel("a", f"s = {STRONG:g}", "horizon T (steps)", "mean absolute noise (counts)"),
    Panel("b", f"T = {HORIZON}", "s, degree of smoothing", "mean absolute noise (counts)"),
)


def compute(horizons: tuple[int, ...] = HORIZONS, degrees: tuple[float, ...] = DEGREES) -> Exhibit:
    """Mean absolute value of the paper's Lap(1/epsilon_t) over the steps, in counts: Section VI-C.

    Closed form: the mean of 1/epsilon_t. Sampled: NumPy's Laplace draws with a fixed seed, because the paper's noise is
    continuous and OpenDP's takes no seed. One value a count of sensitivity 1, as in the paper; a histogram under replacement of
    one person's value has sensitivity 2, and every number here doubles.
    """
    rng = np.random.default_rng(SEED)
    places = [("a", float(T), STRONG, T) for T in horizons] + [("b", s, s, HORIZON) for s in degrees]
    exact: dict[tuple[str, str], list[tuple[float, float]]] = {}
    drawn: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for panel, x, s, horizon in places:
        plans = compare_plans(in_both(smoothed(N_STATES, s)), alpha=ALPHA, horizon=horizon, bound="paper").plans
        for method, plan in plans.items():
            key = panel, NAMES[method]
            exact.setdefault(key, []).append((x, float(np.mean(1.0 / plan.epsilons))))
            drawn.setdefault(key, []).append((x, *_sampled(plan.epsilons, rng)))
        exact.setdefault((panel, UNCORRELATED), []).append((x, 1.0 / ALPHA))
    curves = [
        points(
            panel,
            name,
            "mean of 1/epsilon, compare_plans(bound='paper')" if name != UNCORRELATED else "1/alpha",
            values,
        )
        for (panel, name), values in exact.items()
    ]
    source = f"{DRAWS} draws of numpy's Laplace noise, seed {SEED}"
    for (panel, name), found in drawn.items():
        x, y, spread = np.array(found).T
        curves.append(Curve(panel, SAMPLED, source, x, y, name, spread))
    curves += _by_others(set(horizons), set(degrees))
    notes = (
        f"n = {N_STATES} and, for (b), T = {HORIZON} are ours: the text does not give them.",
        "Lap(1/epsilon) is the paper's noise: sensitivity 1. Under replacement of one person's value every number "
        "doubles.",
        "There is no second curve for the exact leakage: in these matrices the same observations give most away by the past "
        "and by the future, the exact leakage of every plan is that of the paper's bound, and so is the optimal plan.",
    )
    return Exhibit("8", "Noise that holds 2 nats", "Section VI-C", PANELS, tuple(curves), notes)


def draw(exhibit: Exhibit) -> Figure:
    """Against the horizon on the left, against the degree of correlation on the right."""
    looks: dict[str, Look] = {
        SAMPLED: {"color": GREY, "marker": "+", "markersize": 11},
        KNOWN: STAR,
        UNCORRELATED: {**LOOKS[6], "marker": "none"},
    }
    return draw_panels(exhibit, height=3.9, logarithmic={"a": "xy", "b": "xy"}, looks=looks, columns=3)


def _sampled(epsilons: FloatArray, rng: np.random.Generator) -> tuple[float, float]:
    """Mean absolute noise and its standard error: as many draws at every step, so that steps do not add to the error."""
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
