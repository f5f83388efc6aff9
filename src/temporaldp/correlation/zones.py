"""Clocks of time zones: how far they are ahead of UTC, when that changes, and what they show never or twice.

All times are microseconds: instants since 1970 in UTC, or what a clock shows, counted as if it stood in UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from temporaldp.errors import InputError, TraceError

DAY = 86_400 * 10**6
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_zone(name: str | None) -> ZoneInfo | None:
    """A zone by its name, such as Europe/Amsterdam."""
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(f"expected the name of a time zone, such as Europe/Amsterdam, got {name!r}") from None


def clock_ahead(zone: ZoneInfo, first: int, last: int) -> list[tuple[int, int]]:
    """From which instant on, of those between two, the clock is how far ahead of UTC."""
    found, at = [(first, _offset(zone, first))], first
    while at < last:
        after = min(at + DAY, last)
        if _offset(zone, at) != _offset(zone, after):
            change = _change(zone, at, after)
            found.append((change, _offset(zone, change)))
        at = after
    return found


def _change(zone: ZoneInfo, low: int, high: int) -> int:
    """The instant at which the offset becomes another, by halving."""
    before = _offset(zone, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
    return high


def _offset(zone: ZoneInfo, instant: int) -> int:
    """How far the clock of a zone is ahead of UTC."""
    offset = (EPOCH + timedelta(microseconds=instant)).astimezone(zone).utcoffset()
    assert offset is not None
    return offset // timedelta(microseconds=1)


def to_utc(
    clock: NDArray[np.int64], words: NDArray[Any], zone: ZoneInfo, place: Callable[[object], str]
) -> NDArray[np.int64]:
    """Instants of what the clock of a zone shows; `words` are the entries that say so, `place` where they stand.

    Raises
    ------
    TraceError
        The clock shows it never, or twice.
    """
    ahead = clock_ahead(zone, int(clock.min()) - DAY, int(clock.max()) + DAY)
    made = clock - ahead[0][1]
    for (_, before), (change, after) in pairwise(ahead):
        low, high = change + min(before, after), change + max(before, after)
        wrong = (clock >= low) & (clock < high)
        if wrong.any():
            word = words[int(np.argmax(wrong))]
            how, what = ("twice", "ends") if after < before else ("never", "begins")
            raise TraceError(
                f"time {str(word)!r} in {place(word)}: the clock of {zone.key} shows it {how}, as daylight saving {what} "
                "there; write times with their offset (2014-01-31T08:00+01:00)"
            )
        made = np.where(clock >= high, clock - after, made)
    return made
