"""Events at odd times on a grid: what somebody is at a step is what their last event until then says.

Steps of hours and less are elapsed time, counted from midnight of the first event's day; days and weeks are those of the clock,
so that in a zone with daylight saving a day may have 23 or 25 hours. What has an offset stands in UTC; what has none is taken
for the clock of `zone`, or for a clock without daylight saving where no zone is said.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from temporaldp.correlation.encoding import first_row, place_of, refuse_missing
from temporaldp.correlation.frames import TraceFrame, values
from temporaldp.correlation.states import distinct
from temporaldp.correlation.times import Times, comparable, says_offset
from temporaldp.correlation.zones import clock_ahead, time_zone, to_utc
from temporaldp.errors import InputError, TraceError
from temporaldp.extras import needing

with needing("tables"):
    import narwhals as nw

MICROSECONDS = {"s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86_400 * 10**6, "w": 7 * 86_400 * 10**6}
DAY = MICROSECONDS["d"]

MOST_STEPS = 2_000_000
"""Steps of a grid: more are a mistake, such as seconds in place of hours."""

MOST_SPELLINGS = 5_000_000
"""Different times in text, which are read one by one."""


@dataclass(frozen=True, slots=True)
class Spacing:
    """How far the steps of a grid are apart.

    Parameters
    ----------
    length : int or float
        In microseconds, or where times are numbers in their unit.
    unit : str or None
        None where times are numbers.
    """

    length: float
    unit: str | None

    @property
    def is_calendar(self) -> bool:
        """Whether the clock decides how long a step is."""
        return self.unit in {"d", "w"}


def spacing(every: str) -> Spacing:
    """``15min``, ``1h``, ``1d``, ``1w``, ``30s``; or a number, for times that are numbers.

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
        return Spacing(float(known[1]), None)
    length = float(known[1]) * MICROSECONDS[known[2]]
    if length != int(length) or (known[2] in {"d", "w"} and not float(known[1]).is_integer()):
        raise InputError(f"expected a whole number of days or weeks, or of microseconds, got {every!r}")
    return Spacing(int(length), known[2])


@dataclass(frozen=True, slots=True)
class Gridded:
    """Events on a grid: at most one row a person and step, whose column time is the number of the step; and the steps."""

    traces: TraceFrame
    steps: tuple[str, ...]
    step: str

    def times(self, raw: NDArray[Any]) -> Times:
        """The steps as times; all are one step apart."""
        return Times(self.steps, raw.astype(np.intp), np.ones(len(self.steps) - 1, dtype=bool), self.step)


def on_grid(traces: TraceFrame, every: str, zone: str | None, *, sort: bool) -> Gridded:
    """Put events on a grid.

    Raises
    ------
    InputError, TraceError
        No such step or zone; times that are missing or no times, that the clock of the zone shows never or twice, or that are
        out of order.
    """
    spaced, place = spacing(every), time_zone(zone)
    refuse_missing(traces, "user")
    refuse_missing(traces, "time")
    events, has_zone = _instants(traces, spaced, place)
    if traces.has_rows and not sort:
        _refuse_disorder(events)
    ends = events.collected(events.frame.select(first=nw.col("moment").min(), last=nw.col("moment").max()))
    first, last = (ends.get_column(name).to_list()[0] for name in ("first", "last"))
    if first is None:
        raise TraceError(f"the {traces.source.kind} has a header but no rows")
    if spaced.unit is None:
        number, steps, step = _numbers(spaced.length, first, last)
    else:
        ahead = [(first, 0)] if place is None or not has_zone else clock_ahead(place, first, last)
        number, steps, step = _dates(spaced, ahead, first, last, has_zone=has_zone)
    frame = events.frame.with_columns(time=number)
    order = ["moment", *(["row"] if traces.has_rows else [])]
    following = nw.col("time").shift(-1).over("user", order_by=order)
    is_last = nw.col("following").is_null() | (nw.col("following") != nw.col("time"))
    kept = frame.with_columns(following=following).filter(is_last)
    return Gridded(traces.with_frame(kept.drop("following", "moment")), steps, step)


def _instants(traces: TraceFrame, spaced: Spacing, zone: ZoneInfo | None) -> tuple[TraceFrame, bool]:
    """A column `moment`: microseconds since 1970 in UTC (by the clock, if no zone is known), or numbers; is one known?"""
    kind = traces.frame.collect_schema()["time"]
    column = nw.col("time")
    if kind.is_numeric():
        if spaced.unit is not None:
            raise InputError(f"the times are numbers: say the step as a number in their unit, not in {spaced.unit}")
        return traces.with_frame(traces.frame.with_columns(moment=column)), False
    aware = isinstance(kind, nw.Datetime) and kind.time_zone is not None
    if isinstance(kind, nw.Datetime) and (aware or zone is None):
        _require_unit(spaced)
        return traces.with_moments(), aware
    return _spelled(traces, spaced, zone)


def _spelled(traces: TraceFrame, spaced: Spacing, zone: ZoneInfo | None) -> tuple[TraceFrame, bool]:
    """A column `moment` for times that are text or by the clock of a zone: every different time is read once."""
    found = traces.collected(traces.frame.select("time").unique().head(MOST_SPELLINGS + 1))
    if len(found) > MOST_SPELLINGS:
        raise TraceError(
            f"column {traces.source.time!r} holds more than {MOST_SPELLINGS} different times as text; write them as "
            "timestamps, in Parquet"
        )
    raw, _ = distinct(values(found.get_column("time")))

    def place(entry: object) -> str:
        row = first_row(traces, nw.col("time") == entry)
        return "a row" if row is None else str(row["where"])

    read = comparable(raw, traces.source.time, place)
    if read.dtype.kind != "M":
        if spaced.unit is not None:
            raise InputError(f"the times are numbers: say the step as a number in their unit, not in {spaced.unit}")
        moments, has_zone = read, False
    else:
        _require_unit(spaced)
        has_zone = raw.dtype == object and all(isinstance(word, str) and says_offset(word) for word in raw)
        moments = read.astype("datetime64[us]").astype(np.int64)
        if zone is not None and not has_zone:
            moments, has_zone = to_utc(moments, raw, zone, place), True
    kind = nw.Int64() if moments.dtype.kind == "i" else nw.Float64()
    spellings = found.with_columns(nw.new_series("moment", moments, kind, backend=found.implementation))
    return traces.with_frame(traces.frame.join(traces.beside(spellings), on="time", how="inner")), has_zone


def _require_unit(spaced: Spacing) -> None:
    if spaced.unit is None:
        raise InputError(
            f"the times are dates: say the step with its unit, such as {spaced.length:g}min, got {spaced.length:g}"
        )


def _numbers(length: float, first: Any, last: Any) -> tuple[nw.Expr, tuple[str, ...], str]:
    """The number of the step at or after each number, the labels of the steps, and the step in words."""
    moment = nw.col("moment")
    if float(length).is_integer() and isinstance(first, int):
        whole = int(length)
        low, high = -(-first // whole), -(-last // whole)
        _require_few(high - low + 1)
        return _ceiling(moment, whole) - low, tuple(str(k * whole) for k in range(low, high + 1)), f"{whole}"
    low, high = math.ceil(first / length), math.ceil(last / length)
    _require_few(high - low + 1)
    labels = tuple(f"{k * length:.12g}" for k in range(low, high + 1))
    return (moment / length).ceil().cast(nw.Int64()) - low, labels, f"{length:g}"


def _dates(
    spaced: Spacing, ahead: list[tuple[int, int]], first: int, last: int, *, has_zone: bool
) -> tuple[nw.Expr, tuple[str, ...], str]:
    """For dates: each row's step on the grid, the names of all steps, and the step's length in words.

    `ahead` says from which instant on the clock is how far ahead of UTC.
    """
    moment, length = nw.col("moment"), int(spaced.length)
    shift, late_shift = ahead[0][1], ahead[-1][1]
    start = (first + shift) // DAY * DAY - shift  # midnight by the clock, in UTC
    if spaced.is_calendar:
        clock = moment + shift
        for since, offset in ahead[1:]:
            clock = nw.when(moment >= since).then(moment + offset).otherwise(clock)
        moment, start, first, last = clock, start + shift, first + shift, last + late_shift
    low, high = -(-(first - start) // length), -(-(last - start) // length)
    _require_few(high - low + 1)
    stamps = np.array([start + k * length for k in range(low, high + 1)], dtype="datetime64[us]")
    unit = "D" if spaced.is_calendar else "m" if length % MICROSECONDS["min"] == 0 else "us"
    suffix = "Z" if has_zone and not spaced.is_calendar else ""
    labels = tuple(stamp + suffix for stamp in np.datetime_as_string(stamps.astype(f"datetime64[{unit}]")).tolist())
    return _ceiling(moment - start, length) - low, labels, f"{length / 10**6:g} seconds"


def _ceiling(distance: nw.Expr, length: int) -> nw.Expr:
    """A distance of whole numbers from 0 in steps, rounded up."""
    return (distance + (length - 1)) // length


def _require_few(n: int) -> None:
    if n > MOST_STEPS:
        raise InputError(f"that would be {n} steps, more than {MOST_STEPS}; take longer ones")


def _refuse_disorder(events: TraceFrame) -> None:
    """Raise `TraceError` where a person's events are not in order of time."""
    before = {
        f"{name}_before": nw.col(name).shift(1).over("user", order_by="row") for name in ("moment", "row", "time")
    }
    falls = events.frame.with_columns(**before).filter(nw.col("moment") < nw.col("moment_before"))
    first = events.collected(falls.sort("row").head(1))
    if len(first):
        user, late, early = (first.get_column(name).to_list()[0] for name in ("user", "time", "time_before"))
        raise TraceError(
            f"times are not in order: user {str(user).strip()!r} has {str(late)!r} ({place_of(events, first)}) after "
            f"{str(early)!r} ({place_of(events, first, 'row_before')}); if that column is the time, sort with "
            + events.source.advice("--set traces.sort=true", "sort=True")
        )
