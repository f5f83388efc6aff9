"""What a record states in words: its privacy unit, how often it releases, and which data are neighbours."""

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

Neighbours: TypeAlias = Literal["adding or removing", "replacing"]

PERIOD_ADVERBS: dict[str, Period] = {
    "hourly": "hour",
    "daily": "day",
    "weekly": "week",
    "monthly": "month",
    "quarterly": "quarter",
    "yearly": "year",
    "annual": "year",
    "annually": "year",
}


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
        adverbs_and_nouns = {**PERIOD_ADVERBS, **{period.replace("-", ""): period for period in STEPS_A_YEAR}}
        people = {
            "user", "person", "people", "individual", "member", "device", "household", "account", "client", "customer",
            "patient", "contributor", "editor", "visitor", "employee", "citizen", "participant", "subscriber", "student",
            "family", "housingunit",
        }  # fmt: skip
        events = {
            "event", "record", "birth", "trip", "visit", "query", "search", "pageview", "view", "click", "purchase",
            "transaction", "contribution", "post", "message", "edit", "session", "observation",
        }  # fmt: skip
        places = {"country", "region", "state"}  # of which a person may have several in a step
        known = people | events | places | set(adverbs_and_nouns)
        joined = re.sub(r"\b(quarter|half|housing)[\s-]+(?=(?:day|month|year|unit)s?\b)", r"\1", text.lower())
        found = re.findall(r"[^\W_]+", joined)
        words = {word.removesuffix("s") if word.removesuffix("s") in known else word for word in found}
        periods = {adverbs_and_nouns[word] for word in words if word in adverbs_and_nouns}
        unknown = sorted(words - known - {"level", "bounded", "single", "per", "and", "a", "one"})
        parts = words & (events | places)
        if unknown or not words & (people | events) or len(periods) > 1:
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


NEIGHBOURS_BY_ADDING = re.compile(
    r"""
    \b(?:
        un-?bounded | add(?:s|ed|ing)? | (?<!in\ )additions? | remov(?:e|es|ed|ing|al|als) | insert(?:s|ed|ing|ion|ions)?
        | delet(?:e|es|ed|ing|ion|ions) | omit(?:s|ted|ting)? | omissions? | drop(?:s|ped|ping)? | subtract(?:s|ed|ing|ion)?
        | inclusion | exclusion | presence | absen(?:ce|t) | (?:with\ or|with\ and|or)\ without | joins? | joining
        | leav(?:e|es|ing) | opts?\ (?:in|out) | symmetric\ (?:distance|difference)
        | (?:one|an)\ (?:more|less|fewer|extra|additional)
        | empty | null | nothing | zero(?:s|ed|ing)? | dummy | default | blank | eras(?:e|es|ed|ing)
        | constant | neutral | placeholder | sentinel | ghost
    )\b
    """,
    re.VERBOSE,
)
"""Also replacing by nothing, which is removing."""

NEIGHBOURS_BY_REPLACING = re.compile(
    r"""
    (?<![\w-])(?:
        change-one | change\ one\ (?:distance|metric) | hamming
        | (?:replace|replacement|substitution|swap)[\s-](?:neighbo|adjacen|distance|relation|metric|dp\b)
        | (?:one|single)\ (?:replaced|modified|substituted|swapped)\b
        | (?:is|be|being)\ (?:replaced|substituted|swapped)\ (?:by|with|for)\ (?:an?|any)\ ?(?:other|different|arbitrary)\b
        | (?<!with\ )(?:replac(?:e|es|ing|ements?)|modif(?:y|ies|ying|ications?)|substitut(?:e|es|ing|ions?)|swap(?:s|ping)?)
          (?:\ (?:of|in|at|most|up|to|the|all|data|values?|records?|rows?|contents?|contributions?))*
          [\s-](?:one|an?|any|single)\b
    )
    | (?:^|[^\w\s-]\ ?|\b(?:an?|the|of|uses?|using|under|with|as|are|is|in|for|by)\ )
      bounded[\s-](?:neighbo|adjacen|dp\b|differential|relation|definition|notion)
    """,
    re.VERBOSE,
)


def stated_neighbours(text: str) -> Neighbours | None:
    """The relation of neighbouring data that a text states; None if it states both or neither, or denies something."""
    lowered = re.sub(r"\b(?:no|not) more than\b", "at most", " ".join(text.lower().replace("\u2019", "'").split()))
    is_denied = re.search(
        r"\b(?:not|no|nor|neither|never|none|non|un|cannot|(?<!or )(?<!and )without|except|unlike)\b|n't\b"
        r"|\b(?:rather than|instead of|opposed to|in place of|in contrast)\b"
        # a relation for which the parameters are not stated, but are to be converted
        r"|\b(?:costs?|convert(?:s|ed|ing)?|multipl(?:y|ies|ied|ying)|doubl(?:e|es|ed|ing)|twice|half)\b|\b2 ?(?:x|eps)",
        lowered,
    )
    # A record of several sentences replaces other things too, such as missing values.
    sentences = re.split(r"(?<=[.!?;]) ", lowered)
    about_neighbours = "neighbo|adjacen|differ|distance|relation|data ?set|database"
    about = [one for one in sentences if len(sentences) == 1 or re.search(about_neighbours, one)]
    # Replacing by something else than other data (a fixed value, a symbol, a ghost) is removing in other words.
    by_something = (
        r"\b(?:replac|modif|substitut|swap)[^.!?;]*?\b(?:by|with|into)"
        r" (?!(?:(?:an?|the|any|some) )?(?:other|another|different|arbitrary|new|any)\b|(?:that|those) of\b)"
    )
    if is_denied or any(re.search(by_something, f"{one} ") for one in about):
        return None
    replaces = any(NEIGHBOURS_BY_REPLACING.search(one) for one in about)
    if NEIGHBOURS_BY_ADDING.search(lowered):
        mentioned = r"\b(?:replac|modif|substitut|swap|bounded (?:or|and)\b|(?:or|and) bounded\b)"
        return None if replaces or re.search(mentioned, lowered) else "adding or removing"
    return "replacing" if replaces else None


RELEASE_RATE = re.compile(
    rf"""
    \b(?P<times>once|twice|thrice|\w+\ times)\ (?:in\ )?(?:an?|one|per|every|each)
      \ (?P<within>hour|day|week|month|quarter|year)\b
    | \b(?:every|each)\ (?:(?P<span>\d+|one|two|three|four|six|seven|twelve|other|second|third|few)\ )?
      (?P<unit>hour|day|week|month|quarter|year)s?\b (?!\ (?:of\ an\ )?hour)
    | \b(?:(?P<count>once|twice|thrice|semi|half|\w+\ times)\ )?
      (?P<adverb>{"|".join(PERIOD_ADVERBS)})\b
    """,
    re.VERBOSE,
)
"""Words of a frequency, in a text of lower-case words with one blank between them."""

PERIOD_OF_RATE: dict[tuple[int, int, str], Period] = {
    **{(1, 1, unit): unit for unit in PERIOD_ADVERBS.values()},
    (1, 6, "hour"): "quarter-day",
    (1, 12, "hour"): "half-day",
    (1, 24, "hour"): "day",
    (2, 1, "day"): "half-day",
    (4, 1, "day"): "quarter-day",
    (24, 1, "day"): "hour",
    (1, 7, "day"): "week",
    (2, 1, "month"): "half-month",
    (1, 3, "month"): "quarter",
    (1, 6, "month"): "half-year",
    (1, 12, "month"): "year",
    (2, 1, "year"): "half-year",
    (4, 1, "year"): "quarter",
    (12, 1, "year"): "month",
}
"""Length of a step by how many times in how many of a unit."""


def period_in(text: str) -> Period | None:
    """The length of a step by a text such as "Monthly" or "Published twice daily"; None if it does not state exactly one."""
    words = " ".join(re.findall(r"[^\W_]+", re.sub(r"\b(semi|half|bi|tri)(?=annual|[a-z]+ly\b)", r"\1 ", text.lower())))
    if re.fullmatch(r"\w+ hours", words):
        words = f"every {words}"
    # Words around a frequency (|) by which it is another one, or none.
    doubt = (
        r"\b(?:twice|thrice|times|two|three|four|five|six|seven|eight|nine|ten|twelve|pair|both|several|multiple|few|morning"
        r"|am|pm|noon|evening|night|spring|autumn|x?\d{1,3}(?!\d)\w*)\b"
        r"|\b(?:not|no|never|nor|non|longer|than|bi|tri|sub|multi|inter|intra|quarter|alternate|formerly|previously|until)\b"
        r"(?: \w+){0,2} \|"
    )
    found = {_period(match) for match in RELEASE_RATE.finditer(words)}
    return found.pop() if len(found) == 1 and not re.search(doubt, RELEASE_RATE.sub("|", words)) else None


def _period(match: re.Match[str]) -> Period | None:
    """The length of a step by one frequency; None if there is no word for it."""
    if match["unit"]:
        return PERIOD_OF_RATE.get((1, _whole(match["span"] or "one"), match["unit"]))
    times = _whole(match["times"] or match["count"] or "once")
    return PERIOD_OF_RATE.get((times, 1, match["within"] or PERIOD_ADVERBS[match["adverb"]]))


def _whole(word: str) -> int:
    """The number that a word states; 0 if it is not known."""
    numbers = {
        "a": 1, "one": 1, "once": 1, "two": 2, "twice": 2, "semi": 2, "half": 2, "three": 3, "thrice": 3, "four": 4, "six": 6,
        "seven": 7, "twelve": 12,
    }  # fmt: skip
    word = word.removesuffix(" times")
    return int(word[:9]) if word.isdecimal() else numbers.get(word, 0)
