"""Middleware of every request: refusals, headers for browsers, log and metrics.

There are no cookies, but a browser sends the token of a page (Basic authentication) with every request to it, and a page on a
user's own machine needs no token. Requests of other sites are therefore refused.

The log and the metrics never contain a body, a token, a label of a step or a message.
"""

from __future__ import annotations

import time
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from temporaldp.apps.serve.failures import CLOSE_CONNECTION, answer
from temporaldp.base.documents import json_line

LARGEST_HEAD = 32 << 10
"""Bytes of a request's line and headers."""

SECURITY_HEADERS = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; form-action 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""Of every answer; `cache-control` is added where the answer has none."""


class Metrics:
    """Metrics of one server for Prometheus. Labels never name a release, a token or a person."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "temporaldp_requests",
            "Requests by route, method and status.",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self.steps = Counter(
            "temporaldp_steps",
            "Steps by kind: taken, repeated or refused.",
            ["kind", "became"],
            registry=self.registry,
        )
        self.faults = Counter(
            "temporaldp_faults",
            "Requests that failed for no fault of the client, by kind.",
            ["kind"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "temporaldp_request_seconds", "Duration of requests by route.", ["route"], registry=self.registry
        )
        self.open_releases = Gauge(
            "temporaldp_open_releases", "Releases that the server keeps open.", registry=self.registry
        )


class Observed:
    """Check, count and log every request; an unexpected error is answered with 500, and logged by its class and place alone.

    Parameters
    ----------
    app : callable
        ASGI application.
    metrics : Metrics
    log : file or None
        Output of log lines; None for no log.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics, log: TextIO | None) -> None:
        self._app, self._metrics, self._log = app, metrics, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0
        fields: dict[str, Any] = scope.setdefault("log_fields", {})  # of its line in the log, beside route and status

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        refusal = self._refusal(scope)
        try:
            await (refusal or self._app)(scope, receive, send_guarded)
        except Exception as error:
            fields["fault"] = type(error).__name__
            frames = traceback.extract_tb(error.__traceback__)[-8:]
            fields["at"] = [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in frames]
            self._metrics.faults.labels(kind=fields["fault"]).inc()
            if not status:
                fault = answer(500, "A fault of the server", "it was written to the server's log")
                await fault(scope, receive, send_guarded)
        self._note(scope, status, time.monotonic() - began)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        """Return the answer to a request that may not pass; None for one that may."""
        headers = Headers(scope=scope)
        for name in ("host", "origin", "sec-fetch-site"):
            if len(set(headers.getlist(name))) > 1:
                return answer(400, "Two headers contradict one another", f"expected one {name}", CLOSE_CONNECTION)
        n_bytes = len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(n) + len(v) for n, v in headers.raw)
        if n_bytes > LARGEST_HEAD:
            return answer(
                431, "The head is too large", f"expected a head of at most {LARGEST_HEAD} bytes", CLOSE_CONNECTION
            )
        host = headers.get("host", "").lower()
        is_foreign = headers.get("sec-fetch-site", "none") not in {"none", "same-origin"} and scope["method"] != "GET"
        if is_foreign or headers.get("origin", f"http://{host}").lower() not in {f"http://{host}", f"https://{host}"}:
            detail = "expected a request from this server's own page, or from a program"
            return answer(403, "Another web site asked", detail, CLOSE_CONNECTION)
        return None

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = str(getattr(scope.get("route"), "path", "unknown"))  # an unknown address may contain anything
        method = scope["method"] if scope["method"] in {"GET", "POST", "HEAD", "OPTIONS"} else "other"
        self._metrics.requests.labels(route=route, method=method, status=str(status or "gone")).inc()
        self._metrics.seconds.labels(route=route).observe(seconds)
        if self._log is not None:
            log_line(
                self._log,
                method=method,
                route=route,
                status=status,
                milliseconds=round(1000.0 * seconds, 2),
                **scope["log_fields"],
            )


def log_line(log: TextIO, **fields: Any) -> None:
    """Write a line of JSON with the time."""
    print(json_line({"when": datetime.now(UTC).isoformat(timespec="milliseconds"), **fields}), file=log, flush=True)
