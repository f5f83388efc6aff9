"""Checkpoints of a ledger: results of checking and counting its steps, from which the next opening continues.

A checkpoint records how far the chain was checked, and the state of the accountant after these steps
(`TemporalAccountant.kept_state`). It is kept beside the chain, which has an event with its hash: a checkpoint that was changed,
or that belongs to another ledger, to an older copy with other steps, or to another version of this program, is not used. Then
the previous checkpoint is used, or all steps are read and counted from the first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from temporaldp import __version__
from temporaldp.base.errors import LedgerError
from temporaldp.publish.release.chain import End, LedgerEvent, canonical, digest, sealed, signed
from temporaldp.publish.release.tables import Transaction

if TYPE_CHECKING:
    from temporaldp.publish.release.ledger import Ledger, LedgerWriter

CHECKPOINT = "checkpoint"

EVERY = 100
"""Steps between two checkpoints: the largest number that is read and counted when a ledger is opened."""

KEPT = 2
"""Number of stored checkpoints: the next one replaces the oldest."""

LAYOUT = 7
"""Of a checkpoint."""


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
                "layout": LAYOUT,
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
    made = [event for event in ledger.events if event.kind == CHECKPOINT]
    last = (made[-1].number, made[-1].details["events"]) if made else (0, "")
    events = digest_of(ledger.events, [writer.end.n_events], *last)
    text = Checkpoint(writer.end, accountant).text(ledger.began, events)
    if len(text) > 1 << 25:  # of very many people
        return False
    writer.transaction.keep(_name(len(made)), text)
    writer.note(CHECKPOINT, by="temporaldp", details={"digest": digest(text), "events": events})
    return True


def last_checkpoint(transaction: Transaction, began: str, events: Sequence[LedgerEvent]) -> Checkpoint | None:
    """Last checkpoint that matches its event in the ledger; None if there is none."""
    made = [event for event in events if event.kind == CHECKPOINT]
    for number, event in list(enumerate(made))[: -KEPT - 1 : -1]:
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
    return next((event.step for event in reversed(events) if event.kind == CHECKPOINT), 0)


def _name(number: int) -> str:
    """Name of a checkpoint, counted from the first one of its ledger."""
    return f"checkpoint-{number % KEPT}"
