"""Traces that were counted elsewhere: tables of transitions and of people, without individual data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.errors import InputError
from temporaldp.base.names import in_order, listed
from temporaldp.base.values import IntArray, Kind
from temporaldp.data.tables.moments import Times
from temporaldp.data.tables.traces import Traces


class CountedTraces(Traces):
    """Counts of transitions between states, and of people in each state at each time; from `read_counts`.

    Counts are exact, hence private.

    Parameters
    ----------
    states : tuple of str
    transitions : array, shape (n_states, n_states), optional
        ``N[i, j]``: transitions from i to j of all people.
    of_users : mapping from names to such arrays, optional
        Transitions of each person, by name.
    of_groups : mapping from names to such arrays, optional
        Transitions of each group, by name.
    histogram : array, shape (n_times, n_states), optional
    times : Times, optional
        Times of the `histogram`.
    """

    def __init__(
        self,
        states: tuple[str, ...],
        *,
        transitions: IntArray | None = None,
        of_users: Mapping[str, IntArray] | None = None,
        of_groups: Mapping[str, IntArray] | None = None,
        histogram: IntArray | None = None,
        times: Times | None = None,
    ) -> None:
        self.states, self._transitions, self._histogram = states, transitions, histogram
        self._of_users, self._of_groups = of_users, of_groups
        self._counted_at = times

    @property
    def step(self) -> str | None:
        """Length of one step, in words; None if the times are unknown."""
        return None if self._counted_at is None else self._counted_at.step

    @property
    def users(self) -> tuple[str, ...]:
        """Names of the people with transitions of their own.

        Raises
        ------
        InputError
            Transitions are known as sums, or by group, only.
        """
        return tuple(self._people)

    @property
    def n_users(self) -> int:
        """Number of people: of those with transitions of their own, or the largest number at any time."""
        return int(self.histogram().sum(axis=1).max()) if self._of_users is None else len(self._of_users)

    @property
    def has_histogram(self) -> bool:
        """Whether the number of people in each state at each time is known."""
        return self._histogram is not None

    def histogram(self) -> IntArray:
        """Number of people in each state at each time, shape (n_times, n_states). Exact, hence private.

        Raises
        ------
        InputError
            No such table was given.
        """
        return _given(
            self._histogram,
            "expected a table with how many people have each state at each time (counts=..., or --set traces.counts=FILE)",
        ).copy()

    def ends(self) -> IntArray:
        """Number of people by which the counts of all later times are less than those of each time and later ones."""
        totals = self.histogram().sum(axis=1)
        return np.asarray(-np.diff(np.maximum.accumulate(totals[::-1])[::-1], append=0))

    def rows_after(self, time: int, *, unusual: bool = False) -> list[str]:
        """Return the times after one, in words; none as `unusual`, because counts do not show who was there before."""
        return [] if unusual else [f"the counts at {label!r}" for label in self.times[time + 1 :]]

    def transition_counts(self, user: str | None = None) -> IntArray:
        """Transitions N[i, j] from i at t to j at t + 1, shape (n_states, n_states); of all users, or of one. Private.

        Raises
        ------
        InputError
            No such table was given, or the user is not in it.
        """
        if user is None:
            return _given(
                self._transitions,
                "expected a table with the number of transitions (transitions=..., or --set traces.transitions=FILE)",
            ).copy()
        if user not in self._people:
            raise InputError(f"unknown user {user!r}; the transitions are of {listed(self.users)}")
        return self._people[user].copy()

    def user_transitions(self) -> Iterator[tuple[str, IntArray]]:
        """Yield the name and the transitions of each user, in the order of `users`."""
        yield from self._people.items()

    def group_transitions(self) -> Iterator[tuple[str, IntArray]]:
        """Yield the name of each group and the transitions of the people in it.

        Raises
        ------
        InputError
            The table has no column with groups.
        """
        yield from _given(
            self._of_groups,
            "these transitions are not counted by group; name the column with the group: by='region'",
        ).items()

    @property
    def _people(self) -> Mapping[str, IntArray]:
        return _given(
            self._of_users, "these transitions are not counted person by person: the table needs a column 'user'"
        )

    @property
    def _times(self) -> Times:  # type: ignore[override]
        return _given(
            self._counted_at,
            "expected a table with counts at each time (counts=..., or --set traces.counts=FILE), or a number of steps",
        )

    def __repr__(self) -> str:
        return f"CountedTraces({self.n_states} states: {listed(self.states, 4)})"


def _given(part: Kind | None, lacking: str) -> Kind:
    """A part of the counts, or `InputError` where it is lacking."""
    if part is None:
        raise InputError(lacking)
    return part


class CountsByName(Mapping[str, IntArray]):
    """Transitions of many people or groups, in order of their names; arrays are made on request.

    Parameters
    ----------
    names : array of str
        Distinct.
    whose : int array, shape (m,)
        Positions of the names of `cells`.
    cells : int array, shape (3, m)
        Rows: from, to, number.
    n_states : int
    """

    def __init__(self, names: NDArray[Any], whose: NDArray[np.intp], cells: IntArray, n_states: int) -> None:
        ends = np.searchsorted(np.sort(whose), np.arange(len(names) + 1)).tolist()
        of = dict(zip(names.tolist(), pairwise(ends), strict=True))
        self._ends = {name: of[name] for name in in_order(of)}
        self._cells, self._n_states = cells[:, np.argsort(whose, kind="stable")], n_states

    def __getitem__(self, name: str) -> IntArray:
        first, end = self._ends[name]
        return dense_counts(self._cells[:, first:end], self._n_states)

    def __iter__(self) -> Iterator[str]:
        return iter(self._ends)

    def __len__(self) -> int:
        return len(self._ends)


def dense_counts(cells: Any, n_states: int) -> IntArray:
    """An array of counts from rows of from, to and number."""
    counts = np.zeros((n_states, n_states), dtype=np.int64)
    np.add.at(counts, (cells[0], cells[1]), cells[2])
    return counts
