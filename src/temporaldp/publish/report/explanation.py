"""The reasons of a report, in sentences."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from temporaldp.base.display import number
from temporaldp.core.accounting import LeakageSeries, Observation
from temporaldp.core.correlation import Provenance, TransitionMatrix
from temporaldp.core.correlation.adversary import Matrix
from temporaldp.core.kernels import Witness
from temporaldp.data.tables.estimation import ONE_MATRIX
from temporaldp.data.tables.models import ANOTHER_SAMPLE
from temporaldp.lab.studies import LeakageUncertainty
from temporaldp.lab.studies.uncertainty import quantile
from temporaldp.publish.report import sentences as s
from temporaldp.publish.report.content import Report

STATES_IN_WORDS = 12
"""Where there are more states, an observation is drawn, not described."""


def level(report: Report, alpha: float, *, is_determined: bool) -> str:
    """Whether every step satisfies a level, as a sentence."""
    fits = "" if report.leakage.worst <= alpha else "not " if report.leakage.is_exact else "not shown to be "
    level = s.satisfied(alpha, report.leakage.delta)
    return f"The level {level} is {fits if is_determined else 'not known to be '}satisfied."


def verdict(report: Report, satisfied: str | None, *, is_determined: bool) -> list[str]:
    """What one release and all of them reveal, whether a level is `satisfied`, for whom this holds, and what is beyond it.

    The leakage of all of them is not determined where too few transitions were observed.
    """
    series, limits, step = report.leakage, report.supremum, report.explained_step
    at, time, is_one_number = s.at_delta(series.delta), report.times[step], series.label == series.accounting.label
    likely, numbers = series.guesses or (1.0, 1.0), (float(series.epsilons[0]), series.worst)
    alone, together = (
        s.percent(min(s.best_guess(one, series.delta), p)) for one, p in zip(numbers, likely, strict=False)
    )
    leakage = s.nats(series.worst) + at if is_one_number else series.written(unit=" nats")
    curve = " by the whole privacy curve" if likely[1] < s.best_guess(series.worst, series.delta) else ""
    found = (
        f"at most {together}{curve} ({leakage}{f', {series.label}' if is_one_number else ''}), about step {step + 1}"
        + ("" if time == str(step + 1) else f" ({time})")
        + (f" of {report.who}" if report.who else "")
        + (f"; over an infinite horizon, {s.supremum(limits)}" if limits and math.isinf(limits.temporal) else "")
    )
    guess = "a guess between two equally likely states is right with probability"
    return [
        f"One table alone: {guess if series.delta else 'a suspicion of 50 % becomes'} at most {alone}.",
        f"{f'All {len(series)}' if len(series) > 1 else 'No other is released'}: "
        + (found if is_determined else f"not determined by so few transitions (under the prior, {leakage})")
        + ".",
        *filter(None, [satisfied]),
        f"This holds for {condition(report)}, and the states of all other people. {s.STRONGER_MODEL}",
        f"All states of a person together, for every correlation: at most {s.nats(series.user_level)}{at} (user level).",
    ]


def condition(report: Report) -> str:
    """For which observers the leakage holds."""
    known = report.worst_adversary
    if not known.matrices:
        return s.NO_HABITS
    return s.observers(report.provenance.with_directions_of([known]))


def by_model(series: LeakageSeries, known: Provenance) -> list[dict[str, Any]]:
    """What the observer knows, with the largest leakage, at most and attained, in nats: a row for each model."""
    is_one = len(known.models) != len(series.members) or not known.models
    names, members = ((s.chain(known),), (series,)) if is_one else (known.models, series.members)
    each: dict[str, list[LeakageSeries]] = {}
    for name, one in zip(names, members, strict=True):
        each.setdefault(name.partition(ANOTHER_SAMPLE)[0], []).append(one)
    return [
        {
            "model": name,
            "at_most": max(one.worst for one in some),
            "attained": max(
                (float(one.attained.temporal.max()) for one in some if one.attained is not None), default=None
            ),
        }
        for name, some in each.items()
    ]


def by_observer(
    series: LeakageSeries, known: Provenance, people: tuple[float, float, int] | None
) -> list[dict[str, str]]:
    """The rows by model as texts, that of the most predictable `people` (least, largest, of how many), and the user level."""
    rows = []
    for one in by_model(series, known):
        rows.append(
            (one["model"], one["at_most"], "" if one["attained"] is None else number(one["attained"], down=True))
        )
    if people is not None:
        rows.append((f"{s.PREDICTABLE} ({people[2]} compared)", people[1], f"{number(people[0], down=True)} or more"))
    rows.append((f"anything: {s.USER_LEVEL}", series.user_level, ""))
    return [
        {
            "the observer knows": name,
            "nats, at most": s.upper(most),
            "attained": low,
        }
        for name, most, low in rows
    ]


def uncertainty(found: LeakageUncertainty) -> str:
    """Leakage of the estimate, of draws, and of every matrix within the intervals."""
    level = f"{100.0 * found.confidence:g} %"
    draws = [(found.posterior, "of the posterior"), (found.people, "of resampled people")]
    parts = [
        f"{number(found.estimate)} for the estimate" if math.isfinite(found.estimate) else "no estimate without a prior"
    ]
    parts += [
        f"below {number(quantile(drawn, found.confidence), up=True)} with {level} {of}"
        for drawn, of in draws
        if drawn is not None
    ]
    chain = "a stationary Markov chain" if found.is_stationary else f"{ONE_MATRIX}, and begin as in the traces"
    return (
        f"Given the traces, the largest leakage is {', '.join(parts)}, and at most {number(found.guaranteed, up=True)} at "
        f"{level} confidence if states form {chain}; the worst matrices found within the intervals reach "
        f"{number(found.attained, down=True)}."
    )


def paper(report: Report) -> str | None:
    """The paper's bound of the largest leakage, and of its supremum if that is shown; None if it is not shown."""
    if report.paper is None:
        return None
    limit = report.paper_supremum
    more = "" if limit is None else f"; {s.INFINITE_HORIZON} {s.supremum(limit)}"
    return number(report.paper.worst, up=True) + more


def reasons(report: Report) -> list[str]:
    """The states that are distinguished best at the explained step, and what past and future contribute."""
    series, step, seen = report.leakage.worst_member, report.explained_step, report.observation
    pair = series.worst_pair(step)
    listed = [] if pair is None else [_distinguished(report, pair)]
    for direction, neighbour in (("backward", step - 1), ("forward", step + 1)):
        known = getattr(report.worst_adversary, direction)
        matrix = known.at(min(step, neighbour)) if 0 <= neighbour < len(series) else None
        if matrix is None:
            continue
        if pair is None:
            listed.append(_by_profile(series, step, neighbour, direction, matrix))
        elif seen is not None and series.epsilons[neighbour] > 0.0 and not matrix.is_set:
            listed.append(_by_observation(seen, neighbour, direction, matrix))
    return listed


def _distinguished(report: Report, pair: tuple[str, str]) -> str:
    """The pair of states that is distinguished best, and the pairs that are tied with it."""
    series, step = report.leakage.worst_member, report.explained_step
    state, other = map(_state, pair)
    known = series.evidence
    if known is not None and known.best_pairs and not series.is_exact:
        return f"Of the pairs of states that were compared, {state} is distinguished from {other} best."
    if known is None or not known.compares_pairs or len(known.states) > 100:  # many to compare
        return f"No two states are distinguished better than {state} is from {other}."
    metric = known.metric(step)
    tied = np.argwhere(metric >= metric.max() * (1.0 - 1e-9)).tolist()
    if len(tied) == metric.size - len(metric):
        return "Any two states are distinguished equally well."
    others = [(known.states[i], known.states[j]) for i, j in tied if (known.states[i], known.states[j]) != pair]
    also = "" if len(others) != 1 else f" {_state(others[0][0])} from {_state(others[0][1])} is tied with it."
    if len(others) > 1:
        also = f" {len(others)} other pairs are tied with it."
    return f"{state} is distinguished from {other} best.{also}"


def _by_observation(seen: Observation, neighbour: int, direction: str, matrix: TransitionMatrix) -> str:
    """Probabilities of the high counts at the neighbouring step, given the two states."""
    pair = [matrix.states.index(state) for state in (seen.state, seen.other_state)]
    likely, unlikely = (float(matrix.probabilities[[row]][:, seen.high[neighbour]].sum()) for row in pair)
    if likely - unlikely <= 1e-9:
        rows = f"the rows of {_state(seen.state)} and {_state(seen.other_state)} are equal"
        return f"{direction.capitalize()}: no leakage in this direction, because {rows}."
    event = Witness(seen.state, seen.other_state, seen.counts_high(neighbour), likely, unlikely)
    return _likelier(event, direction, matrix)


def _by_profile(series: LeakageSeries, step: int, neighbour: int, direction: str, matrix: Matrix) -> str:
    """The part of the leakage that passes a transition under an upper bound, and the event that it is about."""
    incoming = float(getattr(series, direction)[neighbour])
    profile = matrix.leakage_profile()
    event = profile.witness(0.0 if series.delta else incoming)
    if event is None:
        return f"{direction.capitalize()}: no leakage in this direction, because all rows of the matrix are equal."
    if series.delta:
        share = s.probability(event.probability - event.other_probability)
        most = f"No two states differ by more, so at most {share} of a delta passes from one step to the next."
        return f"{_likelier(event, direction, matrix)} {most}"
    total = number(float(series.temporal[step]), up=True)
    return _likelier(event, direction, matrix, f", {number(profile.loss(incoming), up=True)} of the {total} nats")


def witness(report: Report, drawn: str = "The figure shows") -> str | None:
    """The observation that attains the leakage of the explained step; of many states, where it is `drawn`. None if unknown."""
    seen = report.observation
    if seen is None:
        return None
    state, other = _state(seen.state), _state(seen.other_state)
    about = f"about step {seen.time + 1}, in favour of {report.who or 'a person'} in {state} rather than {other}"
    if len(seen.states) > STATES_IN_WORDS:
        return f"{drawn} the most revealing observation {about}."
    changes = np.flatnonzero((seen.high[1:] != seen.high[:-1]).any(axis=1)) + 1
    runs = [range(first, end) for first, end in pairwise([0, *changes.tolist(), len(seen)])]
    runs = [run for run in runs if seen.high[run[0]].any() and not seen.high[run[0]].all()]
    n_before, n_until = sum(run[-1] < seen.time for run in runs), sum(run[0] <= seen.time for run in runs)
    shown = runs[max(n_before - 4, 0) : n_until + 4]
    left = sum(map(len, runs)) - sum(map(len, shown))
    counts = "; ".join(
        f"{_named(seen.counts_high(run[0]), seen.states, 'and', 'every state but')} at {_steps_from_to(run)}"
        for run in shown
    )
    return (
        f"The most revealing observation {about}: these counts are high, and all others low: {counts}"
        + (f"; and {s.steps(left)} further away, which add less" if left else "")
        + f". The whole observation is {s.factor(seen.leakage)} times as likely if the person was in {state}."
    )


def _steps_from_to(at: range) -> str:
    return f"step {at[0] + 1}" if len(at) == 1 else f"steps {at[0] + 1} to {at[-1] + 1}"


def _likelier(event: Witness, direction: str, matrix: Matrix, share: str = "") -> str:
    """Probabilities of an event at the neighbouring step, given one state and given another."""
    then, when = ("was", "one step before") if direction == "backward" else ("will be", "one step later")
    where = _named(event.evidence, matrix.states, "or", "any state but")
    return (
        f"{direction.capitalize()}{share}: a person in {_state(event.state)} {then} in {where} {when} with probability "
        f"{s.probability(event.probability)}, a person in {_state(event.other_state)} only with "
        f"{s.probability(event.other_probability)}."
    )


def _named(inside: tuple[str, ...], states: tuple[str, ...], joint: str, but: str) -> str:
    """A set of states: up to six of them, its complement, or its size."""
    outside = [state for state in states if state not in set(inside)]
    if len(inside) <= 6:
        return _listed(inside, joint)
    if len(outside) <= 6:
        return f"{but} {_listed(outside, joint)}"
    return f"{'one of ' if joint == 'or' else ''}{len(inside)} states ({', '.join(map(_state, inside[:3]))}, ...)"


def _listed(states: tuple[str, ...] | list[str], joint: str) -> str:
    *some, last = map(_state, states)
    return f"{', '.join(some)} {joint} {last}" if some else last


def _state(name: str) -> str:
    """A state in a sentence: in quotes if its name has a comma, as those of several tables have."""
    return f'"{name}"' if "," in name else name
