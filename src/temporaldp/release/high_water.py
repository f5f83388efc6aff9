"""High-water marks: how far this machine has written each ledger, kept outside of the ledgers and of their backups.

A chain of hashes reveals changed entries, but not that the last ones were removed, or that the whole chain was rewritten. A
mark reveals this when the ledger is opened on a machine that wrote to it. It is stored beside the key of digests (`key_file`)
under the identifier in the ledger's first entry, wherever the ledger lies. Beside the marks there is a file for each name of a
ledger, its place and the output that is published from it, with the identifier of the ledger that was written last under this
name: it reveals that a ledger was lost, or replaced by another one. Where marks cannot be stored, or on another machine, a
chain made anew is revealed by the MAC of the head if the key is the same (`temporaldp.release.keyed_digest`), and otherwise by
a noted head.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from temporaldp.errors import LedgerError
from temporaldp.files.atomic import keep_private
from temporaldp.release.chain import End, contains, digest
from temporaldp.release.keyed_digest import key_file
from temporaldp.release.tables import LEDGER
from temporaldp.values import plural

if TYPE_CHECKING:
    from temporaldp.release.ledger import Ledger

BEGIN = "begin anew"
"""Kind of an event that records steps which this machine wrote, and which the owner disregards."""

IDENTIFIER = re.compile("[0-9a-f]{32}")
"""Identifier of a ledger, the random nonce of its first entry."""


class Mark(NamedTuple):
    """How far this machine has written a ledger.

    Parameters
    ----------
    ledger : str
        Identifier of the ledger.
    place : str
        Where the ledger was.
    end : End
        End of its chain.
    """

    ledger: str
    place: str
    end: End

    def words(self, identifier: str | None) -> str:
        """What a ledger with this identifier lacks, None for one that would be new, and what can be done."""
        steps = f"this machine has written {plural(self.end.n_steps, 'step')} to"
        if self.ledger == identifier:
            problem = f"{steps} it, the last of which are missing or were changed: it is an older copy, or was edited"
        else:
            known = "there is no ledger" if identifier is None else "this is another ledger"
            problem = f"{steps} the ledger of this place or output (then at {self.place}), and {known}"
        return (
            f"{problem}. Restore one that holds every published step. If none is left, an owner may begin anew (`--begin-anew` "
            "of the command that writes, `begin_anew=True` in Python): published times are then drawn again with new noise, "
            "what was spent on them before is not counted, and both releases together may exceed the level"
        )


def mark_file(identifier: str) -> Path:
    """Path of the mark of a ledger. `RuntimeError` where there is no home directory."""
    return key_file().parent / "marks" / identifier


def keep_mark(ledger: Ledger) -> None:
    """Replace the mark of a ledger that has steps, if it can be stored. After a crash the previous mark is still valid.

    Releases of a service have no mark: several machines write to them, and their clients note heads.
    """
    if ledger.store.release != LEDGER or not len(ledger):
        return
    with suppress(OSError, RuntimeError):
        kept = json.dumps([ledger.store.names[0], ledger.end])
        keep_private(mark_file(ledger.identifier), kept, replace=True, durable=False)
        for name in ledger.store.names:
            if _last_at(name) != ledger.identifier:
                keep_private(name_file(name), ledger.identifier, replace=True, durable=False)


def read_mark(identifier: str) -> Mark | None:
    """Return the mark of a ledger; None without one."""
    with suppress(OSError, ValueError, RuntimeError, TypeError):
        place, end = json.loads(mark_file(identifier).read_text(encoding="utf-8"))
        return Mark(identifier, place, End(*end))
    return None


def require_readable(*files: Path) -> None:
    """Raise `LedgerError` where a file among the marks exists and cannot be read: it may show what a ledger lacks."""
    for file in files:
        try:
            file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise LedgerError(
                f"cannot read {file}, which shows how far this machine has written a ledger: {error.strerror or error}. "
                "Correct its owner and rights, and those of its folder (a run of another user may have made it)"
            ) from None


def mark_at(names: Iterable[str]) -> Mark | None:
    """Return the mark of the ledger that was written last under one of these names; None without one."""
    known = (_last_at(name) for name in names)
    return next((mark for one in known if one is not None and (mark := read_mark(one)) is not None), None)


def missing_steps(ledger: Ledger, mark: Mark | None) -> Mark | None:
    """The mark of steps that a ledger lacks, whose mark was read before its rows; None if it lacks none.

    Without a mark of its own, these are the steps of another ledger that had its place, or its output.
    """
    if ledger.store.release != LEDGER:
        return None
    wanted = mark or mark_at(ledger.store.names)
    if wanted is None or (mark is not None and contains(ledger, ledger.events, mark.end)):
        return None
    if mark is None and wanted.ledger == ledger.identifier:  # its first step was written after the rows were read
        return None
    begun = (event.details["head"] for event in ledger.events if event.kind == BEGIN)
    return None if wanted.end.head in begun else wanted


def name_file(name: str) -> Path:
    """Path of the file of a name of a ledger. `RuntimeError` where there is no home directory."""
    return mark_file(digest(name))


def _last_at(name: str) -> str | None:
    """Identifier of the ledger that was written last under a name; None if there is none."""
    with suppress(OSError, ValueError, RuntimeError):
        found = name_file(name).read_text(encoding="ascii")
        return found if IDENTIFIER.fullmatch(found) else None
    return None
