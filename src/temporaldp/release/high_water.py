"""High-water marks: how far this machine has written each ledger, kept outside of the ledgers and of their backups.

A chain of hashes reveals changed entries, but not that the last ones were removed, or that the whole chain was rewritten. A
mark reveals this when the ledger is opened on a machine that wrote to it. There is one mark for each place of a ledger, beside
the key of digests (`key_file`). Where it cannot be stored, or on another machine, a chain made anew is revealed by the MAC of
the head if the key is the same (`temporaldp.release.keyed_digest`), and otherwise by a noted head.
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
from temporaldp.release.keyed_digest import key_file
from temporaldp.release.tables import LEDGER

if TYPE_CHECKING:
    from temporaldp.release.ledger import Ledger
    from temporaldp.release.store import Store


def mark_file(store: Store) -> Path:
    """Path of the mark of a ledger. `RuntimeError` where there is no home directory."""
    return key_file().parent / "marks" / digest(store.database.identity)


def keep_mark(ledger: Ledger) -> None:
    """Replace the mark of a ledger, if it can be stored. After a crash the previous mark is still valid.

    Releases of a service have no mark: several machines write to them, and their clients note heads.
    """
    if ledger.store.release == LEDGER:
        with suppress(OSError, RuntimeError):
            keep_private(mark_file(ledger.store), json.dumps(ledger.end), replace=True, durable=False)


def read_mark(store: Store) -> End | None:
    """Return the mark of a ledger; None without one."""
    with suppress(OSError, ValueError, RuntimeError, TypeError):
        return End(*json.loads(mark_file(store).read_text(encoding="ascii"))) if store.release == LEDGER else None
    return None


def require_mark(ledger: Ledger, mark: End | None, *, is_new: bool) -> None:
    """Raise an error for a ledger that lacks the steps of a mark, which was read before it; warn if it was just made.

    Raises
    ------
    LedgerChangedError
        The ledger is an older copy, or was edited.
    """
    if mark is None or not mark.n_steps or contains(ledger, ledger.events, mark):
        return
    if not is_new:
        raise LedgerChangedError(
            ledger.place,
            f"this machine has written {mark.n_steps} steps to it, the last of which are missing or were changed: it is an "
            "older copy, was edited, or another ledger was used at this place. Restore one that holds every published step; "
            f"if the budget that they spent may be disregarded, remove {mark_file(ledger.store)}",
        )
    warnings.warn(
        f"{ledger.place}: this machine has written {mark.n_steps} steps to another ledger at this place, which is missing. The "
        "new one does not count what they spent. If the other was moved or deleted by mistake, put it back before a step",
        stacklevel=2,
    )
