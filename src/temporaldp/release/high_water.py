"""High-water marks: how far this machine has written each ledger, kept outside of the ledgers and of their backups.

A chain of hashes shows that entries were changed, not that the last ones are gone, or that all of it was written anew. A mark
does, to whoever opens the ledger on a machine that wrote to it. Marks lie beside the key of digests (`key_file`); where they
cannot be kept, or on another machine, only a noted head tells.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from temporaldp.errors import LedgerChangedError
from temporaldp.release.input_digest import key_file
from temporaldp.release.tables import LEDGER

if TYPE_CHECKING:
    from temporaldp.release.ledger import Ledger


class Mark(NamedTuple):
    """Numbers of steps and events that a ledger had, and the hash of the last of them."""

    n_steps: int
    n_events: int
    head: str


def mark_file(ledger: Ledger) -> Path:
    """Path of the mark of a ledger. `RuntimeError` where there is no home directory."""
    name = hashlib.sha256(f"{ledger.store.database.identity}\n{ledger.began}".encode()).hexdigest()
    return key_file().parent / "marks" / name


def keep_mark(ledger: Ledger) -> None:
    """Replace the mark of a ledger, if it can be kept. One that a crash loses leaves the one before, which still holds.

    Releases of a service have none: several machines write to them, and their clients note heads.
    """
    if ledger.store.release != LEDGER:
        return
    with suppress(OSError, RuntimeError):
        file = mark_file(ledger)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}-")
        try:
            with os.fdopen(handle, "w", encoding="ascii") as target:
                json.dump(Mark(len(ledger), len(ledger.events), ledger.head), target)
            Path(temporary).replace(file)
        finally:
            Path(temporary).unlink(missing_ok=True)


def require_mark(ledger: Ledger) -> None:
    """Refuse a ledger that lacks what this machine has written to it.

    Raises
    ------
    LedgerChangedError
        It is an older copy, or was edited.
    """
    mark = None
    with suppress(OSError, ValueError, RuntimeError, TypeError):
        mark = Mark(*json.loads(mark_file(ledger).read_text(encoding="ascii")))
    if mark is None or _contains(ledger, mark):
        return
    ledger.refresh()  # another process may have written since the ledger was read
    if _contains(ledger, mark):
        return
    raise LedgerChangedError(
        ledger.place,
        f"this machine has written {mark.n_steps} steps to it, the last of which are missing or were changed: it is an older "
        "copy, or was edited. Restore one that holds every published step; if what they spent is to be forgotten, remove "
        f"{mark_file(ledger)}",
    )


def _contains(ledger: Ledger, mark: Mark) -> bool:
    """Whether the entry that a mark stands for is in the chain."""
    if mark.n_steps > len(ledger) or mark.n_events > len(ledger.events):
        return False
    if mark.n_events and ledger.events[mark.n_events - 1].step >= mark.n_steps:
        return ledger.events[mark.n_events - 1].hash == mark.head
    return mark.n_steps == 0 or ledger[mark.n_steps - 1].hash == mark.head
