"""Section I: what the introduction's example says of two places, and of group privacy."""

from __future__ import annotations

import numpy as np

from temporaldp import (
    Adversary,
    DiscreteLaplaceHistogram,
    TransitionMatrix,
    plan_budget,
    temporal_leakage,
)
from temporaldp.paper.claims.claim import Finding, agrees, disagrees, listed, loosely, same, stated
from temporaldp.paper.settings import EPSILON, N_STEPS, UNCHANGING, in_both

ROAD = TransitionMatrix([[0, 1, 0], [0, 0, 1], [0, 0, 1]], ["loc4", "loc5", "elsewhere"])
"""From loc4 always to loc5; to loc5 from nowhere else."""


@stated(
    "Section I, Example 1",
    "Who is at loc4 is always at loc5 next. As if one count were released twice, noise for epsilon gives only 2 "
    "epsilon.",
)
def one_road() -> Finding:
    """2 epsilon exactly; T epsilon by the paper's own recursion."""
    spent = [EPSILON] * N_STEPS
    paper = temporal_leakage(Adversary(forward=ROAD), epsilons=spent, bound="paper").worst
    exact = temporal_leakage(Adversary(forward=ROAD), epsilons=spent).worst
    two = temporal_leakage(Adversary(forward=TransitionMatrix([[0, 1], [0.5, 0.5]])), epsilons=spent[:2]).worst
    return Finding(
        f"epsilon = {EPSILON}, three places, loc5 reached from loc4 only, {N_STEPS} releases: {exact:.4g} "
        f"exactly, but {paper:.4g} by the paper's recursion. Two places, half of those at loc5 staying, two releases: "
        f"{two:.4g}.",
        loosely(same(exact, 2 * EPSILON) and two < 2 * EPSILON),
        "2 epsilon is the truth where loc5 is reached from loc4 only and leads away for good; it is less where others "
        "come to loc5 too. The paper's recursion (Equation 13) keeps one number for all pairs of places and cannot "
        "see it: it gives T epsilon.",
    )


@stated(
    "Section I, Example 1",
    "If nobody moves, noise for epsilon at every time point guarantees T epsilon at time point T.",
)
def nobody_moves() -> Finding:
    """BPL of the identity matrix."""
    found = temporal_leakage(in_both(UNCHANGING), epsilons=[EPSILON] * N_STEPS, bound="paper").backward
    return Finding(
        f"BPL at steps 1 to {N_STEPS}, epsilon = {EPSILON}: {listed(found)}.",
        agrees(same(found, EPSILON * np.arange(1, N_STEPS + 1))),
        "The same histogram is released T times: ordinary composition.",
    )


@stated(
    "Section I, Example 1; Section II-A, Theorem 1",
    "Lap(1/epsilon) noise on every count gives epsilon-differential privacy at each time point.",
)
def noise_scale() -> Finding:
    """OpenDP's own map from a scale to an epsilon."""
    mechanism = DiscreteLaplaceHistogram(n_states=5)
    spent = mechanism.epsilon_spent(2 * EPSILON)
    return Finding(
        f"epsilon = {EPSILON}: noise of scale {mechanism.scale(2 * EPSILON):.4g} on every count spends {spent:.4g} by "
        f"OpenDP's privacy map; a budget of {EPSILON} needs scale {mechanism.scale(EPSILON):.4g}.",
        disagrees(same(spent, 2 * EPSILON)),
        "The paper's neighbours differ in one person's value: one count falls by 1 and another rises by 1, so the "
        "histogram's L1 sensitivity, by the paper's own Theorem 1, is 2. Lap(1/epsilon) gives 2 epsilon; every noise "
        "in Section VI doubles.",
    )


@stated(
    "Section I",
    "Group privacy holds epsilon at T if T steps share it (Lap(T/epsilon)), but treats every correlation alike and "
    "over-perturbs.",
)
def group_privacy() -> Finding:
    """Alpha / T against the optimal plan for a strong and a weak correlation."""
    level, horizon = 1.0, N_STEPS
    held = temporal_leakage(in_both(UNCHANGING), epsilons=[level / horizon] * horizon, bound="paper").worst
    noise = {}
    for stay in (0.9, 0.6):
        matrix = TransitionMatrix([[stay, 1 - stay], [1 - stay, stay]])
        plan = plan_budget(in_both(matrix), alpha=level, horizon=horizon, bound="paper")
        noise[stay] = float(np.mean(1 / plan.epsilons))
    return Finding(
        f"T = {horizon}, level {level:g}: equal shares leak {held:.4g} where nobody moves, with mean 1/epsilon "
        f"{horizon:g}. An optimal plan needs {noise[0.9]:.4g} if one of two places is kept with probability 0.9, "
        f"{noise[0.6]:.4g} with 0.6.",
        agrees(same(held, level) and noise[0.6] < noise[0.9] < horizon),
        "Equal shares hold the level whatever the correlation is; knowing it saves noise.",
    )


STATEMENTS = (
    one_road,
    nobody_moves,
    noise_scale,
    group_privacy,
)
