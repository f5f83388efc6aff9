"""A project file proposed for a table: which columns are user, time and state, and how the times are spaced."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporaldp.errors import TraceError
from temporaldp.extras import needing
from temporaldp.files.places import is_parquet, kind_of, separator_of, trace_files
from temporaldp.project.settings import Settings

if TYPE_CHECKING:
    import duckdb

ROLES = {
    "user": (
        "user",
        "person",
        "patient",
        "member",
        "customer",
        "device",
        "card",
        "meter",
        "household",
        "subject",
        "id",
    ),
    "time": ("time", "date", "when", "moment", "hour", "day", "step", "ts"),
    "state": ("state", "zone", "status", "stage", "place", "location", "region", "category", "page", "class", "cell"),
}
"""Parts of the names that columns of a long table usually have, the likeliest first."""

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


@dataclass(frozen=True, slots=True)
class Looked:
    """Properties of an inspected table.

    Parameters
    ----------
    settings : dict
        Keys of the section of the table.
    facts : list of str
        Comments for the file.
    questions : list of str
        What only the owner of the table can decide.
    """

    settings: dict[str, Any]
    facts: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed project file, what its owner must decide, and the next command."""

    text: str
    questions: list[str]
    next_step: str


def propose(table: Path, history: Path | None, folder: Path) -> Proposal:
    """Propose a project file for a table.

    Parameters
    ----------
    table, history : path
    folder : path
        Where the file will be: paths in it are relative to its folder.

    Raises
    ------
    MissingFileError, TraceError
        The table cannot be read.
    """
    traces = look(table)
    traces = replace(traces, settings={"path": os.path.relpath(table, folder), **traces.settings})
    past = None
    if history is not None:
        found = look(history)
        own = {
            key: value for key, value in found.settings.items() if key != "states" and traces.settings.get(key) != value
        }
        past = replace(found, settings={"path": os.path.relpath(history, folder), **own})
    questions = [f"{table.name}: {one}" for one in traces.questions]
    questions += [] if past is None or history is None else [f"{history.name}: {one}" for one in past.questions]
    release = (
        "temporaldp release"
        if past is not None
        else "temporaldp init TABLE --history TABLE (a release needs a history)"
    )
    return Proposal(_text(traces, past), questions, f"temporaldp audit, then {release}, then temporaldp report")


def look(table: Path) -> Looked:
    """Look at one table: its layout, columns, states and steps."""
    with needing("tables"):
        import duckdb

    paths = trace_files(table)
    if not all(kind_of(path) or is_parquet(path) for path in paths):
        return Looked({"layout": "sequences"}, ["Text with one user's sequence of states a line."])
    names = [str(path) for path in paths]
    connection = duckdb.connect()
    try:
        relation = (
            connection.read_parquet(names)
            if is_parquet(paths[0])
            else connection.read_csv(names, header=True, sep=separator_of(paths[0]))  # type: ignore[arg-type]
        )
        roles = _roles(relation)
        if "time" not in roles or "state" not in roles:
            return _looked_wide(relation, roles)
        return _looked_long(connection, relation, roles)
    except duckdb.Error as error:
        kind = str(error).partition(":")[0]  # the rest of the message may have entries of the table
        raise TraceError(
            f"{table}: expected a table, which DuckDB cannot read ({kind}): check its separator, its quotes and its end"
        ) from None


def _roles(relation: duckdb.DuckDBPyRelation) -> dict[str, str]:
    """The columns of user, time and state: by the type of times and by usual names, each column once."""
    kinds = {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}
    found: dict[str, str] = {}
    dated = [name for name, kind in kinds.items() if kind.startswith(("TIMESTAMP", "DATE"))]
    if len(dated) == 1:
        found["time"] = dated[0]
    for role, parts in ROLES.items():
        free = [name for name in kinds if name not in found.values()]
        close = [name for part in parts for name in free if part in name.lower()]
        if role not in found and close:
            found[role] = close[0]
    return found


def _looked_wide(relation: duckdb.DuckDBPyRelation, roles: dict[str, str]) -> Looked:
    user = roles.get("user", relation.columns[0])
    steps = [name for name in relation.columns if name != user]
    entries = ", ".join(f"CAST({_name(step)} AS VARCHAR) AS {_name(step)}" for step in steps)
    cells = relation.select(entries)
    found: Any = cells.query("cells", "SELECT DISTINCT state FROM (UNPIVOT cells ON * INTO NAME t VALUE state)")
    states = sorted(str(one) for (one,) in found.fetchall())
    facts = [f"Wide: one row per user, {len(steps)} steps ({steps[0]} to {steps[-1]})."]
    looked = Looked({"layout": "wide", "user": user}, facts)
    return _with_states(looked, states)


def _looked_long(
    connection: duckdb.DuckDBPyConnection, relation: duckdb.DuckDBPyRelation, roles: dict[str, str]
) -> Looked:
    kind = str(relation.types[relation.columns.index(roles["time"])])
    has_clock = kind.startswith(("TIMESTAMP", "DATE"))
    moment = f"epoch({_name(roles['time'])})" if has_clock else f"TRY_CAST({_name(roles['time'])} || '' AS DOUBLE)"
    user = _name(roles["user"]) if "user" in roles else "1"
    relation.select(*(f"{_name(column)}" for column in roles.values())).create("source")  # typed before it is cast
    connection.execute(
        f"CREATE TEMP TABLE rows AS SELECT {user} AS u, {moment} AS t, {_name(roles['state'])} AS s FROM source"
    )
    n, users, times, unread, first, last, twice, step = connection.execute(
        "SELECT count(*), count(DISTINCT u), count(DISTINCT t), count(*) FILTER (t IS NULL), min(t), max(t), "
        "(SELECT count(*) FROM (SELECT u, t FROM rows GROUP BY u, t HAVING count(DISTINCT s) > 1)), "
        "(SELECT mode(d) FROM (SELECT t - lag(t) OVER (PARTITION BY u ORDER BY t) AS d FROM rows) WHERE d > 0) "
        "FROM rows"
    ).fetchall()[0]
    states = sorted(
        str(one) for (one,) in connection.execute("SELECT DISTINCT s FROM rows WHERE s IS NOT NULL").fetchall()
    )
    settings: dict[str, Any] = {"layout": "long", **roles}
    looked = _with_states(Looked(settings, [f"Long: {n} rows, {users} users, {times} different times."]), states)
    if "user" not in roles:
        looked.questions.append("no column names the user; set traces.user, or the table is about one user")
    if unread or not step:
        looked.questions.append("its times are neither dates nor numbers; check traces.time")
        return looked
    (on_grid,) = connection.execute(
        "SELECT avg(CASE WHEN abs((t - ?) / ? - round((t - ?) / ?)) < 1e-6 THEN 1.0 ELSE 0.0 END) FROM rows",
        [first, step, first, step],
    ).fetchall()[0]
    if on_grid < 1.0 or twice:
        return _events(looked, step, twice, has_clock=has_clock)
    looked.facts.append(f"One state per user and step of {_length(step, has_clock)}.")
    steps = round((last - first) / step) + 1
    if n < users * steps:
        looked.questions.append(
            f"users have a row at {100.0 * n / (users * steps):.0f} % of {steps} steps. If rows are changes of state, set "
            "traces.every and traces.fill; if a missing row means absence that is to be protected, set traces.absent"
        )
    return looked


def _events(looked: Looked, step: float, twice: int, *, has_clock: bool) -> Looked:
    """Rows at odd times, or several at one time: the nearest usual grid, with the last state."""
    every = min(GRIDS, key=lambda one: abs(GRIDS[one] - step)) if has_clock else f"{step:g}"
    looked.settings["every"], looked.settings["fill"] = every, "last"
    looked.facts.append("Rows are events: a step has the last state until then.")
    why = f"{twice} pairs of user and time have several states" if twice else "rows are at odd times"
    looked.questions.append(
        f"{why}, so that they are read as events on a grid of {every}: check traces.every, and traces.fill (last: the state "
        "stays until the next event; absent: it does not)"
    )
    return looked


def _with_states(looked: Looked, states: list[str]) -> Looked:
    if 2 <= len(states) <= MAX_STATES:
        looked.settings["states"] = states
    else:
        looked.questions.append(f"its state column has {len(states)} different entries; check traces.state")
    return looked


def _length(step: float, has_clock: bool) -> str:
    named = {seconds: name for name, seconds in GRIDS.items()}
    return named.get(int(step), f"{step:g} s") if has_clock else f"{step:g}"


def _name(column: str) -> str:
    escaped = column.replace('"', '""')
    return f'"{escaped}"'


def _text(traces: Looked, past: Looked | None) -> str:
    """The file, each key with its meaning."""
    history = [
        "# A release needs a correlation from other traces than those that it protects:",
        "# [history]",
        '# path = ""',
        "",
    ]
    return "\n".join(
        [
            "# The settings of this release; docs/project-file.md lists every key.",
            "",
            *_section("traces", traces.settings, facts=traces.facts),
            *(history if past is None else _section("history", past.settings, facts=past.facts)),
            *_section("privacy", {"alpha": 1.0, "epsilon": 0.1}, left_out={"horizon": 96}),
            *_section(
                "release", {"ledger": "release.db", "output": "published.csv"}, left_out={"smoothed": "smoothed.csv"}
            ),
            *_section("report", {"output": "report.html"}),
        ]
    )


def _section(
    name: str, keys: dict[str, Any], *, facts: Sequence[str] = (), left_out: Mapping[str, Any] | None = None
) -> list[str]:
    """The lines of a section; keys that are left out stand in comments."""
    given = [_line(name, key, value) for key, value in keys.items()]
    proposed = [_line(name, key, value) for key, value in (left_out or {}).items()]
    return [f"[{name}]", *(f"# {fact}" for fact in facts), *given, *(f"# {line}" for line in proposed), ""]


def _line(section: str, key: str, value: Any) -> str:
    """A key, its value and its meaning."""
    owner: Any = Settings.model_fields[section].annotation
    return f"{key} = {json.dumps(value, ensure_ascii=False)}  # {owner.model_fields[key].description}"
