"""Who asks: the token of a request, and what it allows."""

from __future__ import annotations

from typing import Annotated

from temporaldp.extras import needing
from temporaldp.serve.service import Service
from temporaldp.serve.tokens import Role, TokenRefusedError

with needing("serve"):
    from fastapi import Depends, HTTPException, Request
    from fastapi.security import HTTPAuthorizationCredentials, HTTPBasic, HTTPBasicCredentials, HTTPBearer

BEARER = HTTPBearer(auto_error=False, description="A token of `temporaldp token create`.")

CHALLENGE = {"WWW-Authenticate": "Bearer"}

PASSWORD = HTTPBasic(realm="temporaldp: a token as the password", description="A token as the password; any user name.")
"""Browsers ask for it, and send it with everything that the page asks."""

Given = Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]


def service_of(request: Request) -> Service:
    """The service that a request is for."""
    found: Service = request.app.state.service
    return found


async def shown_token(given: Given) -> str:
    """The token of a request, as it came; 401 if there is none."""
    if given is None:
        raise HTTPException(401, "expected a token: Authorization: Bearer tdp_...", CHALLENGE)
    return given.credentials


Shown = Annotated[str, Depends(shown_token)]


async def require_page_token(request: Request, given: Annotated[HTTPBasicCredentials, Depends(PASSWORD)]) -> None:
    """401 unless the password is a token, of whatever role."""
    service = service_of(request)
    try:
        await service.workers.quickly(lambda: service.tokens.check(given.password))
    except TokenRefusedError as error:
        raise HTTPException(401, str(error), PASSWORD.make_authenticate_headers()) from None


def require(service: Service, shown: str, release: str | None, role: Role) -> None:
    """401 if that is no token, 403 if it does not allow this; None for what concerns all releases. Asks the database."""
    try:
        token = service.tokens.check(shown)
    except TokenRefusedError as error:
        raise HTTPException(401, str(error), CHALLENGE) from None
    if token.release is not None and token.release != release:
        whose = "another release" if release is not None else "one release, and this concerns all"
        raise HTTPException(403, f"this token is for {whose}")
    if token.role < role:
        raise HTTPException(403, f"expected a token that may {role.word}, got one that may {token.role.word}")
