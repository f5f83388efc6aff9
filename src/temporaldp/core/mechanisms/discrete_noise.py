"""Discrete noise on whole numbers as privacy profiles, from the probabilities of its privacy losses."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.values import ULP, FloatArray, assign, whole_number
from temporaldp.core.mechanisms.protocol import ROUNDED, Mechanism, probabilities_of, require_positive

MOST_ATOMS = 4_000_000
"""Values of discrete noise that are looked at one by one: a scale of some 200,000."""


SMALLEST_NORMAL = sys.float_info.min
"""Below it doubles have fewer digits, and a relative error has no meaning."""


ATOMS_TAIL = 40.0
"""Discrete Gaussian noise beyond so many scales has a probability below 1e-340: none, in doubles."""


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceNoise(Mechanism):
    """Discrete Laplace (two-sided geometric) noise on whole numbers: P(x) proportional to ``exp(-|x| / scale)``.

    Parameters
    ----------
    scale : float, > 0
        Scale of the noise, in counts.
    sensitivity : int, >= 1
        Largest change of each of `coordinates` counts when one person's state is replaced.
    coordinates : int, >= 1
        Number of counts that change. The defaults are those of a histogram.
    """

    scale: float
    sensitivity: int = 1
    coordinates: int = 2

    def __post_init__(self) -> None:
        _require_counts(self)
        if self.sensitivity > MOST_ATOMS:
            raise InputError(
                f"expected a sensitivity up to {MOST_ATOMS}, got {self.sensitivity}; LaplaceNoise is continuous"
            )

    @property
    def pure_epsilon(self) -> float:
        """Coordinates times sensitivity / scale, rounded up."""
        return self.coordinates * (self.sensitivity / self.scale) * (1.0 + ROUNDED)

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Delta at each epsilon, from the probabilities of the sensitivity + 1 privacy losses."""
        s, b = int(self.sensitivity), self.scale
        inside = np.arange(1, s)
        unit = -math.expm1(-1.0 / b) / (1.0 + math.exp(-1.0 / b))  # P(0)
        below = 1.0 / (1.0 + math.exp(-1.0 / b))  # P(x <= 0)
        atoms = np.concatenate(([s / b], (s - 2.0 * inside) / b))
        masses = np.concatenate(([below], unit * np.exp(-inside / b)))
        return from_atoms(losses, atoms[::-1], masses[::-1])


@dataclass(frozen=True, slots=True)
class DiscreteGaussianNoise(Mechanism):
    """Discrete Gaussian noise on whole numbers: P(x) proportional to ``exp(-x^2 / (2 scale^2))``.

    Parameters
    ----------
    scale : float, > 0
        Nearly the standard deviation.
    sensitivity : int
        Largest change of each of `coordinates` counts when one person's state is replaced.
    coordinates : int
        Number of counts that change. The defaults are those of a histogram.

    Notes
    -----
    Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020. Accounting is for the discrete
    distribution, not a continuous approximation.
    """

    scale: float
    sensitivity: int = 1
    coordinates: int = 2

    def __post_init__(self) -> None:
        _require_counts(self)
        if ATOMS_TAIL * self.scale > MOST_ATOMS:
            raise InputError(
                f"expected a scale up to {MOST_ATOMS / ATOMS_TAIL:g}, got {self.scale:g}; for so much noise, use the "
                "continuous GaussianNoise"
            )

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Delta at each epsilon, from the probabilities of the privacy losses ``(s^2 - 2 s x) / (2 scale^2)``."""
        s, variance = int(self.sensitivity), self.scale**2
        reach = math.ceil(ATOMS_TAIL * self.scale) + s
        x = np.arange(-reach, s // 2 + 1, dtype=np.float64)
        weights = np.exp(-0.5 * np.square(x / self.scale))
        total = float(np.sum(np.exp(-0.5 * np.square(np.arange(-reach, reach + 1) / self.scale))))
        atoms: FloatArray = ((0.5 * s - x) * (s / variance))[::-1]
        return from_atoms(losses, atoms, (weights / total)[::-1])


def _require_counts(noise: DiscreteLaplaceNoise | DiscreteGaussianNoise) -> None:
    """Raise an error unless the scale is a finite number > 0, and sensitivity and coordinates are whole numbers > 0."""
    require_positive(noise, "scale", "sensitivity")
    assign(noise, coordinates=whole_number(noise.coordinates, "coordinates", least=1))
    if int(noise.sensitivity) != noise.sensitivity:
        raise InputError(
            f"expected sensitivity of {type(noise).__name__} to be a whole number, got {noise.sensitivity!r}"
        )


def from_atoms(losses: FloatArray, atoms: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Delta at each epsilon of a distribution of privacy losses, from below and from above.

    Parameters
    ----------
    losses : array, >= 0
    atoms : array
        Privacy losses, increasing, up to one above 0; those below 0 may be left out.
    masses : array
        Their probabilities.

    Notes
    -----
    At atom i, with ``B_i = sum over j >= i of masses_j e^{atom_i - atom_j}``: ``D_i = D_{i+1} + (1 - e^{atom_i - atom_{i+1}})
    B_{i+1}``, a sum of numbers >= 0; between atoms a straight line in e^epsilon.
    """
    values, last = _values_at_atoms(atoms, masses)
    # Relative error of an exponential whose exponent, up to 800, was rounded
    slack = 4e-13 + atoms.size * ULP
    low = _between_atoms(atoms, values, last, losses * (1.0 + ROUNDED)) * (1.0 - slack)
    high = _between_atoms(atoms, values, last, losses * (1.0 - ROUNDED)) * (1.0 + slack)
    low = np.where(low < SMALLEST_NORMAL, 0.0, low)
    high = np.where((high > 0.0) & (high < SMALLEST_NORMAL), SMALLEST_NORMAL, high)
    return probabilities_of(low), probabilities_of(high)


def _values_at_atoms(nodes: FloatArray, masses: FloatArray) -> tuple[FloatArray, float]:
    """D at every atom, and B at the lowest."""
    steps = np.diff(nodes)[::-1]
    # Beyond, e^atom leaves the range of doubles, and atoms are added up one by one
    if nodes[-1] - nodes[0] <= 300.0:
        falling = np.exp(nodes - nodes[-1])[::-1]
        B = np.cumsum(masses[::-1] / falling) * falling
    else:
        each = zip(masses[-2::-1].tolist(), np.exp(-steps).tolist(), strict=True)
        B = np.array([*accumulate(each, lambda total, one: one[0] + one[1] * total, initial=float(masses[-1]))])
    return np.concatenate(([0.0], np.cumsum(-np.expm1(-steps) * B[:-1])))[::-1], float(B[-1])


def _between_atoms(nodes: FloatArray, values: FloatArray, lowest: float, losses: FloatArray) -> FloatArray:
    """D anywhere: straight lines in e^epsilon between atoms; below the lowest atom every loss counts."""
    last = nodes.size - 1
    left = np.clip(np.searchsorted(nodes, losses, side="right") - 1, 0, last)
    right = np.minimum(left + 1, last)
    gap, way = nodes[right] - nodes[left], np.maximum(losses - nodes[left], 0.0)
    share = np.divide(-np.expm1(-way), -np.expm1(-gap), out=np.ones_like(losses), where=gap > 0.0)
    share = np.clip(share * np.exp(np.minimum(losses - nodes[right], 0.0)), 0.0, 1.0)
    share = np.where(gap > 0.0, share, 1.0)
    between = (1.0 - share) * values[left] + share * values[right]
    return np.where(losses < nodes[0], values[0] - np.expm1(np.minimum(losses - nodes[0], 0.0)) * lowest, between)
