"""High-water marks: how far this machine has written each ledger, kept outside of the ledgers and of their backups.

A chain of hashes reveals changed entries, but not that the last ones were removed, or that the whole chain was rewritten. A
mark reveals this when the ledger is opened on a machine that wrote to it. There is one mark for each place of a ledger, beside
the key of digests (`key_file`); where it cannot be stored, or on another machine, only a noted head reveals it.
"""

from __future__ import annotations

import json
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from temporaldp.errors import LedgerChangedError
from temporaldp.files.atomic import keep_private
from temporaldp.release.chain import End, contains, digest
from temporaldp.release.input_digest import key_file
from temporaldp.release.tables import LEDGER

if TYPE_CHECKING:
    from temporaldp.release.ledger import Ledger


def mark_file(ledger: Ledger) -> Path:
    """Path of the mark of a ledger. `RuntimeError` where there is no home directory."""
    return key_file().parent / "marks" / digest(ledger.store.database.identity)


def keep_mark(ledger: Ledger) -> None:
    """Replace the mark of a ledger, if it can be stored. After a crash the previous mark is still valid.

    Releases of a service have no mark: several machines write to them, and their clients note heads.
    """
    if ledger.store.release != LEDGER:
        return
    with suppress(OSError, RuntimeError):
        keep_private(mark_file(ledger), json.dumps(ledger.end), replace=True, durable=False)


def require_mark(ledger: Ledger, *, is_new: bool) -> None:
    """Raise an error for a ledger that lacks steps that this machine has written to it; warn if it was just made.

    Raises
    ------
    LedgerChangedError
        The ledger is an older copy, or was edited.
    """
    mark = None
    with suppress(OSError, ValueError, RuntimeError, TypeError):
        mark = End(*json.loads(mark_file(ledger).read_text(encoding="ascii")))
    if mark is None or not mark.n_steps or ledger.store.release != LEDGER or contains(ledger, ledger.events, mark):
        return
    ledger.refresh()  # another process may have written since the ledger was read
    if contains(ledger, ledger.events, mark):
        return
    if not is_new:
        raise LedgerChangedError(
            ledger.place,
            f"this machine has written {mark.n_steps} steps to it, the last of which are missing or were changed: it is an "
            "older copy, was edited, or another ledger was used at this place. Restore one that holds every published step; "
            f"if the budget that they spent may be disregarded, remove {mark_file(ledger)}",
        )
    warnings.warn(
        f"{ledger.place}: this machine has written {mark.n_steps} steps to another ledger at this place, which is missing. The "
        "new one does not count what they spent. If the other was moved or deleted by mistake, put it back before a step",
        stacklevel=2,
    )
