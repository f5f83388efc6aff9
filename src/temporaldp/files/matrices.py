"""Transition matrices on disk: CSV with state names, NPZ, JSON."""

import csv
import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from temporaldp.correlation import TransitionMatrix
from temporaldp.errors import InputError, MatrixError
from temporaldp.files.atomic import brief, replacing, require_file, suffix_of
from temporaldp.files.columns import guarded, unguarded

UNREADABLE = (
    ValueError, KeyError, TypeError, IndexError, AttributeError, RuntimeError, EOFError, RecursionError, OverflowError,
    MemoryError, OSError, csv.Error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What parsers raise on files that are damaged or something else altogether."""


LARGEST_ARCHIVE = 1 << 30
"""Bytes of an NPZ file once it is decompressed: a dense matrix of 11,000 states. A file of 4 MB could take 4 GB."""


def save_matrix(matrix: TransitionMatrix, path: str | Path) -> None:
    """Write a transition matrix so that `load_matrix` gives it back bit by bit.

    Parameters
    ----------
    matrix : TransitionMatrix
    path : path ending in .csv, .json or .npz
        CSV: a header row and a first column with the state names; one that a spreadsheet would run as a formula gets an
        apostrophe before it. JSON: ``{"states": [...], "probabilities": [[...]]}``.
        NPZ: the same two arrays, or the parts of a CSR matrix; the format for large and sparse matrices.

    Raises
    ------
    InputError
        The suffix is none of these.
    OutputError
        The file cannot be written; what stood there is untouched.
    """
    writers = {".csv": _write_csv, ".json": _write_json, ".npz": _write_npz}
    writer = writers[suffix_of(path, writers, "a matrix")]
    with replacing(path) as temporary:
        writer(matrix, temporary)


def load_matrix(path: str | Path) -> TransitionMatrix:
    """Read a transition matrix that `save_matrix` wrote, or a CSV or JSON file of the same form.

    Raises
    ------
    MissingFileError
        There is no such file.
    MatrixError, StateError
        The content is no transition matrix, or its rows and columns are not named alike.
    """
    readers = {".csv": _read_csv, ".json": _read_json, ".npz": _read_npz}
    reader = readers[suffix_of(path, readers, "a matrix")]
    source = require_file(path, "a transition matrix")
    try:
        return reader(source)
    except InputError as error:
        raise type(error)(f"{source}: {error}") from None
    except UNREADABLE as error:
        raise MatrixError(
            f"{source}: expected a transition matrix as save_matrix writes it, got something else: {brief(error)}"
        ) from None


def parse_matrix(content: bytes) -> TransitionMatrix:
    """A transition matrix from the content of a CSV or JSON file that was never written anywhere.

    Beside what `load_matrix` reads, a square of bare numbers: its values are then called 0, 1, 2, ...

    Raises
    ------
    MatrixError, StateError
        The content is no transition matrix, or its rows and columns are not named alike.
    """
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip().startswith("{"):
            return _of_json(text)
        rows = [row for row in csv.reader(text.splitlines()) if row]
        if rows and _are_numbers(rows[0]) and all(len(row) == len(rows) for row in rows):
            return TransitionMatrix([[_number(cell, str(k)) for cell in row] for k, row in enumerate(rows)])
        return _of_cells(rows)
    except InputError:
        raise
    except UNREADABLE as error:
        raise MatrixError(f"expected a transition matrix as CSV or JSON, got something else: {brief(error)}") from None


def _are_numbers(cells: list[str]) -> bool:
    try:
        list(map(float, cells))
    except ValueError:
        return False
    return True


def _write_csv(matrix: TransitionMatrix, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["", *map(guarded, matrix.states)])
        for state, row in zip(matrix.states, matrix.dense().tolist(), strict=True):
            writer.writerow([guarded(state), *map(repr, row)])


def _read_csv(path: Path) -> TransitionMatrix:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return _of_cells(row for row in csv.reader(file) if row)


def _of_cells(cells: Iterable[list[str]]) -> TransitionMatrix:
    """A matrix with the names of its rows and columns beside it."""
    rows = list(cells)
    if len(rows) < 2 or len(rows[0]) < 2:
        raise MatrixError("expected a header row with state names and one row per state")
    states, names = ([unguarded(cell) for cell in cells] for cells in (rows[0][1:], [row[0] for row in rows[1:]]))
    if names != states:
        raise MatrixError(
            f"expected the first column to name the states as the header does: header {states}, first column {names}"
        )
    for name, row in zip(names, rows[1:], strict=True):
        if len(row) != len(states) + 1:
            raise MatrixError(f"expected {len(states)} numbers in row {name!r}, got {len(row) - 1}")
    return TransitionMatrix([[_number(cell, row[0]) for cell in row[1:]] for row in rows[1:]], states)


def _number(cell: str, row: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise MatrixError(f"expected a number in row {row!r}, got {cell!r}") from None


def _write_json(matrix: TransitionMatrix, path: Path) -> None:
    document = {"states": matrix.states, "probabilities": matrix.dense().tolist()}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _read_json(path: Path) -> TransitionMatrix:
    return _of_json(path.read_text(encoding="utf-8"))


def _of_json(text: str) -> TransitionMatrix:
    document = json.loads(text)
    return TransitionMatrix(document["probabilities"], document["states"])


def _write_npz(matrix: TransitionMatrix, path: Path) -> None:
    stored = matrix.probabilities
    parts: dict[str, Any] = {"states": np.array(matrix.states)}
    if isinstance(stored, scipy.sparse.csr_array):
        parts |= {"data": stored.data, "indices": stored.indices, "indptr": stored.indptr}
    else:
        parts["probabilities"] = stored
    with path.open("wb") as file:
        np.savez_compressed(file, **parts)


@contextmanager
def loaded_arrays(path: Path) -> Iterator[Any]:
    """The arrays of an NPZ file, which are read when they are asked for; refused if they are large once decompressed."""
    with zipfile.ZipFile(path) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size > LARGEST_ARCHIVE:
        raise MatrixError(
            f"expected arrays of at most {LARGEST_ARCHIVE >> 20} MiB, got {size >> 20} MiB once decompressed"
        )
    with path.open("rb") as file, np.load(file, allow_pickle=False) as parts:
        yield parts


def _read_npz(path: Path) -> TransitionMatrix:
    with loaded_arrays(path) as parts:
        states = [str(name) for name in np.atleast_1d(parts["states"])]
        if "probabilities" in parts:
            return TransitionMatrix(parts["probabilities"], states)
        shape = (len(states), len(states))
        stored = scipy.sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
        stored.check_format(full_check=True)
        return TransitionMatrix(stored, states)
