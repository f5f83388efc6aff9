"""Texts stored beside the chain of a ledger: the matrices of a release, and its reserve.

The chain has salted digests of the matrices, against which they are checked when they are read. The reserve is a hint, not a
permission: an accountant checks that it satisfies the level, and computes another if it does not.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from temporaldp.base.errors import BudgetError, LedgerError
from temporaldp.core.accounting import TemporalAccountant
from temporaldp.core.correlation import Adversary, Population
from temporaldp.core.correlation.documents import correlation_from
from temporaldp.core.planning import Plan
from temporaldp.publish.release.chain import canonical, digest
from temporaldp.publish.release.store import Store
from temporaldp.publish.release.tables import Transaction

if TYPE_CHECKING:
    from temporaldp.publish.release.ledger import Ledger


def correlations_of(adversaries: Iterable[Adversary], *, salt: str | None = None) -> dict[str, Any]:
    """Salted digests of every adversary's matrices, sorted; users are not named."""
    grain = secrets.token_hex(16) if salt is None else salt
    return {"salt": grain, "users": sorted(_digest(adversary, grain) for adversary in adversaries)}


def plan_digest(plan: Plan) -> str:
    """Hash that identifies a plan."""
    return digest(canonical([plan.alpha, plan.identity]))


def hashed_names(population: Population, salt: str) -> Population:
    """The population with pseudonyms, keyed digests, in place of names."""
    names = (None if name is None else digest(f"{salt} {name}") for name in population.names)
    return Population(population.users, tuple(names))


def keep_correlations(store: Store | Transaction, population: Population, salt: str) -> None:
    """Store a population's constant matrices, unless they are stored; sequences, clocks and sets of matrices are not.

    Raises
    ------
    LedgerError
        They cannot be written.
    """
    if not all(user.is_constant for user in population.users):
        return
    name = _name("correlations", correlations_of(population.users, salt=salt)["users"])
    if store.kept(name) is None:
        found = [
            {"name": who, "backward": user.backward.document(), "forward": user.forward.document()}
            for who, user in hashed_names(population, salt)
        ]
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
        known = tuple(Adversary(*(correlation_from(one[side]) for side in ("backward", "forward"))) for one in found)
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


def _digest(adversary: Adversary, salt: str) -> str:
    whole, known = hashlib.sha256(salt.encode("ascii")), dict[int, bytes]()
    for direction in adversary.directions:
        whole.update(f"|{direction.kind} {len(direction.matrices)}".encode("ascii"))
        for matrix in direction.matrices:
            if id(matrix) not in known:  # a clock over years has few matrices
                own = hashlib.sha256()
                matrix.update_digest(own)
                known[id(matrix)] = own.digest()
            whole.update(known[id(matrix)])
    return whole.hexdigest()
