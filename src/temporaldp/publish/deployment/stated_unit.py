"""The privacy unit that a record states in words, such as "User-day-level", and lengths of a step."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from temporaldp.base.errors import InputError

Period: TypeAlias = Literal[
    "hour", "quarter-day", "half-day", "day", "week", "half-month", "month", "quarter", "half-year", "year"
]

STEPS_A_YEAR: dict[Period, int] = {
    "hour": 8760,
    "quarter-day": 1460,
    "half-day": 730,
    "day": 365,
    "week": 52,
    "half-month": 24,
    "month": 12,
    "quarter": 4,
    "half-year": 2,
    "year": 1,
}

SPELLINGS: dict[str, Period] = {
    "hourly": "hour",
    "daily": "day",
    "weekly": "week",
    "monthly": "month",
    "quarterly": "quarter",
    "yearly": "year",
    "annual": "year",
    "annually": "year",
}

PERIODS: dict[str, Period] = {**SPELLINGS, **{period.replace("-", ""): period for period in STEPS_A_YEAR}}
"""Words of a unit that name a length of time."""

PEOPLE = {
    "user", "person", "people", "individual", "member", "device", "household", "account", "client", "customer", "patient",
    "contributor", "editor", "visitor", "employee", "citizen", "participant", "subscriber", "student", "family",
    "housingunit",
}  # fmt: skip
"""Owners of a sequence of states."""

EVENTS = {
    "event", "record", "birth", "trip", "visit", "query", "search", "pageview", "view", "click", "purchase", "transaction",
    "contribution", "post", "message", "edit", "session", "observation",
}  # fmt: skip
"""Single contributions of a person."""

PLACES = {"country", "region", "state"}
"""Parts of a person's data, of which there may be several in a step."""

QUALIFIERS = {"level", "bounded", "single", "per", "and", "a", "one"}

TWO_WORDS = re.compile(r"\b(quarter|half|housing)[\s-]+(?=(?:day|month|year|unit)s?\b)")
"""The first of two words of a unit that belong together."""


@dataclass(frozen=True, slots=True)
class StatedUnit:
    """The unit that a record states: whose data, and over which length of time.

    Parameters
    ----------
    text : str
        Words of the record.
    period : str or None
        Length of time of the promise, which is one step; None for all time, or for a single event.
    of_people : bool
        Whether all data of a person (or a device, a household) may change, rather than one event or the data of one place.
    bounded : bool
        Whether it is a bounded contribution: a person with more is covered by several units.
    """

    text: str
    period: Period | None
    of_people: bool
    bounded: bool

    @classmethod
    def read(cls, text: str) -> StatedUnit:
        """Parse the words of a record.

        Raises
        ------
        InputError
            A word is unknown.
        """
        words = {_singular(word) for word in re.findall(r"[^\W_]+", TWO_WORDS.sub(r"\1", text.lower()))}
        periods = {PERIODS[word] for word in words if word in PERIODS}
        unknown = sorted(words - PEOPLE - EVENTS - PLACES - QUALIFIERS - set(PERIODS))
        parts = words & (EVENTS | PLACES)
        if unknown or not words & (PEOPLE | EVENTS) or len(periods) > 1:
            what = f"the word {unknown[0]!r}" if unknown else "no person, device or event, or several periods"
            raise InputError(
                f"expected a privacy unit such as 'User-day-level' or 'Event-level', got {text[:80]!r}, with {what}; state "
                "it in such words in a copy of the record"
            )
        return cls(text, next(iter(periods), None), not parts, "bounded" in words and parts == {"contribution"})

    def may_repeat(self, step: Period | None) -> bool:
        """Whether one person may have any number of these units in a step: events, or days of a longer step."""
        if self.period is not None and step is not None and STEPS_A_YEAR[step] < STEPS_A_YEAR[self.period]:
            return True
        return not self.of_people and (self.period is None or not self.bounded)


def _singular(word: str) -> str:
    one = word.removesuffix("s")
    return one if one in PEOPLE | EVENTS | PLACES | set(PERIODS) else word
