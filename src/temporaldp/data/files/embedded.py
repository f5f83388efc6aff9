"""DuckDB, embedded: CSV and Parquet of any size as a lazy table, within a limit of memory.

Data that do not fit are spilled to a temporary folder, which is removed when reading ends, when the process ends, and when it
is interrupted.
"""

from __future__ import annotations

import glob
import gzip
import os
import re
import shutil
import weakref
import zlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, count
from pathlib import Path
from typing import Any

from temporaldp.base.errors import InputError, OutputError, TraceError
from temporaldp.base.extras import needing
from temporaldp.base.progress import progressed
from temporaldp.data.files.atomic import brief
from temporaldp.data.files.places import NOT_UTF_8
from temporaldp.data.files.spilled import remove_folder, temporary_folder
from temporaldp.data.tables.relations import READING, Rows, SourceTable, stripped

with needing("tables"):
    import duckdb

LEAST_CELLS = 2_000_000
"""Cells of a part of Parquet files: with fewer, more queries would cost more than they save memory."""


LARGEST_KEPT = 1 << 30
"""Bytes of text files whose columns are kept as a table: larger ones would need as much room for temporary files."""


class Embedded:
    """One connection to an in-memory DuckDB with a folder to spill to.

    Parameters
    ----------
    memory : str
        How much DuckDB may take, such as "1GiB"; the process uses some 200 MiB more.
    """

    def __init__(self, memory: str) -> None:
        if not re.fullmatch(r"\s*\d+(\.\d+)?\s*[KMGT]i?B\s*", memory, re.IGNORECASE):
            raise InputError(f"expected memory such as '4GiB', got {memory!r}")
        folder, self._has_condition = temporary_folder(), False
        self._folder, self._n_kept = Path(folder), count(1)
        self._connection = duckdb.connect()
        weakref.finalize(self, _close, self._connection, folder)
        settings = {"threads": _threads(), "temp_directory": str(folder), "memory_limit": memory, "TimeZone": "UTC"}
        # DuckDB 2.0 splits a window over Parquet into hundreds of branches, each of which reads the metadata of all
        # row groups of the file: at 10^7 rows this took half as long again. What is worth splitting is split into `cuts`.
        known = self.run(lambda: self._connection.execute("FROM duckdb_optimizers()").fetchall())
        settings["disabled_optimizers"] = ",".join({name for (name,) in known} & {"partitioned_execution"})
        for name, value in settings.items():
            self._connection.execute(f"SET {name} = {_quoted(str(value))}")
        # Needed to ask for the progress of a query. In a notebook without ipywidgets DuckDB refuses it: no progress is shown.
        with suppress(duckdb.InvalidInputException):
            self._connection.execute("SET enable_progress_bar_print = false; SET enable_progress_bar = true")

    def in_utf_8(self, paths: Sequence[Path], encoding: str) -> tuple[Path, ...]:
        """Copies of text files of another encoding, in the folder of temporary files.

        Raises
        ------
        InputError, TraceError
            No such encoding, or the files have another one.
        """
        found = []
        for k, path in enumerate(paths):
            copy = self._folder / str(k) / path.name.removesuffix(".gz")
            copy.parent.mkdir()
            opener = gzip.open if path.suffix.lower() == ".gz" else open
            try:
                with (
                    opener(path, "rt", encoding=encoding, newline="") as text,
                    copy.open("w", encoding="utf-8", newline="") as made,
                ):
                    shutil.copyfileobj(text, made, 1 << 20)
            except UnicodeError:
                raise TraceError(f"{path.name} is not encoded in {encoding} (--set traces.encoding=...)") from None
            except (LookupError, ValueError):
                raise InputError(f"expected an encoding such as latin-1, cp1252 or utf-16, got {encoding!r}") from None
            except (OSError, EOFError, zlib.error) as error:
                raise TraceError(f"{path.name} cannot be read or copied: {brief(error)}") from None
            found.append(copy)
        return tuple(found)

    def parquet(self, paths: Sequence[Path], names: Sequence[str], where: str | None = None) -> SourceTable:
        """Parquet files whose columns have these names, in this order; `where` is an SQL condition on their rows."""
        self._connection.execute("SET preserve_insertion_order = false; SET parquet_metadata_cache = true")
        # By name, a column gets a type that holds the entries of all files; else that of the first, to which others are cast.
        files = f"read_parquet({_list(paths)}, union_by_name = {len(paths) > 1})"
        found = self.run(lambda: self._connection.sql(f"FROM {files}"))
        # Columns that DuckDB adds, unless the files have such names themselves.
        if taken := [name for name in found.columns if name.lower() in {"file_index", "file_row_number"}]:
            raise TraceError(
                f"column {taken[0]!r} has a name that DuckDB reserves for the position of a row; rename it"
            )
        # A row's number is that of its file, shifted by 40 bits, and its own: no file has more rows.
        row = "(file_index::BIGINT << 40) + file_row_number"
        place = _place(paths, lambda row: divmod(row, 1 << 40))
        table = self._table(self._chosen(found.columns, row, files, where), names, place)
        kinds = dict(zip(names, map(str, found.types), strict=False))
        return replace(table, cuts=lambda name, cells: self._cuts(paths, name, kinds[name], cells))

    def _cuts(self, paths: Sequence[Path], name: str, kind: str, cells: int) -> tuple[Any, ...]:
        """Values of a column of words or whole numbers between which the files can be read part by part."""
        if kind != "VARCHAR" and kind.removeprefix("U") not in {"TINYINT", "SMALLINT", "INTEGER", "BIGINT"}:
            return ()
        groups = self.run(
            self._connection.sql(
                f"SELECT TRY_CAST(stats_min_value AS {kind}), TRY_CAST(stats_max_value AS {kind}), "
                f"row_group_num_rows * {cells} "
                f"FROM parquet_metadata({_list(paths)}) WHERE trim(path_in_schema) = {_quoted(name)}"
            ).fetchall
        )
        return () if any(least is None or largest is None for least, largest, _ in groups) else cuts(groups)

    def csv(self, paths: Sequence[Path], names: Sequence[str], delimiter: str, where: str | None = None) -> SourceTable:
        """CSV files with these columns, all text, without missing values or rows of blank cells; `where` is a condition."""
        # Names that differ in capitals only are one to DuckDB: it learns them only where a condition is about them.
        known = [f"c{k}" for k in range(len(names))] if where is None else list(names)
        columns = "{" + ", ".join(f"{_quoted(name)}: 'VARCHAR'" for name in known) + "}"
        compressed = "gzip" if all(path.suffix.lower() == ".gz" for path in paths) else "auto"
        options = (
            f"header=true, auto_detect=false, columns={columns}, delim={_quoted(delimiter)}, quote='\"', escape='\"', "
            f"nullstr='\x01', compression='{compressed}', filename='temporaldp_file'"
        )
        files = f"read_csv({_list(paths)}, {options})"

        def split(row: int) -> tuple[int, int]:
            counts = f"SELECT temporaldp_file, count(*) FROM {files} GROUP BY temporaldp_file"
            rows = dict(self.run(self._connection.sql(counts).fetchall))
            starts = list(accumulate((rows.get(os.fspath(path), 0) for path in paths), initial=0))
            file = bisect_right(starts, row) - 1
            return file, row - starts[file]

        numbered = f"(SELECT *, row_number() OVER () - 1 AS temporaldp_row FROM {files})"
        if len(known) > 1:  # spreadsheets end in rows of delimiters alone
            is_blank = " AND ".join(f"{_identifier(name)} = ''" for name in known)
            numbered = f"(SELECT * FROM {numbered} WHERE NOT ({is_blank}))"
        chosen = self._chosen(known, "temporaldp_row", numbered, where)
        table = self._table(chosen, names, _place(paths, split))
        # Text is about eight times as large as it is compressed
        sizes = (path.stat().st_size * (8 if path.suffix.lower() == ".gz" else 1) for path in paths)
        if sum(sizes) > LARGEST_KEPT:
            return table
        return replace(table, rows=replace(table.rows, keep=self._keep))

    def _keep(self, relation: Any) -> Any:
        """A relation as a table, in memory or spilled; the one that it was made from is dropped."""
        k = next(self._n_kept)
        self.run(lambda: relation.create(f"temporaldp_kept_{k}"))
        self._connection.execute(f"DROP TABLE IF EXISTS temporaldp_kept_{k - 1}")
        return self._connection.table(f"temporaldp_kept_{k}")

    def sequences(self, path: Path, delimiter: str | None) -> SourceTable:
        """Text with one person's sequence of states per line, as a table in memory or spilled.

        Raises
        ------
        TraceError
            The file is empty, or a table rather than sequences.
        """
        whole_lines = "columns={'line': 'VARCHAR'}, delim='\x01', nullstr='\x02', quote='', escape=''"
        file = f"read_csv({_list([path])}, header=false, auto_detect=false, {whole_lines})"
        bare = stripped("line")
        words = (
            rf"string_split_regex({bare}, '\s+')" if delimiter is None else f"string_split(line, {_quoted(delimiter)})"
        )
        lines = f"(SELECT line, row_number() OVER () AS n, {words} AS words FROM {file} WHERE {bare} <> '')"
        commas = "length(line) - length(replace(line, ',', ''))"
        counted = f"SELECT count(*), min({commas}), max({commas}) FROM {lines}"
        n_lines, fewest, most = self.run(lambda: self._connection.execute(counted).fetchone())
        if not n_lines:
            raise TraceError("the file is empty")
        if delimiter is None and 0 < fewest == most:
            raise TraceError(
                "this looks like a CSV table, not like sequences separated by blanks; use --set traces.layout=long or "
                "--set traces.layout=wide, or --set traces.delimiter=, if each line is one person's sequence"
            )
        row = "(n << 32) + c1 - 1 AS row"  # the number of its line, shifted, and its position
        cells = f"SELECT n AS c0, generate_subscripts(words, 1) AS c1, unnest(words) AS c2, {row} FROM {lines}"
        self.run(lambda: self._connection.execute(f"CREATE TABLE kept AS {cells}"))
        return self._table(
            self._connection.table("kept"),
            ("user", "time", "state"),
            lambda row: f"sequence {row >> 32}, value {row % (1 << 32) + 1}",
        )

    def _chosen(self, names: Sequence[str], row: str, files: str, where: str | None) -> Any:
        """The columns of files as c0, c1, ... and row, of the rows for which a condition holds.

        The condition may come from a project file of others: an expression without a subquery reads and writes no files.
        """
        columns = ", ".join(f"{_identifier(name)} AS c{k}" for k, name in enumerate(names))
        query = f"SELECT {columns}, {row} AS row FROM {files}"
        if where is None:
            return self.run(lambda: self._connection.sql(query))
        self._has_condition = True
        try:
            parsed = "(SELECT json_serialize_sql(?) AS t)"
            said = f"SELECT t ->> '$.error_message', contains(t, '\"class\":\"SUBQUERY\"') FROM {parsed}"
            ((problem, is_nested),) = self._connection.execute(said, [f"SELECT {where}"]).fetchall()
            if problem is None and not is_nested:
                return self._connection.sql(f"{query} WHERE ({where})")
            problem = problem or "it has a subquery"
        except duckdb.Error as error:
            problem = str(error).splitlines()[0]
        raise InputError(f"expected where to be an SQL condition on the columns, such as zone <> 'depot': {problem}")

    def _table(
        self, relation: duckdb.DuckDBPyRelation, names: Sequence[str], place: Callable[[int], str]
    ) -> SourceTable:
        rows = Rows(relation, True, kind="file", place=place, run=self.run)
        return SourceTable(rows, tuple(names), rows.kinds)

    def run(self, query: Callable[[], Any]) -> Any:
        """Return the result of a query, which runs in another thread while this one handles signals and reports the progress.

        Raises
        ------
        TraceError
            The files are damaged or of another format.
        OutputError
            The disk is full.
        """
        with ThreadPoolExecutor(1) as worker:
            answer = worker.submit(query)
            try:
                while wait([answer], timeout=0.2).not_done:
                    progressed(READING, max(self._connection.query_progress(), 0.0) / 100.0)
            except BaseException:
                self._connection.interrupt()
                raise
        failure = answer.exception()
        if failure is None:
            return answer.result()
        del answer  # it holds the failure, whose frames would hold it
        raise _translated(failure, self._has_condition) from None


def _threads() -> int:
    """Threads of DuckDB: ``TEMPORALDP_THREADS``, or one for every core that this process may run on."""
    asked = os.environ.get("TEMPORALDP_THREADS")
    if asked is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not asked.isdecimal() or int(asked) < 1:
        raise InputError(f"expected TEMPORALDP_THREADS to be a whole number from 1, got {asked!r}")
    return int(asked)


def _place(paths: Sequence[Path], split: Callable[[int], tuple[int, int]]) -> Callable[[int], str]:
    """Name of a row in messages: with its file if there are several, which `split` finds."""

    def place(row: int) -> str:
        if len(paths) == 1:
            return f"data row {row + 1}"
        file, own = split(row)
        return f"data row {own + 1} of {paths[file].name}"

    return place


def _translated(error: BaseException, has_condition: bool) -> BaseException:
    """DuckDB's error as one of this package; whether rows are chosen by a condition."""
    if not isinstance(error, duckdb.Error):
        return error
    said = str(error)
    if isinstance(error, duckdb.OutOfMemoryException) or "No space left" in said or "temp_directory" in said:
        reason = brief(Exception(said.partition("Possible solutions")[0]))
        return OutputError(
            f"not enough room for what does not fit in memory: {reason}; give more memory (--set "
            f"traces.memory=4GiB), or room for "
            "temporary files in another folder (TMPDIR)"
        )
    # DuckDB's message has the entry, which may be protected.
    has_entry = isinstance(error, duckdb.ConversionException | duckdb.InvalidInputException)
    reason = brief(error)
    if has_entry:
        reason = "an entry cannot be converted" + (
            " as a condition asks (where; use TRY_CAST(column AS type) or try_strptime)" if has_condition else ""
        )
    return TraceError(
        _bad_record(said) or f"the table cannot be read: {reason}; if a file was cut off or damaged, write it again"
    )


def _bad_record(said: str) -> str | None:
    """The error in a record of a CSV file, if DuckDB's message is about one, without the record, which may be protected."""
    found = re.search(r"CSV Error on Line: (\d+)\n", said)
    if found is None:
        return None
    file = re.search(r"^  file = (.*)$", said, re.MULTILINE)
    where = f"record {found[1]}" + ("" if file is None else f" of {Path(file[1]).name}")
    if columns := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", said):
        return (
            f"{where} has {columns[2]} columns, where the header, which is record 1, has {columns[1]}; mend it, or name the "
            "separator (--set traces.delimiter=X)"
        )
    if "unterminated quote" in said:
        return f"a quote is opened in {where} and not closed, or is followed by more than the separator"
    is_encoded = re.search("utf-8 encoded|[Ii]nvalid unicode", said) is None
    return f"{where} cannot be read" + (", or is too long; write it again" if is_encoded else f": {NOT_UTF_8}")


def _close(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    connection.close()
    remove_folder(folder)


def _list(paths: Sequence[Path]) -> str:
    return "[" + ", ".join(_quoted(glob.escape(os.fspath(path))) for path in paths) + "]"


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def cuts(groups: Sequence[tuple[Any, Any, int]]) -> tuple[Any, ...]:
    """Values that separate parts; none where the files are small, or their values are not in order.

    For any cuts, every row is in one part, and all rows of a value are in the same one: cuts affect cost alone. Where each of
    many files is ordered by itself, such as one per day, parts are larger, so that few row groups are in several of them.

    Parameters
    ----------
    groups : sequence of (least, largest, cells)
        Statistics of every row group.
    """
    total = sum(cells for _, _, cells in groups)
    size = max(
        LEAST_CELLS, total / 100
    )  # every part is a query, which looks at what the files say of all their row groups
    ordered = sorted(groups, key=lambda group: group[0])
    while found := _edges(ordered, size):
        parts_of = (bisect_right(found, high) - bisect_right(found, low) + 1 for low, high, _ in ordered)
        read = sum(cells * n for n, (_, _, cells) in zip(parts_of, ordered, strict=True))
        if read <= 1.5 * total:
            return tuple(found)
        size *= 2.0
    return ()


def _edges(ordered: Sequence[tuple[Any, Any, int]], size: float) -> list[Any]:
    found: list[Any] = []
    last, held = ordered[0][0] if ordered else None, 0
    for least, _, cells in ordered:
        if held >= size and least > last:
            found.append(least)
            last, held = least, 0
        held += cells
    return found
