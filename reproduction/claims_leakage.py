"""Sections I to III: the introduction's example, temporal privacy leakage, its recursions and compositions."""

from __future__ import annotations

import numpy as np

from reproduction import leakage_figures, printed
from reproduction.claim import Finding, agrees, disagrees, listed, loosely, same, stated
from reproduction.settings import (
    EPSILON,
    MODERATE,
    N_STEPS,
    THREE_PLACES,
    UNCHANGING,
    exact_series,
    in_both,
    random_correlation,
    recursion_plan,
    recursion_series,
)
from temporaldp import (
    Adversary,
    DiscreteLaplaceHistogram,
    LeakageSeries,
    TransitionMatrix,
    estimate_adversaries,
    load_sample,
)

# Section I

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
    paper = recursion_series(Adversary(forward=ROAD), spent).worst
    exact = exact_series(Adversary(forward=ROAD), spent).worst
    two = exact_series(Adversary(forward=TransitionMatrix([[0, 1], [0.5, 0.5]])), spent[:2]).worst
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
    found = recursion_series(in_both(UNCHANGING), [EPSILON] * N_STEPS).backward
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
        "The paper's neighbours differ in one person's state: one count falls by 1 and another rises by 1, so the "
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
    held = recursion_series(in_both(UNCHANGING), [level / horizon] * horizon).worst
    noise = {}
    for stay in (0.9, 0.6):
        matrix = TransitionMatrix([[stay, 1 - stay], [1 - stay, stay]])
        plan = recursion_plan(in_both(matrix), alpha=level, horizon=horizon)
        noise[stay] = float(np.mean(1 / plan.epsilons))
    return Finding(
        f"T = {horizon}, level {level:g}: equal shares leak {held:.4g} where nobody moves, with mean 1/epsilon "
        f"{horizon:g}. An optimal plan needs {noise[0.9]:.4g} if one of two places is kept with probability 0.9, "
        f"{noise[0.6]:.4g} with 0.6.",
        agrees(same(held, level) and noise[0.6] < noise[0.9] < horizon),
        "Equal shares hold the level whatever the correlation is; knowing it saves noise.",
    )


# Sections III-A and III-B


def _sleep_stages() -> tuple[LeakageSeries, LeakageSeries]:
    """The bundled sample's correlation, 47 steps of 0.1: by the paper's recursion, and exactly."""
    adversary = next(iter(estimate_adversaries(load_sample())))
    spent = [EPSILON] * 47
    return recursion_series(adversary, spent), exact_series(adversary, spent)


@stated(
    "Section III-A, after Definition 3",
    "If the distribution of the first value is known, the backward correlation follows from the forward one by Bayes' "
    "rule.",
)
def backward_by_bayes() -> Finding:
    """One matrix a step, unless the chain starts in its stationary distribution."""
    chain = THREE_PLACES
    known = Adversary.from_forward(chain, initial=[1 / 3, 1 / 3, 1 / 3], horizon=4)
    cells = [matrix.central().dense()[0, 2] for matrix in known.backward.matrices]
    steady = Adversary.from_forward(chain, initial=chain.stationary_distribution())
    constant = isinstance(steady.backward, TransitionMatrix)
    return Finding(
        f"Pr(before: place 3 | now: place 1) for the forward matrix {chain.dense().tolist()} from a uniform start: "
        f"{listed(cells)} at the first three transitions. From the stationary distribution it is constant.",
        loosely(constant and not same(cells[1:], cells[0])),
        "The rule gives one matrix for every step. The paper goes on with a single P^B, which is right only for a "
        "chain that starts in its stationary distribution; `Adversary.from_forward` keeps them all.",
    )


@stated(
    "Section III-A, Figure 2",
    "The forward matrix, with Pr(next: place 1 | now: place 3) = 0.6, is the time-reversed backward one, with "
    "Pr(before: place 3 | now: place 1) = 0.7.",
)
def figure_2() -> Finding:
    """The reverse of a steady chain."""
    steady = THREE_PLACES.stationary_distribution()
    cell = float(THREE_PLACES.reversed(steady).dense()[2, 0])
    ratio = 0.6 / 0.7
    return Finding(
        f"The backward matrix that the authors' program has, {THREE_PLACES.dense().tolist()}, reversed in its steady "
        f"state, gives {cell:.4g} in place of 0.6. For 0.6, place 1 now must be {ratio:.3g} times as likely as place 3 "
        f"before; in the steady state it is {steady[0] / steady[2]:.3g} times.",
        loosely(abs(cell - 0.6) > 0.01),
        "One of many starts gives 0.6, so the two numbers can belong together, but not in a steady state, where alone "
        "both matrices stay the same from step to step. The other cells stand only in the picture.",
    )


@stated(
    "Section III-B, Equation 10",
    "TPL at a time point equals BPL + FPL - epsilon.",
)
def sum_of_both_sides() -> Finding:
    """The two suprema are reached by different pairs of values: BPL by the first two, FPL by the last two."""
    past = TransitionMatrix([[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0]])
    future = TransitionMatrix([[0.5, 0.5, 0], [1, 0, 0], [0, 1, 0]])
    exact = exact_series(Adversary(past, future), [EPSILON] * 3)
    back, ahead, both = exact.backward[1], exact.forward[1], exact.temporal[1]
    return Finding(
        f"Three values, three steps of {EPSILON}; the first two give away the value before, the last two the value "
        f"after. At step 2 BPL is {back:.4g} and FPL {ahead:.4g}, both attained, which adds up to "
        f"{back + ahead - EPSILON:.4g}; TPL is {both:.4g}.",
        disagrees(same([back, ahead], 2 * EPSILON) and both < 0.999 * (back + ahead - EPSILON)),
        "The worst pair of values for the past need not be the worst for the future: the supremum of a sum is at most "
        "the sum of suprema. An upper bound of Definition 5, not an equality.",
    )


@stated(
    "Section III-B, Equation 11",
    "The same for all users: the largest BPL + the largest FPL - epsilon is the largest TPL.",
)
def sum_over_users() -> Finding:
    """One user with a strong past, another with a strong future."""
    users = [Adversary(backward=UNCHANGING, name="past"), Adversary(forward=UNCHANGING, name="future")]
    series = recursion_series(users, [EPSILON] * N_STEPS)
    summed = series.backward + series.forward - series.epsilons
    middle = N_STEPS // 2
    return Finding(
        f"One user's past is known in full, another's future, {N_STEPS} steps of {EPSILON}: at step {middle} the sum "
        f"is {summed[middle - 1]:.4g}, the largest TPL of either user {series.temporal[middle - 1]:.4g}.",
        disagrees(bool(summed[middle - 1] > 1.001 * series.temporal[middle - 1])),
        "The largest BPL and the largest FPL can belong to different people. An upper bound; `temporal_leakage` takes "
        "the largest TPL.",
    )


@stated(
    "Section III-B, Equations 12 to 15",
    "BPL at t is the loss function of BPL at t - 1, plus epsilon; FPL likewise from the other end.",
)
def recursion() -> Finding:
    """The exact value lies below the recursion, so the recursion is no equality."""
    paper, exact = _sleep_stages()
    return Finding(
        f"Sleep stages, step 25 of {EPSILON} each: {paper.backward[24]:.4g} by the recursion, {exact.backward[24]:.4g} by "
        "the definition itself.",
        disagrees(bool(exact.backward[24] < 0.999 * paper.backward[24])),
        "The program behind the loss function (Equations 18 to 20) lets the likelihoods of all values differ by the "
        "full previous BPL, in any combination. What was released before allows fewer. The recursion is an upper "
        "bound; docs/measured/tightness.md measures by how much, and the tests enumerate the worst mechanism's outputs.",
    )


@stated(
    "Section III-B, Example 2, Figure 3 (a)",
    "With 0.1 at each step, BPL grows linearly under the strongest correlation, less under the moderate one, and not "
    "at all without.",
)
def example_2() -> Finding:
    """Against the authors' program."""
    exhibit = leakage_figures.figure_3()
    strong, moderate, none = (exhibit.curve(name, "a").y for name in ("(i) strongest", "(ii) moderate", "(iii) none"))
    holds = same(strong, EPSILON * np.arange(1, N_STEPS + 1)) and same(none, np.full(N_STEPS, EPSILON))
    return Finding(
        f"At step {N_STEPS}: {strong[-1]:.4g}, {moderate[-1]:.4g}, {none[-1]:.4g}. The moderate series is "
        f"{listed(moderate)}.",
        agrees(holds and same(moderate, printed.MODERATE_BPL)),
        "All ten numbers of the moderate series are those of the authors' own program, to 12 digits.",
    )


@stated(
    "Section III-B, Example 3, Figure 3 (b)",
    "FPL is highest at the first step and lowest at the last; a further release changes it at every earlier step.",
)
def example_3() -> Finding:
    """Ten steps, then eleven."""
    ten, eleven = (recursion_series(in_both(MODERATE), [EPSILON] * steps).forward for steps in (N_STEPS, N_STEPS + 1))
    return Finding(
        f"Moderate correlation, ten releases: {listed(ten)}. After an eleventh: {listed(eleven[:-1])}.",
        agrees(bool((np.diff(ten) < 0).all() and (eleven[:-1] > ten).all())),
        "The mirror image of BPL.",
    )


@stated(
    "Section III-B, Remark 1",
    "The loss function lies between 0 and its argument; so BPL and FPL between epsilon and T epsilon.",
)
def remark_1() -> Finding:
    """Over random matrices."""
    levels = (0.01, 0.1, 1.0, 10.0, 100.0)
    share = [
        random_correlation(n, rng=n).leakage_profile().loss(alpha) / alpha for n in range(2, 12) for alpha in levels
    ]
    ends = (
        TransitionMatrix([[0.5, 0.5], [0.5, 0.5]]).leakage_profile().loss(1.0),
        UNCHANGING.leakage_profile().loss(1.0),
    )
    return Finding(
        f"L(a)/a over ten random matrices (n = 2 to 11) and five levels from 0.01 to 100: between {min(share):.3g} and "
        f"{max(share):.3g}. Equal rows: {ends[0]:g}; strongest: {ends[1]:g}.",
        agrees(min(share) >= 0 and max(share) <= 1 and ends == (0.0, 1.0)),
        "A step can forget, not learn.",
    )


@stated("Section III-B, after Remark 1", "The backward correlation affects only BPL, the forward one only FPL.")
def one_direction_each() -> Finding:
    """One matrix at a time."""
    spent = [EPSILON] * N_STEPS
    back = recursion_series(Adversary(backward=MODERATE), spent)
    ahead = recursion_series(Adversary(forward=MODERATE), spent)
    return Finding(
        f"P^B alone: FPL {back.forward.max():.4g} at every step. P^F alone: BPL {ahead.backward.max():.4g} at every "
        "step.",
        agrees(same(back.forward, back.epsilons) and same(ahead.backward, ahead.epsilons)),
        "By the recursions' form. Somebody who knows the chain's start as well could derive one from the other.",
    )


# Section III-C


@stated(
    "Section III-C; Figure 3 (c)",
    "Under the strongest correlation ten steps of 0.1 are 1-DP_T at an event, as much as at user level.",
)
def event_is_user_level() -> Finding:
    """TPL of the identity matrix."""
    series = recursion_series(in_both(UNCHANGING), [EPSILON] * N_STEPS)
    moderate = recursion_series(in_both(MODERATE), [EPSILON] * N_STEPS)
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
    series = recursion_series(in_both(MODERATE), [EPSILON] * N_STEPS)
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
        recursion_series(adversary, np.linspace(0.05, 0.5, N_STEPS)).window(None, None)
        for adversary in leakage_figures.ADVERSARIES.values()
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
    whole = recursion_series(Adversary(), spent).window(0, 3)
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
    exhibit = leakage_figures.table_2()
    moderate, independent = (exhibit.curve(name).y for name in ("moderate", "independent"))
    return Finding(
        f"Moderate correlation, T = {N_STEPS}, epsilon = {EPSILON}; event, 3-event, user level: "
        f"{listed(moderate[[0, 2, 9]])}; independent: {listed(independent[[0, 2, 9]])}.",
        agrees(bool((moderate >= independent).all()) and same(moderate[-1], independent[-1])),
        "w-event privacy lies between; `python -m reproduction --figure table2` draws every w.",
    )


STATEMENTS = (
    one_road,
    nobody_moves,
    noise_scale,
    group_privacy,
    backward_by_bayes,
    figure_2,
    sum_of_both_sides,
    sum_over_users,
    recursion,
    example_2,
    example_3,
    remark_1,
    one_direction_each,
    event_is_user_level,
    theorem_2,
    corollary_1,
    theorem_3,
    table_ii,
)
