"""Plausible adversaries given traces: from a posterior, or by resampling people."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from temporaldp.correlation.adversary import Adversary
from temporaldp.correlation.estimation import all_transitions
from temporaldp.correlation.states import listed
from temporaldp.correlation.traces import Traces, transitions_of
from temporaldp.correlation.transition import in_proportion
from temporaldp.errors import EstimationError
from temporaldp.values import real_number, whole_number

JEFFREYS = 0.5
"""Dirichlet concentration of a cell that nothing is known about."""

MOST_TRIES = 100
"""Times that people are drawn anew until every state has a transition."""


def posterior_adversaries(
    trajectories: Traces, *, n_draws: int, prior: float = JEFFREYS, rng: np.random.Generator | int | None = None
) -> list[Adversary]:
    """Adversaries drawn from the posterior of the transition matrices, one backward and one forward matrix each.

    Pairs of consecutive states have a joint Dirichlet(counts + prior); its rows are the forward matrix, and its columns the
    backward one. Transitions are assumed to be independent, which those of one person may not be: compare
    `bootstrap_adversaries`.

    Parameters
    ----------
    trajectories : Traces
    n_draws : int, >= 1
    prior : float, > 0
        Dirichlet concentration of every cell.
    rng : numpy Generator or seed, optional
    """
    real_number(prior, "prior of a posterior", gt=0.0)
    counts = all_transitions(trajectories) + prior
    shape = (whole_number(n_draws, "n_draws", least=1), *counts.shape)
    draws = np.random.default_rng(rng).standard_gamma(counts, shape)
    return [_adversary(joint, trajectories.states, k) for k, joint in enumerate(draws)]


def bootstrap_adversaries(
    trajectories: Traces, *, n_draws: int, prior: float = 0.0, rng: np.random.Generator | int | None = None
) -> list[Adversary]:
    """Adversaries estimated from people resampled with replacement (bootstrap): people are independent, not transitions.

    Raises
    ------
    EstimationError
        In many consecutive draws some state has no transition, and there is no prior.
    """
    real_number(prior, "prior (Dirichlet concentration per cell)", ge=0.0)
    generator = np.random.default_rng(rng)
    people, _, before, after = transitions_of(trajectories)
    n = trajectories.n_states
    cells = before * n + after
    found = []
    for k in range(whole_number(n_draws, "n_draws", least=1)):
        for _ in range(MOST_TRIES):
            times = np.bincount(
                generator.integers(trajectories.n_users, size=trajectories.n_users), minlength=trajectories.n_users
            )
            counts = np.bincount(cells, weights=times[people], minlength=n * n).reshape(n, n) + prior
            if counts.sum(axis=0).all() and counts.sum(axis=1).all():
                break
        else:
            rare = np.flatnonzero((counts.sum(axis=0) == 0.0) | (counts.sum(axis=1) == 0.0))
            raise EstimationError(
                f"too few people show {listed([trajectories.states[i] for i in rare])}: draws of people leave it without a "
                "transition; give a prior (prior=1, or --set correlation.prior=1)"
            )
        found.append(_adversary(counts, trajectories.states, k))
    return found


def _adversary(joint: NDArray[np.floating], states: tuple[str, ...], number: int) -> Adversary:
    matrices = [in_proportion(rows / rows.sum(axis=1, keepdims=True), states) for rows in (joint.T, joint)]
    return Adversary(*matrices, name=f"draw {number + 1}")
