"""The rows of a ledger and the chain of hashes that ties each to all before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

FORMAT = "temporaldp ledger 3"


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One step of a release.

    Parameters
    ----------
    step : int
        From 0.
    time : str
        The step's label.
    parameter : float
        What the mechanism was called with: a budget in nats, or under a noise plan the scale of the noise; 0 for a step that
        was not published.
    epsilon : float
        What was spent, in nats (under a noise plan at its delta); 0 for a step that was not published.
    leakage : float or None
        The largest temporal privacy leakage of any step once this one was spent, in nats; None without an accountant.
    last : bool
        Whether the step was declared the last.
    output : str or None
        What was published, as JSON; None for a step that was not.
    hash : str
        SHA-256 of this row and the hash before it.
    """

    step: int
    time: str
    parameter: float
    epsilon: float
    leakage: float | None
    last: bool
    output: str | None
    hash: str

    @property
    def content(self) -> list[Any]:
        """Everything but the hash."""
        return [self.step, self.time, self.parameter, self.epsilon, self.leakage, self.last, self.output]


def canonical(document: Any) -> str:
    """One spelling for equal JSON values."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def first_hash(configuration: str) -> str:
    """The head of a ledger without rows: what it is for."""
    return _digest(FORMAT, configuration)


def chained(previous: str, content: list[Any]) -> str:
    """The hash of a row with this content after the hash `previous`."""
    return _digest(previous, canonical(content))


def broken_link(rows: Iterable[LedgerRow], *, start: int, previous: str) -> str | None:
    """What is wrong with the first row that does not follow from those before it; None if all do."""
    for position, row in enumerate(rows, start=start):
        if row.step != position:
            return f"step {position} is missing: the next row is step {row.step}"
        try:
            previous = chained(previous, row.content)
        except (ValueError, TypeError):  # no value that we write: infinity, bytes
            previous = ""
        if row.hash != previous:
            return f"step {position} (time {row.time!r}) was changed after it was written, or a row before it was"
    return None


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8")).hexdigest()
