"""Correlations of several states of one person: estimated jointly, or combined from independent ones."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from temporaldp.correlation.adversary import Adversary
from temporaldp.correlation.traces import Traces, codes_of
from temporaldp.correlation.trajectories import ABSENT, Trajectories
from temporaldp.correlation.transition import TransitionMatrix
from temporaldp.errors import InputError

MOST_STATES = 1_000
"""Largest number of joint states of all tables together."""


def independent_adversary(*adversaries: Adversary) -> Adversary:
    """Return the adversary of several states of each person that evolve independently of one another.

    The matrix of the joint state is the Kronecker product. Independence is an assumption: for dependent states (a person
    asleep is at home) the reported leakage is too low. Estimate the joint matrix instead, from histories of both
    (`joint_trajectories`).

    Parameters
    ----------
    *adversaries : Adversary
        One for each table, with constant matrices, known in the same directions.

    Raises
    ------
    InputError
        There is no adversary, matrices vary, directions differ, or there are more than 1,000 joint states.

    Examples
    --------
    >>> asleep, away = (TransitionMatrix([[p, 1.0 - p], [1.0 - p, p]], states=list(s)) for p, s in ((0.9, "AS"), (0.6, "HO")))
    >>> both = independent_adversary(Adversary(asleep, asleep), Adversary(away, away))
    >>> both.states
    ('A, H', 'A, O', 'S, H', 'S, O')
    >>> both.backward.probabilities[0].round(2).tolist()
    [0.54, 0.36, 0.06, 0.04]
    """
    if not adversaries or not all(isinstance(one, Adversary) and one.is_constant for one in adversaries):
        raise InputError("expected one adversary or more, each with constant matrices that are known exactly")
    return Adversary(_joint(adversaries, "backward"), _joint(adversaries, "forward"))


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
    _require_few(len(occurring))
    names = _names_of(occurring, [one.states for one in traces])
    return Trajectories(
        joint, states=names, users=users, times=times, consecutive=consecutive, step=next(iter(lengths), None)
    )


def _in_all(each: Sequence[Sequence[str]]) -> tuple[list[str], list[list[int]]]:
    """The names that all of several lists have, in the order of the first, and where they stand in each."""
    positions = [{name: k for k, name in enumerate(one)} for one in each]
    shared = [name for name in each[0] if all(name in one for one in positions)]
    return shared, [[one[name] for name in shared] for one in positions]


def _require_few(n_joint: int) -> None:
    if n_joint > MOST_STATES:
        raise InputError(f"expected at most {MOST_STATES} joint states, got {n_joint}: publish coarser states")


def _names_of(codes: Sequence[int] | NDArray[np.int64], each: Sequence[Sequence[str]]) -> list[str]:
    """Names of the joint states with these numbers, those of the last traces changing fastest."""
    parts = np.unravel_index(codes, [len(states) for states in each])
    return [", ".join(states[k] for states, k in zip(each, one, strict=True)) for one in zip(*parts, strict=True)]


def _joint(adversaries: tuple[Adversary, ...], side: Literal["backward", "forward"]) -> TransitionMatrix | None:
    known = [getattr(one, side).at(0) for one in adversaries]
    if all(one is None for one in known):
        return None
    if any(one is None for one in known):
        raise InputError(f"expected all {side} correlations or none of them; where nothing is known, give equal rows")
    n_joint = math.prod(one.n_states for one in known)
    _require_few(n_joint)
    names = _names_of(range(n_joint), [one.states for one in known])
    rows = functools.reduce(np.kron, (one.dense() for one in known))
    return TransitionMatrix(rows / rows.sum(axis=1, keepdims=True), states=names)
