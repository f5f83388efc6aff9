"""Tests whether one first-order matrix describes traces, and the leakage that each refinement would add."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from temporaldp.base.display import number
from temporaldp.base.errors import EstimationError, MatrixError
from temporaldp.base.progress import part
from temporaldp.base.values import FloatArray, IntArray, positive
from temporaldp.core.accounting import PaperBound, temporal_leakage
from temporaldp.core.correlation import Adversaries, Adversary, Population
from temporaldp.data.tables import Trajectories, estimate_adversaries, estimate_dwell_times, estimate_words
from temporaldp.data.tables.estimation import estimate_periodic
from temporaldp.data.tables.traces import Traces, codes_of
from temporaldp.lab.studies.lifted_leakage import lifted_leakage
from temporaldp.lab.studies.refinements import Refinement, Weaknesses, refinements, weaknesses

LONGEST = 6
"""Steps from which on a state counts as old."""


REJECTED = 1e-3
"""P-value below which a model counts as rejected: with thousands of transitions a larger one carries little evidence."""

CLEAR = 0.05
"""Share of the leakage from which on what a refinement adds is worth a word."""


@dataclass(frozen=True, slots=True)
class ModelLeakage:
    """Largest temporal leakage under one model of the correlation, in nats.

    Parameters
    ----------
    model : str
        Name of the model.
    attained, proved : float
        Lower and upper bound, in nats; equal where the leakage is exact. NaN where the traces do not determine the model.
    note : str
        Reason for a missing number, or its assumptions; may be empty.
    """

    model: str
    attained: float
    proved: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Fit of models of the correlation to traces, and the leakage under each.

    Parameters
    ----------
    epsilon : float
        Budget of every step, in nats.
    models : tuple of ModelLeakage
        Models: first order at maximum likelihood, then others.
    refinements : tuple of Refinement
        Tests of finer models.
    weaknesses : Weaknesses
    """

    epsilon: float
    models: tuple[ModelLeakage, ...]
    refinements: tuple[Refinement, ...]
    weaknesses: Weaknesses

    @property
    def verdict(self) -> list[str]:
        """Sentences, most important first."""
        return [*_memory(self), *_thin(self.weaknesses), *_prior(self.models)]


def diagnose(
    trajectories: Traces, *, epsilon: float, period: int | None = None, horizon: int | None = None
) -> Diagnosis:
    """Test finer models of the correlation, compute the leakage under each, and list weaknesses of the traces.

    Parameters
    ----------
    trajectories : Traces
    epsilon : float, > 0
        Budget of every step, in nats.
    period : int, optional
        Steps after which the clock repeats.
    horizon : int, optional
        Steps of the release for which leakage is computed. Default: those of the traces.

    Returns
    -------
    Diagnosis
        Leakages in nats: exact for first-order models, from below and from above for longer memory.

    Examples
    --------
    >>> from temporaldp import load_sample
    >>> found = diagnose(load_sample(), epsilon=0.1)
    >>> [one.preferred for one in found.refinements], found.weaknesses.thin
    ([False, False, False], ())
    """
    spent = np.full(trajectories.n_times if horizon is None else horizon, positive(epsilon, "epsilon"))

    def exact(adversaries: Adversaries) -> tuple[float, float]:
        worst = _largest(adversaries, spent)
        return worst, worst

    people = _sampled(trajectories)
    whose = "each person" if len(people) == trajectories.n_users else f"each of {len(people)} people"
    jobs: list[tuple[str, Callable[[], tuple[float, float]]]] = [
        ("first order", lambda: exact(next(estimate_adversaries(trajectories)))),
        ("first order with a prior of 1", lambda: exact(next(estimate_adversaries(trajectories, prior=1.0)))),
        ("order 2", lambda: _lifted(trajectories, spent, "words")),
        (f"age of a state, up to {LONGEST} steps", lambda: _lifted(trajectories, spent, "ages")),
        (f"a matrix for {whose}, with a prior of 1", lambda: exact(_each(trajectories, people))),
    ]
    if period is not None:
        clock = partial(estimate_periodic, trajectories, period=period, phase=0)
        jobs.append((f"a matrix for each of {period} phases", lambda: exact(clock())))
    models = []
    for k, (name, measure) in enumerate(jobs):
        with part(k / len(jobs), (k + 1) / len(jobs), "leakage under each model"):
            try:
                low, high = measure()
                models.append(ModelLeakage(name, low, high))
            except (EstimationError, MatrixError) as error:
                models.append(ModelLeakage(name, np.nan, np.nan, str(error)))
    return Diagnosis(float(spent[0]), tuple(models), refinements(trajectories, period=period), weaknesses(trajectories))


def _largest(adversaries: Adversaries, spent: FloatArray) -> float:
    """Largest exact leakage of any adversary, in nats; those whose paper's bound is no larger are not computed."""
    each = Population.of(adversaries).users
    bounds = np.array([temporal_leakage(one, spent, accounting=PaperBound()).worst for one in each])
    worst = 0.0
    for k in np.argsort(-bounds, kind="stable").tolist():
        if bounds[k] * (1.0 + 1e-9) <= worst:  # by more than the rounding of both
            break
        worst = max(worst, temporal_leakage(each[k], spent).worst)
    return worst


def _lifted(trajectories: Traces, spent: FloatArray, memory: str) -> tuple[float, float]:
    n = trajectories.n_states
    hidden = n**2 if memory == "words" else n * LONGEST
    # Hidden states up to which a longer memory is accounted for here: a minute. `lifted_leakage` takes more.
    if hidden > 100:
        raise EstimationError(
            f"{hidden} hidden states are accounted for in minutes or hours; call lifted_leakage for them, or group states into "
            "fewer"
        )
    words = memory == "words"
    chain = estimate_words(trajectories, order=2) if words else estimate_dwell_times(trajectories, longest=LONGEST)
    found = lifted_leakage(chain, epsilons=spent)
    return found.attained, found.worst


def _sampled(trajectories: Traces) -> IntArray:
    """Positions of the people whose own matrices are accounted for: all, or some at equal distances."""
    # People, and n^3 entries of all of them
    most = min(trajectories.n_users, 200, max(1, (1 << 21) // trajectories.n_states**3))
    return np.unique(np.linspace(0, trajectories.n_users - 1, most).astype(np.int64))


def _each(trajectories: Traces, chosen: IntArray) -> Iterator[Adversary]:
    some = Trajectories(
        codes_of(trajectories)[chosen],
        states=trajectories.states,
        users=[trajectories.users[k] for k in chosen],
        consecutive=trajectories.consecutive,
    )
    return estimate_adversaries(some, prior=1.0, per_user=True)


def _memory(found: Diagnosis) -> list[str]:
    base = found.models[0]
    order, clock, people = found.refinements
    longer = max(found.models[2:4], key=lambda one: -np.inf if np.isnan(one.attained) else one.attained)
    adds = " What a longer memory adds to the leakage is small, or not known."
    leaks_more = longer.attained > base.proved * (1.0 + CLEAR)
    if leaks_more:
        more = math.floor(100.0 * (longer.attained / base.proved - 1.0))
        adds = f" Under a longer memory ({longer.model}), the leakage is at least {more} % larger."
    if order.preferred:
        sentences = [f"First order is not enough: the data prefer words of two states (BIC).{adds}"]
    elif order.p_value < REJECTED:
        sentences = [
            "First order is rejected (G-test), though the traces are too short to prefer a matrix over words of two states "
            f"(BIC).{adds}"
        ]
    elif order.has_few or not order.degrees:
        sentences = ["The traces are too short to decide whether first order is enough."]
    elif leaks_more:
        sentences = [
            "First order is enough by the words of two states that the data show (G-test, BIC). A longer memory that is "
            f"fitted nevertheless leaks more, by chance or by what that test cannot see.{adds}"
        ]
    else:
        sentences = ["First order is enough: the data show no words of two states (G-test, BIC)."]
    if clock.preferred:
        sentences.append(
            f"The correlation changes with time: {clock.name} is preferred (BIC); --set correlation.period=P "
            f"takes a clock into account."
        )
    elif clock.p_value < REJECTED:
        sentences.append("The correlation drifts with time (G-test), too little for matrices of their own (BIC).")
    if people.preferred:
        sentences.append(
            "People differ: a matrix for each person is preferred (BIC); --set correlation.per_user=true takes it into account."
        )
    elif people.p_value < REJECTED:
        sentences.append(
            "People differ somewhat, though too few transitions of each are seen for matrices of their own."
        )
    return sentences


def _thin(weak: Weaknesses) -> list[str]:
    sentences = []
    if len(weak.groups) > 1:
        sizes = ", ".join(str(len(group)) for group in weak.groups[:5]) + (", ..." if len(weak.groups) > 5 else "")
        sentences.append(
            f"States fall into {len(weak.groups)} groups that do not all lead to one another (of {sizes} states): between "
            "groups a state is never forgotten, and leakage grows with every step. Analyse groups apart, or give a prior."
        )
    for names, what in (
        (weak.never_left, "are never left: a person who is there is distinguished at all later steps"),
        (weak.unseen, "have no next state in the traces: their row needs a prior or longer traces"),
        (
            weak.thin,
            "have fewer than five transitions for each state that follows: intervals (--set "
            "correlation.confidence=0.95) show how little",
        ),
    ):
        if names:
            shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            sentences.append(f"{len(names)} of the states ({shown}) {what}.")
    return sentences


def _prior(models: tuple[ModelLeakage, ...]) -> list[str]:
    plain, smoothed = models[:2]
    if np.isnan(plain.proved):
        return ["Without a prior the traces determine no matrix."]
    if abs(plain.proved - smoothed.proved) > CLEAR * plain.proved:
        without, with_one = (number(one.proved, up=True) for one in (plain, smoothed))
        return [
            f"A prior decides: {without} nats without, {with_one} with a prior of 1. Zeros in short traces "
            "are a statement about the adversary; --set correlation.confidence=0.95 replaces it by intervals."
        ]
    return []
