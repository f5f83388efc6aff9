"""The guarantee, the assumptions and the reasons, in sentences."""

from __future__ import annotations

import math
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import LeakageSeries, PairLink
from temporaldp.correlation import Adversary, TransitionMatrix
from temporaldp.correlation.adversary import Correlation
from temporaldp.leakage import Witness
from temporaldp.release.histogram import HISTOGRAM_SENSITIVITY
from temporaldp.report.content import Evidence

SAME = 1e-6
"""Relative difference of the two bounds below which they are called the same."""

SHOWN_LINKS = 3
"""Steps before and after the worst one of which a sentence names the pairs."""

MOST_STATES = 6
"""A set of more states than this is named by its smaller complement, or by its size."""


def guarantee(evidence: Evidence) -> list[str]:
    """What is promised, to whom, and against whom."""
    series = evidence.tightest
    worst = number(series.worst, up=True)
    tied = int((series.temporal >= series.worst * (1.0 - 1e-9)).sum())
    where = f"at step {series.worst_time + 1} of {len(series)}, time {evidence.times[series.worst_time]}"
    if tied > 1:
        where = f"at {tied} of {steps(len(series))}"
    seen = "would be observed" if evidence.released is None else "is observed"
    told = [
        _odds_with_delta(len(series), worst, series.delta) if series.delta else _odds(len(series), worst, seen),
        "Neighbouring databases differ in the value of one person at one step (replace one). How many people are observed "
        "when is treated as public.",
        "This holds against an adversary who knows everybody else's values at every step, and how values follow one another. "
        f"The largest leakage is {where}" + (f", about {evidence.who}." if evidence.who else "."),
        f"All values of one person together (user level) are protected by {_level(series)}-differential privacy, whatever the "
        "correlation.",
    ]
    if evidence.released is not None:
        told.append(
            f"The noise is exact discrete {evidence.released.mechanism.capitalize()} noise from OpenDP. One changed value "
            f"lowers one count by 1 and raises another by 1: an L1 sensitivity of {HISTOGRAM_SENSITIVITY}, an L2 sensitivity "
            "of sqrt(2)."
        )
    return told


def _odds(n_steps: int, worst: str, seen: str) -> str:
    return (
        f"Whatever {seen} of all {n_steps} releases together changes the odds between any two values of one person at any "
        f"one step by at most a factor e^{worst} = {_factor(float(worst))}: the release is {worst}-DP_T (alpha-differential "
        "privacy under temporal correlations, Cao et al., ICDE 2017, Definition 8)."
    )


def _odds_with_delta(n_steps: int, worst: str, delta: float) -> str:
    return (
        f"Take any event that the {n_steps} releases together may show, and any two values of one person at any one step: "
        f"under the one value the event is at most e^{worst} = {_factor(float(worst))} times as likely as under the other, "
        f"plus {delta:g}. The release is ({worst}, {delta:g})-DP_T: (epsilon, delta)-differential privacy takes the place of "
        "pure differential privacy in Definition 8 of Cao et al., ICDE 2017."
    )


def _level(series: LeakageSeries) -> str:
    level = number(series.user_level, up=True)
    return f"({level}, {series.delta:g})" if series.delta else level


def assumptions(evidence: Evidence) -> list[str]:
    """What must be true for the guarantee to hold, and what is not covered."""
    known = [name for name in ("backward", "forward") if getattr(evidence.adversaries[0], name) is not None]
    knowledge = " and ".join(known) + " correlation" if known else "no temporal correlation"
    listed = [
        f"Each person's values form a first-order Markov chain, of which the adversary knows the {knowledge}. "
        "A stronger model (longer memory, correlation between people) can leak more.",
        "The correlation is over one step of this release; over longer steps it would be weaker, over shorter ones stronger.",
        "Each release on its own is differentially private with its stated epsilon, with fresh and independent randomness."
        + (" How much noise each has was decided before the first." if evidence.leakage.delta else ""),
        "It is assumed that the list of states and the times of release are public and do not depend on the data.",
        "The numbers are upper bounds of the definitions: the recursion keeps "
        + ("one curve" if evidence.leakage.delta else "one number")
        + " for all pairs of values"
        + ("." if evidence.pairwise is None else ", or, for the tighter ones, one number for each pair."),
    ]
    planned = None if evidence.plan is None else evidence.plan.horizon
    if planned is not None and planned > len(evidence.leakage):
        listed.append(
            f"The plan has {planned} steps, and this report is about the first {len(evidence.leakage)}: releases to come raise "
            f"the leakage of these steps, to at most {evidence.plan.alpha if evidence.plan else 0:g} if the plan is followed."
        )
    prior = evidence.provenance.prior
    if prior:
        listed.append(
            f"A prior of {prior:g} per cell was added. Smoothing states that the adversary does not trust zeros in short "
            "traces; an adversary who does would learn more."
        )
    elif evidence.provenance.source != "matrices":
        listed.append("No prior was used: a transition that the traces never show is taken to be impossible.")
    return listed


def two_bounds(evidence: Evidence) -> list[str]:
    """Both bounds side by side, why the second is smaller, and the pair that it is about; nothing if there is only one."""
    uniform, tighter = evidence.leakage, evidence.pairwise
    if tighter is None:
        return []
    if tighter.worst >= uniform.worst * (1.0 - SAME):
        told = [
            "Pair by pair the bound is the same here: what is learnt at the steps that matter is about one and the same pair."
        ]
    else:
        told = [
            f"Two upper bounds: {number(uniform.worst, up=True)} nats by the paper's recursion, "
            f"{number(tighter.worst, up=True)} pair by pair. Both are guarantees, so the smaller one holds. The first adds up "
            "the most that can be learnt at each step, even where it is about another pair of values each time; the second "
            "follows every pair of values by itself, so that only what is learnt about the same pair adds up."
        ]
    pairs = tighter.worst_member.pairs
    if pairs is None:
        return told
    step = tighter.worst_time
    metric = pairs.metric(step)
    apart = metric[~np.eye(len(metric), dtype=bool)]
    if apart.size == 0 or apart.min() >= apart.max() * (1.0 - SAME):
        return [*told, f"Pair by pair, any two values are told apart equally well at step {step + 1}."]
    path = pairs.path(step, reach=SHOWN_LINKS)
    here = next(link for link in path if link.step == step)
    sentence = (
        f"Pair by pair, {here.value} is told apart from {here.other_value} best, at step {step + 1}, by "
        f"{number(here.leakage, up=True)} nats{_about(evidence, tighter)}."
    )
    for links, when in (
        ([link for link in reversed(path) if link.step < step], "before"),
        ([link for link in path if link.step > step], "after"),
    ):
        if links:
            sentence += f" Of what is learnt {when} it, most rests on telling {_chain(links)}."
    return [*told, sentence]


def _about(evidence: Evidence, series: LeakageSeries) -> str:
    if series.worst_user is None:
        return ""
    return f", about {series.worst_user!r}" if evidence.name_users else ", about one person"


def _chain(links: list[PairLink]) -> str:
    """The pairs of some links, those of one pair together: W from N3 at steps 25 to 23."""
    runs = [list(run) for _, run in groupby(links, key=lambda link: (link.value, link.other_value))]
    return ", ".join(
        f"{run[0].value} from {run[0].other_value} at step"
        + (
            f" {run[0].step + 1}"
            if len(run) == 1
            else "s {} to {}".format(*sorted((run[0].step + 1, run[-1].step + 1)))
        )
        for run in runs
    )


def reasons(evidence: Evidence) -> list[str]:
    """Which values are told apart at the worst step, and by what."""
    series = evidence.leakage
    if series.members:
        series = next(member for member in series.members if member.name == evidence.leakage.worst_user)
    adversary, step = evidence.worst_adversary, evidence.explained_step
    told = []
    if series.delta:
        past = _passing(adversary, "backward", step) if step > 0 else []
        return past + (_passing(adversary, "forward", step) if step < len(series) - 1 else [])
    if step > 0:
        told += _reason(adversary, "backward", step, float(series.backward[step - 1]), float(series.temporal[step]))
    if step < len(series) - 1:
        told += _reason(adversary, "forward", step, float(series.forward[step + 1]), float(series.temporal[step]))
    return told


def _reason(adversary: Adversary, direction: str, step: int, incoming: float, total: float) -> list[str]:
    matrix = _at(getattr(adversary, direction), step - 1 if direction == "backward" else step)
    if matrix is None:
        return []
    profile = matrix.leakage_profile()
    witness = profile.witness(incoming)
    if witness is None:
        return [f"{direction.capitalize()}: all rows of the matrix are equal, so nothing leaks this way."]
    then = "was" if direction == "backward" else "will be"
    when = "one step before" if direction == "backward" else "one step later"
    return [
        f"{direction.capitalize()}, {number(profile.loss(incoming))} of the {number(total, up=True)} nats: a person in "
        f"{witness.value} {then} in {_set(witness, matrix)} {when} with probability {percent(witness.probability)}, a person "
        f"in {witness.other_value} only with {percent(witness.other_probability)}."
    ]


def _passing(adversary: Adversary, direction: str, step: int) -> list[str]:
    """How much of what is known passes from one step to the next, at most: with a delta there is no one witness."""
    matrix = _at(getattr(adversary, direction), step - 1 if direction == "backward" else step)
    witness = None if matrix is None else matrix.leakage_profile().witness(0.0)
    if matrix is None or witness is None:
        return []
    then, when = ("was", "one step before") if direction == "backward" else ("will be", "one step later")
    share = witness.probability - witness.other_probability
    return [
        f"{direction.capitalize()}: a person in {witness.value} {then} in {_set(witness, matrix)} {when} with probability "
        f"{percent(witness.probability)}, a person in {witness.other_value} only with {percent(witness.other_probability)}. No "
        f"two values differ by more, so at most {percent(share)} of a delta passes from one step to the next."
    ]


def _at(correlation: Correlation, transition: int) -> TransitionMatrix | None:
    return correlation[transition] if isinstance(correlation, tuple) else correlation


def _set(witness: Witness, matrix: TransitionMatrix) -> str:
    inside = witness.evidence
    outside = [state for state in matrix.states if state not in set(inside)]
    if len(inside) <= MOST_STATES:
        return _either(inside)
    if len(outside) <= MOST_STATES:
        return f"any state but {_either(outside)}"
    return f"one of {len(inside)} states ({', '.join(inside[:3])}, ...)"


def _either(states: tuple[str, ...] | list[str]) -> str:
    return states[0] if len(states) == 1 else f"{', '.join(states[:-1])} or {states[-1]}"


def number(value: float, *, up: bool = False) -> str:
    """Four significant digits; upwards where a guarantee is stated, so that it is never understated."""
    if not math.isfinite(value) or value == 0.0:
        return f"{value:g}"
    digits = 3 - math.floor(math.log10(abs(value)))
    scaled = value * 10.0**digits
    # A value that is a four-digit decimal but for rounding stays what it is.
    rounded = math.ceil(scaled - 1e-9) if up else round(scaled)
    return f"{rounded / 10.0**digits:.4g}"


def span(values: NDArray[np.float64]) -> str:
    """The smallest and the largest number, or the one that both are."""
    low, high = number(float(values.min())), number(float(values.max()))
    return low if low == high else f"{low} to {high}"


def steps(count: int) -> str:
    """1 step, 2 steps."""
    return f"{count} step{'' if count == 1 else 's'}"


def percent(probability: float) -> str:
    """A probability for people: 85.2 %, <0.1 %."""
    if 0.0 < probability < 0.001:
        return "less than 0.1 %"
    if 0.999 < probability < 1.0:
        return "more than 99.9 %"
    return f"{100.0 * probability:.1f} %"


def _factor(leakage: float) -> str:
    return number(math.exp(leakage), up=True) if leakage < 20 else f"10^{leakage / math.log(10):.0f}"
