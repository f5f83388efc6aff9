"""Epochs of a level that is renewed: so many steps each, or the days, weeks, months or years of the calendar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from datetime import datetime
from typing import Any, Literal, Self, TypeAlias, get_args

from temporaldp.errors import InputError, SpentError
from temporaldp.files.moments import by_the_clock, longest_in_steps

Every: TypeAlias = Literal["steps", "daily", "weekly", "monthly", "yearly"]

Period: TypeAlias = tuple[int, ...]

STEPS: Literal["steps"] = "steps"
"""A new epoch after so many steps, whenever they were."""

PERIODS: dict[str, Callable[[datetime], Period]] = {
    "daily": lambda when: (when.year, when.month, when.day),
    "weekly": lambda when: tuple(when.isocalendar()[:2]),
    "monthly": lambda when: (when.year, when.month),
    "yearly": lambda when: (when.year,),
}
"""Which day, week (from Monday), month or year a moment is in."""

LONGEST = {"daily": 1, "weekly": 7, "monthly": 31, "yearly": 366}
"""Days."""


def checked_every(every: object) -> Every:
    """When a level is renewed, if it is a way to; `InputError` for anything else."""
    for known in get_args(Every):
        if every == known:
            found: Every = known
            return found
    raise InputError(f"expected a level to be renewed by one of {', '.join(get_args(Every))}, got {every!r}")


class Epochs:
    """Which epoch each step of a release belongs to.

    A time belongs to the day, week, month or year in which the clock stands that it is written with. An epoch begins with the
    first step of a later one than the last step's.

    Parameters
    ----------
    every : {"steps", "daily", "weekly", "monthly", "yearly"}
    most : int
        Steps of an epoch: exactly so many, or by the calendar at most.
    """

    def __init__(self, every: Every, most: int) -> None:
        self.every, self.most = every, most
        self._n = self._began = 0
        self._period: Period | None = None

    def __len__(self) -> int:
        """Number of steps so far."""
        return self._n

    @property
    def began(self) -> int:
        """The first step (from 0) of the epoch that goes on."""
        return self._began

    def __copy__(self) -> Self:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def position(self, time: str | None = None) -> int:
        """Where in its epoch the next step is, from 0; without a time, as early as it may be.

        Raises
        ------
        SpentError
            The calendar's epoch has had all of its steps.
        InputError
            The time is none of the calendar.
        """
        if self._begins_anew(time):
            return 0
        position = self._n - self._began
        if position >= self.most:
            raise SpentError(
                f"the plan has {self.most} steps for each epoch, and all of this one are over: the next step is held back "
                f"until the level is renewed ({self.every}). Plan for the longest epoch (`temporaldp plan --horizon`)"
            )
        return position

    def add(self, time: str) -> None:
        """The next step's time."""
        if self._begins_anew(time):
            self._began, self._period = self._n, self._period_of(time)
        self._n += 1

    def document(self) -> dict[str, Any]:
        """What has to be known of the steps so far, as JSON values."""
        return {"steps": self._n, "began": self._began, "period": self._period}

    def restored(self, document: dict[str, Any]) -> Epochs:
        """Such epochs after the steps of a document."""
        found = copy(self)
        found._n, found._began = int(document["steps"]), int(document["began"])
        found._period = None if document["period"] is None else tuple(document["period"])
        return found

    def starts(self, times: Sequence[str]) -> list[int]:
        """The first step of each epoch, of a release with these times from its beginning."""
        trial, found = Epochs(self.every, self.most), []
        for step, time in enumerate(times):
            trial.add(time)
            if trial.began == step:
                found.append(step)
        return found

    def _begins_anew(self, time: str | None) -> bool:
        if self.every == STEPS:
            return self._n - self._began == self.most
        period = None if time is None else self._period_of(time)
        return self._n == 0 or (period is not None and (self._period is None or period > self._period))

    def _period_of(self, time: str) -> Period | None:
        if self.every == STEPS:
            return None
        when = by_the_clock(time)
        if when is None:
            raise InputError(
                f"expected a date for a step of a level that is renewed {self.every}, got {time!r}: without a calendar, renew "
                "it after so many steps"
            )
        return PERIODS[self.every](when)


def require_enough_steps(every: Every, most: int, step: str | None) -> None:
    """`InputError` where a plan is too short for a whole epoch of the calendar, if one knows how long a step is."""
    longest = None if step is None or every == STEPS else longest_in_steps(step, LONGEST[every])
    if longest is not None and longest > most:
        raise InputError(
            f"expected a plan of at least {longest} steps for a level that is renewed {every} (one step is {step}), got one of "
            f"{most}: plan with --horizon {longest}"
        )
