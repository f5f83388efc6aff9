"""Labels of steps as moments, columns of times as positions on a common list, and phases of a clock.

A moment is equal in any spelling, and ordered in time.
"""

from __future__ import annotations

import math
import re
import unicodedata
from calendar import monthrange
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.errors import InputError, TraceError
from temporaldp.base.names import printable
from temporaldp.base.values import BoolArray
from temporaldp.core.correlation.clock import Clock
from temporaldp.core.planning import Plan

INSTANT, DATE, NUMERIC, WORD = "time with a zone", "date or time without a zone", "number", "word"

JITTER = 0.01
"""Share of a step by which clocks may be early."""

EPOCH = datetime(1970, 1, 1)

STEP_LENGTH = re.compile(r"([\d.e+-]+)(?: (seconds|months))?")
"""Length of a step: 300 seconds, 1 months, or a number."""

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)

PRECISIONS = tuple(map(len, ("2024-01", "2024-01-01", "2024-01-01T00:00", "2024-01-01T00:00:00")))
"""Number of characters of a month, a day, and a time to minutes and to seconds."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Position of a label in time.

    Parameters
    ----------
    kind : str
        `INSTANT` or `DATE` (value: seconds since 1970, in UTC or by the clock), `NUMERIC`, `WORD` (no order), or `WORD` with
        what stands before its number: ``s05``, ``S 5`` and ``s5`` are one moment, and before ``s6``. Moments of different
        kinds are not comparable.
    value : Decimal or str
    clock : Decimal or None
        Seconds since 1970 of a date by the clock that it is written with.
    """

    kind: str
    value: Decimal | str
    clock: Decimal | None = field(default=None, compare=False)

    @property
    def has_order(self) -> bool:
        """Whether the moment can be compared with others of its kind."""
        return isinstance(self.value, Decimal)


def label_of(time: Any) -> str:
    """A step's label from text, a number, a date or a timestamp.

    Raises
    ------
    InputError
        The entry is not a moment: None, an empty text, a truth value, NaN, text with control characters, or another type.
    """
    if isinstance(time, np.generic) and not isinstance(time, np.datetime64):
        time = time.item()
    known = isinstance(time, str | Real | date | np.datetime64) and not isinstance(time, bool | Fraction)
    text = time.isoformat() if isinstance(time, date) else str(time)
    if not known or not text.strip() or text in {"nan", "inf", "-inf", "NaT"}:
        raise InputError(f"expected time to be a label: text, a finite number, a date or a timestamp, got {time!r}")
    return printable(text, "time")


@lru_cache(maxsize=4096)
def moment(label: str) -> Moment:
    """Position of a label in time."""
    word = " ".join(unicodedata.normalize("NFKC", label).split())
    if re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", word):
        return Moment(NUMERIC, _exact(word))
    folded = word.casefold()
    if (when := _timestamp(_month(folded) or word)) is not None:
        return when
    end = len(folded)
    while end and folded[end - 1].isdecimal():
        end -= 1
    if end < len(folded):
        return Moment(f"{WORD} {folded[:end].removesuffix(' ')}", _exact(folded[end:]))
    return Moment(WORD, folded)


def _month(folded: str) -> str | None:
    """A month such as jul.93, jan 00 or march 2024 in digits, 1993-07; of two digits, years begin with 1969."""
    known = re.fullmatch(r"([a-z]{3,9})[ .\-/']*(\d{4}|\d{2})", folded)
    for number, name in enumerate(MONTHS, 1):
        if known is not None and known[1] in {name, name[:3]}:
            year = int(known[2])
            return f"{year + (0 if year > 99 else 1900 if year >= 69 else 2000)}-{number:02}"
    return None


def distance(before: str, label: str) -> float | None:
    """Distance of two labels, in seconds for dates, in their own unit for numbers; None without an order.

    Dates with offsets that differ slightly are compared by the clock, so that a day on which summer time begins is one day.
    """
    one, two = moment(before), moment(label)
    if one.kind != two.kind or not (isinstance(one.value, Decimal) and isinstance(two.value, Decimal)):
        return None
    passed = float(two.value - one.value)
    if one.clock is not None and two.clock is not None:
        shown = float(two.clock - one.clock)
        # A day may lack an hour, an hour may not.
        return shown if shown * (23.0 / 24.0) <= passed < shown else passed
    return passed


def steps_between(step: str, before: str, label: str) -> float | None:
    """Number of steps (300 seconds, 1 months, or a number) between two labels; None if it is undetermined.

    Months are counted by the calendar if both labels have the same day and time of the month, or both are its last day; else
    as the shortest month.
    """
    known = STEP_LENGTH.fullmatch(step)
    length = distance(before, label)
    if known is None or length is None or (known[2] is None) == (moment(label).clock is not None):
        return None
    one, two = by_the_clock(before), by_the_clock(label)
    if known[2] == "months" and one is not None and two is not None:
        is_last = all(when.day == monthrange(when.year, when.month)[1] for when in (one, two))
        is_whole = one.time() == two.time() and (one.day == two.day or is_last)
        length = 12 * (two.year - one.year) + two.month - one.month if is_whole else length / (28.0 * 86_400.0)
    return length / float(known[1])


def labels_between(step: str, before: str, label: str) -> list[str]:
    """Labels of the steps between two labels; empty for neighbours, for months, and where the distance is undetermined."""
    between, known, when = steps_between(step, before, label), STEP_LENGTH.fullmatch(step), by_the_clock(before)
    if between is None or known is None or known[2] == "months":
        return []
    places = range(1, round(between))
    start = moment(before).value
    if when is None or isinstance(start, str):
        return [str(Decimal(start) + place * Decimal(known[1])) for place in places]
    zone = re.search(r"(Z|[+-]\d\d:?\d\d)$", before) if "T" in before else None
    return [
        (when + timedelta(seconds=place * float(known[1]))).isoformat() + (zone[0] if zone else "") for place in places
    ]


def by_the_clock(label: str, zone: str | None = None) -> datetime | None:
    """Local time of a date, to a microsecond; None for a label that is not a date.

    A time with an offset is shown by the clock of the zone, if there is one, else by the clock that it is written with.
    """
    when = moment(label)
    if when.clock is None:
        return None
    if zone is not None and when.kind == INSTANT:
        known = EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=microseconds(when.value))
        return known.astimezone(time_zone(zone)).replace(tzinfo=None)
    return EPOCH + timedelta(microseconds=microseconds(when.clock))


def time_zone(name: str) -> ZoneInfo:
    """Return the time zone of this name; `InputError` if there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(f"expected the name of a time zone, such as Europe/Amsterdam, got {name!r}") from None


def microseconds(seconds: Any) -> int:
    """Whole microseconds of some seconds, rounded down."""
    return int(seconds.quantize(Decimal("1e-6"), ROUND_FLOOR).scaleb(6))


def spelled(label: str, like: str | None, step: str | None) -> str:
    """Return a date written as precisely as another one or, without one, as a step needs; other labels as they are."""
    stamp = r"(\d{4}-\d\d(?:-\d\d(?:T\d\d:\d\d(?::\d\d)?)?)?)(Z|[+-]\d\d:\d\d)?"
    found, other = (re.fullmatch(stamp, one) for one in (label, like or label))
    if not (found and other) or moment(label).clock is None or moment(label).kind != moment(like or label).kind:
        return label
    first = "0000-01-01T00:00:00"
    whole, zone = found[1] + first[len(found[1]) :], found[2] or ""
    needed = next(n for n in PRECISIONS if whole[n:] == first[n:] and (n > len("2024-01-01") or not zone))
    asked, known = len(other[1]), None if like else STEP_LENGTH.fullmatch(step or "")
    if known is not None and known[2] == "months":
        asked = PRECISIONS[0]
    elif known is not None and known[2] == "seconds":
        lengths = zip((86_400, 60), PRECISIONS[1:], strict=False)
        asked = max(asked, next((n for length, n in lengths if float(known[1]) % length == 0.0), PRECISIONS[-1]))
    return whole[: max(needed, asked)] + zone


def is_near(step: str | None, before: str | None, label: str, now: datetime) -> bool:
    """Return whether a label is at most one step ahead: of the clock, or of the label before it if labels have no clock.

    Without a step that fits the label, a step is a day, or 1 for a label without a clock. The first label without a clock is
    compared with 0, and words without a number are always near; if the step has a unit, the first label must fit it.
    """
    when = moment(label)
    fits = step is not None and steps_between(step, label, label) is not None
    if before is None and step is not None and STEP_LENGTH.fullmatch(step) and not fits:
        return False
    if not isinstance(when.value, Decimal):
        return True
    chosen = step if step is not None and fits else "1" if when.clock is None else "86400 seconds"
    if when.kind == INSTANT:
        before = now.isoformat()
    elif when.kind == DATE:
        before = (now + timedelta(hours=14)).replace(tzinfo=None).isoformat()  # no clock is further ahead of UTC
    elif before is None:
        return float(when.value) <= float(chosen) * (1.0 + JITTER)
    length = steps_between(chosen, before, label)
    longest = 31.0 / 28.0 if "months" in chosen else 1.0  # a month counts as 28 days
    return length is not None and length <= longest + JITTER


def in_words(before: str, label: str) -> str:
    """Description of the distance between two labels."""
    return f"{distance(before, label):g}" + ("" if moment(label).clock is None else " seconds")


def _timestamp(word: str) -> Moment | None:
    """An ISO date, month or timestamp; exact, to any digit."""
    if short := re.fullmatch(r"(\d{4})-(\d{1,2})(?:-(\d{1,2}))?", word):
        word = f"{short[1]}-{int(short[2]):02d}-{int(short[3] or 1):02d}"
    elif not re.match(r"\d{4}-\d\d-\d\d", word):
        return None
    whole, fraction = re.fullmatch(r"(.*?\d\d:?\d\d:?\d\d)[.,](\d+)(.*)", word), "0"
    if whole is not None:
        word, fraction = whole[1] + whole[3], whole[2]
    try:
        found = datetime.fromisoformat(word)
        found.astimezone(UTC)  # beyond the years 1 to 9999 there are no labels
    except (ValueError, OverflowError):
        return None
    exact, ahead = Context(prec=len(fraction) + 28), found.utcoffset()
    seconds = (found.replace(tzinfo=None) - EPOCH) // timedelta(seconds=1)
    clock = exact.add(Decimal(seconds), Decimal(f"0.{fraction}"))
    if ahead is None:
        return Moment(DATE, clock, clock)
    return Moment(INSTANT, exact.subtract(clock, Decimal(ahead.total_seconds())), clock)


def _exact(digits: str) -> Decimal:
    """A number without trailing zeros, to as many digits as it is written with."""
    return Decimal(digits).normalize(Context(prec=max(len(digits), 28)))


Place: TypeAlias = Callable[[object], str]
"""Return the first place of an entry in a table, in words."""


@dataclass(frozen=True, slots=True)
class Times:
    """Distinct times in order: labels, positions of entries, which neighbours are one step apart, and the length of a step."""

    labels: tuple[str, ...]
    codes: NDArray[np.intp]
    consecutive: BoolArray
    step: str | None


TimesOf: TypeAlias = Callable[[NDArray[Any]], Times]
"""The times, and their order, of the different entries of a column."""


def ordered_times(column: NDArray[Any], name: str, place: Place | None = None) -> Times:
    """Order a column of whole numbers, decimals, dates or timestamps.

    A mixture of these, or an entry without an order, is refused; `place` returns the first row with an entry, for the message.

    One step is the smallest difference between two times. A larger difference is a gap, which no transition crosses.
    Accounting treats a gap as one step, which is an upper bound: a matrix power leaks no more than the matrix.
    """
    values, codes = np.unique(comparable(column, name, place), return_inverse=True)
    months = values
    if len(values) > 1 or re.fullmatch(r"\d{4}-\d{1,2}", str(column[0]).strip()):  # the first of one month is a day
        months = _in_months(values)
    labels = tuple(str(value) for value in values)
    if values.dtype.kind == "M":
        are_first_days = bool((months == values).all())
        labels = _stamps(months if are_first_days else values, zone="Z" if in_utc(column) else "")
    return _with_steps(labels, codes, months, f"column {name!r}")


def ordered_labels(labels: Sequence[str]) -> Times | None:
    """Order a header whose names are times, or one word with numbers (s0, s1, ..., s10); None for others."""
    kinds, values = _read(labels)
    if len(set(kinds)) > 1 or kinds[0] == WORD:
        return None
    column = _in_months(_array(labels, kinds[0], values))
    order = np.argsort(column, kind="stable")
    return _with_steps(tuple(labels[k] for k in order), np.argsort(order), column[order], "the header")


def _in_months(values: NDArray[Any]) -> NDArray[Any]:
    """Dates of one day of each month, or of its last day, as months, which are one step apart, though some are longer."""
    if values.dtype.kind != "M":
        return values
    months, days = values.astype("datetime64[M]"), values.astype("datetime64[D]")
    if (months == values).all():
        return months
    is_alike = np.unique(days - months.astype("datetime64[D]")).size == 1
    is_last = (days + 1 == (months + 1).astype("datetime64[D]")).all()
    is_monthly = (days == values).all() and (is_alike or is_last)
    return months if is_monthly and np.unique(months).size == len(months) else values


def unlike_the_others(labels: Sequence[str]) -> list[str]:
    """Labels unlike most others, where most are times or one word with numbers; else none."""
    kinds, _ = _read(labels)
    ((most, n),) = Counter(kinds).most_common(1)
    if most == WORD or 2 * n <= len(labels):
        return []
    return [label for label, kind in zip(labels, kinds, strict=True) if kind != most]


def _with_steps(labels: tuple[str, ...], codes: NDArray[np.intp], values: NDArray[Any], where: str) -> Times:
    """The times with the neighbours that are one step apart, and the step, from values in order; none for a single time."""
    # From the first one on, so that dates become durations; as floats their distances can be compared with a tolerance.
    distances = np.diff((values - values[0]).astype(np.float64))
    if not distances.size:
        return Times(labels, codes, np.zeros(0, dtype=bool), None)
    shortest = int(np.argmin(distances))
    if distances[shortest] == 0.0:
        raise TraceError(f"{labels[shortest]!r} and {labels[shortest + 1]!r} in {where} are one time; write it once")
    consecutive = distances <= distances[shortest] * (1.0 + 1e-6)  # times may be kept as decimals
    if 2 * int(consecutive.sum()) < len(distances):
        raise TraceError(
            f"times in {where} follow no regular step: {labels[shortest]!r} and {labels[shortest + 1]!r} are closest, but "
            f"only {int(consecutive.sum())} of {len(distances)} distances are that short; round the times to one grid first"
        )
    return Times(labels, codes, consecutive, _in_words(values[shortest + 1] - values[shortest]))


def _in_words(distance: Any) -> str:
    """A distance as 1 month, 300 seconds, or a plain number."""
    if not isinstance(distance, np.timedelta64):
        return f"{float(distance):g}"
    if np.datetime_data(distance.dtype)[0] == "M":
        return f"{distance.astype(int)} months"
    return f"{distance / np.timedelta64(1, 's'):g} seconds"


def _stamps(values: NDArray[np.datetime64], zone: str) -> tuple[str, ...]:
    """All to the same precision: months, days if all are midnights of no zone, else minutes, seconds or less."""
    dates = () if zone else ("M",) if np.datetime_data(values.dtype)[0] == "M" else ("D",)
    unit = next((u for u in (*dates, "m", "s") if (values.astype(f"datetime64[{u}]") == values).all()), "us")
    return tuple(stamp + zone for stamp in np.datetime_as_string(values.astype(f"datetime64[{unit}]")).tolist())


def in_utc(column: NDArray[Any]) -> bool:
    """Whether the times of a column, which are alike, were written with an offset, so that they now stand in UTC."""
    return column.dtype.kind == "O" and len(column) > 0 and _entry(str(column[0])).kind == INSTANT


def comparable(column: NDArray[Any], name: str, place: Place | None = None) -> NDArray[Any]:
    """A column of times as int64, float64 or datetime64; times with an offset are in UTC."""
    if column.dtype.kind in "iu":
        return column.astype(np.int64 if column.max() <= np.iinfo(np.int64).max else np.float64)
    if column.dtype.kind == "M" or (column.dtype.kind == "f" and np.isfinite(column).all()):
        return column
    if column.dtype.kind == "O":
        return _parsed(column, name, place)
    bad = column[~np.isfinite(column)] if column.dtype.kind == "f" else column
    raise TraceError(
        f"column {name!r} holds values of type {column.dtype}, such as {bad[0].item()!r}, which are not times; expected whole "
        "numbers, dates or timestamps"
    )


def _parsed(column: NDArray[Any], name: str, place: Place | None = None) -> NDArray[Any]:
    """Text as int64, float64 or datetime64, whichever fits every entry."""
    unique, codes = np.unique(column.astype(str), return_inverse=True)
    words = unique.tolist()
    kinds, values = _read(words, _entry)
    each = zip(reversed(kinds), reversed(words), strict=True)
    first = {WORD if kind.startswith(WORD) else kind: word for kind, word in each}
    if WORD in first:
        bad = first.pop(WORD)
        where = f"data row {int(np.flatnonzero(column == bad)[0]) + 1}" if place is None else place(bad)
        others = f" like the others ({min(first.values())!r})" if first else ""
        raise TraceError(
            f"time {bad!r} in {where} of column {name!r} is not a number, date or timestamp{others}; write times as "
            "whole numbers or as 2014-01-31T08:00"
        )
    if len(first) > 1:
        found = ", ".join(f"{word!r} is a {kind}" for kind, word in sorted(first.items(), reverse=True))
        raise TraceError(
            f"times in column {name!r} are of mixed types: {found}; write all of them alike: as numbers, or as dates, all "
            "with an offset from UTC or all without"
        )
    for word in words:
        printable(word, f"time in column {name!r}")
    return _array(words, kinds[0] if kinds else NUMERIC, values)[codes]


def _entry(word: str) -> Moment:
    """Position in time of an entry of a column, where an ISO week is the date on which it begins, and infinity a word."""
    week = re.match(r"\d{4}-W\d\d(-\d)?", word.strip())
    if week is not None:
        with suppress(ValueError):
            word = date.fromisoformat(week[0]).isoformat() + word.strip()[week.end() :]
    return moment(word)


def _read(words: Sequence[str], position: Callable[[str], Moment] = moment) -> tuple[list[str], list[Any]]:
    """Kinds of moments, and their values: numbers, or microseconds since 1970 of dates. A number beyond doubles is a word."""
    kinds, values = [], []
    for one in map(position, words):
        is_beyond = one.kind == NUMERIC and math.isinf(float(one.value))
        kinds.append(WORD if is_beyond else one.kind)
        values.append(one.value if one.clock is None else microseconds(one.value))
    return kinds, values


def _array(words: Sequence[str], kind: str, values: Sequence[Any]) -> NDArray[Any]:
    """Values of one kind as int64, float64 or datetime64."""
    if kind in {INSTANT, DATE}:
        return np.array(values, dtype=np.int64).view("M8[us]")
    is_whole = all(re.fullmatch(r"\s*[+-]?\d{1,18}\s*", word) for word in words)
    return np.array(values).astype(np.int64 if is_whole else np.float64)


def phase_at(clock: Clock, time: str) -> int | None:
    """Return the phase of a time on a clock; None where its distance from the start is unknown.

    Raises
    ------
    InputError
        The time lies between two steps of the clock.
    """
    between = None if clock.step is None else steps_between(clock.step, clock.start, time)
    if between is None:
        return None
    if abs(between - round(between)) > JITTER:
        raise InputError(
            f"time {time!r} lies {between:.4g} steps of {clock.step} after the first time of the history, {clock.start!r}: "
            "expected a whole number of steps. Give the phase (--set correlation.phase=N), or traces on the same grid"
        )
    return round(between) % clock.period


def require_phase(plan: Plan, time: str, step: int) -> None:
    """Refuse a time at another phase of a known clock than a step of the plan (from 0), by `InputError`."""
    clock = plan.provenance.clock
    if clock is None or not plan.has_phases:
        return
    found, expected = phase_at(clock, time), (clock.phase + step) % clock.period
    if found is not None and found != expected:
        raise InputError(
            f"expected step {step + 1} of the plan at phase {expected} of the clock (phase 0 of {clock.period} is at "
            f"{clock.start!r}), but time {time!r} is at phase {found}: plan again with these data (TRACES), or for their "
            f"phase (--set correlation.phase={(found - step) % clock.period})"
        )
