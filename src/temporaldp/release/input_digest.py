"""Whether a step that was released is asked for again with other data: digests of its input, under a key kept apart.

A hash of a few small numbers can be guessed by trying. So the digest is keyed (HMAC with SHA-256), and the key is kept among
the ledger's private things (`Store.read_private`), outside of what is copied or shown as the ledger. The time goes into the
digest, so that equal inputs at two steps have different ones.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any

import numpy as np

from temporaldp.errors import LedgerError
from temporaldp.release.chain import canonical
from temporaldp.release.store import Store

KEY = "key"

KEY_DIGITS = 8
"""Of the hash of a key, by which a digest says under which key it was made."""


class InputDigests:
    """Digests of inputs under a ledger's key, which is made when it is first needed.

    Parameters
    ----------
    store : Store
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._key: str | None = None

    def digest(self, time: str, snapshot: Any) -> str | None:
        """The digest of what a step is drawn from; None for data that have no plain spelling, or where no key can be kept."""
        spelled = _spelled(snapshot)
        if spelled is None:
            return None
        try:
            key = self._known_key()
        except LedgerError:  # the disk is full or read-only: the step itself does not need it
            return None
        made = hmac.new(bytes.fromhex(key), canonical([time, spelled]).encode("utf-8"), hashlib.sha256)
        return f"{_name(key)}:{made.hexdigest()}"

    def differs(self, kept: str | None, time: str, snapshot: Any) -> bool | None:
        """Whether the input is another one than that of a digest; None where nothing can be said, as after a key was lost."""
        now = None if kept is None or snapshot is None else self.digest(time, snapshot)
        if kept is None or now is None or kept.partition(":")[0] != now.partition(":")[0]:
            return None
        return not hmac.compare_digest(kept, now)

    def _known_key(self) -> str:
        if self._key is None:
            self._key = self._store.read_private(KEY) or self._store.write_private(KEY, secrets.token_hex(32))
        return self._key


def _name(key: str) -> str:
    return hashlib.sha256(bytes.fromhex(key)).hexdigest()[:KEY_DIGITS]


def _spelled(snapshot: Any) -> Any:
    """Numbers and text as JSON has them; None for anything else."""
    plain = snapshot.tolist() if isinstance(snapshot, np.ndarray | np.generic) else snapshot
    try:
        canonical(plain)
    except (TypeError, ValueError):
        return None
    return plain
