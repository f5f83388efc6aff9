"""Tables of counts in place of traces, from files or frames."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from temporaldp.base.errors import InputError, StateError, TraceError
from temporaldp.base.names import appearance, in_order, listed, require_unlike, state_names
from temporaldp.base.values import IntArray
from temporaldp.data.files.traces import any_table, named, source_name
from temporaldp.data.tables.counted import CountedTraces, CountsByName, dense_counts
from temporaldp.data.tables.moments import WORD, Times, moment, ordered_labels, ordered_times


def read_counts(
    *,
    transitions: Any = None,
    counts: Any = None,
    states: Iterable[object] | None = None,
    by: str | None = None,
    where: str | None = None,
    delimiter: str | None = None,
) -> CountedTraces:
    """Read tables of counts in place of traces. Counts are exact, hence private.

    Parameters
    ----------
    transitions : path or table, optional
        Columns ``from``, ``to`` and ``count``: number of transitions from each state to each other between times that are one
        step apart; per person with a column ``user``, per group with the column `by`. Rows add up.
    counts : path or table, optional
        Columns ``time``, ``state`` and ``count``: number of people in each state at each time. Rows add up.
    states : sequence of names, optional
        The public domain, in this order; by default the states that occur in either table, sorted.
    by : str, optional
        Column with the group.
    where : str, optional
        SQL condition on the rows of files, as for `read_traces`; it applies to both tables.
    delimiter : str, optional
        Delimiter of CSV files.

    Raises
    ------
    InputError, TraceError, StateError, MissingFileError
        There is no table, a column is missing, a count is not a whole number >= 0, or a state is unknown.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"from": ["a", "a", "b"], "to": ["a", "b", "a"], "count": [7, 3, 2]})
    >>> read_counts(transitions=table).transition_counts()
    array([[7, 3],
           [2, 0]])
    """
    if transitions is None and counts is None:
        raise InputError("expected a table of transitions, of counts, or both")
    moved = None if transitions is None else _Rows(transitions, ("from", "to"), ("user", by), delimiter, where)
    stood = None if counts is None else _Rows(counts, ("time", "state"), (), delimiter, where)
    words = [rows.columns[key] for rows in (moved, stood) if rows for key in rows.keys if key != "time"]
    domain = state_names(in_order(set(np.concatenate(words))) if states is None else states)
    made: dict[str, Any] = {}
    if moved is not None:
        cells = np.stack([moved.positions("from", domain), moved.positions("to", domain), moved.counts])
        made["transitions"] = dense_counts(cells, len(domain))
        for column, field in (("user", "of_users"), (by, "of_groups")):
            if column in moved.columns:
                names, whose = np.unique(moved.columns[column], return_inverse=True)
                made[field] = CountsByName(names, whose, cells, len(domain))
    if stood is not None:
        times = stood.times()
        histogram = np.zeros((len(times.labels), len(domain)), dtype=np.int64)
        np.add.at(histogram, (times.codes, stood.positions("state", domain)), stood.counts)
        made |= {"histogram": histogram, "times": times}
    return CountedTraces(domain, **made)


class _Rows:
    """The rows of a table of counts, checked: the columns `keys` and count, and of `others` those that are there."""

    def __init__(
        self,
        source: Any,
        keys: tuple[str, str],
        others: tuple[str | None, ...],
        delimiter: str | None,
        where: str | None,
    ) -> None:
        from temporaldp.data.tables.layouts import Spelling, name_sql, require_columns
        from temporaldp.data.tables.relations import missing, text, values

        self._name, self.keys = source_name(source, None), keys
        with named(self._name):
            table, _ = any_table(source, "long", delimiter, where=where)
            require_columns(table, {key: key for key in (*keys, "count")}, delimiter=True)
            names = [name for name in table.header if name in {*keys, "count", *others}]
            columns = [Spelling().sql(table, name) if name == "time" else name_sql(table, name) for name in names]
            read = table.rows.asked(f"SELECT {', '.join(columns)} FROM rows ORDER BY row").columns
            raw = {name: values(column.combine_chunks()) for name, column in zip(names, read, strict=True)}
            for key in (*keys, "count"):
                if (empty := missing(raw[key])).any():
                    raise TraceError(f"column {key!r} has no value in data row {int(np.argmax(empty)) + 1}")
            self._raw, self.columns = raw, {name: text(column) for name, column in raw.items()}
            if bad := [word for word in self.columns["count"] if not re.fullmatch(r"\d{1,18}", word)]:
                raise TraceError(f"expected whole numbers from 0 in column 'count', got {bad[0]!r}")
            self.counts = self.columns["count"].astype(np.int64)

    def positions(self, name: str, domain: tuple[str, ...]) -> IntArray:
        """Return the position in `domain` of each state of a column."""
        place = {state: k for k, state in enumerate(domain)}
        words = self.columns[name]
        if unknown := in_order({word for word in words if word not in place}):
            for word in unknown:
                require_unlike(word, {appearance(state): state for state in domain})
            raise StateError(
                f"{self._name}: state {listed(unknown)} in column {name!r} is not among the expected states {listed(domain)}"
            )
        return np.array([place[word] for word in words], dtype=np.int64)

    def times(self) -> Times:
        """The column of times, in order."""
        labels, label_of = np.unique(self.columns["time"], return_inverse=True)
        with named(self._name):
            # s00, s01, ... are ordered as columns of a wide table
            header = ordered_labels(labels.tolist()) if moment(labels[0]).kind.startswith(WORD) else None
            if header is None:
                return ordered_times(self._raw["time"], "time")
        return replace(header, codes=header.codes[label_of])
