"""The privacy unit that a record states in words, such as "User-day-level"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from temporaldp.errors import InputError

Period: TypeAlias = Literal["hour", "quarter-day", "day", "week", "month", "quarter", "year"]

STEPS_A_YEAR: dict[Period, int] = {
    "hour": 8760,
    "quarter-day": 1460,
    "day": 365,
    "week": 52,
    "month": 12,
    "quarter": 4,
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
    "6 hours": "quarter-day",
}

PERIODS: dict[str, Period] = {**SPELLINGS, "quarterday": "quarter-day", **{period: period for period in STEPS_A_YEAR}}
"""Words of a unit that name a length of time."""

PEOPLE = {
    "user", "person", "people", "individual", "member", "device", "household", "account", "client", "customer", "patient",
    "contributor", "editor", "visitor", "employee", "citizen", "participant", "subscriber", "student", "family",
}  # fmt: skip
"""Owners of a sequence of states."""

EVENTS = {
    "event", "record", "birth", "trip", "visit", "query", "search", "pageview", "view", "click", "purchase", "transaction",
    "contribution", "post", "message", "edit", "session", "observation", "housing", "unit",
}  # fmt: skip
"""Single contributions of a person."""

QUALIFIERS = {"level", "bounded", "single", "per", "and", "country", "region", "state", "a", "one"}


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
        Whether the data of a person (or a device, a household) may change, rather than single events.
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
        words = re.findall(r"[a-z]+", text.lower().replace("quarter-day", "quarterday"))
        plain = [_singular(word) for word in words]
        periods = [PERIODS[word] for word in plain if word in PERIODS]
        unknown = [word for word in plain if word not in PEOPLE | EVENTS | QUALIFIERS | set(PERIODS)]
        known = [word for word in plain if word in PEOPLE | EVENTS]
        if unknown or not known or len(set(periods)) > 1:
            what = f"the word {unknown[0]!r}" if unknown else "no person, device or event, or several periods"
            raise InputError(
                f"expected a privacy unit such as 'User-day-level' or 'Event-level', got {text[:80]!r}, with {what}; give "
                "the length of a step with --set deployment.every=day, and the unit of the promise with --unit"
            )
        return cls(
            text,
            periods[0] if periods else None,
            any(word in PEOPLE for word in plain) and not any(word in {"event", "trip", "visit"} for word in plain),
            "contribution" in plain,
        )


def period_in(text: str) -> Period | None:
    """The frequency in a short text such as "Monthly" or "Published daily, ..."; None if there is not exactly one."""
    lowered = text.lower()
    found = {period for word, period in SPELLINGS.items() if re.search(rf"\b{word}\b", lowered)}
    return found.pop() if len(found) == 1 else None


def _singular(word: str) -> str:
    one = word.removesuffix("s")
    return one if one in PEOPLE | EVENTS | set(STEPS_A_YEAR) else word
