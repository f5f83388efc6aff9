"""The answer: what a promise of each step is worth over time, to a person whose steps resemble each other."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from temporaldp.correlation import Adversary
from temporaldp.deployment import words
from temporaldp.deployment.lasting import Lasting, Leaking, leaking
from temporaldp.deployment.promise import Promise, PurePromise
from temporaldp.deployment.question import Question, stay_probability
from temporaldp.deployment.record import Deployment, Misfit
from temporaldp.deployment.stated_unit import Period
from temporaldp.deployment.unit import PrivacyUnit
from temporaldp.errors import InputError, StateError
from temporaldp.files.plans import json_number


@dataclass(frozen=True, slots=True)
class LeakageOverTime:
    """Numbers of a card, in nats; with a delta the epsilon at it.

    Parameters
    ----------
    promised : float
        What a step promises about one privacy unit.
    alone : float
        What a step says by itself of the two values furthest apart: so many units as a change of value is.
    delta : float
    stays, lasting : tuple of float
        Probabilities of staying, and what leaks about one step for ever at each; inf where it grows for ever.
    at : float
        The probability of staying that the following are about.
    limit : Lasting
        What leaks for ever there, and whether it is exact.
    settles : int or None
        Releases after which what the past says is within 1 % of its limit; None where it has none.
    within : float
        The most about any step in the horizon.
    together : float
        About all values of a person in the horizon together (user level), whatever the correlation; inf where nothing is
        known.
    held : Promise or None
        The largest promise a step that is found with which no more leaks for ever than a step says alone now.
    doubled : float or None
        What would leak for ever if both of two values contribute, where one is assumed not to; None elsewhere.
    """

    promised: float
    alone: float
    delta: float
    stays: tuple[float, ...]
    lasting: tuple[float, ...]
    at: float
    limit: Lasting
    settles: int | None
    within: float
    together: float
    held: Promise | None
    doubled: float | None


OVERVIEW = (0.7, 0.9)
"""Probabilities of staying that a table of records shows, besides the end of the range."""


@dataclass(frozen=True, slots=True)
class Overview:
    """A record in one line: what is promised, and what leaks for ever at a few probabilities of staying, in nats.

    `misfit` says why there is no number where there is none; then `stays` and `lasting` are empty.
    """

    deployment: Deployment
    promise: Promise
    unit_text: str
    period: Period | str
    misfit: Misfit | None
    promised: float = math.nan
    delta: float = 0.0
    stays: tuple[float, ...] = ()
    lasting: tuple[float, ...] = ()
    exact: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The line as JSON values."""
        record = self.deployment
        return {
            "file": record.source,
            "record": record.slug,
            "name": record.name,
            "privacy_unit": self.unit_text,
            "promise": self.promise.sentence,
            "fits": self.misfit is None,
            "reason": None if self.misfit is None else self.misfit.sentence,
            "promised": None if self.misfit is not None else json_number(self.promised),
            "delta": self.delta,
            "stays": list(self.stays),
            "lasting": [json_number(value) for value in self.lasting],
            "kind": None if self.misfit is not None else "exact" if self.exact else "upper bound",
        }


@dataclass(frozen=True, slots=True)
class DeploymentCard:
    """What a promise of each step is worth over time; from `Deployment.card`.

    Parameters
    ----------
    deployment : Deployment
    question : Question
    promise : Promise
        What a step promises for this secret: the record's, or that of the tables that the value enters.
    period : str
        Length of a step, "" where the record does not say it.
    unit : PrivacyUnit
    horizon : int
        Steps asked about; 0 where the length of a step is not known.
    leakage : LeakageOverTime or None
        None where the deployment is outside of what is modelled: then `reason` says why.
    reason : str
    """

    deployment: Deployment
    question: Question
    promise: Promise
    period: Period | str
    unit: PrivacyUnit
    horizon: int
    leakage: LeakageOverTime | None
    reason: str = ""

    @property
    def stays(self) -> tuple[float, ...]:
        """Probabilities of staying; empty where there is no number."""
        return () if self.leakage is None else self.leakage.stays

    @property
    def lasting(self) -> tuple[float, ...]:
        """What leaks for ever at each of `stays`, in nats."""
        return () if self.leakage is None else self.leakage.lasting

    @property
    def limits(self) -> tuple[str, ...]:
        """What the numbers are not, to be said first."""
        return words.limits(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Everything that the record does not say, and the numbers rest on."""
        return words.assumptions(self)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answer in words."""
        return words.answers(self)

    @property
    def to_publisher(self) -> str:
        """What one would write to the publisher."""
        return words.to_publisher(self)

    def to_dict(self) -> dict[str, Any]:
        """The card as JSON values; infinity as the string "inf"."""
        found, record = self.leakage, self.deployment
        known: dict[str, Any] = {
            "record": record.slug,
            "name": record.name,
            "curators": list(record.curators),
            "status": record.status,
            "privacy_unit": record.unit_text,
            "promise": self.promise.sentence,
            "promised": None,
            "delta": None,
            "fits": found is not None,
            "reason": self.reason or None,
            "step": self.period or None,
            "states": list(self.question.states),
            "unit_of_change": self.unit.name,
            "stays": list(self.stays),
            "lasting": [json_number(value) for value in self.lasting],
            "horizon": self.horizon or None,
            "limits": list(self.limits),
            "assumptions": list(self.assumptions),
            "unit": "nats",
        }
        if found is not None:
            known |= {
                "promised": json_number(found.promised),
                "delta": found.delta,
                "alone": json_number(found.alone),
                "at": found.at,
                "lasting_at": json_number(found.limit.temporal),
                "kind": words.kind(found),
                "settles": found.settles,
                "within_horizon": json_number(found.within),
                "user_level": json_number(found.together),
                "holding_promise": None if found.held is None else found.held.sentence,
                "lasting_if_both_values_contribute": None if found.doubled is None else json_number(found.doubled),
                "sentences": list(self.sentences),
                "to_publisher": self.to_publisher,
            }
        elif isinstance(self.promise, PurePromise):
            known["promised"] = self.promise.epsilon
        return known


def card_of(deployment: Deployment, question: Question) -> DeploymentCard:
    """The card; see `Deployment.card`."""
    deployment.stated_unit  # noqa: B018  an unknown unit is an error, not a reason
    question = _with_states_of_the_matrix(question)
    unit = question.privacy_unit(deployment)
    unit.distances(question.states)
    promise = _promise_for(deployment, unit)
    misfit = deployment.misfit(question)
    period = question.every or deployment.said_period or ""
    horizon = question.steps(period) if period else 0
    found = None if misfit is not None else _leakage(promise, unit, question, horizon)
    reason = "" if misfit is None else misfit.sentence
    return DeploymentCard(deployment, question, promise, period, unit, horizon, found, reason)


def overview_of(deployment: Deployment, question: Question) -> Overview:
    """One line of a table of records: what leaks for ever at a few probabilities of staying."""
    stated = deployment.stated_unit
    question = _with_states_of_the_matrix(question)
    unit = question.privacy_unit(deployment)
    promise = _promise_for(deployment, unit)
    misfit = deployment.misfit(question)
    period = question.every or deployment.said_period or ""
    line = Overview(deployment, promise, stated.text, period, misfit)
    if misfit is not None:
        return line
    steps, delta = _accounted(promise, unit, question)
    few = [p for p in (*OVERVIEW, question.explained, question.stays[1]) if question.stays[0] <= p <= question.stays[1]]
    chains = _chains(question) if question.correlation is not None else {p: question.chain(p) for p in sorted(set(few))}
    limits = {p: steps.lasting(chain) for p, chain in chains.items()}
    return replace(
        line,
        promised=_one_unit(promise, question, delta).alone,
        delta=delta,
        stays=tuple(limits),
        lasting=tuple(found.temporal for found in limits.values()),
        exact=all(found.exact for found in limits.values()),
    )


def _with_states_of_the_matrix(question: Question) -> Question:
    """With a given correlation, its values are the secret's."""
    if question.correlation is None:
        return question
    known = question.correlation.states
    if known is None:
        raise InputError("expected a correlation that knows something, got an adversary without matrices")
    if question.states != Question().states and set(question.states) != set(known):
        raise StateError(f"--states names {', '.join(question.states)}, but the matrix names {', '.join(known)}")
    return replace(question, states=known)


def _promise_for(deployment: Deployment, unit: PrivacyUnit) -> Promise:
    """The record's promise, or what its tables promise together."""
    stated = deployment.promise
    if unit.epsilon is None:
        return stated
    if not isinstance(stated, PurePromise):
        raise InputError(
            f"expected --tables with a record of pure differential privacy, but this one promises {stated.sentence}"
        )
    if unit.epsilon > stated.epsilon * (1.0 + 1e-9):
        raise InputError(
            f"expected --tables that are part of what the record promises, {stated.sentence}, but they add up to "
            f"{unit.epsilon:.10g}"
        )
    return PurePromise(unit.epsilon)


def _leakage(promise: Promise, unit: PrivacyUnit, question: Question, horizon: int) -> LeakageOverTime:
    steps, delta = _accounted(promise, unit, question)
    chains = _chains(question)
    limits = {p: steps.lasting(chain) for p, chain in chains.items()}
    at = question.explained if question.correlation is None else next(iter(chains))
    adversary, limit = chains[at], limits[at]
    return LeakageOverTime(
        promised=_one_unit(promise, question, delta).alone,
        alone=steps.alone,
        delta=delta,
        stays=tuple(limits),
        lasting=tuple(found.temporal for found in limits.values()),
        at=at,
        limit=limit,
        settles=steps.settles(adversary, limit),
        within=steps.within(adversary, horizon, limit),
        together=steps.together(horizon),
        held=steps.held(adversary),
        doubled=_doubled(promise, unit, question, delta, adversary),
    )


def _accounted(promise: Promise, unit: PrivacyUnit, question: Question) -> tuple[Leaking, float]:
    """The accounting method, and at which delta."""
    delta = 0.0
    if promise.default_delta:
        delta = promise.default_delta if question.delta is None else question.delta
    elif question.delta is not None:
        raise InputError(
            f"expected --delta for a promise that is no pure one, but this one is {promise.sentence} alone: leave it out"
        )
    steps = leaking(promise, unit, question.states, delta)
    if not math.isfinite(steps.alone):
        raise InputError(
            f"expected a delta above what a step promises ({promise.sentence}), got {delta:g}; give a larger --delta"
        )
    return steps, delta


def _one_unit(promise: Promise, question: Question, delta: float) -> Leaking:
    return leaking(promise, PrivacyUnit.replace_one(), question.states, delta)


def _chains(question: Question) -> dict[float, Adversary]:
    if question.correlation is not None:
        return {round(stay_probability(question.correlation), 6): question.correlation}
    return {p: question.chain(p) for p in question.points}


def _doubled(promise: Promise, unit: PrivacyUnit, question: Question, delta: float, chain: Adversary) -> float | None:
    if unit.name != "binary-count":
        return None
    both = PrivacyUnit.category_histogram()
    if unit.contributions > 1:
        both = PrivacyUnit.at_most(unit.contributions, of=both)
    try:
        return leaking(promise, both, question.states, delta).lasting(chain).temporal
    except InputError:  # two units of a promise with a delta may say nothing at all
        return math.inf
