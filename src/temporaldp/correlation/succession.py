"""What follows what in an encoded frame: one window over each person's rows, and a small table of sums.

Where the frame can be read in parts, each is asked alone, and the sums are added. The row before each row is known: a
transition is counted where the two are one step apart. What a person is between two rows that are further apart is decided by
`Between`: nothing; what they were before; or absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce
from typing import Any

import numpy as np

from temporaldp.correlation.encoding import Encoded, place_of, summed
from temporaldp.correlation.frames import Column, TraceFrame, integers, values, words
from temporaldp.correlation.states import distinct
from temporaldp.correlation.traces import IntArray
from temporaldp.errors import TraceError
from temporaldp.extras import needing

with needing("tables"):
    import narwhals as nw


class Between(Enum):
    """What somebody is at a time without a row."""

    UNKNOWN = "unknown"
    LAST = "last"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, eq=False)
class Succession:
    """How often each value follows each other, in all or by group or person.

    Parameters
    ----------
    whose : array, shape (m,), or None
        The group or person of each entry.
    cells : int array, shape (3, m)
        From, to, and how many.
    """

    whose: Column | None
    cells: IntArray

    def plus(self, other: Succession) -> Succession:
        """Both together."""
        cells = np.concatenate([self.cells, other.cells], axis=1)
        if self.whose is None or other.whose is None:
            return Succession(None, summed(cells))
        entries, position = distinct(np.concatenate([self.whose, other.whose]))
        n = int(cells[:2].max(initial=0)) + 1
        rows, after, counts = summed(np.stack([position * n + cells[0], *cells[1:]]))
        return Succession(entries[rows // n], np.stack([rows % n, after, counts]))


def _int(condition: nw.Expr) -> nw.Expr:
    return condition.cast(nw.Int64())


def _order(found: Encoded, *, by_time: bool) -> list[str]:
    """By what a person's rows are ordered: by time, or as they stand where that is to be checked."""
    rows = ["row"] if found.frame.has_rows else []
    return ["t", *rows] if by_time or not rows else rows


def ordered(found: Encoded, *, by_time: bool, rows: bool = False) -> nw.LazyFrame[Any]:
    """Every row with the one before it of the same person; with the number of that row if asked."""
    order = _order(found, by_time=by_time)
    names = ("t", "s", *(["row"] if rows and found.frame.has_rows else []))
    before = {f"{name}_before": nw.col(name).shift(1).over("user", order_by=order) for name in names}
    return found.frame.frame.with_columns(**before)


def succession_query(
    found: Encoded, between: Between, *, by_time: bool, by: str | None = None, everybody: bool = False
) -> nw.LazyFrame[Any]:
    """Sums for every pair of a value and the one before it; of all, or by the column `by`.

    With `everybody`, whoever has no transition at all is among them.
    """
    pairs = ordered(found, by_time=by_time)
    t, before = nw.col("t"), nw.col("t_before")
    keys = [*([by] if by else []), "s_before", "s"]
    sums = {"falls": _int(t < before).sum(), "repeats": _int(t == before).sum()}
    if between is Between.UNKNOWN:
        near = (t == before + 1) & nw.col("linked")
        if by is not None and not everybody:
            return pairs.filter(near).group_by(*keys).agg(nw.len().alias("near"))
        return pairs.group_by(*keys).agg(near=_int(near).sum(), **sums)
    order = _order(found, by_time=by_time)
    following = nw.col("t").shift(-1).over("user", order_by=order)
    pairs = pairs.with_columns(is_last=following.is_null())
    n_times = len(found.times.labels)
    if between is Between.LAST:
        tail = nw.when(nw.col("is_last")).then(n_times - 1 - t).otherwise(0)
        return pairs.group_by(*keys).agg(
            near=_int(before < t).sum(), kept=(t - before - 1).sum(), tail=tail.sum(), **sums
        )
    after = nw.col("linked_after").shift(1).over("user", order_by=order)
    reached = nw.col("links_after").shift(1).over("user", order_by=order)
    pairs = pairs.with_columns(left=after, reached=reached)
    total = int(found.times.consecutive.sum())
    far, first, last = t > before + 1, before.is_null(), nw.col("is_last")
    idle = nw.when(far).then(nw.col("links_before") - nw.col("reached")).otherwise(0)
    earlier = nw.when(first).then(nw.col("links_before")).otherwise(0)
    later = nw.when(last).then(total - nw.col("links_after")).otherwise(0)
    return pairs.group_by(*keys).agg(
        near=_int((t == before + 1) & nw.col("linked")).sum(),
        left=_int(far & nw.col("left")).sum(),
        came=_int((far | first) & nw.col("linked")).sum(),
        ended=_int(last & nw.col("linked_after")).sum(),
        idle=idle.sum(),
        outside=(earlier + later).sum(),
        **sums,
    )


def assembled(table: nw.DataFrame[Any], between: Between, n_states: int, by: str | None = None) -> Succession:
    """The sums as transitions from one value to another; `n_states` counts the absent, who are the last."""
    columns = {name: integers(table.get_column(name)) for name in table.columns if name not in {by, "falls", "repeats"}}
    before, after = columns["s_before"], columns["s"]
    absent = np.full(len(after), n_states - 1, np.int64)
    parts = [(before, after, columns["near"])]
    if between is Between.LAST:
        parts += [(before, before, columns["kept"]), (after, after, columns["tail"])]
    if between is Between.ABSENT:
        parts += [
            (before, absent, columns["left"]),
            (absent, after, columns["came"]),
            (after, absent, columns["ended"]),
            (absent, absent, columns["idle"]),
            (absent, absent, columns["outside"]),
        ]
    stacked = np.concatenate([np.stack(part) for part in parts], axis=1)
    counted = (stacked[2] > 0) & (stacked[:2] >= 0).all(axis=0)
    whose = None if by is None else np.tile(values(table.get_column(by)), len(parts))[counted]
    return Succession(whose, stacked[:, counted])


def successions(found: Encoded, between: Between, n_states: int, *, by: str) -> Iterator[Succession]:
    """Transitions by the column `by`, one part of the frame after the other; `n_states` counts the absent, who are the last."""

    def asked(part: TraceFrame) -> Succession:
        query = succession_query(replace(found, frame=part), between, by_time=True, by=by)
        return assembled(part.collected(query), between, n_states, by)

    return found.frame.of_parts(asked)


def whole_succession(found: Encoded, between: Between, n_states: int, *, by_time: bool) -> Succession:
    """Transitions of everybody together.

    Raises
    ------
    TraceError
        Times out of order, unless people are ordered `by_time`; two states at one time.
    """
    fallen: list[Encoded] = []
    repeated: list[Encoded] = []
    repetitions = 0

    def asked(part: TraceFrame) -> Succession:
        nonlocal repetitions
        inside = replace(found, frame=part)
        table = part.collected(succession_query(inside, between, by_time=by_time))
        if not by_time and _total(table, "falls"):
            fallen.append(inside)
        if n := _total(table, "repeats"):
            repeated.append(inside)
            repetitions += n
        return assembled(table, between, n_states)

    total = reduce(Succession.plus, found.frame.of_parts(asked))
    if fallen:
        raise _disorder(fallen)
    if repeated:
        raise _repetition(repeated, repetitions)
    return total


def _total(table: nw.DataFrame[Any], name: str) -> int:
    return int(integers(table.get_column(name)).clip(0).sum())


def _disorder(parts: Sequence[Encoded]) -> TraceError:
    """The refusal of times out of order: the first of the first person."""
    t, before = nw.col("t"), nw.col("t_before")
    first = _first(parts, lambda part: ordered(part, by_time=False, rows=True).filter(t < before), "row")
    found = parts[0]
    label, earlier = (found.times.labels[_one(first, name)] for name in ("t", "t_before"))
    return TraceError(
        f"times are not in order: user {_user(first)!r} has {label!r} ({place_of(found.frame, first)}) after {earlier!r} "
        f"({place_of(found.frame, first, 'row_before')}); if that column is the time, sort with "
        + found.frame.source.advice("--set traces.sort=true", "sort=True")
    )


def _repetition(parts: Sequence[Encoded], n: int) -> TraceError:
    """The refusal of two states of a person at one time, of `n` that there are."""
    t, before, found = nw.col("t"), nw.col("t_before"), parts[0]
    order = ["t", *(["row"] if found.frame.has_rows else [])]
    first = _first(parts, lambda part: ordered(part, by_time=True, rows=True).filter(t == before), *order)
    one, two = found.states[_one(first, "s_before")], found.states[_one(first, "s")]
    where = f"{one!r}, {two!r}"
    if found.frame.has_rows:
        rows = _joined(place_of(found.frame, first, "row_before"), place_of(found.frame, first))
        where = f"{rows}: {where}"
    return TraceError(
        f"user {_user(first)!r} has two states at time {found.times.labels[_one(first, 't')]!r} ({where}); "
        f"{n} such repetitions; keep one row per user and time"
    )


def _joined(one: str, two: str) -> str:
    """``data rows 1 and 2`` where both are of one file."""
    same = one.split(" of ")[1:] == two.split(" of ")[1:]
    numbers = [word.split(" of ")[0].removeprefix("data row ") for word in (one, two)]
    if not same:
        return f"{one} and {two}"
    return f"data rows {numbers[0]} and {numbers[1]}" + "".join(f" of {rest}" for rest in one.split(" of ")[1:])


def _first(parts: Sequence[Encoded], wrong: Callable[[Encoded], nw.LazyFrame[Any]], *order: str) -> nw.DataFrame[Any]:
    """Of the rows that are wrong, the first of the first person, people in order of their names."""
    found = []
    for part in parts:
        query = wrong(part)
        named = query.with_columns(name_of_user=words("user", query.collect_schema()["user"]))
        found.append(part.frame.collected(named.sort("name_of_user", *order).head(1)))
    return nw.concat(found).sort("name_of_user").head(1)


def _user(first: nw.DataFrame[Any]) -> str:
    return str(first.get_column("name_of_user").to_list()[0]).strip()


def _one(first: nw.DataFrame[Any], name: str) -> int:
    return int(first.get_column(name).to_list()[0])
