"""Results as tables for any library: the Arrow PyCapsule protocol, by which Polars, pandas, DuckDB and PyArrow read them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from temporaldp.base.extras import needing

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Table(ABC):
    """Result with rows. Iteration yields the rows, so that ``pandas.DataFrame(result)`` works."""

    __slots__ = ()

    @abstractmethod
    def columns(self) -> Mapping[str, Any]:
        """The columns by name, each a sequence or an array of the same length."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """A named tuple for each row."""
        columns = self.columns()
        row: Any = namedtuple("Row", columns)  # type: ignore[misc]  # the names are those of the columns
        values = [one.tolist() if isinstance(one, np.ndarray) else one for one in columns.values()]
        return (row(*cells) for cells in zip(*values, strict=True))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows, for any library that reads Arrow."""
        return self._table().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas data frame.

        Raises
        ------
        MissingExtraError
            pandas is not installed.
        """
        with needing("pandas"):
            return self._table().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The rows as a Polars data frame.

        Raises
        ------
        MissingExtraError
            Polars is not installed.
        """
        with needing("polars"):
            import polars as pl
        return pl.DataFrame(self._table())

    def _table(self) -> Any:
        with needing("tables"):
            import pyarrow as pa
        return pa.table(dict(self.columns()))
