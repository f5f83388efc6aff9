"""Trajectories of several states of one person as one state, and of successive states as pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from temporaldp.base.errors import InputError, TraceError
from temporaldp.core.correlation.joint import joint_names, require_few
from temporaldp.core.correlation.pairs import pair_states
from temporaldp.data.tables.traces import Traces, codes_of
from temporaldp.data.tables.trajectories import ABSENT, Trajectories


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
    >>> asleep = Trajectories.from_sequences([["A", "S", "S"], ["A", "A", "S"]], users=["Ann", "Bo"])
    >>> away = Trajectories.from_sequences([["H", "H", "O"]], users=["Ann"], states=["H", "O"])
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
    >>> walks = Trajectories.from_sequences([["home", "work", "home"], ["work", "work", "home"]])
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
