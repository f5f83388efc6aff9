"""Ledgers of older formats become ledgers of this one, in one transaction; no head changes.

Rows keep the hashes that they had: each says in which format it was written, and so what its hash covers. What the
configuration said goes under "began", so that the first hash can be computed again.
"""

from __future__ import annotations

import json
import re
from typing import Any

from temporaldp.errors import LedgerError
from temporaldp.release.chain import FORMAT, canonical
from temporaldp.release.tables import Transaction, tables

NAME = re.compile(r"temporaldp ledger (\d+)")

OLDEST = 2
"""The oldest format that is known."""


def number_of(name: object) -> int | None:
    """The number of a format, as a configuration names it; None if it is none."""
    found = NAME.fullmatch(name) if isinstance(name, str) else None
    return None if found is None else int(found[1])


CURRENT = number_of(FORMAT) or 0


def is_outdated(configuration: str, place: str) -> bool:
    """Whether a ledger of this configuration has to be migrated.

    Raises
    ------
    LedgerError
        It was made by a newer version, or by one that is too old, or the row was changed.
    """
    try:
        named = json.loads(configuration)["format"]
    except (ValueError, KeyError, TypeError):
        raise LedgerError(f"{place}: the row that says what the ledger is for was changed") from None
    number = number_of(named)
    if number is None or number < OLDEST:
        raise LedgerError(f"{place}: expected format {FORMAT!r}, got {str(named)[:40]!r}")
    if number > CURRENT:
        raise LedgerError(
            f"{place}: the ledger has format {number}, made by a newer version of temporaldp; this one knows formats up to "
            f"{CURRENT}. Install the newer version. Nothing was read or published"
        )
    return number < CURRENT


def migrate(transaction: Transaction, place: str) -> None:
    """Bring a ledger to this format; nothing if another process was faster."""
    heading = transaction.heading()
    if heading is None or not is_outdated(heading[0], place):
        return
    old = json.loads(heading[0])
    number = number_of(old["format"])
    steps = tables().steps
    for column, kind in (("digest", "TEXT"), ("format", f"INTEGER NOT NULL DEFAULT {number}")):
        transaction.connection.exec_driver_sql(f"ALTER TABLE {steps.name} ADD COLUMN {column} {kind}")
    tables().events.create(transaction.connection)
    spelled = _migrated(old)
    transaction.connection.execute(tables().heading.update().values(configuration=spelled))


def require_consistent(configuration: str, place: str) -> None:
    """Refuse a migrated ledger that no longer says what the configuration that it began with said: no hash covers it twice.

    Raises
    ------
    LedgerError
        It was changed.
    """
    began = json.loads(configuration).get("began")
    try:
        told = began is None or configuration == _migrated(began)
    except (ValueError, KeyError, TypeError):
        told = False
    if not told:
        raise LedgerError(f"{place}: the row that says what the ledger is for was changed")


def _migrated(old: dict[str, Any]) -> str:
    return canonical({**_completed(old), "format": FORMAT, "began": old})


def _completed(old: dict[str, Any]) -> dict[str, Any]:
    """What a configuration of this format says besides.

    In format 2, an accountant whose ledger names no bound counted by the paper's, and none had distances. A plan's digest tells
    by which bound it holds its level.
    """
    if old["format"] != "temporaldp ledger 2":
        return old
    return {"bound": None, **old} if old["correlations"] is None else {"bound": "paper", "metric": None, **old}
