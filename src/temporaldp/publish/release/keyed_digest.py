"""Keyed digests: of the data of steps, and of the head of a ledger.

They reveal whether a released step is requested again with other data, and whether a head was written without the key. A hash
of a few small numbers can be inverted by exhaustive search, and the hash of a changed chain can be computed without a key. So a
digest is an HMAC with SHA-256 under a key that is stored outside of the ledger and its backups, over a nonce, so that equal
data at two steps have different digests.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from temporaldp.base.errors import LedgerError
from temporaldp.data.files.atomic import keep_private
from temporaldp.publish.release.chain import canonical

KEY_BYTES = 32


def key_file() -> Path:
    """Path of the key: `TEMPORALDP_KEY_FILE`, or ``temporaldp/key`` in the user's configuration directory."""
    named = os.environ.get("TEMPORALDP_KEY_FILE")
    configuration = os.environ.get("APPDATA" if os.name == "nt" else "XDG_CONFIG_HOME")
    return Path(named) if named else Path(configuration or Path.home() / ".config") / "temporaldp" / "key"


def keyed_digest(kind: str, value: Any) -> str | None:
    """Return the digest of a value. The key is made if there is none.

    None for a value that JSON cannot spell, and where no key can be kept. A digest of one kind ("data" of a step, or
    the "head" of a ledger) is never taken for one of the other. `LedgerError` for a key that exists and cannot be used.
    """
    spelled, key = _spelled(value), _key(make=True)
    return None if spelled is None or key is None else _digest(key, secrets.token_hex(16), kind, spelled)


def matches(kept: str | None, kind: str, value: Any) -> bool | None:
    """Return whether a digest is of this value; None without a digest, or where its key is missing or cannot be used."""
    spelled, key = _spelled(value), None
    with suppress(LedgerError):  # who may not read the key may read the ledger
        key = _key()
    if kept is None or spelled is None or key is None:
        return None
    name, nonce, *_ = f"{kept}:".split(":")
    return (
        hmac.compare_digest(kept.encode(), _digest(key, nonce, kind, spelled).encode()) if name == _name(key) else None
    )


def _digest(key: bytes, nonce: str, kind: str, spelled: str) -> str:
    made = hmac.new(key, f"{kind}:{nonce}:{spelled}".encode(), hashlib.sha256)
    return f"{_name(key)}:{nonce}:{made.hexdigest()}"


def _key(*, make: bool = False) -> bytes | None:
    """The key, which is made if it is missing and wanted; None if there is none.

    Raises
    ------
    LedgerError
        It exists, but cannot be read, is no key, or others than its owner may read it.
    """
    try:
        file = key_file()
    except RuntimeError:  # no home directory
        return None
    try:
        if make and _is_missing(file):
            with suppress(OSError):  # a folder that cannot be made or written to
                keep_private(file, secrets.token_hex(KEY_BYTES))  # unless another process is faster
        if _is_missing(file):
            return None
        return _read(file, (now := file.stat()).st_mode, now.st_ino, now.st_mtime_ns, now.st_ctime_ns)
    except (OSError, ValueError) as error:
        problem = (error.strerror or "it cannot be read") if isinstance(error, OSError) else str(error)
        raise LedgerError(
            f"cannot use the key {file}: {problem}. Without it, heads would lose their authentication and changed data would "
            "not be detected; make it readable, or name another key (TEMPORALDP_KEY_FILE)"
        ) from None


def _is_missing(file: Path) -> bool:
    """Whether there is no such file; `OSError` if that cannot be found out."""
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    return False


@lru_cache
def _read(file: Path, mode: int, *_: int) -> bytes:
    """The key of a file, which is read again if it changed; `ValueError` if it is no key, or not private."""
    if os.name == "posix" and mode & 0o077:
        raise ValueError(
            f"others than its owner may read or write it (mode {stat.S_IMODE(mode):o}); if no other user has read it: "
            f"chmod 600 {file}"
        )
    try:
        found = bytes.fromhex(file.read_text(encoding="ascii"))
    except ValueError:  # its message would quote the key
        found = b""
    if len(found) != KEY_BYTES:
        raise ValueError(f"expected {2 * KEY_BYTES} hexadecimal digits")
    return found


def _name(key: bytes) -> str:
    """Name of the key in a digest."""
    return hashlib.sha256(key).hexdigest()[:8]


def _spelled(value: Any) -> str | None:
    """Numbers and text as JSON has them; None for anything else."""
    with suppress(TypeError, ValueError):
        return (
            None
            if value is None
            else canonical(value.tolist() if isinstance(value, np.ndarray | np.generic) else value)
        )
    return None
