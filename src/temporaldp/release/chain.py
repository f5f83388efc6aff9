"""The rows of a ledger, steps and events, and the chain of hashes that ties each to all before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

FORMAT = "temporaldp ledger 6"
"""Name of the only format that is read and written; a ledger of any other format is refused."""

ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


class LedgerRow(NamedTuple):
    """One step of a release. A plain tuple, as a report may read half a million of them.

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
    digest : str or None
        Of the data that the step was drawn from, under a key that is kept outside of the ledger and its backups
        (`temporaldp.release.input_digest`); None without a key, and at every step of a service.
    request_key : str or None
        By which a service recognises the request when it is repeated: its token's name and its key.
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
    digest: str | None
    request_key: str | None
    hash: str

    @property
    def signed(self) -> str:
        """Everything that the hash covers, besides the hash before it, as canonical JSON."""
        return canonical(self[:-1])


class LedgerEvent(NamedTuple):
    """Something that happened between two steps, such as the adoption of another correlation.

    Parameters
    ----------
    number : int
        From 0.
    step : int
        How many steps there were before it.
    kind : str
        "adopt".
    at : str
        When, by the clock of the machine: UTC, as ISO 8601.
    by : str
        Who: the name of the account on the machine, or what was given.
    content : str
        What, as JSON.
    hash : str
        SHA-256 of this event and the hash before it.
    """

    number: int
    step: int
    kind: str
    at: str
    by: str
    content: str
    hash: str

    @property
    def signed(self) -> str:
        """Everything that the hash covers, besides the hash before it, as canonical JSON."""
        return canonical(["event", *self[:-1]])

    @property
    def details(self) -> dict[str, Any]:
        """The content."""
        found: dict[str, Any] = json.loads(self.content)
        return found


Entry: TypeAlias = LedgerRow | LedgerEvent


def canonical(document: Any) -> str:
    """One spelling for equal JSON values."""
    return ENCODER.encode(document)


def first_hash(configuration: str) -> str:
    """Head of a ledger without rows: the hash of its format and configuration."""
    return _digest(FORMAT, configuration)


def chained(previous: str, signed: str) -> str:
    """The hash of a row that says this after the hash `previous`."""
    return _digest(previous, signed)


def in_order(rows: Iterable[LedgerRow], events: Iterable[LedgerEvent]) -> Iterator[Entry]:
    """Steps, and before each of them the events that came before it."""
    waiting = iter(events)
    event = next(waiting, None)
    for row in rows:
        while event is not None and event.step <= row.step:
            yield event
            event = next(waiting, None)
        yield row
    while event is not None:
        yield event
        event = next(waiting, None)


def broken_link(entries: Iterable[Entry], *, start: int, n_events: int, previous: str) -> str | None:
    """What is wrong with the first entry that does not follow from those before it; None if all do."""
    position = start
    for entry in entries:
        if isinstance(entry, LedgerEvent):
            if entry.number != n_events or entry.step != position or entry.hash != chained(previous, entry.signed):
                return f"event {entry.number} ({entry.kind}, {entry.at}) was changed after it was written, or one before it"
            n_events += 1
            previous = entry.hash
            continue
        if entry.step != position:
            return f"step {position} is missing: the next row is step {entry.step}"
        try:
            previous = chained(previous, entry.signed)
        except (ValueError, TypeError):  # no value that we write: infinity, bytes
            previous = ""
        if entry.hash != previous:
            return f"step {position} (time {entry.time!r}) was changed after it was written, or a row before it was"
        position += 1
    return None


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8")).hexdigest()
