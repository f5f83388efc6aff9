"""Times and states of rows as positions on their lists; missing, unknown or unordered entries are refused.

One query counts people, one the rows of every time and state. The distinct spellings, which are few, are interpreted in Python,
and the rows are joined with the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from temporaldp.base.errors import StateError, TraceError
from temporaldp.base.names import appearance, in_order, listed, printable, require_unlike, state_names
from temporaldp.base.values import BoolArray, IntArray, plural, refuse
from temporaldp.data.tables.moments import Times, TimesOf, ordered_times
from temporaldp.data.tables.relations import (
    FRACTIONS,
    TEXT,
    Column,
    Rows,
    distinct_entries,
    integers,
    meanings,
    missing,
    stripped,
    text,
    values,
    without_blanks,
)


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Rows whose columns t and s are positions, and the number of rows of each time and state.

    Parameters
    ----------
    rows : Rows
        Columns user, t, s, `came` and `stays` (whether the time is one step after the one before, and before the next), and row
        and belongs. Positions of times that are further than one step apart are further than 1 apart.
    states : tuple of str
    times : Times
    positions : int array, shape (n_times,)
        The t of each time.
    cells : int array, shape (3, m)
        Times, states and numbers of rows, which add up.
    n_users : int
    """

    rows: Rows
    states: tuple[str, ...]
    times: Times
    positions: IntArray
    cells: IntArray
    n_users: int

    def label(self, t: int) -> str:
        """The label of the time at a position."""
        return self.times.labels[int(np.searchsorted(self.positions, t))]


@dataclass(frozen=True, slots=True)
class Meaning:
    """States that the entries of a column stand for.

    Parameters
    ----------
    of_entries : mapping from str to str, or None
        The state of each entry; None: entries are states.
    other : str, optional
        The state of all other entries.
    known : tuple of str
        States that stand for themselves: that of absence and, without a mapping, those that are listed.
    """

    of_entries: Mapping[str, str] | None = None
    other: str | None = None
    known: tuple[str, ...] = ()

    @property
    def states(self) -> tuple[str, ...] | None:
        """All states, in the order of the mapping; None where entries are states."""
        if self.of_entries is None:
            return None
        return tuple(dict.fromkeys([*self.of_entries.values(), *([self.other] if self.other else []), *self.known]))

    def of(self, word: str) -> str:
        """The state of an entry; the entry itself where it has none, which is then refused as unknown."""
        if self.of_entries is None:
            return word if self.other is None or word in self.known else self.other
        return word if word in self.known else self.of_entries.get(word, self.other or word)


def entries_named(states: tuple[str, ...] | None, meaning: Meaning | None) -> tuple[str, ...]:
    """Entries that are listed, so that they are none of the words for a missing value."""
    of_entries = None if meaning is None else meaning.of_entries
    return (*(states or ()), *(of_entries or ()))


class _Cells:
    """Number of rows of each time and state, and the first of them."""

    def __init__(self, traces: Rows) -> None:
        most = 5_000_000  # a table of more pairs would not fit in memory
        found = traces.asked(
            f"SELECT time, state, count(*) AS n, min(row) AS row FROM rows GROUP BY time, state LIMIT {most + 1}"
        )
        refuse(
            (not len(found), TraceError(f"the {traces.kind} has a header but no rows")),
            (
                len(found) > most,
                TraceError(
                    f"column {traces.time!r} holds so many different times that they are not a common list of steps (more "
                    f"than {most} pairs of a time and a state); put events on a grid with every='1h' (--set traces.every=1h)"
                ),
            ),
        )
        self.traces = traces
        self.times, self.time_of = distinct_entries(found.column("time"))
        self.states, self.state_of = distinct_entries(found.column("state"))
        self.n, self.row = integers(found, "n"), integers(found, "row")

    def place(self, chosen: BoolArray) -> str:
        """Name of the first row of some cells."""
        return self.traces.place(int(self.row[chosen].min()))

    def refuse(self, role: str, chosen: BoolArray, advice: str, name: str | None = None) -> None:
        """Raise `TraceError` that names the first row of some cells, in which a column has no value, if there is one."""
        if chosen.any():
            first = int(np.flatnonzero(chosen)[np.argmin(self.row[chosen])])
            entries, of = (self.times, self.time_of) if role == "time" else (self.states, self.state_of)
            entry, n = entries[int(of[first])].as_py(), int(self.n[chosen].sum())
            raise _no_value(name or getattr(self.traces, role), self.place(chosen), entry, n, advice)


def encoded(
    traces: Rows,
    states: tuple[str, ...] | None,
    *,
    times: TimesOf | None = None,
    gaps: bool = True,
    wide: bool = False,
    meaning: Meaning | None = None,
) -> Encoded:
    """Interpret the entries of a table.

    Parameters
    ----------
    traces : Rows
        Columns user, time, state and row.
    states : tuple of str, optional
        The public domain; by default the states that occur, sorted.
    times : function, optional
        Returns the times and their order from the distinct entries of the column. Default: the entries themselves.
    gaps : bool
        Whether rows without a state are skipped rather than refused.
    wide : bool
        Whether every time is a column of its own, for messages.
    meaning : Meaning, optional
        States that entries stand for.

    Raises
    ------
    TraceError, StateError
    """
    traces, n_users = _with_users(traces)
    cells = _Cells(traces)
    raw = values(cells.times)
    cells.refuse("time", missing(raw)[cells.time_of], "drop the row or fill it in")
    raw_states = values(cells.states)
    empty = missing(raw_states, entries_named(states, meaning), traces.missing_words)
    known = (
        ordered_times(raw, traces.time, lambda entry: cells.place((raw == entry)[cells.time_of]))
        if times is None
        else times(raw)
    )
    t = known.codes[cells.time_of]
    lacking = empty[cells.state_of] & (not gaps)
    if wide and lacking.any():
        first = int(t[lacking].min())
        advice = "if the person was not observed then, say so with gaps=True (--set traces.gaps=true)"
        cells.refuse("state", lacking & (t == first), advice, known.labels[first])
    cells.refuse("state", lacking, "fill it in, or drop the row if the person was not observed then")
    domain, codes = _domain(cells, raw_states, empty, states, meaning)
    if states is None:
        _refuse_identifiers(cells, len(domain), empty, "the table" if wide else f"column {traces.state!r}")
    positions = np.cumsum(np.concatenate([[0], 2 - known.consecutive.astype(np.int64)]))
    s = codes[cells.state_of]
    return Encoded(
        _joined(cells, known, positions, codes),
        domain,
        known,
        positions,
        np.stack([t, s, cells.n])[:, s >= 0],
        n_users,
    )


def _no_value(label: str, place: str, entry: object, n: int, advice: str) -> TraceError:
    return TraceError(f"column {label!r} has no value in {place} (got {entry!r}; {plural(n, 'such cell')}); {advice}")


def refuse_missing(traces: Rows, role: str) -> None:
    """Raise `TraceError` that names the first row in which the column `role` has no value, if there is one."""
    # Fractions as text: a filter by NaN is pushed down to Parquet, whose statistics leave NaN out: DuckDB 2.0 finds none.
    has_words = traces.kinds[role] in {TEXT, FRACTIONS}
    wrong = traces.then(
        f"SELECT {role} AS entry, row FROM rows "
        f"WHERE {traces.is_missing(f'CAST({role} AS STRING)') if has_words else f'{role} IS NULL'}"
    )
    for first in wrong.asked("SELECT *, count(*) OVER () AS n FROM rows ORDER BY row, entry LIMIT 1").to_pylist():
        place = traces.place(first["row"])
        raise _no_value(getattr(traces, role), place, first["entry"], first["n"], "drop the row or fill it in")


def _with_users(traces: Rows) -> tuple[Rows, int]:
    """People by names without blanks around them, and how many they are."""
    control = traces.holds_control(stripped("word"))
    query = (
        f"SELECT count(*) AS n, count(*) FILTER (WHERE {traces.is_missing('word')}) AS missing, "
        f"count(*) FILTER (WHERE word <> {stripped('word')}) AS blanks, count(*) FILTER (WHERE {control}) AS control "
        "FROM (SELECT CAST(user AS STRING) AS word FROM rows GROUP BY user) AS people"
    )
    people = traces.in_parts(lambda part: part.then(query))
    found = {name: int(integers(people, name).sum()) for name in people.column_names}
    if found["missing"]:
        refuse_missing(traces, "user")
    if found["control"]:
        names = traces.then(f"SELECT {stripped('CAST(user AS STRING)')} AS word, row FROM rows")
        first = names.asked(f"SELECT word, row FROM rows WHERE {control} ORDER BY row, word LIMIT 1").to_pylist()[0]
        printable(first["word"], f"user name in {traces.place(first['row'])}")
    if not found["blanks"]:
        return traces, found["n"]
    whole = without_blanks(traces)
    return whole, whole.asked(query).to_pylist()[0]["n"]


def _domain(
    cells: _Cells, raw: Column, empty: BoolArray, states: tuple[str, ...] | None, meaning: Meaning | None
) -> tuple[tuple[str, ...], IntArray]:
    """The public domain, and the position of each raw entry in it; -1 of what is missing."""
    if empty.all():
        raise TraceError("every cell is empty")
    words = text(raw)
    if meaning is not None:
        words = np.array([word if none else meaning.of(word) for none, word in zip(empty, words, strict=True)], object)
        states = states or meaning.states
    domain = state_names(in_order(set(words[~empty]))) if states is None else states
    position = {name: k for k, name in enumerate(domain)}
    codes = np.array(
        [-1 if none else position.get(word, -2) for none, word in zip(empty, words, strict=True)], np.int64
    )
    unknown = codes[cells.state_of] == -2
    if unknown.any():
        first_rows = zip(cells.row[unknown].tolist(), words[cells.state_of[unknown]], strict=True)
        named = list(dict.fromkeys(word for _, word in sorted(first_rows)))
        for word in named:
            require_unlike(word, {appearance(name): name for name in domain})
        where = f" ({cells.place(unknown)})" if cells.traces.has_order else ""
        raise StateError(f"state {listed(named)} is not among the expected states {listed(domain)}{where}")
    if len(domain) < 2:
        raise TraceError(f"expected at least 2 different states, got only {listed(domain)}; one state leaks nothing")
    return domain, codes


def _refuse_identifiers(cells: _Cells, n_names: int, empty: BoolArray, holder: str) -> None:
    """Raise `TraceError` where most of many values occur once, as those of a column of identifiers."""
    n_rows = int(cells.n[~empty[cells.state_of]].sum())
    if n_names >= 1_000 and n_rows < 2 * n_names:  # so many states that nobody listed occur twice on average
        raise TraceError(
            f"{holder} has {n_names} different states in {n_rows} observations, as identifiers have: name the column of "
            "states with state=... (--set traces.state=NAME), or list all states with states=... (--set traces.states=A,B)"
        )


def _joined(cells: _Cells, known: Times, positions: IntArray, codes: IntArray) -> Rows:
    """The rows with positions in place of their words; those without a state are gone."""
    linked = np.concatenate([[0], known.consecutive, [0]])
    t = known.codes
    columns = {"t": positions[t], "came": linked[t], "stays": linked[t + 1]}
    # Four bytes for a position, since what is sorted should be small.
    times = meanings("time", cells.times, {name: column.astype(np.int32) for name, column in columns.items()})
    states = meanings("state", cells.states, {"s": codes.astype(np.int32)})
    joined = (
        f"SELECT {cells.traces.identity}, t, s, came, stays FROM rows "
        "JOIN {times} AS times USING (time) JOIN {states} AS states USING (state) WHERE s >= 0"
    )
    return cells.traces.then(joined, times=times, states=states)
