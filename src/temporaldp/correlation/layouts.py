"""Tables as traces: one row a person and time, or one row a person and one column a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from temporaldp.correlation.encoding import refuse_missing
from temporaldp.correlation.frames import Column, Table, TraceFrame, words
from temporaldp.correlation.states import listed, require_different
from temporaldp.correlation.times import Times, ordered_labels, unlike_the_others
from temporaldp.errors import TraceError
from temporaldp.extras import needing

with needing("tables"):
    import narwhals as nw

SAVED_INDEX = r"|Unnamed: \d+|__index_level_\d+__"
"""Names that data frames give the column of row numbers when they are saved with it."""


def is_long(table: Table, time: str, state: str) -> bool:
    """Whether time and state are columns; where only one of them is, it is not guessed at."""
    found = {name for name in (time, state) if name in table.header}
    if len(found) == 1:
        (have,) = found
        lacking = time if have == state else state
        role = "time" if lacking == time else "state"
        raise TraceError(
            f"there is a column {have!r} but no column {lacking!r} (the {table.source.kind} has {listed(table.header)}); name "
            f"it with {_option(table, role)}, or say {_layout(table)} if every other column is a step"
        )
    return len(found) == 2


def _option(table: Table | TraceFrame, role: str) -> str:
    return table.source.advice(f"--set traces.{role}=NAME", f"{role}=...")


def _layout(table: Table) -> str:
    return table.source.advice("--set traces.layout=wide", 'layout="wide"')


def require_columns(table: Table, roles: dict[str, str], *, delimiter: bool = False) -> None:
    """Raise where columns are repeated, named twice, or not there."""
    if repeated := sorted({name for name in table.header if table.header.count(name) > 1}):
        raise TraceError(f"column names are repeated: {listed(repeated)}")
    if lacking := [role for role, name in roles.items() if name not in table.header]:
        options = {role: _option(table, "by" if role == "group" else role) for role in roles}
        raise TraceError(
            f"no column {listed([roles[role] for role in lacking])} (the {table.source.kind} has {listed(table.header)}); name "
            f"yours with {', '.join(options[role] for role in lacking)}"
            + ("" if delimiter or table.source.kind != "file" else ", or the separator (--set traces.delimiter=X)")
        )


def long_traces(table: Table, user: str, time: str, state: str, group: str | None = None) -> TraceFrame:
    """The named columns of a table with one row a person and time.

    Raises
    ------
    InputError, TraceError
        A column is named twice, is not there, or holds what is no name, number or time.
    """
    require_different(user, time, state, group)
    roles = {"user": user, "time": time, "state": state} | ({} if group is None else {"group": group})
    require_columns(table, roles)
    columns = [_readable(table, name).alias(role) for role, name in roles.items()]
    source = replace(table.source, user=user, time=time, state=state, group=group)
    return TraceFrame(table.frame.select(*columns, *_rows(table)), source, table.has_rows, table.cuts(user, 1))


@dataclass(frozen=True, slots=True)
class WideTraces:
    """A wide table's cells as long traces, and what its header says about times."""

    traces: TraceFrame
    times: Callable[[Column], Times]


def wide_traces(table: Table, user: str, *, sort: bool, group: str | None = None) -> WideTraces:
    """The cells of a table with one row a person and one column a step.

    Raises
    ------
    TraceError
        There is no step, the columns are in no order, or a person has two rows.
    """
    if saved := [name for name in table.header if re.fullmatch(SAVED_INDEX, name)]:
        raise TraceError(
            f"column {listed(saved)} looks like the row index of a data frame, not like a step; "
            "save without it (index=False) or drop the column"
        )
    require_columns(table, {"user": user} | ({} if group is None else {"group": group}))
    steps = [name for name in table.header if name not in {user, group}]
    if not steps:
        raise TraceError(f"the wide layout needs one column per step beside {user!r}, but there is none")
    times = _header_times(table, steps, sort=sort)
    source = replace(table.source, user=user, time="time", state="state", group=group)
    kept = [_readable(table, user).alias("user"), *([_readable(table, group).alias("group")] if group else [])]
    rows = TraceFrame(table.frame.select(*kept, *_rows(table)), source, table.has_rows)
    refuse_missing(rows, "user", name=user)
    _refuse_two_rows(rows)
    cells = _unpivoted(table, steps, kept, [name for name in ("user", "group") if name == "user" or group])
    traces = TraceFrame(cells, source, table.has_rows, table.cuts(user, len(steps)))
    labels = {f"c{table.header.index(name)}": k for k, name in enumerate(times.labels)}
    return WideTraces(
        traces, lambda raw: replace(times, codes=np.array([labels[column] for column in raw], dtype=np.intp))
    )


def _header_times(table: Table, steps: Sequence[str], *, sort: bool) -> Times:
    """The header's names in order of time."""
    times = ordered_labels(steps)
    if sort and times is None:
        raise TraceError(
            f"the columns cannot be sorted by time: {listed(steps, 4)} are no numbers, dates or numbered words"
        )
    if times is None:
        if odd := unlike_the_others(steps):
            like = next(step for step in steps if step not in odd)
            raise TraceError(
                f"column {listed(odd)} is named unlike the others ({like!r}), as if it were no step; every column but "
                "that of users is one: leave it out of the table, or name all steps alike"
            )
        return Times(tuple(steps), np.arange(len(steps)), np.ones(len(steps) - 1, dtype=bool), None)
    if times.labels != tuple(steps) and not sort:
        how = table.source.advice("--set traces.sort=true", "sort=True")
        raise TraceError(
            f"the columns are not in order of time ({listed(steps, 4)}); if they are the steps, sort them with {how}"
        )
    return times


def _unpivoted(table: Table, steps: Sequence[str], kept: list[nw.Expr], index: list[str]) -> nw.LazyFrame[Any]:
    """One row a cell. Where columns are of several types, all become text, whole floats that of whole numbers."""
    schema = table.frame.collect_schema()
    columns = [f"c{table.header.index(name)}" for name in steps]
    cells = [_readable(table, name).alias(column) for name, column in zip(steps, columns, strict=True)]
    if len({schema[column] for column in columns}) > 1:
        cells = [words(column, schema[column]).alias(column) for column in columns]
    frame = table.frame.select(*kept, *_rows(table), *cells)
    if frame.implementation.is_duckdb():  # narwhals would look for the table on another connection than it lives on
        rotated = f"FROM cells UNPIVOT INCLUDE NULLS (state FOR time IN ({', '.join(columns)}))"
        made: nw.LazyFrame[Any] = nw.from_native(nw.to_native(frame).query("cells", rotated))
        return made
    return frame.unpivot(columns, index=[*index, *_rows(table)], variable_name="time", value_name="state")


def _refuse_two_rows(rows: TraceFrame) -> None:
    people = rows.frame.group_by("user").agg(n=nw.len()).filter(nw.col("n") > 1)
    found = rows.collected(people.sort("user").head(1))
    if len(found):
        most = rows.collected(people.select(nw.col("n").max()))
        name, n = str(found.get_column("user").to_list()[0]).strip(), most.get_column("n").to_list()[0]
        options = " and ".join(_option(rows, role) for role in ("time", "state"))
        raise TraceError(
            f"user {name!r} has {n} rows, where a table with a column for each step has one; if a row is a person at a time, "
            f"name the columns of time and state with {options}"
        )


def _rows(table: Table) -> list[str]:
    return ["row"] if table.has_rows else []


def _readable(table: Table, name: str) -> nw.Expr:
    """A column; categories as the words that they stand for. Lists, records and bytes are refused, with an example."""
    if name in table.mixed:
        raise TraceError(f"column {name!r} holds {table.mixed[name]}; write it with one type")
    column = f"c{table.header.index(name)}"
    kind = table.frame.collect_schema()[column]
    if isinstance(kind, nw.List | nw.Array | nw.Struct | nw.Binary | nw.Object | nw.Unknown):
        first = table.frame.select(column).head(1).collect().get_column(column).to_list()
        shown = f", such as {str(first[0])[:40]}" if first else ""
        raise TraceError(
            f"column {name!r} holds values of type {str(kind).lower()}{shown}; expected text, numbers or times"
        )
    return nw.col(column).cast(nw.String()) if isinstance(kind, nw.Categorical | nw.Enum) else nw.col(column)
