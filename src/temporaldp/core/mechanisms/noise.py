"""Noise on numbers and vectors as privacy profiles."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.values import ULP, FloatArray, assign, whole_number
from temporaldp.core.mechanisms.protocol import ROUNDED, Mechanism, both_sides, probabilities_of, require_positive


@dataclass(frozen=True, slots=True)
class GaussianNoise(Mechanism):
    """Gaussian noise on a number or a vector.

    Parameters
    ----------
    standard_deviation : float, > 0
        Standard deviation of the noise on each coordinate.
    sensitivity : float, > 0
        Largest change of the result, in L2 norm, when one person's state is replaced: sqrt(2) for a histogram, in which one
        count falls by 1 and another rises by 1. There is no default, as most published sensitivities are for adding or
        removing a person.

    Notes
    -----
    ``delta(epsilon) = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu)``, mu = sensitivity /
    standard_deviation (Balle and Wang, ICML 2018, Theorem 8). Tight, and independent of the dimension.

    Examples
    --------
    >>> from temporaldp.core.mechanisms.protocol import epsilon_of_one
    >>> noise = GaussianNoise(10.0, sensitivity=1.0)
    >>> round(epsilon_of_one(noise, delta=1e-6), 3)
    0.397
    """

    standard_deviation: float
    sensitivity: float
    norm: ClassVar[int] = 2

    def __post_init__(self) -> None:
        require_positive(self, "standard_deviation", "sensitivity")

    def calibrated(self, epsilon: float, delta: float, *, amplified: float = 1.0) -> Self:
        """Return the least noise that is (epsilon, delta)-DP where the sensitivity is a multiple of this one.

        Raises
        ------
        InputError
            There is none: delta is 0, or too small.
        """
        # Sensitivities over standard deviations among which a calibration searches
        low, high = 0.0, 1e3
        # Steps of a calibration, after which both ends are neighbouring doubles
        for _ in range(80 if delta > 0.0 else 0):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if gaussian_delta(np.array([epsilon]), middle)[1][0] <= delta else (low, middle)
        if low < 1e-9:
            raise InputError(f"expected a delta that Gaussian noise satisfies at epsilon = {epsilon:g}, got {delta!r}")
        return replace(self, standard_deviation=self.sensitivity * amplified / low)

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Delta at each epsilon."""
        return gaussian_delta(losses, self.sensitivity / self.standard_deviation)


def gaussian_delta(losses: FloatArray, mu: FloatArray | float) -> tuple[FloatArray, FloatArray]:
    """Delta at each epsilon of two unit Gaussians at a distance mu > 0, from below and from above; arrays are broadcast.

    By Mills ratios R: ``phi(x) (R(x) - R(x + mu))`` with ``x = epsilon / mu - mu / 2``.
    """
    from scipy.special import erfcx

    near = losses / mu - 0.5 * mu
    # erfcx overflows far on the left, where delta is 1 but for less than e^-200.
    left = near < -20.0
    at = np.where(left, 0.0, near)
    density = np.exp(-0.5 * at * at) * (1.0 + at * at * 4.0 * ULP)
    first, second = (0.5 * erfcx(x / math.sqrt(2.0)) for x in (at, at + mu))
    slack = ROUNDED * (1.0 + at * at) * (1.0 + mu)
    up = density * (first * (1.0 + slack) - second * (1.0 - slack))
    low = density * (first * (1.0 - slack) - second * (1.0 + slack))
    return probabilities_of(np.where(left, 1.0 - ROUNDED, low)), probabilities_of(np.where(left, 1.0, up))


@dataclass(frozen=True, slots=True)
class LaplaceNoise(Mechanism):
    """Laplace noise on one number.

    Parameters
    ----------
    scale : float, > 0
        b, the mean absolute noise.
    sensitivity : float, > 0
        Largest change of each of `coordinates` numbers when one person's state is replaced.
    coordinates : int
        Number of numbers that change. A histogram: sensitivity 1 in 2 coordinates.

    Notes
    -----
    ``delta(epsilon) = 1 - exp((epsilon - sensitivity / scale) / 2)``.
    """

    scale: float
    sensitivity: float
    coordinates: int = 1
    norm: ClassVar[int] = 1

    def __post_init__(self) -> None:
        require_positive(self, "scale", "sensitivity")
        assign(self, coordinates=whole_number(self.coordinates, "coordinates", least=1))

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the noise on each coordinate."""
        return math.sqrt(2.0) * self.scale

    def calibrated(self, epsilon: float, delta: float = 0.0, *, amplified: float = 1.0) -> Self:
        """Return the least noise that is epsilon-DP where the sensitivity is a multiple of this one; a delta gains nothing."""
        scale = self.coordinates * self.sensitivity * amplified / epsilon
        return replace(self, scale=scale * (1.0 + 2.0 * ROUNDED))

    @property
    def pure_epsilon(self) -> float:
        """Coordinates times sensitivity / scale, rounded up."""
        return self.coordinates * (self.sensitivity / self.scale) * (1.0 + ROUNDED)

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Delta at each epsilon."""
        own = self.sensitivity / self.scale
        gap = own - losses
        return both_sides(-np.expm1(-0.5 * np.maximum(gap, 0.0)), gap, own)
