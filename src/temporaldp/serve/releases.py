"""The releases behind HTTP: create, ask, spend, publish, read, verify."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeVar

from temporaldp.errors import LateDataError, LedgerError, SpentError
from temporaldp.extras import needing
from temporaldp.files.moments import label_of
from temporaldp.planning.histogram_noise import HISTOGRAM_SENSITIVITY
from temporaldp.release.chain import LedgerRow
from temporaldp.release.histogram import granted_scale
from temporaldp.release.ledger import Ledger
from temporaldp.release.outputs import from_text
from temporaldp.release.step import StepRequest
from temporaldp.serve.access import Shown, require, service_of
from temporaldp.serve.definition import Definition
from temporaldp.serve.messages import (
    Admitted,
    Created,
    Intact,
    Listed,
    Problem,
    Publish,
    Question,
    Releases,
    Spend,
    State,
    Step,
    Steps,
)
from temporaldp.serve.served_release import RefusedBudgetError, ServedRelease
from temporaldp.serve.service import Service
from temporaldp.serve.strict_json import StrictRoute
from temporaldp.serve.tokens import Role, name_of

with needing("serve"):
    from fastapi import APIRouter, Header, HTTPException, Path, Query, Request, Response

MOST_STEPS_A_PAGE = 1_000

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": what}
    for status, what in (
        (400, "The body is no JSON, or headers contradict one another."),
        (401, "There is no token, or it is none, revoked or over."),
        (403, "The token is for another release, or for less."),
        (404, "There is no such release."),
        (408, "The body came too slowly."),
        (409, "The level does not allow it, or the request does not fit what was done before."),
        (413, "The body is too large."),
        (415, "The body says that it is something else than JSON."),
        (421, "The server has another name."),
        (422, "What was sent cannot be used."),
        (429, "Too many wait: ask again."),
        (503, "The database cannot be used: ask again."),
    )
}

router = APIRouter(prefix="/v1/releases", tags=["releases"], route_class=StrictRoute, responses=REFUSALS)

Identifier = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="Of the release.")]
KEY = Header(
    alias="Idempotency-Key",
    pattern="^[!-~]{1,200}$",
    description="Any text. A request that is repeated with it and the same token gets the same answer, and spends once.",
)
RequestKey = Annotated[str, KEY]

Result = TypeVar("Result")


@router.post("", status_code=201)
async def create(
    request: Request, definition: Definition, token: Shown, key: Annotated[str | None, KEY] = None
) -> Created:
    """Create a release. Needs a token that owns all releases."""
    service = service_of(request)

    def act() -> Created:
        require(service, token, None, Role.OWN)
        release, opened, _ = service.registry.create(definition, None if key is None else _owned(token, key))
        return Created(release=release, alpha=definition.alpha, reserve=opened.reserve, head=opened.ledger.began)

    return await service.workers.slowly(act)


@router.get("")
async def known(
    request: Request,
    token: Shown,
    after: Annotated[
        str, Query(pattern="^[0-9a-f]{0,32}$", description="The last identifier of the page before.")
    ] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_STEPS_A_PAGE, description="How many at most.")] = 100,
) -> Releases:
    """The releases of the service. Needs a token that may read all releases."""
    service = service_of(request)

    def act() -> Releases:
        require(service, token, None, Role.READ)
        found = service.registry.known(after, limit)
        listed = [Listed(release=r, name=d.name, n_steps=n_steps, head=head) for r, d, n_steps, head in found]
        return Releases(releases=listed)

    return await service.workers.quickly(act)


@router.get("/{release}")
async def read(
    request: Request,
    release: Identifier,
    token: Shown,
    leakage: Annotated[
        bool, Query(description="Also count what leaked so far, which takes milliseconds a step.")
    ] = False,
) -> State:
    """What a release is, what was spent, and what the next step may spend."""

    def act(found: ServedRelease) -> State:
        remaining, leaked = found.remaining(), found.leakage() if leakage else None
        return _state(release, found, remaining, leaked)

    return await _slowly(request, release, Allowed(token, Role.READ), act)


@router.get("/{release}/steps")
async def steps(
    request: Request,
    release: Identifier,
    token: Shown,
    start: Annotated[int, Query(ge=0, le=2**31 - 1, description="The first step.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_STEPS_A_PAGE, description="How many at most.")] = 100,
) -> Steps:
    """Steps that were taken, with what was published."""

    def act(found: ServedRelease) -> Steps:
        found.refresh()
        chosen = found.ledger[start : start + limit]
        return Steps(steps=[_step(release, row) for row in chosen], n_steps=len(found))

    return await _quickly(request, release, Allowed(token, Role.READ), act)


@router.get("/{release}/verify")
async def verify(
    request: Request,
    release: Identifier,
    token: Shown,
    head: Annotated[
        str | None, Query(pattern="^[0-9a-f]{12,64}$", description="A head that was noted: the chain must contain it.")
    ] = None,
) -> Intact:
    """Read every step anew and check the chain of hashes from its start; 409 if it does not hold."""
    store = service_of(request).registry.store(release)

    def act(_: ServedRelease) -> Intact:
        with Ledger(store) as ledger:
            ledger.verify(head=head)
            return Intact(n_steps=len(ledger), head=ledger.head)

    return await _slowly(request, release, Allowed(token, Role.READ), act)


@router.post("/{release}/check")
async def check(request: Request, release: Identifier, question: Question, token: Shown) -> Admitted:
    """Whether the next step may spend a budget, and how much noise goes with it; 409 if not, with what remains."""

    def act(found: ServedRelease) -> Admitted:
        epsilon = found.check(question.epsilon, last=question.last)
        return Admitted(epsilon=epsilon, laplace_scale=_scale(epsilon), step=len(found))

    return await _quickly(request, release, Allowed(token, Role.READ), act)


@router.post("/{release}/spend")
async def spend(
    request: Request, response: Response, release: Identifier, spent: Spend, token: Shown, key: RequestKey
) -> Step:
    """Charge a budget to the next step, for something that is drawn elsewhere: draw it after the answer, never before."""
    allowed = Allowed(token, Role.OWN if spent.last or spent.ahead else Role.SPEND)
    asked = StepRequest(_label(spent.time), spent.epsilon, spent.last, ahead=spent.ahead, key=_owned(token, key))
    return await _take(request, response, release, allowed, asked, "spend")


@router.post("/{release}/publish")
async def publish(
    request: Request, response: Response, release: Identifier, published: Publish, token: Shown, key: RequestKey
) -> Step:
    """Add noise to counts, store them as the next step, and only then hand them out."""
    allowed = Allowed(token, Role.OWN if published.last or published.ahead else Role.PUBLISH)
    asked = StepRequest(
        _label(published.time),
        published.epsilon,
        published.last,
        ahead=published.ahead,
        key=_owned(token, key),
        data=tuple(published.counts),
    )
    return await _take(request, response, release, allowed, asked, "publish")


class Allowed(NamedTuple):
    """The token that was shown, and what it must allow."""

    token: str
    role: Role


async def _take(
    request: Request, response: Response, release: str, allowed: Allowed, asked: StepRequest, kind: str
) -> Step:
    steps_taken = service_of(request).metrics.steps

    def act(found: ServedRelease) -> tuple[LedgerRow, bool]:
        if asked.data is not None:
            found.require_counts(asked.data)
        return found.take_step(asked)

    try:
        row, again = await _quickly(request, release, allowed, act)
    except (RefusedBudgetError, SpentError, LateDataError):
        steps_taken.labels(kind=kind, became="refused").inc()
        raise
    steps_taken.labels(kind=kind, became="repeated" if again else "taken").inc()
    if again:
        response.headers["Idempotent-Replayed"] = "true"
    return _step(release, row)


async def _quickly(request: Request, release: str, allowed: Allowed, act: Callable[[ServedRelease], Result]) -> Result:
    service = service_of(request)
    request.scope["told"] = {"release": release}
    return await service.workers.quickly(lambda: act(_found(service, release, allowed)))


async def _slowly(request: Request, release: str, allowed: Allowed, act: Callable[[ServedRelease], Result]) -> Result:
    service = service_of(request)
    request.scope["told"] = {"release": release}
    return await service.workers.slowly(lambda: act(_found(service, release, allowed)))


def _found(service: Service, release: str, allowed: Allowed) -> ServedRelease:
    require(service, allowed.token, release, allowed.role)
    try:
        found = service.registry.find(release)
    except LedgerError:
        service.metrics.faults.labels(kind="LedgerError").inc()
        raise
    if found is None:
        raise HTTPException(404, "there is no such release")
    return found


def _owned(token: str, key: str) -> str:
    """A key under the name of its token: another token's request with this key is another request."""
    return f"{name_of(token)} {key}"


def _label(time: str | None) -> str | None:
    return None if time is None else label_of(time)


def _scale(epsilon: float) -> float:
    return granted_scale(HISTOGRAM_SENSITIVITY, epsilon) if epsilon > 0.0 else math.inf


def _step(release: str, row: LedgerRow) -> Step:
    output = None if row.output is None else from_text(row.output)
    counts = output if isinstance(output, list) else None
    return Step(
        release=release,
        step=row.step,
        time=row.time,
        epsilon=row.epsilon,
        last=row.last,
        counts=counts,
        head=row.hash,
    )


def _state(release: str, found: ServedRelease, remaining: float, leaked: float | None) -> State:
    told, ledger = found.definition, found.ledger
    n_steps = len(ledger)
    last = ledger[n_steps - 1] if n_steps else None
    return State(
        release=release,
        name=told.name,
        alpha=told.alpha,
        horizon=told.horizon,
        bound=told.bound,
        mechanism=told.mechanism.model_dump(),
        states=told.states,
        n_steps=n_steps,
        last_time=None if last is None else last.time,
        is_over=last is not None and last.last,
        spent=math.fsum(ledger.epsilons),
        reserve=found.reserve,
        remaining=remaining,
        leakage=leaked,
        head=ledger.head,
    )
