"""Labels of single steps as moments: equal ones known again in any spelling, later ones told from earlier ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from temporaldp.errors import InputError

Value: TypeAlias = Decimal | str

DATE, NUMBER, WORD = "date", "number", "word"

SECONDS_A_DAY = 86_400
SHORTEST_MONTH = 28.0 * SECONDS_A_DAY
EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a label stands in time.

    Parameters
    ----------
    kind : str
        "date" (value: seconds since 1970, UTC where an offset is written), "number", "word" (no order), or "word" with what
        stands before its number: ``s05`` and ``s5`` are one moment, and before ``s6``.
    value : Decimal or str
    """

    kind: str
    value: Value

    @property
    def has_order(self) -> bool:
        """Whether it can be compared with others of its kind."""
        return isinstance(self.value, Decimal)


def label_of(time: Any) -> str:
    """A step's label from text, a number, a date or a timestamp.

    Raises
    ------
    InputError
        Something else, or something that is no moment: None, an empty text, a truth value, NaN.
    """
    if isinstance(time, np.generic) and not isinstance(time, np.datetime64):
        time = time.item()
    known = isinstance(time, str | Real | date | np.datetime64) and not isinstance(time, bool | Fraction)
    text = time.isoformat() if isinstance(time, date) else str(time)
    if not known or not text.strip() or text in {"nan", "inf", "-inf", "NaT"}:
        raise InputError(f"expected time to be a label: text, a finite number, a date or a timestamp, got {time!r}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = "\0"
    if "\0" in text:
        raise InputError(f"expected time to be text that can be stored, got {time!r}")
    return text


def moment(label: str) -> Moment:
    """Where a label stands in time."""
    word = label.strip()
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", word):
        return Moment(NUMBER, Decimal(word).normalize())
    when = _timestamp(word)
    if when is not None:
        return Moment(DATE, when.normalize())
    numbered = re.fullmatch(r"(.*?)(\d+)", word)
    if numbered is not None:
        return Moment(f"{WORD} {numbered[1]}", Decimal(numbered[2]).normalize())
    return Moment(WORD, label)


def distance(before: str, label: str) -> float | None:
    """Between two labels: in seconds, months as the shortest month; in their own unit for numbers; None without an order."""
    one, two = moment(before), moment(label)
    if one.kind != two.kind or not (isinstance(one.value, Decimal) and isinstance(two.value, Decimal)):
        return None
    if _is_month(before) and _is_month(label):  # months are one step apart, though some are longer than others
        start, end = (datetime.fromtimestamp(float(value), UTC) for value in (one.value, two.value))
        return float(12 * (end.year - start.year) + end.month - start.month) * SHORTEST_MONTH
    return float(two.value - one.value)


def step_length(words: str, label: str) -> float | None:
    """A step in words (300 seconds, 1 months, a number) as `distance` measures labels like this one; None if it cannot be."""
    known = re.fullmatch(r"([\d.e+-]+)(?: (seconds|months))?", words)
    if known is None or (known[2] is None) == (moment(label).kind == DATE):
        return None
    return float(known[1]) * (SHORTEST_MONTH if known[2] == "months" else 1.0)


def in_words(length: float, label: str) -> str:
    """A distance between labels like this one."""
    return f"{length:g} seconds" if moment(label).kind == DATE else f"{length:g}"


def _is_month(label: str) -> bool:
    when = moment(label)
    if when.kind != DATE:
        return False
    start = datetime.fromtimestamp(float(when.value), UTC)
    return (start.day, start.hour, start.minute, start.second, start.microsecond) == (1, 0, 0, 0, 0)


def _timestamp(word: str) -> Decimal | None:
    """Seconds since 1970 of an ISO date, month or timestamp; exact, to any number of digits."""
    if len(word) < 7 or word[4] != "-":
        return None
    whole, fraction = re.fullmatch(r"(.*?:\d\d)\.(\d+)(.*)", word), ""
    if whole is not None:
        word, fraction = whole[1] + whole[3], whole[2]
    try:
        found = datetime.fromisoformat(f"{word}-01" if len(word) == 7 else word)
    except ValueError:
        return None
    if found.tzinfo is not None:
        found = found.astimezone(UTC).replace(tzinfo=None)
    since = found - EPOCH
    return Decimal(since.days) * SECONDS_A_DAY + since.seconds + Decimal(f"0.{fraction or 0}")
