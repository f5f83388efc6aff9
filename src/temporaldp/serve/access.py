"""Access: the token of a request, and its permissions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBasic, HTTPBasicCredentials, HTTPBearer

from temporaldp.serve.served_release import ServedRelease
from temporaldp.serve.service import Service
from temporaldp.serve.tokens import Role, TokenRefusedError

Result = TypeVar("Result")

BEARER = HTTPBearer(auto_error=False, description="A token of `temporaldp token create`.")

CHALLENGE = {"WWW-Authenticate": "Bearer"}

PASSWORD = HTTPBasic(realm="temporaldp: a token as the password", description="A token as the password; any user name.")
"""Browsers ask for it, and send it with everything that the page asks."""


async def require_page_token(request: Request, given: Annotated[HTTPBasicCredentials, Depends(PASSWORD)]) -> None:
    """Answer 401 unless the password is a valid token of any role."""
    service: Service = request.app.state.service
    try:
        await service.run(lambda: service.tokens.check(given.password))
    except TokenRefusedError as error:
        raise HTTPException(401, str(error), PASSWORD.make_authenticate_headers()) from None


async def asking(request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]) -> Asking:
    """Return a request with its token; 401 if there is none."""
    if given is None:
        raise HTTPException(401, "expected a token: Authorization: Bearer tdp_...", CHALLENGE)
    return Asking(request, given.credentials)  # a class as the dependency would be called in a thread


class Asking:
    """A request to the service, with its token."""

    def __init__(self, request: Request, token: str) -> None:
        self.token, self.request = token, request
        self.service: Service = request.app.state.service

    def owned(self, key: str) -> str:
        """Return a key with the name of the token, so that keys of different tokens differ."""
        return f"{self.token[4:20]} {key}"  # tdp_NAME_SECRET

    async def run(
        self, role: Role, act: Callable[[Service], Result], *, release: str | None = None, is_long: bool = False
    ) -> Result:
        """Return the result of an operation on the service, if the token allows it for a release, by default for all."""

        def allowed() -> Result:
            self._require(role, release)
            return act(self.service)

        return await self.service.run(allowed, is_long=is_long)

    async def of(
        self, release: str, role: Role, act: Callable[[ServedRelease], Result], *, is_long: bool = False
    ) -> Result:
        """Return the result of an operation on a release, if the token allows it; 404 if there is no such release."""
        self.request.scope["log_fields"]["release"] = release
        return await self.run(role, lambda service: act(service.find(release)), release=release, is_long=is_long)

    def _require(self, role: Role, release: str | None) -> None:
        """Answer 401 without a valid token, 403 if it does not allow this; None stands for all releases."""
        try:
            token = self.service.tokens.check(self.token)
        except TokenRefusedError as error:
            raise HTTPException(401, str(error), CHALLENGE) from None
        if token.release not in {None, release}:
            whose = "another release" if release is not None else "one release, and this concerns all"
            raise HTTPException(403, f"this token is for {whose}")
        if not Role(token.role).includes(role):
            raise HTTPException(403, f"expected a token that may {role}, got one that may {token.role}")
