"""A client of the service, which repeats a request until it is answered, and never spends twice.

It needs the standard library alone: a pipeline that asks whether it may publish should not have to install a web framework.
"""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlencode, urlsplit

from temporaldp.errors import InputError, RequestRefusedError, ServiceError
from temporaldp.release.closing import Closing


class Client(Closing):
    """Client of one server. Threads may share it, but then wait for one another; for concurrent requests use one per thread.

    Parameters
    ----------
    address : str
        ``http://host:port``, or ``https://``.
    token : str
        Token of `temporaldp token create`.
    patience : float
        Seconds for which a request is repeated without an answer, or while the server is unavailable.
    answer_within : float
        Seconds to wait for one answer.

    Raises
    ------
    InputError
        The address is not a URL of a server.
    """

    def __init__(self, address: str, token: str, *, patience: float = 60.0, answer_within: float = 30.0) -> None:
        found = urlsplit(address)
        if found.scheme not in {"http", "https"} or not found.hostname or found.path.strip("/"):
            raise InputError(f"expected an address like http://127.0.0.1:8477, got {address!r}")
        kind = HTTPSConnection if found.scheme == "https" else HTTPConnection
        self._connection = kind(found.hostname, found.port, timeout=answer_within)  # opened by the first request
        self._place = f"{found.scheme}://{found.netloc.rpartition('@')[2]}"
        self._token, self._patience = token, patience
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Client({self._place})"

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    def create(self, definition: dict[str, Any], *, key: str | None = None) -> str:
        """Create a release (docs/how-to/service.md) and return its identifier. Key and errors as for `spend`.

        The reserve of every step is computed, which takes seconds, and up to a minute for 64 states.
        """
        return str(self._post("/v1/releases", definition, key or uuid.uuid4().hex)["release"])

    def check(self, release: str, *, epsilon: float | None = None, last: bool = False) -> dict[str, Any]:
        """Return the budget of the next step and its noise, if it may spend `epsilon` (default: the reserve)."""
        return self._post(f"/v1/releases/{release}/check", _given(epsilon=epsilon, last=last), None)

    def spend(
        self,
        release: str,
        *,
        epsilon: float | None = None,
        time: str | None = None,
        last: bool = False,
        ahead: bool = False,
        key: str | None = None,
    ) -> dict[str, Any]:
        """Charge a budget to the next step and return the step.

        Parameters
        ----------
        release : str
        epsilon : float, optional
            Budget, in nats. Default: the reserve of the release.
        time : str, optional
            Label of the step. Default: its number.
        last : bool
            Whether no step follows; for an owner.
        ahead : bool
            Whether the time may be more than one step ahead of the clock and of the last step; for an owner.
        key : str, optional
            Identifier by which a repeated request is recognised, also from another process. Default: a new one.

        Raises
        ------
        RequestRefusedError
            The server refused the budget, the token, or the request. Nothing was spent.
        ServiceError
            There was no answer in time. Repeat the request with the same key to find out whether the step was taken.
        """
        body = _given(epsilon=epsilon, time=time, last=last, ahead=ahead)
        return self._post(f"/v1/releases/{release}/spend", body, key or uuid.uuid4().hex)

    def publish(
        self,
        release: str,
        counts: Sequence[int],
        *,
        epsilon: float | None = None,
        time: str | None = None,
        last: bool = False,
        ahead: bool = False,
        key: str | None = None,
    ) -> dict[str, Any]:
        """Publish counts with noise that the service draws, and return the step. Parameters and errors as for `spend`."""
        body = _given(epsilon=epsilon, time=time, last=last, ahead=ahead) | {"counts": [int(one) for one in counts]}
        return self._post(f"/v1/releases/{release}/publish", body, key or uuid.uuid4().hex)

    def state(self, release: str, *, leakage: bool = False) -> dict[str, Any]:
        """Return the definition of a release, the budgets spent, and the budget of the next step. Errors as for `spend`."""
        return self._get(f"/v1/releases/{release}", leakage="true" if leakage else None)

    def steps(self, release: str, *, start: int = 0, limit: int = 100) -> list[dict[str, Any]]:
        """Return the steps taken. Errors as for `spend`."""
        return list(self._get(f"/v1/releases/{release}/steps", start=start, limit=limit)["steps"])

    def verify(self, release: str, *, head: str | None = None) -> dict[str, Any]:
        """Check the chain from its start; `RequestRefusedError` if it is broken, or lacks a noted head."""
        return self._get(f"/v1/releases/{release}/verify", head=head)

    def _post(self, path: str, body: dict[str, Any], key: str | None) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"} | ({} if key is None else {"Idempotency-Key": key})
        return self._answered("POST", path, headers, json.dumps(body, allow_nan=False).encode())

    def _get(self, path: str, **query: Any) -> dict[str, Any]:
        chosen = urlencode({name: value for name, value in query.items() if value is not None})
        return self._answered("GET", f"{path}?{chosen}", {}, None)

    def _answered(self, method: str, path: str, headers: dict[str, str], body: bytes | None) -> dict[str, Any]:
        """Return the answer, after as many tries as it takes."""
        headers |= {"Authorization": f"Bearer {self._token}"}
        deadline, pause = time.monotonic() + self._patience, 0.05
        while True:
            with self._lock:
                try:
                    self._connection.request(method, path, body, headers)
                    found = self._connection.getresponse()
                    status, answer = found.status, dict(json.loads(found.read()))  # raises if it ends too early
                except (OSError, HTTPException, ValueError, TypeError) as error:
                    self._connection.close()  # the next request opens it again
                    status, answer = 503, {"detail": f"{type(error).__name__}: {error}"}
            if status < 400:
                return answer
            detail = str(answer.get("detail", answer))
            if status not in {408, 429, 500, 502, 503, 504}:  # which do not concern the request itself
                raise RequestRefusedError(detail, status=status, remaining=answer.get("remaining"))
            if time.monotonic() + pause > deadline:
                raise ServiceError(
                    f"{self!r} did not answer within {self._patience:g} seconds ({status}: {detail}); repeat "
                    "the request with the same key to find out whether the step was taken"
                )
            time.sleep(pause * random.uniform(0.5, 1.0))  # clients do not come all at once
            pause = min(2.0 * pause, 2.0)


def _given(**fields: Any) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None and value is not False}
