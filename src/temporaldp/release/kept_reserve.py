"""The reserve of a release, kept beside its ledger, so that opening it again need not look for it.

It is an answer, not a permission: an accountant tries whether the number holds the level, and looks for another if it does not.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress

from temporaldp.accounting import TemporalAccountant
from temporaldp.accounting.accountant import account_of
from temporaldp.errors import BudgetError
from temporaldp.release.chain import canonical
from temporaldp.release.identity import correlations_of
from temporaldp.release.ledger import Ledger


def expect_kept_reserve(accountant: TemporalAccountant, ledger: Ledger) -> None:
    """Tell an accountant what one of the same release found, or keep what this one finds.

    Raises
    ------
    LedgerError
        It cannot be read or kept.
    """
    salt = ledger.configuration["correlations"]["salt"]
    users = correlations_of(account_of(accountant).population.users, salt=salt)["users"]
    asked = canonical([users, accountant.alpha, accountant.accounting.document()])
    name = "reserve-" + hashlib.sha256(asked.encode("ascii")).hexdigest()[:16]
    kept = ledger.store.read_private(name)
    if kept is None:
        ledger.store.write_private(name, repr(accountant.reserve))
        return
    with suppress(ValueError, BudgetError):  # somebody wrote something else there
        account_of(accountant).expect_reserve(float(kept))
