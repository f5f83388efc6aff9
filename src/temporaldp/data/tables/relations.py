"""A table of any kind as rows for SQL queries, by DuckDB or, with the same text, by Spark.

A query calls the rows that it is about ``rows``, and small tables by the names of `SMALL_TABLES`, such as ``{times}``.
Queries about queries become one text, which the engine plans as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.errors import InputError, TraceError
from temporaldp.base.extras import needing
from temporaldp.base.names import CONTROL
from temporaldp.base.progress import part as within

with needing("tables"):
    import duckdb
    import pyarrow as pa
    from pyarrow import types

Column: TypeAlias = NDArray[Any]
Arrow: TypeAlias = Any
"""A PyArrow table, column, schema or type."""

MISSING_WORDS = ("", "nan", "na", "n/a", "null", "none", "<na>")
"""Spellings of a missing value in table programs, unless others are given; compared without case and surrounding blanks."""

BLANKS = "".join(
    map(chr, (*range(9, 14), *range(28, 33), 133, 160, 5760, *range(8192, 8203), 8232, 8233, 8239, 8287, 12288))
)
"""Characters that `str.strip` removes."""

NO_ENTRIES, WHOLE, FRACTIONS, TEXT = "nothing", "whole numbers", "numbers with fractions", "text"
CLOCK_TIMES, INSTANTS = "times without a zone", "times with a zone"
CONTENTS: tuple[tuple[Callable[[Arrow], bool], str], ...] = (
    (types.is_null, NO_ENTRIES),
    (types.is_uint64, "whole numbers of 64 bits without sign"),
    (types.is_integer, WHOLE),
    (types.is_decimal, "decimal numbers"),
    (types.is_floating, FRACTIONS),
    (types.is_string, TEXT),
    (types.is_large_string, TEXT),
    (lambda kind: str(kind) == "string_view", TEXT),
    (types.is_boolean, "truth values"),
    (types.is_date, CLOCK_TIMES),
    (lambda kind: types.is_timestamp(kind) and kind.tz is None, CLOCK_TIMES),
    (types.is_timestamp, INSTANTS),
)
"""Types of columns of names and times."""

SMALL_TABLES = ("times", "states", "moments", "ends", "steps")
"""Names of the tables that queries join."""

UNIX = {"unix": 1_000_000, "unix_ms": 1_000}
"""Names of formats of times that are numbers since 1970 in UTC: in seconds, in milliseconds; microseconds in one."""

PLAIN = r"^(19|20)\d\d-\d\d-\d\d([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.]\d{1,6})?)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)?)?$"
OFFSET = r":\d\d([.]\d+)?(Z|[+-]\d\d:\d\d)$"
"""ISO dates and timestamps that DuckDB reads as Python does, and those of them with an offset from UTC."""

READING = "reading traces"
"""Name of the operation in progress reports."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of a DuckDB relation, or of a query about it.

    Parameters
    ----------
    origin : DuckDBPyRelation
    has_order : bool
        Whether rows have an order, by the column `row`; without it, all rows are number 0.
    text : str
        The query, in which ``{origin}`` stands for the relation.
    beside : mapping from names to Arrow tables
        The small tables.
    cuts : tuple
        Users between which parts can be read one by one; none where that would read all rows each time.
    kind : {"table", "file"}
        Name of the kind of table, for messages.
    place : function
        Name of row k (from 0), for messages: ``data row 5``, or "a row" where rows have no order.
    run : function
        Calls a function that queries, and reports the progress of long queries.
    user, time, state, group : str
        Names of the columns, for messages.
    missing_words : tuple of str
        Spellings of a missing value, in lower case.
    keep : function, optional
        Stores a relation, and returns the stored one; None where queries are better asked again.
    """

    origin: Any
    has_order: bool
    text: str = "SELECT * FROM {origin}"
    beside: Mapping[str, Arrow] = field(default_factory=dict)
    cuts: tuple[Any, ...] = ()
    kind: str = "table"
    place: Callable[[int], str] = lambda row: "a row"
    run: Callable[[Callable[[], Any]], Any] = lambda query: query()
    user: str = "user"
    time: str = "time"
    state: str = "state"
    group: str | None = None
    missing_words: tuple[str, ...] = MISSING_WORDS
    keep: Callable[[Any], Any] | None = None

    def then(self, query: str, **beside: Arrow) -> Self:
        """The rows of a query about these."""
        nested = query.replace("FROM rows", f"FROM ({self.text}) AS rows")
        return replace(self, text=nested, beside={**self.beside, **beside})

    def asked(self, query: str) -> Arrow:
        """The result of a query about these rows, as an Arrow table in memory."""
        return self.run(self.then(query).relation().to_arrow_table)

    def kept(self) -> Self:
        """The rows as a stored table: later queries neither read a file nor compute this query again."""
        if self.keep is None:
            return self
        return replace(self, origin=self.keep(self.relation()), text="SELECT * FROM {origin}", beside={})

    def spelled_moments(self) -> tuple[str, bool] | None:
        """SQL of the moments of a text column of times, and whether they are in UTC, where all are plain ISO; else None."""
        plain, ahead = (f"regexp_matches(time, {literal(pattern)})" for pattern in (PLAIN, OFFSET))
        (found,) = self.asked(
            f"SELECT count(*) AS n, count(*) FILTER (WHERE {plain}) AS plain, count(*) FILTER (WHERE {ahead}) AS ahead, "
            "count(TRY_CAST(time AS TIMESTAMPTZ)) AS known "
            "FROM (SELECT DISTINCT time FROM rows WHERE time IS NOT NULL) AS different"
        ).to_pylist()
        if not found["n"] == found["plain"] == found["known"] or found["ahead"] not in {0, found["n"]}:
            return None
        return f"epoch_us(CAST(time AS TIMESTAMP{'TZ' if found['ahead'] else ''}))", bool(found["ahead"])

    def relation(self) -> Any:
        """Lazy relation of DuckDB for the query."""
        # DuckDB finds the small tables by the names of these variables, whichever connection the relation belongs to.
        times, states, moments, ends, steps = map(self.beside.get, SMALL_TABLES)  # noqa: RUF059
        view = f"temporaldp_{id(self.origin)}"  # another relation's query may be going on
        return self.origin.query(view, self.text.format(origin=view, **{name: name for name in SMALL_TABLES}))

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process has its rows in memory: neither the connection nor the file goes with it."""
        names = self.kind, self.user, self.time, self.state, self.group
        return _in_memory, (self.asked("SELECT * FROM rows"), self.has_order, *names)

    @property
    def kinds(self) -> dict[str, str]:
        """Types of the columns, in words."""
        return {column.name: content_of(column.type) for column in self.asked("SELECT * FROM rows LIMIT 0").schema}

    @property
    def parts(self) -> tuple[Self, ...]:
        """Parts of the rows; those of each person are in one part."""
        if not self.cuts:
            return (self,)
        edges = [literal(cut) for cut in self.cuts]
        conditions = (
            f"user < {edges[0]} OR user IS NULL",
            *(f"user >= {first} AND user < {end}" for first, end in pairwise(edges)),
            f"user >= {edges[-1]}",
        )
        whole = replace(self, cuts=())
        return tuple(whole.then(f"SELECT * FROM rows WHERE {condition}") for condition in conditions)

    def in_parts(self, query: Callable[[Self], Self]) -> Arrow:
        """The results of a query about every part, one after the other, as one Arrow table; the progress is reported."""
        parts, tables = self.parts, []
        for k, part in enumerate(parts):
            with within(k / len(parts), (k + 1) / len(parts), READING):
                tables.append(query(part).asked("SELECT * FROM rows"))
        return pa.concat_tables(tables)

    @property
    def identity(self) -> str:
        """Columns that a change of times and states keeps."""
        return "user, row" if self.group is None else "user, row, belongs"

    def order(self, time: str, state: str) -> str:
        """The columns that order a person's rows: by a column of times, then by row, or by state where rows have no order."""
        return f"{time}, row" if self.has_order else f"{time}, {state} NULLS LAST"

    def is_missing(self, text: str) -> str:
        """SQL: whether a text is null or a word for it."""
        # A list (IN) would become a join, for which every text is stripped
        words = literal("\x1f".join(["", *self.missing_words, ""]))
        # Most texts are longer than every such word, and have no blanks to strip, which would take ten times as long
        may_be = f"length({text}) <= {max(map(len, self.missing_words))} OR {may_have_blanks(text)}"
        return (
            f"({text} IS NULL OR CASE WHEN {may_be} THEN "
            f"instr({words}, '\x1f' || lower({stripped(text)}) || '\x1f') > 0 ELSE false END)"
        )

    def instant(self, text: str, time_format: str) -> str:
        """SQL: the time that a text means by a format, null where it means none."""
        if time_format not in UNIX:
            return f"try_strptime({text}, {literal(time_format)})"
        return f"make_timestamptz(TRY_CAST(round(TRY_CAST({text} AS DOUBLE) * {UNIX[time_format]}) AS BIGINT))"

    def words(self, text: str) -> str:
        """SQL: the list of the words of a text, between blanks, commas, semicolons, bars, brackets and quotes."""
        found = rf"regexp_extract_all(coalesce({text}, ''), '[^\s,;|\[\]()''\"]+')"
        return f"CASE WHEN len({found}) = 0 THEN [''] ELSE {found} END"

    def holds_control(self, text: str) -> str:
        """SQL: whether a text holds control characters."""
        return f"regexp_matches({text}, '{CONTROL}')"

    def microseconds(self, time: str) -> str:
        """SQL: microseconds since 1970 of a timestamp."""
        return f"epoch_us({time})"

    def stamp(self, moment: str) -> str:
        """SQL: the timestamp without a zone at so many microseconds since 1970."""
        return f"make_timestamp(CAST({moment} AS BIGINT))"

    def clock(self, moment: str, zone: str) -> str:
        """SQL: what the clock of a zone shows at an instant; both are microseconds since 1970."""
        return f"epoch_us(timezone('{zone}', make_timestamptz({moment})))"


def _in_memory(table: Arrow, has_order: bool, kind: str, user: str, time: str, state: str, group: str | None) -> Rows:
    """The rows of an Arrow table."""
    return Rows(
        duckdb.connect().from_arrow(table), has_order, kind=kind, user=user, time=time, state=state, group=group
    )


@dataclass(frozen=True, slots=True, eq=False)
class SparkRows(Rows):
    """Rows of a PySpark DataFrame, or of a query about it, which the cluster answers."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Refuse: a DataFrame belongs to its session."""
        raise TypeError("cannot pickle traces on Spark; pickle what is estimated from them")

    def asked(self, query: str) -> Arrow:
        """The result of a query about these rows, as an Arrow table in memory."""
        return self.then(query).relation().toArrow()

    def relation(self) -> Any:
        """Lazy DataFrame for the query."""
        session = self.origin.sparkSession
        tables = {name: session.createDataFrame(table) for name, table in self.beside.items()}
        return session.sql(self.text, origin=self.origin, **tables)

    def instant(self, text: str, time_format: str) -> str:
        """Refuse: Spark has other formats."""
        raise InputError(
            "time_format is for files and frames in memory: in Spark, convert the times with to_timestamp first"
        )

    def spelled_moments(self) -> tuple[str, bool] | None:
        """None: text is read spelling by spelling."""
        return None

    def words(self, text: str) -> str:
        """Refuse: sequences are numbered in other ways there."""
        raise InputError("sequences in cells are read from files and frames in memory: in Spark, use posexplode first")

    def holds_control(self, text: str) -> str:
        """SQL: whether a text holds control characters."""
        return f"{text} RLIKE r'{CONTROL}'"

    def microseconds(self, time: str) -> str:
        """SQL: microseconds since 1970 of a timestamp."""
        if self.kinds["time"] == CLOCK_TIMES:  # by way of text with a zone: a cast would take that of the session
            return f"unix_micros(CAST(concat(CAST(CAST({time} AS TIMESTAMP_NTZ) AS STRING), 'Z') AS TIMESTAMP))"
        return f"unix_micros(CAST({time} AS TIMESTAMP))"

    def stamp(self, moment: str) -> str:
        """SQL: the timestamp without a zone at so many microseconds since 1970."""
        seconds = f"CAST(CAST({moment} AS DECIMAL(20, 0)) / 1000000 AS DECIMAL(18, 6))"
        return f"(TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, {seconds}))"

    def clock(self, moment: str, zone: str) -> str:
        """SQL: what the clock of a zone shows at an instant; both are microseconds since 1970."""
        return f"unix_micros(from_utc_timestamp(timestamp_micros({moment}), '{zone}'))"


@dataclass(frozen=True, slots=True)
class SourceTable:
    """Rows with the columns c0, c1, ..., of which `header` gives the names, and row.

    Names of columns are arbitrary, and may differ in capitals only, which some engines do not distinguish.
    """

    rows: Rows
    header: tuple[str, ...]
    kinds: Mapping[str, str]
    """Types of the columns, in words."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Of columns that cannot be read, what they hold: one thing in one place and another in another, or an unknown type."""
    cuts: Callable[[str, int], tuple[Any, ...]] = lambda name, cells: ()
    """Values of a column between which parts of the table can be read one by one, without reading all of it each time; of so
    many cells is a row."""


def table_of(table: Any) -> SourceTable:
    """Any frame as a table. All but DuckDB's relations and Spark's DataFrames are handed to DuckDB, as Arrow tables.

    Rows have an order in what is handed over.

    Raises
    ------
    InputError
        Not a table that narwhals supports.
    TraceError
        A column has mixed types.
    """
    with needing("tables"):
        import narwhals as nw

    known = nw.from_native(table, pass_through=True)
    if not isinstance(known, nw.DataFrame | nw.LazyFrame):
        raise InputError(
            "expected traces (read_traces reads files), or a table (pandas, Polars, PyArrow, a DuckDB relation, a PySpark "
            f"DataFrame), got {type(table).__name__}"
        )
    names = known.collect_schema().names()
    header, unreadable = tuple(map(str, names)), dict[str, str]()
    named = known.rename({name: f"c{k}" for k, name in enumerate(names)})
    unordered = "SELECT *, CAST(0 AS BIGINT) AS row FROM {origin}"
    if known.implementation.is_duckdb():
        rows = Rows(nw.to_native(named), False, unordered, run=_reported)
    elif known.implementation.is_pyspark():
        rows = SparkRows(nw.to_native(named), False, unordered)
    else:
        eager = named.collect() if isinstance(named, nw.LazyFrame) else named
        handed, unreadable = _arrow(eager, header)
        rows = Rows(duckdb.connect().from_arrow(handed), True, place=lambda row: f"data row {row + 1}", run=_reported)
    return SourceTable(rows, header, rows.kinds, unreadable)


def _reported(query: Callable[[], Any]) -> Any:
    """The result of a query; DuckDB's errors as ones of this package, without their messages, which may hold entries."""
    try:
        return query()
    except duckdb.Error as error:
        raise TraceError(
            f"DuckDB cannot read the table ({type(error).__name__}): write its columns as text, numbers or times"
        ) from None


def _arrow(frame: Any, header: tuple[str, ...]) -> tuple[Arrow, dict[str, str]]:
    """An eager frame with row numbers as an Arrow table for DuckDB; and what the columns hold that cannot be read."""
    numbered, unreadable = frame.with_row_index("row"), dict[str, str]()
    try:
        table = numbered.to_arrow()
    except (TypeError, ValueError, NotImplementedError):
        columns = [_column(numbered.get_column(name)) for name in numbered.columns]
        table = pa.table([pa.nulls(len(frame)) if isinstance(one, str) else one for one in columns], numbered.columns)
        unreadable = {name: one for name, one in zip(header, columns[1:], strict=True) if isinstance(one, str)}
    return pa.table([*map(_for_duckdb, table.columns)], table.column_names), unreadable


def _column(series: Any) -> Any:
    """A column of a frame as an Arrow array; what it holds, where Arrow has no such type."""
    with needing("tables"):
        import narwhals as nw

    try:
        return (series.cast(nw.String) if series.dtype in {nw.Int128, nw.UInt128} else series).to_arrow()
    except (TypeError, ValueError, NotImplementedError):
        kind, entries = str(series.to_native().dtype), series.to_list()
        kinds = sorted({type(entry).__name__ for entry in entries if entry is not None})
        if len(kinds) > 1:
            return f"values of several types ({', '.join(kinds)})"
        return f"values of type {kinds[0] if kind == 'object' else kind}"


def _for_duckdb(column: Arrow) -> Arrow:
    """A column as DuckDB reads it: halves as floats, and decimals of more than 38 digits as text."""
    if types.is_float16(column.type):
        return column.cast(pa.float32())
    return column.cast(pa.string()) if types.is_decimal256(column.type) else column


def distinct_entries(column: Arrow) -> tuple[Arrow, NDArray[Any]]:
    """Distinct entries of a column in order of appearance, as an Arrow array, and the position of each entry among them."""
    coded = column.combine_chunks().dictionary_encode("encode")
    return coded.dictionary, np.from_dlpack(coded.indices)


def values(column: Arrow) -> Column:
    """An Arrow array as a NumPy array; missing entries are None, NaN or NaT, times with a zone are in UTC."""
    # Arrow's to_numpy() loads pandas where that is installed, which takes longer than all the rest of reading a small file.
    kind = content_of(column.type)
    if kind in {CLOCK_TIMES, INSTANTS}:
        moments = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).to_pylist()
        return np.array([np.iinfo(np.int64).min if one is None else one for one in moments], "int64").view("M8[us]")
    entries = column.to_pylist()
    if kind == FRACTIONS:
        return np.array(entries, dtype=np.float64)
    return np.array(entries, dtype=object if kind == TEXT or None in entries else None)


def integers(table: Arrow, name: str) -> NDArray[np.int64]:
    """A column of whole numbers without missing entries."""
    return np.from_dlpack(table.column(name).combine_chunks()).astype(np.int64)


def text(column: Column) -> Column:
    """Every entry as stripped text."""
    return np.array([str(entry).strip() for entry in column], dtype=object)


def missing(column: Column, named: tuple[str, ...] = (), words: tuple[str, ...] = MISSING_WORDS) -> NDArray[np.bool_]:
    """Mask of entries that are null, NaN, NaT or a word for them, unless that is the name of a state."""
    if column.dtype.kind in "fM":
        return np.asarray(np.isnan(column) if column.dtype.kind == "f" else np.isnat(column))
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=bool)
    return np.array([one is None or (str(one).strip().lower() in words and one not in named) for one in column])


def meanings(name: str, entries: Arrow, columns: Mapping[str, Column]) -> Arrow:
    """Distinct entries of a column and their meanings, as a small table."""
    # From their bytes: to look at a NumPy array, Arrow loads pandas where that is installed.
    made = (
        pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), [None, pa.py_buffer(column)])
        for column in columns.values()
    )
    return pa.table([entries, *made], [name, *columns])


def table_of_steps(columns: Mapping[str, Column]) -> Arrow:
    """Columns of numbers as a small table."""
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def content_of(arrow: Arrow) -> str:
    """Description of an Arrow type; types that are read alike have the same description."""
    entry = arrow.value_type if types.is_dictionary(arrow) else arrow
    return next((words for is_kind, words in CONTENTS if is_kind(entry)), str(entry))


def stripped(text: str) -> str:
    """SQL: a text without surrounding blanks."""
    return f"trim(BOTH '{BLANKS}' FROM {text})"


def may_have_blanks(text: str) -> str:
    """SQL: whether the first or last character of a text is a blank, or none of ASCII."""
    return " OR ".join(f"{side}({text}, 1) {than}" for side in ("left", "right") for than in ("<= ' '", "> '~'"))


def bare(text: str) -> str:
    """SQL: a text without surrounding blanks; fast where there are none."""
    return f"CASE WHEN {may_have_blanks(text)} THEN {stripped(text)} ELSE {text} END"


def literal(value: Any) -> str:
    """A number or text in SQL."""
    return "'" + value.translate({39: "''", 123: "{{", 125: "}}"}) + "'" if isinstance(value, str) else str(value)


def without_blanks(traces: Rows) -> Rows:
    """The rows with names of people without blanks around them, which make no other person."""
    if traces.kinds["user"] != TEXT:
        return traces
    (found,) = traces.asked(f"SELECT count(*) AS n FROM rows WHERE {may_have_blanks('user')}").to_pylist()
    if not found["n"]:
        return traces
    others = ", ".join(name for name in traces.kinds if name != "user")
    return replace(traces.then(f"SELECT {bare('user')} AS user, {others} FROM rows"), cuts=())
