"""The rows of a ledger, steps and events, the chain of hashes over them, and checkpoints.

A checkpoint records how far the chain was checked, and the state of the accountant after these steps
(`TemporalAccountant.kept_state`). It is kept beside the chain, which has an event with its hash: a checkpoint that was changed,
or that belongs to another ledger, to an older copy with other steps, or to another version of this program, is not used. Then
the previous checkpoint is used, or all steps are read and counted from the first.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

from temporaldp import __version__
from temporaldp.base.errors import LedgerChangedError, LedgerError

if TYPE_CHECKING:
    from temporaldp.publish.release.ledger import Ledger, LedgerWriter
    from temporaldp.publish.release.tables import Transaction


LEDGER = "ledger"
"""Name of the release that a ledger holds; a service names its releases by 32 hexadecimal digits."""

LEDGER_FORMAT = "temporaldp ledger 10"
"""Name of the only format that is read and written; a ledger of any other format is refused."""


LEDGER_IDENTIFIER = re.compile("[0-9a-f]{32}")
"""Identifier of a ledger, the random nonce of its first entry."""


EventKind: TypeAlias = Literal["adopt", "begin anew", "checkpoint", "plan", "renewal", "sign", "source", "table"]


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
        "adopt", another correlation from this step on; "source", what the steps after it were computed from; "renewal", before
        the first step, the bound on the leakage of all epochs together; "table", what one table of an account published at a
        step; "checkpoint"; "sign", the chain before it was authenticated with the key of another machine; "begin anew", steps
        that this machine wrote, and which the owner disregards.
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
    kind: EventKind
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
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(*parts: str) -> str:
    """SHA-256 of texts, one on a line."""
    return hashlib.sha256("\n".join(parts).encode("utf-8")).hexdigest()


def first_hash(configuration: str) -> str:
    """Head of a ledger without rows: the hash of its format and configuration."""
    return digest(LEDGER_FORMAT, configuration)


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
    return canonical({"format": LEDGER_FORMAT, "identifier": identifier, **configuration})


def read_first_entry(spelled: str, place: str) -> tuple[dict[str, Any], str]:
    """Read configuration and identifier of a ledger of this format; `LedgerError` for any other format."""
    try:
        configuration: dict[str, Any] = json.loads(spelled)
        found, identifier = configuration.pop("format"), str(configuration.pop("identifier", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise LedgerError(f"{place}: the row with the configuration was changed") from None
    if found != LEDGER_FORMAT:
        raise LedgerError(
            f"{place}: expected a ledger of format {LEDGER_FORMAT!r}, got {str(found)[:40]!r}; open it with the version of "
            "temporaldp that wrote it. Nothing was read or published"
        )
    if not LEDGER_IDENTIFIER.fullmatch(identifier):
        raise LedgerError(f"{place}: the row with the configuration was changed")
    return configuration, identifier


STEPS_BETWEEN_CHECKPOINTS = 100
"""The largest number of steps that is read and counted when a ledger is opened."""


class Checkpoint(NamedTuple):
    """A checked part of a ledger, and the state of its accountant.

    Parameters
    ----------
    end : End
        The end of the ledger's chain at the checkpoint.
    accountant : dict
        State of the accountant; empty without one.
    """

    end: End
    accountant: dict[str, Any]

    def text(self, began: str, events: str) -> str:
        """Text of the checkpoint of a ledger whose first hash is `began`, with the digest of its events (`digest_of`)."""
        return canonical(
            {
                "layout": 7,
                "version": __version__,
                "began": began,
                "events": events,
                "accountant": self.accountant,
                **self.end._asdict(),
            }
        )


def keep_checkpoint(ledger: Ledger, writer: LedgerWriter, accountant: dict[str, Any]) -> bool:
    """Store a checkpoint of a ledger's end, and record it in the chain; False if it is too large.

    Raises
    ------
    LedgerError
        It cannot be stored.
    """
    made = [event for event in ledger.events if event.kind == "checkpoint"]
    last = (made[-1].number, made[-1].details["events"]) if made else (0, "")
    events = digest_of(ledger.events, [writer.end.n_events], *last)
    text = Checkpoint(writer.end, accountant).text(ledger.began, events)
    if len(text) > 1 << 25:  # of very many people
        return False
    writer.transaction.keep(_name(len(made)), text)
    writer.note("checkpoint", by="temporaldp", details={"digest": digest(text), "events": events})
    return True


def last_checkpoint(transaction: Transaction, began: str, events: Sequence[LedgerEvent]) -> Checkpoint | None:
    """Last checkpoint that matches its event in the ledger; None if there is none."""
    made = [event for event in events if event.kind == "checkpoint"]
    for number, event in list(enumerate(made))[:-3:-1]:
        with suppress(LedgerError, ValueError, KeyError, TypeError, RecursionError):
            text = transaction.kept(_name(number)) or ""
            fields = json.loads(text)
            found = Checkpoint(End(*(fields[field] for field in End._fields)), fields["accountant"])
            before = digest_of(events, [one.number for one in made[: number + 1]])
            is_its_own = digest(text) == event.details["digest"] and text == found.text(began, before)
            if is_its_own and found.end[:2] == (event.step, event.number) and sealed(event, found.end.head) == event:
                return found
    return None


def digest_of(events: Sequence[LedgerEvent], ends: Sequence[int], start: int = 0, before: str = "") -> str:
    """Digest of events up to each of these numbers and of the digest before them: that of all events, not read again each time.

    The rows between events, which would reveal a change of one, are not read when a ledger is opened from a checkpoint.
    """
    for end in ends:
        before, start = digest(before, *(f"{signed(event)}\n{event.hash}" for event in events[start:end])), end
    return before


def last_checked(events: Sequence[LedgerEvent]) -> int:
    """The number of steps before the last checkpoint, whether or not it still exists."""
    return next((event.step for event in reversed(events) if event.kind == "checkpoint"), 0)


def _name(number: int) -> str:
    """Name of a checkpoint, counted from the first one of its ledger; two are kept, the next one replaces the older."""
    return f"checkpoint-{number % 2}"
