"""Which times a ledger has, and which may come next."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from temporaldp.errors import InputError, LateDataError
from temporaldp.files.moments import NUMBER, Moment, comes_after, in_words, moment, shortfall


class Before(NamedTuple):
    """Times that a calendar does not hold: they have an order, so that they increase."""

    n: int
    last: str
    label_at: Callable[[int], str]


class Calendar:
    """The times of a release, in order, all of the kind of the first.

    Parameters
    ----------
    step : str or None
        How long one step is, in words; None if it is not known, and then nothing is said about distances.
    before : Before, optional
        Times that are looked up where they are kept.
    """

    def __init__(self, step: str | None, before: Before | None = None) -> None:
        self._step, self._before = step, before
        self._labels: list[str] = []
        self._positions: dict[Moment, int] = {}

    def __len__(self) -> int:
        return self._n_before + len(self._labels)

    @property
    def _n_before(self) -> int:
        return 0 if self._before is None else self._before.n

    def kept(self) -> dict[str, Any] | None:
        """What has to be known of the times so far, as JSON values; None where that is all of them: words without an order."""
        return None if self.last is None or not moment(self.last).has_order else {"last": self.last}

    @property
    def last(self) -> str | None:
        """The time of the last step; None before the first."""
        return self._labels[-1] if self._labels else None if self._before is None else self._before.last

    def position(self, label: str) -> int | None:
        """The step of a time, in whatever spelling; None if it is not there.

        Raises
        ------
        InputError
            It equals another one as a number, but with other decimals: 2024.1 and 2024.10 may be one time or two.
        """
        now = moment(label)
        found = self._positions.get(now, -1)
        if found >= len(self):  # an interrupt came while it was added
            return None
        if found >= 0:
            known = self._labels[found - self._n_before]
        else:
            older = self._position_before(now)
            if older is None:
                return None
            found, known = older
        if now.kind == NUMBER and known.strip() != label.strip() and _value(now) != _value(now).to_integral_value():
            raise InputError(f"time {label!r} equals {known!r} as a number; write it the same way, or number the steps")
        return found

    def _position_before(self, now: Moment) -> tuple[int, str] | None:
        """The step of a time that the calendar does not hold, and its label, by halving."""
        before = self._before
        if before is None or now.kind != moment(before.last).kind or _value(now) > _value(moment(before.last)):
            return None
        low, high = 0, before.n - 1
        while low < high:
            middle = (low + high) // 2
            reached = _value(moment(before.label_at(middle))) >= _value(now)
            low, high = (low, middle) if reached else (middle + 1, high)
        label = before.label_at(low)
        return (low, label) if moment(label) == now else None

    def add(self, label: str) -> None:
        """The next step's time."""
        self._positions[moment(label)] = len(self)
        self._labels.append(label)  # last: an interrupt before it leaves a step that is added again

    def copy(self) -> Calendar:
        """Another one with the same times."""
        made = Calendar(self._step, self._before)
        made._labels, made._positions = list(self._labels), dict(self._positions)
        return made

    def require_next(self, label: str) -> None:
        """Refuse a time that is late, of another kind, or less than a step after the one before.

        Steps are accounted for in order, with a correlation over one step; closer values depend on one another more strongly.
        """
        before = self.last
        if before is None:
            return
        now, kind = moment(label), moment(before).kind
        if kind != now.kind:
            raise InputError(
                f"time {label!r} is a {now.kind}, {before!r} a {kind}: nothing says which comes first. A ledger has one kind "
                "of time, that of its first step"
            )
        if not now.has_order:
            return
        if not comes_after(before, label):
            raise LateDataError(
                f"time {label!r} comes before {before!r}, which was released already; steps are accounted for in order, so a "
                "late one cannot be released any more: leave it out"
            )
        short = None if self._step is None else shortfall(self._step, before, label)
        if short is not None:
            raise InputError(
                f"time {label!r} is only {in_words(short, label)} after {before!r}, less than one step ({self._step}): a "
                "correlation over another length of time says nothing about it; leave it out"
            )


def _value(one: Moment) -> Decimal:
    """Of a moment that has an order."""
    assert isinstance(one.value, Decimal)
    return one.value
