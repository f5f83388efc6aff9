"""The correlation of several states of one person that evolve independently of one another."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.errors import InputError
from temporaldp.core.correlation.adversary import Adversary
from temporaldp.core.correlation.transition import TransitionMatrix

MOST_JOINT_STATES = 1_000
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


def require_few(n_joint: int) -> None:
    """Refuse more than 1,000 joint states, by `InputError`."""
    if n_joint > MOST_JOINT_STATES:
        raise InputError(f"expected at most {MOST_JOINT_STATES} joint states, got {n_joint}: publish coarser states")


def joint_names(codes: Sequence[int] | NDArray[np.int64], each: Sequence[Sequence[str]]) -> list[str]:
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
    require_few(n_joint)
    names = joint_names(range(n_joint), [one.states for one in known])
    rows = functools.reduce(np.kron, (one.dense() for one in known))
    return TransitionMatrix(rows / rows.sum(axis=1, keepdims=True), states=names)
