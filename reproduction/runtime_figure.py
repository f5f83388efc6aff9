"""Figure 5: run time against n and against alpha, and the share of right answers at large alpha.

The only exhibit that depends on the machine, and on the solvers that are installed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction import peers, printed
from reproduction.drawing import LOOKS, draw_panels
from reproduction.exhibit import Curve, Exhibit, FloatArray, Panel, points
from reproduction.settings import random_correlation
from temporaldp import TransitionMatrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALPHA = 10.0
SIZES = (10, 25, 45, 75, 150)
ALPHAS = (0.1, 1.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0)
N_STATES = 45
"""Of (b) and (c), which the text does not give: the most that Gurobi's free licence takes as printed."""

PAIRS = 10
"""Pairs of rows that a solver is given at one n and alpha."""

SEED = 0
OURS, PROFILE, AS_PRINTED = "temporaldp, one value", "temporaldp, profile", "Algorithm 1"
NAMES = {"highs": "HiGHS", "gurobi": "Gurobi", "lp_solve": "lp_solve"}
FEWER = ", 2n + 1 constraints"
PANELS = (
    Panel("a", f"alpha = {ALPHA:g}", "n, number of values", "time for all pairs (s)"),
    Panel("b", f"n = {N_STATES}", "alpha (nats)", "time for all pairs (s)"),
    Panel("c", f"n = {N_STATES}", "alpha (nats)", "pairs answered rightly (%)"),
)


def figure_5(
    sizes: Sequence[int] = SIZES, alphas: Sequence[float] = ALPHAS, n_states: int = N_STATES, pairs: int = PAIRS
) -> Exhibit:
    """Seconds for one value of the loss function, and the share of pairs answered rightly: Section VI-A.

    Matrices have rows uniform on [0, 1), normalised. Algorithm 1 runs over all pairs, in NumPy, on one core; temporaldp
    runs on all cores, once for one value and once for the profile, which gives every value. A solver gets `pairs` pairs; the
    median of its times is multiplied by n(n - 1), as the source of each curve states. An answer is right if the solver calls
    it optimal and it is within 1e-6 of the exact one.
    """
    there = peers.installed()
    by_size = [result for n in sizes for result in peers.survey(n, [ALPHA], SEED, solvers=there, pairs=pairs)]
    by_alpha = list(peers.survey(n_states, alphas, SEED, solvers=there, forms=["paper"], pairs=pairs))
    curves = [*_ours(sizes, alphas, n_states), *_solvers(by_size, by_alpha, there, pairs)]
    curves += _right_of_ours(alphas, n_states, pairs)
    curves += [
        points("a", f"{name}, 2016", printed.PAPER, [(150.0, seconds)])
        for name, seconds in printed.SECONDS.items()
        if 150 in sizes
    ]
    missing = [
        f"{NAMES[name]} is not installed and left out; {how}"
        for name, how in peers.TO_INSTALL.items()
        if name not in there
    ]
    notes = (
        f"Solvers are timed on {pairs} of the n(n - 1) pairs, and multiplied; n of (b) is ours, the text does not give "
        "it.",
        "Gurobi's free licence ends at 2,000 constraints: n = 45 as printed, beyond only with 2n + 1 constraints.",
        *missing,
    )
    return Exhibit("5", "Run time, and what goes wrong", "Section VI-A", PANELS, tuple(curves), notes)


def draw_figure_5(exhibit: Exhibit) -> Figure:
    """Against n, against alpha, and the share of right answers."""
    looks: dict[str, Any] = {OURS: LOOKS[0], PROFILE: {**LOOKS[0], "marker": "*"}, AS_PRINTED: LOOKS[1]}
    for k, name in enumerate(NAMES.values()):
        looks[name] = {**LOOKS[2 + k], "linestyle": "-."}
        looks[name + FEWER] = {**LOOKS[2 + k], "linestyle": ":", "markerfacecolor": "white"}
    for name in printed.SECONDS:
        looks[f"{name}, 2016"] = looks[name]
    figure = draw_panels(exhibit, height=4.8, logarithmic={"a": "xy", "b": "y"}, looks=looks, columns=3)
    left, middle, _ = figure.axes
    middle.set_ylim(left.get_ylim())
    middle.set_ylabel("")
    middle.tick_params(labelleft=False)
    extrapolated = [curve.source for curve in exhibit.curves if curve.name == NAMES["highs"] and curve.panel == "b"]
    heading = f"Solvers, times extrapolated: {extrapolated[0]}. 2016: the paper's own seconds."
    figure.legends[0].set_title(heading)
    figure.legends[0].get_title().set_fontsize(9)
    figure.legends[0].set_alignment("left")
    return figure


def _ours(sizes: Sequence[int], alphas: Sequence[float], n_states: int) -> list[Curve]:
    """The programs that go over all pairs themselves."""

    def as_printed(P: FloatArray, alpha: float) -> object:
        return peers.algorithm_1(P, alpha)

    def one_value(P: FloatArray, alpha: float) -> object:
        return TransitionMatrix(P).leakage_profile().loss(alpha)

    def profile(P: FloatArray, _: float) -> object:
        return TransitionMatrix(P).leakage_profile()

    sources = {
        AS_PRINTED: "Algorithm 1 as printed, NumPy, one core",
        OURS: "temporaldp, all cores",
        PROFILE: "TransitionMatrix.leakage_profile, all cores: every alpha at once",
    }
    curves = []
    for name, call in {AS_PRINTED: as_printed, OURS: one_value, PROFILE: profile}.items():
        at_sizes = [(float(n), _seconds(call, _matrix(n), ALPHA)) for n in sizes]
        at_alphas = [(alpha, _seconds(call, _matrix(n_states), alpha)) for alpha in alphas]
        curves += [points("a", name, sources[name], at_sizes), points("b", name, sources[name], at_alphas)]
    return curves


def _solvers(
    by_size: Sequence[peers.Result], by_alpha: Sequence[peers.Result], there: dict[str, peers.Solver], pairs: int
) -> list[Curve]:
    """What was asked pair by pair; a size that a licence refuses is no point."""
    how = f"median of {pairs} pairs, times n(n - 1)"
    curves = []
    for name in there:
        for form, suffix in (("paper", ""), ("bounds", FEWER)):
            found = [(float(r.n), _all_pairs(r)) for r in by_size if (r.solver, r.form) == (name, form) and _ran(r)]
            curves.append(points("a", NAMES[name] + suffix, how, found))
        asked = [result for result in by_alpha if result.solver == name]
        curves.append(points("b", NAMES[name], how, [(r.alpha, _all_pairs(r)) for r in asked if _ran(r)]))
        share = [(r.alpha, 100.0 * r.right / r.pairs) for r in asked if _ran(r)]
        curves.append(points("c", NAMES[name], f"{pairs} pairs against 60 digits", share))
    return curves


def _right_of_ours(alphas: Sequence[float], n_states: int, pairs: int) -> list[Curve]:
    """The same pairs for the programs that take a matrix: the first row of a pair, and copies of the second."""
    rows = peers.drawn_rows(n_states, pairs, SEED)
    right: dict[str, list[tuple[float, float]]] = {AS_PRINTED: [], OURS: []}
    for alpha in alphas:
        hits = dict.fromkeys(right, 0)
        for q, d in zip(rows[::2], rows[1::2], strict=True):
            square = np.vstack([q, np.tile(d, (n_states - 1, 1))])
            true = float(max(peers.exact(q, d, alpha), peers.exact(d, q, alpha)))
            hits[AS_PRINTED] += (
                abs(peers.algorithm_1(np.vstack([q, d]), alpha).losses.max() - true) <= peers.WRONG * true
            )
            hits[OURS] += abs(TransitionMatrix(square).leakage_profile().loss(alpha) - true) <= peers.WRONG * true
        for name, count in hits.items():
            right[name].append((alpha, 100.0 * count / pairs))
    return [points("c", name, f"{pairs} pairs, both orders, against 60 digits", found) for name, found in right.items()]


def _matrix(n_states: int) -> FloatArray:
    return np.ascontiguousarray(random_correlation(n_states, rng=SEED).dense())


def _ran(result: peers.Result) -> bool:
    return not result.status.endswith("constraints")


def _all_pairs(result: peers.Result) -> float:
    return result.seconds * result.n * (result.n - 1)


def _seconds(call: Callable[[FloatArray, float], object], P: FloatArray, alpha: float) -> float:
    """The median of five runs, after one that may load libraries; of three where one takes longer than a second."""
    call(P, alpha)
    spent: list[float] = []
    while len(spent) < (5 if not spent or spent[0] < 1.0 else 3):
        started = time.perf_counter()
        call(P, alpha)
        spent.append(time.perf_counter() - started)
    return statistics.median(spent)
