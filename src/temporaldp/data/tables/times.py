"""A column of times as positions on a common list of times, with the neighbours that are one step apart."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.errors import TraceError
from temporaldp.base.names import printable
from temporaldp.data.tables.moments import DATE, INSTANT, NUMBER, WORD, Moment, microseconds, moment

STEP_TOLERANCE = 1e-6
"""Relative difference below which two distances between times count as the same step (times kept as decimals)."""


Place: TypeAlias = Callable[[object], str]
"""Return the first place of an entry in a table, in words."""


@dataclass(frozen=True, slots=True)
class Times:
    """Distinct times in order: labels, positions of entries, which neighbours are one step apart, and the length of a step."""

    labels: tuple[str, ...]
    codes: NDArray[np.intp]
    consecutive: NDArray[np.bool_]
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
    if len(values) > 1 or re.fullmatch(r"\d{4}-\d{1,2}", str(column[0]).strip()):  # the first of one month is a day
        values = _in_months(values)
    labels = tuple(str(value) for value in values)
    if values.dtype.kind == "M":
        labels = _stamps(values, zone="Z" if in_utc(column) else "")
    return _with_steps(labels, codes, values, f"column {name!r}")


def ordered_labels(labels: Sequence[str]) -> Times | None:
    """Order a header whose names are times, or one word with numbers (s0, s1, ..., s10); None for others."""
    kinds, values = _read(labels)
    if len(set(kinds)) > 1 or kinds[0] == WORD:
        return None
    column = _in_months(_array(labels, kinds[0], values))
    order = np.argsort(column, kind="stable")
    ordered = tuple(labels[k] for k in order)
    return _with_steps(ordered, np.argsort(order), column[order], "the header")


def _in_months(values: NDArray[Any]) -> NDArray[Any]:
    """Dates that all begin a month as months, which are one step apart, though some are longer than others."""
    is_monthly = values.dtype.kind == "M" and (values.astype("datetime64[M]") == values).all()
    return values.astype("datetime64[M]") if is_monthly else values


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
    consecutive = distances <= distances[shortest] * (1.0 + STEP_TOLERANCE)
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
    return _array(words, kinds[0] if kinds else NUMBER, values)[codes]


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
        is_beyond = one.kind == NUMBER and math.isinf(float(one.value))
        kinds.append(WORD if is_beyond else one.kind)
        values.append(one.value if one.clock is None else microseconds(one.value))
    return kinds, values


def _array(words: Sequence[str], kind: str, values: Sequence[Any]) -> NDArray[Any]:
    """Values of one kind as int64, float64 or datetime64."""
    if kind in {INSTANT, DATE}:
        return np.array(values, dtype=np.int64).view("M8[us]")
    is_whole = all(re.fullmatch(r"\s*[+-]?\d{1,18}\s*", word) for word in words)
    return np.array(values).astype(np.int64 if is_whole else np.float64)
