"""A project file proposed for a table: which columns are user, time and state, and how the times are spaced."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from temporaldp.base.errors import InputError, TraceError
from temporaldp.base.names import in_order, listed
from temporaldp.base.values import plural
from temporaldp.core.correlation import Provenance
from temporaldp.data.files.traces import any_table, named, source_name
from temporaldp.data.smoothing import PublicCorrelation, compare_guarantees
from temporaldp.data.tables import Traces, estimate_models
from temporaldp.data.tables.encoding import refuse_missing
from temporaldp.data.tables.grid import moments
from temporaldp.data.tables.layouts import long_traces, require_columns
from temporaldp.data.tables.moments import WORD, moment, steps_between
from temporaldp.data.tables.trace_table import TraceTable
from temporaldp.data.tables.traces import shared_people
from temporaldp.lab.studies.refinements import ModelChoice, chosen_models
from temporaldp.publish.project.document import DEFAULT_FILE
from temporaldp.publish.project.inputs import read
from temporaldp.publish.project.settings import Settings, TableSettings
from temporaldp.publish.report.sentences import observers

if TYPE_CHECKING:
    from temporaldp.data.files.traces import Layout
    from temporaldp.data.tables.relations import Rows, SourceTable

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

MOST_PHASES = 48
"""Steps of a day up to which the time of day is tested."""

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


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed project file, what its owner must decide, and the next command."""

    text: str
    questions: list[str]
    next_step: str


def propose(table: Path, history: Path | None, output: Path = DEFAULT_FILE) -> Proposal:
    """Propose a project file for a table.

    Parameters
    ----------
    table, history : path
    output : path
        Where the file will be: paths in it are relative to its folder.

    Raises
    ------
    MissingFileError, TraceError, StateError
        The table cannot be read, or its columns have names that are repeated or not printable.
    """
    traces = look(table)
    past = None if history is None else look(history, every=traces.settings.get("every"))
    if traces.traces is not None and traces.traces.n_states <= MAX_STATES:
        _ask_about_states(traces, traces.traces, history)
    if past is not None and past.traces is not None and traces.traces is not None:
        _compare(traces, traces.traces, past.traces)
    questions = [f"{table.name}: {one}" for one in traces.questions]
    traces.settings = {"path": os.path.relpath(table, output.parent), **traces.settings}
    where = "" if output == DEFAULT_FILE else f" --project {shlex.quote(str(output))}"
    publication = _publication(traces, past, questions)
    if past is None or history is None:
        again = "" if output == DEFAULT_FILE else f" --output {shlex.quote(str(output))}"
        later = f"temporaldp init {shlex.quote(str(table))} --history OTHER_TABLE --overwrite{again}"
        shorter = f"temporaldp plan{where}, then temporaldp release{where}"
        needs = f"temporaldp plan{where}; for a temporal level, which needs other traces, {later}"
        next_step = f"{shorter}; for a temporal level, {later}" if publication.is_ready else needs
        return Proposal(_text(traces, None, publication), questions, next_step)
    questions += [f"{history.name}: {one}" for one in past.questions]
    own = {key: value for key, value in past.settings.items() if traces.settings.get(key) != value}
    past.settings = {"path": os.path.relpath(history, output.parent), **own}
    steps = ", then ".join(f"temporaldp {command}{where}" for command in ("plan", "release", "report"))
    return Proposal(_text(traces, past, publication), questions, steps)


@dataclass(frozen=True, slots=True)
class ProposedPublication:
    """A proposed publication: the keys of [privacy] and [release], those in comments, what to expect, and models, if any."""

    privacy: dict[str, Any]
    release: dict[str, Any]
    left_out: dict[str, Any]
    facts: list[str]
    is_ready: bool
    models: ModelChoice | None = None
    period: int | None = None


def _publication(looked: Looked, past: Looked | None, questions: list[str]) -> ProposedPublication:
    """A publication of all steps of a finished table, or of a stream, with the guarantee and delta that cost least for it."""
    traces, history = looked.traces, None if past is None else past.traces
    privacy: dict[str, Any] = {"alpha": 1.0, "epsilon": 0.1}
    release: dict[str, Any] = {"ledger": "release.db", "output": "published.csv"}
    if traces is None:
        return ProposedPublication(privacy, release, {"horizon": 96}, [], is_ready=False)
    n_steps, left_out = traces.n_times, {}
    if _is_finished(looked, traces):
        privacy["horizon"] = n_steps
        questions.append(
            f"are these {n_steps} steps all that will be published from this table? If later steps follow, leave out "
            "privacy.horizon and release.estimates: a stream has no user level"
        )
        if history is not None and looked.settings.get("layout") != "long" and history.n_times == n_steps:
            release["same_start"] = True
            questions.append(
                "does the release begin as the history does, such as a night or a course? Otherwise leave out "
                "release.same_start"
            )
    else:
        left_out["horizon"] = n_steps
        questions.append(f"does the release end? If so, set privacy.horizon to its number of steps, such as {n_steps}")
    adversaries, public, choice, period = None, None, None, None
    if history is not None and set(history.states) == set(traces.states):
        with suppress(InputError):  # where it is too short
            if not shared_people(
                history, traces
            ).n_observed:  # a comparison by protected states would reveal some of them
                period = _steps_of_a_day(history)
                choice = chosen_models(history, period=period)
                period = period if any(name.startswith("time of day") for name in choice.models) else None
                adversaries = estimate_models(history, choice.models, period=period, phase=0)
                public = PublicCorrelation.of(adversaries["first order"], "a history")
    found = compare_guarantees(
        adversaries,
        horizon=privacy.get("horizon"),
        windows=[] if "horizon" in privacy else [7],
        n_people=traces.n_users,
        n_states=traces.n_states,
        correlation=public,
    )
    if choice is not None:
        found = replace(found, observers=observers(Provenance("history", "A history.", models=choice.models)))
    best = found.advised
    if best is None or best.plan is None:
        return ProposedPublication(privacy, release, left_out, [found.advice], False, choice, period)
    if best.guarantee.kind == "window":  # which would not hold for observers who know habits
        return ProposedPublication(privacy, release, left_out, [found.advice], False, choice, period)
    privacy["guarantee"] = str(best.guarantee)
    if public is not None and "horizon" in privacy:
        release["estimates"] = "smoothed"
    if public is None:
        release.pop("same_start", None)
    if best.delta:
        privacy["delta"] = best.delta
    is_ready = adversaries is not None or not best.guarantee.is_temporal
    return ProposedPublication(privacy, release, left_out, [found.advice], is_ready, choice, period)


def _steps_of_a_day(history: Traces) -> int | None:
    """Steps after which the clock repeats, where the history has two days of few of them; None elsewhere."""
    steps = None if history.step is None else steps_between(history.step, "2024-01-01", "2024-01-02")
    is_clock = steps is not None and steps == int(steps) and 2 <= steps <= MOST_PHASES and history.n_times >= 2 * steps
    return int(steps) if steps is not None and is_clock else None


def _is_finished(looked: Looked, traces: Traces) -> bool:
    """Whether no later step is to be expected: columns or sequences, or times whose last step is over long ago."""
    if looked.settings.get("layout") != "long" or moment(traces.times[-1]).clock is None:
        return True
    days = steps_between("86400 seconds", traces.times[-1][:10], datetime.now(UTC).date().isoformat())
    return days is None or days > 7.0  # a table of a running release ends not long ago


def _ask_about_states(looked: Looked, traces: Traces, history: Path | None) -> None:
    """The list of states in a comment: states that were read from a protected table are not public because of that."""
    looked.left_out["states"] = list(traces.states)
    looked.facts.append("The states below were read from this protected table: remove the # if they are public.")
    until = "taken from the protected table, outside of the guarantee" if history is None else f"that of {history.name}"
    looked.questions.append(
        f"are its states public, that is, known without looking at the table ({listed(traces.states)})? If so, complete the "
        f"list and remove the # before states; until then the list is {until}"
    )


def _compare(looked: Looked, traces: Traces, past: Traces) -> None:
    """Ask about states and steps of the protected traces that a history does not have."""
    if lacking := in_order(set(traces.states) - set(past.states)):
        looked.questions.append(
            f"the history is never in {listed(lacking)}: give a longer one, or list all states (traces.states) with a prior "
            "(correlation.prior = 1)"
        )
    if None not in (traces.step, past.step) and traces.step != past.step:
        looked.questions.append(
            f"one step is {traces.step}, but {past.step} in the history: a correlation needs steps of one length"
        )


def look(path: Path, every: str | None = None) -> Looked:
    """Look at one table: its layout and columns; and read it by them. Events are put on the grid `every` of other traces."""
    with named(source_name(path, None)):
        table, layout = _opened(path)
        require_columns(table, {})
    if layout == "sequences":
        return _tried(path, Looked({"layout": layout}, facts=["Text with one user's sequence of states a line."]))
    roles, rivals = _roles(table)
    user = roles.get("user", table.header[0])
    steps = [name for name in table.header if name != user]
    if not _are_numbered(steps) and {"time", "state"} <= roles.keys():
        return _looked_long(path, table, Looked({"layout": "long", **roles}, questions=rivals), every)
    return _looked_wide(path, table, user, steps)


def _opened(path: Path) -> tuple[SourceTable, Layout]:
    """The table and its layout, as far as it is known; text that is no sequences may be a table whatever its name is."""
    try:
        return any_table(path, "auto")
    except TraceError:
        return any_table(path, "long")[0], "auto"


def _roles(table: SourceTable) -> tuple[dict[str, str], list[str]]:
    """The columns of user, time and state: by dates and by usual names, each column once; and questions about others."""
    columns = [f"CAST(c{k} AS STRING) AS c{k}" for k in range(len(table.header))]
    first = table.rows.asked(f"SELECT {', '.join(columns)} FROM rows ORDER BY row LIMIT 1").to_pylist()
    entries = [str(entry) for row in first for entry in row.values()]
    dated = [name for name, entry in zip(table.header, entries, strict=False) if moment(entry).clock is not None]
    close = {
        role: [name for part in parts for name in table.header if part in name.lower() and name not in dated]
        for role, parts in ROLES.items()
    }
    close["time"] = [*dated, *close["time"]]
    found: dict[str, str] = {}
    for role, names in close.items():
        if free := [name for name in names if name not in found.values()]:
            found[role] = free[0]
    rivals = {role: in_order(set(close[role]) - set(found.values())) for role in found}
    asked = [
        f"the {role} is read from column {found[role]!r}, but may also be in {listed(names)}: check traces.{role}"
        for role, names in rivals.items()
        if names
    ]
    return found, asked


def _are_numbered(steps: Sequence[str]) -> bool:
    """Whether most of several names are dates, numbers, or one word with numbers, as those of the steps of a wide table."""
    kinds = Counter(moment(step).kind for step in steps).most_common(1)
    return any(kind != WORD and n >= 2 and 2 * n > len(steps) for kind, n in kinds)


def _tried(path: Path, looked: Looked) -> Looked:
    """With the table as it is read by these settings; where it is refused, that is asked about."""
    try:
        looked.traces = read(TableSettings(path=path, **looked.settings))
    except InputError as error:
        looked.questions.append(f"as the file stands it is refused: {str(error).removeprefix(f'{path}: ')}")
        return looked
    if looked.traces.n_states > MAX_STATES:
        looked.questions.append(f"it has {looked.traces.n_states} different states; check traces.state")
    return looked


def _looked_wide(path: Path, table: SourceTable, user: str, steps: Sequence[str]) -> Looked:
    column = f"c{table.header.index(user)}"
    (size,) = table.rows.asked(f"SELECT count(*) AS n, count(DISTINCT {column}) AS people FROM rows").to_pylist()
    if size["n"] > size["people"] and not _are_numbered(steps):
        question = f"which of its columns are time and state ({listed(steps)})? Complete traces.time and traces.state"
        return Looked({"layout": "long", "user": user}, {"time": "", "state": ""}, questions=[question])
    looked = _tried(path, Looked({"layout": "wide", "user": user}))
    looked.facts.append(
        f"Wide: one row per user, {len(steps)} steps{f' ({steps[0]} to {steps[-1]})' if steps else ''}."
    )
    if not _are_numbered(steps):
        looked.questions.append(
            f"is every column but {user!r} a step ({listed(steps)})? If a row is a user at a time, set traces.layout to long, "
            "and traces.time and traces.state to their columns"
        )
    return looked


def _looked_long(path: Path, table: SourceTable, looked: Looked, every: str | None) -> Looked:
    roles = {role: looked.settings[role] for role in ROLES if role in looked.settings}
    if "user" in roles:
        with suppress(InputError):  # what cannot be read is asked about below
            _ask_about_events(looked, long_traces(table, **roles))
    if every is not None and "every" in looked.settings:
        looked.settings["every"] = every
    traces = _tried(path, looked).traces
    if traces is None:
        return looked
    n, observed, everyone = (
        table.rows.asked("SELECT count(*) AS n FROM rows").to_pylist()[0]["n"],
        int(traces.histogram().sum()),
        traces.n_users * traces.n_times,
    )
    looked.facts.insert(
        0, f"Long: {plural(n, 'row')}, {plural(traces.n_users, 'user')}, {plural(traces.n_times, 'different time')}."
    )
    if "every" in looked.settings:
        return looked
    names = {f"{seconds} seconds": name for name, seconds in GRIDS.items()}
    looked.facts.append(f"One state per user and step of {names.get(str(traces.step), traces.step)}.")
    if observed < everyone:
        looked.questions.append(
            f"users have a row at {100.0 * observed / everyone:.0f} % of {traces.n_times} steps. If rows are changes of state, "
            "set traces.every and traces.fill; if a missing row means absence that is to be protected, set traces.absent"
        )
    return looked


def _ask_about_events(looked: Looked, traces: Rows) -> None:
    """Rows at odd times, or several at one time, are put on the nearest usual grid, with the last state."""
    refuse_missing(traces, "time")
    rows, _, has_clock = moments(traces)
    (found,) = rows.asked(
        "SELECT min(moment) AS first, "
        "(SELECT count(*) FROM (SELECT user FROM rows GROUP BY user, moment HAVING count(DISTINCT state) > 1)) AS twice "
        "FROM rows"
    ).to_pylist()
    first, twice = found.values()
    step = _usual_distance(rows)
    if not step:
        return
    distance = f"CAST(moment - ({first}) AS DOUBLE) / ({step})"
    begins_month = "date_trunc('month', make_timestamp(moment)) = make_timestamp(moment)" if has_clock else "false"
    (regular,) = rows.asked(
        f"SELECT bool_and(abs({distance} - round({distance})) < 1e-6) OR bool_and({begins_month}) AS all FROM rows"
    ).to_pylist()
    if regular["all"] and not twice:
        return
    every = (
        min(GRIDS, key=lambda one: abs(GRIDS[one] - step / 1e6))
        if has_clock
        else np.format_float_positional(step, trim="-")
    )
    looked.settings |= {"every": every, "fill": "last"}
    looked.facts.append("Rows are events: a step has the last state until then.")
    pairs = "1 pair of user and time has" if twice == 1 else f"{twice} pairs of user and time have"
    looked.questions.append(
        f"{f'{pairs} several states' if twice else 'rows are at odd times'}, so that they are read as events on a grid of "
        f"{every}: check traces.every, and traces.fill (last: the state stays until the next event; absent: it does not)"
    )


def _usual_distance(rows: Rows) -> Any:
    """The most frequent distance of a person's moments, the smallest of several; the median if each occurs once; or None."""
    distances = rows.then("SELECT moment - lag(moment) OVER (PARTITION BY user ORDER BY moment) AS d FROM rows")
    counted = distances.then("SELECT d, count(*) AS n FROM rows WHERE d > 0 GROUP BY d")
    usual = "CASE WHEN max(most) = 1 THEN quantile_disc(d, 0.5) ELSE min(d) FILTER (WHERE n = most) END AS step"
    (found,) = (
        counted.then("SELECT d, max(n) OVER () AS most, n FROM rows").asked(f"SELECT {usual} FROM rows").to_pylist()
    )
    return found["step"]


def _text(traces: Looked, past: Looked | None, publication: ProposedPublication) -> str:
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
            *_section("traces", traces.settings, facts=traces.facts, left_out=traces.left_out),
            *(
                history
                if past is None
                else _section("history", past.settings, facts=past.facts, left_out=past.left_out)
            ),
            *([] if publication.models is None else _correlation(publication.models, publication.period)),
            *_section("privacy", publication.privacy, facts=publication.facts, left_out=publication.left_out),
            *_section("release", publication.release),
            *_section("report", {"output": "report.html"}),
        ]
    )


def _correlation(choice: ModelChoice, period: int | None) -> list[str]:
    keys: dict[str, Any] = {"models": choice.models} | ({} if period is None else {"period": period})
    return _section("correlation", keys, facts=choice.reasons)


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
