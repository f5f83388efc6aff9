"""Who may ask: only by a name of this server, and never another web site through somebody's browser.

There are no cookies, so that a browser adds nothing to a foreign site's request that would give it rights. It is refused all
the same: a page that runs on somebody's own machine needs no token, and must not compute for others.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from temporaldp.serve.responses import CLOSE, Message, send_problem

HEADERS = (
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; form-action 'none'; base-uri 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
"""Of every answer. `cache-control` is added where the answer has none."""


class OriginChecks:
    """Refuses foreign hosts and origins, and adds the headers that tell browsers what an answer may do."""

    def __init__(self, app: Any, *, hosts: tuple[str, ...]) -> None:
        self._app, self._hosts = app, frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
                if all(name != b"cache-control" for name, _ in message["headers"]):
                    message["headers"].append((b"cache-control", b"no-store"))
            await send(message)

        reason = self._refused(scope)
        if reason is not None:
            await send_problem(send_guarded, *reason, CLOSE)
            return
        await self._app(scope, receive, send_guarded)

    def _refused(self, scope: Message) -> tuple[int, str, str] | None:
        """Status, title and detail of a refusal; None if the request may pass."""
        asked: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in {b"host", b"origin", b"sec-fetch-site"} and asked.setdefault(name, value) != value:
                return 400, "Two headers contradict one another", f"expected one {name.decode()}"
        host = asked.get(b"host", b"").decode("latin-1")
        if _name_of(f"//{host}") not in self._hosts:
            return 421, "This server has another name", "expected a host that the server was started for (--allow-host)"
        origin = asked.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() not in {
            f"http://{host}".lower(),
            f"https://{host}".lower(),
        }:
            return 403, "Another web site asked", "expected a request from this server's own page, or from a program"
        if asked.get(b"sec-fetch-site", b"none") not in {b"none", b"same-origin"} and scope["method"] != "GET":
            return 403, "Another web site asked", "expected a request from this server's own page, or from a program"
        return None


def _name_of(address: str) -> str:
    """The host of an address, without its port; empty if it cannot be read."""
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""
