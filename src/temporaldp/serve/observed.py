"""What is written down of every request: a line of JSON, and numbers. Never a body, a token, a label of a step or a message."""

from __future__ import annotations

import json
import sys
import time
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

from temporaldp.serve.metrics import Metrics
from temporaldp.serve.responses import Message, send_problem

UNKNOWN = "unknown"
"""In place of an address that is none of ours, which may hold anything."""


class Observed:
    """Counts and logs requests; what fails unexpectedly is answered with 500, and logged by its class and place alone.

    Parameters
    ----------
    app : callable
        Of ASGI.
    metrics : Metrics
    log : file or None
        Where lines go; None for nowhere.
    """

    def __init__(self, app: Any, *, metrics: Metrics, log: TextIO | None) -> None:
        self._app, self._metrics, self._log = app, metrics, log

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        fault: dict[str, Any] = {}
        try:
            await self._app(scope, receive, send_noted)
        except Exception as error:
            fault = {"fault": type(error).__name__, "at": _places(error)}
            self._metrics.faults.labels(kind=type(error).__name__).inc()
            if not status:
                await send_problem(send_noted, 500, "A fault of the server", "it was written to the server's log")
        self._note(scope, status, time.monotonic() - began, fault)

    def _note(self, scope: Message, status: int, seconds: float, fault: dict[str, Any]) -> None:
        route = str(getattr(scope.get("route"), "path", UNKNOWN))
        method = scope["method"] if scope["method"] in {"GET", "POST", "HEAD", "OPTIONS"} else "other"
        self._metrics.requests.labels(route=route, method=method, status=str(status or "gone")).inc()
        self._metrics.seconds.labels(route=route).observe(seconds)
        if self._log is None:
            return
        line = {
            "when": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "method": method,
            "route": route,
            "status": status,
            "milliseconds": round(1000.0 * seconds, 2),
            **scope.get("told", {}),
            **fault,
        }
        print(json.dumps(line), file=self._log, flush=True)


def log_line(event: str, **told: Any) -> None:
    """A line about the server itself."""
    line = {"when": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **told}
    print(json.dumps(line), file=sys.stderr, flush=True)


def _places(error: BaseException) -> list[str]:
    """Where an error came from, without what it says: a message may hold what it is about."""
    return [
        f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)[-8:]
    ]
