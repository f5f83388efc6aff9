"""Outputs appear whole or not at all: written beside their place, then renamed into it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from temporaldp.errors import MissingFileError, OutputError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place when the block ends well, and vanishes when it does not.

    Raises
    ------
    OutputError
        The folder does not exist or cannot be written to, or the disk is full. What stood at `path` is untouched.
    """
    target = Path(path)
    try:
        if target.is_dir():
            raise IsADirectoryError("it is a folder")
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent)
    except OSError as error:
        raise _unwritable(target, error) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _settle(temporary, target)
    except OSError as error:
        raise _unwritable(target, error) from error
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def _settle(temporary: Path, target: Path) -> None:
    """Flush to the disk, give the permissions that a plainly created file would have, rename."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    mask = os.umask(0)
    os.umask(mask)
    temporary.chmod(0o666 & ~mask)
    temporary.replace(target)


def require_writable(path: str | Path) -> None:
    """Raise `OutputError` now rather than after the work is done, or the noise drawn, if `path` cannot be written."""
    target = Path(path)
    if target.is_dir():
        raise _unwritable(target, IsADirectoryError("it is a folder"))
    if not target.parent.is_dir():
        raise _unwritable(target, FileNotFoundError(f"folder {target.parent} does not exist"))
    if not os.access(target.parent, os.W_OK):
        raise _unwritable(target, PermissionError(f"no permission to write in folder {target.parent}"))


def require_file(path: str | Path, what: str) -> Path:
    """`path` if there is a readable file; `MissingFileError` otherwise."""
    source = Path(path)
    if not source.is_file():
        found = "is a folder" if source.is_dir() else "does not exist"
        raise MissingFileError(f"expected a file with {what}, but {source} {found}")
    return source


def _unwritable(target: Path, error: OSError) -> OutputError:
    reason = error.strerror or str(error)
    return OutputError(f"cannot write {target}: {reason}; choose another place with -o, nothing was written")
