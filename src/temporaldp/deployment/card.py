"""The card of a deployment: leakage over time under a promise for each step, for people whose steps resemble each other."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from temporaldp.correlation import Adversary
from temporaldp.deployment import explanation
from temporaldp.deployment.lasting import Lasting, Leaking, leaking
from temporaldp.deployment.promise import EpsilonPromise, Promise
from temporaldp.deployment.question import Question, stay_probability
from temporaldp.deployment.record import Deployment, Misfit
from temporaldp.deployment.unit import PrivacyUnit
from temporaldp.errors import InputError, StateError
from temporaldp.files.plans import json_number
from temporaldp.report.sentences import at_delta

OVERVIEW = (0.7, 0.9)
"""Probabilities of staying in a table of records, besides the end of the range."""


@dataclass(frozen=True, slots=True)
class LeakageOverTime:
    """Numbers of a card, in nats; at a delta, the epsilon at this delta.

    Parameters
    ----------
    promised : float
        Promise of a step about one privacy unit.
    alone : float
        Leakage of one step by itself, between the two values that are furthest apart.
    delta : float
    stays, lasting : tuple of float
        Probabilities of staying, and the supremum of the leakage about one step at each; inf if it is unbounded.
    at : float
        The probability of staying that the following numbers are about.
    limit : Lasting
        The supremum there.
    settles : int or None
        Number of releases after which backward leakage is within 1 % of its supremum; None if it is not.
    within : float
        Largest leakage about any step of the horizon.
    together : float
        Leakage about all values of a person within the horizon (user level), for every correlation; inf if no bound is known.
    held : Promise or None
        The largest promise found with which the supremum is at most `alone`.
    doubled : float or None
        The supremum if both of two values contribute, where one is assumed not to; None elsewhere.
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


@dataclass(frozen=True, slots=True)
class Overview:
    """One row of a table of records: the promise, and the supremum at a few probabilities of staying, in nats.

    Where there is no number, `misfit` is the reason, and `stays` and `lasting` are empty.
    """

    deployment: Deployment
    promise: Promise
    misfit: Misfit | None
    promised: float = math.nan
    delta: float = 0.0
    stays: tuple[float, ...] = ()
    lasting: tuple[float, ...] = ()
    exact: bool = False

    @property
    def remark(self) -> str:
        """Kind of the numbers, or the brief reason why there are none."""
        if self.misfit is not None:
            return self.misfit.brief
        return "exact" if self.exact else "upper bound" + at_delta(self.delta)

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON values."""
        record, fits = self.deployment.record, self.misfit is None
        return {
            "file": self.deployment.source,
            "record": record.slug,
            "name": self.deployment.name,
            "privacy_unit": record.unit,
            "promise": self.promise.sentence,
            "fits": fits,
            "reason": None if self.misfit is None else self.misfit.sentence,
            "promised": json_number(self.promised) if fits else None,
            "delta": self.delta,
            "stays": list(self.stays),
            "lasting": [json_number(value) for value in self.lasting],
            "kind": ("exact" if self.exact else "upper bound") if fits else None,
        }


@dataclass(frozen=True, slots=True)
class DeploymentCard:
    """Leakage over time under a promise for each step; from `Deployment.card`.

    Parameters
    ----------
    deployment : Deployment
    question : Question
    promise : Promise
        Promise of a step about this secret: that of the record, or of the tables that the value enters.
    period : str
        Length of a step, "" if the record does not state it.
    unit : PrivacyUnit
    horizon : int
        Number of steps; 0 if the length of a step is unknown.
    leakage : LeakageOverTime or None
        None if the deployment is outside of the model; `reason` is then given.
    reason : str
    """

    deployment: Deployment
    question: Question
    promise: Promise
    period: str
    unit: PrivacyUnit
    horizon: int
    leakage: LeakageOverTime | None
    reason: str = ""

    @property
    def step(self) -> str:
        """The word for a step."""
        return self.period or "step"

    @property
    def stays(self) -> tuple[float, ...]:
        """Probabilities of staying; empty if there is no number."""
        return () if self.leakage is None else self.leakage.stays

    @property
    def lasting(self) -> tuple[float, ...]:
        """The supremum of the leakage about one step at each of `stays`, in nats."""
        return () if self.leakage is None else self.leakage.lasting

    @property
    def limits(self) -> tuple[str, ...]:
        """Limits of the numbers, to be read first."""
        return explanation.limits(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions that the record does not state."""
        return explanation.assumptions(self)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The numbers in sentences."""
        return explanation.answers(self)

    @property
    def to_publisher(self) -> str:
        """A suggested message to the publisher."""
        return explanation.to_publisher(self)

    def to_dict(self) -> dict[str, Any]:
        """The card as JSON values; infinity as the string "inf"."""
        found, record = self.leakage, self.deployment.record
        known: dict[str, Any] = {
            "record": record.slug,
            "name": self.deployment.name,
            "curators": list(record.curators),
            "status": record.status,
            "privacy_unit": record.unit,
            "promise": self.promise.sentence,
            "promised": None if self.promise.default_delta else self.promise.together(1, 1, 0.0),
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
        if found is None:
            return known
        return known | {
            "promised": json_number(found.promised),
            "delta": found.delta,
            "alone": json_number(found.alone),
            "at": found.at,
            "lasting_at": json_number(found.limit.temporal),
            "kind": found.limit.kind,
            "settles": found.settles,
            "within_horizon": json_number(found.within),
            "user_level": json_number(found.together),
            "holding_promise": None if found.held is None else found.held.sentence,
            "lasting_if_both_values_contribute": None if found.doubled is None else json_number(found.doubled),
            "sentences": list(self.sentences),
            "to_publisher": self.to_publisher,
        }


def card_of(deployment: Deployment, question: Question) -> DeploymentCard:
    """The card; see `Deployment.card`."""
    question, unit, promise, misfit = _asked(deployment, question)
    unit.distances(question.states)
    period = question.every or deployment.said_period
    horizon = 0 if period is None else question.steps(period)
    found = None if misfit is not None else _leakage(promise, unit, question, horizon)
    reason = "" if misfit is None else misfit.sentence
    return DeploymentCard(deployment, question, promise, period or "", unit, horizon, found, reason)


def overview_of(deployment: Deployment, question: Question) -> Overview:
    """One row of a table of records: the supremum at a few probabilities of staying."""
    question, unit, promise, misfit = _asked(deployment, question)
    if misfit is not None:
        return Overview(deployment, promise, misfit)
    steps, delta = _accounted(promise, unit, question)
    few = {p for p in (*OVERVIEW, question.explained, question.stays[1]) if question.stays[0] <= p <= question.stays[1]}
    limits = {p: steps.lasting(chain) for p, chain in _chains(question, sorted(few)).items()}
    return Overview(
        deployment,
        promise,
        None,
        promised=_one_unit(promise, question, delta).alone,
        delta=delta,
        stays=tuple(limits),
        lasting=tuple(found.temporal for found in limits.values()),
        exact=all(found.exact for found in limits.values()),
    )


def _asked(deployment: Deployment, question: Question) -> tuple[Question, PrivacyUnit, Promise, Misfit | None]:
    """The question with the states of its matrix, and unit, promise and misfit for it."""
    misfit = deployment.misfit(question)
    question = _with_states_of_the_matrix(question)
    unit = question.privacy_unit(deployment)
    return question, unit, _promise_for(deployment, unit), misfit


def _with_states_of_the_matrix(question: Question) -> Question:
    """The states of a given correlation are the values of the secret."""
    if question.correlation is None:
        return question
    known = question.correlation.states
    if known is None:
        raise InputError("expected a correlation with a matrix, got an adversary without matrices")
    if question.states != Question().states and set(question.states) != set(known):
        raise StateError(
            f"expected the states of the matrix, {', '.join(known)}, got --states {', '.join(question.states)}"
        )
    return replace(question, states=known)


def _promise_for(deployment: Deployment, unit: PrivacyUnit) -> Promise:
    """The promise of the record, or the sum of its tables."""
    stated = deployment.promise
    if unit.epsilon is None:
        return stated
    if not isinstance(stated, EpsilonPromise) or stated.delta:
        raise InputError(
            f"expected --tables with a record of pure differential privacy, but this one promises {stated.sentence}"
        )
    if unit.epsilon > stated.epsilon * (1.0 + 1e-9):
        raise InputError(
            f"expected --tables that are part of what the record promises, {stated.sentence}, but they add up to "
            f"{unit.epsilon:.10g}"
        )
    return EpsilonPromise(unit.epsilon)


def _leakage(promise: Promise, unit: PrivacyUnit, question: Question, horizon: int) -> LeakageOverTime:
    steps, delta = _accounted(promise, unit, question)
    chains = _chains(question, question.points)
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
    """The leakage of the promise, and its delta."""
    delta = 0.0
    if promise.default_delta:
        delta = promise.default_delta if question.delta is None else question.delta
    elif question.delta is not None:
        raise InputError(
            f"expected no --delta for a pure promise ({promise.sentence}), got {question.delta:g}: leave it out"
        )
    steps = leaking(promise, unit, question.states, delta)
    if not math.isfinite(steps.alone):
        raise InputError(
            f"expected a delta above that of the promise ({promise.sentence}), got {delta:g}; give a larger --delta"
        )
    return steps, delta


def _one_unit(promise: Promise, question: Question, delta: float) -> Leaking:
    return leaking(promise, PrivacyUnit.replace_one(), question.states, delta)


def _chains(question: Question, points: Iterable[float]) -> dict[float, Adversary]:
    if question.correlation is not None:
        return {round(stay_probability(question.correlation), 6): question.correlation}
    return {p: question.chain(p) for p in points}


def _doubled(promise: Promise, unit: PrivacyUnit, question: Question, delta: float, chain: Adversary) -> float | None:
    if unit.name != "binary-count":
        return None
    both = PrivacyUnit.category_histogram()
    if unit.contributions > 1:
        both = PrivacyUnit.at_most(unit.contributions, of=both)
    try:
        return leaking(promise, both, question.states, delta).lasting(chain).temporal
    except InputError:  # by group privacy, two units of a promise with a delta may have no guarantee
        return math.inf
