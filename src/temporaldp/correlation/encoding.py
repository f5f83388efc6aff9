"""Times and values of a frame as positions on their lists; what is missing, unknown or without an order is refused.

One query counts the rows of every time and value. All that the words mean is then decided on their few different spellings, in
Python, once; the frame learns of it by a join.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.correlation.frames import BLANKS, Column, TraceFrame, integers, is_missing, missing, text, values
from temporaldp.correlation.states import CONTROL, distinct, in_order, listed, printable, state_names
from temporaldp.correlation.times import Times, ordered_times
from temporaldp.errors import StateError, TraceError
from temporaldp.extras import needing

with needing("tables"):
    import narwhals as nw

IntArray = NDArray[np.int64]
Domain = tuple[str, ...] | None

MOST_GROUPS = 5_000_000
"""Different pairs of a time and a value: more are no states on a grid of times, and their table would not fit in memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """A frame whose columns t and s are positions, and how many rows there are of each.

    Parameters
    ----------
    frame : TraceFrame
        Columns user, t, s, `links` (how many of the times up to t are one step after the one before), and row and group.
    states : tuple of str
    times : Times
    cells : int array, shape (3, m)
        Times, states and numbers of rows of what occurs.
    n_users : int
    """

    frame: TraceFrame
    states: tuple[str, ...]
    times: Times
    cells: IntArray
    n_users: int


def encoded(
    traces: TraceFrame,
    states: Domain,
    *,
    times: Callable[[Column], Times] | None = None,
    gaps: bool = True,
    wide: bool = False,
) -> Encoded:
    """Decide what the words of a frame mean.

    Parameters
    ----------
    traces : TraceFrame
    states : tuple of str, optional
        The public domain; by default what occurs, sorted.
    times : function, optional
        Gives the times and their order from the different entries of the column; by default what they are themselves.
    gaps : bool
        Whether rows without a state are passed over rather than refused.
    wide : bool
        Whether every time is a column of its own, which a refusal names.

    Raises
    ------
    TraceError, StateError
    """
    schema = traces.frame.collect_schema()
    refuse_missing(traces, "user")
    traces, n_users = _with_users(traces, schema)
    found = traces.collected(traces.frame.group_by("time", "state").agg(nw.len().alias("count")).head(MOST_GROUPS + 1))
    if len(found) == 0:
        raise TraceError(f"the {traces.source.kind} has a header but no rows")
    if len(found) > MOST_GROUPS:
        raise TraceError(
            f"column {traces.source.time!r} holds so many different times that they are no common list of steps (more than "
            f"{MOST_GROUPS} pairs of a time and a state); put events on a grid with every='1h' (--set traces.every=1h)"
        )
    raw_times, time_of = distinct(values(found.get_column("time")))
    raw_states, state_of = distinct(values(found.get_column("state")))
    counts = integers(found.get_column("count"))
    if missing(raw_times).any():
        refuse_missing(traces, "time")
    empty = missing(raw_states, states or ())
    if empty.any() and not gaps and not wide:
        advice = "fill it in, or drop the row if the person was not observed then"
        refuse_missing(traces, "state", states, advice=advice)
    known = _times_of(traces, raw_times, times)
    if empty.any() and not gaps:
        _refuse_empty_cell(traces, raw_times, known, time_of[empty[state_of]], states)
    domain, codes = _domain(traces, raw_states, empty, states)
    traces = _joined(traces, found, (time_of, known), (state_of, codes))
    kept = (codes[state_of] >= 0) & (known.codes[time_of] >= 0)
    cells = np.stack([known.codes[time_of], codes[state_of], counts])[:, kept]
    return Encoded(traces, domain, known, summed(cells), n_users)


def _refuse_empty_cell(
    traces: TraceFrame, raw_times: Column, known: Times, lacking: NDArray[np.intp], states: Domain
) -> None:
    """Raise `TraceError` that names the first of the columns with an empty cell, of which `lacking` are positions."""
    first = lacking[np.argmin(known.codes[lacking])]
    name, inside = known.labels[known.codes[first]], nw.col("time") == raw_times[first]
    how = traces.source.advice("--set traces.gaps=true", "gaps=True")
    advice = f"if the person was not observed then, say so with {how}"
    refuse_missing(traces, "state", states, name=name, within=inside, advice=advice)


def first_row(traces: TraceFrame, condition: nw.Expr, *columns: str) -> dict[str, Any] | None:
    """The first row for which a condition holds, and how many there are; None if there is none."""
    hit = traces.frame.filter(condition)
    n = int(traces.collected(hit.select(nw.len().alias("n"))).get_column("n").to_list()[0])
    if n == 0:
        return None
    chosen = hit.sort("row") if traces.has_rows else hit
    first = traces.collected(chosen.head(1))
    found = {name: first.get_column(name).to_list()[0] for name in columns}
    return found | {"n": n, "where": place_of(traces, first)}


def place_of(traces: TraceFrame, first: nw.DataFrame[Any], column: str = "row") -> str:
    """What the first row of a small result is called; "a row" where rows have no order."""
    return traces.source.place(int(first.get_column(column).to_list()[0])) if traces.has_rows else "a row"


def refuse_missing(
    traces: TraceFrame,
    role: str,
    states: Domain = None,
    *,
    name: str | None = None,
    within: nw.Expr | None = None,
    advice: str = "drop the row or fill it in",
) -> None:
    """Raise `TraceError` that names the first row in which a column has no value, if there is one.

    `name` is what the column is called, and `within` the rows that are looked at, where that is not all of the role's column.
    """
    empty = is_missing(role, traces.frame.collect_schema()[role], states or ())
    found = first_row(traces, empty if within is None else within & empty, role)
    if found is not None:
        raise TraceError(
            f"column {name or traces.source.column(role)!r} has no value in {found['where']} (got {found[role]!r}; "
            f"{found['n']} such cells); {advice}"
        )


def _with_users(traces: TraceFrame, schema: Any) -> tuple[TraceFrame, int]:
    """People by names without blanks around them, and how many they are."""
    column = nw.col("user")
    stripped = column.str.strip_chars(BLANKS)
    marks = {"n": nw.len()}
    if isinstance(schema["user"], nw.String):
        marks["blanks"] = (stripped != column).cast(nw.Int64()).sum()
        marks["control"] = stripped.str.contains(CONTROL).cast(nw.Int64()).sum()

    def asked(part: TraceFrame) -> dict[str, int]:
        people = part.frame.select("user").group_by("user").agg(nw.len().alias("rows"))
        sums = part.collected(people.select(**marks))
        return {name: int(sums.get_column(name).to_list()[0] or 0) for name in marks}

    parts = list(traces.of_parts(asked))
    found = {name: sum(part[name] for part in parts) for name in marks}
    if found.get("control"):
        row = first_row(traces, stripped.str.contains(CONTROL), "user")
        assert row is not None
        printable(str(row["user"]).strip(), f"user name in {row['where']}")
    if not found.get("blanks"):
        return traces, found["n"]
    cleaned = replace(traces.with_frame(traces.frame.with_columns(stripped)), cuts=())
    return cleaned, _n_users(cleaned)


def _n_users(traces: TraceFrame) -> int:
    def asked(part: TraceFrame) -> int:
        found = part.collected(part.frame.select("user").unique().select(nw.len().alias("n")))
        return int(found.get_column("n").to_list()[0])

    return sum(traces.of_parts(asked))


def _times_of(traces: TraceFrame, raw: Column, times: Callable[[Column], Times] | None) -> Times:
    if times is not None:
        return times(raw)

    def place(entry: object) -> str:
        found = first_row(traces, nw.col("time") == entry)
        return "a row" if found is None else str(found["where"])

    return ordered_times(raw, traces.source.time, place)


def _domain(
    traces: TraceFrame, raw: Column, empty: NDArray[np.bool_], states: Domain
) -> tuple[tuple[str, ...], IntArray]:
    """The public domain, and the position of each raw entry in it; -1 of what is missing."""
    if empty.all():
        raise TraceError("every cell is empty")
    words = text(raw)
    domain = state_names(in_order(set(words[~empty]))) if states is None else states
    position = {name: k for k, name in enumerate(domain)}
    unknown = [k for k in np.flatnonzero(~empty) if words[k] not in position]
    if unknown:
        raise _unknown(traces, {raw[k]: words[k] for k in unknown}, domain)
    if len(domain) < 2:
        raise TraceError(f"expected at least 2 different states, got only {listed(domain)}; one value leaks nothing")
    return domain, np.array([-1 if none else position[word] for none, word in zip(empty, words, strict=True)], np.int64)


def _unknown(traces: TraceFrame, words: dict[Any, str], domain: tuple[str, ...]) -> StateError:
    """The refusal of states beyond the public list, in order of appearance where rows have one."""
    where, named = "", list(words.values())
    if traces.has_rows:
        first = traces.frame.filter(nw.col("state").is_in(list(words))).group_by("state").agg(nw.col("row").min())
        found = traces.collected(first.sort("row"))
        named = list(text(values(found.get_column("state"))))
        where = f" ({place_of(traces, found)})"
    return StateError(f"state {listed(named)} is not among the expected states {listed(domain)}{where}")


def _joined(
    traces: TraceFrame,
    found: nw.DataFrame[Any],
    times: tuple[NDArray[np.intp], Times],
    states: tuple[NDArray[np.intp], IntArray],
) -> TraceFrame:
    """The frame with positions in place of its words; rows without a state are gone."""
    (time_of, known), (state_of, codes) = times, states
    links = np.concatenate([[0], np.cumsum(known.consecutive)]).astype(np.int64)
    ends = np.pad(links, 1, mode="edge")
    t = known.codes
    columns = {
        "t": t,
        "linked": (links[t] - ends[t]).astype(bool),
        "linked_after": (ends[t + 2] - links[t]).astype(bool),
        "links_before": ends[t],
        "links_after": ends[t + 2],
    }
    by_time = traces.beside(_spellings(found, "time", time_of, t >= 0, columns))
    by_state = traces.beside(_spellings(found, "state", state_of, codes >= 0, {"s": codes}))
    frame = traces.frame.join(by_time, on="time", how="inner").join(by_state, on="state", how="inner")
    return traces.with_frame(frame.drop("time", "state"))


def _spellings(
    found: nw.DataFrame[Any],
    name: str,
    inverse: NDArray[np.intp],
    kept: NDArray[np.bool_],
    columns: dict[str, NDArray[Any]],
) -> nw.DataFrame[Any]:
    """Each different entry that is kept, as it stands in the table, and what it means."""
    _, first = np.unique(inverse, return_index=True)  # ascending: they are numbered in order of appearance
    new = np.zeros(len(found), bool)
    new[first[kept]] = True
    backend = found.implementation
    chosen: nw.DataFrame[Any] = found.filter(_series("new", new, backend)).select(name)
    return chosen.with_columns(*(_series(key, column[kept], backend) for key, column in columns.items()))


def _series(name: str, column: NDArray[Any], backend: Any) -> nw.Series[Any]:
    """A column of positions or of truth values; four bytes for a position, since what is sorted should be small."""
    kind = nw.Boolean() if column.dtype == bool else nw.Int32()
    if not backend.is_pyarrow():
        return nw.new_series(name, column, kind, backend=backend)
    # From its bytes: to look at an array or a list, Arrow loads pandas where that is installed.
    pa = backend.to_native_namespace()
    packed = np.packbits(column, bitorder="little") if column.dtype == bool else column.astype(np.int32)
    made = pa.Array.from_buffers(
        pa.bool_() if column.dtype == bool else pa.int32(), len(column), [None, pa.py_buffer(packed)]
    )
    series: nw.Series[Any] = nw.from_native(pa.chunked_array([made]), series_only=True)
    return series.alias(name)


def summed(cells: IntArray) -> IntArray:
    """One entry for each pair of positions, which are the first two rows; the third are numbers."""
    one, other, counts = cells
    n = int(other.max(initial=0)) + 1
    keys, inverse = np.unique(one * n + other, return_inverse=True)
    return np.stack([keys // n, keys % n, np.bincount(inverse, counts, len(keys)).astype(np.int64)])
