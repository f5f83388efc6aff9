"""Figures 3, 4 and 6 and Table II: temporal privacy leakage by the paper's recursion, beside the exact leakage."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from reproduction import printed
from reproduction.drawing import EXACT, GREY, LOOKS, ORANGE, PURPLE, RING, STAR, Look, draw_panels
from reproduction.exhibit import Curve, Exhibit, Panel, points
from reproduction.settings import (
    BY_DEFINITION,
    BY_RECURSION,
    EPSILON,
    MODERATE,
    N_STEPS,
    OVERLAPPING,
    UNCHANGING,
    exact_series,
    exact_supremum,
    in_both,
    recursion_series,
    recursion_supremum,
    smoothed,
)
from temporaldp import Adversary, TransitionMatrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Figure 3


def figure_3() -> Exhibit:
    """BPL, FPL and TPL at steps 1 to 10, in nats: Examples 2 and 3 of Section III-B.

    The adversary of (c) knows the matrix of (a) and (b) in both directions.
    """
    panels = tuple(
        Panel(key, title, "time step", "leakage (nats)")
        for key, title in (("a", "BPL, from the past"), ("b", "FPL, from the future"), ("c", "TPL, from both"))
    )
    adversaries = {
        "(i) strongest": in_both(UNCHANGING),
        "(ii) moderate": in_both(MODERATE),
        "(iii) none": Adversary(),
    }
    steps = np.arange(1.0, N_STEPS + 1)
    curves = []
    for name, adversary in adversaries.items():
        paper, exact = (series(adversary, [EPSILON] * N_STEPS) for series in (recursion_series, exact_series))
        for panel, direction in (("a", "backward"), ("b", "forward"), ("c", "temporal")):
            curves.append(Curve(panel, name, BY_RECURSION, steps, getattr(paper, direction)))
            curves.append(Curve(panel, EXACT, BY_DEFINITION, steps, getattr(exact, direction), name))
    check = Curve("a", printed.AUTHORS, printed.AUTHORS, steps, np.array(printed.MODERATE_BPL), "(ii) moderate")
    notes = (
        "The exact leakage equals the paper's at every step of all three panels: with these two-state matrices the same "
        "state is the worst case for the past and for the future.",
    )
    return Exhibit(
        "3", "Leakage over ten steps of 0.1 nats", "Section III-B, Examples 2 and 3", panels, (*curves, check), notes
    )


def draw_figure_3(exhibit: Exhibit) -> Figure:
    """Three panels side by side with one scale."""
    return draw_panels(exhibit, height=2.9, share=True, columns=4)


# Figure 4

FIGURE_4_STEPS = 10_000
FIGURE_4_EXACT_STEPS = 1_000
"""Steps up to which the exact leakage is drawn."""

BOUNDARY = math.log(1.25)
"""log(1 / q) for q = 0.8, which the paper's condition includes."""

BORDER = "on the border: q = 0.8, d = 0, eps = log(1/q)"
STEADY = "(c) q = 0.8, d = 0, eps = 0.15"
CASES: dict[str, tuple[TransitionMatrix, float, float, float]] = {
    "(a) q = 1, d = 0, eps = 0.23": (UNCHANGING, 1.0, 0.0, 0.23),
    "(b) q = 0.8, d = 0, eps = 0.23": (MODERATE, 0.8, 0.0, 0.23),
    BORDER: (MODERATE, 0.8, 0.0, BOUNDARY),
    STEADY: (MODERATE, 0.8, 0.0, 0.15),
    "(d) q = 0.8, d = 0.1, eps = 0.23": (OVERLAPPING, 0.8, 0.1, 0.23),
}
"""Matrix, q, d and epsilon of each case of Theorem 5."""

CLOSED = ("closed form, Theorem 5", "closed form on the border")


def supremum_as_printed(q: float, d: float, epsilon: float) -> float:
    """Theorem 5's formula for one pair of sums, with its own cases, in nats; `math.inf` where it divides by zero.

    Evaluated in doubles as printed: for checks, not for use. `leakage_supremum` finds q and d itself.
    """
    e = math.exp(epsilon)
    if d > 0.0:
        b = d + q * e - 1.0
        return math.log((math.sqrt(4.0 * d * e * (1.0 - q) + b * b) + b) / (2.0 * d))
    if q == 1.0 or epsilon > math.log(1.0 / q):
        return math.inf
    return math.log((1.0 - q) * e / (1.0 - q * e)) if q * e < 1.0 else math.inf


def on_the_border(q: float, steps: np.ndarray) -> np.ndarray:
    """BPL at the given steps for d = 0 and epsilon = log(1/q): ``log(1/q + (t - 1)(1 - q)/q)``, which is unbounded.

    Here ``e^BPL`` obeys ``e^BPL[t + 1] = (q e^BPL[t] + 1 - q) / q`` and rises by ``(1 - q)/q`` at every step.
    """
    return np.log(1.0 / q + (steps - 1.0) * (1.0 - q) / q)


def figure_4(n_steps: int = FIGURE_4_STEPS) -> Exhibit:
    """BPL in nats against the time step, and the closed forms: Section V, Theorem 5 and Example 4."""
    steps = np.unique(np.geomspace(1, n_steps, 81).round())
    early = steps[steps <= FIGURE_4_EXACT_STEPS]
    curves = []
    for name, (matrix, _, _, epsilon) in CASES.items():
        known = Adversary(backward=matrix)
        paper = recursion_series(known, np.full(n_steps, epsilon)).backward[_indices(steps)]
        exact = exact_series(known, np.full(int(early[-1]), epsilon)).backward[_indices(early)]
        curves.append(Curve("", name, BY_RECURSION, steps, paper))
        curves.append(Curve("", EXACT, BY_DEFINITION, early, exact, name))
    last = float(n_steps)
    for name, (_, q, d, epsilon) in CASES.items():
        limit = supremum_as_printed(q, d, epsilon)
        if math.isfinite(limit) and name != BORDER:
            curves.append(points("", CLOSED[0], f"Theorem 5, {name[:3]}", [(last, limit)], name))
    printed_limit = [(last, printed.MODERATE_SUPREMUM[0.15])]
    curves.append(points("", printed.AUTHORS, printed.AUTHORS, printed_limit, STEADY))
    some = steps[::8]
    curves.append(Curve("", CLOSED[1], "log(1/q + (t - 1)(1 - q)/q)", some, on_the_border(0.8, some), BORDER))
    notes = (
        "The paper's matrices and budgets stand only in its picture, which is not in the source: ours are one example a "
        "case.",
        "On the border the paper's case distinction promises a supremum (its condition is epsilon <= log(1/q)); there "
        "is none.",
        "The exact leakage (drawn up to step 1,000) equals the paper's in all cases: with two states the worst case of a "
        "step is that of the step before. So the exact leakage has no supremum on the border either.",
    )
    panels = (Panel("", "", "time step", "BPL (nats)"),)
    return Exhibit("4", "The largest BPL over time", "Section V, Theorem 5 and Example 4", panels, tuple(curves), notes)


def draw_figure_4(exhibit: Exhibit) -> Figure:
    """One pair of logarithmic axes: a curve with a supremum becomes flat."""
    looks = {printed.AUTHORS: STAR, CLOSED[1]: {**RING, "color": ORANGE, "marker": "^"}}
    return draw_panels(exhibit, height=4.6, logarithmic={"": "xy"}, looks=looks, columns=2)


def _indices(steps: np.ndarray) -> np.ndarray:
    return steps.astype(int) - 1


# Figure 6

FIGURE_6_STEPS = {"a": (1.0, 20), "b": (0.1, 100)}
"""Budget and number of steps of the panels over time."""

FIGURE_6_EXACT_STEPS = 20
"""Steps up to which the exact leakage is drawn: of 50 states it takes 14 s for 100 steps."""

CORRELATIONS = ((50, 0.005), (50, 0.05), (50, 1.0), (200, 0.005))
FITTING = (50, 0.0005)
"""Number of states and s with which the numbers of the paper's text on s = 0.005 agree."""

DEGREES = tuple(sorted({*np.geomspace(0.0005, 1.0, 12).tolist(), 0.005}))


def over_time(n_states: int, s: float) -> str:
    """Name of a curve over time."""
    return f"s = {s:g}, n = {n_states}"


def of_suprema(epsilon: float, n_states: int) -> str:
    """Name of a curve of suprema."""
    return f"eps = {epsilon:g}, n = {n_states}"


def figure_6() -> Exhibit:
    """BPL in nats at each step for two budgets, and its supremum against s: Section VI-B.

    The backward matrix is the strongest correlation of n states, smoothed with s.
    """
    panels = (
        Panel("a", "eps = 1", "time step", "BPL (nats)"),
        Panel("b", "eps = 0.1", "time step", "BPL (nats)"),
        Panel("c", "infinite horizon", "s, degree of smoothing", "supremum of BPL (nats)"),
    )
    notes = (
        "The text names s from 0.005 to 1, n = 50 and 200, epsilon = 1 and 0.1, but not which of them the picture shows.",
        "s = 0.0005 is ours: the text's statements on s = 0.005 fit it (steady after some 8 and 80 steps at nearly one "
        "level).",
        "The exact leakage (drawn up to step 20, and for some suprema of n = 50) equals the paper's everywhere: one row of "
        "these matrices differs from the others in one state, and the observations that favour the states leading to it "
        "attain the bound at every step.",
    )
    curves = tuple(_over_time() + _suprema())
    return Exhibit("6", "BPL by degree of correlation", "Section VI-B", panels, curves, notes)


def _over_time() -> list[Curve]:
    curves = []
    for panel, (epsilon, n_steps) in FIGURE_6_STEPS.items():
        steps = np.arange(1.0, n_steps + 1)
        early = steps[:FIGURE_6_EXACT_STEPS]
        for n_states, s in (*CORRELATIONS, FITTING):
            known, name = Adversary(backward=smoothed(n_states, s)), over_time(n_states, s)
            paper = recursion_series(known, np.full(n_steps, epsilon)).backward
            exact = exact_series(known, np.full(len(early), epsilon)).backward
            curves.append(Curve(panel, name, BY_RECURSION, steps, paper))
            curves.append(Curve(panel, EXACT, BY_DEFINITION, early, exact, name))
        at_10 = [(10.0, printed.SMOOTHED_BPL_AT_10[epsilon])]
        curves.append(points(panel, printed.AUTHORS, printed.AUTHORS, at_10, over_time(50, 0.005)))
    return curves


def _suprema() -> list[Curve]:
    curves = []
    budgets = [epsilon for epsilon, _ in FIGURE_6_STEPS.values()]
    for n_states in (50, 200):
        for epsilon in budgets:
            found = [(s, recursion_supremum(smoothed(n_states, s), epsilon)) for s in DEGREES]
            name = of_suprema(epsilon, n_states)
            curves.append(points("c", name, "leakage_supremum, the paper's bound", found))
    for epsilon in budgets:
        exact = [(s, exact_supremum(smoothed(50, s), epsilon)) for s in DEGREES[::3]]
        curves.append(points("c", EXACT, BY_DEFINITION, exact, of_suprema(epsilon, 50)))
    for epsilon, limit in printed.SMOOTHED_SUPREMUM.items():
        curves.append(points("c", printed.AUTHORS, printed.AUTHORS, [(0.005, limit)], of_suprema(epsilon, 50)))
    return curves


def draw_figure_6(exhibit: Exhibit) -> Figure:
    """Two panels over time, one of suprema."""
    looks: dict[str, Look] = {over_time(*FITTING): {**LOOKS[6], "marker": "none"}}
    for epsilon, colour, marker in ((1.0, PURPLE, "v"), (0.1, GREY, "P")):
        for n_states, line, fill in ((50, "-", colour), (200, ":", "white")):
            look = {"color": colour, "marker": marker, "linestyle": line, "markerfacecolor": fill}
            looks[of_suprema(epsilon, n_states)] = look
    return draw_panels(exhibit, height=3.6, logarithmic={"c": "xy"}, looks=looks, columns=3)


# Table II

ADVERSARIES = {
    "independent": Adversary(),
    "moderate": in_both(MODERATE),
    "strongest": in_both(UNCHANGING),
}


def table_2(n_steps: int = N_STEPS) -> Exhibit:
    """Leakage about any w consecutive values together, in nats: Theorem 2 at the worst place, for steps of 0.1.

    w = 1 is event-level privacy (TPL), w = T user-level privacy (Corollary 1), anything between w-event privacy. For
    independent data it is w epsilon.
    """
    widths = np.arange(1.0, n_steps + 1)
    curves = []
    for name, adversary in ADVERSARIES.items():
        series = recursion_series(adversary, [EPSILON] * n_steps)
        worst = [
            max(series.window(start, start + w) for start in range(n_steps - w + 1)) for w in range(1, n_steps + 1)
        ]
        curves.append(Curve("", name, "LeakageSeries.window, worst place", widths, np.array(worst)))
    user = [(float(n_steps), n_steps * EPSILON)]
    curves += [points("", "T eps, Corollary 1", "Corollary 1", user, name) for name in ADVERSARIES]
    curves.append(points("", "w eps, Table II", "Table II", [(w, w * EPSILON) for w in widths.tolist()], "independent"))
    panels = (Panel("", "", "steps protected together, w", "leakage (nats)"),)
    notes = ("Table II has no numbers: it is the paper's one table of guarantees, here for its moderate correlation.",)
    return Exhibit("table2", "Leakage about w steps together", "Section III-C, Table II", panels, tuple(curves), notes)


def draw_table_2(exhibit: Exhibit) -> Figure:
    """From event level on the left to user level on the right."""
    figure = draw_panels(exhibit, height=3.2, looks={"T eps, Corollary 1": STAR}, columns=3)
    figure.axes[0].set_ylim(bottom=0.0)
    return figure
