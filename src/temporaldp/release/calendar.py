"""Which times a ledger has, and which may come next."""

from __future__ import annotations

from temporaldp.errors import InputError, LateDataError
from temporaldp.files.moments import NUMBER, WORD, Moment, comes_after, in_words, moment, shortfall


class Calendar:
    """The times of a release, in order.

    Parameters
    ----------
    step : str or None
        How long one step is, in words; None if it is not known, and then nothing is said about distances.
    """

    def __init__(self, step: str | None) -> None:
        self._step = step
        self._labels: list[str] = []
        self._positions: dict[Moment, int] = {}

    def __len__(self) -> int:
        return len(self._labels)

    def position(self, label: str) -> int | None:
        """The step of a time, in whatever spelling; None if it is not there.

        Raises
        ------
        InputError
            It equals another one as a number, but with other decimals: 2024.1 and 2024.10 may be one time or two.
        """
        found = self._positions.get(moment(label))
        if found is None or found >= len(self._labels):  # an interrupt came while it was added
            return None
        known, now = self._labels[found], moment(label)
        if now.kind == NUMBER and known.strip() != label.strip() and now.value % 1 != 0:
            raise InputError(f"time {label!r} equals {known!r} as a number; write it the same way, or number the steps")
        return found

    def add(self, label: str) -> None:
        """The next step's time."""
        self._positions[moment(label)] = len(self._labels)
        self._labels.append(label)  # last: an interrupt before it leaves a step that is added again

    def copy(self) -> Calendar:
        """Another one with the same times."""
        made = Calendar(self._step)
        made._labels, made._positions = list(self._labels), dict(self._positions)
        return made

    def require_next(self, label: str) -> None:
        """Refuse a time that is late, of another kind, or less than a step after the one before.

        Steps are accounted for in order, with a correlation over one step; closer values depend on one another more strongly.
        """
        if not self._labels:
            return
        now, last = moment(label), self._labels[-1]
        kind = moment(last).kind
        if kind != now.kind and not (kind.startswith(WORD) and now.kind.startswith(WORD)):
            raise InputError(f"time {label!r} is no {kind} like {last!r}, so that nothing says which comes first")
        before = next((one for one in reversed(self._labels) if moment(one).kind == now.kind), None)
        if before is None or not now.has_order:
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
