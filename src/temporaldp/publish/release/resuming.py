"""The accountant of a ledger's release: from its rows, its checkpoint, and the matrices and the reserve kept beside its chain.

The chain has salted digests of the matrices, against which they are checked when they are read. The reserve is a hint, not a
permission: an accountant checks that it satisfies the level, and computes another if it does not.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any

from temporaldp.base.errors import BudgetError, InputError, LedgerError
from temporaldp.base.values import refuse
from temporaldp.core.accounting import TemporalAccountant
from temporaldp.core.accounting.adoption import KeptAdoption
from temporaldp.core.accounting.methods import accounting_from
from temporaldp.core.correlation import Adversary, Population
from temporaldp.core.correlation.documents import adversary_from
from temporaldp.core.planning import Plan
from temporaldp.publish.release.chain import canonical, digest
from temporaldp.publish.release.database import Store
from temporaldp.publish.release.tables import Transaction

if TYPE_CHECKING:
    from temporaldp.publish.release.ledger import Ledger


def correlations_of(adversaries: Iterable[Adversary], *, salt: str | None = None) -> dict[str, Any]:
    """Salted digests of every adversary's matrices, sorted; users are not named."""
    grain = secrets.token_hex(16) if salt is None else salt
    return {"salt": grain, "users": sorted(adversary.digest(grain) for adversary in adversaries)}


def plan_digest(plan: Plan) -> str:
    """Hash that identifies a plan."""
    return digest(canonical([plan.alpha, plan.identity]))


def hashed_names(population: Population, salt: str) -> Population:
    """The population with pseudonyms, keyed digests, in place of names."""
    names = (None if name is None else digest(f"{salt} {name}") for name in population.names)
    return Population(population.users, tuple(names))


def keep_correlations(store: Store | Transaction, population: Population, salt: str) -> None:
    """Store a population's constant matrices, unless they are stored; not sequences, clocks or sets.

    Raises
    ------
    LedgerError
        They cannot be written.
    """
    if any(user.is_uncertain or user.n_steps is not None or user.period is not None for user in population.users):
        return
    name = _name("correlations", correlations_of(population.users, salt=salt)["users"])
    if store.kept(name) is None:
        found = [{"name": who, **user.document()} for who, user in hashed_names(population, salt)]
        store.keep(name, json.dumps(found, allow_nan=False))


def kept_correlations(ledger: Ledger, users: Sequence[str]) -> Population:
    """The population of a ledger's release with these digests; names are salted digests too.

    Raises
    ------
    LedgerError
        They are not stored, or the stored text was changed.
    """
    text = ledger.store.kept(_name("correlations", sorted(users)))
    if text is None:
        raise LedgerError(
            f"the matrices of {ledger.place} are not kept in it: run the release once more with the same correlation, which "
            "keeps them unless they vary with time (these cannot be replaced), then repeat this command"
        )
    try:
        found = json.loads(text)
        known = tuple(map(adversary_from, found))
        names = tuple(one["name"] for one in found)
    except (ValueError, KeyError, TypeError, RecursionError):
        known, names = (), ()
    salt = ledger.configuration["correlations"]["salt"]
    if not known or correlations_of(known, salt=salt)["users"] != sorted(users):
        raise LedgerError(
            f"the matrices kept in {ledger.place} (table temporaldp_kept) were changed: they are not those of its steps. Put "
            "that table back from a backup"
        )
    return Population(known, names)


def expect_kept_reserve(accountant: TemporalAccountant, ledger: Ledger) -> None:
    """Give an accountant the stored reserve of the release, or store the one it finds.

    Raises
    ------
    LedgerError
        It cannot be read or stored.
    """
    salt = ledger.configuration["correlations"]["salt"]
    users = correlations_of(accountant.population.users, salt=salt)["users"]
    name = _name("reserve", [users, accountant.alpha, accountant.accounting.document()])
    kept = ledger.store.kept(name)
    if kept is None:
        ledger.store.keep(name, repr(accountant.reserve))
        return
    with suppress(ValueError, BudgetError):  # somebody wrote something else there
        accountant.expect_reserve(float(kept))


def _name(kind: str, of: Any) -> str:
    """Name of a kept text that belongs to these JSON values."""
    return f"{kind}-{digest(canonical(of))[:16]}"


def accountant_of(ledger: Ledger) -> TemporalAccountant:
    """The accountant of a ledger's release after all its steps, from the ledger and its stored matrices.

    Raises
    ------
    InputError
        The release has no accountant, or one with distances.
    LedgerError
        The matrices are not stored.
    """
    known = ledger.configuration
    refuse(
        (
            known.get("correlations") is None,
            InputError(
                f"{ledger.place} is the ledger of a plan alone, which has no accountant: what it may spend was fixed "
                "beforehand. For a report, give the correlation (--history FILE); to adopt another one, make a plan and a "
                "ledger for it"
            ),
        ),
        (
            "distances" in known["accounting"],
            InputError(
                f"{ledger.place} is accounted for with distances between states: only a release by Exact() without distances "
                "continues with another correlation"
            ),
        ),
    )
    accountant = resumed(unspent_accountant(ledger, known["correlations"]["users"]), ledger)
    take_in(accountant, ledger)
    return accountant


def unspent_accountant(ledger: Ledger, users: list[str]) -> TemporalAccountant:
    """The accountant of a ledger's release before its first step, with the stored matrices that have these digests."""
    known = ledger.configuration
    return TemporalAccountant(
        kept_correlations(ledger, users),
        None if "renewal" in known else known["alpha"],  # the odometer of all epochs
        accounting=accounting_from(known["accounting"]),
        horizon=known["horizon"],
        reserve=known["reserve"],
    )


def begun(accountant: TemporalAccountant, ledger: Ledger) -> TemporalAccountant:
    """An unused accountant of a ledger's release, advanced to the ledger's checkpoint, if any.

    Its matrices are stored in the ledger; if there are adoptions, the accountant has those of the first step instead.
    """
    known, account = ledger.configuration["correlations"], accountant
    with suppress(LedgerError):  # a disk that is full or read-only: needed only if something is adopted one day
        keep_correlations(ledger.store, account.population, known["salt"])
    if ledger.adoptions:
        accountant = unspent_accountant(ledger, known["users"])
    has_sustainable_reserve = (
        accountant.alpha is not None and accountant.horizon is None and account.asked_reserve is None
    )
    if has_sustainable_reserve and known["users"]:
        with suppress(LedgerError):
            expect_kept_reserve(accountant, ledger)
    return resumed(accountant, ledger)


def is_new(accountant: TemporalAccountant) -> bool:
    """Whether an accountant has spent and adopted nothing."""
    return not len(accountant) and not accountant.n_adopted


def take_in(accountant: TemporalAccountant, ledger: Ledger) -> None:
    """Count the steps and adoptions of a ledger that an accountant has not counted."""
    for event in ledger.adoptions[accountant.n_adopted :]:
        _record(accountant, ledger, event.step)
        details = event.details
        now = kept_correlations(ledger, details["users"])
        accountant.adopt_kept(KeptAdoption(event.step, now, details["both"], details["reserve"]))
    _record(accountant, ledger, len(ledger))


def resumed(accountant: TemporalAccountant, ledger: Ledger) -> TemporalAccountant:
    """The accountant from a ledger's checkpoint on; the given one where there is none, or one that does not fit it."""
    checkpoint = ledger.checkpoint
    if checkpoint is None or not checkpoint.accountant:
        return accountant
    trial = copy(accountant)
    with suppress(InputError, LedgerError):
        known = [
            KeptAdoption(e.step, kept_correlations(ledger, e.details["users"]), e.details["both"], e.details["reserve"])
            for e in ledger.adoptions
            if e.number < checkpoint.end.n_events
        ]
        # Older rows are read only if somebody asks.
        trial.resume(checkpoint.accountant, known, lambda: [row.epsilon for row in ledger[: checkpoint.end.n_steps]])
        return trial
    return accountant


def _record(accountant: TemporalAccountant, ledger: Ledger, end: int) -> None:
    for row in ledger[len(accountant) : end]:
        accountant.spend(row.epsilon, last=row.last, enforce=False)  # another machine's rounding must not refuse a fact
