"""The guarantee, the assumptions and the reasons, in sentences."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import ExactLeakage, LeakageSeries, LeakageSupremum, Observation, PairwiseLeakage
from temporaldp.accounting.curve.method import Verified
from temporaldp.correlation import Adversary
from temporaldp.correlation.adversary import Matrix
from temporaldp.kernels import Witness
from temporaldp.planning import NoisePlan
from temporaldp.planning.histogram_noise import HISTOGRAM_SENSITIVITY
from temporaldp.report.content import Evidence

SAME = 1e-9
"""Relative difference of leakage below which pairs of values are said to be tied."""

COMPARED_STATES = 100
"""With more states than this, nobody looks for pairs that are tied."""

SHOWN_RUNS = 4
"""Runs of steps with the same high counts, before the worst step and after it, that a sentence names."""

LARGE = 13.0
"""Nats above which a factor is told as a power of ten."""

MOST_STATES = 6
"""A set of more states than this is named by its smaller complement, or by its size."""


def guarantee(evidence: Evidence) -> list[str]:
    """What is promised, to whom, and against whom."""
    series = evidence.leakage
    worst = number(series.worst, up=True)
    tied = int((series.temporal >= series.worst * (1.0 - 1e-9)).sum())
    where = f"at step {series.worst_time + 1} of {len(series)}, time {evidence.times[series.worst_time]}"
    if tied > 1:
        where = f"reached at {tied} of {steps(len(series))}"
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
    if isinstance(evidence.plan, NoisePlan) and isinstance(series.accounting, Verified):
        assert evidence.plan.verification is not None
        told.append(f"How the level was verified: {evidence.plan.verification.sentence}.")
    if evidence.provenance.epsilon and not series.delta:
        in_all = number(series.worst + evidence.provenance.epsilon, up=True)
        told.append(
            f"Learning the correlation has cost {number(evidence.provenance.epsilon, up=True)} nats for all values of a person "
            f"together: the release and all that is published about its budgets are {in_all}-DP_T in all."
        )
    if evidence.released is not None:
        told.append(
            f"The noise is exact discrete {evidence.released.noise.capitalize()} noise from OpenDP. One changed value "
            f"lowers one count by 1 and raises another by 1: an L1 sensitivity of {HISTOGRAM_SENSITIVITY}, an L2 sensitivity "
            "of sqrt(2)."
        )
    return told


def _odds(n_steps: int, worst: str, seen: str) -> str:
    return (
        f"Whatever {seen} of all {n_steps} releases together changes the odds between any two values of one person at any "
        f"one step by at most a factor e^{worst} = {factor(float(worst))}: the release is {worst}-DP_T (alpha-differential "
        "privacy under temporal correlations, Cao et al., ICDE 2017, Definition 8)."
    )


def _odds_with_delta(n_steps: int, worst: str, delta: float) -> str:
    return (
        f"Take any event that the {n_steps} releases together may show, and any two values of one person at any one step: "
        f"under the one value the event is at most e^{worst} = {factor(float(worst))} times as likely as under the other, "
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
        _accounting(evidence.leakage),
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
    elif evidence.provenance.confidence:
        listed.append(
            "Transitions from a value are independent given that value; the intervals hold them all together."
        )
    elif evidence.provenance.source in {"history", "protected"}:
        listed.append("No prior was used: a transition that the traces never show is taken to be impossible.")
    return listed


def _accounting(series: LeakageSeries) -> str:
    """What the numbers are."""
    if series.accounting.is_exact:
        return (
            "The leakage is exact: the largest over every mechanism with these epsilons. It is proved from above, and an "
            f"observation comes as close to it as {number(series.gap, up=True)} nats. For a histogram with Laplace noise it is "
            "that release's own leakage, not a worst case."
        )
    return series.accounting.sentence


def paper(evidence: Evidence) -> str | None:
    """The paper's bound of the largest leakage, and of its supremum if that was asked for; None if it is not to be shown."""
    if evidence.paper is None:
        return None
    for_ever = evidence.paper_supremum
    more = "" if for_ever is None else f"; {supremum(for_ever)} for ever"
    return f"{number(evidence.paper.worst, up=True)}{more}"


def supremum(limits: LeakageSupremum) -> str:
    """A temporal supremum, and whether it is known to be the least."""
    if math.isfinite(limits.temporal):
        return number(limits.temporal, up=True) + ("" if limits.certified else " or less")
    return "without bound" if limits.certified else "not known to be bounded"


def reasons(evidence: Evidence) -> list[str]:
    """Which values are told apart at the worst step, and by what."""
    series, step = evidence.leakage.worst_member, evidence.explained_step
    pair = series.worst_pair(step)
    if pair is not None:
        return [_told_apart(evidence, pair), *_before_and_after(evidence)]
    adversary = evidence.worst_adversary
    told = []
    for direction, known, reached in (
        ("backward", step > 0, series.backward[step - 1]),
        ("forward", step < len(series) - 1, series.forward[(step + 1) % len(series)]),
    ):
        if known and series.delta:
            told += _passing(adversary, direction, step)
        elif known:
            told += _reason(adversary, direction, step, float(reached), float(series.temporal[step]))
    return told


def _told_apart(evidence: Evidence, pair: tuple[str, str]) -> str:
    """The pair of values that is told apart best, and those that are tied with it."""
    series, step = evidence.leakage.worst_member, evidence.explained_step
    value, other = map(_state, pair)
    by = f"by {number(float(series.temporal[step]), up=True)} nats"
    known = series.evidence
    if not isinstance(known, ExactLeakage | PairwiseLeakage) or len(known.states) > COMPARED_STATES:
        return f"{value} is told apart from {other} {by}; no two values are told apart better."
    metric = known.metric(step)
    tied = np.argwhere(metric >= metric.max() * (1.0 - SAME)).tolist()
    if len(tied) == metric.size - len(metric):
        return f"Any two values are told apart equally well, {by}."
    others = [(known.states[i], known.states[j]) for i, j in tied if (known.states[i], known.states[j]) != pair]
    also = "" if len(others) != 1 else f" {_state(others[0][0])} from {_state(others[0][1])} is tied with it."
    if len(others) > 1:
        also = f" {len(others)} other pairs are tied with it."
    return f"{value} is told apart from {other} best, {by}.{also}"


def _before_and_after(evidence: Evidence) -> list[str]:
    """How likely the two values make what comes out high one step before and one step later."""
    seen = evidence.observation
    if seen is None:
        return []
    told = []
    for direction, step in (("backward", seen.time - 1), ("forward", seen.time + 1)):
        if not 0 <= step < len(seen) or evidence.leakage.epsilons[step] == 0.0:
            continue
        matrix = getattr(evidence.worst_adversary, direction).at(min(step, seen.time))
        if matrix is None or matrix.is_set:
            continue
        pair = [matrix.states.index(state) for state in (seen.value, seen.other_value)]
        likely, unlikely = (float(matrix.probabilities[[row]][:, seen.high[step]].sum()) for row in pair)
        if likely - unlikely <= SAME:
            told.append(
                f"{direction.capitalize()}: nothing leaks this way, as {_state(seen.value)} and {_state(seen.other_value)} do "
                "not differ."
            )
        else:
            event = Witness(seen.value, seen.other_value, seen.counts_high(step), likely, unlikely)
            told.append(_likelier(event, direction, matrix))
    return told


def witness(evidence: Evidence) -> str | None:
    """The observation that gives most away about the worst step; None where none is known."""
    seen = evidence.observation
    if seen is None:
        return None
    runs = [run for run in _runs(seen) if seen.high[run[0]].any() and not seen.high[run[0]].all()]
    before = [run for run in runs if run[-1] < seen.time]
    after = [run for run in runs if run[0] > seen.time]
    here = [run for run in runs if run[0] <= seen.time <= run[-1]]
    shown = [*before[-SHOWN_RUNS:], *here, *after[:SHOWN_RUNS]]
    left = sum(map(len, runs)) - sum(map(len, shown))
    counts = "; ".join(f"{_high(seen, run[0])} at {_steps_from_to(run)}" for run in shown)
    leakage, value, other = number(seen.leakage, up=True), _state(seen.value), _state(seen.other_value)
    return (
        f"The observation that gives most away about step {seen.time + 1}, that {evidence.who or 'a person'} was in "
        f"{value} rather than {other}: these counts come out high, and all others low: {counts}"
        + (f"; and so on at {steps(left)} further away, which add less" if left else "")
        + f". Seen together, it is e^{leakage} = {factor(float(leakage))} times as likely if the person was in {value}."
    )


def _runs(seen: Observation) -> list[range]:
    """Steps after one another at which the same counts come out high."""
    changes = np.flatnonzero((seen.high[1:] != seen.high[:-1]).any(axis=1)) + 1
    ends = [0, *changes.tolist(), len(seen)]
    return [range(first, last) for first, last in pairwise(ends)]


def _high(seen: Observation, step: int) -> str:
    return _named(seen.counts_high(step), seen.states, "and", "every state but")


def _steps_from_to(at: range) -> str:
    return f"step {at[0] + 1}" if len(at) == 1 else f"steps {at[0] + 1} to {at[-1] + 1}"


def _likelier(event: Witness, direction: str, matrix: Matrix, share: str = "") -> str:
    """How much likelier one value makes an event at the other time than another value does."""
    then, when = ("was", "one step before") if direction == "backward" else ("will be", "one step later")
    where = _named(event.evidence, matrix.states, "or", "any state but")
    return (
        f"{direction.capitalize()}{share}: a person in {_state(event.value)} {then} in {where} {when} with probability "
        f"{percent(event.probability)}, a person in {_state(event.other_value)} only with {percent(event.other_probability)}."
    )


def _reason(adversary: Adversary, direction: str, step: int, incoming: float, total: float) -> list[str]:
    """What the paper's recursion takes to arrive from one direction, and the values and the event that it is about."""
    matrix = getattr(adversary, direction).at(step - 1 if direction == "backward" else step)
    if matrix is None:
        return []
    profile = matrix.leakage_profile()
    witness = profile.witness(incoming)
    if witness is None:
        return [f"{direction.capitalize()}: all rows of the matrix are equal, so nothing leaks this way."]
    return [
        _likelier(
            witness, direction, matrix, f", {number(profile.loss(incoming))} of the {number(total, up=True)} nats"
        )
    ]


def _passing(adversary: Adversary, direction: str, step: int) -> list[str]:
    """How much of what is known passes from one step to the next, at most: with a delta there is no one witness."""
    matrix = getattr(adversary, direction).at(step - 1 if direction == "backward" else step)
    witness = None if matrix is None else matrix.leakage_profile().witness(0.0)
    if matrix is None or witness is None:
        return []
    share = percent(witness.probability - witness.other_probability)
    return [
        f"{_likelier(witness, direction, matrix)} No two values differ by more, so at most {share} of a delta passes from one "
        "step to the next."
    ]


def _named(inside: tuple[str, ...], states: tuple[str, ...], joint: str, but: str) -> str:
    """A set of states: all of it, or what is not in it, or how many."""
    outside = [state for state in states if state not in set(inside)]
    if len(inside) <= MOST_STATES:
        return _listed(inside, joint)
    if len(outside) <= MOST_STATES:
        return f"{but} {_listed(outside, joint)}"
    return f"{'one of ' if joint == 'or' else ''}{len(inside)} states ({', '.join(map(_state, inside[:3]))}, ...)"


def _listed(states: tuple[str, ...] | list[str], joint: str) -> str:
    *some, last = map(_state, states)
    return f"{', '.join(some)} {joint} {last}" if some else last


def _state(name: str) -> str:
    """A state in a sentence: in quotes if its name has a comma, as those of several tables have."""
    return f'"{name}"' if "," in name else name


def number(value: float, *, up: bool = False, down: bool = False) -> str:
    """Four digits: upwards where a guarantee is stated, so that it is never understated; downwards what is granted."""
    if not math.isfinite(value) or value == 0.0:
        return f"{value:g}"
    digits = 3 - math.floor(math.log10(abs(value)))
    scaled = value * 10.0**digits
    # A value that is a four-digit decimal but for rounding stays what it is.
    rounded = math.ceil(scaled - 1e-9) if up else math.floor(scaled + 1e-9) if down else round(scaled)
    return f"{rounded / 10.0**digits:.4g}"


def span(values: NDArray[np.float64], *, up: bool = False) -> str:
    """The smallest and the largest number, or the one that both are; upwards what was spent."""
    low, high = (number(float(value), up=up) for value in (values.min(), values.max()))
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


def level(leakage: float) -> str:
    """A leakage, rounded up, with its unit."""
    return "no bound" if math.isinf(leakage) else f"{number(leakage, up=True)} nats"


def factor(leakage: float) -> str:
    """By which odds change, rounded up."""
    if math.isinf(leakage):
        return "without bound"
    if leakage >= LARGE:
        return f"10^{math.ceil(10.0 * leakage / math.log(10.0)) / 10.0:g}"
    times = math.exp(leakage)
    return number(times, up=True) if times < 1e4 else f"{10 * math.ceil(times / 10.0 - 1e-9):,}"
