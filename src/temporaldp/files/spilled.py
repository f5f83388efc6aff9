"""Folders for what does not fit in memory: gone when their reading is given up, and however the process ends.

A process that is killed outright can take nothing away; the next one that makes such a folder beside it does.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from temporaldp.errors import OutputError

try:
    import fcntl
except ImportError:  # no such locks on Windows: there, what a killed process leaves stays until somebody takes it away
    fcntl = None  # type: ignore[assignment]

PREFIX, LOCK = "temporaldp-", "in-use"

_folders: dict[Path, TextIO | None] = {}


def temporary_folder(inside: Path | None = None) -> Path:
    """A new folder, by default where the system keeps temporary files; abandoned ones beside it are taken away.

    Raises
    ------
    OutputError
        It cannot be made.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=inside))
        _folders[folder] = None
        _folders[folder] = _lock(folder)
    except OSError as error:
        raise OutputError(
            f"cannot make a folder for temporary files: {error.strerror or error}; name another with TMPDIR"
        ) from error
    _remove_abandoned(folder.parent)
    return folder


def remove_folder(folder: Path) -> None:
    """Take a folder away with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    if lock := _folders.pop(folder, None):
        lock.close()


def remove_temporary_files() -> None:
    """Take all of them away, for a process that ends without unwinding."""
    for folder in list(_folders):
        remove_folder(folder)


def _lock(folder: Path) -> TextIO | None:
    """A file in the folder, locked as long as the process lives. It gets its name when it is locked, lest it seem abandoned."""
    if fcntl is None:
        return None
    unnamed = folder / "new"
    file = unnamed.open("w")
    fcntl.flock(file, fcntl.LOCK_EX)
    unnamed.rename(folder / LOCK)
    return file


def _remove_abandoned(place: Path) -> None:
    if fcntl is None:
        return
    for mark in place.glob(f"{PREFIX}*/{LOCK}"):
        with suppress(OSError), mark.open("a") as file:  # in use, somebody else's, or taken away in this moment
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(mark.parent, ignore_errors=True)
