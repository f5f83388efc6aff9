"""Traces from a table of any size: a frame, CSV or Parquet in one file or many, or text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from temporaldp.base.errors import InputError, StateError, TraceError
from temporaldp.base.names import state_names
from temporaldp.base.values import refuse
from temporaldp.data.files.places import (
    csv_header,
    is_parquet,
    kind_of,
    mixed_columns,
    parquet_columns,
    same_header,
    trace_files,
)

if TYPE_CHECKING:
    from temporaldp.data.tables.relations import SourceTable
    from temporaldp.data.tables.trace_table import TraceTable
    from temporaldp.data.tables.trajectories import Trajectories

Layout: TypeAlias = Literal["auto", "long", "wide", "sequences"]
Fill: TypeAlias = Literal["last", "absent"]


def read_traces(
    source: Any,
    *,
    layout: Layout = "auto",
    user: str = "user",
    time: str = "time",
    state: str = "state",
    by: str | None = None,
    states: Iterable[object] | None = None,
    step: str | None = None,
    delimiter: str | None = None,
    gaps: bool = False,
    sort: bool = False,
    absent: str | None = None,
    every: str | None = None,
    fill: Fill | None = None,
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
        "sequences": one person per line, states separated by blanks. "auto": by suffix, then by column names.
    user, time, state : str
        Column names of the long layout; `user` also of the wide one.
    by : str, optional
        Column with the group of each person, such as a region.
    states : sequence of names, optional
        The public domain, in this order; a state outside it is an error. Without it, the states that occur, sorted.
    step : str, optional
        Required length of one step, as in `.step` ("300 seconds", "1"); any other length is an error.
    delimiter : str, optional
        Delimiter of CSV files (default: the most frequent of comma, semicolon, tab and bar outside of quotes in the first
        line) and of sequences (default: blanks).
    gaps : bool
        Whether a user may be missing at a time: an empty cell in the wide layout. (A missing row in the long layout, or a
        shorter line of a sequence, always means that the user was not observed.) Gaps are not bridged.
    sort : bool
        Whether to sort rows (long) or columns (wide) by time. Without it, times out of order are an error, as they often mean
        that the column is not the time. Rows of a DuckDB relation or a Spark DataFrame have no order, and are
        always sorted.
    absent : str, optional
        Name of a state of people without a row at a time: the number of present people is then protected like any other count,
        and only the number of all people is public.
    every : str, optional
        Step of the grid on which rows that are events at irregular times are put: "15min", "1h", "1d", "1w" (or a number, for
        numeric times). The state of a user at a step is that of their last event up to it; of several events at one moment, the
        last row, or, where rows have no order, the last state by name. Hours and shorter steps are elapsed time; days and weeks
        are those of the clock in `timezone`, with its daylight saving.
    fill : {"last", "absent"}
        With `every`: the state of a user at a step with no event since the previous step. "last": the state of their last
        event, from the first event on, and none before; it excludes `absent`. "absent": the state named by
        `absent`.
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
    domain = None if states is None else state_names(states)
    refuse(
        (
            layout not in {"auto", "long", "wide", "sequences"},
            InputError(f"expected layout auto, long, wide or sequences, got {layout!r}"),
        ),
        (
            every is None and (fill is not None or timezone is not None),
            InputError("fill and timezone are about events on a grid: they need its step, such as every='1h'"),
        ),
        (
            every is not None and fill not in {"last", "absent"},
            InputError(
                "with every, expected the state at a step without an event: fill='last' for the last one, fill='absent' for "
                f"absent; got {fill!r}"
            ),
        ),
        (
            fill == "last" and absent is not None,
            InputError(
                f"expected no state of absence with fill='last', got absent={absent!r}: people keep the state of their last "
                "event; leave absent out, or take fill='absent'"
            ),
        ),
    )
    away = "absent" if absent is None and fill == "absent" else absent
    with named(source_name(source, where)):
        table, layout = any_table(source, layout, delimiter, memory, where)
        made = _laid_out(table, layout, (user, time, state, by), domain, gaps, sort, away, (every, fill, timezone))
        if step is not None and made.step != step:
            raise TraceError(f"expected steps of {step}, but the times are {made.step or 'without a unit'} apart")
    return made


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
    names: tuple[str, str, str, str | None],
    states: tuple[str, ...] | None,
    gaps: bool,
    sort: bool,
    absent: str | None,
    grid: tuple[str | None, Fill | None, str | None],
) -> TraceTable:
    from temporaldp.data.tables.grid import on_grid
    from temporaldp.data.tables.layouts import is_long, long_traces, require_columns, wide_traces
    from temporaldp.data.tables.trace_table import TraceTable

    (user, time, state, by), (every, fill, zone) = names, grid
    if layout == "sequences":
        return TraceTable(long_traces(table, "user", "time", "state"), sort=True, states=states, absent=absent)
    require_columns(table, {})
    if layout == "long" or (layout == "auto" and is_long(table, time, state)):
        traces = long_traces(table, user, time, state, by)
        if every is None:
            return TraceTable(traces, sort=sort, states=states, absent=absent)
        gridded, times = on_grid(traces, every, zone, sort=sort)
        return TraceTable(gridded, sort=True, times=times, states=states, absent=absent, held=fill == "last")
    if every is not None:
        raise TraceError(
            "every and fill are for events, one row each with a column for the time (layout long), but this table has a column "
            "for each step (layout wide): leave out traces.every and traces.fill, or history.every and history.fill"
        )
    cells, times = wide_traces(table, user, sort=sort, group=by)
    skipped = gaps or absent is not None
    return TraceTable(cells, sort=True, times=times, states=states, absent=absent, gaps=skipped, wide=True)


def any_table(
    source: Any, layout: Layout, delimiter: str | None = None, memory: str = "1GiB", where: str | None = None
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
    are_tables = layout in {"long", "wide"} or (
        layout == "auto" and all(kind_of(one) or is_parquet(one) for one in paths)
    )
    if where is not None and not (paths and are_tables):
        raise InputError(
            "where is a condition on the rows of CSV and Parquet files: filter other tables before passing them"
        )
    if not paths:
        if layout == "sequences":
            raise InputError("layout 'sequences' is for text files; a table is long or wide")
        return table_of(source), layout
    if not are_tables:
        if len(paths) > 1:
            raise TraceError(f"sequences are read from one file, but these are {len(paths)}")
        return Embedded(memory).sequences(paths[0], separator), "sequences"
    if all(map(is_parquet, paths)):
        columns = [parquet_columns(path) for path in paths]
        # Names as written: DuckDB identifies a column of several files by its name.
        header = tuple(name.strip() for name in same_header(paths, [[name for name, _ in each] for each in columns]))
        return replace(Embedded(memory).parquet(paths, header, where), unreadable=mixed_columns(paths, columns)), layout
    _, separator = csv_header(paths[0], separator)
    header = same_header(paths, [csv_header(path, separator)[0] for path in paths])
    return Embedded(memory).csv(paths, header, separator, where), layout


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
