"""Columns of a table as `init` looks at them: some cells, how many are different, and the formats that times fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from temporaldp.base.errors import TraceError
from temporaldp.data.tables.moments import moment
from temporaldp.data.tables.relations import UNIX, Rows, SourceTable

ROLES = {
    "user": (
        *("user", "person", "patient", "member", "customer", "client", "rider", "visitor", "respondent", "subject"),
        *("device", "card", "meter", "bike", "vehicle", "household", "case", "record", "account"),
        *("personennummer", "personen", "kunde", "kundennummer", "nutzer", "patientennummer", "fallnummer"),
        *("id", "idpers"),
    ),
    "time": (
        *("time", "date", "timestamp", "when", "moment", "hour", "day", "week", "month", "year", "step", "ts", "t"),
        *("datum", "zeit", "zeitpunkt", "woche", "monat", "jahr"),
    ),
    "state": (
        *("state", "zone", "status", "stage", "place", "location", "region", "station", "terminal", "stop", "ward"),
        *("unit", "department", "room", "activity", "event", "category", "page", "class", "cell", "concept", "label"),
    ),
}
"""Words in the names that columns of a long table usually have, the likeliest first."""

BEGIN_WORDS = (
    "start",
    "begin",
    "began",
    "from",
    "departure",
    "depart",
    "pickup",
    "admission",
    "admitted",
    "in",
    "login",
    "opened",
    "pu",
    "origin",
)
"""Words in the names of columns about the beginning of an interval."""

END_WORDS = (
    "end",
    "finish",
    "ended",
    "to",
    "until",
    "arrival",
    "arrive",
    "dropoff",
    "discharge",
    "out",
    "logout",
    "closed",
    "do",
    "destination",
    "dest",
)
"""Words in the names of columns about the end of an interval."""

DATES = (
    *(
        "%d.%m.%Y",
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%d-%m-%Y",
        "%m-%d-%Y",
        "%Y/%m/%d",
        "%Y.%m.%d",
        "%d.%m.%y",
        "%d/%m/%y",
        "%m/%d/%y",
    ),
    *("%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y"),
)
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", ", %H:%M", ", %H:%M:%S")
FORMATS = (
    *(f"{date}{clock}" for date in DATES for clock in CLOCKS),
    *(
        "%a %b %d %H:%M:%S %z %Y",
        "%a %b %d %H:%M:%S %Y",
        "%a, %d %b %Y %H:%M:%S %z",
        "%d/%b/%Y:%H:%M:%S %z",
        "%Y%m%dT%H%M%S",
    ),
)
"""Formats of times that are no ISO."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: name, cells of some rows as text ("" for none), how many are different, and in how many rows.

    `formats` are those that all of the entries have, of times: "" for ISO; none of other columns.
    """

    name: str
    cells: tuple[str, ...]
    n_different: int
    n_rows: int
    formats: tuple[str, ...]

    @property
    def entries(self) -> tuple[str, ...]:
        """The cells that are not empty."""
        return tuple(filter(None, self.cells))

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the name, in lower case."""
        return words_of(self.name)

    @property
    def is_measured(self) -> bool:
        """Whether the entries are numbers with decimals, such as amounts of money."""
        number, decimals = r"[-+]?(\d+|\d{1,3}([.,' ]\d{3})+)([.,]\d+)?", r"[.,]\d*[1-9]\d*$"
        return all(re.fullmatch(number, one) for one in self.entries) and any(
            re.search(decimals, one) for one in self.entries
        )

    @property
    def repeats(self) -> bool:
        """Whether entries occur more than once, as those of people do in a table with a row per time."""
        return self.n_different < self.n_rows


def is_named(column: Column, words: Sequence[str]) -> bool:
    """Whether the name of a column has one of some words, also with another ending, such as discharged for discharge."""
    return any(one == word or (len(word) > 3 and one.startswith(word)) for one in column.words for word in words)


def moments_of(column: Column) -> list[float | None]:
    """The cells of a column of times as seconds or numbers, to compare them."""
    found: list[float | None] = []
    for cell in column.cells:
        if not cell:
            found.append(None)
        elif column.formats[0] in {"", *UNIX}:
            found.append(float(moment(cell).value))
        else:
            found.append(datetime.strptime(cell, column.formats[0]).replace(tzinfo=UTC).timestamp())
    return found


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name such as start_date, startDate or case:concept:name, in lower case."""
    return tuple(word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name))


def columns_of(table: SourceTable) -> Iterator[Column]:
    """Every column, by some rows at equal distances."""
    names = {f"c{k}": name for k, name in enumerate(table.header) if name not in table.unreadable}
    counted = ", ".join(["count(*) AS n", *(f"count(DISTINCT {column}) AS {column}" for column in names)])
    (different,) = table.rows.asked(f"SELECT {counted} FROM rows").to_pylist()
    cells = ", ".join(f"CAST({column} AS STRING) AS {column}" for column in names)
    chosen = (
        "SELECT row FROM (SELECT row, row_number() OVER (ORDER BY row) AS k FROM rows) AS numbered "
        f"WHERE k % {max(different['n'] // 500, 1)} = 0 OR k <= 20"
    )
    some = table.rows.asked(f"SELECT {cells} FROM rows WHERE row IN ({chosen}) ORDER BY row").to_pylist()
    for column, name in names.items():
        entries = tuple("" if row[column] is None else str(row[column]).strip() for row in some)
        yield Column(name, entries, different[column], different["n"], formats_of(name, list(filter(None, entries))))


def formats_of(name: str, entries: Sequence[str]) -> tuple[str, ...]:
    """The formats of times that all entries have; "" for ISO."""
    few = list(dict.fromkeys(entries))
    if not few:
        return ()
    if all(moment(one).clock is not None for one in few):
        return ("",)
    is_time = any(word in ROLES["time"] + BEGIN_WORDS + END_WORDS for word in words_of(name))
    if is_time and all(re.fullmatch(r"\d{10}(\.\d+)?|\d{13}", one) for one in few):
        return ("unix",) if len(few[0].partition(".")[0]) == 10 else ("unix_ms",)
    found = [one for one in FORMATS if all(fits_format(word, one) for word in few)]
    # Who writes AM and PM writes the month first
    return tuple(sorted(found, key=lambda one: "%p" in one and one.startswith("%d")))


def fits_format(word: str, time_format: str) -> bool:
    """Whether a text is a time in a format."""
    try:
        datetime.strptime(word, time_format)
    except ValueError:
        return False
    return True


def rank_of(role: str, column: Column) -> int:
    """How likely a column has a role by its name: 0 for the likeliest word, 99 for none."""
    return min((k for k, word in enumerate(ROLES[role]) if word in column.words), default=99)


class FarTimeError(TraceError):
    """A time that is far from all others, such as one with a wrong year."""


def require_no_far_time(rows: Rows, is_date: bool, *, spans: float = 20.0) -> Any:
    """Return the first time; `FarTimeError` where it or the last one is further from 98 % of all than some spans of theirs."""
    query = (
        "SELECT min(moment) AS first, quantile_disc(moment, 0.01) AS low, quantile_disc(moment, 0.99) AS high, "
        "max(moment) AS last"
    )
    first, low, high, last = rows.asked(f"{query} FROM rows").to_pylist()[0].values()
    far = last if last - high > spans * (high - low) else first if low - first > spans * (high - low) else None
    if far is not None and high > low:
        shown = [
            str(np.datetime64(int(one), "us").astype("M8[D]")) if is_date else f"{one:g}" for one in (far, low, high)
        ]
        raise FarTimeError(
            f"a row has the time {shown[0]}, but 98 % of all are from {shown[1]} to {shown[2]}: mend it, or leave it out "
            "(traces.where)"
        )
    return first
