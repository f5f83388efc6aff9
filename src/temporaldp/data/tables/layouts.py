"""Tables as traces: one row per person and time (long), or one row per person and one column per time (wide)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from temporaldp.base.errors import InputError, TraceError
from temporaldp.base.names import listed, printable
from temporaldp.data.tables.encoding import refuse_missing
from temporaldp.data.tables.moments import Times, TimesOf, ordered_labels, unlike_the_others
from temporaldp.data.tables.relations import CONTENTS, FRACTIONS, TEXT, WHOLE, Rows, SourceTable


def is_long(table: SourceTable, time: str, state: str) -> bool:
    """Whether a table is long, with columns of times and states; an error where only one of them is a column."""
    lacking = {role: name for role, name in (("time", time), ("state", state)) if name not in table.header}
    if len(lacking) == 1:
        ((role, name),) = lacking.items()
        raise TraceError(
            f"there is a column {(state if role == 'time' else time)!r} but no column {name!r} (the "
            f"{table.rows.kind} has {listed(table.header)}); name it with {_option(role)}, or give layout='wide' "
            "(--set traces.layout=wide) if every other column is a step"
        )
    return not lacking


def _option(role: str) -> str:
    """How to name the column of a role."""
    return f"{role}=... (--set traces.{role}=NAME)"


def require_columns(table: SourceTable, roles: dict[str, str], *, delimiter: bool = False) -> None:
    """Raise an error where columns are repeated, have two roles, are missing, or have names with control characters."""
    names = [printable(name, "name of column") for name in table.header]
    if len(set(roles.values())) < len(roles):
        named = ", ".join(f"{role} {name!r}" for role, name in roles.items())
        raise InputError(f"expected different columns for {', '.join(roles)}, got {named}")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise TraceError(f"column names are repeated: {listed(repeated)}")
    if lacking := [role for role, name in roles.items() if name not in table.header]:
        options = (_option("by" if role == "group" else role) for role in lacking)
        raise TraceError(
            f"no column {listed([roles[role] for role in lacking])} (the {table.rows.kind} has {listed(table.header)}); "
            f"name yours with {', '.join(options)}"
            + ("" if delimiter or table.rows.kind != "file" else ", or the separator (--set traces.delimiter=X)")
        )


def long_traces(table: SourceTable, user: str, time: str, state: str, group: str | None = None) -> Rows:
    """The named columns of a long table: user, time, state, row, and belongs for the group.

    Raises
    ------
    InputError, TraceError
        A column is named twice, is missing, or has entries that are not names, numbers or times.
    """
    require_columns(table, {"user": user, "time": time, "state": state} | ({} if group is None else {"group": group}))
    columns = [*_whose(table, user, group), f"{time_sql(table, time)} AS time"]
    rows = table.rows.then(f"SELECT {', '.join(columns)}, {name_sql(table, state)} AS state FROM rows")
    return replace(rows, user=user, time=time, state=state, group=group, cuts=table.cuts(user, 1))


def wide_traces(table: SourceTable, user: str, *, sort: bool, group: str | None = None) -> tuple[Rows, TimesOf]:
    """The cells of a wide table; and the times, from its header.

    Raises
    ------
    TraceError
        There is no step, the columns are in no order, or a person has two rows.
    """
    # Names that data frames give the column of row numbers when they are saved with it.
    if saved := [name for name in table.header if re.fullmatch(r"|Unnamed: \d+|__index_level_\d+__", name)]:
        raise TraceError(
            f"column {listed(saved)} looks like the row index of a data frame, not like a step; "
            "save without it (index=False) or drop the column"
        )
    require_columns(table, {"user": user} | ({} if group is None else {"group": group}))
    steps = [name for name in table.header if name not in {user, group}]
    if not steps:
        raise TraceError(f"the wide layout needs one column per step beside {user!r}, but there is none")
    times = _header_times(table, steps, sort=sort)
    columns = {f"c{table.header.index(name)}": name for name in steps}
    one_type = len({table.kinds[column] for column in columns}) == 1
    cells = [f"{name_sql(table, name, as_text=not one_type)} AS {column}" for column, name in columns.items()]
    whose = _whose(table, user, group)
    rows = replace(table.rows.then(f"SELECT {', '.join([*whose, *cells])} FROM rows"), user=user, group=group)
    refuse_missing(rows, "user")
    _refuse_two_rows(rows)
    inside = f"UNPIVOT INCLUDE NULLS (state FOR time IN ({', '.join(columns)}))"
    position = dict(zip(columns, times.codes, strict=True))
    return (
        replace(
            rows.then(f"SELECT {rows.identity}, time, state FROM rows {inside}"), cuts=table.cuts(user, len(steps))
        ),
        lambda raw: replace(times, codes=np.array([position[one] for one in raw], dtype=np.intp)),
    )


def _header_times(table: SourceTable, steps: Sequence[str], *, sort: bool) -> Times:
    """The header's names in order of time."""
    times = ordered_labels(steps)
    if sort and times is None:
        raise TraceError(
            f"the columns cannot be sorted by time: {listed(steps, 4)} are not numbers, dates or numbered words"
        )
    if times is None:
        if odd := unlike_the_others(steps):
            like = next(step for step in steps if step not in odd)
            raise TraceError(
                f"column {listed(odd)} is named unlike the others ({like!r}) and may not be a step; every column except "
                "that of users must be one: drop it, or name all steps in the same way"
            )
        return Times(tuple(steps), np.arange(len(steps)), np.ones(len(steps) - 1, dtype=bool), None)
    if times.labels != tuple(steps) and not sort:
        raise TraceError(
            f"the columns are not in order of time ({listed(steps, 4)}); if they are the steps, sort them with sort=True "
            "(--set traces.sort=true)"
        )
    return times


def _refuse_two_rows(rows: Rows) -> None:
    people = rows.then("SELECT user, count(*) AS n FROM rows GROUP BY user HAVING count(*) > 1")
    found = people.asked("SELECT min(CAST(user AS STRING)) AS name, max(n) AS n FROM rows").to_pylist()[0]
    if found["n"]:
        options = " and ".join(_option(role) for role in ("time", "state"))
        raise TraceError(
            f"user {found['name'].strip()!r} has {found['n']} rows, where a table with a column for each step has one; if a "
            f"row is a person at a time, the table is long (--set traces.layout=long): name the columns of time and state with "
            f"{options}"
        )


def _whose(table: SourceTable, user: str, group: str | None) -> list[str]:
    """The columns user, row, and belongs where there are groups."""
    groups = [] if group is None else [f"{name_sql(table, group)} AS belongs"]
    return [f"{name_sql(table, user)} AS user", "row", *groups]


def time_sql(table: SourceTable, name: str) -> str:
    """SQL of a column of times: as it is, decimals as fractions, categories as text."""
    column, kind = _readable(table, name)
    as_what = {TEXT: "STRING", "decimal numbers": "DOUBLE"}
    return f"CAST({column} AS {as_what[kind]})" if kind in as_what else column


def name_sql(table: SourceTable, name: str, *, as_text: bool = False) -> str:
    """SQL of a column of names: whole numbers and truth values as they are, others as text, 1.0 as 1."""
    column, kind = _readable(table, name)
    as_string = f"CAST({column} AS STRING)"
    if kind == FRACTIONS:
        is_whole = f"abs({column}) < 4e18 AND {column} = floor({column})"
        whole = f"CAST(CAST({column} AS BIGINT) AS STRING)"
        return f"CASE WHEN isnan({column}) THEN NULL WHEN {is_whole} THEN {whole} ELSE {as_string} END"
    return column if (kind.startswith(WHOLE) or kind == "truth values") and not as_text else as_string


def _readable(table: SourceTable, name: str) -> tuple[str, str]:
    """A column and what it holds. Lists, records and bytes are refused, with an example."""
    if name in table.unreadable:
        raise TraceError(
            f"column {name!r} holds {table.unreadable[name]}; write it with one type: text, numbers or times"
        )
    column = f"c{table.header.index(name)}"
    kind = table.kinds[column]
    if kind not in {words for _, words in CONTENTS}:
        first = table.rows.asked(f"SELECT {column} FROM rows ORDER BY row LIMIT 1").column(column).to_pylist()
        shown = f", such as {str(first[0])[:40]}" if first else ""
        raise TraceError(f"column {name!r} holds values of type {kind}{shown}; expected text, numbers or times")
    return column, kind
