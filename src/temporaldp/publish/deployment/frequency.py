"""How often a record releases, in words such as "Published twice daily"."""

from __future__ import annotations

import re

from temporaldp.publish.deployment.stated_unit import SPELLINGS, Period

NUMBERS = {
    "a": 1, "one": 1, "once": 1, "two": 2, "twice": 2, "semi": 2, "half": 2, "three": 3, "thrice": 3, "four": 4, "six": 6,
    "seven": 7, "twelve": 12,
}  # fmt: skip

UNIT = "hour|day|week|month|quarter|year"

RATE = re.compile(
    rf"""
    \b(?P<times>once|twice|thrice|\w+\ times)\ (?:in\ )?(?:an?|one|per|every|each)\ (?P<within>{UNIT})\b
    | \b(?:every|each)\ (?:(?P<span>\d+|one|two|three|four|six|seven|twelve|other|second|third|few)\ )?(?P<unit>{UNIT})s?\b
      (?!\ (?:of\ an\ )?hour)
    | \b(?:(?P<count>once|twice|thrice|semi|half|\w+\ times)\ )?
      (?P<adverb>{"|".join(SPELLINGS)})\b
    """,
    re.VERBOSE,
)
"""Words of a frequency, in a text of lower-case words with one blank between them."""

RATES: dict[tuple[int, int, str], Period] = {
    **{(1, 1, unit): unit for unit in SPELLINGS.values()},
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

DOUBT = re.compile(
    r"\b(?:twice|thrice|times|two|three|four|five|six|seven|eight|nine|ten|twelve|pair|both|several|multiple|few|morning"
    r"|am|pm|noon|evening|night|spring|autumn|x?\d{1,3}(?!\d)\w*)\b"
    r"|\b(?:not|no|never|nor|non|longer|than|bi|tri|sub|multi|inter|intra|quarter|alternate|formerly|previously|until)\b"
    r"(?: \w+){0,2} \|"
)
"""Words around a frequency (|) by which it is another one, or none."""


def period_in(text: str) -> Period | None:
    """The length of a step by a text such as "Monthly" or "Published twice daily"; None if it does not state exactly one."""
    words = " ".join(re.findall(r"[^\W_]+", re.sub(r"\b(semi|half|bi|tri)(?=annual|[a-z]+ly\b)", r"\1 ", text.lower())))
    if re.fullmatch(r"\w+ hours", words):
        words = f"every {words}"
    found = {_period(match) for match in RATE.finditer(words)}
    return found.pop() if len(found) == 1 and DOUBT.search(RATE.sub("|", words)) is None else None


def _period(match: re.Match[str]) -> Period | None:
    """The length of a step by one frequency; None if there is no word for it."""
    if match["within"]:
        times, span, unit = _whole(match["times"]), 1, match["within"]
    elif match["unit"]:
        times, span, unit = 1, _whole(match["span"] or "one"), match["unit"]
    else:
        times, span, unit = _whole(match["count"] or "once"), 1, SPELLINGS[match["adverb"]]
    return RATES.get((times, span, unit))


def _whole(word: str) -> int:
    """The number that a word states; 0 if it is not known."""
    word = word.removesuffix(" times")
    return int(word[:9]) if word.isdecimal() else NUMBERS.get(word, 0)
