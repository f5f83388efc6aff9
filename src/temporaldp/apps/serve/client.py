"""A client of the service, which repeats a request until it is answered, and never spends twice."""

from __future__ import annotations

import json
import re
import ssl
import uuid
from collections.abc import Sequence
from typing import Any

from temporaldp.base.errors import InputError, RequestRefusedError, ServiceError
from temporaldp.base.extras import needing
from temporaldp.base.values import refuse, whole_number
from temporaldp.publish.release.closing import Closing


class Client(Closing):
    """Client of one server, which threads may share.

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
        with needing("client"):
            import httpx
            import tenacity

        refuse(
            (
                not re.fullmatch(r"https?://(\[[0-9a-fA-F:.]+\]|[^\s/:?#@\[\]]+)(:[0-9]{1,5})?/*", address),
                InputError(f"expected an address like http://127.0.0.1:8477, got {address!r}"),
            ),
            (
                not re.fullmatch("[!-~]+", token),
                InputError("expected a token of `temporaldp token create`, without blanks or line breaks"),
            ),
        )
        self._place, self._patience = address.rstrip("/"), patience
        self._http = httpx.Client(
            base_url=self._place,
            headers={"Authorization": f"Bearer {token}"},
            timeout=answer_within,
            verify=ssl.create_default_context(),  # the certificates that the machine trusts
            trust_env=False,  # no proxy
        )
        self._repeated = tenacity.Retrying(
            # ValueError and TypeError: of answers that are no objects
            retry=tenacity.retry_if_exception_type((httpx.HTTPError, ServiceError, ValueError, TypeError))
            & tenacity.retry_if_not_exception_type(RequestRefusedError),
            wait=tenacity.wait_random_exponential(0.05, max=2.0),  # clients do not come all at once
            stop=tenacity.stop_before_delay(patience),
            retry_error_callback=self._give_up,
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def create(self, definition: dict[str, Any], *, key: str | None = None) -> str:
        """Create a release (docs/how-to/service.md) and return its identifier. Key and errors as for `spend`.

        The reserve of every step is computed, which takes seconds, and up to a minute for 64 states.
        """
        return str(self._post("/v1/releases", definition, key)["release"])

    def check(self, release: str, *, epsilon: float | None = None, last: bool = False) -> dict[str, Any]:
        """Return the budget of the next step and its noise, if it may spend `epsilon` (default: the reserve)."""
        return self._post(f"/v1/releases/{release}/check", _given(epsilon=epsilon, last=last))

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
            Whether the time may be more than one step ahead of the clock, or of the last step for labels without a
            clock; for an owner.
        key : str, optional
            Identifier by which a repeated request is recognised, also from another process. Default: a new one.

        Raises
        ------
        RequestRefusedError
            The server refused the budget, the token, or the request. Nothing was spent.
        ServiceError
            There was no answer in time. Repeat the request with the same key to find out whether the step was taken.
        """
        return self._post(
            f"/v1/releases/{release}/spend", _given(epsilon=epsilon, time=time, last=last, ahead=ahead), key
        )

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
        body = _given(epsilon=epsilon, time=time, last=last, ahead=ahead) | {
            "counts": [whole_number(one, "a count") for one in counts]
        }
        return self._post(f"/v1/releases/{release}/publish", body, key)

    def state(self, release: str, *, leakage: bool = False) -> dict[str, Any]:
        """Return the definition of a release, the budgets spent and the budget of the next step.

        Errors are those of `spend`.
        """
        return self._get(f"/v1/releases/{release}", leakage=leakage)

    def steps(self, release: str, *, start: int = 0, limit: int = 100) -> list[dict[str, Any]]:
        """Return the steps taken. Errors are those of `spend`."""
        return list(self._get(f"/v1/releases/{release}/steps", start=start, limit=limit)["steps"])

    def verify(self, release: str, *, head: str | None = None) -> dict[str, Any]:
        """Check the chain from its start; `RequestRefusedError` if it is broken, or lacks a noted head."""
        return self._get(f"/v1/releases/{release}/verify", head=head)

    def _post(self, path: str, body: dict[str, Any], key: str | None = None) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Idempotency-Key": str(key or uuid.uuid4().hex).encode()}
        return self._repeated(self._asked, "POST", path, content=json.dumps(body, allow_nan=False), headers=headers)

    def _get(self, path: str, **query: Any) -> dict[str, Any]:
        return self._repeated(self._asked, "GET", path, params=_given(**query))

    def _asked(self, method: str, path: str, **sent: Any) -> dict[str, Any]:
        """Return the answer to one try; `ServiceError` for a status that does not concern the request itself."""
        found = self._http.request(method, path, **sent)
        is_document = found.is_success or "json" in found.headers.get("content-type", "").lower()
        answer: dict[str, Any] = dict(found.json()) if is_document else {"detail": found.text[:200]}
        if found.is_success:
            return answer
        detail = str(answer.get("detail", answer))
        if found.status_code in {408, 429, 499} or not found.is_client_error:
            raise ServiceError(f"{found.status_code}: {detail}")
        raise RequestRefusedError(detail, status=found.status_code, remaining=answer.get("remaining"))

    def _give_up(self, tries: Any) -> None:
        last = tries.outcome.exception()
        raise ServiceError(
            f"{self._place} did not answer within {self._patience:g} seconds ({type(last).__name__}: {last}); repeat the "
            "request with the same key to find out whether the step was taken"
        )


def _given(**fields: Any) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None and value is not False}
