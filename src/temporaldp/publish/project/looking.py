"""What a table looks like: its shape, the columns of its roles, and how its times are written, by contents before names."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from temporaldp.base.errors import InputError, TraceError
from temporaldp.base.names import listed
from temporaldp.base.values import plural
from temporaldp.data.files.places import trace_files
from temporaldp.data.files.traces import any_table, entries_of, mapping_table, named, source_name
from temporaldp.data.tables.encoding import refuse_missing
from temporaldp.data.tables.grid import moments
from temporaldp.data.tables.layouts import Spelling, long_traces, require_columns
from temporaldp.data.tables.moments import WORD, moment
from temporaldp.data.tables.trace_table import TraceTable
from temporaldp.publish.project.columns import (
    BEGIN_WORDS,
    END_WORDS,
    FORMATS,
    ROLES,
    Column,
    FarTimeError,
    columns_of,
    fits_format,
    is_named,
    moments_of,
    rank_of,
    require_no_far_time,
)
from temporaldp.publish.project.inputs import read
from temporaldp.publish.project.settings import TableSettings

if TYPE_CHECKING:
    from temporaldp.data.files.traces import Layout
    from temporaldp.data.tables.relations import Rows, SourceTable

GRIDS = {
    "1min": 60,
    "5min": 300,
    "15min": 900,
    "30min": 1800,
    "1h": 3600,
    "6h": 21_600,
    "1d": 86_400,
    "1w": 604_800,
}
"""Usual lengths of a step, in seconds."""

MAX_STATES = 200
"""A column with more distinct entries is not proposed as states."""


@dataclass(slots=True)
class Looked:
    """Properties of an inspected table.

    Parameters
    ----------
    settings : dict
        Keys of the section of the table.
    left_out : dict, optional
        Keys that its owner must complete or confirm: they stand in comments.
    facts : list of str
        Comments for the file.
    questions : list of str
        What only the owner of the table can decide.
    traces : Traces, optional
        The table as the other commands read it by these settings; None where they refuse it.
    """

    settings: dict[str, Any]
    left_out: dict[str, Any] = field(default_factory=dict)
    facts: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    traces: TraceTable | None = None


def look(path: Path, given: dict[str, Any] | None = None, every: str | None = None) -> Looked:
    """Look at one table: its layout and columns; and read it by them.

    Parameters
    ----------
    path : Path
    given : dict, optional
        Keys that are known already.
    every : str, optional
        Grid of other traces, on which events are put.
    """
    given, facts = dict(given or {}), list[str]()
    with named(source_name(path, None)):
        table, layout = _opened(path, given, facts)
        require_columns(table, {})
        table = replace(table, rows=table.rows.kept())
        columns = [] if table.header == ("user", "time", "state") and layout == "sequences" else list(columns_of(table))
    if layout == "sequences" and table.header == ("user", "time", "state"):
        about = Looked({"layout": layout, **given}, facts=[*facts, "Text with one user's sequence of states a line."])
        return _tried(path, about)
    question = _name_mapping(columns, given, facts)
    for shape in (_sequences, _intervals, _long):
        if (looked := shape(table, columns, given)) is not None:
            looked.settings |= given
            looked.facts[:0] = facts
            looked.questions += filter(None, [question])
            if looked.settings["layout"] == "sequences":
                return _tried(path, looked)
            return _looked_long(path, table, columns[0].n_rows, looked, every)
    user = given.get("user") or next((one.name for one in columns if rank_of("user", one) < 99), table.header[0])
    looked = _looked_wide(path, table, user, [one for one in columns if one.name != user], given)
    looked.facts[:0] = facts
    return looked


def _opened(path: Path, given: dict[str, Any], facts: list[str]) -> tuple[SourceTable, Layout]:
    """The table and its layout, as far as it is known; text that is no sequences may be a table whatever its name is."""
    terms = {key: given[key] for key in ("delimiter", "where", "encoding") if key in given}
    try:
        return any_table(path, given.get("layout", "auto"), **terms)
    except TraceError as error:
        if "not encoded in UTF-8" in str(error) and "encoding" not in given:
            with trace_files(path)[0].open("rb") as file:
                given["encoding"] = "utf-16" if file.read(2) in {b"\xff\xfe", b"\xfe\xff"} else "cp1252"
            facts.append(f"The file is not in UTF-8; {given['encoding']} fits it.")
            return _opened(path, given, facts)
        return any_table(path, "long", **terms)[0], "auto"


def _name_mapping(columns: Sequence[Column], given: dict[str, Any], facts: list[str]) -> str:
    """The columns of a mapping that has several: that with the entries of the table, and that with the fewest states; asked."""
    source = given.get("states_from")
    if source is None or not Path(source).exists():  # with columns after a colon
        return ""
    table, _ = mapping_table(Path(source), given.get("encoding", "utf-8"))
    parts = list(columns_of(table))
    keys = [one for one in parts if any(each.entries and {*each.entries} <= {*one.entries} for each in columns)]
    groups = sorted(parts, key=lambda one: one.n_different)
    for key, group in ((key, group) for key in keys for group in groups if 2 <= group.n_different < key.n_different):
        with suppress(TraceError):  # an entry with several states
            entries_of(named_so := f"{source}:{key.name},{group.name}", given.get("encoding", "utf-8"))
            given["states_from"] = named_so
            facts.append(f"States are the {group.n_different} entries of column {group.name} of {Path(source).name}.")
            others = [one.name for one in groups if one.name not in {key.name, group.name}]
            return (
                f"are states the entries of column {group.name!r} of the mapping? It also has {listed(others)}"
                if others
                else ""
            )
    return ""


def _user(columns: Sequence[Column], taken: Sequence[str]) -> tuple[str | None, list[str]]:
    """The column of people: its entries repeat; of several, by the name, then the one with most people; and the others."""
    free = [one for one in columns if one.name not in taken and one.repeats]
    free = [one for one in free if not one.is_measured or rank_of("user", one) < 99]
    last = ROLES["user"].index("id")  # in the name of a column of states, such as zone_id, it is no person
    by_name = [one for one in free if rank_of("user", one) < (last if rank_of("state", one) < 99 else 99)]
    by_name = [one for one in by_name if one.n_different > 1 or one.n_rows < 10 or rank_of("user", one) < last]
    if not by_name:  # by contents: the most different names
        others = [one for one in free if not one.formats and one.n_different > 3 and rank_of("state", one) == 99]
        by_name = sorted(others, key=lambda one: -one.n_different)[:1]
    # A cohort of two or three values, each with very many rows, is no user
    usual = [one for one in by_name if one.n_different > 3 or one.n_rows < 50] or by_name
    found = sorted(usual, key=lambda one: (rank_of("user", one), -one.n_different))
    return (found[0].name if found else None), [one.name for one in found[1:]]


def _state(columns: Sequence[Column], taken: Sequence[str], given: dict[str, Any]) -> tuple[str | None, list[str]]:
    """The column of states: by the mapping that is given, by its name, or the only one with few entries; and the others."""
    free = [one for one in columns if one.name not in taken and one.n_different >= 1 and not one.formats]
    if "states_from" in given:
        known = entries_of(given["states_from"], given.get("encoding", "utf-8"))
        fits = [one for one in free if one.entries and {*one.entries} <= {*known} and one.n_different > 1]
        if fits:
            first, *others = sorted(fits, key=lambda one: (rank_of("state", one), -one.n_different))
            return first.name, [one.name for one in others]
    found = sorted((one for one in free if rank_of("state", one) < 99), key=lambda one: rank_of("state", one))
    if found:
        return found[0].name, [one.name for one in found[1:]]
    few = [one for one in free if 2 <= one.n_different <= MAX_STATES and one.n_different * 4 <= one.n_rows]
    return (few[0].name, []) if len(few) == 1 else (None, [])


def _written(column: Column, looked: Looked, given: dict[str, Any]) -> None:
    """How times are written, where they are no ISO; what fits in two ways is asked."""
    if "time_format" in given or not column.formats or column.formats[0] == "":
        return
    looked.settings["time_format"] = column.formats[0]
    looked.facts.append("Times have the format of time_format.")
    if len(column.formats) > 1:
        looked.questions.append(
            f"times such as {column.entries[0]!r} fit {listed(column.formats)}: day or month first? The first is "
            f"assumed; otherwise --set traces.time_format='{column.formats[1]}'"
        )


def _sequences(table: SourceTable, columns: Sequence[Column], given: dict[str, Any]) -> Looked | None:
    """A table with a sequence of states in the cells of a column."""
    if given.get("layout", "sequences") != "sequences":
        return None
    for column in columns:
        cells = [re.findall(r"[^\s,;|\[\]()'\"]+", entry) for entry in column.entries[:50]]
        words = Counter(word for cell in cells for word in cell)
        if not cells or column.formats or min(map(len, cells)) < 5 or len(words) * 4 > words.total():
            continue
        if max(map(len, words)) > 30:
            continue
        others = [one for one in columns if one.name != column.name]
        ranked = sorted(others, key=lambda one: (-one.n_different, rank_of("user", one)))
        looked = Looked(
            {"layout": "sequences", "user": ranked[0].name if ranked else column.name, "state": column.name}
        )
        looked.facts.append(f"Sequences of states in the cells of column {column.name}.")
        if "layout" not in given:
            looked.questions.append(
                f"does each cell of column {column.name!r} hold a person's states in order? Otherwise --set traces.layout=wide"
            )
        if odd := sorted(word for word in words if re.fullmatch(r"-\d+|\?+|-+|\*+|[xX]{2,}", word)):
            looked.questions.append(
                f"is {listed(odd)} a state? If it means that somebody was not observed, "
                f"--set traces.missing={','.join(odd)} --set traces.gaps=true"
            )
        return looked
    return None


def _intervals(table: SourceTable, columns: Sequence[Column], given: dict[str, Any]) -> Looked | None:
    """A table of intervals: two columns of times, of which one is named after a beginning and one after an end."""
    if given.get("layout", "long") != "long":
        return None
    found = _ends_of_intervals([one for one in columns if one.formats], given)
    if found is None:
        return None
    begins, ends = found
    taken = [begins.name, ends.name]
    pairs = [
        (one.name, other.name)
        for one in columns
        for other in columns
        if one.name not in taken and other.name not in taken and not one.formats and one is not other
        and is_named(one, BEGIN_WORDS) and is_named(other, END_WORDS)
        and set(one.words) - set(BEGIN_WORDS) == set(other.words) - set(END_WORDS)
    ]  # fmt: skip
    asked = {key: given[key] for key in ("state", "end_state") if key in given}
    pairs = [one for one in pairs if asked.items() <= {"state": one[0], "end_state": one[1]}.items()]
    pair = pairs[0] if pairs else None
    if pair is None:
        state, rivals = _state(columns, taken, given)
    else:
        state, rivals = given.get("state", pair[0]), []
    user, others = _user(columns, [*taken, *(pair or ()), state or ""])
    user = given.get("user", user)
    if state is None or user is None:
        return None
    looked = Looked({"layout": "long", "user": user, "time": begins.name, "end": ends.name, "state": state})
    _written(begins, looked, given)
    looked.facts.append("Rows are intervals.")
    if "" in ends.cells:
        looked.questions.append(
            f"some rows have no entry in column {ends.name!r}: that the interval goes on is assumed; otherwise leave them out"
        )
    if pair is not None and "absent" not in given:
        looked.settings["end_state"] = pair[1]
        looked.questions.append(
            f"where is a user between two intervals? As proposed, at the last one's {pair[1]!r}; if nowhere, leave out "
            "traces.end_state: the user is then absent from the end of an interval on"
        )
    elif pair is None and "end_state" not in given:
        looked.questions.append(
            "is a user absent from the end of an interval until the next one begins? That is assumed; otherwise "
            "--set traces.end_state=COLUMN, with the state from then on"
        )
    looked.questions += _asked("user", user, others) + _asked("state", state, rivals)
    return looked


def _ends_of_intervals(dated: Sequence[Column], given: dict[str, Any]) -> tuple[Column, Column] | None:
    """Columns of the beginning and the end of intervals: given, named so, or the only two, of which one is never earlier."""
    begins = [one for one in dated if given.get("time") == one.name] or [
        one for one in dated if is_named(one, BEGIN_WORDS)
    ]
    ends = [one for one in dated if given.get("end") == one.name] or [one for one in dated if is_named(one, END_WORDS)]
    pair = next(((one, other) for one in begins for other in ends if one is not other), None)
    if pair is not None or len(dated) != 2 or "time" in given:
        return pair
    one, other = (moments_of(column) for column in dated)
    differences = [b - a for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    if len(differences) < 10 or min(differences) < 0.0 or np.median(differences) <= 0.0:
        return None
    return dated[0], dated[1]


def _long(table: SourceTable, columns: Sequence[Column], given: dict[str, Any]) -> Looked | None:
    """A table with a row per person and time, or per event."""
    if given.get("layout", "long") != "long":
        return None
    dated = sorted((one for one in columns if one.formats), key=lambda one: rank_of("time", one))
    counted = sorted(
        (one for one in columns if rank_of("time", one) < 99 and not one.formats), key=lambda one: rank_of("time", one)
    )
    times = [one for one in columns if one.name == given.get("time")] or [*dated, *counted]
    if _are_numbered([one.name for one in columns[1:]]) and "layout" not in given:
        return None
    user, users = _user(columns, [one.name for one in times[:1]])
    user = given.get("user", user)
    state, states = _state(columns, [user or "", *(one.name for one in times[:1])], given)
    state = given.get("state", state)
    if not times or state is None:
        return None
    roles = {} if user is None else {"user": user}
    looked = Looked({"layout": "long", **roles, "time": times[0].name, "state": state})
    _written(times[0], looked, given)
    if times[0].entries and not times[0].formats and all(re.fullmatch(r"-?\d+,\d+", one) for one in times[0].entries):
        looked.settings["decimal"] = ","
    rivals = [one.name for one in times[1:] if one.name not in {user, state}]
    for role, name, others in (("user", user, users), ("time", times[0].name, rivals), ("state", state, states)):
        if role not in given and name is not None:
            looked.questions += _asked(role, name, [one for one in others if one not in roles.values()])
    return looked


def _asked(role: str, name: str, others: Sequence[str]) -> list[str]:
    """The question whether another column has a role."""
    if not others:
        return []
    instead = f"--set traces.{role}={shlex.quote(others[0])}"
    return [f"the {role} is read from column {name!r}, but may also be in {listed(others)}: then {instead}"]


def _are_numbered(steps: Sequence[str]) -> bool:
    """Whether most of several names are dates, numbers, or one word with numbers, as those of the steps of a wide table."""
    kinds = Counter(moment(step).kind for step in steps).most_common(1)
    return any(kind != WORD and n >= 2 and 2 * n > len(steps) for kind, n in kinds)


def _tried(path: Path, looked: Looked) -> Looked:
    """With the table as it is read by these settings; where it is refused, that is asked about."""
    try:
        looked.traces = read(TableSettings.model_validate({"path": path, **looked.settings}))
    except InputError as error:
        looked.questions.append(f"as the file stands it is refused: {str(error).removeprefix(f'{path}: ')}")
        return looked
    codes = [one for one in looked.traces.states if re.fullmatch(r"-\d+", one)]
    if codes and len(codes) < looked.traces.n_states:
        looked.questions.append(
            f"do the entries {listed(codes)} stand for a value that is missing? Then --set traces.missing={','.join(codes)} "
            "--set traces.gaps=true"
        )
    if looked.traces.n_states > MAX_STATES:
        looked.questions.append(
            f"it has {looked.traces.n_states} different states: --set traces.state=COLUMN, or group them "
            "(--set traces.states_from=FILE)"
        )
    return looked


def _looked_wide(path: Path, table: SourceTable, user: str, columns: Sequence[Column], given: dict[str, Any]) -> Looked:
    """A table with a row per person and a column per step."""
    steps = [one.name for one in columns]
    with suppress(InputError):  # a number of people that cannot be counted
        (size,) = table.rows.asked(
            f"SELECT count(*) AS n, count(DISTINCT c{table.header.index(user)}) AS people FROM rows"
        ).to_pylist()
        if size["n"] > size["people"] and not _are_numbered(steps) and "layout" not in given:
            question = (
                f"which of its columns are time and state ({listed(steps)})? Complete traces.time and traces.state"
            )
            return Looked({"layout": "long", "user": user, **given}, {"time": "", "state": ""}, questions=[question])
    looked = Looked({"layout": "wide", "user": user})
    shared = (
        set.intersection(*({one for one in FORMATS if fits_format(step, one)} for step in steps)) if steps else set()
    )
    if shared and "time_format" not in given and any(moment(step).clock is None for step in steps):
        looked.settings["time_format"] = min(shared, key=FORMATS.index)
    looked.settings |= given
    looked = _tried(path, looked)
    looked.facts.append(
        f"Wide: one row per user, {len(steps)} steps{f' ({steps[0]} to {steps[-1]})' if steps else ''}."
    )
    if not _are_numbered(steps) and "time_format" not in looked.settings:
        looked.questions.append(
            f"is every column but {user!r} a step ({listed(steps)})? If a row is a user at a time, --set traces.layout=long "
            "--set traces.time=COLUMN --set traces.state=COLUMN"
        )
    return looked


def _looked_long(path: Path, table: SourceTable, n_rows: int, looked: Looked, every: str | None) -> Looked:
    """A table of so many rows, one per person and time, per event, or per interval."""
    settings, roles = looked.settings, {role: looked.settings[role] for role in ROLES if role in looked.settings}
    spelling = Spelling(settings.get("time_format"), settings.get("decimal", "."))
    if "user" in roles:
        try:
            _ask_about_events(looked, long_traces(table, **roles, spelling=spelling))
        except FarTimeError as error:  # a grid up to there would have very many steps
            looked.questions.append(f"as the file stands it is refused: {error}")
            return looked
        except InputError:  # what cannot be read is asked about below
            pass
    if every is not None and "every" in settings:
        settings["every"] = every
    traces = _tried(path, looked).traces
    if traces is None:
        return looked
    observed, everyone = int(traces.histogram().sum()), traces.n_users * traces.n_times
    looked.facts.insert(
        0,
        f"Long: {plural(n_rows, 'row')}, {plural(traces.n_users, 'user')}, "
        + f"{plural(traces.n_times, 'step' if 'every' in settings else 'different time')}.",
    )
    if "every" in settings:
        return looked
    names = {f"{seconds} seconds": name for name, seconds in GRIDS.items()}
    looked.facts.append(f"One state per user and step of {names.get(str(traces.step), traces.step)}.")
    if observed < everyone:
        looked.questions.append(
            f"users have a row at {100.0 * observed / everyone:.0f} % of {traces.n_times} steps. If rows are changes of state, "
            "--set traces.every=1h --set traces.fill=last; if a missing row means absence that is to be protected, "
            "--set traces.absent=absent"
        )
    return looked


def _ask_about_events(looked: Looked, traces: Rows) -> None:
    """Rows at odd times, or several at one time, are put on the nearest usual grid, with the last state."""
    refuse_missing(traces, "time")
    rows, has_zone, has_clock = moments(traces)
    first, settings = require_no_far_time(rows, has_clock), looked.settings
    step, is_repeated = _usual_distance(rows)
    if not step:
        return
    several = rows.then("SELECT user FROM rows GROUP BY user, moment HAVING min(state) <> max(state)")
    twice = several.asked("SELECT count(*) AS n FROM rows").to_pylist()[0]["n"] if is_repeated else 0
    distance = f"CAST(moment - ({first}) AS DOUBLE) / ({step})"
    is_monthly, stamp = "false", "make_timestamp(moment)"
    if has_clock:
        one_day = f"(min(day({stamp})) = max(day({stamp})) OR bool_and(last_day({stamp}) = {stamp}))"
        is_monthly = f"{one_day} AND bool_and(date_trunc('day', {stamp}) = {stamp})"
    (regular,) = rows.asked(
        f"SELECT bool_and(abs({distance} - round({distance})) < 1e-6) OR ({is_monthly}) AS all FROM rows"
    ).to_pylist()
    is_interval = "end" in settings
    if regular["all"] and not twice and not is_interval and "every" not in settings:
        return
    every = (
        min(GRIDS, key=lambda one: abs(GRIDS[one] - step / 1e6))
        if has_clock
        else np.format_float_positional(step, trim="-")
    )
    asked = "every" not in settings
    settings.setdefault("every", every)
    every = settings["every"]
    if not is_interval:
        settings.setdefault("fill", "last")
        looked.facts.append("Rows are events: a step has the last state until then.")
    if twice and not is_interval and "ties" not in settings:
        settings["ties"] = "last"
        pairs = "1 pair of user and time has" if twice == 1 else f"{twice} pairs of user and time have"
        looked.questions.append(
            f"{pairs} several states: the last row counts, which may be wrong: --set traces.ties=first, or longest"
        )
    if asked:
        looked.questions.append(
            f"rows are {'intervals' if is_interval else 'at odd times'}, so they are put on a grid of {every}: "
            "another one by --set traces.every=1h"
            + (
                ""
                if is_interval
                else ", and --set traces.fill=absent where the state does not stay until the next event"
            )
        )
    if has_zone and every[-1] in "dw" and "timezone" not in settings:
        settings["timezone"] = "UTC"
        looked.questions.append("days are those of UTC: otherwise --set traces.timezone=Europe/Amsterdam")


def _usual_distance(rows: Rows) -> tuple[Any, bool]:
    """The most frequent distance of a person's moments, the smallest of several; the median if each occurs once; or None.

    And whether a person has several rows at one moment.
    """
    distances = rows.then("SELECT moment - lag(moment) OVER (PARTITION BY user ORDER BY moment) AS d FROM rows")
    counted = distances.then("SELECT d, count(*) AS n FROM rows GROUP BY d")
    most = counted.then("SELECT d, max(n) FILTER (WHERE d > 0) OVER () AS most, n FROM rows")
    (found,) = most.asked(
        "SELECT CASE WHEN max(most) = 1 THEN quantile_disc(d, 0.5) FILTER (WHERE d > 0) "
        "ELSE min(d) FILTER (WHERE d > 0 AND n = most) END AS step, bool_or(d = 0) AS is_repeated FROM rows"
    ).to_pylist()
    return found["step"], bool(found["is_repeated"])
