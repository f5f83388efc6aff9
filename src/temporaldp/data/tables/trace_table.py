"""Traces in a table of any size: only two small tables of counts are in memory, unless all states are requested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.errors import InputError, StateError, TraceError
from temporaldp.base.names import in_order, listed, place_in_order
from temporaldp.base.values import IntArray, locked
from temporaldp.data.tables.counted import CountsByName
from temporaldp.data.tables.encoding import encoded
from temporaldp.data.tables.relations import Rows, integers, text, values
from temporaldp.data.tables.succession import Between, Counting, ordered, sums_of, whole_succession
from temporaldp.data.tables.times import TimesOf
from temporaldp.data.tables.traces import Traces
from temporaldp.data.tables.trajectories import ABSENT

MOST_PLACES = 1_000
"""Rows whose places are looked up for a message."""


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
        Whether every time is a column of its own in the table, for messages.
    between : Between
        The state of a user at a time without a row.
    absent : str, optional
        Name of a state of absence, which is added as the last one.
    in_order_of_rows : bool
        Whether people are in order of appearance, as in a wide table, instead of that of their names.

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
        between: Between = Between.UNKNOWN,
        absent: str | None = None,
        in_order_of_rows: bool = False,
    ) -> None:
        named = None if states is None else tuple(name for name in states if name != absent)
        found = encoded(traces, named, times=times, gaps=gaps, wide=wide)
        self.states = found.states if absent is None else (*found.states, absent)
        self._times = found.times
        self.counting: Final = Counting(between, self.n_states, self.n_times, int(self.consecutive.sum()))
        self._found, self._absent, self._in_order_of_rows, self._is_wide = found, absent, in_order_of_rows, wide
        self._transitions = whole_succession(found, self.counting, by_time=sort or not traces.has_order)
        if absent in found.states:
            raise StateError(f"state {absent!r} is reserved for users who are absent, but rows of the table contain it")
        if traces.group is not None:
            self._refuse_two_groups()

    def __getstate__(self) -> dict[str, Any]:
        """All but what is read on request."""
        return {name: value for name, value in vars(self).items() if name not in {"users", "groups", "_people"}}

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
        order = integers(people, "row").tolist() if self._in_order_of_rows else map(place_in_order, names)
        return zip(order, names, strict=True)

    @cached_property
    def groups(self) -> dict[str, int]:
        """Number of people in each group, by its name.

        Raises
        ------
        InputError
            The traces were read without groups.
        """
        self._require_groups()
        query = "SELECT belongs, count(DISTINCT user) AS n FROM rows GROUP BY belongs"
        found = self._found.rows.in_parts(lambda part: part.then(query))
        sizes: Counter[str] = Counter()
        for name, n in zip(text(values(found.column("belongs"))), integers(found, "n").tolist(), strict=True):
            sizes[name] += n
        return {name: sizes[name] for name in in_order(sizes)}

    def histogram(self) -> IntArray:
        """True counts, shape (n_times, n_states): number of people in each state at each time. Exact, hence private."""
        counts = np.zeros((self.n_times, self.n_states), dtype=np.int64)
        if self.counting.between is Between.LAST:
            return self._held_histogram(counts)
        times, states, rows = self._found.cells
        np.add.at(counts, (times, states), rows)
        if self._absent is not None:
            counts[:, -1] = self.n_users - counts.sum(axis=1)
        return counts

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
        pairs, chosen = ordered(rows, rows.order("t", "s")), f"t > {last}"
        if unusual:
            usual = pairs.asked(f"SELECT max(t - t_before) AS n FROM rows WHERE t <= {last}").to_pylist()[0]["n"]
            chosen += f" AND t - coalesce(t_before, {last}) > {usual or 1}"
        found = pairs.asked(f"SELECT row FROM rows WHERE {chosen} ORDER BY row LIMIT {MOST_PLACES}")
        return list(dict.fromkeys(map(rows.place, integers(found, "row").tolist())))

    def user_sums(self) -> Rows:
        """Rows that `counting` turns into the transitions of all users: one row for each user and pair of states."""
        return self._sums("user", self._found.rows)

    def group_transitions(self) -> Iterator[tuple[str, IntArray]]:
        """Every group's name and the transitions of the people in it, in order of names.

        Raises
        ------
        InputError
            The traces were read without groups.
        """
        self._require_groups()
        yield from self._by("belongs", self._found.rows).items()

    @property
    def codes(self) -> NDArray[np.int32]:
        """Position of each person's state at each time, -1 for none, shape (n_users, n_times).

        The array takes four bytes per person and time, so use it for small tables only.
        """
        everything = self._found.rows.asked("SELECT user, t, s FROM rows")
        names = text(values(everything.column("user")))
        position = {name: k for k, name in enumerate(self.users)}
        t = np.searchsorted(self._found.positions, integers(everything, "t"))
        s = integers(everything, "s")
        missing = ABSENT if self._absent is None else self.n_states - 1
        codes = np.full((self.n_users, self.n_times), missing, dtype=np.int32)
        codes[[position[name] for name in names], t] = s
        if self.counting.between is Between.LAST:
            for step in range(1, self.n_times):
                held = codes[:, step] == ABSENT
                codes[held, step] = codes[held, step - 1]
        return locked(codes)

    @property
    def names(self) -> set[str]:
        """Names of all people without an order, in memory."""
        found = self._found.rows.in_parts(lambda part: part.then("SELECT user FROM rows GROUP BY user"))
        return set(text(values(found.column("user"))))

    @property
    def n_rows(self) -> IntArray:
        """Number of people with a row at each time, shape (n_times,)."""
        counts = np.zeros(self.n_times, dtype=np.int64)
        np.add.at(counts, self._found.cells[0], self._found.cells[2])
        return counts

    def states_at(self, times: Sequence[int]) -> dict[tuple[str, int], str]:
        """The state of every person with a row at one of these times, by name and position among `times`; in memory."""
        place = {int(self._found.positions[time]): k for k, time in enumerate(times)}
        if not place:
            return {}
        chosen = f"SELECT user, t, s FROM rows WHERE t IN ({', '.join(map(str, place))})"
        found = self._found.rows.in_parts(lambda part: part.then(chosen))
        names, t, s = text(values(found.column("user"))), integers(found, "t"), integers(found, "s")
        cells = zip(names, t.tolist(), s.tolist(), strict=True)
        return {(name, place[at]): self.states[state] for name, at, state in cells}

    def _sums(self, column: str, rows: Rows) -> Rows:
        return sums_of(ordered(rows, rows.order("t", "s")), self.counting.between.value, column)

    def _by(self, column: str, rows: Rows) -> CountsByName:
        """Transitions by person or group, of all parts of some rows."""
        return self.counting.by_name(rows.in_parts(lambda part: self._sums(column, part)))

    def _held_histogram(self, counts: IntArray) -> IntArray:
        """Histogram if people keep a state until the next one: cumulative sum of the states that begin and end at each time."""
        rows, query = self._found.rows, "SELECT t, s_before, s, count(*) AS n FROM rows GROUP BY t, s_before, s"
        changes = rows.in_parts(lambda part: ordered(part, rows.order("t", "s")).then(query))
        t, before, after, n = (integers(changes, name) for name in ("t", "s_before", "s", "n"))
        np.add.at(counts, (t, after), n)
        known = before >= 0
        np.add.at(counts, (t[known], before[known]), -n[known])
        return np.cumsum(counts, axis=0)

    def _require_groups(self) -> None:
        if self._found.rows.group is None:
            raise InputError(
                "these traces were read without groups; name the column with them: read_traces(..., by='region')"
            )

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
