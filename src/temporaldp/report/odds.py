"""What a leakage means to somebody who guesses: odds and posteriors, in sentences that every page and report shares.

The sentences are templates, because the page of the server fills them in while somebody moves a slider (`serve/page`).
"""

from __future__ import annotations

import math

from temporaldp.report.words import factor

SENTENCES = {
    "odds": "what is released changes the odds between two values by at most a factor {factor}",
    "odds_at_delta": (
        "what is released is at most {factor} times as likely under the one value as under the other, plus a probability of "
        "{delta}"
    ),
    "surest": "{prior} % sure becomes at most {posterior} sure",
    "guess": "Who guesses which of two equally likely values it was is right in at most {right} of the cases.",
    "no_guess": (
        "That leaves room for certainty: who guesses which of two equally likely values it was may always be right."
    ),
}
"""Templates of `odds`, `surest` and `guess`."""

PRIORS = (0.5, 0.1)
"""How sure somebody is before, in the sentences about posteriors."""

CERTAIN = 1e-9
"""What is left to certainty that nobody would print."""


def odds(leakage: float, delta: float) -> str:
    """What a level means, as a clause."""
    if delta:
        return SENTENCES["odds_at_delta"].format(factor=factor(leakage), delta=f"{delta:g}")
    return SENTENCES["odds"].format(factor=factor(leakage))


def surest(leakage: float) -> list[str]:
    """How sure of one of two values anybody can become, for each of PRIORS, as clauses."""
    return [
        SENTENCES["surest"].format(prior=f"{100 * prior:g}", posterior=percent(posterior(prior, leakage)))
        for prior in PRIORS
    ]


def guess(leakage: float, delta: float) -> str:
    """How often the best guess between two equally likely values is right."""
    right = (math.exp(-leakage) * delta + 1.0) / (1.0 + math.exp(-leakage))
    if 1.0 - right < CERTAIN:
        return SENTENCES["no_guess"]
    return SENTENCES["guess"].format(right=percent(right))


def posterior(prior: float, leakage: float) -> float:
    """How sure of one of two values anybody is at most who was `prior` sure, if odds change by ``e^leakage`` at most."""
    return 1.0 / (1.0 + (1.0 - prior) / prior * math.exp(-leakage))


def percent(probability: float) -> str:
    """A probability, rounded up, with as many digits as its distance from certainty asks for."""
    left = 1.0 - probability
    if left < CERTAIN:
        return "100 %"
    digits = max(0, math.ceil(-math.log10(left)) - 1)
    scale = 10.0**digits
    shown = f"{math.ceil(100.0 * probability * scale - 1e-9) / scale:.{digits}f}"
    return f"{shown.rstrip('0').rstrip('.') if digits else shown} %"
