"""Tables of named columns on disk: Parquet with metadata, or CSV."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from temporaldp.base.errors import InputError
from temporaldp.base.extras import needing
from temporaldp.base.names import PLAIN_NUMBER
from temporaldp.data.files.atomic import replacing

METADATA_KEY = b"temporaldp"

FORMULA = re.compile(r"'*[=+\-@]")
"""Beginning of text that spreadsheets run as a formula, possibly after apostrophes."""


def guarded(cell: Any) -> Any:
    """Return a cell of a CSV file; text that a spreadsheet would run as a formula is prefixed by an apostrophe."""
    is_formula = isinstance(cell, str) and FORMULA.match(cell) and not PLAIN_NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell


def unguarded(cell: str) -> str:
    """Return the original text of a cell by `guarded`."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def save_columns(columns: Mapping[str, Sequence[Any]], path: str | Path, said: Mapping[str, Any] | None = None) -> None:
    """Write columns of equal length to a .parquet or .csv file, atomically; `said` requires Parquet.

    In CSV, text that a spreadsheet would run as a formula (``=1+1``) is prefixed by an apostrophe.

    Raises
    ------
    OutputError
        The file cannot be written; an existing file is untouched.
    """
    with replacing(path) as temporary:
        if Path(path).suffix.lower() == ".parquet":
            _write_parquet(columns, temporary, said or {})
        else:
            with temporary.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(map(guarded, columns))
                writer.writerows(map(guarded, row) for row in zip(*columns.values(), strict=True))


def with_names(columns: Mapping[str, Sequence[Any]], time: str, state: str) -> dict[str, Sequence[Any]]:
    """Return columns whose first two, time and state, have the names of the user's own table.

    Raises
    ------
    InputError
        Another column has one of these names.
    """
    _, _, *others = columns
    names = [time, state, *others]
    if len(set(names)) < len(names):
        raise InputError(
            f"expected names for time and state other than {', '.join(others)}, got {time!r} and {state!r}"
        )
    return dict(zip(names, columns.values(), strict=True))


def _write_parquet(columns: Mapping[str, Sequence[Any]], path: Path, said: Mapping[str, Any]) -> None:
    with needing("tables"):
        import pyarrow as pa
        from pyarrow import parquet

    arrays = map(pa.array, columns.values())
    # A column without any value is one of numbers.
    typed = [array.cast(pa.float64()) if array.type == pa.null() else array for array in arrays]
    table = pa.table(typed, list(columns))
    parquet.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(said)}), str(path))
