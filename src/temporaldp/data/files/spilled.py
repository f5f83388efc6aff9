"""Temporary folders for data that do not fit in memory, which are removed when reading or the process ends.

The folder of a process that was killed is removed by the next process that makes one beside it.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from temporaldp.base.errors import OutputError

try:
    import fcntl
except ImportError:  # no such locks on Windows: there, files of a killed process stay until they are deleted by hand
    fcntl = None  # type: ignore[assignment]

LOCK = "in-use"

_folders: dict[Path, TextIO | None] = {}


def temporary_folder(inside: Path | None = None) -> Path:
    """A new folder, by default in the system's folder for temporary files; abandoned ones beside it are removed.

    Raises
    ------
    OutputError
        The folder cannot be made.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=_prefix(), dir=inside))
        _folders[folder] = None
        _folders[folder] = _lock(folder)
    except OSError as error:
        raise OutputError(
            f"cannot make a folder for temporary files: {error.strerror or error}; name another with TMPDIR"
        ) from error
    _remove_abandoned(folder.parent)
    return folder


def remove_folder(folder: Path) -> None:
    """Remove a folder with its contents."""
    shutil.rmtree(folder, ignore_errors=True)
    if lock := _folders.pop(folder, None):
        lock.close()


def remove_temporary_files() -> None:
    """Remove all temporary folders, for a process that ends without unwinding."""
    for folder in list(_folders):
        remove_folder(folder)


def _prefix() -> str:
    """Prefix of the folders of this machine: of several that share a file system, each may see its own locks only."""
    return "temporaldp-" + re.sub(r"\W", "-", platform.node()) + "-"


def _lock(folder: Path) -> TextIO | None:
    """A file in the folder, locked as long as the process lives; None where there are no locks.

    It gets its name when it is locked, lest it seem abandoned.
    """
    if fcntl is None:
        return None
    unnamed = folder / "new"
    file = unnamed.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:
        file.close()
        unnamed.unlink()
        return None
    unnamed.rename(folder / LOCK)
    return file


def _remove_abandoned(place: Path) -> None:
    if fcntl is None:
        return
    for mark in place.glob(f"{_prefix()}*/{LOCK}"):
        with suppress(OSError):  # in use, of another user, or deleted in this moment
            if not stat.S_ISREG(mark.lstat().st_mode):
                continue
            # Neither made nor waited for: it may be gone by now, and be something else.
            found = os.open(mark, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(mark.parent, ignore_errors=True)
            finally:
                os.close(found)
