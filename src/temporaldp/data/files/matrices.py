"""Transition matrices on disk, as CSV with state names or JSON; and both directions of a correlation, as JSON."""

import csv
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from temporaldp.base.errors import InputError, MatrixError
from temporaldp.core.correlation import Adversary, TransitionMatrix
from temporaldp.core.correlation.documents import correlation_from
from temporaldp.data.files.atomic import brief, require_file, suffix_of, write_text
from temporaldp.data.files.columns import save_columns, unguarded
from temporaldp.data.tables.estimation import BOTH
from temporaldp.data.tables.moments import NUMERIC, moment

UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError, MemoryError, csv.Error)
"""Exceptions of parsers on files that are damaged or in another format."""


@contextmanager
def parsed(path: str | Path, what: str, refusal: type[InputError] = MatrixError) -> Iterator[str]:
    """The text of a file; errors of parsing within the block name the file."""
    source = require_file(path, what)
    with parsing(what, refusal, f"{source}: "):
        yield source.read_text(encoding="utf-8-sig")


@contextmanager
def parsing(what: str, refusal: type[InputError] = MatrixError, where: str = "") -> Iterator[None]:
    """Context in which a failing parser is a refusal; `where` begins the message."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"{where}{error}") from None
    except UNREADABLE as error:
        raise refusal(f"{where}expected {what}, got something else: {brief(error)}") from None


def save_matrix(matrix: TransitionMatrix, path: str | Path) -> None:
    """Write a transition matrix for `load_matrix`, without rounding.

    Parameters
    ----------
    matrix : TransitionMatrix
    path : path ending in .csv or .json
        CSV: a header row and a first column with the state names; those that a spreadsheet would run as a formula are prefixed
        by an apostrophe. JSON: ``{"states": [...], "probabilities": [[...]]}``, or the parts of a CSR matrix; the format
        for large and sparse matrices.

    Raises
    ------
    InputError
        The suffix is another one.
    OutputError
        The file cannot be written; an existing file is untouched.
    """
    if suffix_of(path, (".csv", ".json"), "a matrix") == ".csv":
        save_columns({"": matrix.states} | dict(zip(matrix.states, matrix.dense().T.tolist(), strict=True)), path)
    else:
        write_text(path, json.dumps(matrix.document()) + "\n")


def load_matrix(path: str | Path) -> TransitionMatrix:
    """Read a transition matrix that `save_matrix` wrote, or a CSV or JSON file of the same form.

    Raises
    ------
    MissingFileError
        There is no such file.
    MatrixError, StateError
        The content is not a transition matrix, or its rows and columns are not named alike.
    """
    is_table = suffix_of(path, (".csv", ".json"), "a matrix") == ".csv"
    with parsed(path, "a transition matrix as save_matrix writes it") as text:
        return _of_cells(_cells(text)) if is_table else _of_json(text)


def parse_matrix(content: bytes) -> TransitionMatrix:
    """A transition matrix from the text of a CSV or JSON file.

    Besides the formats of `load_matrix`, a square of numbers without names, whose states are 0, 1, 2, ...

    Raises
    ------
    MatrixError, StateError
        The content is not a transition matrix, or its rows and columns are not named alike.
    """
    with parsing("a transition matrix as CSV or JSON"):
        text = content.decode("utf-8-sig")
        if text.lstrip().startswith("{"):
            return _of_json(text)
        rows = _cells(text)
        is_bare = rows and all(moment(cell).kind == NUMERIC for cell in rows[0])
        if is_bare and all(len(row) == len(rows) for row in rows):
            return TransitionMatrix([[_number(cell, str(k)) for cell in row] for k, row in enumerate(rows)])
        return _of_cells(rows)


def _cells(text: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text, newline="")) if row]


def _of_cells(rows: list[list[str]]) -> TransitionMatrix:
    """A matrix with the names of its rows and columns beside it."""
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


def _of_json(text: str) -> TransitionMatrix:
    matrix = correlation_from(json.loads(text))
    if not isinstance(matrix, TransitionMatrix):
        raise MatrixError("expected one matrix that is known exactly: load_correlation reads other correlations")
    return matrix


def save_correlation(adversary: Adversary, path: str | Path) -> None:
    """Write the correlations of an adversary, both directions and their origins, for `load_correlation`.

    Parameters
    ----------
    adversary : Adversary
    path : path ending in .json

    Raises
    ------
    InputError
        Another suffix, a correlation of a class of your own, or nothing to write.
    OutputError
        The file cannot be written; an existing file is untouched.
    """
    suffix_of(path, (".json",), "a correlation")
    if not adversary.matrices:
        raise InputError("expected an adversary with a correlation, got one without")
    document = {direction: getattr(adversary, direction).document() for direction in BOTH}
    write_text(path, json.dumps(document, allow_nan=False) + "\n")


def load_correlation(path: str | Path) -> Adversary:
    """Read a correlation that `save_correlation` wrote.

    Raises
    ------
    MissingFileError
        There is no such file.
    MatrixError, StateError
        The content is not a correlation.
    """
    suffix_of(path, (".json",), "a correlation")
    with parsed(path, "a correlation as save_correlation writes it") as text:
        match json.loads(text):
            case {"backward": backward, "forward": forward}:
                return Adversary(correlation_from(backward), correlation_from(forward))
        raise MatrixError("expected an object of 'backward' and 'forward'")
