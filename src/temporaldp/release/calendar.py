"""Which times a ledger has, and which may come next."""

from __future__ import annotations

from temporaldp.errors import InputError
from temporaldp.files.moments import WORD, Moment, distance, in_words, moment, step_length

CLOSE = 1e-9
"""Relative difference of two distances that counts as none: decimals are rounded."""


class Calendar:
    """The times of a release, in order.

    Parameters
    ----------
    step : str or None
        How long one step is, in words, if that is known. Otherwise no two steps may be closer than the closest before.
    """

    def __init__(self, step: str | None) -> None:
        self._step = step
        self._positions: dict[Moment, int] = {}
        self._latest: dict[str, str] = {}
        self._closest: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._positions)

    def position(self, label: str) -> int | None:
        """The step of a time, in whatever spelling; None if it is not there."""
        return self._positions.get(moment(label))

    def add(self, label: str) -> None:
        """The next step's time."""
        now = moment(label)
        before = self._latest.get(now.kind)
        length = None if before is None else distance(before, label)
        if length is not None:
            self._closest[now.kind] = min(length, self._closest.get(now.kind, length))
        self._latest[now.kind] = label
        self._positions[now] = len(self._positions)

    def copy(self) -> Calendar:
        """Another one with the same times."""
        made = Calendar(self._step)
        made._positions, made._latest, made._closest = dict(self._positions), dict(self._latest), dict(self._closest)
        return made

    def require_next(self, label: str) -> None:
        """Refuse a time that is late, of another kind, or less than a step after the one before.

        Steps are accounted for in order, with a correlation over one step; closer values depend on one another more strongly.
        """
        now = moment(label)
        known = [kind for kind in self._latest if not (kind.startswith(WORD) and now.kind.startswith(WORD))]
        if known and known != [now.kind]:
            last = self._latest[known[-1]]
            raise InputError(f"time {label!r} is no {known[-1]} like {last!r}, so that nothing says which comes first")
        before = self._latest.get(now.kind)
        length = None if before is None else distance(before, label)
        if before is None or length is None:
            return
        if length <= 0.0:
            raise InputError(
                f"time {label!r} comes before {before!r}, which was released already; steps are accounted for in order, so a "
                "late one cannot be released any more: leave it out"
            )
        expected = self._closest.get(now.kind) if self._step is None else step_length(self._step, label)
        if expected is not None and length < expected * (1.0 - CLOSE):
            asked = "the closest steps so far" if self._step is None else f"one step ({self._step})"
            raise InputError(
                f"time {label!r} is only {in_words(length, label)} after {before!r}, less than {asked}: a correlation over "
                "another length of time says nothing about it; leave it out"
            )
