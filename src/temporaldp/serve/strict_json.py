"""Bodies of requests, read strictly: what JSON does not have, or has twice, is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

from temporaldp.extras import needing

with needing("serve"):
    from fastapi import HTTPException, Request, Response
    from fastapi.routing import APIRoute


class StrictRequest(Request):
    """A request whose body is JSON to the letter."""

    async def json(self) -> Any:
        """The document. `HTTPException` 400 if it is none."""
        try:
            text = (await self.body()).decode("utf-8")
            return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique)
        except RecursionError:
            raise HTTPException(400, "expected JSON that is not nested that deeply") from None
        except json.JSONDecodeError as error:
            raise HTTPException(400, f"expected JSON: {error.msg} at character {error.pos}") from None
        except UnicodeDecodeError:
            raise HTTPException(400, "expected JSON in UTF-8") from None
        except ValueError as error:
            raise HTTPException(400, f"expected JSON: {error}") from None


class StrictRoute(APIRoute):
    """A route whose requests are strict."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """As for any route."""
        handler = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handler(StrictRequest(request.scope, request.receive))

        return strictly


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a name twice")
    return found
