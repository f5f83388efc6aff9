"""Traces from a table of any size: a frame, CSV or Parquet in one file or many, or text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from temporaldp.base.errors import InputError, StateError, TraceError
from temporaldp.base.names import listed, state_names
from temporaldp.base.values import refuse
from temporaldp.data.files.places import (
    OTHER_PROGRAMS,
    csv_header,
    is_parquet,
    kind_of,
    mapping_place,
    mixed_columns,
    parquet_columns,
    same_header,
    trace_files,
)

if TYPE_CHECKING:
    from temporaldp.data.tables.grid import Fill, Grid, Ties
    from temporaldp.data.tables.layouts import Spelling
    from temporaldp.data.tables.relations import Rows, SourceTable
    from temporaldp.data.tables.trace_table import TraceTable
    from temporaldp.data.tables.trajectories import Trajectories

Layout: TypeAlias = Literal["auto", "long", "wide", "sequences"]


def read_traces(
    source: Any,
    *,
    layout: Layout = "auto",
    user: str = "user",
    time: str = "time",
    state: str = "state",
    end: str | None = None,
    end_state: str | None = None,
    by: str | None = None,
    states: Iterable[object] | None = None,
    states_from: Mapping[str, str] | str | os.PathLike[str] | None = None,
    other: str | None = None,
    missing: Iterable[str] | None = None,
    time_format: str | None = None,
    decimal: str = ".",
    delimiter: str | None = None,
    encoding: str = "utf-8",
    gaps: bool = False,
    sort: bool = False,
    ties: Ties | None = None,
    absent: str | None = None,
    every: str | None = None,
    fill: Fill | None = None,
    fill_limit: str | None = None,
    timezone: str | None = None,
    where: str | None = None,
    memory: str = "1GiB",
) -> TraceTable:
    """Read the state of each user at each time from a table of any size.

    Only two small tables are held in memory: the number of people in each state at each time, and the number of transitions
    between each pair of states. Files are read by DuckDB; frames are queried in place.

    Parameters
    ----------
    source : path, or a table
        ``.csv``, ``.tsv`` (also ``.gz``) or ``.parquet``, a pattern (``data/*.parquet``) or a folder of such files; anything
        else is text with one person's sequence per line. Or a table: pandas, Polars (eager or lazy), PyArrow, a DuckDB
        relation, a PySpark DataFrame.
    layout : {"auto", "long", "wide", "sequences"}
        "long": one row per user and time, each user's rows in order of time. "wide": one row per user, one column per step,
        in order.
        "sequences": one person per line of text, or per row of a table with columns `user` and `state`; states separated by
        blanks, in a table also by commas, semicolons, bars, brackets or quotes. "auto": by suffix, then by column names.
    user, time, state : str
        Column names of the long layout; `user` also of the wide one.
    end, end_state : str, optional
        Columns of intervals, with `every`: a row is a state from `time` to `end`, such as a trip or a stay. From the end on a
        person has the state in column `end_state`, or is absent without it. An interval without an end goes on until the next
        one of the person begins.
    by : str, optional
        Column with the group of each person, such as a region.
    states : sequence of names, optional
        The public domain, in this order; a state outside it is an error. Without it, the states that occur, sorted.
    states_from : path or mapping, optional
        The state of each entry, such as the zone of a station: a mapping, or a CSV or Parquet file whose first two columns are
        entry and state, or two others after a colon: ``"stations.csv:name,city"``. Its states are then the domain.
    other : str, optional
        State of all entries that `states_from`, or else `states`, does not list.
    missing : sequence of str, optional
        Texts that are no value beside the empty one, such as ``["-1"]``. Default: NA, N/A, NaN, null, none.
    time_format : str, optional
        How times are written, as for `datetime.strptime`: ``"%d.%m.%Y %H:%M"``; or "unix" or "unix_ms": seconds or milliseconds
        since 1970. Default: numbers, ISO dates and timestamps, months.
    decimal : {".", ","}
        Decimal mark of times that are numbers.
    delimiter : str, optional
        Delimiter of CSV files (default: the most frequent of comma, semicolon, tab and bar outside of quotes in the first
        line) and of sequences (default: blanks).
    encoding : str
        Encoding of text files, such as "latin-1", "cp1252" or "utf-16".
    gaps : bool
        Whether a cell without a state means that the user was not observed then; in the wide layout also where there is a
        state of absence. (A missing row in the long layout, or a shorter sequence, always means it.) Gaps are not bridged.
        With ``fill="last"``, the user is `absent` from such a row on.
    sort : bool
        Whether to sort rows (long) or columns (wide) by time. Without it, times out of order are an error, as they often mean
        that the column is not the time. Rows of a DuckDB relation or a Spark DataFrame have no order, and are
        always sorted.
    ties : {"last", "first", "longest"}, optional
        Which of several states of a person at one time counts, by the order of rows (or of names, where rows have none); with
        `every`, of all in one step ("longest": the state kept for most of it; the default for different times is the last
        one). Without it, two states at one time are an error. With it, an interval that begins before the last one of the same
        person has ended ends that one.
    absent : str, optional
        Name of a state of people without a row at a time: the number of present people is then protected like any other count,
        and only the number of all people is public.
    every : str, optional
        Step of the grid on which rows that are events at irregular times are put: "15min", "1h", "1d", "1w" (or a number, for
        numeric times). The state of a user at a step is that of their last event up to it. Hours and shorter steps are elapsed
        time; days and weeks are those of the clock in `timezone`, with its daylight saving.
    fill : {"last", "absent"}
        With `every`: the state of a user at a step with no event since the previous step. "last": the state of their last
        event, from the first event on; before, and after `fill_limit`, the user is `absent`, or not observed without it.
        "absent": the state named by `absent`. Of intervals, "last".
    fill_limit : str, optional
        How long a state is kept without another event, such as "8h"; counted in whole steps after its own, rounded up.
    timezone : str, optional
        With `every`: time zone of days, and of times without an offset, such as "Europe/Amsterdam".
    where : str, optional
        SQL condition (DuckDB's dialect) on the rows of a CSV or Parquet file, such as ``"zone <> 'depot'"``, without a
        subquery. The columns of a CSV file are text. Filter a data frame or a relation before it is passed.
    memory : str
        Limit of DuckDB's memory for files, such as "4GiB"; the rest is spilled to temporary files.

    Returns
    -------
    TraceTable

    Raises
    ------
    MissingFileError
        There is no such file.
    TraceError
        Wrong columns, an empty file, a missing entry, two states of a user at one time, or times that cannot be ordered or are
        not in order.
    StateError
        A state outside `states`.
    """
    from temporaldp.data.tables.encoding import Meaning, entries_named
    from temporaldp.data.tables.grid import Grid
    from temporaldp.data.tables.layouts import Spelling
    from temporaldp.data.tables.trace_table import TraceTable

    domain = None if states is None else state_names(states)
    refuse(
        (
            layout not in {"auto", "long", "wide", "sequences"},
            InputError(f"expected layout auto, long, wide or sequences, got {layout!r}"),
        ),
        (
            every is None and not {fill, timezone, fill_limit, end, end_state} <= {None},
            InputError(
                "fill, fill_limit, timezone, end and end_state are about a grid: they need its step, such as every='1h'"
            ),
        ),
        (
            end_state is not None and end is None,
            InputError("end_state is the state from the end of an interval on: name the column of ends (end=...)"),
        ),
        (
            end is not None and fill == "absent",
            InputError(
                "expected fill='last' for intervals, got 'absent': a person is absent between them where there is no end_state"
            ),
        ),
        (
            every is not None and end is None and fill not in {"last", "absent"},
            InputError(
                "with every, expected the state at a step without an event: fill='last' for the last one, fill='absent' for "
                f"absent; got {fill!r}"
            ),
        ),
        (
            fill == "absent" and (fill_limit is not None or ties == "longest"),
            InputError("fill_limit and ties='longest' are about states that are kept: take fill='last'"),
        ),
        (
            other is not None and states is None and states_from is None,
            InputError("other is the state of what is not listed: give states or states_from"),
        ),
    )
    fill = "last" if end is not None else fill
    away = absence_of(absent, fill, fill_limit, end, end_state)
    meaning = None
    if states_from is not None or other is not None:
        found = None if states_from is None else entries_of(states_from, encoding)
        listed_states = (domain or ()) if found is None else ()  # a mapping may give an entry the name of another state
        kept = tuple(name for name in (away if fill == "last" else None, *listed_states) if name is not None)
        meaning = Meaning(found, other, kept)
        domain = domain if domain is None or other in {None, *domain} else (*domain, str(other))
    if domain is not None and fill == "last" and away is not None and away not in domain:
        domain = (*domain, away)
    names = {"user": user, "time": time, "state": state, "end": end, "end_state": end_state, "group": by}
    grid = None if every is None or fill is None else Grid(every, fill, timezone, fill_limit, ties, away)
    with named(source_name(source, where)):
        table, layout = any_table(source, layout, delimiter, memory, where, encoding)
        if missing is not None:
            words = ("", *(str(word).strip().lower() for word in missing))
            table = replace(table, rows=replace(table.rows, missing_words=words))
        columns = {role: name for role, name in names.items() if name is not None}
        if grid is not None:
            grid = replace(grid, skips=gaps, named=entries_named(domain, meaning))
        rows, terms = _laid_out(
            table, layout, columns, grid, Spelling(time_format, decimal), gaps=gaps, sort=sort, ties=ties, absent=away
        )
        return TraceTable(rows, states=domain, meaning=meaning, **terms)


def absence_of(
    absent: str | None, fill: Fill | None, fill_limit: str | None, end: str | None, end_state: str | None
) -> str | None:
    """Name of the state of absence that traces have by these parameters of `read_traces`; None where they have none."""
    goes = fill == "absent" or fill_limit is not None or (end is not None and end_state is None)
    return "absent" if absent is None and goes else absent


def source_name(source: Any, where: str | None) -> str:
    """Name of a source in messages; a condition may name people, and is not shown."""
    if not isinstance(source, str | os.PathLike):
        return type(source).__name__
    return os.fspath(source) if where is None else f"{os.fspath(source)} (rows chosen by where)"


@contextmanager
def named(source: str) -> Iterator[None]:
    """Context in which error messages begin with the name of the source."""
    try:
        yield
    except (TraceError, StateError) as error:
        raise type(error)(f"{source}: {error}") from None


def _laid_out(
    table: SourceTable,
    layout: Layout,
    names: dict[str, str],
    grid: Grid | None,
    spelling: Spelling,
    *,
    gaps: bool,
    sort: bool,
    ties: Ties | None,
    absent: str | None,
) -> tuple[Rows, dict[str, Any]]:
    """The rows of a table, one for each person and time; and how `TraceTable` takes them."""
    from temporaldp.data.tables.grid import on_grid, one_state
    from temporaldp.data.tables.layouts import (
        interval_traces,
        is_long,
        long_traces,
        require_columns,
        sequence_traces,
        wide_traces,
    )

    columns = names["user"], names["time"], names["state"], names.get("group")
    terms: dict[str, Any] = {"absent": absent, "gaps": gaps, "sort": True}
    kept = {"held": True, "absent": None, "away": None if grid is None else grid.away}
    if layout != "sequences":
        require_columns(table, {})
    if "end" in names and grid is not None:
        events, *known = interval_traces(table, names, grid.away, overlap=ties is not None, spelling=spelling)
        rows, times = on_grid(events, replace(grid, ties=ties or "last"), sort=True, known=(known[0], known[1]))
        return rows, terms | kept | {"times": times}
    if layout == "long" or (layout == "auto" and is_long(table, names["time"], names["state"])):
        rows = long_traces(table, *columns, spelling=spelling)
        if grid is None:
            if ties is not None:
                return one_state(rows, ties), terms | {"sort": sort or ties == "first"}
            return rows, terms | {"sort": sort}
        rows, times = on_grid(rows, grid, sort=sort)
        return rows, terms | (kept if grid.fill == "last" else {}) | {"times": times}
    if grid is not None or ties is not None:
        raise TraceError(
            "every, fill and ties are for events, one row each with a column for the time (layout long), but this table has a "
            "column for each step, or sequences: leave them out (of the settings, too)"
        )
    if layout == "sequences":
        if table.header == ("user", "time", "state"):  # lines of text
            return long_traces(table, "user", "time", "state"), terms
        return sequence_traces(table, names["user"], names["state"], names.get("group")), terms
    rows, times = wide_traces(table, names["user"], sort=sort, group=names.get("group"), spelling=spelling)
    return rows, terms | {"times": times, "wide": True, "gaps": gaps or absent is not None}


def entries_of(source: Mapping[str, str] | str | os.PathLike[str], encoding: str = "utf-8") -> dict[str, str]:
    """The state of each entry: a mapping, or two columns of a file, by default the first two (``FILE:entry,state``).

    Raises
    ------
    MissingFileError, TraceError
        No such file or columns, or an entry with several states.
    """
    if isinstance(source, Mapping):
        given = {str(entry).strip(): str(state).strip() for entry, state in source.items()}
        state_names(dict.fromkeys(given.values()))
        return given
    from temporaldp.data.tables.layouts import name_sql
    from temporaldp.data.tables.relations import stripped

    path, columns = mapping_place(source)
    with named(str(path)):
        table, _ = mapping_table(path, encoding)
        names = list(columns or table.header[:2])
        if len(names) != 2 or not set(names) <= set(table.header):
            raise TraceError(f"expected two columns, entry and state, of {listed(table.header)}, got {listed(names)}")
        cells = [stripped(name_sql(table, name, as_text=True)) for name in names]
        pairs = table.rows.asked(f"SELECT {cells[0]} AS entry, {cells[1]} AS state FROM rows ORDER BY row").to_pylist()
        found: dict[str, str] = {}
        for pair in pairs:
            if pair["state"] != found.setdefault(pair["entry"], pair["state"]):
                raise TraceError(
                    f"{pair['entry']!r} in column {names[0]!r} has two states in column {names[1]!r}: keep one row for it"
                )
        state_names(dict.fromkeys(found.values()))  # refuses names that are empty or look alike
        return found


def mapping_table(path: Path, encoding: str) -> tuple[SourceTable, Layout]:
    """The table of a mapping of states: text in UTF-8 or, if it is not, in the encoding of the traces."""
    try:
        return any_table(path, "long")
    except TraceError:
        if encoding == "utf-8":
            raise
        return any_table(path, "long", encoding=encoding)


def any_table(
    source: Any,
    layout: Layout,
    delimiter: str | None = None,
    memory: str = "1GiB",
    where: str | None = None,
    encoding: str = "utf-8",
) -> tuple[SourceTable, Layout]:
    """A file, a pattern, a folder or a frame as one table with any columns; and its layout, known for text with sequences.

    Raises
    ------
    InputError, MissingFileError, TraceError
    """
    from temporaldp.data.files.embedded import Embedded
    from temporaldp.data.tables.relations import table_of

    separator = "\t" if delimiter == "\\t" else delimiter
    if separator is not None and (len(separator) != 1 or not separator.isascii()):
        raise InputError(f"expected a delimiter of one ASCII character (or \\t for a tab), got {delimiter!r}")
    paths = trace_files(source) if isinstance(source, str | os.PathLike) else ()
    for path in paths:
        if (how := OTHER_PROGRAMS.get(path.suffix.lower())) is not None:
            raise TraceError(f"expected CSV, Parquet or text, got {path.suffix}: {how}")
    are_files = all(kind_of(one) or is_parquet(one) for one in paths)
    are_tables = layout in {"long", "wide"} or are_files
    if where is not None and not (paths and are_tables):
        raise InputError(
            "where is a condition on the rows of CSV and Parquet files: filter other tables before passing them"
        )
    if not paths:
        return table_of(source), layout
    engine = Embedded(memory)
    if encoding.lower().replace("_", "-") not in {"utf-8", "utf8", "utf-8-sig"} and not all(map(is_parquet, paths)):
        paths = engine.in_utf_8(paths, encoding)
    if not are_tables:
        if len(paths) > 1:
            raise TraceError(f"sequences are read from one file, but these are {len(paths)}")
        return engine.sequences(paths[0], separator), "sequences"
    if all(map(is_parquet, paths)):
        columns = [parquet_columns(path) for path in paths]
        # Names as written: DuckDB identifies a column of several files by its name.
        header = tuple(name.strip() for name in same_header(paths, [[name for name, _ in each] for each in columns]))
        return replace(engine.parquet(paths, header, where), unreadable=mixed_columns(paths, columns)), layout
    _, separator = csv_header(paths[0], separator)
    header = same_header(paths, [csv_header(path, separator)[0] for path in paths])
    return engine.csv(paths, header, separator, where), layout


def load_sample() -> TraceTable:
    """Sleep stages of 151 people in 47 five-minute steps (HMC sleep staging database, CC BY 4.0; see NOTICE).

    Examples
    --------
    >>> load_sample()
    TraceTable(151 users, 47 times, 5 states: 'W', 'R', 'N1', 'N2' and 1 more)
    """
    with as_file(files("temporaldp.data.sample") / "sleep_5min.csv") as path:
        return read_traces(path, states=("W", "R", "N1", "N2", "N3"))


def sample_commuters(n_people: int = 12_000, *, seed: int = 0) -> Trajectories:
    """Synthetic zones of people in a town, every quarter of an hour of a Monday: from home to work or school and back.

    Most people leave around 8:00 and return around 17:00; three in ten stay at home, and some run an errand. No real person is
    in these data.

    Parameters
    ----------
    n_people : int
    seed : int

    Examples
    --------
    >>> sample_commuters(500)
    Trajectories(500 users, 96 times, 6 states: 'Centre', 'Docks', 'Harbour', 'Hill' and 2 more)
    """
    from temporaldp.data.tables.trajectories import Trajectories

    zones = ("Centre", "Docks", "Harbour", "Hill", "Park", "Station")
    rng = np.random.default_rng(seed)
    hour = np.arange(96) / 4.0
    home = rng.choice(6, n_people, p=[0.08, 0.12, 0.15, 0.3, 0.25, 0.1])
    work = rng.choice(6, n_people, p=[0.45, 0.2, 0.1, 0.05, 0.05, 0.15])
    errand, begin = rng.integers(0, 6, n_people), rng.uniform(9.0, 20.0, n_people)
    leaves, returns = rng.normal(8.0, 0.8, n_people), rng.normal(17.2, 1.1, n_people)
    works, runs = rng.random(n_people) < 0.7, rng.random(n_people) < 0.25
    away = works[:, None] & (hour >= leaves[:, None]) & (hour < returns[:, None])
    out = runs[:, None] & (hour >= begin[:, None]) & (hour < begin[:, None] + 0.75)
    codes = np.where(out, errand[:, None], np.where(away, work[:, None], home[:, None]))
    times = [f"2024-03-04T{quarter // 4:02}:{quarter % 4 * 15:02}" for quarter in range(96)]
    return Trajectories(codes, states=zones, times=times)
