"""Leakage for the estimated matrices, for plausible ones (a posterior, resampled people), and for all within intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.base.errors import EstimationError
from temporaldp.base.names import listed as named
from temporaldp.base.progress import part
from temporaldp.base.values import FloatArray, compared_by_value, read_only, real_number, whole_number
from temporaldp.core.accounting.protocol import budgets, listed
from temporaldp.core.accounting.series import temporal_leakage
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.transition import in_proportion
from temporaldp.data.tables import estimate_adversaries, estimate_adversary
from temporaldp.data.tables.estimation import all_transitions
from temporaldp.data.tables.traces import Traces, as_traces, transitions_of
from temporaldp.lab.studies.worst_member import worst_member

JEFFREYS = 0.5
"""Dirichlet concentration of a cell that nothing is known about."""


def leakage_posterior(
    trajectories: Traces,
    *,
    epsilons: ArrayLike,
    n_draws: int = 1000,
    prior: float = JEFFREYS,
    rng: np.random.Generator | int | None = None,
) -> FloatArray:
    """Sample the exact leakage over the posterior of the transition matrices (Dirichlet rows), in nats.

    Parameters
    ----------
    trajectories : Traces
    epsilons : array_like, shape (T,), or one number for each step of the traces
    n_draws : int, >= 1
    prior : float, > 0
        Dirichlet concentration of every cell; 1/2 is Jeffreys' prior.
    rng : numpy Generator or seed, optional

    Returns
    -------
    array, shape (n_draws,)
        Largest temporal leakage of any step for each drawn adversary, in the order of drawing: plausible leakage, no guarantee.

    Examples
    --------
    >>> from temporaldp import load_sample
    >>> draws = leakage_posterior(load_sample(), epsilons=[0.1] * 8, n_draws=50, rng=0)
    >>> len(draws), bool(np.quantile(draws, 0.5) < np.quantile(draws, 0.95))
    (50, True)
    """
    return _draws(posterior_adversaries, trajectories, epsilons, n_draws=n_draws, prior=prior, rng=rng)


def leakage_bootstrap(
    trajectories: Traces,
    *,
    epsilons: ArrayLike,
    n_draws: int = 1000,
    prior: float = 0.0,
    rng: np.random.Generator | int | None = None,
) -> FloatArray:
    """Sample the exact leakage over people resampled with replacement (bootstrap), in nats.

    Arguments and result as for `leakage_posterior`; the prior may be 0. Wider than the posterior where the transitions of one
    person are alike.
    """
    return _draws(bootstrap_adversaries, trajectories, epsilons, n_draws=n_draws, prior=prior, rng=rng)


def _draws(
    adversaries: Callable[..., list[Adversary]], trajectories: Traces, epsilons: ArrayLike, **drawing: Any
) -> FloatArray:
    traces = as_traces(trajectories)
    spent = budgets(listed(epsilons, traces.n_times))
    series = temporal_leakage(adversaries(traces, **drawing), spent)
    return read_only([member.worst for member in series.members or (series,)])


def quantile(draws: FloatArray, share: float) -> float:
    """The smallest drawn leakage that at least this share of the draws do not exceed."""
    return float(np.quantile(draws, share, method="inverted_cdf"))


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
        for _ in range(100):  # times that people are drawn anew until every state has a transition
            times = np.bincount(
                generator.integers(trajectories.n_users, size=trajectories.n_users), minlength=trajectories.n_users
            )
            counts = np.bincount(cells, weights=times[people], minlength=n * n).reshape(n, n) + prior
            if counts.sum(axis=0).all() and counts.sum(axis=1).all():
                break
        else:
            rare = np.flatnonzero((counts.sum(axis=0) == 0.0) | (counts.sum(axis=1) == 0.0))
            raise EstimationError(
                f"too few people show {named([trajectories.states[i] for i in rare])}: draws of people leave it without a "
                "transition; give a prior (prior=1, or --set correlation.prior=1)"
            )
        found.append(_adversary(counts, trajectories.states, k))
    return found


def _adversary(joint: NDArray[np.floating], states: tuple[str, ...], number: int) -> Adversary:
    matrices = [in_proportion(rows / rows.sum(axis=1, keepdims=True), states) for rows in (joint.T, joint)]
    return Adversary(*matrices, name=f"draw {number + 1}")


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class LeakageUncertainty:
    """Largest temporal leakage of any step for the estimated, plausible and possible correlations, in nats.

    Parameters
    ----------
    confidence : float
        Simultaneous confidence of the intervals, between 0 and 1.
    estimate : float
        Exact, for the matrices of maximum likelihood (with the prior, if one was given); inf where the traces determine none.
    posterior, people : array, shape (m,), and array or None
        Exact, for matrices drawn from the posterior, and for resampled people.
    attained : float
        Exact, for the worst matrices within the intervals that ascent found: a lower bound of the worst case.
    guaranteed : float
        An upper bound for every matrix within the intervals.
    is_stationary : bool
        Whether the backward intervals assume a stationary chain; else they are those of each step of the traces,
        which hold for a release that begins with the same shares of states.
    """

    confidence: float
    estimate: float
    posterior: FloatArray
    people: FloatArray | None
    attained: float
    guaranteed: float
    is_stationary: bool


def leakage_uncertainty(
    trajectories: Traces,
    *,
    epsilons: ArrayLike,
    confidence: float = 0.95,
    stationary: bool = False,
    n_draws: int = 1000,
    rng: np.random.Generator | int | None = 0,
) -> LeakageUncertainty:
    """Compute the leakage of a release for the estimate, for draws, and as an upper bound at a confidence, in nats.

    Parameters
    ----------
    trajectories : Traces
        Traces from which the correlation is estimated.
    epsilons : array_like, shape (T,), or one number for each step of the traces
        If the shares of states in the traces change, at most as many as the traces have steps.
    confidence : float
        Between 0 and 1.
    stationary : bool
        Whether the intervals assume a stationary chain, as for a release at other steps than those of the traces.
    n_draws : int, >= 1
    rng : numpy Generator or seed, optional

    Examples
    --------
    >>> from temporaldp import load_sample
    >>> found = leakage_uncertainty(load_sample(), epsilons=[0.1] * 5, n_draws=20)
    >>> bool(found.estimate < np.quantile(found.posterior, 0.95) < found.attained <= found.guaranteed)
    True
    """
    spent = budgets(listed(epsilons, trajectories.n_times))
    level = real_number(confidence, "confidence", gt=0.0, lt=1.0)
    generator = np.random.default_rng(rng)
    doing = "leakage of what is plausible"
    with part(0.0, 0.1, doing):
        try:
            estimate = temporal_leakage(next(estimate_adversaries(trajectories)), spent).worst
        except EstimationError:
            estimate = math.inf
    with part(0.1, 0.5, doing):
        posterior = leakage_posterior(trajectories, epsilons=spent, n_draws=n_draws, rng=generator)
    with part(0.5, 0.8, doing):
        try:
            people = leakage_bootstrap(trajectories, epsilons=spent, n_draws=n_draws, rng=generator)
        except EstimationError:
            people = None
    with part(0.8, 1.0, doing):
        adversary = estimate_adversary(trajectories, confidence=level, stationary=stationary)
        is_stationary = adversary.n_steps is None
        if adversary.n_steps is not None and len(spent) < adversary.n_steps:
            adversary = adversary.between(0, len(spent))
        guaranteed = temporal_leakage(adversary, spent).worst
        member = worst_member(adversary, epsilons=spent, n_starts=1).leakage
        attained = member.worst if member.attained is None else float(member.attained.temporal.max())
    return LeakageUncertainty(level, estimate, posterior, people, attained, guaranteed, is_stationary)
