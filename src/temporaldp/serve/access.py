"""Who asks: the token of a request, and what it allows."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from temporaldp.serve.service import Service
from temporaldp.serve.tokens import Role, Token, TokenRefusedError

BEARER = HTTPBearer(auto_error=False, description="A token of `temporaldp token create`.")

CHALLENGE = {"WWW-Authenticate": "Bearer"}

Given = Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]


def service_of(request: Request) -> Service:
    """The service that a request is for."""
    found: Service = request.app.state.service
    return found


async def shown_token(request: Request, given: Given) -> Token:
    """The token of a request; 401 if it is none."""
    if given is None:
        raise HTTPException(401, "expected a token: Authorization: Bearer tdp_...", CHALLENGE)
    service, text = service_of(request), given.credentials
    try:
        return await service.workers.quickly(lambda: service.tokens.check(text))
    except TokenRefusedError as error:
        raise HTTPException(401, str(error), CHALLENGE) from None


Shown = Annotated[Token, Depends(shown_token)]


def require(token: Token, release: str | None, role: Role) -> None:
    """403 if a token does not allow this; None for what concerns all releases."""
    if token.release is not None and token.release != release:
        whose = "another release" if release is not None else "one release, and this concerns all"
        raise HTTPException(403, f"this token is for {whose}")
    if token.role < role:
        raise HTTPException(403, f"expected a token that may {role.word}, got one that may {token.role.word}")
