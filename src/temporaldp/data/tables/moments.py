"""Labels of steps as moments, which are equal in any spelling and ordered in time."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.names import printable

INSTANT, DATE, NUMBER, WORD = "time with a zone", "date or time without a zone", "number", "word"

JITTER = 0.01
"""Share of a step by which clocks may be early."""

DAYLIGHT_SAVING = 23.0 / 24.0
"""Share of the time by the clock that passes at least, for the clock to count: a day may lack an hour, an hour may not."""

FARTHEST_ZONE = timedelta(hours=14)
"""By which a clock somewhere may be ahead of UTC."""

SECONDS_A_DAY = 86_400
SHORTEST_MONTH = 28.0 * SECONDS_A_DAY
EPOCH = datetime(1970, 1, 1)

STEP = re.compile(r"([\d.e+-]+)(?: (seconds|months))?")
"""Length of a step: 300 seconds, 1 months, or a number."""

STAMP = re.compile(r"(\d{4}-\d\d(?:-\d\d(?:T\d\d:\d\d(?::\d\d)?)?)?)(Z|[+-]\d\d:\d\d)?")
"""A month, a day or a time to minutes or seconds, and its zone."""

FIRST_MOMENT = "0000-01-01T00:00:00"
PRECISIONS = tuple(map(len, ("0000-01", "0000-01-01", "0000-01-01T00:00", FIRST_MOMENT)))


@dataclass(frozen=True, slots=True)
class Moment:
    """Position of a label in time.

    Parameters
    ----------
    kind : str
        `INSTANT` or `DATE` (value: seconds since 1970, in UTC or by the clock), `NUMBER`, `WORD` (no order), or `WORD` with
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
        return Moment(NUMBER, _exact(word))
    if (when := _timestamp(word)) is not None:
        return when
    folded = word.casefold()
    end = len(folded)
    while end and folded[end - 1].isdecimal():
        end -= 1
    if end < len(folded):
        return Moment(f"{WORD} {folded[:end].removesuffix(' ')}", _exact(folded[end:]))
    return Moment(WORD, folded)


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
        return shown if shown * DAYLIGHT_SAVING <= passed < shown else passed
    return passed


def steps_between(step: str, before: str, label: str) -> float | None:
    """Number of steps (300 seconds, 1 months, or a number) between two labels; None if it is undetermined.

    Months are counted by the calendar if both labels have the same day and time of the month, else as the shortest month.
    """
    known = STEP.fullmatch(step)
    length = distance(before, label)
    if known is None or length is None or (known[2] is None) == (moment(label).clock is not None):
        return None
    if known[2] != "months":
        return length / float(known[1])
    months = _months(before, label)
    return (length / SHORTEST_MONTH if months is None else months) / float(known[1])


def labels_between(step: str, before: str, label: str) -> list[str]:
    """Labels of the steps between two labels; empty for neighbours, for months, and where the distance is undetermined."""
    between, known, when = steps_between(step, before, label), STEP.fullmatch(step), by_the_clock(before)
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
    found, other = (STAMP.fullmatch(one) for one in (label, like or label))
    if not (found and other) or moment(label).clock is None or moment(label).kind != moment(like or label).kind:
        return label
    whole, zone = found[1] + FIRST_MOMENT[len(found[1]) :], found[2] or ""
    needed = next(n for n in PRECISIONS if whole[n:] == FIRST_MOMENT[n:] and (n > len("2024-01-01") or not zone))
    asked = len(other[1]) if like else _precision(step, len(found[1]))
    return whole[: max(needed, asked)] + zone


def _precision(step: str | None, own: int) -> int:
    """Number of characters of a date that a step needs: for months, fewer than a label has of its `own`."""
    known = STEP.fullmatch(step or "")
    if known is None or known[2] is None:
        return own
    if known[2] == "months":
        return PRECISIONS[0]
    lengths = zip((SECONDS_A_DAY, 60), PRECISIONS[1:], strict=False)
    return max(own, next((n for length, n in lengths if float(known[1]) % length == 0.0), PRECISIONS[-1]))


def is_near(step: str | None, before: str | None, label: str, now: datetime) -> bool:
    """Return whether a label is at most one step ahead: of the clock, or of the label before it if labels have no clock.

    Without a step that fits the label, a step is a day, or 1 for a label without a clock. The first label without a clock is
    compared with 0, and words without a number are always near; if the step has a unit, the first label must fit it.
    """
    when = moment(label)
    if before is None and step is not None and STEP.fullmatch(step) and steps_between(step, label, label) is None:
        return False
    if not isinstance(when.value, Decimal):
        return True
    unit = "1" if when.clock is None else f"{SECONDS_A_DAY} seconds"
    chosen = unit if step is None or steps_between(step, label, label) is None else step
    if when.kind == INSTANT:
        before = now.isoformat()
    elif when.kind == DATE:
        before = (now + FARTHEST_ZONE).replace(tzinfo=None).isoformat()
    elif before is None:
        return float(when.value) <= float(chosen) * (1.0 + JITTER)
    length = steps_between(chosen, before, label)
    longest = 31.0 / 28.0 if "months" in chosen else 1.0  # a month counts as 28 days
    return length is not None and length <= longest + JITTER


def in_words(before: str, label: str) -> str:
    """Description of the distance between two labels."""
    return f"{distance(before, label):g}" + ("" if moment(label).clock is None else " seconds")


def _months(before: str, label: str) -> int | None:
    """Months between two labels at the same day and time of the month, by the clock; None if they are not."""
    one, two = by_the_clock(before), by_the_clock(label)
    if one is None or two is None or (one.day, one.time()) != (two.day, two.time()):
        return None
    return 12 * (two.year - one.year) + two.month - one.month


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
