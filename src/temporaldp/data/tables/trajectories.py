"""States of users over time: the table from which correlations are estimated and histograms counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from temporaldp.base.errors import InputError, TraceError
from temporaldp.base.names import listed, printable, state_names
from temporaldp.base.values import IntArray, assign, compared_by_value, locked
from temporaldp.core.correlation.joint import joint_names, require_few
from temporaldp.core.correlation.pairs import pair_states
from temporaldp.data.tables.traces import Traces, codes_of

ABSENT = -1
"""Code of a user without a state at a time."""


@compared_by_value
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Trajectories(Traces):
    """At most one state per user and time, on a common list of times.

    ``walks[:75]``, ``walks[[0, 3]]`` and ``walks[0]`` are the trajectories of those users alone, with the same states and
    times, so that a loop goes user by user. ``len(walks)`` is the number of users, and `numpy.asarray` gives the codes.

    Parameters
    ----------
    codes : array_like of int, shape (n_users, n_times)
        Index into `states`, or -1 where the user has no state (a gap). Copied in and made read-only.
    states : sequence of names
        The public domain: a state without visits is counted as 0.
    users : sequence of n_users distinct names
    times : sequence of n_times labels, in order
    consecutive : bool array, shape (n_times - 1,), optional
        Whether times k and k + 1 are one step apart. Where they are not, no transition is counted between them.
    step : str, optional
        Length of one step, in words. A correlation estimated at one length of step does not apply to a release at another.

    Raises
    ------
    TraceError, StateError

    Examples
    --------
    >>> walks = Trajectories([[0, 1], [1, 1], [0, 0]], states=["home", "work"], users=["Ann", "Bo", "Cy"])
    >>> walks[1:].users, walks[0].users, walks[[2, 0]].users
    (('Bo', 'Cy'), ('Ann',), ('Cy', 'Ann'))
    """

    codes: NDArray[np.signedinteger]
    states: tuple[str, ...]
    users: tuple[str, ...]
    times: tuple[str, ...]
    consecutive: NDArray[np.bool_]
    step: str | None

    def __init__(
        self,
        codes: ArrayLike,
        *,
        states: Iterable[object],
        users: Iterable[object] | None = None,
        times: Iterable[object] | None = None,
        consecutive: NDArray[np.bool_] | None = None,
        step: str | None = None,
    ) -> None:
        table = np.array(codes)
        names = state_names(states)
        if table.ndim != 2 or table.size == 0:
            raise TraceError(f"expected a table of at least one user and one time, got shape {table.shape}")
        if len(names) < 2:
            raise TraceError(f"expected at least 2 different states, got only {listed(names)}; one state leaks nothing")
        if not np.issubdtype(table.dtype, np.signedinteger) or table.min() < ABSENT or table.max() >= len(names):
            raise TraceError(
                f"expected integer codes from -1 to {len(names) - 1}, got {table.dtype} {table.min()}..{table.max()}"
            )
        n_users, n_times = table.shape
        user_names = tuple(printable(user, "user name") for user in (range(n_users) if users is None else users))
        time_labels = tuple(map(str, range(n_times) if times is None else times))
        steps = np.ones(n_times - 1, dtype=bool) if consecutive is None else np.array(consecutive, dtype=bool)
        if (len(user_names), len(time_labels), len(steps)) != (n_users, n_times, n_times - 1):
            raise TraceError(
                f"expected {n_users} users, {n_times} times and {n_times - 1} steps, got {len(user_names)}, "
                f"{len(time_labels)} and {len(steps)}"
            )
        if len(set(user_names)) != n_users:
            raise TraceError("user names must be distinct: one row per user")
        locked((table, steps))
        assign(self, codes=table, states=names, users=user_names, times=time_labels, consecutive=steps, step=step)

    def histogram(self) -> IntArray:
        """True counts, shape (n_times, n_states): how many users are in each state at each time. Exact, hence private."""
        return np.stack([np.bincount(column[column >= 0], minlength=self.n_states) for column in self.codes.T])

    def transition_counts(self, user: str | None = None) -> IntArray:
        """Transitions N[i, j] from i at t to j at t + 1, shape (n_states, n_states); of all users, or of one. Private."""
        if user is None:
            return self._transitions(self.codes)
        if user not in self.users:
            raise InputError(f"unknown user {user!r}; the traces hold {listed(self.users)}")
        return self._transitions(self.codes[[self.users.index(user)]])

    def user_transitions(self) -> Iterator[tuple[str, IntArray]]:
        """Yield the name and the transitions of each user, in the order of `users`."""
        for name, row in zip(self.users, self.codes, strict=True):
            yield name, self._transitions(row[None])

    def _transitions(self, codes: NDArray[np.signedinteger]) -> IntArray:
        """A transition is counted only where both ends were observed one step apart."""
        n, now, after = self.n_states, codes[:, :-1], codes[:, 1:]
        observed = (now >= 0) & (after >= 0) & self.consecutive
        cells = now[observed].astype(np.int64) * n + after[observed]
        return np.bincount(cells, minlength=n * n).reshape(n, n)

    def __len__(self) -> int:
        return self.n_users

    def __getitem__(self, users: Any) -> Trajectories:
        """The trajectories of some users: of one by position, of a slice, or of several positions (or a mask) in that order."""
        try:
            at = np.atleast_1d(np.arange(self.n_users)[users])
        except IndexError as error:
            # Python ends a loop at this class of error; the text of NumPy names the missing position.
            raise IndexError(f"expected positions among {self.n_users} users: {error}") from None
        if at.ndim != 1 or not at.size:
            raise TraceError(f"expected positions of at least one of {self.n_users} users, got {users!r}")
        return Trajectories(
            self.codes[at],
            states=self.states,
            users=[self.users[k] for k in at.tolist()],
            times=self.times,
            consecutive=self.consecutive,
            step=self.step,
        )

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Convert trajectories to an array: the codes, shape (n_users, n_times)."""
        return np.array(self.codes, dtype=dtype, copy=True) if copy else np.asarray(self.codes, dtype=dtype)


def joint_trajectories(*traces: Traces) -> Trajectories:
    """Join several states of each person into one: "A, H" where the first traces have A and the second H.

    Restricted to the people and times that all traces have. Joint states that do not occur are left out, so that a prior puts
    no mass on them: many are impossible, for instance where one table is a coarser view of the other, and a correlation with
    mass on them forgets too fast, so that leakage would be reported too low. A correlation estimated from the result assumes
    nothing else about the dependence of the states.

    Parameters
    ----------
    *traces : Traces
        One for each table, with steps of one length; not counts.

    Raises
    ------
    InputError
        There are no traces, some contain only counts, they have no person or time in common, steps of different lengths, or
        more than 1,000 joint states.

    Examples
    --------
    >>> asleep = Trajectories([[0, 1, 1], [0, 0, 1]], states=["A", "S"], users=["Ann", "Bo"])
    >>> away = Trajectories([[0, 0, 1]], states=["H", "O"], users=["Ann"])
    >>> both = joint_trajectories(asleep, away)
    >>> both.users, [both.states[k] for k in both.codes[0]]
    (('Ann',), ['A, H', 'S, H', 'S, O'])
    >>> both.states                                                 # awake elsewhere does not occur
    ('A, H', 'S, H', 'S, O')
    """
    if not traces:
        raise InputError("expected at least one table of traces, got none")
    lengths = {one.step for one in traces} - {None}
    if len(lengths) > 1:
        raise InputError(f"expected traces with steps of one length, got {' and '.join(sorted(map(str, lengths)))}")
    users, user_rows = _in_all([one.users for one in traces])
    times, time_columns = _in_all([one.times for one in traces])
    if not users or not times:
        raise InputError(
            "expected traces of the same people at the same times, under the same names; these have no "
            f"{'person' if not users else 'time'} in common"
        )
    codes, missing = np.zeros((len(users), len(times)), np.int64), np.zeros((len(users), len(times)), bool)
    consecutive = np.ones(len(times) - 1, bool)
    for one, rows, columns in zip(traces, user_rows, time_columns, strict=True):
        own = codes_of(one)[np.ix_(rows, columns)]
        codes, missing = codes * one.n_states + own, missing | (own == ABSENT)
        consecutive &= (np.diff(columns) == 1) & np.append(one.consecutive, False)[columns[:-1]]
    occurring, positions = np.unique(codes[~missing], return_inverse=True)
    joint = np.full(codes.shape, ABSENT)
    joint[~missing] = positions
    require_few(len(occurring))
    names = joint_names(occurring, [one.states for one in traces])
    return Trajectories(
        joint, states=names, users=users, times=times, consecutive=consecutive, step=next(iter(lengths), None)
    )


def _in_all(each: Sequence[Sequence[str]]) -> tuple[list[str], list[list[int]]]:
    """The names that all of several lists have, in the order of the first, and where they stand in each."""
    positions = [{name: k for k, name in enumerate(one)} for one in each]
    shared = [name for name in each[0] if all(name in one for one in positions)]
    return shared, [[one[name] for name in shared] for one in positions]


def transition_trajectories(trajectories: Traces) -> Trajectories:
    """Return the trajectories of pairs: at each time but the first, the previous state and the current one.

    The histogram is the table of transitions, origin by destination, as one row of n * n counts. A user who is not observed
    at both times has no pair.

    Raises
    ------
    TraceError
        There is a single time.

    Examples
    --------
    >>> walks = Trajectories([[0, 1, 0], [1, 1, 0]], states=["home", "work"])
    >>> transition_trajectories(walks).histogram()
    array([[0, 1, 0, 1],
           [0, 0, 2, 0]])
    """
    if trajectories.n_times < 2:
        raise TraceError("expected at least two times to see where people went, got one")
    codes = codes_of(trajectories)
    before, now = codes[:, :-1], codes[:, 1:]
    seen = (before >= 0) & (now >= 0) & trajectories.consecutive
    return Trajectories(
        np.where(seen, before * trajectories.n_states + now, ABSENT),
        states=pair_states(trajectories.states),
        users=trajectories.users,
        times=trajectories.times[1:],
        consecutive=trajectories.consecutive[1:],
        step=trajectories.step,
    )
