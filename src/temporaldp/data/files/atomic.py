"""Atomic output: files are written under a temporary name, then renamed."""

import glob
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from temporaldp.base.errors import InputError, MissingFileError, OutputError
from temporaldp.base.values import refuse

try:
    import fcntl
except ImportError:  # no such locks on Windows: there, files of a killed process stay until they are deleted by hand
    fcntl = None  # type: ignore[assignment]


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary file beside `path` that replaces it when the block succeeds, and is removed otherwise.

    Those of processes that were killed are removed too.

    Raises
    ------
    OutputError
        The folder does not exist or cannot be written to, or the disk is full. An existing file is untouched.
    """
    target = Path(path)
    try:
        _refuse_what_is_no_file(target)
        _remove_abandoned(target)
        with making(target, replace=True, durable=False, mode=0o666) as temporary, locking(temporary):
            yield temporary
            synchronise(temporary)
    except OSError as error:
        raise _unwritable(target, error) from error


@contextmanager
def locking(path: Path) -> Iterator[bool]:
    """Lock a file within the block, by which other processes see that this one lives; whether it could be locked.

    It cannot where it is in use, of another user, deleted in this moment or no regular file, or where there are no locks.
    """
    handle, is_locked = None, False
    with suppress(OSError):
        if fcntl is not None and stat.S_ISREG(path.lstat().st_mode):
            # Neither made nor waited for: it may be gone by now, and be something else.
            handle = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = True
    try:
        yield is_locked
    finally:
        if handle is not None:
            os.close(handle)


def _remove_abandoned(target: Path) -> None:
    """Remove temporary files for a target that no process has locked."""
    temporary = f".{glob.escape(target.name)}.{'[0-9a-f]' * 8}{glob.escape(target.suffix)}"
    for found in target.absolute().parent.glob(temporary):
        with locking(found) as is_abandoned, suppress(OSError):
            if is_abandoned:
                found.unlink()


def write_text(path: str | Path, text: str) -> None:
    """Write text to a file atomically. Errors as for `replacing`."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def making(path: Path, *, replace: bool = False, durable: bool = True, mode: int = 0o600) -> Iterator[Path]:
    """A temporary file that is renamed to `path` when the block succeeds; by default readable by its owner only.

    Without `durable` the file is not flushed to the disk, and may be lost when the machine crashes. The process's mask is
    taken from `mode`.

    Raises
    ------
    FileExistsError
        The file exists and is not to be replaced.
    OSError
        The file cannot be written.
    """
    temporary = path.absolute().with_name(f".{path.name}.{secrets.token_hex(4)}{path.suffix}")
    temporary.touch(mode, exist_ok=False)
    try:
        yield temporary
        if durable:
            synchronise(temporary)
        if replace:
            temporary.replace(path)
        else:
            os.link(temporary, path)  # never replaces a file
    finally:
        temporary.unlink(missing_ok=True)
        if durable:
            synchronise(path.parent)


def keep_private(file: Path, content: str, *, replace: bool = False, durable: bool = True) -> None:
    """Write a file, readable by its owner only, atomically, in a folder of the owner, which is made if missing.

    An existing file is kept unless it is to be replaced. `durable` as for `making`. May raise `OSError`.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError), making(file, replace=replace, durable=durable) as temporary:
        temporary.write_text(content, encoding="utf-8")


def synchronise(path: Path) -> None:
    """Flush a file or a folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def require_writable(path: str | Path, *, reads: Iterable[Path | None] = ()) -> None:
    """Raise `OutputError` if `path` cannot be written, before computations or draws.

    `reads` are the input files, which may not be overwritten.
    """
    target = Path(path)
    require_name(target)
    try:
        _refuse_what_is_no_file(target)
        sources = (source for source in reads if source is not None and source.exists() and target.exists())
        refuse(
            (not target.parent.is_dir(), FileNotFoundError(f"folder {target.parent} does not exist")),
            (
                not os.access(target.parent, os.W_OK),
                PermissionError(f"no permission to write in folder {target.parent}"),
            ),
            (any(map(target.samefile, sources)), FileExistsError("it is also read, and would be lost")),
        )
    except OSError as error:
        raise _unwritable(target, error) from error


def require_name(path: Path) -> None:
    """Raise `InputError` for a name that is not encoded in UTF-8: DuckDB and Arrow cannot open it, and JSON cannot hold it."""
    name = os.fsencode(path)
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(
            f"the name of the file is not encoded in UTF-8 ({name.decode('utf-8', 'backslashreplace')}): rename the file, or "
            "its folder"
        ) from None


def require_file(path: str | Path, what: str) -> Path:
    """The path of a regular file; `MissingFileError` otherwise."""
    source = Path(path)
    require_name(source)
    try:
        if source.is_file():
            return source
        found = "is a folder" if source.is_dir() else "is not a regular file" if source.exists() else "does not exist"
    except OSError as error:
        found = f"cannot be looked up: {error.strerror}"
    raise MissingFileError(f"expected a file with {what}, but {source} {found}")


def suffix_of(path: str | Path, known: Iterable[str], what: str) -> str:
    """The suffix of a path, in lower case; `InputError` for an unknown one."""
    suffix = Path(path).suffix.lower()
    if suffix not in known:
        raise InputError(f"expected a file ending in {' or '.join(known)} for {what}, got {str(path)!r}")
    return suffix


def brief(error: BaseException) -> str:
    """A message of another library as one printable line."""
    line = " ".join(str(error).split()) or type(error).__name__
    shown = "".join(letter if letter.isprintable() else "?" for letter in line)
    return shown if len(shown) <= 160 else f"{shown[:160]}..."


def _refuse_what_is_no_file(target: Path) -> None:
    """Renaming a file into the place of a folder, a device, a pipe or a link would destroy it."""
    refuse(
        # A user who may write to the folder could direct a link to any file.
        (target.is_symlink(), FileExistsError("it is a symbolic link; name the file itself")),
        (target.is_dir(), IsADirectoryError("it is a folder")),
        (target.exists() and not target.is_file(), FileExistsError("it is not a regular file")),
    )


def _unwritable(target: Path, error: OSError) -> OutputError:
    return OutputError(
        f"cannot write {target}: {error.strerror or error}; choose another place with -o; the file was not written"
    )
