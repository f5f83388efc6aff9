"""Temporary folders for data that do not fit in memory, which are removed when reading or the process ends.

The folder of a process that was killed is removed by the next process that makes one beside it.
"""

from __future__ import annotations

import platform
import re
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from temporaldp.base.errors import OutputError
from temporaldp.data.files.atomic import locking

_folders: dict[Path, ExitStack] = {}
"""The folders of this process, and what holds the lock of a file in each."""


def temporary_folder(inside: Path | None = None) -> Path:
    """A new folder, by default in the system's folder for temporary files; abandoned ones beside it are removed.

    A file "in-use" in it is locked as long as the process lives; there is none where there are no locks.

    Raises
    ------
    OutputError
        The folder cannot be made.
    """
    # Of several machines that share a file system, each may see its own locks only.
    prefix = "temporaldp-" + re.sub(r"\W", "-", platform.node()) + "-"
    try:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=inside))
        _folders[folder] = held = ExitStack()
        mark = folder / "new"
        mark.touch()
        if held.enter_context(locking(mark)):
            mark.rename(folder / "in-use")  # now that it is locked, lest the folder seem abandoned
        else:
            mark.unlink()
    except OSError as error:
        raise OutputError(
            f"cannot make a folder for temporary files: {error.strerror or error}; name another with TMPDIR"
        ) from error
    for mark in folder.parent.glob(f"{prefix}*/in-use"):
        with locking(mark) as is_abandoned:
            if is_abandoned:
                shutil.rmtree(mark.parent, ignore_errors=True)
    return folder


def remove_folder(folder: Path) -> None:
    """Remove a folder with its contents."""
    shutil.rmtree(folder, ignore_errors=True)
    if held := _folders.pop(folder, None):
        held.close()


def remove_temporary_files() -> None:
    """Remove all temporary folders, for a process that ends without unwinding."""
    for folder in list(_folders):
        remove_folder(folder)
