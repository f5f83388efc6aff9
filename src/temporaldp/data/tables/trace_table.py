"""Traces in a table of any size: only two small tables of counts are in memory, unless all states are requested.

Transitions are counted by one window over each person's rows, and a small table of sums: where the rows can be read in parts,
each is queried alone, and the sums are added. A transition is counted where a row and the one before it are one step apart.
`Between` determines the state of a person between two rows that are further apart: none, the last state, or absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, Final, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from temporaldp.base.errors import InputError, StateError, TraceError
from temporaldp.base.names import listed, place_in_order
from temporaldp.base.values import IntArray, locked, plural, whole_number
from temporaldp.data.tables.counted import CountsByName
from temporaldp.data.tables.encoding import Encoded, Meaning, encoded
from temporaldp.data.tables.moments import TimesOf
from temporaldp.data.tables.relations import TEXT, Arrow, Rows, distinct_entries, integers, text, values
from temporaldp.data.tables.traces import Traces
from temporaldp.data.tables.trajectories import ABSENT


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

    def sums(self, pairs: Rows, whose: str = "0", more: str = "") -> Rows:
        """Sums for every pair of a state and the previous one, by the column `whose`; `more` are further sums, in SQL."""
        return pairs.then(
            f"SELECT {whose} AS whose, s_before, s, {self.between.value}{more} FROM rows GROUP BY 1, 2, 3"
        )

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


def ordered(rows: Rows, order: str | None = None) -> Rows:
    """Return every row with the time, state (-1 if there is none) and row number of the person's previous row.

    By default a person's rows are in order of time.
    """
    by = order or rows.order("t", "s")
    return rows.then(
        f"SELECT {rows.identity}, t, s, came, stays, lag(t) OVER w AS t_before, lag(s, 1, -1) OVER w AS s_before, "
        f"lag(row) OVER w AS row_before FROM rows WINDOW w AS (PARTITION BY user ORDER BY {by})"
    )


def whole_succession(found: Encoded, counting: Counting, *, by_time: bool) -> scipy.sparse.csr_array:
    """Return the transitions of all users together, shape (n_states, n_states).

    Raises
    ------
    TraceError
        Times out of order, unless people are ordered `by_time`; two states at one time.
    """
    rows = found.rows
    order = None if by_time else "row"
    checks = ", count(*) FILTER (WHERE t < t_before) AS falls, count(*) FILTER (WHERE t = t_before) AS repeats"
    sums = rows.in_parts(lambda part: counting.sums(ordered(part, order), more=checks))
    falls, repeats = (int(integers(sums, name).sum()) for name in ("falls", "repeats"))
    if falls and not by_time:
        first = _first(rows, "row", "t < t_before")
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
    first = _first(rows, rows.order("t", "s"), "t = t_before")
    states = found.states[first["s_before"]], found.states[first["s"]]
    return two_states(rows, first, found.label(first["t"]), states, n)


def two_states(rows: Rows, first: dict[str, Any], time: str, states: tuple[str, str], n: int) -> TraceError:
    """Error of two states of a person at one time, of `n` that there are."""
    where = f"{states[0]!r}, {states[1]!r}"
    if rows.has_order:
        where = f"{_joined(rows.place(first['row_before']), rows.place(first['row']))}: {where}"
    return TraceError(
        f"user {first['name'].strip()!r} has two states at time {time!r} ({where}); {plural(n, 'such repetition')}; keep one "
        "row per user and time, or say which one counts with ties='last' or 'first' (--set traces.ties=last)"
    )


def _joined(one: str, two: str) -> str:
    """``data rows 1 and 2`` where both are of one file."""
    (first, *file), (second, *other) = (word.removeprefix("data row ").split(" of ") for word in (one, two))
    return " of ".join([f"data rows {first} and {second}", *file]) if file == other else f"{one} and {two}"


def _first(rows: Rows, order: str, wrong: str) -> dict[str, Any]:
    """First wrong row of the first person, people in order of their names."""
    query = f"SELECT *, CAST(user AS STRING) AS name FROM rows WHERE {wrong} ORDER BY name, {order} LIMIT 1"
    of_parts = rows.in_parts(lambda part: ordered(part, order).then(query)).to_pylist()
    return min(of_parts, key=lambda row: row["name"])


def _refuse_two_spellings(rows: Rows) -> None:
    """Refuse names such as 17 and 17.0, which are one person: programs write whole numbers so in a column with empty cells."""
    if rows.kinds["user"] != TEXT or not len(rows.asked("SELECT user FROM rows WHERE user LIKE '%.0' LIMIT 1")):
        return
    whole = "CASE WHEN user LIKE '%.0' THEN substr(user, 1, length(user) - 2) ELSE user END"
    found = rows.asked(
        f"SELECT name FROM (SELECT DISTINCT user, {whole} AS name FROM rows) AS names GROUP BY name HAVING count(*) > 1 "
        "AND TRY_CAST(name AS DOUBLE) IS NOT NULL ORDER BY name LIMIT 1"
    ).to_pylist()
    for one in found:
        raise TraceError(
            f"column {rows.user!r} has both {one['name']!r} and {one['name'] + '.0'!r}, which would be two people: write the "
            "identifiers in one way (a program that reads an empty cell makes fractions of whole numbers)"
        )


def _comparable(found: Arrow) -> list[str]:
    """Names of people in a column `user`, 17.0 as 17: the same people may be written in both ways in two tables."""
    return [name.removesuffix(".0") for name in text(values(found.column("user")))]


class TraceTable(Traces):
    """States of users over time, in a table that is queried rather than loaded; from `read_traces`.

    The table is validated when the object is made, by queries. It stays where it is (a file, a frame, a cluster), and must not
    change while the object is used. A pickled one has its rows in memory; from Spark it cannot be pickled.

    Parameters
    ----------
    traces : Rows
        Columns user, time, state and row, and belongs where people belong to groups.
    states : tuple of str, optional
        The public domain, in this order; by default the states that occur, sorted.
    sort : bool
        Whether rows may be in any order of time. Rows of a table without an order always may.
    times : callable, optional
        Given the distinct entries of the column of times, returns the times and their order.
    gaps : bool
        Whether rows without a state are skipped.
    wide : bool
        Whether every time is a column of its own in the table: people are then in order of their rows, else of their names.
    held : bool
        Whether people keep a state until their next row.
    absent : str, optional
        Name of a state of absence, which is added as the last one.
    away : str, optional
        Name of a state of absence that people have in rows.
    meaning : Meaning, optional
        States that entries stand for.

    Attributes
    ----------
    states : tuple of str
        The public domain.
    times : tuple of str
        Labels, in order.
    consecutive : bool array, shape (n_times - 1,)
        Whether times k and k + 1 are one step apart.
    step : str or None
        Length of one step, in words.
    n_users, n_times, n_states : int
    counting : Counting
        Conversion of `user_sums` to transitions; can be pickled.

    Raises
    ------
    TraceError, StateError
        As `read_traces`.
    """

    def __init__(
        self,
        traces: Rows,
        *,
        states: tuple[str, ...] | None = None,
        sort: bool = False,
        times: TimesOf | None = None,
        gaps: bool = False,
        wide: bool = False,
        held: bool = False,
        absent: str | None = None,
        away: str | None = None,
        meaning: Meaning | None = None,
    ) -> None:
        named = None if states is None else tuple(name for name in states if name != absent)
        found = encoded(traces, named, times=times, gaps=gaps, wide=wide, meaning=meaning)
        self.states = found.states if absent is None else (*found.states, absent)
        self._times = found.times
        between = Between.LAST if held else Between.UNKNOWN if absent is None else Between.ABSENT
        self.counting: Final = Counting(between, self.n_states, self.n_times, int(self.consecutive.sum()))
        self._found, self._absent, self._is_wide = found, absent, wide
        self._absence = absent if absent is not None or away not in self.states else away
        self._n_without_rows = 0
        _refuse_two_spellings(found.rows)
        self._transitions = whole_succession(found, self.counting, by_time=sort or not traces.has_order)
        if absent in found.states:
            raise StateError(f"state {absent!r} is reserved for users who are absent, but rows of the table contain it")
        if traces.group is not None:
            self._refuse_two_groups()

    def __getstate__(self) -> dict[str, Any]:
        """All but what is read on request."""
        return {name: value for name, value in vars(self).items() if name not in {"users", "_people"}}

    @property
    def holder(self) -> str:
        """What has the states, for messages."""
        return "the table" if self._is_wide else f"column {self._found.rows.state!r}"

    @property
    def n_users(self) -> int:
        """Number of people."""
        return self._found.n_users

    @cached_property
    def users(self) -> tuple[str, ...]:
        """Names of all people, in memory."""
        return tuple(chain.from_iterable(names for names, _ in self._people))

    @cached_property
    def _people(self) -> tuple[tuple[tuple[str, ...], Rows], ...]:
        """The names of all people, in order, and where their rows are: in parts where these have the same order."""
        rows = self._found.rows
        parts, places = rows.parts, [sorted(self._places(part)) for part in rows.parts]
        if any(one[-1] > other[0] for one, other in pairwise(filter(None, places))):
            parts, places = (replace(rows, cuts=()),), [sorted(chain.from_iterable(places))]
        return tuple((tuple(name for _, name in found), part) for found, part in zip(places, parts, strict=True))

    def _places(self, part: Rows) -> Iterator[tuple[Any, str]]:
        """Yield the position of each user among all users, and the name."""
        people = part.asked("SELECT user, min(row) AS row FROM rows GROUP BY user")
        names = text(values(people.column("user")))
        is_in_order = self._is_wide and part.has_order
        return zip(integers(people, "row").tolist() if is_in_order else map(place_in_order, names), names, strict=True)

    @property
    def absence(self) -> str | None:
        """The state of people who are absent, if there is one."""
        return self._absence

    def of_population(self, n_people: int) -> Self:
        """Return these traces with a public number of people; people without a row are absent at every time."""
        number = whole_number(n_people, "the public number of people", least=1)
        if self.absence is None or number < self.n_users:
            raise InputError(
                "expected a state of absence and a public number of people (release.population), the absent ones included, of "
                f"at least those who have rows in the table, got {number}: choose a larger one"
            )
        made = copy(self)
        made._n_without_rows = number - self.n_users
        return made

    def histogram(self) -> IntArray:
        """True counts, shape (n_times, n_states): number of people in each state at each time. Exact, hence private."""
        counts = self._of_rows()
        if self.absence is not None:
            counts[:, self.states.index(self.absence)] += self._n_without_rows
        return counts

    def _of_rows(self) -> IntArray:
        """The counts of people who have a row at some time."""
        counts = np.zeros((self.n_times, self.n_states), dtype=np.int64)
        if self.counting.between is not Between.LAST:
            times, states, n = self._found.cells
            np.add.at(counts, (times, states), n)
            if self._absent is not None:
                counts[:, -1] = self.n_users - counts.sum(axis=1)
            return counts
        # People keep a state until the next one: a cumulative sum of the states that begin and end at each time.
        rows, query = self._found.rows, "SELECT t, s_before, s, count(*) AS n FROM rows GROUP BY t, s_before, s"
        changes = rows.in_parts(lambda part: ordered(part).then(query))
        t, before, after, n = (integers(changes, name) for name in ("t", "s_before", "s", "n"))
        np.add.at(counts, (t, after), n)
        known = before >= 0
        np.add.at(counts, (t[known], before[known]), -n[known])
        return np.cumsum(counts, axis=0)

    def transition_counts(self, user: str | None = None) -> IntArray:
        """Transitions N[i, j] from i at t to j at t + 1, shape (n_states, n_states); of all users, or of one. Private."""
        if user is None:
            return np.asarray(self._transitions.toarray())
        if user not in self.users:
            raise InputError(f"unknown user {user!r}; the traces hold {listed(self.users)}")
        return next(counts for name, counts in self.user_transitions() if name == user)

    def user_transitions(self) -> Iterator[tuple[str, IntArray]]:
        """Yield the name and the transitions of each user, in the order of `users`.

        For a Parquet file that is sorted by people, one part at a time is in memory; for other tables, all sums.
        """
        for names, part in self._people:
            counted = self._by("user", part)
            for name in names:
                yield name, counted[name]

    def ends(self) -> IntArray:
        """Number of people whose last row is at each time, shape (n_times,). Private."""
        query = "SELECT t, count(*) AS n FROM (SELECT user, max(t) AS t FROM rows GROUP BY user) AS last GROUP BY t"
        found = self._found.rows.in_parts(lambda part: part.then(query))
        ends = np.zeros(self.n_times, dtype=np.int64)
        np.add.at(ends, np.searchsorted(self._found.positions, integers(found, "t")), integers(found, "n"))
        return ends

    def rows_after(self, time: int, *, unusual: bool = False) -> list[str]:
        """Return the places of the first rows after a time, as `Traces.rows_after`."""
        rows, last = self._found.rows, int(self._found.positions[time]) if time >= 0 else -1
        pairs, chosen = ordered(rows), f"t > {last}"
        if unusual:
            usual = pairs.asked(f"SELECT max(t - t_before) AS n FROM rows WHERE t <= {last}").to_pylist()[0]["n"]
            chosen += f" AND t - coalesce(t_before, {last}) > {usual or 1}"
        found = pairs.asked(f"SELECT row FROM rows WHERE {chosen} ORDER BY row LIMIT 1000")  # looked up for a message
        return list(dict.fromkeys(map(rows.place, integers(found, "row").tolist())))

    def user_sums(self) -> Rows:
        """Rows that `counting` turns into the transitions of all users: one row for each user and pair of states."""
        return self._sums("user", self._found.rows)

    def group_sizes(self) -> dict[str, int]:
        """Number of people in each group, by its name; `InputError` where the traces were read without groups."""
        query = "SELECT belongs, count(DISTINCT user) AS n FROM rows GROUP BY belongs"
        found = self._grouped.in_parts(lambda part: part.then(query))
        names, n = text(values(found.column("belongs"))), integers(found, "n")
        return {name: int(n[names == name].sum()) for name in dict.fromkeys(names.tolist())}

    def group_transitions(self) -> Iterator[tuple[str, IntArray]]:
        """Every group's name and the transitions of the people in it, in order of names.

        Raises
        ------
        InputError
            The traces were read without groups.
        """
        yield from self._by("belongs", self._grouped).items()

    @property
    def _grouped(self) -> Rows:
        if self._found.rows.group is None:
            raise InputError(
                "these traces were read without groups; name the column with them: read_traces(..., by='region')"
            )
        return self._found.rows

    @property
    def codes(self) -> NDArray[np.int32]:
        """Position of each person's state at each time, -1 for none, shape (n_users, n_times).

        The array takes four bytes per person and time, so use it for small tables only.
        """
        everything = self._found.rows.asked("SELECT user, t, s FROM rows")
        entries, entry_of = distinct_entries(everything.column("user"))
        position = {name: k for k, name in enumerate(self.users)}
        t = np.searchsorted(self._found.positions, integers(everything, "t"))
        s = integers(everything, "s")
        missing = ABSENT if self._absent is None else self.n_states - 1
        codes = np.full((self.n_users, self.n_times), missing, dtype=np.int32)
        codes[np.array([position[name] for name in text(values(entries))])[entry_of], t] = s
        if self.counting.between is Between.LAST:
            for step in range(1, self.n_times):
                held = codes[:, step] == ABSENT
                codes[held, step] = codes[held, step - 1]
        return locked(codes)

    @property
    def names(self) -> set[str]:
        """Names of all people to compare with those of other tables (17 for 17.0), without an order, in memory."""
        found = self._found.rows.in_parts(lambda part: part.then("SELECT user FROM rows GROUP BY user"))
        return set(_comparable(found))

    @property
    def n_rows(self) -> IntArray:
        """Number of people with a row at each time, shape (n_times,)."""
        times, _, n = self._found.cells
        return np.bincount(times, weights=n, minlength=self.n_times).astype(np.int64)

    def states_at(self, times: Sequence[int]) -> dict[tuple[str, int], str]:
        """The state of every person with a row at one of these times, by name (as in `names`) and position; in memory."""
        place = {int(self._found.positions[time]): k for k, time in enumerate(times)}
        if not place:
            return {}
        chosen = f"SELECT user, t, s FROM rows WHERE t IN ({', '.join(map(str, place))})"
        found = self._found.rows.in_parts(lambda part: part.then(chosen))
        names, t, s = _comparable(found), integers(found, "t"), integers(found, "s")
        cells = zip(names, t.tolist(), s.tolist(), strict=True)
        return {(name, place[at]): self.states[state] for name, at, state in cells}

    def _sums(self, column: str, rows: Rows) -> Rows:
        return self.counting.sums(ordered(rows), column)

    def _by(self, column: str, rows: Rows) -> CountsByName:
        """Transitions by person or group, of all parts of some rows."""
        return self.counting.by_name(rows.in_parts(lambda part: self._sums(column, part)))

    def _refuse_two_groups(self) -> None:
        rows = self._found.rows
        query = (
            "SELECT CAST(user AS STRING) AS name FROM rows GROUP BY user "
            "HAVING count(DISTINCT belongs) <> 1 OR count(belongs) < count(*) ORDER BY user LIMIT 1"
        )
        for first in rows.in_parts(lambda part: part.then(query)).to_pylist():
            raise TraceError(
                f"user {first['name'].strip()!r} is in more than one group, or in none, by column {rows.group!r}; give "
                "every person one group, the same in all rows"
            )
