"""Any table of people, times and values as one lazy frame: pandas, Polars, PyArrow, DuckDB or Spark, through narwhals."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from temporaldp.errors import InputError, TraceError
from temporaldp.extras import needing
from temporaldp.progress import part as within

with needing("tables"):
    import narwhals as nw

Column: TypeAlias = NDArray[Any]

MISSING_WORDS = ("", "nan", "na", "n/a", "null", "none", "<na>")
"""What table programs write for a missing value; compared without case and surrounding blanks."""

BLANKS = "".join(
    map(chr, (*range(9, 14), *range(28, 33), 133, 160, 5760, *range(8192, 8203), 8232, 8233, 8239, 8287, 12288))
)
"""What `str.strip` takes away."""

Answer = TypeVar("Answer")

READING = "reading traces"
"""What is being done, for those who watch how far it is."""

LARGEST_WHOLE = 2.0**62
"""Floats up to this are whole numbers of 64 bits, where they are whole."""

BATCH = 1 << 16
"""Rows that are fetched at once of a result that may be large."""


@atexit.register
def _forget_libraries() -> None:
    """Let DuckDB go before the interpreter does.

    narwhals keeps the modules and types of libraries in caches of its own. If they are still there when the interpreter has
    ended, DuckDB's binding writes a page of what was "leaked" to standard error, after every script.
    """
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "narwhals":
            for value in list(vars(module).values()):
                if callable(forget := getattr(value, "cache_clear", None)):
                    forget()


@dataclass(frozen=True, slots=True)
class Source:
    """Where a frame comes from, for messages and for the work that is not narwhals'.

    Parameters
    ----------
    name : str
        Of the file, or what kind of table it is.
    kind : {"table", "file"}
        How messages speak of it, and whether they tell of options or of arguments.
    place : function
        What row k (from 0) is called: ``data row 5``. Only asked where rows have an order.
    run : function
        Calls a function that queries; where queries take long, it says how far they are.
    user, time, state, group : str
        What the columns were called.
    """

    name: str = ""
    kind: str = "table"
    place: Callable[[int], str] = lambda row: f"data row {row + 1}"
    run: Callable[[Callable[[], Any]], Any] = lambda query: query()
    user: str = "user"
    time: str = "time"
    state: str = "state"
    group: str | None = None

    def advice(self, option: str, argument: str) -> str:
        """What to type: of a file the command's option, of a table the argument of a function."""
        return option if self.kind == "file" else argument

    def column(self, role: str) -> str:
        """What the column with the users, times, states or groups is called in the table."""
        return str(getattr(self, role))


@dataclass(frozen=True, slots=True)
class Table:
    """A lazy frame with the columns c0, c1, ..., of which `header` says what they are called, and row where rows have an order.

    The names of a table can be anything, even the same but for capitals, which some engines take for one.
    """

    frame: nw.LazyFrame[Any]
    header: tuple[str, ...]
    source: Source
    has_rows: bool
    mixed: Mapping[str, str] = field(default_factory=dict)
    """Of columns that hold one thing in one place and another in another, which."""
    cuts: Callable[[str, int], tuple[Any, ...]] = lambda name, cells: ()
    """Values of a column between which parts of the table can be read one by one, without reading all of it each time; of so
    many cells is a row."""


@dataclass(frozen=True, slots=True)
class TraceFrame:
    """One row a person and time, lazily: columns user, time and state; row, where rows have an order; group, if asked for.

    `cuts` are users between which parts of it can be read one by one; none where that would read all of it each time.
    """

    frame: nw.LazyFrame[Any]
    source: Source
    has_rows: bool
    cuts: tuple[Any, ...] = ()

    @property
    def parts(self) -> tuple[TraceFrame, ...]:
        """The rows of some people, those of others, and so on: each person's in one part. No name may be missing."""
        return tuple(replace(self, frame=part, cuts=()) for part in self._filtered())

    def _filtered(self) -> Iterator[nw.LazyFrame[Any]]:
        user = nw.col("user")
        for first, end in pairwise((None, *self.cuts, None)):
            part = self.frame if first is None else self.frame.filter(user >= first)
            yield part if end is None else part.filter(user < end)

    def of_parts(self, asked: Callable[[TraceFrame], Answer]) -> Iterator[Answer]:
        """What is asked of every part, one after the other; says how far it is."""
        parts = self.parts
        for k, part in enumerate(parts):
            with within(k / len(parts), (k + 1) / len(parts), READING):
                answer = asked(part)
            yield answer

    def collected(self, query: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
        """The result of a query that is small."""
        found: nw.DataFrame[Any] = self.source.run(query.collect)
        return found

    def batches(self, query: nw.LazyFrame[Any]) -> Iterator[nw.DataFrame[Any]]:
        """The result of a query that may be large, some rows at a time."""
        if query.implementation.is_duckdb():
            for batch in self.source.run(lambda: nw.to_native(query).to_arrow_reader(BATCH)):
                yield nw.from_arrow(batch, backend="pyarrow")
            return
        whole = self.collected(query)
        for first in range(0, len(whole), BATCH):
            yield whole[first : first + BATCH]

    def beside(self, small: nw.DataFrame[Any]) -> nw.LazyFrame[Any]:
        """A small table where the frame is, so that the two can be joined."""
        native = nw.to_native(self.frame)
        if self.frame.implementation.is_duckdb():
            spellings = small.to_arrow()  # DuckDB finds it by its name, on the connection that the frame lives on
            made = native.query("traces", "SELECT * FROM spellings")
            del spellings
            beside: nw.LazyFrame[Any] = nw.from_native(made)
            return beside
        if self.frame.implementation.is_polars():
            return nw.from_native(small.to_polars().lazy())
        return small.lazy(backend="pyspark", session=native.sparkSession)

    def with_moments(self) -> TraceFrame:
        """A column `moment` beside timestamps: microseconds since 1970, which narwhals knows for some engines only."""
        native = nw.to_native(self.frame)
        if self.frame.implementation.is_duckdb():
            return self.with_frame(
                nw.from_native(native.query("events", "SELECT *, epoch_us(time) AS moment FROM events"))
            )
        if self.frame.implementation.is_pyspark():
            return self.with_frame(
                nw.from_native(native.selectExpr("*", "unix_micros(cast(time AS timestamp)) AS moment"))
            )
        return self.with_frame(self.frame.with_columns(moment=nw.col("time").dt.timestamp("us")))

    def with_frame(self, frame: nw.LazyFrame[Any]) -> TraceFrame:
        """Another frame from the same source."""
        return replace(self, frame=frame)


def table_of(table: Any) -> Table:
    """Any frame as a lazy table. An eager one is queried by DuckDB, which reads it where it is.

    Rows have an order in eager frames and in Polars queries.

    Raises
    ------
    InputError
        Not a table that narwhals knows, or a lazy one of an engine that is not supported.
    TraceError
        A column is of no one type.
    """
    known = nw.from_native(table, pass_through=True)
    if not isinstance(known, nw.DataFrame | nw.LazyFrame):
        raise InputError(
            f"expected traces, a path, or a table (pandas, Polars, PyArrow, a DuckDB relation, a PySpark DataFrame), got "
            f"{type(table).__name__}"
        )
    header = tuple(map(str, known.collect_schema().names()))
    named = known.rename({name: f"c{k}" for k, name in enumerate(known.collect_schema().names())})
    source = Source(f"the {type(table).__name__}")
    if isinstance(named, nw.DataFrame):
        return Table(_arrow(named, header).with_row_index("row").lazy(backend="duckdb"), header, source, True)
    engine = named.implementation
    if engine.is_polars():
        return Table(nw.from_native(nw.to_native(named).with_row_index("row")), header, source, True)
    if engine.is_duckdb() or engine.is_pyspark():
        return Table(named, header, source, False)
    raise InputError(
        f"expected a lazy table of Polars, DuckDB or PySpark, got one of {engine.name.lower()}; "
        "collect it, or write it to Parquet"
    )


def _arrow(table: nw.DataFrame[Any], header: tuple[str, ...]) -> nw.DataFrame[Any]:
    """An eager frame as an Arrow table, or a refusal that names the column that has no one type."""
    try:
        return nw.from_native(table.to_arrow(), eager_only=True)
    except (TypeError, ValueError):
        for label, name in zip(header, table.columns, strict=True):
            entries = table.get_column(name).to_list()
            kinds = sorted({type(entry).__name__ for entry in entries if entry is not None})
            if len(kinds) > 1:
                raise TraceError(
                    f"column {label!r} holds values of several types ({', '.join(kinds)}; the first is {entries[0]!r}); "
                    "give it one type"
                ) from None
        raise


def values(column: nw.Series[Any]) -> Column:
    """A column of a small result as a NumPy array; missing entries are None, NaN or NaT, times with a zone stand in UTC."""
    if isinstance(column.dtype, nw.String):
        made = np.empty(len(column), dtype=object)
        made[:] = column.to_list()
        return made
    if isinstance(column.dtype, nw.Datetime) and column.dtype.time_zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if column.dtype.is_integer() and not isinstance(column.dtype, nw.UInt64) and column.null_count() == 0:
        return integers(column)
    return np.asarray(column.to_numpy())


def integers(column: nw.Series[Any]) -> NDArray[np.int64]:
    """A column of whole numbers; -1 where there is none."""
    if len(column) > BATCH:
        return np.asarray(column.fill_null(-1).to_numpy()).astype(np.int64)
    # Where pandas is installed, Arrow's to_numpy() loads it, which takes longer than all the rest of reading a small file.
    return np.array([-1 if entry is None else int(entry) for entry in column.to_list()], dtype=np.int64)


def text(column: Column) -> Column:
    """Every entry as stripped text; whole floats (a column that once had gaps) as integers."""
    if column.dtype.kind == "f":
        return np.array([str(int(v)) if np.isfinite(v) and v == np.floor(v) else str(v) for v in column], dtype=object)
    return np.array([str(entry).strip() for entry in column], dtype=object)


def missing(column: Column, named: tuple[str, ...] = ()) -> NDArray[np.bool_]:
    """Which entries are null, NaN, NaT or a word for them that is not the name of a state."""
    if column.dtype.kind in "fM":
        return np.asarray(np.isnan(column) if column.dtype.kind == "f" else np.isnat(column))
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=bool)
    return np.array([one is None or (str(one).strip().lower() in MISSING_WORDS and one not in named) for one in column])


def words(name: str, kind: nw.dtypes.DType) -> nw.Expr:
    """A query for the entries of a column as text; whole floats as that of whole numbers, as `text` has them, NaN as null."""
    column = nw.col(name)
    if not kind.is_float():
        return column.cast(nw.String())
    whole = nw.when(~column.is_nan() & (column.abs() < LARGEST_WHOLE) & (column == column.floor())).then(column)
    number = nw.when(~column.is_nan()).then(column)
    return nw.coalesce(whole.cast(nw.Int64()).cast(nw.String()), number.cast(nw.String()))


def is_missing(name: str, kind: nw.dtypes.DType, named: tuple[str, ...] = ()) -> nw.Expr:
    """A query for the entries of a column that are null, NaN or a word for them that is not the name of a state."""
    column = nw.col(name)
    if kind.is_float():
        # As text: a filter by NaN is pushed down to Parquet, whose statistics leave NaN out, so that DuckDB 2.0 finds none.
        column, kind = column.cast(nw.String()), nw.String()
    if isinstance(kind, nw.String):
        word = column.str.strip_chars(BLANKS).str.to_lowercase().is_in(MISSING_WORDS)
        return column.is_null() | (word & ~column.is_in(named) if named else word)
    return column.is_null()
