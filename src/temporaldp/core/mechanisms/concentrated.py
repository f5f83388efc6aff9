"""Releases known only to be rho-zero-concentrated differentially private."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from temporaldp.base.values import FloatArray, assign, real_number, sum_up
from temporaldp.core.mechanisms.noise import GaussianNoise
from temporaldp.core.mechanisms.protocol import ROUNDED, Mechanism, probabilities_of

ORDERS = 1.0 + np.logspace(-3.0, 5.0, 900)
"""Orders of the Renyi divergence that are tried: each gives a bound that holds, and the best of these is within a hundredth."""

LEAST_RHO, LARGEST_RHO = 1e-8, 1e4
"""Outside, the orders above are not the ones that matter."""

HULL_POINTS = 4096
"""Epsilons at which the profile is looked at before straight lines are drawn between them."""


@dataclass(frozen=True, slots=True)
class ConcentratedGuarantee(Mechanism):
    """Any mechanism with a guarantee of rho-zCDP under replacement of one person's state.

    Its Renyi divergences of every order a > 1 are at most ``rho a`` (Bun and Steinke, TCC 2016).

    Parameters
    ----------
    rho : float, from 1e-8 to 1e4
        In nats.

    Raises
    ------
    InputError
        rho is not a number within these limits.

    Notes
    -----
    The profile is an upper bound: ``delta(epsilon) <= min over a of e^{(a - 1)(a rho - epsilon)} (1 - 1/a)^{a - 1} / a``
    (Canonne, Kamath, Steinke, NeurIPS 2020, Proposition 12), at epsilon = 0 also sqrt(rho / 2) (Pinsker); the convex hull of
    those in e^epsilon, since every profile is convex. From below: Gaussian noise, which has this guarantee.

    Examples
    --------
    >>> from temporaldp.core.mechanisms.protocol import epsilon_of_one
    >>> round(epsilon_of_one(ConcentratedGuarantee(0.015), delta=1e-6), 3)      # Gaussian noise with this rho: 0.715
    0.772
    """

    rho: float

    def __post_init__(self) -> None:
        assign(self, rho=real_number(self.rho, "rho", ge=LEAST_RHO, le=LARGEST_RHO))

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The delta at each epsilon: of Gaussian noise, and the hull above every mechanism with the guarantee."""
        low, _ = GaussianNoise(1.0 / math.sqrt(2.0 * self.rho), 1.0).bounds(losses)
        epsilons, deltas = _hull(float(self.rho))
        up = np.empty(losses.size)
        near = losses < epsilons[-1]
        right = np.clip(np.searchsorted(epsilons, losses[near], side="right"), 1, epsilons.size - 1)
        first, second = epsilons[right - 1], epsilons[right]
        share = np.clip(np.expm1(losses[near] - first) / np.expm1(second - first), 0.0, 1.0)
        up[near] = (1.0 - share) * deltas[right - 1] + share * deltas[right]
        up[~near] = _by_orders(float(self.rho), losses[~near])
        up = probabilities_of(up * (1.0 + 4.0 * ROUNDED))
        return np.minimum(low, up), up

    def grouped(self, n_units: int) -> ConcentratedGuarantee:
        """The guarantee where so many units of it change together (group privacy), rounded up: n^2 rho."""
        return ConcentratedGuarantee(sum_up([sum_up([self.rho] * n_units)] * n_units))


def _by_orders(rho: float, losses: FloatArray) -> FloatArray:
    """The best of the bounds that single orders give, at each epsilon."""
    constants = (ORDERS - 1.0) * np.log1p(-1.0 / ORDERS) - np.log(ORDERS) + (ORDERS - 1.0) * ORDERS * rho
    # rounding of the exponent, a difference of large numbers
    slack = ROUNDED * (np.abs(constants) + (ORDERS - 1.0) * ORDERS * rho)
    best = np.full(losses.size, np.inf)
    for start in range(0, losses.size, 512):
        part = slice(start, start + 512)
        away = (ORDERS - 1.0) * losses[part, None]
        best[part] = (constants + slack - away + ROUNDED * away).min(axis=1)
    return np.asarray(np.exp(np.minimum(best, 0.0)))


@lru_cache(maxsize=64)
def _hull(rho: float) -> tuple[FloatArray, FloatArray]:
    """Corners (epsilon, delta) of the convex hull in e^epsilon of what is known at many epsilons."""
    # The hull need not reach below a delta of 1e-40, nor above 600 nats, where e^epsilon leaves the range of doubles
    reach = min(rho + 2.0 * math.sqrt(-rho * math.log(1e-40)), 600.0)
    epsilons = np.linspace(0.0, reach, HULL_POINTS)
    deltas = _by_orders(rho, epsilons)
    deltas[0] = min(deltas[0], math.sqrt(0.5 * rho) * (1.0 + ROUNDED))
    kept: list[int] = []
    for k in range(HULL_POINTS):
        while len(kept) >= 2 and _above(epsilons, deltas, kept[-2], kept[-1], k):
            kept.pop()
        kept.append(k)
    return epsilons[kept], deltas[kept]


def _above(epsilons: FloatArray, deltas: FloatArray, first: int, middle: int, last: int) -> bool:
    """Whether the middle point lies on or above the line between the other two, as functions of e^epsilon."""
    origin = epsilons[first]
    share = math.expm1(epsilons[middle] - origin) / math.expm1(epsilons[last] - origin)
    return bool(deltas[middle] >= (1.0 - share) * deltas[first] + share * deltas[last])
