"""Traces from CSV, Parquet or text, as `Trajectories`."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from temporaldp.correlation import Trajectories
from temporaldp.correlation.states import distinct, in_order, listed, state_names
from temporaldp.correlation.trajectories import ABSENT
from temporaldp.errors import InputError, StateError, TraceError
from temporaldp.files.atomic import brief, require_file
from temporaldp.files.times import Times, ordered_labels, ordered_times

Layout: TypeAlias = Literal["auto", "long", "wide", "sequences"]
Column: TypeAlias = NDArray[np.object_]
Domain: TypeAlias = tuple[str, ...] | None

SAVED_INDEX = r"|Unnamed: \d+|__index_level_\d+__"
"""Names that data frames give the column of row numbers when they are saved with it."""

MISSING_WORDS = frozenset({"", "nan", "na", "n/a", "null", "none", "<na>"})
"""What table programs write for a missing value; compared without case and surrounding blanks."""


def read_traces(
    path: str | Path,
    *,
    layout: Layout = "auto",
    user: str = "user",
    time: str = "time",
    state: str = "state",
    states: Iterable[object] | None = None,
    delimiter: str | None = None,
    gaps: bool = False,
    sort: bool = False,
) -> Trajectories:
    """Read who had which state when.

    Parameters
    ----------
    path : path
        ``.csv``, ``.tsv`` (also ``.gz``) or ``.parquet``: a table. Anything else: text with one person's sequence a line.
    layout : {"auto", "long", "wide", "sequences"}
        "long": one row per user and time, each user's rows in order of time. "wide": one row per user, one column per step,
        in order.
        "sequences": one person a line, states separated by blanks. "auto": by suffix, then by column names.
    user, time, state : str
        Column names of the long layout; `user` also of the wide one.
    states : sequence of names, optional
        The public domain, in this order; a state outside it is an error. Without it, the states that occur, sorted.
    delimiter : str, optional
        Of CSV files (default: comma, tab for .tsv) and of sequences (default: blanks).
    gaps : bool
        Whether a user may be missing at a time: an empty cell in the wide layout. (A missing row in the long layout, or a
        shorter line of a sequence, always means that the user was not observed.) Gaps are not bridged.
    sort : bool
        Whether to sort rows (long) or columns (wide) by time. Without it, times out of order are an error: they often mean
        that the column is not the time it seems to be.

    Returns
    -------
    Trajectories

    Raises
    ------
    MissingFileError
        There is no such file.
    TraceError
        Wrong columns, nothing in the file, a missing value, two states of a user at one time, times that cannot be ordered, or
        are not in order.
    StateError
        A state outside `states`.
    """
    source = require_file(path, "traces")
    if len({user, time, state}) < 3:
        raise InputError(f"expected three different columns, got user {user!r}, time {time!r} and state {state!r}")
    separator = "\t" if delimiter == "\\t" else delimiter
    if separator is not None and (len(separator) != 1 or not separator.isascii()):
        raise InputError(f"expected a delimiter of one ASCII character (or \\t for a tab), got {delimiter!r}")
    domain = None if states is None else state_names(states)
    try:
        if _is_table(source, layout):
            return _from_table(source, layout, (user, time, state), domain, separator, gaps, sort)
        return _from_lines(source, domain, separator)
    except (TraceError, StateError) as error:
        raise type(error)(f"{source}: {error}") from None


def _is_table(source: Path, layout: Layout) -> bool:
    if layout not in {"auto", "long", "wide", "sequences"}:
        raise InputError(f"expected layout auto, long, wide or sequences, got {layout!r}")
    suffixes = [suffix.lower() for suffix in source.suffixes]
    return layout in {"long", "wide"} or (
        layout == "auto" and (_is_parquet(source) or not {".csv", ".tsv", ".parquet"}.isdisjoint(suffixes))
    )


def _is_parquet(source: Path) -> bool:
    with source.open("rb") as file:
        return source.suffix.lower() == ".parquet" or file.read(4) == b"PAR1"


def _from_table(
    source: Path,
    layout: Layout,
    names: tuple[str, str, str],
    states: Domain,
    delimiter: str | None,
    gaps: bool,
    sort: bool,
) -> Trajectories:
    table = _parquet(source) if _is_parquet(source) else _csv(source, delimiter)
    table = table.rename_columns([name.strip() for name in table.column_names])
    columns = table.column_names
    user, time, state = names
    _refuse_repeated(columns)
    if layout == "auto":
        layout = _guess_layout(columns, names)
    if layout == "wide" and (saved := [name for name in columns if re.fullmatch(SAVED_INDEX, name)]):
        raise TraceError(
            f"column {listed(saved)} looks like the row index of a data frame, not like a step; "
            "save without it (index=False) or drop the column"
        )
    needed = (user, time, state) if layout == "long" else (user,)
    if lacking := [name for name in needed if name not in columns]:
        options = {user: "--user", time: "--time", state: "--state"}
        raise TraceError(
            f"no column {listed(lacking)} (the file has {listed(columns)}); name yours with "
            f"{', '.join(options[name] for name in lacking)}"
            + ("" if delimiter else ", or the separator with --delimiter")
        )
    if table.num_rows == 0:
        raise TraceError("the file has a header but no rows")
    read = {name: _objects(table, name) for name in (needed if layout == "long" else columns)}
    return _from_long(read, names, states, sort) if layout == "long" else _from_wide(read, user, states, gaps, sort)


def _guess_layout(columns: Sequence[str], names: tuple[str, str, str]) -> Layout:
    """Long if all three columns are there, wide if only the user's is; anything between is not guessed at."""
    _, time, state = names
    found = {name for name in (time, state) if name in columns}
    if len(found) == 1:
        (have,) = found
        lacking = time if have == state else state
        raise TraceError(
            f"there is a column {have!r} but no column {lacking!r} (the file has {listed(columns)}); name it with "
            f"--{'time' if lacking == time else 'state'}, or say --layout wide if every other column is a step"
        )
    return "long" if len(found) == 2 else "wide"


def _from_long(read: dict[str, Column], names: tuple[str, str, str], states: Domain, sort: bool) -> Trajectories:
    for name in names:
        _refuse_missing(read[name], name, states if name == names[2] else None)
    users, user_codes = distinct(_text(read[names[0]]))
    times = ordered_times(read[names[1]], names[1])
    domain, state_codes = _encoded(_text(read[names[2]]), states)
    cells = user_codes.astype(np.int64) * len(times.labels) + times.codes
    if not sort:
        _refuse_unsorted(users, user_codes, times)
    order = np.argsort(cells, kind="stable")
    twice = np.flatnonzero(np.diff(cells[order]) == 0)
    if twice.size:
        first, second = order[twice[0]], order[twice[0] + 1]
        raise TraceError(
            f"user {users[user_codes[first]]!r} has two states at time {times.labels[times.codes[first]]!r} (data rows "
            f"{first + 1} and {second + 1}: {domain[state_codes[first]]!r}, {domain[state_codes[second]]!r}); "
            f"{twice.size} such repetitions; keep one row per user and time"
        )
    codes = np.full((len(users), len(times.labels)), ABSENT, dtype=np.int32)
    codes.ravel()[cells] = state_codes
    return Trajectories(
        codes, states=domain, users=users, times=times.labels, consecutive=times.consecutive, step=times.step
    )


def _refuse_unsorted(users: Sequence[str], user_codes: NDArray[np.intp], times: Times) -> None:
    by_user = np.argsort(user_codes, kind="stable")
    falls = (np.diff(user_codes[by_user]) == 0) & (np.diff(times.codes[by_user]) < 0)
    if falls.any():
        earlier, later = by_user[int(np.argmax(falls))], by_user[int(np.argmax(falls)) + 1]
        raise TraceError(
            f"times are not in order: user {users[user_codes[later]]!r} has {times.labels[times.codes[later]]!r} (data row "
            f"{later + 1}) after {times.labels[times.codes[earlier]]!r} (data row {earlier + 1}); if that column is the time, "
            "sort with --sort"
        )


def _from_wide(read: dict[str, Column], user: str, states: Domain, gaps: bool, sort: bool) -> Trajectories:
    steps = [name for name in read if name != user]
    if not steps:
        raise TraceError(f"the wide layout needs one column per step beside {user!r}, but there is none")
    times = ordered_labels(steps)
    if sort and times is None:
        raise TraceError(
            f"the columns cannot be sorted by time: {listed(steps, 4)} are no numbers, dates or numbered words"
        )
    if times is not None and times.labels != tuple(steps):
        if not sort:
            raise TraceError(
                f"the columns are not in order of time ({listed(steps, 4)}); if they are the steps, sort them with --sort"
            )
        steps = list(times.labels)
    _refuse_missing(read[user], user)
    users = _text(read[user])
    names, counts = np.unique(users, return_counts=True)
    if (counts > 1).any():
        raise TraceError(f"user {names[counts > 1][0]!r} has {counts.max()} rows; the wide layout has one row per user")
    if not gaps:
        for step in steps:
            _refuse_missing(read[step], step, states, "; if the person was not observed then, say so with --gaps")
    cells = np.stack([_text(read[step]) for step in steps], axis=1)
    observed = ~np.stack([_missing(read[step], states) for step in steps], axis=1)
    if not observed.any():
        raise TraceError("every cell is empty")
    domain, state_codes = _encoded(cells[observed], states)
    codes = np.full(cells.shape, ABSENT, dtype=np.int32)
    codes[observed] = state_codes
    if times is None:
        return Trajectories(codes, states=domain, users=users, times=steps)
    return Trajectories(codes, states=domain, users=users, times=steps, consecutive=times.consecutive, step=times.step)


def _from_lines(source: Path, states: Domain, delimiter: str | None) -> Trajectories:
    opener = gzip.open if source.suffix.lower() == ".gz" else open
    try:
        with opener(source, "rt", encoding="utf-8-sig") as file:
            text = [line.strip() for line in file if line.strip()]
    except (UnicodeDecodeError, OSError, EOFError, zlib.error) as error:
        reason = brief(error)
        raise TraceError(f"expected text with one person's sequence a line, but it cannot be read: {reason}") from None
    commas = {line.count(",") for line in text}
    if delimiter is None and len(commas) == 1 and commas != {0}:
        raise TraceError(
            "this looks like a CSV table, not like sequences separated by blanks; say --layout long or --layout wide, or "
            "--delimiter , if each line is one person's sequence"
        )
    lines = [[cell.strip() for cell in line.split(delimiter)] for line in text]
    if not lines:
        raise TraceError("the file is empty")
    for number, line in enumerate(lines, start=1):
        if bad := [cell for cell in line if cell.lower() in MISSING_WORDS and cell not in (states or ())]:
            raise TraceError(
                f"sequence {number} holds {bad[0]!r}, which is no state; split the sequence there or drop it"
            )
    return Trajectories.from_sequences(lines, states=states, users=range(1, len(lines) + 1))


def _csv(source: Path, delimiter: str | None) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    separator = delimiter or ("\t" if ".tsv" in [suffix.lower() for suffix in source.suffixes] else ",")
    try:
        with pa.input_stream(str(source), compression="detect") as stream:
            header = csv.open_csv(stream, parse_options=csv.ParseOptions(delimiter=separator)).schema.names
        text = csv.ConvertOptions(column_types={name: pa.string() for name in header}, strings_can_be_null=False)
        return csv.read_csv(str(source), parse_options=csv.ParseOptions(delimiter=separator), convert_options=text)
    except (ValueError, TypeError, OSError, pa.ArrowException) as error:
        raise TraceError(
            f"expected a CSV table with a header row, but it cannot be read as one: {brief(error)}"
        ) from None


def _parquet(source: Path) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        names = parquet.read_schema(str(source)).names
        _refuse_repeated(names)
        return parquet.read_table(str(source))
    except (OSError, pa.ArrowException) as error:
        raise TraceError(f"expected a Parquet table, but it cannot be read as one: {brief(error)}") from None


def _refuse_repeated(columns: Sequence[str]) -> None:
    if repeated := sorted({name for name in columns if columns.count(name) > 1}):
        raise TraceError(f"column names are repeated: {listed(repeated)}")


def _objects(table: Any, name: str) -> Column:
    """A column as a NumPy array; missing entries are None, NaN or NaT."""
    import pyarrow as pa

    column = table.column(name)
    if pa.types.is_dictionary(column.type):  # a category: its codes would turn a null into the last category
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise TraceError(f"column {name!r} holds values of type {kind}; expected text, numbers or times")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # Where pandas is installed, to_numpy() loads it, which takes longer than all the rest of reading a small file.
        return np.array(column.to_pylist(), dtype=object)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _missing(column: Column, states: Domain = None) -> NDArray[np.bool_]:
    """Which entries are null, NaN, NaT or a word for them that is not the name of a state."""
    if column.dtype.kind in "fM":
        return np.asarray(np.isnan(column) if column.dtype.kind == "f" else np.isnat(column))
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=bool)
    words, inverse = _distinct(column)
    named = set(states or ())
    empty = [word is None or (str(word).strip().lower() in MISSING_WORDS and word not in named) for word in words]
    return np.array(empty)[inverse]


def _refuse_missing(
    column: Column, name: str, states: Domain = None, advice: str = "; drop the row or fill it in"
) -> None:
    bad = np.flatnonzero(_missing(column, states))
    if bad.size:
        raise TraceError(
            f"column {name!r} has no value in data row {bad[0] + 1} (got {column[bad[0]]!r}; {bad.size} such cells){advice}"
        )


def _text(column: Column) -> Column:
    """Every entry as stripped text; whole floats (a column that once had gaps) as integers."""
    if column.dtype.kind == "f":
        whole = np.isfinite(column) & (column == np.floor(column))
        return np.array([str(int(v)) if w else str(v) for v, w in zip(column, whole, strict=True)], dtype=object)
    words, inverse = _distinct(column)
    return np.array([str(word).strip() for word in words], dtype=object)[inverse]


def _distinct(column: Column) -> tuple[list[Any], NDArray[np.intp]]:
    """Distinct entries in order of appearance, and where each stands; works on mixed objects too."""
    seen: dict[Any, int] = {}
    inverse = np.fromiter((seen.setdefault(entry, len(seen)) for entry in column), dtype=np.intp, count=len(column))
    return list(seen), inverse


def _encoded(column: Column, states: Domain) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """The domain and each entry's position in it."""
    words, inverse = _distinct(column)
    domain = tuple(in_order(words)) if states is None else states
    position = {name: k for k, name in enumerate(domain)}
    if unknown := [word for word in words if word not in position]:
        raise StateError(f"state {listed(unknown)} is not among the expected states {listed(domain)}")
    return domain, np.array([position[word] for word in words], dtype=np.intp)[inverse]
