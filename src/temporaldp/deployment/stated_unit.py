"""What a record says of its privacy unit in words: "User-day-level"."""

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

PEOPLE = {
    "user", "person", "people", "individual", "member", "device", "household", "account", "client", "customer", "patient",
    "contributor", "editor", "visitor", "employee", "citizen", "participant", "subscriber", "student", "family",
}  # fmt: skip
"""Whoever goes through the steps."""

EVENTS = {
    "event", "record", "birth", "trip", "visit", "query", "search", "pageview", "view", "click", "purchase", "transaction",
    "contribution", "post", "message", "edit", "session", "observation", "housing", "unit",
}  # fmt: skip
"""Parts of what somebody does."""

QUALIFIERS = {"level", "bounded", "single", "per", "and", "country", "region", "state", "a", "one"}


@dataclass(frozen=True, slots=True)
class StatedUnit:
    """The unit that a record names: whose data, and over which length of time.

    Parameters
    ----------
    text : str
        As the record has it.
    period : str or None
        Over which length of time a promise is made: one step. None: for all time, or for a single event.
    of_people : bool
        Whether it is the data of a person (or a device, a household) that may change, and not single events.
    bounded : bool
        Whether it is a bounded contribution: somebody with more is covered by several units.
    places : bool
        Whether it is about one place at a time.
    """

    text: str
    period: Period | None
    of_people: bool
    bounded: bool
    places: bool

    @classmethod
    def read(cls, text: str) -> StatedUnit:
        """Recognise the words of a record.

        Raises
        ------
        InputError
            A word is not known.
        """
        words = re.findall(r"[a-z]+", text.lower().replace("quarter-day", "quarterday"))
        plain = [_singular(word) for word in words]
        periods = [_period(word) for word in plain if _period(word) is not None]
        unknown = [w for w in plain if _period(w) is None and w not in PEOPLE | EVENTS | QUALIFIERS]
        known = [word for word in plain if word in PEOPLE | EVENTS]
        if unknown or not known or len(set(periods)) > 1:
            what = f"the word {unknown[0]!r}" if unknown else "no person, device or event, or several periods"
            raise InputError(
                f"expected a privacy unit such as 'User-day-level' or 'Event-level', got {text[:80]!r}, with {what}; say with "
                "--set deployment.every=day what a step is, and with --unit what the promise is about"
            )
        return cls(
            text,
            periods[0] if periods else None,
            any(word in PEOPLE for word in plain) and not any(word in {"event", "trip", "visit"} for word in plain),
            "contribution" in plain,
            any(word in {"country", "region", "state"} for word in plain),
        )


def period_in(text: str) -> Period | None:
    """How often something happens, if a short text says it in a word: "Monthly", "6 hours", "Published daily, ..."."""
    lowered = text.lower()
    found = {period for word, period in SPELLINGS.items() if re.search(rf"\b{word}\b", lowered)}
    return found.pop() if len(found) == 1 else None


def _singular(word: str) -> str:
    one = word.removesuffix("s")
    return one if one in PEOPLE | EVENTS | set(STEPS_A_YEAR) else word


def _period(word: str) -> Period | None:
    if word == "quarterday":
        return "quarter-day"
    return SPELLINGS.get(word) or (word if word in STEPS_A_YEAR else None)
