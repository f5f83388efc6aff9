"""Access: the token of a request, and its permissions. Both are checked before the body is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from anyio import CapacityLimiter
from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBasic, HTTPBearer

from temporaldp.apps.serve.bodies import BoundedRoute
from temporaldp.apps.serve.failures import CLOSE
from temporaldp.apps.serve.served_release import ServedRelease
from temporaldp.apps.serve.service import Service
from temporaldp.apps.serve.tokens import Role, TokenRefusedError

Result = TypeVar("Result")

IDENTIFIER = "^[0-9a-f]{32}$"
"""Pattern of the identifiers of releases."""

BEARER = HTTPBearer(auto_error=False, description="A token of `temporaldp token create`.")

CHALLENGE = CLOSE | {"WWW-Authenticate": "Bearer"}

PASSWORD = HTTPBasic(realm="temporaldp: a token as the password", description="A token as the password; any user name.")
"""Browsers ask for it, and send it with everything that the page asks."""


async def require_page_token(request: Request) -> None:
    """Answer 401 unless the password is a valid token of any role."""
    given = await PASSWORD(request)
    service: Service = request.app.state.service
    try:
        await service.token(given.password if given else "")
    except TokenRefusedError as error:
        raise HTTPException(401, str(error), CLOSE | PASSWORD.make_authenticate_headers()) from None


class Asking:
    """A request to the service, with its token."""

    def __init__(self, service: Service, token: Any) -> None:
        self.service, self._token = service, token

    def owned(self, key: str) -> str:
        """Return a key with the name of the token, so that keys of different tokens differ."""
        return f"{self._token.token} {key}"

    async def run(self, act: Callable[[Service], Result], limiter: CapacityLimiter) -> Result:
        """Return the result of an operation on the service."""
        return await self.service.run(lambda: act(self.service), limiter)

    async def of(self, release: str, act: Callable[[ServedRelease], Result]) -> Result:
        """Return the result of a step of a release, or of what is read from memory; 404 if there is no such release."""
        return await self.run(lambda service: act(service.find(release)), self.service.quick)

    async def ask(self, release: str, act: Callable[[ServedRelease], Result]) -> Result:
        """Return the answer to a question about a release that takes long; 404 if there is no such release."""
        return await self.service.ask(release, lambda: act(self.service.find(release)))

    def require(self, role: Role, release: str | None) -> None:
        """Answer 403 if the token does not allow this; None stands for all releases."""
        if self._token.release not in {None, release}:
            whose = "another release" if release is not None else "one release, and this concerns all"
            raise HTTPException(403, f"this token is for {whose}", CLOSE)
        if not Role(self._token.role).includes(role):
            raise HTTPException(403, f"expected a token that may {role}, got one that may {self._token.role}", CLOSE)


class TokenOf:
    """Dependency of a route: its request with a token of at least this role, which `TokenRoute` has checked."""

    def __init__(self, role: Role) -> None:
        self.role = role

    async def __call__(
        self, request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]
    ) -> Asking:
        """Return the request with its token."""
        asking: Asking = request.state.asking
        return asking


class TokenRoute(BoundedRoute):
    """A route of releases, which has a dependency `TokenOf`."""

    async def admit(self, request: Request) -> None:
        """Answer 401 without a valid token, 403 if it does not allow what the route does with the release of its path."""
        given, release = await BEARER(request), request.path_params.get("release")
        if release is not None and re.fullmatch(IDENTIFIER, release):
            request.scope["log_fields"]["release"] = release
        if given is None:
            raise HTTPException(401, "expected a token: Authorization: Bearer tdp_...", CHALLENGE)
        service: Service = request.app.state.service
        try:
            token = await service.token(given.credentials)
        except TokenRefusedError as error:
            raise HTTPException(401, str(error), CHALLENGE) from None
        request.state.asking = Asking(service, token)
        (role,) = (one.call.role for one in self.dependant.dependencies if isinstance(one.call, TokenOf))
        request.state.asking.require(role, release)
