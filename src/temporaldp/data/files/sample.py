"""The bundled sample: 151 people, 47 five-minute steps, 5 sleep stages."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from temporaldp.data.files.traces import read_traces

if TYPE_CHECKING:
    from temporaldp.data.tables.trace_table import TraceTable

STAGES = ("W", "R", "N1", "N2", "N3")


def load_sample() -> TraceTable:
    """Sleep stages of 151 people in 47 five-minute steps (HMC sleep staging database, CC BY 4.0; see NOTICE).

    Examples
    --------
    >>> load_sample()
    TraceTable(151 users, 47 times, 5 states: 'W', 'R', 'N1', 'N2' and 1 more)
    """
    with as_file(files("temporaldp.data.sample") / "sleep_5min.csv") as path:
        return read_traces(path, states=STAGES)
