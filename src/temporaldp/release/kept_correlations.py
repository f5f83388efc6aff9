"""The matrices that a release is accounted with, kept beside its ledger: what is adopted later goes on from them.

They are no part of the ledger, which knows them by salted digests (`temporaldp.release.identity`): a copy of the ledger that is
handed to somebody else says nothing of them. What is read is checked against the digests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from temporaldp.correlation import Adversary, Population, TransitionMatrix
from temporaldp.errors import LedgerError
from temporaldp.release.chain import canonical
from temporaldp.release.identity import correlations_of
from temporaldp.release.store import Store

MISSING = (
    "the matrices that {place} was accounted with are not kept beside it (it was made by an older version, or copied without "
    "its folder .private): run the release once more with the correlation that it had, which keeps them, and then again this"
)


def keep_correlations(store: Store, population: Population, salt: str) -> None:
    """Keep a population's constant matrices, unless they are there; sequences, clocks and sets of matrices are not kept.

    Raises
    ------
    LedgerError
        They cannot be written.
    """
    if not all(user.is_constant for user in population.users):
        return
    name = _name(correlations_of(population.users, salt=salt)["users"])
    if store.read_private(name) is None:
        store.write_private(name, json.dumps([_user(one, who, salt) for who, one in population], allow_nan=False))


def kept_correlations(store: Store, users: Sequence[str], salt: str) -> Population | None:
    """The population with these digests; names are salted digests too. None if it is not kept.

    Raises
    ------
    LedgerError
        What is kept is something else.
    """
    text = store.read_private(_name(users))
    if text is None:
        return None
    try:
        found = json.loads(text)
        matrices = [tuple(_matrix(one[side]) for side in ("backward", "forward")) for one in found]
        names = tuple(one["name"] for one in found)
    except (ValueError, KeyError, TypeError):
        found, matrices, names = [], [], ()
    known = tuple(Adversary(*pair) for pair in matrices)
    if not known or correlations_of(known, salt=salt)["users"] != sorted(users):
        raise LedgerError(
            f"the matrices kept beside {store.place} were changed: they are not those of the ledger. Put back the folder "
            ".private (or the table temporaldp_private) from a backup"
        )
    return Population(known, names)


def hashed_name(name: str | None, salt: str) -> str | None:
    """By which a person is known again without being named."""
    return None if name is None else hashlib.sha256(f"{salt} {name}".encode()).hexdigest()


def hashed_names(population: Population, salt: str) -> Population:
    """The population under such names."""
    return Population(population.users, tuple(hashed_name(name, salt) for name in population.names))


def _name(users: Sequence[str]) -> str:
    return "correlations-" + hashlib.sha256(canonical(sorted(users)).encode("ascii")).hexdigest()[:16]


def _user(adversary: Adversary, name: str | None, salt: str) -> dict[str, Any]:
    return {
        "name": hashed_name(name, salt),
        "backward": _document(adversary.backward),
        "forward": _document(adversary.forward),
    }


def _document(matrix: Any) -> dict[str, Any] | None:
    if matrix is None:
        return None
    import scipy.sparse

    entries = scipy.sparse.csr_array(matrix.probabilities)
    return {
        "states": matrix.states,
        "sparse": scipy.sparse.issparse(matrix.probabilities),
        "rows": entries.indptr.tolist(),
        "columns": entries.indices.tolist(),
        "probabilities": entries.data.tolist(),
    }


def _matrix(document: dict[str, Any] | None) -> TransitionMatrix | None:
    if document is None:
        return None
    import scipy.sparse

    n = len(document["states"])
    parts = [np.array(document[key]) for key in ("probabilities", "columns", "rows")]
    entries = scipy.sparse.csr_array(tuple(parts), shape=(n, n))
    return TransitionMatrix(entries if document["sparse"] else entries.toarray(), states=document["states"])
