"""Tables as traces: a row per person and time (long) or per interval, a column per time (wide), or a sequence in a cell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from temporaldp.base.errors import InputError, TraceError
from temporaldp.base.names import listed, printable
from temporaldp.base.values import plural
from temporaldp.data.tables.encoding import refuse_missing
from temporaldp.data.tables.grid import moments
from temporaldp.data.tables.moments import Times, TimesOf, ordered_labels, unlike_the_others
from temporaldp.data.tables.relations import (
    CONTENTS,
    FRACTIONS,
    TEXT,
    UNIX,
    WHOLE,
    Rows,
    SourceTable,
    literal,
    stripped,
    without_blanks,
)


@dataclass(frozen=True, slots=True)
class Spelling:
    """How times are written.

    Parameters
    ----------
    time_format : str, optional
        Format as of `datetime.strptime`, or unix or unix_ms. Default: numbers, ISO dates and timestamps.
    decimal : str
        The decimal mark of numbers.
    """

    time_format: str | None = None
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.decimal not in {".", ","}:
            raise InputError(f"expected the decimal mark . or , got {self.decimal!r}")
        given = self.time_format
        if given is None or given in UNIX:
            return
        if not re.fullmatch(r"(?:[^%]|%[aAbBdfHIjmMpSyYzZ%])*", given) or not re.search("%[yY]", given):
            raise InputError(
                f"expected time_format to be {', '.join(UNIX)}, or a format with the year (%Y or %y), such as "
                f"'%d.%m.%Y %H:%M' for 22.10.2014 11:15, got {given!r}"
            )

    def sql(self, table: SourceTable, name: str) -> str:
        """SQL of a column of times: as it is, decimals as fractions, categories as text; or by the format.

        Raises
        ------
        TraceError
            An entry does not fit the format.
        """
        column, kind = _readable(table, name)
        text = f"CAST({column} AS STRING)"
        if self.decimal == ",":
            text = f"replace({text}, ',', '.')"
        if self.time_format is None:
            as_what = {TEXT: text, "decimal numbers": f"CAST({column} AS DOUBLE)"}
            return as_what.get(kind, column)
        instant = table.rows.instant(stripped(text), self.time_format)
        wrong = f"({instant}) IS NULL AND NOT {table.rows.is_missing(text)}"
        rows = table.rows.then(f"SELECT {text} AS entry, row FROM rows WHERE {wrong}")
        for first in rows.asked("SELECT *, count(*) OVER () AS n FROM rows ORDER BY row LIMIT 1").to_pylist():
            raise TraceError(
                f"time {first['entry']!r} in {table.rows.place(first['row'])} of column {name!r} does not have the "
                f"format {self.time_format!r} of time_format ({plural(first['n'], 'such cell')}): give the format of "
                "all entries (--set traces.time_format=...), or mend the entries"
            )
        return instant

    def label(self, name: str) -> str:
        """The name of a column of a wide table as an ISO date, where it has the format."""
        if self.time_format is not None and self.time_format not in UNIX:
            with suppress(ValueError):
                when = datetime.strptime(name, self.time_format)
                return when.isoformat().removesuffix("T00:00:00")
        return name


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


def long_traces(
    table: SourceTable, user: str, time: str, state: str, group: str | None = None, *, spelling: Spelling = Spelling()
) -> Rows:
    """The named columns of a long table: user, time, state, row, and belongs for the group.

    Raises
    ------
    InputError, TraceError
        A column is named twice, is missing, or has entries that are not names, numbers or times.
    """
    require_columns(table, {"user": user, "time": time, "state": state} | ({} if group is None else {"group": group}))
    columns = [*_whose(table, user, group), f"{spelling.sql(table, time)} AS time"]
    rows = table.rows.then(f"SELECT {', '.join(columns)}, {name_sql(table, state)} AS state FROM rows")
    return replace(rows, user=user, time=time, state=state, group=group, cuts=table.cuts(user, 1)).kept()


def sequence_traces(table: SourceTable, user: str, state: str, group: str | None = None) -> Rows:
    """The states of sequences, one in each row of a column, at positions from 1; separated by blanks or , ; |."""
    require_columns(table, {"user": user, "state": state} | ({} if group is None else {"group": group}))
    whose, cell = _whose(table, user, group), name_sql(table, state, as_text=True)
    rows = replace(table.rows.then(f"SELECT {', '.join(whose)}, {cell} AS state FROM rows"), user=user, group=group)
    refuse_missing(rows, "user")
    refuse_two_rows(rows, "where each person has one sequence: choose rows (--set traces.where=...)")
    words = f"SELECT {rows.identity}, {rows.words('state')} AS words FROM rows"
    numbered = f"SELECT {rows.identity}, generate_subscripts(words, 1) AS time, unnest(words) AS state FROM rows"
    return replace(rows.then(words).then(numbered), time="position", state=state).kept()


def interval_traces(
    table: SourceTable,
    names: dict[str, str],
    away: str | None,
    *,
    overlap: bool,
    spelling: Spelling = Spelling(),
) -> tuple[Rows, bool, bool]:
    """The beginnings and ends of intervals as events, with `moment`; whether moments are in UTC, and whether they are dates.

    Parameters
    ----------
    table : SourceTable
    names : dict
        Columns: user, time (of the beginning), state, end, and if any end_state and group.
    away : str, optional
        State from an end on, where there is no column for that.
    overlap : bool
        Whether an interval may begin before the last one of the same person has ended, which it then ends.

    Raises
    ------
    InputError, TraceError
    """
    require_columns(table, names)
    user, group, end = names["user"], names.get("group"), names["end"]
    if away is None and "end_state" not in names:
        raise InputError(
            "expected the state after an interval: a column (end_state=..., --set traces.end_state=NAME), or absence "
            "(absent=..., --set traces.absent=NAME)"
        )
    after = name_sql(table, names["end_state"], as_text=True) if "end_state" in names else literal(away)
    state = name_sql(table, names["state"], as_text=True)
    columns = [*_whose(table, user, group), f"{spelling.sql(table, names['time'])} AS time"]
    columns += [f"{spelling.sql(table, end)} AS ends", f"{state} AS state", f"{after} AS after"]
    rows = table.rows.then(f"SELECT {', '.join(columns)} FROM rows")
    rows = without_blanks(replace(rows, user=user, time=names["time"], state=names["state"], group=group).kept())
    refuse_missing(rows, "user")
    refuse_missing(rows, "time")
    begun, has_zone, is_date = moments(rows)
    is_open = rows.is_missing("CAST(ends AS STRING)")
    ended = begun.then(
        f"SELECT {rows.identity}, state, after, moment AS begins, CASE WHEN {is_open} THEN NULL ELSE ends END AS time FROM rows"
    )
    closed, *kinds = moments(replace(ended, time=end), "ends")
    if kinds != [has_zone, is_date] and closed.asked("SELECT count(time) AS n FROM rows").to_pylist()[0]["n"]:
        raise TraceError(f"times in columns {names['time']!r} and {end!r} are of different types: write them alike")
    order = f"begins, moment <= begins DESC NULLS LAST, {'row' if rows.has_order else 'state NULLS LAST'}"
    paired = closed.kept().then(
        f"SELECT *, CAST(user AS STRING) AS name, lead(begins) OVER (PARTITION BY user ORDER BY {order}) AS following FROM rows"
    )
    said = f"the interval in columns {names['time']!r} and {end!r} "
    _refuse_first(paired, "moment < begins", said + "ends before it begins; mend it, or leave out the row")
    if "end_state" in names:
        lacking = f"moment IS NOT NULL AND {rows.is_missing('CAST(after AS STRING)')}"
        _refuse_first(
            paired, lacking, f"an end has no state in column {names['end_state']!r}; fill it in, or leave out the end"
        )
    if not overlap:
        advice = "; mend it, or let the later one end the earlier one (ties='last', --set traces.ties=last)"
        _refuse_first(paired, "following < moment", said + "ends after the next one of this person has begun" + advice)
    ends = "moment IS NOT NULL AND (following IS NULL OR following > moment)"
    twice = paired.then(
        f"SELECT {rows.identity}, CASE part WHEN 0 THEN begins ELSE moment END AS moment, "
        "CASE part WHEN 0 THEN state ELSE after END AS state, part = 1 OR moment IS NULL AS limited FROM rows "
        "CROSS JOIN (VALUES (0), (1)) AS parts(part) "
        f"WHERE CASE part WHEN 0 THEN moment IS NULL OR moment > begins ELSE {ends} END"
    )
    shown = f"SELECT {rows.identity}, {rows.stamp('moment') if is_date else 'moment'} AS time, state, moment, limited FROM rows"
    return replace(twice.then(shown), time=names["time"]).kept(), has_zone, is_date


def _refuse_first(rows: Rows, wrong: str, said: str) -> None:
    for first in rows.asked(f"SELECT name, row FROM rows WHERE {wrong} ORDER BY row, name LIMIT 1").to_pylist():
        raise TraceError(f"user {first['name'].strip()!r} in {rows.place(first['row'])}: {said}")


def wide_traces(
    table: SourceTable, user: str, *, sort: bool, group: str | None = None, spelling: Spelling = Spelling()
) -> tuple[Rows, TimesOf]:
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
    times = _header_times([spelling.label(name) for name in steps], sort=sort)
    columns = {f"c{table.header.index(name)}": name for name in steps}
    one_type = len({table.kinds[column] for column in columns}) == 1
    cells = [f"{name_sql(table, name, as_text=not one_type)} AS {column}" for column, name in columns.items()]
    whose = _whose(table, user, group)
    rows = replace(table.rows.then(f"SELECT {', '.join([*whose, *cells])} FROM rows"), user=user, group=group)
    refuse_missing(rows, "user")
    options = " and ".join(_option(role) for role in ("time", "state"))
    refuse_two_rows(
        rows,
        "where a table with a column for each step has one; if a row is a person at a time, the table is long (--set "
        f"traces.layout=long): name the columns of time and state with {options}",
    )
    inside = f"UNPIVOT INCLUDE NULLS (state FOR time IN ({', '.join(columns)}))"
    position = dict(zip(columns, times.codes, strict=True))
    return (
        replace(
            rows.then(f"SELECT {rows.identity}, time, state FROM rows {inside}"), cuts=table.cuts(user, len(steps))
        ),
        lambda raw: replace(times, codes=np.array([position[one] for one in raw], dtype=np.intp)),
    )


def _header_times(steps: Sequence[str], *, sort: bool) -> Times:
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
                "that of users must be one: drop it, read it as a group of people (by=, --set traces.by=COLUMN), or name all "
                "steps in the same way"
            )
        return Times(tuple(steps), np.arange(len(steps)), np.ones(len(steps) - 1, dtype=bool), None)
    if times.labels != tuple(steps) and not sort:
        raise TraceError(
            f"the columns are not in order of time ({listed(steps, 4)}); if they are the steps, sort them with sort=True "
            "(--set traces.sort=true)"
        )
    return times


def refuse_two_rows(rows: Rows, advice: str) -> None:
    """Raise `TraceError` where a person has several rows."""
    people = rows.then("SELECT user, count(*) AS n FROM rows GROUP BY user HAVING count(*) > 1")
    found = people.asked("SELECT min(CAST(user AS STRING)) AS name, max(n) AS n FROM rows").to_pylist()[0]
    if found["n"]:
        raise TraceError(f"user {found['name'].strip()!r} has {found['n']} rows, {advice}")


def _whose(table: SourceTable, user: str, group: str | None) -> list[str]:
    """The columns user, row, and belongs where there are groups."""
    groups = [] if group is None else [f"{name_sql(table, group)} AS belongs"]
    return [f"{name_sql(table, user)} AS user", "row", *groups]


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
