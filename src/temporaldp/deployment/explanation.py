"""The limits, the numbers and the assumptions of a card, and a message to the publisher, in sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from temporaldp.report import sentences as s

if TYPE_CHECKING:
    from temporaldp.deployment.card import DeploymentCard
    from temporaldp.deployment.lasting import LeakageOverTime


def limits(card: DeploymentCard) -> tuple[str, ...]:
    """Limits of the numbers."""
    record = card.deployment.record
    bounded = card.deployment.stated_unit.bounded
    reach = "contributes more than the unit bounds" if bounded else "has several units (devices, accounts)"
    listed = [
        s.INFERENCE_ONLY,
        f"The privacy unit is that of the record: {record.unit!r}. A person who {reach} in a step is covered by several units, "
        "and the leakage about this person is larger.",
        s.UNKNOWN_FIT,
    ]
    if record.unprotected and not record.unprotected.startswith("No "):
        listed.append(
            "The record lists quantities that the promise does not protect (dp_variant.unprotected_quantities): the numbers do "
            "not cover them."
        )
    if record.status:
        listed.append(
            f"The registry marks the record as {record.status!r}. The card uses only the record and the arithmetic."
        )
    return tuple(listed)


def answers(card: DeploymentCard) -> tuple[str, ...]:
    """The numbers of the card."""
    found, step = card.leakage, card.step
    if found is None:
        return (f"No number is given: {card.reason}",)
    whole = "for the tables of this secret" if card.unit.parts else f"for each unit ({card.deployment.record.unit})"
    at = f", which is {s.nats(found.promised)}{s.at_delta(found.delta)}" if found.delta else ""
    apart = f" A change of state is more than one unit: one {step} leaks up to {s.nats(found.alone)}."
    together = f"at most {s.nats(found.together)}" if math.isfinite(found.together) else "no bound at this delta"
    listed = [
        f"The promise of each {step} {whole} is {card.promise.sentence}{at}.{apart if found.alone > found.promised else ''} "
        f"For one {step} by itself, {s.odds(found.alone, found.delta)}.",
        over_time(card, found),
    ]
    if math.isfinite(found.limit.temporal):
        listed.append(s.posteriors(found.limit.temporal, found.delta))
    if found.fresh_noise and found.any_noise is not None:
        bound = f"at most {s.nats(found.any_noise)}" if math.isfinite(found.any_noise) else "not known to be bounded"
        listed.append(
            f"The record does not state that noise is fresh at every {step}. If it is shared between {step}s, as in tree "
            f"mechanisms, and all outputs together satisfy the promise about one {step}, the {s.INFINITE_HORIZON} is {bound}."
        )
    listed.append(_settling(card, found))
    if found.doubled is not None:
        bound = f"at most {s.nats(found.doubled)}" if math.isfinite(found.doubled) else "not known to be bounded"
        listed.append(
            f"If both states are contributed, a change is a removal and an addition, and the {s.INFINITE_HORIZON} is {bound}."
        )
    listed.append(f"Over {card.horizon} {step}s, at the {s.USER_LEVEL}, for every correlation: {together}.")
    if found.held is None:
        listed.append(f"No promise of a {step} was found that keeps the {s.INFINITE_HORIZON} at {s.nats(found.alone)}.")
    else:
        listed.append(
            f"With a promise of {found.held.sentence} for each {step}, the {s.INFINITE_HORIZON} would be at most "
            f"{s.nats(found.alone)}, the present leakage of one {step} by itself."
        )
    return tuple(listed)


def over_time(card: DeploymentCard, found: LeakageOverTime) -> str:
    """The supremum of the leakage about one step."""
    leakage = found.limit.temporal
    given = chain(card, found.at)
    if math.isinf(leakage):
        return f"{given}, the leakage about one {card.step} from all {card.step}s grows without bound with the horizon."
    how = "exact over all mechanisms" if found.is_exact else "an upper bound for every mechanism"
    return (
        f"{given}, all {card.step}s together leak up to {s.nats(leakage)} about one {card.step} over an infinite horizon "
        f"({how} with this promise): {s.odds(leakage, found.delta)}."
    )


def chain(card: DeploymentCard, stays: float) -> str:
    """The chain, at the beginning of a sentence."""
    if card.question.correlation is not None:
        name = card.question.correlation_name or "the given matrices"
        return f"Under the correlation of {name}, in which the state stays the same with probability {stays:.4g} on average"
    return f"If the state stays the same from one {card.step} to the next with probability {stays:g}"


def _settling(card: DeploymentCard, found: LeakageOverTime) -> str:
    within = f"Over {card.horizon} {card.step}s, the leakage is at most {s.nats(found.within)}."
    if found.settles is None:
        return f"Backward leakage does not settle. {within}"
    after = "the first release" if found.settles == 1 else f"{found.settles} releases"
    return f"After {after}, backward leakage is within 1 % of its supremum. {within}"


def assumptions(card: DeploymentCard) -> tuple[str, ...]:
    """Assumptions that the record does not state."""
    found, asked, step = card.leakage, card.question, card.step
    if found is None:
        return ()
    n = len(asked.states)
    listed = [
        f"The secret is which of {n} states a person has at a {step}: {', '.join(asked.states)}.",
        *card.unit.reasoning,
    ]
    if asked.correlation is None:
        spread = f"{asked.stays[0]:g}" + (f" to {asked.stays[1]:g}" if asked.stays[0] < asked.stays[1] else "")
        others = "the other state" if n == 2 else f"each of the {n - 1} other states with equal probability"
        model = (
            "States form a stationary first-order Markov chain, the same at all steps, that stays with probability "
            f"{spread} from one {step} to the next and otherwise moves to {others}."
        )
        if n == 2:
            model += (
                " A stationary chain whose two probabilities of staying differ leaks no more than the worse end of a range "
                "that contains both."
            )
    else:
        name = asked.correlation_name or "the given correlation"
        model = f"States form a first-order Markov chain by the matrices of {name}."
    often = "by the record's privacy unit" if card.deployment.stated_unit.period else "by its release_type_details"
    noise = (
        f"The release of a {step} is computed from the data of that {step} alone, with noise that is fresh and independent of "
        "all other noise."
        if found.fresh_noise
        else f"Noise may be shared between {step}s: leakage is an upper bound for every mechanism whose outputs at all {step}s "
        f"together satisfy the promise when the state of one {step} is replaced."
    )
    listed += [
        f"{model} {s.ADVERSARY}. {s.STRONGER_MODEL}",
        f"One step is a {card.period}, {often if asked.every is None else 'as given (deployment.every)'}. {noise}",
        f"The horizon is {card.horizon} {step}s{_origin_of_horizon(card)}.",
    ]
    if found.delta:
        origin = "as given" if asked.delta is not None else "the default"
        listed.append(
            f"The promise is not pure: leakage is the epsilon{s.at_delta(found.delta)} ({origin}), an upper bound for every "
            f"mechanism with this promise. {s.NOISE_FIXED}"
        )
    return tuple(listed)


def _origin_of_horizon(card: DeploymentCard) -> str:
    asked = card.question
    if asked.horizon is not None:
        return ", as given"
    if asked.since is None:
        return " (a year; the record has no field for it)"
    return f", from {asked.since} " + ("until today" if asked.until is None else f"to {asked.until}")


def to_publisher(card: DeploymentCard) -> str:
    """A message to the publisher."""
    found, step = card.leakage, card.step
    if found is None:
        return ""
    leakage = found.limit.temporal
    whole = "for the tables of this secret" if card.unit.parts else f"for the unit {card.deployment.record.unit!r}"
    hold = (
        ""
        if found.held is None
        else f" A promise of {found.held.sentence} for each {step} would keep it at {s.nats(found.alone)} under the same "
        "assumptions."
    )
    return (
        f"The registry's record of {card.deployment.name!r} states a promise of {card.promise.sentence} for each {step} "
        f"{whole}, which is not in question. It does not state how strongly one {step} depends on the previous one. "
        f"{chain(card, found.at)}, all {step}s together can leak {'' if math.isinf(leakage) else 'up to '}{s.nats(leakage)} "
        f"about one {step}, compared with {s.nats(found.alone)} for a {step} by itself. Please state beside the promise that "
        f"it is about each {step} by itself, and the leakage for states that depend on each other from {step} to {step}.{hold}"
    )
