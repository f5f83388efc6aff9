"""What traces have in common, for estimation and counting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.errors import InputError
from temporaldp.base.names import listed
from temporaldp.base.values import IntArray
from temporaldp.data.tables.moments import Times, moment

if TYPE_CHECKING:
    from temporaldp.data.tables.trace_table import TraceTable

LEAST_REACHED = 0.01
"""Share of the people who must have reached the last step of a release: fewer may be rows with wrong dates."""


class Traces(ABC):
    """Traces as two tables: transitions between each pair of states, and people in each state at each time.

    `Trajectories` are in memory; a `TraceTable` queries a table of any size; `CountedTraces` were counted elsewhere.
    """

    __slots__ = ()

    states: tuple[str, ...]
    """All states, in the order of their codes."""
    _times: Times

    @property
    def holder(self) -> str:
        """What has the states, for messages."""
        return "the table of traces"

    @property
    def times(self) -> tuple[str, ...]:
        """Labels of the steps, in order of time."""
        return self._times.labels

    @property
    def consecutive(self) -> NDArray[np.bool_]:
        """Whether times k and k + 1 are one step apart, shape (n_times - 1,)."""
        return self._times.consecutive

    @property
    def step(self) -> str | None:
        """Length of one step, in words."""
        return self._times.step

    @property
    @abstractmethod
    def users(self) -> tuple[str, ...]:
        """The names of all people."""

    @property
    def has_histogram(self) -> bool:
        """Whether the number of people in each state at each time is known."""
        return True

    @property
    def n_users(self) -> int:
        """Number of people."""
        return len(self.users)

    @property
    def absence(self) -> str | None:
        """The state of people who are absent, if there is one."""
        return None

    def of_population(self, n_people: int) -> Self:
        """Return these traces with a public number of people; people without a row are absent at every time.

        Without it, the number of people who have a row at any time is published with the counts: in a table that grows, it
        reveals when a person appears.

        Raises
        ------
        InputError
            Absence is not a state, or more people have rows.
        """
        raise InputError("expected traces with a state of absence: these know only the people who are observed")

    @property
    def n_observed(self) -> int:
        """Number of people with a state at a time, on average."""
        return round(float(self.histogram().sum()) / self.n_times)

    @property
    def n_times(self) -> int:
        """Number of times T."""
        return len(self.times)

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.states)

    @property
    def codes(self) -> NDArray[np.signedinteger]:
        """Position of each person's state at each time, -1 for none, shape (n_users, n_times).

        Raises
        ------
        InputError
            Only counts of transitions or of people are available: counts do not contain the state of each user at each time.
        """
        raise InputError(
            "expected traces with the state of each user at each time; counts of transitions do not distinguish longer "
            "sequences, hours or users: give the traces themselves"
        )

    @abstractmethod
    def histogram(self) -> IntArray:
        """Number of people in each state at each time, shape (n_times, n_states). Exact, hence private."""

    @abstractmethod
    def transition_counts(self, user: str | None = None) -> IntArray:
        """Transitions N[i, j] from i to j between consecutive times, of all users or of one; shape (n_states, n_states)."""

    @abstractmethod
    def user_transitions(self) -> Iterator[tuple[str, IntArray]]:
        """Yield the name and the transitions of each user, in the order of `users`."""

    def group_transitions(self) -> Iterator[tuple[str, IntArray]]:
        """Every group's name and the transitions of the people in it, in order of names.

        Raises
        ------
        InputError
            The traces were read without groups.
        """
        raise InputError("expected traces that were read by a column with groups: read_traces(..., by='region')")

    def group_sizes(self) -> dict[str, int] | None:
        """Number of people in each group, by its name; None where it is not known."""
        return None

    def ends(self) -> IntArray:
        """Number of people whose last state is at each time, shape (n_times,). Private."""
        seen = self.codes >= 0
        last = self.n_times - 1 - np.argmax(seen[:, ::-1], axis=1)
        return np.bincount(last[seen.any(axis=1)], minlength=self.n_times)

    def rows_after(self, time: int, *, unusual: bool = False) -> list[str]:
        """Return the places of rows after a time (from 0, or -1), in words.

        Of `unusual` ones alone: those that are further from the person's row before, or from that time if there is none, than
        any row up to it.
        """
        people, times = np.nonzero(self.codes >= 0)
        position = np.cumsum(np.concatenate([[0], 2 - self.consecutive.astype(np.int64)]))
        is_first = np.diff(people, prepend=-1) != 0
        since = position[times] - np.where(is_first, position[max(time, 0)], position[np.roll(times, 1)])
        usual = since[~is_first & (times <= time)].max(initial=1)
        chosen = (times > time) & ((since > usual) | (not unusual))
        return [f"data row {person + 1}" for person in dict.fromkeys(people[chosen].tolist())]

    def __repr__(self) -> str:
        size = f"{self.n_users} users, {self.n_times} times, {self.n_states} states"
        return f"{type(self).__name__}({size}: {listed(self.states, 4)})"


def codes_of(traces: Traces) -> IntArray:
    """Return the states of all users as indices, -1 for none, shape (n_users, n_times); `InputError` for mere counts."""
    return np.asarray(traces.codes, dtype=np.int64)


def transitions_of(traces: Traces) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return user, time, state and next state of each observed transition, user by user: arrays of one length. Private.

    Both states were observed, one step apart.
    """
    codes = codes_of(traces)
    now, after = codes[:, :-1], codes[:, 1:]
    users, times = np.nonzero((now >= 0) & (after >= 0) & traces.consecutive)
    return users, times, now[users, times], after[users, times]


def as_traces(source: Any) -> Traces:
    """Return traces, also from a table with the columns user, time and state (pandas, Polars, PyArrow, DuckDB, PySpark).

    Raises
    ------
    InputError, TraceError, StateError
        As `read_traces`, which takes tables with other columns.
    """
    if isinstance(source, Traces):
        return source
    from temporaldp.data.tables.layouts import long_traces
    from temporaldp.data.tables.relations import table_of
    from temporaldp.data.tables.trace_table import TraceTable

    return TraceTable(long_traces(table_of(source), "user", "time", "state"))


def scarcity(traces: Traces) -> str | None:
    """Return the warning where too few transitions were observed; None where there are enough, or times are unknown.

    If all people are observed, each step between consecutive times has one transition per person.
    """
    if not traces.has_histogram:
        return None
    observed, n_users, n_steps = int(traces.transition_counts().sum()), traces.n_users, int(traces.consecutive.sum())
    share = observed / max(n_users * n_steps, 1)
    # With fewer, the times are not a common grid. Page views of different lengths have 0.2, nights of sleep 0.7, and events
    # whose minutes are taken for steps 0.003 (docs/how-to/scale.md).
    if share >= 0.05:
        return None
    return (
        f"these traces show few transitions for their steps: {observed}, where {n_users} people over {n_steps} steps would "
        f"have {n_users * n_steps} ({100.0 * share:.2g} %). Events are not states: the estimate reflects the prior, not how "
        "people move, and is not evidence of low leakage. Put the events on a grid (--set traces.every=1h --set "
        "traces.fill=last), or take longer steps"
    )


@dataclass(frozen=True, slots=True)
class SharedPeople:
    """People of a history who are protected.

    People of one name are taken for one person.

    Parameters
    ----------
    n_people : int
        People of the history.
    n_known : int
        Of these, people whose name the protected traces hold.
    n_observed : int
        Of these, people whose protected states the history holds: the same states at the same times. 0 where most people of one
        name have different states at more than 2 % of common times: these times are counted from different beginnings, or the
        people are others.
    """

    n_people: int
    n_known: int
    n_observed: int

    @property
    def sentence(self) -> str:
        """Who is protected, and whether at the same times."""
        if not self.n_known:
            return f"none of its {self.n_people} people is among the protected ones"
        if not self.n_observed:
            return (
                f"{_share(self.n_known, self.n_people)} are among the protected ones, at other times: their states in "
                "the history are not protected, and the budgets depend on them"
            )
        return f"{_share(self.n_observed, self.n_people)} are among the protected ones, with the same states at the same times"


def shared_people(history: TraceTable, protected: TraceTable) -> SharedPeople:
    """Compare the people of a history, and their states at common times, with those of protected traces."""
    known = history.names & protected.names
    past, now = ({moment(label): k for k, label in enumerate(traces.times)} for traces in (history, protected))
    common = sorted((past[at], now[at]) for at in past.keys() & now.keys()) if known else []
    n_rows = history.n_rows[[one for one, _ in common]].sum() + protected.n_rows[[other for _, other in common]].sum()
    common = common[:: 1 + n_rows // 2_000_000]  # more rows are not compared, but those at some of these times
    states, others = history.states_at([one for one, _ in common]), protected.states_at([other for _, other in common])
    cells, alike = Counter[str](), Counter[str]()
    for cell in states.keys() & others.keys():
        cells[cell[0]] += 1
        alike[cell[0]] += states[cell] == others[cell]
    # An older export of the same table differs in a few cells
    is_same_data = 2 * sum(alike[user] >= 0.98 * n for user, n in cells.items()) > len(cells)
    return SharedPeople(history.n_users, len(known), len(cells) if is_same_data else 0)


def _share(n: int, of: int) -> str:
    return f"all of its {of} people" if n == of else f"{n} of its {of} people"
