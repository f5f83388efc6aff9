"""Leakage of shared noise at a delta by simulation, between confidence bounds (Theory, section 24).

Outputs are drawn given each state at a step, and ``max(0, 1 - e^(epsilon - s))`` is averaged, with s the log likelihood ratio
to another state: its mean is the hockey-stick divergence. The bounds of the mean are those of `temporaldp.verification`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from temporaldp.errors import InputError
from temporaldp.values import FloatArray
from temporaldp.verification.values import mean_at_least, mean_at_most

Drawn: TypeAlias = Callable[[int, int, np.random.Generator], FloatArray]
"""Log likelihoods given each of n states, shape (D, N, n), of N outputs that are drawn given a state: (state, N, generator). D
sets of outputs have bounds of their own."""

STAKES_ABOVE = np.array([0.98, 0.3, 0.1, 0.03])
"""Bets that bound the mean from above, times the largest value 1."""

STAKES_BELOW = np.array([0.1, 1.0, 10.0, 100.0])
"""Of 1 / delta: bets that bound the mean from below."""

PILOT_SHARE = 0.2
"""Share of the draws that only choose the epsilons at which the others decide."""

LEVELS = np.array(
    [0.5, 0.7, 0.8, 0.85, 0.9, 0.93, 0.96, 0.98, 1.0, 1.02, 1.04, 1.07, 1.1, 1.15, 1.2, 1.3, 1.5, 2.0, 3.0]
)
"""Times the estimate by the pilot draws."""


@dataclass(frozen=True, slots=True)
class SimulatedLeakage:
    """Leakage about one step at a delta, between confidence bounds.

    Parameters
    ----------
    step : int
    delta, failure : float
        The bounds hold except with a probability of `failure` over the draws.
    lower, upper : float
        In nats. `lower` is 0 where nothing was refuted, `upper` is `inf` where nothing was verified.
    draws : int
        Outputs that were drawn given each state.
    """

    step: int
    delta: float
    failure: float
    lower: float
    upper: float
    draws: int


def confidence_bounds(
    drawn: Drawn, n: int, delta: float, failure: float, draws: int, rng: np.random.Generator
) -> list[tuple[float, float]]:
    """Lower and upper bound of the largest epsilon of any ordered pair of states at a delta; `inf` where none is verified.

    One pair of bounds for each set of outputs, each of them wrong with a probability of `failure` at most.
    """
    pilot = max(int(PILOT_SHARE * draws), 1)
    estimates = [
        max(_estimate(ratios, delta) for ratios in of_pairs) or 1e-3 for of_pairs in _ratios(drawn, n, pilot, rng)
    ]
    each = _ratios(drawn, n, draws - pilot, rng)
    return [_bounds(of_pairs, estimate, delta, failure) for of_pairs, estimate in zip(each, estimates, strict=True)]


def _bounds(of_pairs: list[FloatArray], estimate: float, delta: float, failure: float) -> tuple[float, float]:
    """The bounds from log likelihood ratios of each ordered pair, at levels around an estimate that does not depend on them."""
    bets, draws = len(STAKES_ABOVE) + len(STAKES_BELOW), len(of_pairs[0])
    log = math.log(bets * len(LEVELS) * len(of_pairs) / failure)
    lower, upper = 0.0, math.inf
    for level in (estimate * LEVELS).tolist():
        values = [-np.expm1(level - ratios[ratios > level]) for ratios in of_pairs]
        above = [np.log1p(-STAKES_ABOVE[:, None] * one).sum(axis=1) for one in values]
        most = [mean_at_most(sums, draws, STAKES_ABOVE, log).min() for sums in above]
        below = [np.log1p(STAKES_BELOW[:, None] / delta * one).sum(axis=1) for one in values]
        least = [mean_at_least(sums, draws, STAKES_BELOW / delta, log).max() for sums in below]
        upper = min(upper, level) if max(most) <= delta else upper
        lower = max(lower, level) if max(least) > delta else lower
    return lower, upper


def _ratios(drawn: Drawn, n: int, draws: int, rng: np.random.Generator) -> list[list[FloatArray]]:
    """Log likelihood ratios of each set of outputs for each ordered pair of states, drawn given the first."""
    given = [drawn(state, draws, rng) for state in range(n)]
    if any(np.isnan(logs).any() or (logs.max(axis=2) == -math.inf).any() for logs in given):
        raise InputError("expected likelihoods within the range of doubles; take a shorter horizon")
    return [
        [given[i][d, :, i] - given[i][d, :, j] for i in range(n) for j in range(n) if i != j]
        for d in range(len(given[0]))
    ]


def _estimate(ratios: FloatArray, delta: float) -> float:
    """The epsilon at which the mean over these ratios is delta, to a thousandth."""
    low, high = 0.0, float(ratios[np.isfinite(ratios)].max(initial=0.0))
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        mean = -np.expm1(middle - ratios[ratios > middle]).sum() / len(ratios)
        low, high = (middle, high) if mean > delta else (low, middle)
    return high
