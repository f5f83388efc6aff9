"""Leakage of a release for the estimated matrices, for plausible ones, and for every matrix within intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.errors import EstimationError
from temporaldp.base.progress import part
from temporaldp.base.values import compared_by_value, real_number
from temporaldp.core.accounting.protocol import budgets, listed
from temporaldp.core.accounting.series import temporal_leakage
from temporaldp.data.tables import estimate_adversaries, estimate_adversary
from temporaldp.data.tables.traces import Traces
from temporaldp.lab.studies.leakage_draws import JEFFREYS, LeakageDraws, leakage_bootstrap, leakage_posterior
from temporaldp.lab.studies.worst_member import worst_member


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
    posterior, people : LeakageDraws
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
    posterior: LeakageDraws
    people: LeakageDraws | None
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
    >>> found.estimate < found.posterior.quantile(0.95) < found.attained <= found.guaranteed
    True
    """
    spent, level = (
        budgets(listed(epsilons, trajectories.n_times)),
        real_number(confidence, "confidence", gt=0.0, lt=1.0),
    )
    generator = np.random.default_rng(rng)
    doing = "leakage of what is plausible"
    with part(0.0, 0.1, doing):
        try:
            estimate = temporal_leakage(next(estimate_adversaries(trajectories)), spent).worst
        except EstimationError:
            estimate = math.inf
    with part(0.1, 0.5, doing):
        posterior = leakage_posterior(trajectories, epsilons=spent, n_draws=n_draws, prior=JEFFREYS, rng=generator)
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
        attained = worst_member(adversary, epsilons=spent, n_starts=1).leakage.worst
    return LeakageUncertainty(level, estimate, posterior, people, attained, guaranteed, is_stationary)
