"""Requests and answers about releases."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from temporaldp.apps.serve.definition import ShortText, Strict
from temporaldp.base.values import SMALLEST
from temporaldp.data.counts.histogram import LARGEST_COUNT

Epsilon = Annotated[float, Field(ge=SMALLEST, le=1e6, allow_inf_nan=False)]
Label = Annotated[ShortText, Field(max_length=64)]
PeopleCount = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]


class BudgetQuestion(Strict):
    """Whether a budget may be spent at the next step."""

    epsilon: Epsilon | None = Field(
        None,
        description="Budget of the step, in nats. Left out: what the release can spend at every step, where it has no horizon.",
    )
    last: bool = Field(
        False,
        description="No step follows: what was kept for later ones may be used. To take it, a token must own the release.",
    )


class Spend(BudgetQuestion):
    """A budget for something that is drawn elsewhere; with 0, the step is passed over."""

    epsilon: Annotated[float, Field(ge=0.0, le=0.0)] | Epsilon | None = Field(
        None, description="As for a question; 0 for a step of which nothing is published."
    )
    time: Label | None = Field(
        None, description="The step's label: a date, a number, or words. Left out: the number of the step."
    )
    ahead: bool = Field(
        False,
        description="The time may be more than one step ahead of the clock, or of the last step for labels without a clock. "
        "Only for a token that owns the release.",
    )


class Publish(Spend):
    """Counts to which the service adds noise."""

    epsilon: Epsilon | None = Field(None, description="As for a question.")
    counts: Annotated[list[PeopleCount], Field(min_length=1, max_length=100_000, fail_fast=True)] = Field(
        description="People by state, each person in one of them."
    )


class Listed(Strict):
    """A release of the service."""

    release: str
    name: str | None
    n_steps: int
    head: str = Field(description="Of its chain.")


class ListedReleases(Strict):
    """Releases in the order of their identifiers."""

    releases: list[Listed]


class Created(Strict):
    """A created release."""

    release: str = Field(description="Its identifier, for the address of everything else.")
    alpha: float = Field(description="The level that it satisfies, in nats: of what the guarantee protects.")
    guarantee: str = Field(description="What is protected, as in the definition.")
    condition: str = Field(description="For which observers.")
    reserve: float = Field(
        description="Sustainable budget of every step, in nats; 0 if no budget is sustainable, or if there is a horizon."
    )
    head: str = Field(description="Of its chain, before the first step: stands for what the release is for.")
    warning: str | None = Field(
        None, description="Why the matrices cannot be those of one stationary chain, if they cannot."
    )


class AdmittedBudget(Strict):
    """The budget is admitted now; another client may spend before you."""

    epsilon: float = Field(description="In nats.")
    laplace_scale: float = Field(
        description="Scale of discrete Laplace noise on each count of a histogram, for that budget."
    )
    step: int = Field(description="Which step would come next, from 0.")


class TakenStep(Strict):
    """A step, taken now or by an earlier identical request."""

    release: str
    step: int = Field(description="From 0.")
    time: str = Field(description="Its label.")
    epsilon: float = Field(description="What was spent, in nats.")
    last: bool
    counts: list[int] | None = Field(description="What was published, with noise; null where a budget was charged.")
    head: str = Field(
        description="The hash that stands for this step and all before it: note it with what you publish."
    )


class ReleaseState(Listed, Created):
    """Definition of a release, and its budgets."""

    horizon: int | None
    bound: Literal["exact", "paper"]
    mechanism: dict[str, Any]
    states: list[str] | None
    last_time: str | None = Field(description="The label of the last step.")
    is_over: bool = Field(description="Whether a step was declared the last.")
    spent: float = Field(description="The sum of what all steps spent, in nats; leakage is another number.")
    remaining: float = Field(description="The most that the next step may spend, in nats: a lower bound.")
    leakage: float | None = Field(
        description="The most that leaked about what the guarantee protects, in nats, if that was asked for."
    )


class TakenSteps(Strict):
    """Steps of a release, in order."""

    steps: list[TakenStep]
    n_steps: int = Field(description="How many there are.")


class Intact(Strict):
    """The chain is intact from its first step on."""

    intact: Literal[True] = True
    authentic: bool = Field(
        description="Whether the server's key authenticates the head. If not, only a noted head reveals a chain made anew."
    )
    n_steps: int
    head: str


class Problem(Strict):
    """Problem document (RFC 9457). Nothing was spent or published, unless it states otherwise."""

    status: int
    title: str
    detail: str
    remaining: float | None = Field(None, description="Of a refused budget: what would be admitted, in nats.")
    errors: list[dict[str, str]] | None = Field(
        None, description="Where and what cannot be used, of what was sent: at most 20."
    )
