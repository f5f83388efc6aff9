"""The card of a deployment: leakage over time under a promise for each step, for people whose steps resemble each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from temporaldp.base.errors import InputError
from temporaldp.base.values import compared_by_value
from temporaldp.core.correlation import IntervalMatrix
from temporaldp.core.planning import Guarantee
from temporaldp.core.planning.guarantee import TEMPORAL
from temporaldp.publish.deployment.assumptions import Assumptions
from temporaldp.publish.deployment.over_time import LeakageOverTime
from temporaldp.publish.deployment.promise import EpsilonPromise, Promise
from temporaldp.publish.deployment.record import Deployment, Misfit
from temporaldp.publish.deployment.unit import PrivacyUnit
from temporaldp.publish.deployment.wording import STEPS_A_YEAR, Period
from temporaldp.publish.report.page import template
from temporaldp.publish.report.sentences import at_delta


@compared_by_value
@dataclass(frozen=True, eq=False)
class DeploymentCard:
    """Leakage over time under a promise for each step; from `Deployment.card`.

    Parameters
    ----------
    deployment : Deployment
    asked : Assumptions
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
    suprema : mapping of float to LeakageOverTime
        The leakage about one step by probability of staying.
    """

    deployment: Deployment
    asked: Assumptions
    promise: Promise
    period: Period | Literal[""]
    unit: PrivacyUnit
    horizon: int
    misfit: Misfit | None
    delta: float
    suprema: Mapping[float, LeakageOverTime]

    @property
    def leakage(self) -> LeakageOverTime | None:
        """All numbers at the explained probability of staying; None if there is no number."""
        of_given_correlation = next(iter(self.suprema.values()), None)
        return self.suprema.get(self.asked.explained, of_given_correlation)

    @property
    def protected(self) -> Guarantee:
        """The guarantee that the verdict is about."""
        return Guarantee.of(self.asked.guarantee)

    @property
    def by_guarantee(self) -> dict[Guarantee, float]:
        """What the promise is worth about what each guarantee protects, in nats: upper bounds; inf where none is known."""
        found = self.leakage
        if found is None or not self.period:
            return {}
        a_week = round(STEPS_A_YEAR[self.period] / 52)
        window = [Guarantee("window", a_week)] if a_week > 1 else []
        return {
            kind: found.about(kind)
            for kind in (Guarantee("event"), TEMPORAL, *window, Guarantee("user"), self.protected)
        }

    @property
    def reason(self) -> str:
        """Reason why there is no number; "" if there is one."""
        return "" if self.misfit is None else self.misfit.sentence

    @property
    def stays(self) -> tuple[float, ...]:
        """Probabilities of staying; empty if there is no number."""
        return tuple(self.suprema)

    @property
    def over_time(self) -> tuple[float, ...]:
        """The supremum of the leakage about one step at each of `stays`, in nats."""
        return tuple(one.limit.temporal for one in self.suprema.values())

    @property
    def remark(self) -> str:
        """Kind of the numbers, or the brief reason why there are none."""
        if self.misfit is not None:
            return self.misfit.brief
        is_exact = all(one.is_exact for one in self.suprema.values())
        return "exact" if is_exact else "upper bound" + at_delta(self.delta)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The numbers in sentences."""
        return self.explained("answers")

    def explained(
        self, section: Literal["limits", "answers", "condition", "assumptions", "assumed", "to_publisher"]
    ) -> tuple[str, ...]:
        """The sentences of a section, by a template."""
        text = getattr(template("publish/deployment/card.txt.j2").module, section)(self)
        items = f"\n{text}".split("\n- ")[1:]
        return tuple(re.sub(r"\s*\n\s*", " ", item).strip() for item in items)

    def row(self) -> dict[str, Any]:
        """Fields of the record and the suprema, by name."""
        record, found, fits = self.deployment.record, self.leakage, self.misfit is None
        promised = None if self.promise.default_delta else self.promise.together(1, 1, 0.0)
        return {
            "file": self.deployment.source,
            "record": record.slug,
            "name": self.deployment.name,
            "curators": list(record.curators),
            "status": record.status,
            "privacy_unit": record.unit,
            "promise": self.promise.sentence,
            "promised": promised if found is None else found.promised,
            "delta": self.delta if fits else None,
            "fits": fits,
            "reason": self.reason or None,
            "step": self.period or None,
            "states": list(self.asked.states),
            "unit_of_change": self.unit.name,
            "stays": list(self.stays),
            "over_time": list(self.over_time),
            "horizon": self.horizon or None,
            "kind": self.remark.partition(" at ")[0] if fits else None,
            "unit": "nats",
        }

    def to_dict(self) -> dict[str, Any]:
        """The card, by name."""
        found = self.leakage
        known = self.row() | {name: list(self.explained(name)) for name in ("limits", "assumptions")}
        if found is None:
            return known
        return known | {
            "alone": found.alone,
            "at": found.at,
            "over_time_at": found.limit.temporal,
            "kind": found.kind,
            "settles": found.settles,
            "within_horizon": found.within,
            "user_level": found.together,
            "guarantees": [
                {"guarantee": str(kind), "leakage": leakage, "condition": kind.wording.condition}
                for kind, leakage in self.by_guarantee.items()
            ],
            "sufficient_promise": None if found.held is None else found.held.sentence,
            "sufficient_interval": found.refresh,
            "over_time_if_both_values_contribute": found.doubled,
            "sentences": list(self.sentences),
            "to_publisher": "".join(self.explained("to_publisher")),
        }


def card_of(deployment: Deployment, asked: Assumptions, points: Iterable[float] | None = None) -> DeploymentCard:
    """Return the card, with suprema at given probabilities of staying; see `Deployment.card`."""
    misfit, period = deployment.misfit(asked), asked.every or deployment.stated_period
    unit = asked.privacy_unit(deployment)
    promise, horizon = _promise_for(deployment, unit), 0 if period is None else asked.steps(period)
    distances = unit.distances(asked.states)
    delta, suprema = 0.0, {}
    if misfit is None:
        for known in () if asked.correlation is None else asked.correlation.matrices:
            if period is not None and isinstance(known, IntervalMatrix):
                known.provenance.require_steps_within(366.0 / STEPS_A_YEAR[period], f"a step of the card is a {period}")
        if not promise.default_delta and asked.delta is not None:
            raise InputError(
                f"expected no --delta for a pure promise ({promise.sentence}), got {asked.delta:g}: leave it out"
            )
        delta = promise.default_delta if asked.delta is None else asked.delta
        suprema = {
            p: LeakageOverTime(
                promise, distances, delta, chain, horizon, p, one_contributes=unit.name == "binary-count"
            )
            for p, chain in asked.chains(points).items()
        }
    return DeploymentCard(deployment, asked, promise, period or "", unit, horizon, misfit, delta, suprema)


def overview_of(deployment: Deployment, asked: Assumptions) -> DeploymentCard:
    """The card for a row of a table of records, with suprema at a few probabilities of staying."""
    least, most = asked.stays
    return card_of(deployment, asked, sorted(p for p in {0.7, 0.9, asked.explained, most} if least <= p <= most))


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
