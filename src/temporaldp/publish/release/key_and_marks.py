"""What a machine keeps outside of ledgers and of their backups: the key of digests, and high-water marks.

Keyed digests reveal whether a released step is requested again with other data, and whether a head was written without the key.
A hash of a few small numbers can be inverted by exhaustive search, and the hash of a changed chain can be computed without a
key. So a digest is an HMAC with SHA-256 under a key that is stored outside of the ledger, over a nonce, so that equal data at
two steps have different digests.

High-water marks record how far this machine has written each ledger. A chain of hashes reveals changed entries, but not that
the last ones were removed, or that the whole chain was rewritten. A mark reveals this when the ledger is opened on a machine
that wrote to it. It is stored beside the key (`key_file`) under the identifier in the ledger's first entry, wherever the ledger
lies. Beside the marks there is a file for each name of a ledger, its place and the output that is published from it, with the
identifier of the ledger that was written last under this name: it reveals that a ledger was lost, or replaced by another one.
Where marks cannot be stored, or on another machine, a chain made anew is revealed by the MAC of the head if the key is the same
(`keyed_digest`), and otherwise by a noted head.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from temporaldp.base.errors import InputError, LedgerChangedError, LedgerError, TemporaldpError
from temporaldp.base.values import plural
from temporaldp.data.files.atomic import keep_private
from temporaldp.publish.release.chain import LEDGER, LEDGER_IDENTIFIER, End, canonical, contains, digest

if TYPE_CHECKING:
    from temporaldp.publish.release.ledger import Ledger


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
                keep_private(file, secrets.token_hex(32))  # unless another process is faster
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
    if len(found) != 32:
        raise ValueError("expected 64 hexadecimal digits")
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


Content = TypeVar("Content")


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

    def refusal(self, place: str, identifier: str | None) -> LedgerChangedError:
        """What the ledger at a place lacks, by its identifier (None for one that would be new), and what can be done."""
        steps = f"this machine has written {plural(self.end.n_steps, 'step')} to"
        if self.ledger == identifier:
            problem = f"{steps} it, the last of which are missing or were changed: it is an older copy, or was edited"
        else:
            known = "there is no ledger" if identifier is None else "this is another ledger"
            problem = f"{steps} the ledger of this place or output (then at {self.place}), and {known}"
        return LedgerChangedError(
            place,
            f"{problem}. Restore one that holds every published step. If none is left, an owner may begin anew (`--begin-anew` "
            "of the command that writes, `begin_anew=True` in Python): published times are then drawn again with new noise, "
            "what was spent on them before is not counted, and both releases together may exceed the level",
        )


def require_decision(missing: TemporaldpError | None, *, begin_anew: bool) -> None:
    """Refuse to draw published steps again, unless an owner begins anew, and `begin_anew` where none is missing.

    There it would have no effect now, and draw a lost ledger again later.
    """
    if missing is not None and not begin_anew:
        raise missing
    if missing is None and begin_anew:
        raise InputError(
            "--begin-anew (begin_anew=True in Python) disregards published steps that are missing, and none is missing here: "
            "leave it out"
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
    with suppress(OSError, RuntimeError, LedgerError):
        kept = json.dumps([ledger.store.names[0], ledger.end])
        keep_private(mark_file(ledger.identifier), kept, replace=True, durable=False)
        for name in ledger.store.names:
            if _last_at(name) != ledger.identifier:
                keep_private(mark_file(digest(name)), ledger.identifier, replace=True, durable=False)


def expected_mark(identifier: str, names: Iterable[str]) -> Mark | None:
    """The mark that a ledger must contain, read before its rows: its own, or that of another one with one of its names.

    `LedgerError` for a mark that exists and cannot be used.
    """
    known = (identifier, *(one for name in names if (one := _last_at(name)) is not None))
    return next((mark for one in known if (mark := _mark_of(one)) is not None), None)


def missing_steps(ledger: Ledger, expected: Mark | None) -> Mark | None:
    """The mark of steps that a ledger lacks; None if it lacks none."""
    if expected is None or (expected.ledger == ledger.identifier and contains(ledger, ledger.events, expected.end)):
        return None
    begun = (event.details["head"] for event in ledger.events if event.kind == "begin anew")
    return None if expected.end.head in begun else expected


def _mark_of(identifier: str) -> Mark | None:
    """The mark of a ledger; None without one."""

    def parsed(text: str) -> Mark:
        place, (n_steps, n_events, head) = json.loads(text)
        return Mark(identifier, str(place), End(int(n_steps), int(n_events), str(head)))

    return _content(identifier, parsed)


def _last_at(name: str) -> str | None:
    """Identifier of the ledger that was written last under a name; None if there is none."""
    return _content(digest(name), _identifier)


def _identifier(text: str) -> str:
    if not LEDGER_IDENTIFIER.fullmatch(text):
        raise ValueError("it is no identifier of a ledger")
    return text


def _content(name: str, parsed: Callable[[str], Content]) -> Content | None:
    """Content of a file in the folder of marks; None without one, or without a home directory."""
    try:
        return parsed(mark_file(name).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise LedgerError(
            f"cannot use the mark {mark_file(name)}: {getattr(error, 'strerror', None) or error}. Without it, an older copy of "
            "a ledger would be continued unnoticed. After a run as another user, give the folder back to this one; if the mark "
            "is damaged, check the ledger against a noted head and remove the mark"
        ) from None
    except RuntimeError:
        return None
