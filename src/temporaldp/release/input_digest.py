"""Keyed digests of the data of steps, which reveal whether a released step is requested again with other data.

A hash of a few small numbers can be inverted by exhaustive search. So a digest is an HMAC with SHA-256 under a key that is
stored outside of the ledger and its backups, over a nonce, so that equal data at two steps have different digests.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from temporaldp.files.atomic import keep_private
from temporaldp.release.chain import canonical

KEY_BYTES = 32


def key_file() -> Path:
    """Path of the key: `TEMPORALDP_KEY_FILE`, or ``temporaldp/key`` in the user's configuration directory."""
    named = os.environ.get("TEMPORALDP_KEY_FILE")
    configuration = os.environ.get("APPDATA" if os.name == "nt" else "XDG_CONFIG_HOME")
    return Path(named) if named else Path(configuration or Path.home() / ".config") / "temporaldp" / "key"


def input_digest(snapshot: Any) -> str | None:
    """Return the digest of the data of a step. The key is made if there is none.

    None for data that JSON cannot spell, and where no key can be read or kept.
    """
    spelled = _spelled(snapshot)
    key = None if spelled is None else _key(make=True)
    return None if spelled is None or key is None else _digest(key, secrets.token_hex(16), spelled)


def input_differs(kept: str | None, snapshot: Any) -> bool | None:
    """Return whether the data differ from those of a digest; None without a digest or its key."""
    spelled, key = _spelled(snapshot), _key()
    if kept is None or spelled is None or key is None:
        return None
    name, nonce, _ = kept.split(":")
    return not hmac.compare_digest(kept, _digest(key, nonce, spelled)) if name == _name(key) else None


def _digest(key: bytes, nonce: str, spelled: str) -> str:
    made = hmac.new(key, f"{nonce}:{spelled}".encode(), hashlib.sha256)
    return f"{_name(key)}:{nonce}:{made.hexdigest()}"


def _key(*, make: bool = False) -> bytes | None:
    """The key, which is made if it is missing and wanted; None if it cannot be kept, or others than its owner may read it."""
    with suppress(OSError, ValueError, RuntimeError):  # RuntimeError: no home directory
        file = key_file()
        if make and not file.exists():
            keep_private(file, secrets.token_hex(KEY_BYTES))  # unless another process is faster
        found = bytes.fromhex(file.read_text(encoding="ascii"))
        is_private = os.name != "posix" or not file.stat().st_mode & 0o077
        return found if is_private and len(found) == KEY_BYTES else None
    return None


def _name(key: bytes) -> str:
    """Name of the key in a digest."""
    return hashlib.sha256(key).hexdigest()[:8]


def _spelled(snapshot: Any) -> str | None:
    """Numbers and text as JSON has them; None for anything else."""
    plain = snapshot.tolist() if isinstance(snapshot, np.ndarray | np.generic) else snapshot
    with suppress(TypeError, ValueError):
        return None if plain is None else canonical(plain)
    return None
