"""A column of times as positions on a common list, with the steps that are one step apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.errors import TraceError

STEP_TOLERANCE = 1e-6
"""Relative difference below which two distances between times count as the same step (times kept as decimals)."""


@dataclass(frozen=True, slots=True)
class Times:
    """Distinct times in order: their labels, each row's position, and whether neighbours are one step apart."""

    labels: tuple[str, ...]
    codes: NDArray[np.intp]
    consecutive: NDArray[np.bool_]


def ordered_times(column: NDArray[Any], name: str) -> Times:
    """Order a column of whole numbers, decimals, dates or timestamps; refuse a mixture or anything without an order.

    One step is the smallest distance between two distinct times; further apart is a gap, which no transition crosses.
    A gap is accounted for like one step, which is an upper bound: a matrix power leaks no more than the matrix.
    """
    values, codes = np.unique(_comparable(column, name), return_inverse=True)
    # Dates stay dates when subtracted; as floats their distances can be compared with a tolerance.
    distances = np.diff(values).astype(np.float64)
    step = distances.min(initial=np.inf)
    consecutive = distances <= step * (1.0 + STEP_TOLERANCE)
    labels = tuple(str(value) for value in values)
    if values.dtype.kind == "M":
        labels = tuple(np.datetime_as_string(values, unit="auto").tolist())
    if 2 * int(consecutive.sum()) < len(distances):
        close = int(np.argmin(distances))
        raise TraceError(
            f"times in column {name!r} follow no regular step: {labels[close]!r} and {labels[close + 1]!r} are closest, but "
            f"only {int(consecutive.sum())} of {len(distances)} distances are that short; round the times to one grid first"
        )
    return Times(labels, codes, consecutive)


def in_order(labels: Sequence[str]) -> bool:
    """Whether labels that can be read as times increase; labels that cannot are taken as they come."""
    column = np.array(labels, dtype=object)
    try:
        values = _parsed(column, "")
    except TraceError:
        return True
    return bool((values[1:] > values[:-1]).all())


def _comparable(column: NDArray[Any], name: str) -> NDArray[Any]:
    if column.dtype.kind in "iufM":
        return column
    kinds = {type(entry) for entry in column}
    if kinds != {str}:
        try:
            return np.array(column.tolist(), dtype="datetime64[us]")
        except (ValueError, TypeError):
            raise TraceError(
                f"times in column {name!r} are of mixed types: {sorted(k.__name__ for k in kinds)}"
            ) from None
    return _parsed(column, name)


def _parsed(column: NDArray[Any], name: str) -> NDArray[Any]:
    """Text as int64, float64 or datetime64, whichever fits every entry."""
    words = np.unique(column.astype(str))
    reading = {word: kind for word in words.tolist() if (kind := _kind(word))}
    if len(reading) < len(words):
        bad = next(word for word in words.tolist() if word not in reading)
        row = int(np.flatnonzero(column == bad)[0]) + 1
        others = f" like the others ({next(iter(reading))!r})" if reading else ""
        raise TraceError(
            f"time {bad!r} in data row {row} of column {name!r} is no number, date or timestamp{others}; write times as "
            "whole numbers or as 2014-01-31T08:00"
        )
    kinds = set(reading.values())
    if "date" in kinds and len(kinds) > 1:
        number = next(word for word, kind in reading.items() if kind != "date")
        date = next(word for word, kind in reading.items() if kind == "date")
        raise TraceError(f"times in column {name!r} are of mixed types: {number!r} is a number, {date!r} is a date")
    if kinds == {"int"}:
        return column.astype(np.int64)
    return column.astype(np.float64) if "date" not in kinds else _dates(column)


def _kind(word: str) -> str | None:
    for kind, read in (("int", int), ("float", float), ("date", _date)):
        try:
            value = read(word)
        except (ValueError, OverflowError):
            continue
        return None if kind == "float" and not np.isfinite(value) else kind
    return None


def _date(word: str) -> np.datetime64:
    """An ISO date or timestamp; a trailing Z (UTC) is understood, other offsets are refused by NumPy's parser."""
    if len(word) < 7 or word[4] != "-":
        raise ValueError(word)
    return np.datetime64(word.removesuffix("Z").replace(" ", "T", 1), "us")


def _dates(column: NDArray[Any]) -> NDArray[np.datetime64]:
    return np.array([_date(word) for word in column], dtype="datetime64[us]")
