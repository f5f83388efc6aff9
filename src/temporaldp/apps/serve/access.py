"""Access: the token of a request, and its permissions. Both are checked before the body is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBasic, HTTPBearer

from temporaldp.apps.serve.bodies import BoundedRoute
from temporaldp.apps.serve.failures import CLOSE_CONNECTION
from temporaldp.apps.serve.service import Service
from temporaldp.apps.serve.tokens import Role, TokenRefusedError

if TYPE_CHECKING:
    import sqlalchemy as sa

RELEASE_PATTERN = "^[0-9a-f]{32}$"
"""Pattern of the identifiers of releases."""

BEARER = HTTPBearer(auto_error=False, description="A token of `temporaldp token create`.")

PASSWORD = HTTPBasic(realm="temporaldp: a token as the password", description="A token as the password; any user name.")
"""Browsers ask for it, and send it with everything that the page asks."""


async def checked_token(service: Service, given: str, challenge: dict[str, str]) -> sa.Row[Any]:
    """Return the row of a token; 401 with a challenge if it gives no access."""
    try:
        return await service.run(lambda: service.tokens.check(given), service.checks)
    except TokenRefusedError as error:
        raise HTTPException(401, str(error), CLOSE_CONNECTION | challenge) from None


class PageRoute(BoundedRoute):
    """A route of the page, which a service serves to those with a token of any role as the password."""

    async def admit(self, request: Request) -> None:
        """Answer 401 without a token, where there is a service."""
        service: Service | None = request.app.state.service
        if service is not None:
            given = await PASSWORD(request)
            await checked_token(service, given.password if given else "", PASSWORD.make_authenticate_headers())


@dataclass(frozen=True, slots=True)
class Asking:
    """A request to the service, with the row of its token."""

    service: Service
    token: sa.Row[Any]

    def owned(self, key: str) -> str:
        """Return a key with the name of the token, so that keys of different tokens differ."""
        return f"{self.token.token} {key}"

    def require(self, role: Role, release: str | None) -> None:
        """Answer 403 if the token does not allow this; None stands for all releases."""
        if self.token.release not in {None, release}:
            whose = "another release" if release is not None else "one release, and this concerns all"
            raise HTTPException(403, f"this token is for {whose}", CLOSE_CONNECTION)
        if not Role(self.token.role).includes(role):
            raise HTTPException(
                403, f"expected a token that may {role}, got one that may {self.token.role}", CLOSE_CONNECTION
            )


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
        challenge = {"WWW-Authenticate": "Bearer"}
        if release is not None and re.fullmatch(RELEASE_PATTERN, release):
            request.scope["log_fields"]["release"] = release
        if given is None:
            raise HTTPException(401, "expected a token: Authorization: Bearer tdp_...", CLOSE_CONNECTION | challenge)
        service: Service = request.app.state.service
        request.state.asking = Asking(service, await checked_token(service, given.credentials, challenge))
        (role,) = (one.call.role for one in self.dependant.dependencies if isinstance(one.call, TokenOf))
        request.state.asking.require(role, release)
