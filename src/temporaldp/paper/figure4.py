"""Figure 4: the largest BPL over time in the four cases of Theorem 5, and on the border between two of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from temporaldp import Adversary, TransitionMatrix, temporal_leakage
from temporaldp.paper import printed
from temporaldp.paper.drawing import RING, STAR, draw_panels
from temporaldp.paper.exact import BOTH_PAIRS, EXACT, exact_backward
from temporaldp.paper.exhibit import Curve, Exhibit, Panel, points
from temporaldp.paper.settings import MODERATE, OVERLAPPING, UNCHANGING
from temporaldp.report.style import ORANGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_STEPS = 10_000
EXACT_STEPS = 1_000
"""Steps up to which the exact leakage is drawn: likelihood ratios beyond e^600 are not looked for."""

BOUNDARY = math.log(1.25)
"""log(1 / q) for q = 0.8: the paper's condition includes it."""

BORDER = "on the border: q = 0.8, d = 0, eps = log(1/q)"
STEADY = "(c) q = 0.8, d = 0, eps = 0.15"
CASES: dict[str, tuple[TransitionMatrix, float, float, float]] = {
    "(a) q = 1, d = 0, eps = 0.23": (UNCHANGING, 1.0, 0.0, 0.23),
    "(b) q = 0.8, d = 0, eps = 0.23": (MODERATE, 0.8, 0.0, 0.23),
    BORDER: (MODERATE, 0.8, 0.0, BOUNDARY),
    STEADY: (MODERATE, 0.8, 0.0, 0.15),
    "(d) q = 0.8, d = 0.1, eps = 0.23": (OVERLAPPING, 0.8, 0.1, 0.23),
}
CLOSED = ("closed form, Theorem 5", "closed form on the border")


def supremum_as_printed(q: float, d: float, epsilon: float) -> float:
    """Theorem 5's formula for one pair of sums, with its own cases, in nats; `math.inf` where it divides by zero.

    Evaluated as printed, in doubles: for checks, not for use. `leakage_supremum` finds q and d itself.
    """
    e = math.exp(epsilon)
    if d > 0.0:
        b = d + q * e - 1.0
        return math.log((math.sqrt(4.0 * d * e * (1.0 - q) + b * b) + b) / (2.0 * d))
    if q == 1.0 or epsilon > math.log(1.0 / q):
        return math.inf
    return math.log((1.0 - q) * e / (1.0 - q * e)) if q * e < 1.0 else math.inf


def on_the_border(q: float, steps: np.ndarray) -> np.ndarray:
    """BPL at steps 1, 2, ... for d = 0 and epsilon = log(1/q): ``log(1/q + (t - 1)(1 - q)/q)``, without bound.

    There ``e^BPL`` obeys ``e^BPL[t + 1] = (q e^BPL[t] + 1 - q) / q``: it rises by ``(1 - q)/q`` at every step, for ever.
    """
    return np.log(1.0 / q + (steps - 1.0) * (1.0 - q) / q)


def compute(n_steps: int = N_STEPS) -> Exhibit:
    """BPL in nats against the time step, and the closed forms: Section V, Theorem 5 and Example 4."""
    steps = np.unique(np.geomspace(1, n_steps, 81).round())
    curves = []
    for name, (matrix, _, _, epsilon) in CASES.items():
        series = temporal_leakage(Adversary(backward=matrix), epsilons=np.full(n_steps, epsilon), bound="paper")
        paper = series.backward[steps.astype(int) - 1]
        curves.append(Curve("", name, "temporal_leakage(bound='paper')", steps, paper))
        early = steps[steps <= EXACT_STEPS]
        exact = exact_backward(matrix, epsilon, early)
        curves.append(Curve("", EXACT, BOTH_PAIRS, early, exact, name))
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
        "The paper's matrices and budgets stand only in its picture, which we do not have: ours are one example a "
        "case.",
        "On the border the paper's case distinction promises a supremum (its condition is epsilon <= log(1/q)); there "
        "is none.",
        "The exact leakage (drawn up to step 1,000) is the paper's in all cases: with two values, the one that is told "
        "apart best at a step is the one that was told apart best before it. So the exact leakage, too, has no supremum "
        "on the border.",
    )
    panels = (Panel("", "", "time step", "BPL (nats)"),)
    return Exhibit("4", "The largest BPL over time", "Section V, Theorem 5 and Example 4", panels, tuple(curves), notes)


def draw(exhibit: Exhibit) -> Figure:
    """One pair of logarithmic axes: what has a supremum becomes flat, and what has none does not."""
    looks = {printed.AUTHORS: STAR, CLOSED[1]: {**RING, "color": ORANGE, "marker": "^"}}
    return draw_panels(exhibit, height=4.6, logarithmic={"": "xy"}, looks=looks, columns=2)
