"""The rows of a ledger, steps and events, and the chain of hashes over them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from temporaldp.base.errors import LedgerChangedError, LedgerError

if TYPE_CHECKING:
    from temporaldp.publish.release.ledger import Ledger

FORMAT = "temporaldp ledger 10"
"""Name of the only format that is read and written; a ledger of any other format is refused."""

IDENTIFIER = re.compile("[0-9a-f]{32}")
"""Identifier of a ledger, the random nonce of its first entry."""

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
        Argument of the mechanism: a budget in nats, or under a noise plan the scale of the noise; 0 for a step that was not
        published.
    epsilon : float
        Epsilon spent, in nats (under a noise plan at its delta); 0 for a step that was not published.
    leakage : float or None
        The largest temporal privacy leakage of any step up to this one, in nats; None without an accountant.
    last : bool
        Whether the step was declared the last.
    output : str or None
        Published output, as JSON; None for a step that was not published.
    digest : str or None
        Digest of the data of the step, under a key that is stored outside of the ledger and its backups
        (`keyed_digest`); None without a key, and at every step of a service.
    request_key : str or None
        Name of the token and key of the request, by which a service recognises its repetition.
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


class LedgerEvent(NamedTuple):
    """An event between two steps, such as the adoption of another correlation.

    Parameters
    ----------
    number : int
        From 0.
    step : int
        Number of steps before it.
    kind : str
        "adopt".
    at : str
        Time by the clock of the machine: UTC, as ISO 8601.
    by : str
        Name of the person: that of the user account, or as given.
    content : str
        Content, as JSON.
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
    def details(self) -> dict[str, Any]:
        """Content of the event, as JSON values."""
        found: dict[str, Any] = json.loads(self.content)
        return found


class End(NamedTuple):
    """End of a chain.

    Parameters
    ----------
    n_steps, n_events : int
        Steps and events in it.
    head : str
        Hash of the last of them, which stands for the whole chain.
    """

    n_steps: int
    n_events: int
    head: str


Entry = TypeVar("Entry", LedgerRow, LedgerEvent)


def canonical(document: Any) -> str:
    """Return the canonical JSON text of a value, the same for equal values."""
    return ENCODER.encode(document)


def digest(*parts: str) -> str:
    """SHA-256 of texts, one on a line."""
    return hashlib.sha256("\n".join(parts).encode("utf-8")).hexdigest()


def first_hash(configuration: str) -> str:
    """Head of a ledger without rows: the hash of its format and configuration."""
    return digest(FORMAT, configuration)


def signed(entry: LedgerRow | LedgerEvent) -> str:
    """Content that the hash of an entry covers, besides the hash before it, as canonical JSON."""
    kind = [] if isinstance(entry, LedgerRow) else ["event"]
    return canonical([*kind, *entry[:-1]])


def sealed(entry: Entry, head: str) -> Entry:
    """An entry with its hash, which follows the hash `head`."""
    return entry._replace(hash=digest(head, signed(entry)))


def followed(end: End, rows: Iterable[LedgerRow], events: Iterable[LedgerEvent], place: str) -> End:
    """The end of the chain of a ledger at `place` that continues from `end` with these rows and events.

    Raises
    ------
    LedgerChangedError
        A row or event does not follow from the previous ones.
    """
    n_steps, n_events, head = end
    entries: list[LedgerRow | LedgerEvent] = [*events, *rows]
    for entry in sorted(entries, key=_position):
        is_row = isinstance(entry, LedgerRow)
        if is_row and entry.step != n_steps:
            raise changed(place, f"step {n_steps} is missing: the next row is step {entry.step}")
        try:
            head = digest(head, signed(entry))
        except (ValueError, TypeError):  # no value that we write: infinity, bytes
            head = ""
        if entry.hash != head or (not is_row and entry[:2] != (n_events, n_steps)):
            what = (
                f"step {entry.step} (time {entry.time!r})"
                if isinstance(entry, LedgerRow)
                else f"event {entry.number} ({entry.kind}, {entry.at})"
            )
            raise changed(place, f"{what} was changed after it was written, or one before it was")
        n_steps += is_row
        n_events += not is_row
    return End(n_steps, n_events, head)


def contains(rows: Sequence[LedgerRow] | Ledger, events: Sequence[LedgerEvent], end: End) -> bool:
    """Whether a prefix of the chain of these rows and events has this end."""
    n_steps, n_events, head = end
    if n_steps > len(rows) or n_events > len(events):
        return False
    if n_events and events[n_events - 1].step >= n_steps:
        return events[n_events - 1].hash == head
    return n_steps == 0 or rows[n_steps - 1].hash == head


def changed(place: str, problem: str) -> LedgerChangedError:
    """The error of a ledger whose chain is broken."""
    return LedgerChangedError(
        place,
        f"{problem}. It can no longer be trusted; restore it from a backup that contains every published step",
    )


def _position(entry: LedgerRow | LedgerEvent) -> tuple[int, bool]:
    """Sort key of an entry: an event before the step of its number; first if that is not a number, as SQLite permits."""
    return entry.step if isinstance(entry.step, int) else -1, isinstance(entry, LedgerRow)


def first_entry(configuration: dict[str, Any], identifier: str) -> str:
    """The entry before all rows, as it is stored."""
    return canonical({"format": FORMAT, "identifier": identifier, **configuration})


def read_first_entry(spelled: str, place: str) -> tuple[dict[str, Any], str]:
    """Read configuration and identifier of a ledger of this format; `LedgerError` for any other format."""
    try:
        configuration: dict[str, Any] = json.loads(spelled)
        found, identifier = configuration.pop("format"), str(configuration.pop("identifier", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise LedgerError(f"{place}: the row with the configuration was changed") from None
    if found != FORMAT:
        raise LedgerError(
            f"{place}: expected a ledger of format {FORMAT!r}, got {str(found)[:40]!r}; open it with the version of temporaldp "
            "that wrote it. Nothing was read or published"
        )
    if not IDENTIFIER.fullmatch(identifier):
        raise LedgerError(f"{place}: the row with the configuration was changed")
    return configuration, identifier
