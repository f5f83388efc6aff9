"""Section III-C: leakage about several values together, Table II."""

from __future__ import annotations

import numpy as np

from temporaldp import (
    Adversary,
    temporal_leakage,
)
from temporaldp.paper import table2
from temporaldp.paper.claims.claim import Finding, agrees, disagrees, listed, same, stated
from temporaldp.paper.settings import EPSILON, MODERATE, N_STEPS, UNCHANGING, in_both


@stated(
    "Section III-C; Figure 3 (c)",
    "Under the strongest correlation ten steps of 0.1 are 1-DP_T at an event, as much as at user level.",
)
def event_is_user_level() -> Finding:
    """TPL of the identity matrix."""
    series = temporal_leakage(in_both(UNCHANGING), epsilons=[EPSILON] * N_STEPS, bound="paper")
    moderate = temporal_leakage(in_both(MODERATE), epsilons=[EPSILON] * N_STEPS, bound="paper")
    return Finding(
        f"TPL is {series.temporal.min():.4g} at every step; user level {series.user_level:.4g}. Moderate: at most "
        f"{moderate.worst:.4g}.",
        agrees(same(series.temporal, np.full(N_STEPS, 1.0)) and same(series.user_level, 1.0)),
        "Who knows one value knows all of them.",
    )


@stated(
    "Section III-C, Theorem 2",
    "Mechanisms t to t + j together satisfy BPL at t, plus FPL at t + j, plus the epsilons between (none for j = 1).",
)
def theorem_2() -> Finding:
    """Windows of a series: the whole is the sum of all epsilons, and a longer window leaks more."""
    series = temporal_leakage(in_both(MODERATE), epsilons=[EPSILON] * N_STEPS, bound="paper")
    windows = [series.window(3, stop) for stop in range(4, N_STEPS + 1)]
    by_hand = series.backward[3] + series.forward[6] + EPSILON * 2
    return Finding(
        f"Moderate correlation, windows from step 4 on of 1 to {N_STEPS - 3} steps: {listed(windows)}.",
        agrees(same(series.window(3, 7), by_hand) and bool((np.diff(windows) > 0).all())),
        "Given the values at both ends of a window, what lies before, in and after it is independent. As BPL and FPL "
        "are upper bounds, so is this.",
    )


@stated(
    "Section III-C, Corollary 1", "All T mechanisms together leak the sum of their epsilons, whatever the correlation."
)
def corollary_1() -> Finding:
    """The whole window."""
    found = [
        temporal_leakage(adversary, epsilons=np.linspace(0.05, 0.5, N_STEPS), bound="paper").window(None, None)
        for adversary in table2.KNOWN.values()
    ]
    return Finding(
        f"Ten budgets from 0.05 to 0.5, sum 2.75; independent, moderate, strongest: {listed(found)}.",
        agrees(same(found, 2.75)),
        "Somebody's whole sequence is one value to protect.",
    )


@stated(
    "Section III-C, Theorem 3",
    "On independent data, mechanisms t to t + j together satisfy the sum of epsilon at t + k over k = 1 to j.",
)
def theorem_3() -> Finding:
    """The printed sum against ordinary composition."""
    spent = np.array([0.1, 0.2, 0.3])
    whole = temporal_leakage(Adversary(), epsilons=spent, bound="paper").window(0, 3)
    as_printed = float(spent[1:].sum())
    return Finding(
        f"Budgets 0.1, 0.2, 0.3 on independent data (t = 1, j = 2): the printed sum is {as_printed:.4g}; three "
        f"mechanisms leak {whole:.4g}.",
        disagrees(whole > as_printed * 1.001),
        "The sum must begin at k = 0; the mechanism at t is left out. Table II (w epsilon for w mechanisms) counts "
        "it. A slip of the pen.",
    )


@stated(
    "Section III-C, Table II",
    "Event level: alpha >= epsilon; w-event: Theorem 2 instead of w epsilon; user level: T epsilon with and without "
    "correlation.",
)
def table_ii() -> Finding:
    """One adversary's numbers."""
    exhibit = table2.compute()
    moderate, independent = (exhibit.curve(name).y for name in ("moderate", "independent"))
    return Finding(
        f"Moderate correlation, T = {N_STEPS}, epsilon = {EPSILON}; event, 3-event, user level: "
        f"{listed(moderate[[0, 2, 9]])}; independent: {listed(independent[[0, 2, 9]])}.",
        agrees(bool((moderate >= independent).all()) and same(moderate[-1], independent[-1])),
        "w-event privacy lies between; `temporaldp reproduce --figure table2` draws every w.",
    )


STATEMENTS = (
    event_is_user_level,
    theorem_2,
    corollary_1,
    theorem_3,
    table_ii,
)
