"""Tests whether one first-order matrix describes traces, and the leakage that each refinement would add."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from temporaldp.base.display import number
from temporaldp.base.errors import EstimationError, MatrixError
from temporaldp.base.progress import part
from temporaldp.base.values import FloatArray, positive
from temporaldp.core.accounting import temporal_leakage
from temporaldp.core.correlation import Adversaries
from temporaldp.data.tables import estimate_adversaries, estimate_dwell_times, estimate_words
from temporaldp.data.tables.estimation import estimate_periodic
from temporaldp.data.tables.models import affordable, sampled_people
from temporaldp.data.tables.traces import Traces
from temporaldp.lab.studies.refinements import OLD, Refinement, Weaknesses, refinements, weaknesses

MOST_DIAGNOSED = 100
"""Hidden states up to which a longer memory is accounted for within a minute."""

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
    >>> found = diagnose(load_sample(), epsilon=0.1, horizon=12)
    >>> [one.preferred for one in found.refinements], found.weaknesses.thin
    ([False, False, False, False], ())
    """
    spent = np.full(trajectories.n_times if horizon is None else horizon, positive(epsilon, "epsilon"))
    n, longest = trajectories.n_states, OLD
    people = sampled_people(trajectories)
    whose = "each person" if people.n_users == trajectories.n_users else f"each of {people.n_users} people"
    estimates: dict[str, Callable[[], Adversaries]] = {
        "first order": lambda: next(estimate_adversaries(trajectories)),
        "first order with a prior of 1": lambda: next(estimate_adversaries(trajectories, prior=1.0)),
        "order 2": lambda: estimate_words(affordable(trajectories, n**2, MOST_DIAGNOSED), order=2),
        f"age of a state, up to {longest} steps": lambda: estimate_dwell_times(
            affordable(trajectories, n * longest, MOST_DIAGNOSED), longest=longest
        ),
        f"a matrix for {whose}, with a prior of 1": lambda: estimate_adversaries(people, prior=1.0, per_user=True),
    }
    if period is not None:
        clock = partial(estimate_periodic, trajectories, period=period, phase=0)
        estimates[f"a matrix for each of {period} phases"] = clock
    models = []
    for k, (name, estimate) in enumerate(estimates.items()):
        with part(k / len(estimates), (k + 1) / len(estimates), "leakage under each model"):
            try:
                models.append(ModelLeakage(name, *_bounds(estimate(), spent)))
            except (EstimationError, MatrixError) as error:
                models.append(ModelLeakage(name, np.nan, np.nan, str(error)))
    return Diagnosis(float(spent[0]), tuple(models), refinements(trajectories, period=period), weaknesses(trajectories))


def _bounds(model: Adversaries, spent: FloatArray) -> tuple[float, float]:
    """Lower and upper bound of the largest leakage, in nats; the lower one is at least that of one release."""
    found = temporal_leakage(model, spent)
    known = found.epsilons if found.attained is None else found.attained.temporal
    return found.worst if found.is_exact else float(known.max()), found.worst


def _memory(found: Diagnosis) -> list[str]:
    base = found.models[0]
    order, clock, people, ages = found.refinements
    rejected = 1e-3  # p-value: with thousands of transitions a larger one carries little evidence
    longer = max(found.models[2:4], key=lambda one: -np.inf if np.isnan(one.attained) else one.attained)
    adds = " What a longer memory adds to the leakage is small, or not known."
    leaks_more = longer.attained > base.proved * (1.0 + CLEAR)
    if leaks_more:
        more = math.floor(100.0 * (longer.attained / base.proved - 1.0))
        adds = f" Under a longer memory ({longer.model}), the leakage is at least {more} % larger."
    if order.preferred:
        sentences = [
            f"First order is not enough: the data prefer words of two states (BIC). With "
            f"--set correlation.models='first order,second order' they count.{adds}"
        ]
    elif order.p_value < rejected:
        sentences = [
            "First order is rejected (G-test), though the traces are too short to prefer a matrix over words of two states "
            f"(BIC).{adds}"
        ]
    elif order.has_few or not order.degrees:
        sentences = ["The traces are too short to decide whether first order is enough."]
    elif leaks_more:
        sentences = [
            "First order is not rejected by the words of two states that the data show (G-test, BIC). A longer memory that is "
            f"fitted nevertheless leaks more, by chance or by what that test cannot see.{adds}"
        ]
    else:
        sentences = ["First order is not rejected: the data show no words of two states (G-test at 0.1 %, BIC)."]
    for one, if_preferred, if_rejected in (
        (
            clock,
            f"The correlation changes with time: {clock.name} is preferred (BIC); --set correlation.period=P takes a clock "
            "into account.",
            "The correlation drifts with time (G-test), too little for matrices of their own (BIC).",
        ),
        (
            ages,
            "How long people have been in a state matters: a matrix for each age is preferred (BIC); --set "
            "correlation.models='first order,dwell times' takes it into account.",
            "How long people have been in a state matters (G-test), too little for matrices of each age (BIC).",
        ),
        (
            people,
            "People differ: a matrix for each person is preferred (BIC); --set correlation.per_user=true takes it "
            "into account.",
            "People differ somewhat, though too few transitions of each are seen for matrices of their own.",
        ),
    ):
        if one.preferred or one.p_value < rejected:
            sentences.append(if_preferred if one.preferred else if_rejected)
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
