"""Events at irregular times on a grid: the state of a user at a step is that of the last event up to it.

Steps of hours and less are elapsed time, counted from midnight of the first event's day; days and weeks are those of the clock,
so that in a zone with daylight saving a day may have 23 or 25 hours. Times with an offset are converted to UTC; times without
one are read by the clock of `zone` or, if none is given, by a clock without daylight saving.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.errors import InputError, TraceError
from temporaldp.base.values import plural, refuse
from temporaldp.data.tables.encoding import refuse_missing
from temporaldp.data.tables.moments import Times, TimesOf, comparable, in_utc, time_zone
from temporaldp.data.tables.relations import (
    CLOCK_TIMES,
    FRACTIONS,
    INSTANTS,
    WHOLE,
    Rows,
    integers,
    literal,
    meanings,
    table_of_steps,
    values,
    without_blanks,
)
from temporaldp.data.tables.trace_table import disorder, two_states

Fill: TypeAlias = Literal["last", "absent"]
Ties: TypeAlias = Literal["last", "first", "longest"]

MICROSECONDS = {"s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86_400 * 10**6, "w": 7 * 86_400 * 10**6}
DAY = MICROSECONDS["d"]


def spacing(every: str) -> tuple[float, str | None]:
    """Length and unit of a step such as ``15min``, ``1h``, ``1d``, ``1w``, ``30s``, or of a number, for times that are numbers.

    The length is in microseconds, or, without a unit, in that of the times.

    Raises
    ------
    InputError
    """
    known = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h|d|w)?\s*", every)
    if known is None or float(known[1]) <= 0.0:
        raise InputError(
            f"expected a step such as 15min, 1h, 1d or 1w (or a number, for times that are numbers), got {every!r}"
        )
    if known[2] is None:
        return float(known[1]), None
    length = float(known[1]) * MICROSECONDS[known[2]]
    if length != int(length) or (known[2] in {"d", "w"} and not float(known[1]).is_integer()):
        raise InputError(f"expected a whole number of days or weeks, or of microseconds, got {every!r}")
    return int(length), known[2]


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid for events, and the state of a person at its steps.

    Parameters
    ----------
    every : str
        Length of a step.
    fill : {"last", "absent"}
        State at a step without an event.
    zone : str, optional
        Whose clock has the days.
    limit : str, optional
        How long the last state is kept, in whole steps; then a person is absent.
    ties : {"last", "first", "longest"}, optional
        Which of several states in one step counts, by default the last one; states at one moment are refused by default.
    away : str, optional
        State before the first event, and after the limit, where the last state is kept.
    skips : bool
        Whether events may have no state: a person is then absent from there on where states are kept, else skipped.
    named : tuple of str
        Entries that are no words for a missing state.
    """

    every: str
    fill: Fill
    zone: str | None = None
    limit: str | None = None
    ties: Ties | None = None
    away: str | None = None
    skips: bool = False
    named: tuple[str, ...] = ()

    @property
    def n_kept(self) -> int | None:
        """Steps for which a state is kept beyond its own; None."""
        if self.limit is None:
            return None
        (length, unit), (limit, of) = spacing(self.every), spacing(self.limit)
        if (unit is None) != (of is None):
            raise InputError(f"expected fill_limit in the unit of every ({self.every}), got {self.limit!r}")
        return math.ceil(limit / length)


class GridSteps(NamedTuple):
    """Steps of a grid: SQL of the number of each event's step; their ends, as moments; labels, and the length in words."""

    number: str
    ends: NDArray[Any]
    labels: tuple[str, ...]
    length: str


def on_grid(traces: Rows, grid: Grid, *, sort: bool, known: tuple[bool, bool] | None = None) -> tuple[Rows, TimesOf]:
    """Events on a grid: at most one row per person and step, with the number of the step as time; and the steps.

    Parameters
    ----------
    traces : Rows
    grid : Grid
    sort : bool
        Whether a person's events may be in any order of time.
    known : tuple of two bool, optional
        The rows have columns `moment`, and `limited`, whether the limit counts: whether moments are in UTC, and are dates.

    Raises
    ------
    InputError, TraceError
        No such step or zone; entries that are missing or not times, times that the clock of the zone shows never or twice,
        times that are out of order, or two states at one moment.
    """
    (length, unit), zone, n_kept = spacing(grid.every), grid.zone, grid.n_kept
    if zone is not None:
        time_zone(zone)  # raises
    refuse_missing(traces, "user")
    refuse_missing(traces, "time")
    if known is None:
        traces = without_blanks(traces).then("SELECT *, true AS limited FROM rows")
    if grid.skips:
        text = "CAST(state AS STRING)"
        is_named = " OR ".join(["false", *(f"{text} = {literal(name)}" for name in grid.named)])
        has_state = f"({is_named} OR NOT {traces.is_missing(text)})"
        if grid.fill == "last":
            traces = _left(traces, grid.away, has_state, "" if known is None else ", moment")
        else:
            traces = traces.then(f"SELECT * FROM rows WHERE {has_state}")
    events, has_zone = _instants(traces, length, unit, zone, known)
    if traces.has_order and not sort and known is None:
        _refuse_disorder(events)
    if grid.ties is None:
        _refuse_two_states(events)
    clock, *of_ends = (
        name if zone is None or not has_zone else events.clock(name, zone) for name in ("moment", "first", "last")
    )
    ends = events.then("SELECT min(moment) AS first, max(moment) AS last FROM rows").asked(
        f"SELECT first, last, {of_ends[0]} AS first_clock, {of_ends[1]} AS last_clock FROM rows"
    )
    first, last, first_clock, last_clock = ends.to_pylist()[0].values()
    if first is None:
        raise TraceError(f"the {traces.kind} has a header but no rows")
    if unit is None:
        found = _numbers(length, first, last)
    else:
        midnight = first_clock // DAY * DAY
        is_calendar = unit in {"d", "w"}
        if not is_calendar:
            clock, midnight, first_clock, last_clock = "moment", midnight - (first_clock - first), first, last
        suffix = "Z" if has_zone and not is_calendar else ""
        days_of = zone if has_zone and is_calendar and length == DAY else None
        clock_of = zone if has_zone and is_calendar else None
        found = _dates(clock, int(length), first_clock, last_clock, midnight, suffix, days_of, clock_of)
    numbered = events.then(
        f"SELECT {traces.identity}, state, moment, limited, CAST({found.number} AS INT) AS time FROM rows"
    )
    kept = (_longest if grid.ties == "longest" else _one_event)(numbered, grid, found.ends)
    if grid.fill == "last" and grid.away is not None:
        kept = _with_absence(kept, grid.away, n_kept, len(found.labels))
    kept = kept.then(f"SELECT {traces.identity}, time, state FROM rows")
    links = np.ones(len(found.labels) - 1, dtype=bool)
    return kept.kept(), lambda raw: Times(found.labels, raw.astype(np.intp), links, found.length)


def _left(traces: Rows, away: str | None, has_state: str, more: str) -> Rows:
    """Events without a state as those of absence: a state that is kept would go on for people who left."""
    if away is not None:
        known = f"CASE WHEN {has_state} THEN CAST(state AS STRING) ELSE {literal(away)} END AS state"
        return traces.then(f"SELECT {traces.identity}, time, {known}, limited{more} FROM rows")
    (found,) = traces.asked(f"SELECT count(*) AS n, min(row) AS row FROM rows WHERE NOT {has_state}").to_pylist()
    if found["n"]:
        raise TraceError(
            f"column {traces.state!r} has no value in {traces.place(found['row'])} ({plural(found['n'], 'such cell')}), from "
            "where on the person was not observed; with fill='last' that is a state: give it a name (absent='away', "
            "--set traces.absent=away). For a release whose states are fixed, leave such rows out (traces.where)"
        )
    return traces


def _one_event(numbered: Rows, grid: Grid, ends: NDArray[Any]) -> Rows:
    """The last event of each person in a step, or the first; `since` is its step, or null where no limit counts.

    After a step with the first event, the last one is that of the next step, where states are kept.
    """
    whose, window = numbered.identity, f"(PARTITION BY user ORDER BY {numbered.order('moment', 'state')})"
    since = "CASE WHEN limited THEN time END AS since"
    if grid.ties != "first":
        return numbered.then(f"SELECT *, lead(time) OVER {window} AS following FROM rows").then(
            f"SELECT {whose}, time, state, {since} FROM rows WHERE following IS NULL OR following <> time"
        )
    around = f"lag(time) OVER {window} AS before, lead(time) OVER {window} AS following"
    later = f"{grid.fill == 'last'} AND time + 1 < {len(ends)} AND (following IS NULL OR following > time + 1)"
    return numbered.then(f"SELECT *, {around} FROM rows").then(
        f"SELECT {whose}, time + part AS time, state, {since} FROM rows CROSS JOIN (VALUES (0), (1)) AS parts(part) "
        f"WHERE CASE part WHEN 0 THEN before IS NULL OR before <> time ELSE {later} END"
    )


def _longest(numbered: Rows, grid: Grid, ends: NDArray[Any]) -> Rows:
    """The state that a person has for the longest part of a step; of equal ones, that of the last event.

    A step begins with the last state before it, and the step after the last event has its state.
    """
    length = float(np.diff(ends).max()) if len(ends) > 1 else 0.0
    columns = {
        "time": np.arange(len(ends), dtype=np.int32),
        "until": ends,
        "since": np.append(ends[0] - length, ends[:-1]),
    }
    window = f"WINDOW w AS (PARTITION BY user ORDER BY {numbered.order('moment', 'state')})"
    around = ", ".join(
        f"{how}({what}) OVER w AS {name}"
        for how, what, name in (
            ("lag", "state", "earlier"),
            ("lag", "time", "before"),
            ("lag", "limited", "was_limited"),
            ("lead", "moment", "next_moment"),
            ("lead", "time", "following"),
        )
    )
    whose, earlier, n_kept = numbered.identity, "earlier", grid.n_kept
    if n_kept is not None and grid.away is not None:
        # A state that was kept to its limit before the step is not kept in it
        is_over = f"was_limited AND before + {n_kept + 1} < time"
        earlier = f"CASE WHEN {is_over} THEN {literal(grid.away)} ELSE CAST(earlier AS STRING) END"
    state = "state" if earlier == "earlier" else "CAST(state AS STRING)"
    pieces = (
        numbered.then(f"SELECT *, {around} FROM rows {window}")
        .then(
            "SELECT rows.*, until, steps.since AS began FROM rows JOIN {steps} AS steps ON rows.time = steps.time",
            steps=table_of_steps(columns),
        )
        .then(
            f"SELECT {whose}, CASE part WHEN 1 THEN began ELSE moment END AS moment, "
            "CASE part WHEN 2 THEN time + 1 ELSE time END AS time, "
            f"CASE part WHEN 1 THEN {earlier} ELSE {state} END AS state, "
            "CASE WHEN CASE part WHEN 1 THEN was_limited ELSE limited END "
            "THEN CASE part WHEN 1 THEN before ELSE time END END AS since, "
            "CASE part WHEN 0 THEN least(coalesce(next_moment, until), until) - moment WHEN 1 THEN moment - began ELSE 0 END "
            "AS held FROM rows CROSS JOIN (VALUES (0), (1), (2)) AS parts(part) "
            "WHERE part = 0 OR (part = 1 AND before < time) "
            f"OR (part = 2 AND time + 1 < {len(ends)} AND (following IS NULL OR following > time + 1))"
        )
    )
    shared = "OVER (PARTITION BY user, time, state)"
    sums = f"sum(held) {shared} AS total, max(moment) {shared} AS latest"
    best = (
        "row_number() OVER (PARTITION BY user, time ORDER BY total DESC, latest DESC, state DESC, moment DESC) AS rank"
    )
    return (
        pieces.then(f"SELECT *, {sums} FROM rows")
        .then(f"SELECT *, {best} FROM rows")
        .then(f"SELECT {whose}, time, state, since FROM rows WHERE rank = 1")
    )


def _with_absence(kept: Rows, away: str, n_kept: int | None, n_steps: int) -> Rows:
    """With rows of absence: at the first step of people whose first event is later, and where a state was kept to its limit."""
    state, gone = "CAST(state AS STRING)", literal(away)
    limit = f"(since + {n_kept + 1})" if n_kept is not None else f"{n_steps}"
    around = "lag(time) OVER w AS before, lead(time) OVER w AS following"
    ends = f"{limit} < {n_steps} AND (following IS NULL OR following > {limit}) AND {state} <> {gone}"
    return kept.then(f"SELECT *, {around} FROM rows WINDOW w AS (PARTITION BY user ORDER BY time)").then(
        f"SELECT {kept.identity}, CASE part WHEN 0 THEN time WHEN 1 THEN 0 ELSE {limit} END AS time, "
        f"CASE part WHEN 0 THEN {state} ELSE {gone} END AS state FROM rows CROSS JOIN (VALUES (0), (1), (2)) AS parts(part) "
        f"WHERE part = 0 OR (part = 1 AND before IS NULL AND time > 0) OR (part = 2 AND {ends})"
    )


def one_state(traces: Rows, ties: Ties) -> Rows:
    """At most one row per person and time: the last or the first one of several.

    Raises
    ------
    InputError
        The longest one is asked for, where there is no step in which states could be long.
    """
    if ties == "longest":
        raise InputError("ties='longest' is about the steps of a grid: give every, such as every='1h', or another rule")
    refuse_missing(traces, "time")
    traces = without_blanks(traces)
    rows, *_ = moments(traces)
    beside = "lag" if ties == "first" else "lead"
    order = traces.order("moment", "state")
    return rows.then(f"SELECT *, {beside}(moment) OVER (PARTITION BY user ORDER BY {order}) AS beside FROM rows").then(
        f"SELECT {traces.identity}, time, state FROM rows WHERE beside IS NULL OR beside <> moment"
    )


def moments(traces: Rows, beside: str = "moments") -> tuple[Rows, bool, bool]:
    """A column `moment`: microseconds since 1970, or numbers; whether it is known in UTC, and whether the times are dates.

    Missing times have none. `beside` names the small table of what text means.
    """
    kind = traces.kinds["time"]
    if kind in {CLOCK_TIMES, INSTANTS}:
        return traces.then(f"SELECT *, {traces.microseconds('time')} AS moment FROM rows"), kind == INSTANTS, True
    if kind == FRACTIONS or kind.startswith(WHOLE):
        return traces.then("SELECT *, time AS moment FROM rows"), False, False
    return _spelled(traces, beside)


def _instants(
    traces: Rows, length: float, unit: str | None, zone: str | None, known: tuple[bool, bool] | None
) -> tuple[Rows, bool]:
    """A column `moment`: microseconds since 1970 in UTC (by the clock, if no zone is given), or numbers; is one known?"""
    made, has_zone, is_date = moments(traces) if known is None else (traces, *known)
    refuse(
        (
            is_date and unit is None,
            InputError(f"the times are dates: give the step with its unit, such as {length:g}min, got {length:g}"),
        ),
        (
            unit is not None and not is_date,
            InputError(f"the times are numbers: give the step as a number in their unit, not in {unit}"),
        ),
    )
    if zone is not None and is_date and not has_zone:
        return _to_utc(made, zone), True
    return made, has_zone


def _spelled(traces: Rows, beside: str) -> tuple[Rows, bool, bool]:
    """A column `moment` for times that are text, whether they have an offset, and whether they are dates.

    Every different time is read once.
    """
    if (plain := traces.spelled_moments()) is not None:
        return traces.then(f"SELECT *, {plain[0]} AS moment FROM rows"), plain[1], True
    most = 5_000_000  # times in text are read one by one
    found = traces.asked(
        f"SELECT time, min(row) AS row FROM rows WHERE time IS NOT NULL GROUP BY time LIMIT {most + 1}"
    )
    refuse(
        (not len(found), TraceError(f"the {traces.kind} has a header but no rows")),
        (
            len(found) > most,
            TraceError(
                f"column {traces.time!r} holds more than {most} different times as text; write them as "
                "timestamps, in Parquet"
            ),
        ),
    )
    entries = found.column("time").combine_chunks()
    raw, row = values(entries), integers(found, "row")
    read = comparable(raw, traces.time, lambda entry: traces.place(int(row[raw == entry].min())))
    is_date = read.dtype.kind == "M"
    moments = read.astype("datetime64[us]").astype(np.int64) if is_date else read
    joined = traces.then(
        f"SELECT rows.*, moment FROM rows LEFT JOIN {{{beside}}} AS {beside} ON rows.time = {beside}.time",
        **{beside: meanings("time", entries, {"moment": moments})},
    )
    return joined, is_date and in_utc(raw), is_date


def _to_utc(events: Rows, zone: str) -> Rows:
    """Instants in place of what the clock of a zone shows.

    The clock is as far ahead of UTC as a day before, or as a day after. It shows an hour twice where both are right, and never
    where neither is.
    """
    early, late = (f"{events.clock(f'moment {sign} {DAY}', zone)} - (moment {sign} {DAY})" for sign in "-+")
    made = events.then(f"SELECT *, moment - ({early}) AS early, moment - ({late}) AS late FROM rows").then(
        f"SELECT *, {events.clock('early', zone)} = moment AS is_early, "
        f"{events.clock('late', zone)} = moment AS is_late FROM rows"
    )
    first = made.asked(
        "SELECT CAST(time AS STRING) AS time, row, is_early FROM rows WHERE early <> late AND is_early = is_late "
        "ORDER BY row, time LIMIT 1"
    ).to_pylist()
    for wrong in first:
        how, what = ("twice", "ends") if wrong["is_early"] else ("never", "begins")
        raise TraceError(
            f"time {wrong['time']!r} in {events.place(wrong['row'])}: the clock of {zone} shows it {how}, as daylight "
            f"saving {what} there; write times with their offset (2014-01-31T08:00+01:00)"
        )
    return made.then(
        f"SELECT {events.identity}, time, state, limited, CASE WHEN is_early THEN early ELSE late END AS moment FROM rows"
    )


def _numbers(length: float, first: Any, last: Any) -> GridSteps:
    """The steps of numbers: that of an event is at or after it."""
    if float(length).is_integer() and isinstance(first, int):
        whole = int(length)
        steps = _steps(-(-first // whole), -(-last // whole))
        ends = np.array(steps, dtype=np.float64) * whole
        return GridSteps(
            _ceiling("moment", steps.start * whole, whole), ends, tuple(str(k * whole) for k in steps), f"{whole}"
        )
    steps = _steps(math.ceil(first / length), math.ceil(last / length))
    labels = tuple(f"{k * length:.12g}" for k in steps)
    number = f"ceil(CAST(moment AS DOUBLE) / CAST({length!r} AS DOUBLE)) - {steps.start}"
    return GridSteps(number, np.array(steps, dtype=np.float64) * length, labels, f"{length:g}")


def _dates(
    moment: str,
    length: int,
    first: int,
    last: int,
    midnight: int,
    suffix: str,
    zone: str | None = None,
    clock_of: str | None = None,
) -> GridSteps:
    """The steps from a midnight on; of days and weeks by the clock of a zone, `clock_of`.

    Steps that are the days of a `zone` leave out days that its clock skipped.
    """
    steps = _steps(-(-(first - midnight) // length), -(-(last - midnight) // length))
    stamps = np.array([midnight + k * length for k in steps], dtype="datetime64[us]")
    number = _ceiling(moment, midnight + steps.start * length, length)
    if zone is not None and (skipped := [k for k, day in enumerate(stamps) if _is_skipped(day, zone)]):
        stamps[skipped] += length  # a skipped day and the next one begin at the same instant
        stamps = np.unique(stamps)
        later = " + ".join(f"CASE WHEN {number} > {k} THEN 1 ELSE 0 END" for k in skipped)
        number = f"{number} - ({later})"
    unit = "D" if length % DAY == 0 else "m" if length % MICROSECONDS["min"] == 0 else "us"
    labels = tuple(stamp + suffix for stamp in np.datetime_as_string(stamps.astype(f"datetime64[{unit}]")).tolist())
    return GridSteps(number, _moments_of(stamps, clock_of), labels, f"{length / 10**6:g} seconds")


def _moments_of(stamps: NDArray[Any], zone: str | None) -> NDArray[Any]:
    """Microseconds since 1970 of stamps, as floats: in UTC, or of what the clock of a zone shows."""
    if zone is None:
        return stamps.astype("datetime64[us]").astype(np.float64)
    shown = (stamp.astype("datetime64[us]").item().replace(tzinfo=time_zone(zone)) for stamp in stamps)
    return np.array([stamp.timestamp() * 1e6 for stamp in shown])


def _is_skipped(day: np.datetime64, zone: str) -> bool:
    """Whether the clock of a zone never showed a day, as where the zone moved across the date line."""
    noon = day.astype("datetime64[us]").item() + timedelta(hours=12)
    shown = noon.replace(tzinfo=time_zone(zone)).astimezone(UTC).astimezone(time_zone(zone))
    return bool(shown.date() != noon.date())


def _ceiling(moment: str, start: int, length: int) -> str:
    """In SQL the number of steps from the start on, rounded up; at least 0."""
    distance = f"({moment} - ({start}) + {length - 1})"
    return f"round(({distance} - {distance} % {length}) / {length})"


def _steps(first: int, last: int) -> range:
    """The numbers of the steps; `InputError` if there are too many."""
    steps, most = range(first, last + 1), 2_000_000  # more are a mistake, such as seconds in place of hours
    if len(steps) > most:
        raise InputError(f"that would be {len(steps)} steps, more than {most}; take longer ones")
    return steps


def _refuse_two_states(events: Rows) -> None:
    """Raise `TraceError` where a person has two states at one moment."""
    before = ", ".join(f"lag({name}) OVER w AS {name}_before" for name in ("moment", "row", "state"))
    pairs = events.then(
        f"SELECT *, {before} FROM rows WINDOW w AS (PARTITION BY user ORDER BY {events.order('moment', 'state')})"
    )
    query = (
        "SELECT CAST(user AS STRING) AS name, CAST(time AS STRING) AS time, CAST(state AS STRING) AS state, row, "
        "CAST(state_before AS STRING) AS state_before, row_before, count(*) OVER () AS n FROM rows "
        "WHERE moment = moment_before AND state <> state_before ORDER BY name, row, time LIMIT 1"
    )
    for first in pairs.asked(query).to_pylist():
        raise two_states(events, first, first["time"], (first["state_before"], first["state"]), first["n"])


def _refuse_disorder(events: Rows) -> None:
    """Raise `TraceError` where a person's events are not in order of time."""
    before = ", ".join(f"lag({name}) OVER w AS {name}_before" for name in ("moment", "row", "time"))
    pairs = events.then(f"SELECT *, {before} FROM rows WINDOW w AS (PARTITION BY user ORDER BY row)")
    names = "CAST(user AS STRING) AS name, CAST(time AS STRING) AS late, CAST(time_before AS STRING) AS early"
    found = pairs.asked(f"SELECT {names}, row, row_before FROM rows WHERE moment < moment_before ORDER BY row LIMIT 1")
    for first in found.to_pylist():
        raise disorder(events, first, first["late"], first["early"])
