"""Files of a path: one file, a pattern, or all tables in a folder."""

from __future__ import annotations

import csv
import glob
import gzip
import os
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

from temporaldp.base.errors import MissingFileError, TraceError
from temporaldp.base.extras import needing
from temporaldp.base.names import listed
from temporaldp.data.files.atomic import brief, require_file, require_name

TABLES = (".parquet", ".csv", ".tsv")

NOT_UTF_8 = (
    'it is not encoded in UTF-8; name its encoding (encoding="cp1252", --set traces.encoding=cp1252), or save it again, in a '
    'spreadsheet as "CSV UTF-8"'
)

OTHER_PROGRAMS = {
    ".xes": 'with pm4py, `pm4py.convert_to_dataframe(pm4py.read_xes("log.xes")).to_csv("log.csv", index=False)`',
    **dict.fromkeys((".xls", ".xlsx", ".ods"), 'save the sheet as "CSV UTF-8"'),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "with DuckDB, `COPY (FROM 'traces.json') TO 'traces.parquet'`"),
    **dict.fromkeys((".sav", ".dta", ".sas7bdat", ".rda", ".rds", ".rdata"), "export it as CSV or Parquet"),
}
"""How files of other programs become CSV or Parquet."""


def trace_files(path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The files of a path, a pattern such as ``data/2024-*.parquet``, or a folder, in order of their names.

    For a folder, all tables in it and its subfolders, except names that begin with a dot or an underscore.

    Raises
    ------
    MissingFileError
        There are no files.
    TraceError
        A folder contains tables of several kinds.
    """
    place = Path(path)
    if place.is_dir():
        tables = (one for one in place.rglob("*") if kind_of(one))
        found = [one for one in tables if not any(part[0] in "._" for part in one.relative_to(place).parts)]
    elif not place.exists() and glob.has_magic(os.fspath(place)):
        found = list(map(Path, glob.glob(os.fspath(place), recursive=True)))  # noqa: PTH207
    else:
        return (require_file(place, "traces"),)
    files = tuple(sorted(one for one in found if one.is_file()))
    if not files:
        raise MissingFileError(
            f"expected files with traces, but there are none at {place}; of a folder, {', '.join(TABLES)} are read"
        )
    for file in files:
        require_name(file)
    kinds = sorted({kind_of(one) or "" for one in files})
    if place.is_dir() and len(kinds) > 1:
        raise TraceError(
            f"the folder holds tables of several kinds ({', '.join(kinds)}); name one kind with a pattern, such as "
            f"{place / f'*{kinds[0]}'}"
        )
    return files


def mapping_place(source: str | os.PathLike[str]) -> tuple[Path, tuple[str, ...]]:
    """The file of a mapping of states, and its two columns where they are named: ``FILE:entry,state``."""
    path, _, columns = os.fspath(source).rpartition(":")
    names = tuple(name.strip() for name in columns.split(","))
    if not path or len(names) != 2 or os.sep in columns:
        return Path(source), ()
    return Path(path), names


def kind_of(path: Path) -> str | None:
    """Return the suffix that determines the kind of a table, compressed or not; None if there is no such suffix."""
    return next((suffix for suffix in TABLES if suffix in [one.lower() for one in path.suffixes[-2:]]), None)


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet, by its name or first bytes."""
    if path.suffix.lower() == ".parquet":
        return True
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def same_header(paths: Sequence[Path], headers: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The names of the columns, which must be the same in all files."""
    first = tuple(headers[0])
    for path, header in zip(paths, headers, strict=True):
        if tuple(header) != first:
            raise TraceError(
                f"the files have different columns: {paths[0].name} has {listed(first)}, {path.name} has {listed(header)}"
            )
    return first


def csv_header(path: Path, separator: str | None = None) -> tuple[tuple[str, ...], str]:
    """The names in the first line of a CSV file, and the separator: by default the most frequent of the usual ones there.

    Raises
    ------
    TraceError
        There is no header, or the file is not text.
    """
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            bare = re.sub('"[^"]*("|$)', "", file.readline())  # names in quotes may contain separators
            file.seek(0)
            known = separator or max(",;\t|", key=bare.count)
            names = next(csv.reader(file, delimiter=known), None)
    except (UnicodeDecodeError, OSError, EOFError, zlib.error, csv.Error) as error:
        raise _no_table(NOT_UTF_8 if isinstance(error, UnicodeDecodeError) else brief(error)) from None
    if not names or names[0].startswith("sep="):
        raise _no_table('its first line, "sep=", is for Excel only: remove the line' if names else "it is empty")
    return tuple(name.strip() for name in names), known


def parquet_columns(path: Path) -> tuple[tuple[str, str], ...]:
    """Names of the columns of a Parquet file, and descriptions of their types.

    Raises
    ------
    TraceError
        The file is not Parquet, is cut off, or has names that are not text.
    """
    with needing("tables"):
        import pyarrow as pa
        from pyarrow import parquet

    from temporaldp.data.tables.relations import content_of

    try:
        return tuple((column.name, content_of(column.type)) for column in parquet.read_schema(str(path)))
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise TraceError(
            f"expected a Parquet table, but {path.name} cannot be read as one: {brief(error)}; if it was cut off, write it "
            "again"
        ) from None


def mixed_columns(paths: Sequence[Path], columns: Sequence[Sequence[tuple[str, str]]]) -> dict[str, str]:
    """Types, and the first file of each, of the columns whose type is not the same in all files."""
    from temporaldp.data.tables.relations import NO_ENTRIES

    first: dict[str, dict[str, str]] = {}
    for path, named in zip(paths, columns, strict=True):
        for name, kind in named:
            if kind != NO_ENTRIES:
                first.setdefault(name.strip(), {}).setdefault(kind, f"{kind} in {path.name}")
    return {name: " and ".join(kinds.values()) for name, kinds in first.items() if len(kinds) > 1}


def _no_table(reason: str) -> TraceError:
    return TraceError(f"expected a CSV table with a header row, but it cannot be read as one: {reason}")
