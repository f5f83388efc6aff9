"""A card in sentences: limits first, then answers, assumptions, and what to write to a publisher."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from temporaldp.report.odds import guess, odds, surest
from temporaldp.report.words import level, number

if TYPE_CHECKING:
    from temporaldp.deployment.card import DeploymentCard, LeakageOverTime


def kind(found: LeakageOverTime) -> str:
    """What the number for ever is."""
    return "exact" if found.limit.exact else "upper bound"


def limits(card: DeploymentCard) -> tuple[str, ...]:
    """What the numbers are not."""
    record = card.deployment
    listed = [
        "These are bounds on what can be inferred about a person's values under a correlation that is assumed here. They "
        "are not a break of the deployment's differential privacy: what it promises for its unit, it promises.",
        f"Its privacy unit is what the record says it is: {record.unit_text!r}. {_unit_reach(card)}",
        "Whether a chain of this kind fits the people in these data cannot be known from the record: the range of chains "
        "is an assumption, and so is the secret.",
    ]
    if record.unprotected and not record.unprotected.startswith("No "):
        listed.append(
            "The record lists quantities that the promise does not protect (dp_variant.unprotected_quantities): no number "
            "here is about them."
        )
    if record.status:
        listed.append(
            f"The registry marks the record as {record.status!r}. Nothing is said here of the deployment beyond its record "
            "and the arithmetic."
        )
    return tuple(listed)


def _unit_reach(card: DeploymentCard) -> str:
    if card.deployment.stated_unit.bounded:
        return "Whoever contributes more than it bounds in a step is covered by several units, and leaks more."
    return "Whoever is several such units in a step (several devices, accounts) is promised less, and leaks more."


def answers(card: DeploymentCard) -> tuple[str, ...]:
    """What the promise is worth over time."""
    found = card.leakage
    if found is None:
        return (f"No number is given: {card.reason}",)
    step, steps = _step(card), _steps(card)
    told = [promised(card), over_time(card), *_posteriors(found, step), _settling(card)]
    if found.doubled is not None:
        told.append(_both_contribute(found.doubled))
    told.append(
        f"All values of a person in {card.horizon} {steps} together (user level), whatever the correlation: "
        + (
            "nothing that could be said at this delta."
            if math.isinf(found.together)
            else f"at most {level(found.together)}."
        )
    )
    told.append(holding(card))
    return tuple(told)


def _both_contribute(doubled: float) -> str:
    if math.isinf(doubled):
        return "If something is contributed at both values, a change is a removal and an addition, for which no bound is known."
    return f"If something is contributed at both values, a change is a removal and an addition: then it is {level(doubled)}."


def promised(card: DeploymentCard) -> str:
    """What a step promises, and says by itself."""
    found = card.leakage
    assert found is not None
    step = _step(card)
    at = f", which is {number(found.promised, up=True)} nats at delta {found.delta:g}" if found.delta else ""
    more = ""
    if found.alone > found.promised:
        more = f" A change of value is more than one unit: by itself a {step} tells up to {level(found.alone)}."
    whole = "for what this secret enters" if card.unit.parts else f"for each unit ({card.deployment.unit_text})"
    return f"Promised at each {step} {whole}: {card.promise.sentence}{at}.{more} By itself, {odds(found.alone, found.delta)}."


def over_time(card: DeploymentCard) -> str:
    """What all steps together tell about one."""
    found = card.leakage
    assert found is not None
    step, steps = _step(card), _steps(card)
    given = chain(card, found.at)
    if math.isinf(found.limit.temporal):
        return f"{given}, what all {steps} together tell about one {step} grows without bound as the release goes on."
    if found.delta:
        how = "an upper bound for every mechanism with this promise"
    elif found.limit.exact:
        how = "exact: the largest over every mechanism with this promise"
    else:
        how = "an upper bound"
    return (
        f"{given}, all {steps} together tell up to {level(found.limit.temporal)} about one {step}, however long the release "
        f"goes on ({how}): {odds(found.limit.temporal, found.delta)}."
    )


def chain(card: DeploymentCard, stays: float) -> str:
    """Under which chain, at the beginning of a sentence."""
    if card.question.correlation is not None:
        name = card.question.correlation_name or "the given matrices"
        return f"Under the correlation of {name}, by which a value stays with probability {stays:.4g} on average"
    return f"If a value stays from one {_step(card)} to the next with probability {stays:g}"


def _posteriors(found: LeakageOverTime, step: str) -> list[str]:
    leak = found.limit.temporal
    if math.isinf(leak):
        return []
    if found.delta:
        return [guess(leak, found.delta)]
    return [
        f"Someone who was {', someone who was '.join(surest(leak))} that a {step} had the one of two values and not the other."
    ]


def _settling(card: DeploymentCard) -> str:
    found = card.leakage
    assert found is not None
    steps = _steps(card)
    within = f"In {card.horizon} {steps} it is at most {level(found.within)}."
    if found.settles is None:
        return f"It does not settle. {within}"
    after = "after the first release" if found.settles == 1 else f"after {found.settles} releases"
    return f"It settles: {after} what the past says is within 1 % of its limit. {within}"


def holding(card: DeploymentCard) -> str:
    """The budget that would hold the promise."""
    found = card.leakage
    assert found is not None
    step = _step(card)
    if found.held is None:
        return f"No promise of a {step} was found that would keep what leaks for ever at {level(found.alone)}."
    return (
        f"For no more than {level(found.alone)} to leak for ever, what a {step} tells by itself now, a {step} could promise "
        f"{rounded_down(found.held.sentence)}."
    )


def rounded_down(sentence: str) -> str:
    """A promise in four digits, downwards: what is granted."""
    words = sentence.split(" ")
    return " ".join(_down(word) for word in words)


def _down(word: str) -> str:
    bare = word.rstrip(",")
    try:
        value = float(bare)
    except ValueError:
        return word
    return number(value, down=True) + word[len(bare) :]


def assumptions(card: DeploymentCard) -> tuple[str, ...]:
    """Everything that the numbers rest on and the record does not say."""
    if card.leakage is None:
        return ()
    asked, record = card.question, card.deployment
    step = _step(card)
    n = len(asked.states)
    listed = [
        f"The secret is which of {n} values a person has at a {step}: {', '.join(asked.states)}.",
        *card.unit.reasoning,
    ]
    if asked.correlation is None:
        least, most = asked.stays
        else_ = "the other value" if n == 2 else f"each of the {n - 1} other values alike"
        spread = f"{least:g} to {most:g}" if least < most else f"{least:g}"
        listed.append(
            "Values form a stationary first-order Markov chain, the same at all steps, that stays with probability "
            f"{spread} from one {step} to the next and else goes to {else_}. Whoever looks knows the chain, and everybody "
            "else's values. Longer memory, or correlation between people, can leak more."
        )
        if n == 2:
            listed.append(
                "With two values this covers more: a stationary chain whose two probabilities of staying differ leaks no "
                "more than the worse end of a range that holds both."
            )
    else:
        listed.append(
            "Values form a first-order Markov chain by the matrices of "
            f"{asked.correlation_name or 'the given correlation'}; whoever looks knows them, and everybody else's values. "
            "Longer memory, or correlation between people, can leak more."
        )
    often = "by the record's privacy unit" if record.stated_unit.period else "by its release_type_details"
    often = often if asked.every is None else "as asked (deployment.every)"
    listed.append(
        f"One step is a {card.period}, {often}. What is released about a {step} is released from the data of that {step} "
        "alone, with noise that is fresh and independent of all other noise."
    )
    listed.append(f"The horizon is {card.horizon} {_steps(card)}{_where_from(card)}.")
    found = card.leakage
    if found.delta:
        how = "as asked" if asked.delta is not None else "chosen here"
        listed.append(
            f"The promise is no pure one: all leakage is the epsilon at delta {found.delta:g} ({how}). It is an upper bound "
            "for every mechanism with this promise; how much noise there is was decided before the first release."
        )
    return tuple(listed)


def _where_from(card: DeploymentCard) -> str:
    asked = card.question
    if asked.horizon is not None:
        return ", as asked"
    if asked.since is None:
        return " (a year; the record has no field for it)"
    return f", from {asked.since} " + ("until today" if asked.until is None else f"to {asked.until}")


def to_publisher(card: DeploymentCard) -> str:
    """What one would write to the publisher."""
    found = card.leakage
    if found is None:
        return ""
    step, steps = _step(card), _steps(card)
    given = chain(card, found.at)
    grows = math.isinf(found.limit.temporal)
    most = "without bound" if grows else f"up to {level(found.limit.temporal)}"
    hold = ""
    if found.held is not None:
        hold = (
            f" A promise of {rounded_down(found.held.sentence)} a {step} would keep it at {level(found.alone)}, under the "
            "same assumptions."
        )
    whole = (
        "for the tables that this secret enters" if card.unit.parts else f"for the unit {card.deployment.unit_text!r}"
    )
    return (
        f"The registry's record of {card.deployment.name!r} states a promise of {card.promise.sentence} at each {step} "
        f"{whole}, and that is not in question. It does not say how far one {step} resembles the next. {given}, all {steps} "
        f"together can tell {most} about one {step}, where a {step} by itself tells {level(found.alone)}. Please say beside "
        f"the promise that it is about each {step} by itself, and what it comes to for values that resemble each other from "
        f"{step} to {step}.{hold}"
    )


def _step(card: DeploymentCard) -> str:
    return card.period or "step"


def _steps(card: DeploymentCard) -> str:
    return f"{_step(card)}s"
