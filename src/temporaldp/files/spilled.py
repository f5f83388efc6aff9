"""Folders for what does not fit in memory: gone when their reading is given up, and however the process ends."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from temporaldp.errors import OutputError

_folders: set[Path] = set()


def temporary_folder(inside: Path | None = None) -> Path:
    """A new folder, by default where the system keeps temporary files.

    Raises
    ------
    OutputError
        It cannot be made.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="temporaldp-", dir=inside))
    except OSError as error:
        raise OutputError(
            f"cannot make a folder for temporary files: {error.strerror or error}; name another with TMPDIR"
        ) from error
    _folders.add(folder)
    return folder


def remove_folder(folder: Path) -> None:
    """Take a folder away with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    _folders.discard(folder)


def remove_temporary_files() -> None:
    """Take all of them away, for a process that ends without unwinding."""
    for folder in list(_folders):
        remove_folder(folder)
