"""Results as tables for any library: the Arrow PyCapsule protocol, by which Polars, pandas, DuckDB and PyArrow read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporaldp.extras import needing


def arrow_stream(columns: Mapping[str, Any], requested_schema: object | None) -> object:
    """What ``__arrow_c_stream__`` returns for these columns, each a sequence or an array of the same length."""
    with needing("tables"):
        import pyarrow as pa

    return pa.table(dict(columns)).__arrow_c_stream__(requested_schema)
