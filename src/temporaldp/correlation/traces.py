"""The protocol of traces, for estimation and counting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from temporaldp.errors import InputError
from temporaldp.values import IntArray


class Traces(Protocol):
    """Traces as two tables: transitions between each pair of states, and people in each state at each time.

    `Trajectories` are in memory; a `TraceTable` queries a table of any size; `CountedTraces` were counted elsewhere.
    """

    @property
    def states(self) -> tuple[str, ...]:
        """All states, in the order of their codes."""

    @property
    def times(self) -> tuple[str, ...]:
        """Labels of the steps, in order of time."""

    @property
    def consecutive(self) -> NDArray[np.bool_]:
        """Whether times k and k + 1 are one step apart, shape (n_times - 1,)."""

    @property
    def step(self) -> str | None:
        """Length of one step, in words."""

    @property
    def users(self) -> tuple[str, ...]:
        """The names of all people."""

    @property
    def n_users(self) -> int:
        """Number of people."""

    @property
    def n_times(self) -> int:
        """Number of times."""

    @property
    def n_states(self) -> int:
        """Number of states."""

    def histogram(self) -> IntArray:
        """Number of people in each state at each time, shape (n_times, n_states). Exact, hence private."""

    def transition_counts(self, user: str | None = None) -> IntArray:
        """Transitions N[i, j] from i to j between consecutive times, of all users or of one; shape (n_states, n_states)."""

    def user_transitions(self) -> Iterator[tuple[str, IntArray]]:
        """Yield the name and the transitions of each user, in the order of `users`."""


def codes_of(traces: Traces) -> IntArray:
    """Return the states of all users as indices, -1 for none, shape (n_users, n_times).

    Raises
    ------
    InputError
        Only counts of transitions or of people are available: counts do not contain the state of each user at each time.
    """
    codes = getattr(traces, "codes", None)
    if codes is None:
        raise InputError(
            "expected traces with the state of each user at each time; counts of transitions do not distinguish longer "
            "sequences, hours or users: give the traces themselves"
        )
    return np.asarray(codes, dtype=np.int64)


def transitions_of(traces: Traces) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return user, time, state and next state of each observed transition, user by user: arrays of one length. Private.

    Both states were observed, one step apart.
    """
    codes = codes_of(traces)
    now, after = codes[:, :-1], codes[:, 1:]
    users, times = np.nonzero((now >= 0) & (after >= 0) & traces.consecutive)
    return users, times, now[users, times], after[users, times]


@runtime_checkable
class Grouped(Protocol):
    """Traces of people who belong to groups."""

    def group_transitions(self) -> Iterator[tuple[str, IntArray]]:
        """Every group's name and the transitions of the people in it, in order of names."""


def as_traces(source: Any) -> Traces:
    """Return traces, also from a table with the columns user, time and state (pandas, Polars, PyArrow, DuckDB, PySpark).

    Raises
    ------
    InputError, TraceError, StateError
        As `read_traces`, which takes tables with other columns.
    """
    if hasattr(type(source), "transition_counts"):
        return cast(Traces, source)
    from temporaldp.correlation.layouts import long_traces
    from temporaldp.correlation.relations import table_of
    from temporaldp.correlation.trace_table import TraceTable

    return TraceTable(long_traces(table_of(source), "user", "time", "state"))
