"""Routes of releases: create, check, spend, publish, read, verify."""

from __future__ import annotations

import secrets
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from temporaldp.apps.serve.access import RELEASE_PATTERN, Asking, TokenOf, TokenRoute
from temporaldp.apps.serve.definition import Definition
from temporaldp.apps.serve.failures import refusals
from temporaldp.apps.serve.messages import (
    AdmittedBudget,
    BudgetQuestion,
    Created,
    Intact,
    ListedReleases,
    Publish,
    ReleaseState,
    Spend,
    TakenStep,
    TakenSteps,
)
from temporaldp.apps.serve.tokens import Role
from temporaldp.base.errors import LateDataError, LeakageBudgetError, SpentError
from temporaldp.data.tables.moments import label_of
from temporaldp.publish.release.step import StepRequest

router = APIRouter(prefix="/v1/releases", tags=["releases"], route_class=TokenRoute, responses=refusals())

Reader = Annotated[Asking, Depends(TokenOf(Role.READ))]
Publisher = Annotated[Asking, Depends(TokenOf(Role.PUBLISH))]
Owner = Annotated[Asking, Depends(TokenOf(Role.OWN))]
Identifier = Annotated[str, Path(pattern=RELEASE_PATTERN, description="Of the release.")]
AtMost = Annotated[int, Query(ge=1, le=1_000, description="How many at most.")]
KEY = Header(
    alias="Idempotency-Key",
    pattern="^[!-~]{1,200}$",
    description="Any text. A request that is repeated with it and the same token gets the same answer, and spends once. A "
    "release is found again with every token that may create it.",
)


@router.post("", status_code=201)
async def create(caller: Owner, definition: Definition, key: Annotated[str | None, KEY] = None) -> Created:
    """Create a release; requires a token that owns all releases."""
    # Of the service and not of the token: with a new token, the job must not open a second account
    known = f"create {key or secrets.token_hex(16)}"
    return await caller.service.run(lambda: caller.service.create(definition, known), caller.service.creations)


@router.get("")
async def known(
    caller: Reader,
    after: Annotated[
        str, Query(pattern="^[0-9a-f]{0,32}$", description="The last identifier of the page before.")
    ] = "",
    limit: AtMost = 100,
) -> ListedReleases:
    """List the releases of the service; requires a token that may read all releases."""
    return await caller.service.run(
        lambda: ListedReleases(releases=caller.service.known(after, limit)), caller.service.quick
    )


@router.get("/{release}")
async def read(
    caller: Reader,
    release: Identifier,
    leakage: Annotated[
        bool, Query(description="Also compute the leakage so far; each new step takes milliseconds.")
    ] = False,
) -> ReleaseState:
    """Return the definition of a release, the sum of the budgets spent, and the largest budget of the next step, in nats."""
    return await caller.service.ask(release, lambda found: found.state(leakage=leakage))


@router.get("/{release}/steps")
async def steps(
    caller: Reader,
    release: Identifier,
    start: Annotated[int, Query(ge=0, le=2**31 - 1, description="The first step.")] = 0,
    limit: AtMost = 100,
) -> TakenSteps:
    """Return the steps of a release, with their outputs."""
    return await caller.service.of(release, lambda found: found.steps(start, limit))


@router.get("/{release}/verify")
async def verify(
    caller: Reader,
    release: Identifier,
    head: Annotated[
        str | None, Query(pattern="^[0-9a-f]{12,64}$", description="A head that was noted: the chain must contain it.")
    ] = None,
) -> Intact:
    """Read every step again and check the chain of hashes from its start; 409 if it is broken."""
    return await caller.service.ask(release, lambda found: found.verify(head))


@router.post("/{release}/check")
async def check(caller: Reader, release: Identifier, question: BudgetQuestion) -> AdmittedBudget:
    """Return the noise of a budget if the next step may spend it; 409 otherwise, with the remaining budget."""
    return await caller.service.ask(release, lambda found: found.check(question))


@router.post("/{release}/spend")
async def spend(
    caller: Publisher, request: Request, response: Response, release: Identifier, spent: Spend, key: Annotated[str, KEY]
) -> TakenStep:
    """Charge a budget to the next step, for an output that is drawn elsewhere: draw it after the answer, never before."""
    return await _take(caller, request, response, release, spent, key, None)


@router.post("/{release}/publish")
async def publish(
    caller: Publisher,
    request: Request,
    response: Response,
    release: Identifier,
    published: Publish,
    key: Annotated[str, KEY],
) -> TakenStep:
    """Add noise to counts, store them as the next step, and only then return them."""
    return await _take(caller, request, response, release, published, key, tuple(published.counts))


async def _take(
    caller: Asking,
    request: Request,
    response: Response,
    release: str,
    asked: Spend,
    key: str,
    counts: tuple[int, ...] | None,
) -> TakenStep:
    if asked.last or asked.ahead:
        caller.require(Role.OWN, release)
    kind = "spend" if counts is None else "publish"
    taken = StepRequest(
        None if asked.time is None else label_of(asked.time),
        asked.epsilon,
        asked.last,
        ahead=asked.ahead,
        key=caller.owned(key),
        data=counts,
    )
    steps_taken = request.app.state.metrics.steps
    with steps_taken.labels(kind=kind, became="refused").count_exceptions(
        (LeakageBudgetError, SpentError, LateDataError)
    ):
        step, again = await caller.service.of(release, lambda found: found.take_step(taken))
    steps_taken.labels(kind=kind, became="repeated" if again else "taken").inc()
    if again:
        response.headers["Idempotent-Replayed"] = "true"
    return step
