"""Checkpoints of a ledger: what was found by checking and counting all of it, so that opening it goes on from there.

A checkpoint says how far the chain was checked, and what an accountant has to know of the steps until then
(`TemporalAccountant.kept_state`). That tells about the matrices, and is kept among the ledger's private things. The ledger has
an event, in its chain, with the hash of the checkpoint: a checkpoint that was changed, or that belongs to another ledger, to an
older copy with other steps, or to another version of this program, is not used. Then the one before it is, or everything is
read and counted from the first step.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from temporaldp.errors import LedgerError
from temporaldp.release.chain import LedgerEvent, canonical, chained
from temporaldp.release.store import Store

CHECKPOINT = "checkpoint"

EVERY = 100
"""Steps between two checkpoints: so many are read and counted at most when a ledger is opened."""

KEPT = 2
"""Checkpoints that are kept."""

MOST_CHARACTERS = 1 << 25
"""A larger checkpoint, of very many people, is not kept."""

LAYOUT = 3
"""Of a checkpoint."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a ledger was checked, and what was known then.

    Parameters
    ----------
    n_steps, n_events : int
        Steps and events before it.
    head : str
        Of the ledger then.
    calendar : dict or None
        What has to be known of the times until then; None where that is every time.
    accountant : dict or None
        What an accountant has to know; None where there is none.
    """

    n_steps: int
    n_events: int
    head: str
    calendar: dict[str, Any] | None
    accountant: dict[str, Any] | None

    def text(self, began: str, events: Sequence[LedgerEvent]) -> str:
        """As it is kept, for a ledger whose first hash is `began`, and that has these events."""
        return canonical(
            {
                **_made_by(began),
                "n_steps": self.n_steps,
                "n_events": self.n_events,
                "head": self.head,
                "events": _events_digest(events[: self.n_events]),
                "calendar": self.calendar,
                "accountant": self.accountant,
            }
        )


def keep_checkpoint(store: Store, text: str) -> dict[str, Any] | None:
    """Keep a checkpoint; gives the details of its event, or None where it is too large.

    Raises
    ------
    LedgerError
        It cannot be kept.
    """
    if len(text) > MOST_CHARACTERS:
        return None
    digest = _digest(text)
    store.write_private(_name(digest), text)
    return {"digest": digest}


def last_checkpoint(store: Store, began: str, events: Sequence[LedgerEvent]) -> tuple[Checkpoint, LedgerEvent] | None:
    """The last checkpoint that is what the ledger's event says, and its event; None if there is none."""
    made = [event for event in events if event.kind == CHECKPOINT]
    for event in reversed(made[-KEPT:]):
        with suppress(LedgerError, ValueError, KeyError, TypeError):
            digest = event.details["digest"]
            text = store.read_private(_name(digest))
            if text is None or _digest(text) != digest:
                continue
            told = json.loads(text)
            found = Checkpoint(*(told[key] for key in ("n_steps", "n_events", "head", "calendar", "accountant")))
            fits = (
                {key: told[key] for key in _made_by(began)} == _made_by(began)
                and (found.n_steps, found.n_events) == (event.step, event.number)
                and told["events"] == _events_digest(events[: event.number])
                and event.hash == chained(found.head, event.signed)
            )
            if fits:
                return found, event
    return None


def forget_older(store: Store, events: Sequence[LedgerEvent]) -> None:
    """Remove the checkpoints that are not needed any more; what cannot be removed stays."""
    made = [event for event in events if event.kind == CHECKPOINT]
    with suppress(LedgerError, KeyError, ValueError):
        for event in made[-KEPT - 2 : -KEPT]:
            store.remove_private(_name(event.details["digest"]))


def last_checked(events: Sequence[LedgerEvent]) -> int:
    """The number of steps before the last checkpoint, whether it is still there or not."""
    return next((event.step for event in reversed(events) if event.kind == CHECKPOINT), 0)


def _made_by(began: str) -> dict[str, Any]:
    try:
        known = version("temporaldp")
    except PackageNotFoundError:  # used from its source, without being installed
        known = "source"
    return {"layout": LAYOUT, "version": known, "began": began}


def _events_digest(events: Sequence[LedgerEvent]) -> str:
    """Of everything that they say: the rows between them, which would show a change, are not read."""
    return _digest("\n".join(f"{event.signed}\n{event.hash}" for event in events))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _name(digest: str) -> str:
    return f"checkpoint-{digest[:32]}"
