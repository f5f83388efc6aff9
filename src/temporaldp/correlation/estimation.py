"""Transition matrices learnt from many people's sequences."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import numpy as np

from temporaldp.correlation.adversary import Adversary
from temporaldp.correlation.states import listed
from temporaldp.correlation.trajectories import IntArray, Trajectories
from temporaldp.correlation.transition import TransitionMatrix
from temporaldp.errors import EstimationError, InputError

MOST_STATES = 20_000
"""States up to which a dense table of counts is made: 3 GiB."""

Direction: TypeAlias = Literal["backward", "forward"]


def estimate_transition_matrix(
    trajectories: Trajectories, *, direction: Direction, prior: float = 0.0, user: str | None = None
) -> TransitionMatrix:
    """Maximum-likelihood transition matrix, or the posterior mean under a symmetric Dirichlet prior.

    ``P[i, j] = (N[i, j] + prior) / sum_k (N[i, k] + prior)``, N the number of transitions between consecutive times.
    A transition is counted only where both ends were observed one step apart: gaps are not bridged.

    Parameters
    ----------
    trajectories : Trajectories
    direction : {"forward", "backward"}
        "forward": row = state at t, column = state at t + 1. "backward": row = state at t + 1, column = state at t.
    prior : float, >= 0
        Dirichlet concentration added to every cell's count; 0 is maximum likelihood. Short traces leave zeros, and
        zeros can make two states distinguishable with certainty: a prior is a statement about the adversary.
    user : str, optional
        Learn from this user alone; from everybody otherwise.

    Raises
    ------
    EstimationError
        A state has no observed transition and there is no prior: no row is invented for it.

    Examples
    --------
    >>> walks = Trajectories.from_sequences([["a", "b", "b", "a"], ["b", "a", "a", "b"]])
    >>> estimate_transition_matrix(walks, direction="forward").dense().round(3)
    array([[0.333, 0.667],
           [0.667, 0.333]])
    """
    if user is not None and user not in trajectories.users:
        raise InputError(f"unknown user {user!r}; the traces hold {listed(trajectories.users)}")
    return _estimate(trajectories, direction, prior, None if user is None else trajectories.users.index(user))


def estimate_adversaries(
    trajectories: Trajectories,
    *,
    prior: float = 0.0,
    per_user: bool = False,
    directions: tuple[Direction, ...] = ("backward", "forward"),
) -> Iterator[Adversary]:
    """Adversaries who know what these traces show: one for the whole population, or one per user, named after them.

    Parameters
    ----------
    trajectories : Trajectories
    prior : float, >= 0
        As in `estimate_transition_matrix`.
    per_user : bool
        One adversary per user, each learnt from that user's trace alone; mostly needs a prior.
    directions : tuple of {"backward", "forward"}
        Which correlations the adversary knows.

    Yields
    ------
    Adversary

    Raises
    ------
    EstimationError
        Names the state, and the user if there is one.
    """
    for row in range(trajectories.n_users) if per_user else (None,):
        known = {direction: _estimate(trajectories, direction, prior, row) for direction in directions}
        name = None if row is None else trajectories.users[row]
        yield Adversary(backward=known.get("backward"), forward=known.get("forward"), name=name)


def _estimate(trajectories: Trajectories, direction: Direction, prior: float, row: int | None) -> TransitionMatrix:
    if direction not in {"backward", "forward"}:
        raise InputError(f"expected direction 'backward' or 'forward', got {direction!r}")
    if not (np.isfinite(prior) and prior >= 0):
        raise InputError(f"expected a finite prior >= 0 (Dirichlet concentration per cell), got {prior}")
    counts = _transition_counts(trajectories, row)
    who = "" if row is None else f" of user {trajectories.users[row]!r}"
    return _normalised(counts if direction == "forward" else counts.T, trajectories.states, direction, prior, who)


def _transition_counts(trajectories: Trajectories, row: int | None) -> IntArray:
    """Counts N[i, j] of i at t, j at t + 1; of everybody, or of the user in that row."""
    n = trajectories.n_states
    if n > MOST_STATES:
        raise EstimationError(
            f"the traces hold {n} different states ({listed(trajectories.states, 3)}), and a matrix over them would not fit "
            f"in memory (at most {MOST_STATES}); is that the column with the state? Group its values into fewer"
        )
    if trajectories.n_times < 2:
        raise EstimationError(
            "the traces have a single time step, and a correlation needs at least two; give longer traces"
        )
    codes = trajectories.codes if row is None else trajectories.codes[[row]]
    now, after = codes[:, :-1], codes[:, 1:]
    observed = (now >= 0) & (after >= 0) & trajectories.consecutive
    if row is None and not observed.any():
        raise EstimationError(
            "nobody is observed at two consecutive times, so the traces show no transition; check the times"
        )
    cells = now[observed].astype(np.int64) * n + after[observed]
    return np.bincount(cells, minlength=n * n).reshape(n, n)


def _normalised(
    counts: IntArray, states: tuple[str, ...], direction: Direction, prior: float, who: str
) -> TransitionMatrix:
    weights = counts + prior
    totals = weights.sum(axis=1)
    if not (totals > 0).all():
        empty = [states[k] for k in np.flatnonzero(~(totals > 0))]
        other = "next" if direction == "forward" else "previous"
        raise EstimationError(
            f"the traces{who} show no {other} state for {listed(empty)}, so there is no {direction} row for it; "
            "give a prior (prior=1, or --prior 1), longer traces, or fewer states"
        )
    return TransitionMatrix(weights / totals[:, None], states)
