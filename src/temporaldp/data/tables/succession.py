"""Transitions in encoded rows: one window over each person's rows, and a small table of sums.

Where the rows can be read in parts, each is queried alone, and the sums are added. A transition is counted where a row and
the one before it are one step apart. `Between` determines the state of a person between two rows that are further apart:
none, the last state, or absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from temporaldp.base.errors import TraceError
from temporaldp.base.values import IntArray, plural
from temporaldp.data.tables.counted import CountsByName
from temporaldp.data.tables.encoding import Encoded
from temporaldp.data.tables.relations import Arrow, Rows, distinct_entries, integers, text, values


class Between(Enum):
    """State of a person at a time without a row; the values are the sums from which transitions are computed, in SQL."""

    UNKNOWN = "count(*) FILTER (WHERE t = t_before + 1) AS near"
    LAST = "count(*) AS n, CAST(sum(t) AS BIGINT) AS moments"
    ABSENT = (
        "count(*) AS n, count(*) FILTER (WHERE t = t_before + 1) AS near, CAST(sum(came) AS BIGINT) AS came, "
        "CAST(sum(stays) AS BIGINT) AS stayed"
    )


@dataclass(frozen=True, slots=True)
class Counting:
    """Conversion of sums to transitions.

    Parameters
    ----------
    between : Between
    n_states : int
        Including the state of absence, the last.
    n_times, n_links : int
        Number of times, and of times one step after the previous one.
    """

    between: Between
    n_states: int
    n_times: int
    n_links: int

    def cells(self, sums: Arrow) -> tuple[IntArray, NDArray[np.intp]]:
        """Return transitions (from, to, count), shape (3, m), and the row of `sums` of each; repeated entries add up."""
        found = {name: integers(sums, name) for name in sums.column_names if name != "whose"}
        before, after = found["s_before"], found["s"]
        if self.between is Between.UNKNOWN:
            parts = [(before, after, found["near"])]
        elif self.between is Between.LAST:
            # Every state is kept to the end, less what was kept from the next row on.
            n, moments = found["n"], found["moments"]
            kept, ended = n * (self.n_times - 1) - moments, moments - n * self.n_times
            parts = [(before, after, n), (after, after, kept), (before, before, ended)]
        else:
            # A person is present or absent at both ends of every link.
            near, came, stayed = found["near"], found["came"], found["stayed"]
            away = np.full_like(after, self.n_states - 1)
            links = np.where(before < 0, found["n"] * self.n_links, 0)
            parts = [
                (before, after, near),
                (before, away, -near),
                (away, after, came - near),
                (after, away, stayed),
                (away, away, links - came - stayed + near),
            ]
        stacked = np.concatenate([np.stack(part) for part in parts], axis=1)
        counted = (stacked[2] != 0) & (stacked[:2] >= 0).all(axis=0)
        return stacked[:, counted], np.tile(np.arange(len(after)), len(parts))[counted]

    def by_name(self, sums: Arrow) -> CountsByName:
        """Transitions of each person or group, by names without surrounding blanks."""
        entries, entry_of = distinct_entries(sums.column("whose"))
        names, name_of = np.unique(text(values(entries)), return_inverse=True)
        cells, row = self.cells(sums)
        return CountsByName(names, name_of[entry_of[row]], cells, self.n_states)


def ordered(rows: Rows, order: str) -> Rows:
    """Return every row with the time, state (-1 if there is none) and row number of the person's previous row."""
    return rows.then(
        f"SELECT {rows.identity}, t, s, came, stays, lag(t) OVER w AS t_before, lag(s, 1, -1) OVER w AS s_before, "
        f"lag(row) OVER w AS row_before FROM rows WINDOW w AS (PARTITION BY user ORDER BY {order})"
    )


def sums_of(pairs: Rows, sums: str, whose: str = "0") -> Rows:
    """Sums for every pair of a state and the previous one, by the column `whose`."""
    return pairs.then(f"SELECT {whose} AS whose, s_before, s, {sums} FROM rows GROUP BY 1, 2, 3")


def whole_succession(found: Encoded, counting: Counting, *, by_time: bool) -> scipy.sparse.csr_array:
    """Return the transitions of all users together, shape (n_states, n_states).

    Raises
    ------
    TraceError
        Times out of order, unless people are ordered `by_time`; two states at one time.
    """
    rows = found.rows
    order = rows.order("t", "s") if by_time else "row"
    checks = "count(*) FILTER (WHERE t < t_before) AS falls, count(*) FILTER (WHERE t = t_before) AS repeats"
    query = f"{counting.between.value}, {checks}"
    sums = rows.in_parts(lambda part: sums_of(ordered(part, order), query))
    falls, repeats = (int(integers(sums, name).sum()) for name in ("falls", "repeats"))
    if falls and not by_time:
        first = _first(rows, "row", "t < t_before", "row")
        raise disorder(rows, first, found.label(first["t"]), found.label(first["t_before"]))
    if repeats:
        raise _repetition(found, repeats)
    (before, after, n), _ = counting.cells(sums)
    return scipy.sparse.csr_array((n, (before, after)), shape=(counting.n_states, counting.n_states))


def disorder(rows: Rows, first: dict[str, Any], late: str, early: str) -> TraceError:
    """Error of a row whose time is before that of the previous row of the same person."""
    return TraceError(
        f"times are not in order: user {first['name'].strip()!r} has {late!r} ({rows.place(first['row'])}) after {early!r} "
        f"({rows.place(first['row_before'])}); if that column is the time, sort with sort=True (--set traces.sort=true)"
    )


def _repetition(found: Encoded, n: int) -> TraceError:
    """The refusal of two states of a person at one time, of `n` that there are."""
    rows = found.rows
    order = rows.order("t", "s")
    first = _first(rows, order, "t = t_before", order)
    where = f"{found.states[first['s_before']]!r}, {found.states[first['s']]!r}"
    if rows.has_order:
        where = f"{_joined(rows.place(first['row_before']), rows.place(first['row']))}: {where}"
    return TraceError(
        f"user {first['name'].strip()!r} has two states at time {found.label(first['t'])!r} ({where}); "
        f"{plural(n, 'such repetition')}; keep one row per user and time"
    )


def _joined(one: str, two: str) -> str:
    """``data rows 1 and 2`` where both are of one file."""
    (first, *file), (second, *other) = (word.removeprefix("data row ").split(" of ") for word in (one, two))
    return " of ".join([f"data rows {first} and {second}", *file]) if file == other else f"{one} and {two}"


def _first(rows: Rows, order: str, wrong: str, rank: str) -> dict[str, Any]:
    """First wrong row of the first person, people in order of their names."""
    query = f"SELECT *, CAST(user AS STRING) AS name FROM rows WHERE {wrong} ORDER BY name, {rank} LIMIT 1"
    of_parts = rows.in_parts(lambda part: ordered(part, order).then(query)).to_pylist()
    return min(of_parts, key=lambda row: row["name"])
