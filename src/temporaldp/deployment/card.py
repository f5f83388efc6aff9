"""The card of a deployment: leakage over time under a promise for each step, for people whose steps resemble each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from temporaldp.correlation import Adversary
from temporaldp.deployment import explanation
from temporaldp.deployment.lasting import Lasting, Leaking
from temporaldp.deployment.promise import EpsilonPromise, Promise
from temporaldp.deployment.question import Question, stay_probability
from temporaldp.deployment.record import Deployment, Misfit
from temporaldp.deployment.unit import PrivacyUnit
from temporaldp.errors import InputError, StateError
from temporaldp.report.sentences import at_delta
from temporaldp.values import compared_by_value

OVERVIEW = (0.7, 0.9)
"""Probabilities of staying in a table of records, besides the end of the range."""


@dataclass(frozen=True, slots=True)
class LeakageOverTime:
    """Numbers of a card at one probability of staying, in nats; at a delta, the epsilon at this delta.

    Parameters
    ----------
    promised : float
        Promise of a step about one privacy unit.
    alone : float
        Leakage of one step by itself, between the two states that are furthest apart.
    delta : float
    at : float
        The probability of staying.
    limit : Lasting
        The supremum of the leakage about one step.
    settles : int or None
        Number of releases after which backward leakage is within 1 % of its supremum; None if it is not.
    within : float
        Largest leakage about any step of the horizon.
    together : float
        Leakage about all states of a person within the horizon (user level), for every correlation; inf if no bound is known.
    held : Promise or None
        The largest promise found with which the supremum is at most `alone`.
    doubled : float or None
        The supremum if both of two states contribute, where one is assumed not to; None elsewhere.
    any_noise : float or None
        The supremum for every mechanism with the promise, also if its noise is shared between steps: an upper bound; inf if
        none is known, None at a delta.
    """

    promised: float
    alone: float
    delta: float
    at: float
    limit: Lasting
    settles: int | None
    within: float
    together: float
    held: Promise | None
    doubled: float | None
    any_noise: float | None


@compared_by_value
@dataclass(frozen=True, eq=False)
class DeploymentCard:
    """Leakage over time under a promise for each step; from `Deployment.card`.

    Parameters
    ----------
    deployment : Deployment
    question : Question
    promise : Promise
        Promise of a step about this secret: that of the record, or of the tables that the state enters.
    period : str
        Length of a step, "" if the record does not state it.
    unit : PrivacyUnit
    horizon : int
        Number of steps; 0 if the length of a step is unknown.
    misfit : Misfit or None
        Reason why the deployment is outside of the model; then there are no numbers.
    delta : float
    suprema : mapping of float to Lasting
        The supremum of the leakage about one step by probability of staying.
    """

    deployment: Deployment
    question: Question
    promise: Promise
    period: str
    unit: PrivacyUnit
    horizon: int
    misfit: Misfit | None
    delta: float
    suprema: Mapping[float, Lasting]

    @cached_property
    def leakage(self) -> LeakageOverTime | None:
        """All numbers at the explained probability of staying; computed once. None if there is no number."""
        if self.misfit is not None:
            return None
        asked, steps = self.question, self._leaking(self.unit)
        at = asked.explained if asked.correlation is None else next(iter(self.suprema))
        adversary, limit = asked.correlation or asked.chain(at), self.suprema[at]
        return LeakageOverTime(
            promised=self._leaking(PrivacyUnit.replace_one()).alone,
            alone=steps.alone,
            delta=self.delta,
            at=at,
            limit=limit,
            settles=steps.settles(adversary, limit),
            within=steps.within(adversary, self.horizon, limit),
            together=steps.together(self.horizon),
            held=steps.held(adversary),
            doubled=self._doubled(adversary),
            any_noise=None if self.delta else replace(steps, fresh_noise=False).lasting(adversary).temporal,
        )

    @property
    def step(self) -> str:
        """The word for a step."""
        return self.period or "step"

    @property
    def reason(self) -> str:
        """Reason why there is no number; "" if there is one."""
        return "" if self.misfit is None else self.misfit.sentence

    @property
    def stays(self) -> tuple[float, ...]:
        """Probabilities of staying; empty if there is no number."""
        return tuple(self.suprema)

    @property
    def lasting(self) -> tuple[float, ...]:
        """The supremum of the leakage about one step at each of `stays`, in nats."""
        return tuple(limit.temporal for limit in self.suprema.values())

    @property
    def remark(self) -> str:
        """Kind of the numbers, or the brief reason why there are none."""
        if self.misfit is not None:
            return self.misfit.brief
        is_exact = all(limit.exact for limit in self.suprema.values())
        return "exact" if is_exact else "upper bound" + at_delta(self.delta)

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

    def row(self) -> dict[str, Any]:
        """Fields of the record and the suprema, by name."""
        record, fits = self.deployment.record, self.misfit is None
        promised = self._leaking(PrivacyUnit.replace_one()).alone if fits else None
        if not fits and not self.promise.default_delta:
            promised = self.promise.together(1, 1, 0.0)
        return {
            "file": self.deployment.source,
            "record": record.slug,
            "name": self.deployment.name,
            "curators": list(record.curators),
            "status": record.status,
            "privacy_unit": record.unit,
            "promise": self.promise.sentence,
            "promised": promised,
            "delta": self.delta if fits else None,
            "fits": fits,
            "reason": self.reason or None,
            "step": self.period or None,
            "states": list(self.question.states),
            "unit_of_change": self.unit.name,
            "stays": list(self.stays),
            "lasting": list(self.lasting),
            "horizon": self.horizon or None,
            "kind": self.remark.partition(" at ")[0] if fits else None,
            "unit": "nats",
        }

    def to_dict(self) -> dict[str, Any]:
        """The card, by name."""
        found = self.leakage
        known = self.row() | {"limits": list(self.limits), "assumptions": list(self.assumptions)}
        if found is None:
            return known
        return known | {
            "alone": found.alone,
            "at": found.at,
            "lasting_at": found.limit.temporal,
            "kind": found.limit.kind,
            "settles": found.settles,
            "within_horizon": found.within,
            "user_level": found.together,
            "holding_promise": None if found.held is None else found.held.sentence,
            "lasting_if_both_values_contribute": found.doubled,
            "fresh_noise": self.fresh_noise,
            "lasting_by_any_noise": found.any_noise,
            "sentences": list(self.sentences),
            "to_publisher": self.to_publisher,
        }

    @property
    def fresh_noise(self) -> bool:
        """Whether the noise of each step is taken to be independent of all other noise."""
        return self.deployment.noise_is_fresh(self.question)

    def _leaking(self, unit: PrivacyUnit) -> Leaking:
        return Leaking(self.promise, unit.distances(self.question.states), self.delta, self.fresh_noise)

    def _doubled(self, adversary: Adversary) -> float | None:
        """The supremum if both states contribute; inf if no bound is known."""
        if self.unit.name != "binary-count":
            return None
        both = PrivacyUnit.at_most(self.unit.contributions, of=PrivacyUnit.category_histogram())
        try:
            return self._leaking(both).lasting(adversary).temporal
        except InputError:  # by group privacy, two units of an (epsilon, delta) promise may have no guarantee
            return math.inf


def card_of(deployment: Deployment, question: Question, points: Iterable[float] | None = None) -> DeploymentCard:
    """Return the card, with suprema at given probabilities of staying; see `Deployment.card`."""
    misfit, period = deployment.misfit(question), question.every or deployment.said_period
    question = _with_states_of_the_matrix(question)
    unit = question.privacy_unit(deployment)
    promise, horizon = _promise_for(deployment, unit), 0 if period is None else question.steps(period)
    distances = unit.distances(question.states)
    delta, suprema = 0.0, {}
    if misfit is None:
        delta = _delta(promise, question)
        steps = Leaking(promise, distances, delta, deployment.noise_is_fresh(question))
        if not math.isfinite(steps.alone):
            raise InputError(
                f"expected a delta above that of the promise ({promise.sentence}), got {delta:g}; give a larger --delta"
            )
        chains = {p: question.chain(p) for p in points or question.points}
        if question.correlation is not None:
            chains = {round(stay_probability(question.correlation), 6): question.correlation}
        suprema = {p: steps.lasting(chain) for p, chain in chains.items()}
    return DeploymentCard(deployment, question, promise, period or "", unit, horizon, misfit, delta, suprema)


def overview_of(deployment: Deployment, question: Question) -> DeploymentCard:
    """The card for a row of a table of records, with suprema at a few probabilities of staying."""
    least, most = question.stays
    return card_of(deployment, question, sorted(p for p in {*OVERVIEW, question.explained, most} if least <= p <= most))


def _with_states_of_the_matrix(question: Question) -> Question:
    """The states of a given correlation are the states of the secret."""
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


def _delta(promise: Promise, question: Question) -> float:
    """The delta of the accounting: 0 for a pure promise, else as given or by default."""
    if not promise.default_delta and question.delta is not None:
        raise InputError(
            f"expected no --delta for a pure promise ({promise.sentence}), got {question.delta:g}: leave it out"
        )
    return promise.default_delta if question.delta is None else question.delta
