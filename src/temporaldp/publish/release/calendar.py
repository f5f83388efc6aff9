"""Times of a ledger, and the admissible next times."""

from __future__ import annotations

from bisect import bisect_left
from decimal import Decimal
from itertools import pairwise
from typing import cast

from temporaldp.base.errors import InputError, LateDataError
from temporaldp.data.tables.moments import (
    JITTER,
    NUMERIC,
    Moment,
    in_words,
    labels_between,
    moment,
    spelled,
    steps_between,
)
from temporaldp.publish.release.ledger import Ledger


class Calendar:
    """The times of a release, in order, all of the kind of the first.

    Parameters
    ----------
    ledger : Ledger
        Ledger of the times, which increase, so that they are found by bisection, unless they are words without an order.
    step : str or None
        Length of one step, in words; None if unknown: distances are then not checked.
    has_phases : bool
        Whether each step has matrices or a budget of its own, so that none may be omitted.
    """

    def __init__(self, ledger: Ledger, step: str | None, *, has_phases: bool = False) -> None:
        self._ledger, self._step, self._has_phases = ledger, step, has_phases
        self._words: dict[Moment, int] = {}

    @property
    def last(self) -> str | None:
        """The time of the last step; None before the first."""
        return self._ledger[-1].time if len(self._ledger) else None

    def position(self, label: str) -> int | None:
        """The step of a time, in any spelling; None if there is none.

        Raises
        ------
        InputError
            The time equals another one as a number, but with other decimals: 2024.1 and 2024.10 may be one time or two.
        """
        now, last = moment(label), self.last
        if last is None or now.kind != moment(last).kind:
            return None
        if not now.has_order:
            for row in self._ledger[len(self._words) :]:
                self._words[moment(row.time)] = row.step
            return self._words.get(now)
        found = self._first_from(now)
        known = None if found == len(self._ledger) else self._ledger[found].time
        if known is None or moment(known) != now:
            return None
        if now.kind == NUMERIC and known.strip() != label.strip() and _value(now) != _value(now).to_integral_value():
            raise InputError(f"time {label!r} equals {known!r} as a number; write it the same way, or number the steps")
        return found

    def _first_from(self, now: Moment) -> int:
        """The first step that is not before a moment, looked for where rows are in memory before it is elsewhere."""

        def value_at(step: int) -> Decimal:
            return _value(moment(self._ledger[step].time))

        steps = range(len(self._ledger))
        if value_at(steps[-1]) < _value(now):
            return len(steps)
        for held in self._ledger.held:
            if held and value_at(held[0]) <= _value(now) <= value_at(held[-1]):
                steps = held
        return steps.start + bisect_left(steps, _value(now), key=value_at)

    def require_next(self, *labels: str) -> None:
        """Raise an error for times, in this order, that are late, of another kind, or less than a step apart.

        Steps are accounted for in order, with a correlation over one step; closer states are more strongly correlated.
        """
        for before, label in pairwise((self.last, *labels)):
            if before is not None and label is not None:
                self._require_follows(before, label)

    def completed(self, *labels: str) -> list[str]:
        """These times, the next steps, and omitted ones between, where each step has a phase of its own.

        Dates are as precise as those before them, and the first as a step needs.
        """
        found: list[str] = []
        for label in labels:
            before = found[-1] if found else self.last
            steps = [label]
            if self._has_phases and self._step is not None and before is not None:
                steps = [*labels_between(self._step, before, label), label]
            found += [spelled(one, before, self._step) for one in steps]
        return found

    def _require_follows(self, before: str, label: str) -> None:
        now, kind = moment(label), moment(before).kind
        if kind != now.kind:
            raise InputError(
                f"time {label!r} is a {now.kind}, {before!r} a {kind}: their order is undefined. A ledger has one kind of "
                "time, that of its first step"
            )
        if not now.has_order:
            return
        if _value(now) <= _value(moment(before)):
            raise LateDataError(
                f"time {label!r} comes before {before!r}, which was released already; steps are accounted for in order, so a "
                "late one can no longer be released: leave it out"
            )
        between = None if self._step is None else steps_between(self._step, before, label)
        if between is not None and between < 1.0 - JITTER:
            raise InputError(
                f"time {label!r} is only {in_words(before, label)} after {before!r}, less than one step ({self._step}): a "
                "correlation over another length of time does not apply to it; leave it out"
            )
        if self._has_phases and between is not None and between > 1.0 + JITTER:
            raise InputError(
                f"time {label!r} is {between:.4g} steps after {before!r}: the correlation varies from step to step, so "
                "that every step counts. Pass over those between first (`ContinualRelease.skip`; in the service, a spend of 0)"
            )


def _value(one: Moment) -> Decimal:
    """Value of a moment that has an order."""
    return cast("Decimal", one.value)
