"""Noise of any distribution that is known by its density, on one number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.values import FloatArray, assign, positive
from temporaldp.core.mechanisms.events import LOST_IN_SUMS
from temporaldp.core.mechanisms.protocol import LARGEST_LOG, Mechanism, checked_profile, probabilities_of

BEYOND = 1e-13
"""Probability of noise on either side that no cell covers; it counts as lost."""


@dataclass(frozen=True)
class AddedNoise(Mechanism):
    """Continuous noise on one number, made by `Mechanism.from_density`.

    The line is divided into cells. Delta is at least that of the mechanism that reports the cell alone. A density with one mode
    is, within a cell, no larger than at its ends and, of the shifted noise, no smaller. So the largest ratio of both at the
    ends bounds the privacy loss, but for the cells at the mode, where what lies above the ends counts as lost. Cells with more
    probability than such a density can have are refused. From above and from below, in both orders of two states.

    Parameters
    ----------
    noise : object with `logpdf`, `cdf`, `sf`, `ppf` and `isf`
    sensitivity : float, > 0
    pure_epsilon : float
        In nats; inf where it is unknown.
    """

    noise: Any
    sensitivity: float
    pure_epsilon: float = math.inf

    def __post_init__(self) -> None:
        assign(self, sensitivity=positive(self.sensitivity, "sensitivity"))
        missing = [
            name for name in ("logpdf", "cdf", "sf", "ppf", "isf") if not callable(getattr(self.noise, name, None))
        ]
        if missing:
            raise InputError(
                f"expected a continuous distribution, such as scipy.stats.logistic(scale=10), got {type(self.noise).__name__} "
                f"without {', '.join(missing)}"
            )
        checked_profile(self)

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Delta at each epsilon."""
        low, up = np.zeros(len(losses)), np.zeros(len(losses))
        for mass, other, largest in self._cells:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.log(mass) - np.log(other)
            low = np.maximum(low, _beyond(losses, np.nan_to_num(ratios, nan=-np.inf, posinf=np.inf), mass, other))
            up = np.maximum(up, _beyond(losses, largest, mass, mass * np.exp(-largest)))
        up = np.minimum(up + self.limit, 1.0)
        low = np.where(losses < self.pure_epsilon, low - LOST_IN_SUMS, 0.0)
        return probabilities_of(np.minimum(low, up)), probabilities_of(up)

    @property
    def limit(self) -> float:
        """What no cell covers, or lies above the ends of those at the mode, and what sums lose."""
        return 2.0 * BEYOND + LOST_IN_SUMS + self._above

    @cached_property
    def _ends(self) -> FloatArray:
        """Ends of cells of the noise: half of equal probability, half closer together in the tails, and many at the mode."""
        shares = np.concatenate([np.geomspace(BEYOND, 0.5, 10_000), np.linspace(0.0, 0.5, 10_000)[1:-1]])
        ends = np.unique(np.concatenate([self.noise.ppf(shares), self.noise.isf(shares)]))
        ends = ends[np.isfinite(ends)]
        central = np.abs([self.noise.ppf(1e-3), self.noise.isf(1e-3)]).max()
        if np.spacing(central) > 1e-7 * self.sensitivity:
            raise InputError(f"expected noise of about the size of its sensitivity, {self.sensitivity:g}, and near 0")
        for _ in range(8):
            near = int(np.argmax(self.noise.logpdf(ends)))
            first, last = max(near - 1, 0), min(near + 1, len(ends) - 1)
            ends = np.unique(np.concatenate([ends, np.linspace(ends[first], ends[last], 65)]))
        return np.asarray(ends)

    @cached_property
    def _above(self) -> float:
        """Probability of the noise above its density at the ends of the cells at its mode; `InputError` for other modes."""
        ends = self._ends
        density, width, mass = np.exp(self.noise.logpdf(ends)), np.diff(ends), _masses(self.noise, ends)
        near = int(np.argmax(density))
        at_mode = np.isin(np.arange(len(mass)), (near - 1, near))
        most = np.where(at_mode, np.inf, width * np.maximum(density[1:], density[:-1]))
        rises, falls = density[1:] > (1.0 + 1e-7) * density[:-1], density[:-1] > (1.0 + 1e-7) * density[1:]
        if rises[near:].any() or falls[:near].any() or (mass > most * (1.0 + 1e-6) + 1e-12).any():
            raise InputError("expected noise whose density rises to one mode and falls after it, got another one")
        least = width * np.minimum(density[1:], density[:-1])
        return float(np.maximum(mass - least, 0.0)[at_mode].sum())

    @cached_property
    def _cells(self) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Probability of each cell without and with the shift, and the largest privacy loss in it; for both directions."""
        found = []
        for shift in (self.sensitivity, -self.sensitivity):
            ends = np.unique(np.concatenate([self._ends, self._ends + shift]))
            mass, other = (_masses(self.noise, ends - moved) for moved in (0.0, shift))
            here, there = self.noise.logpdf(ends), self.noise.logpdf(ends - shift)
            with np.errstate(invalid="ignore"):
                largest = np.maximum(here[1:], here[:-1]) - np.minimum(there[1:], there[:-1])
                at_ends = np.nan_to_num(np.maximum(here - there, -np.inf), nan=-np.inf, posinf=np.inf)
            if not at_ends.max() <= self.pure_epsilon * (1.0 + 1e-9) + 1e-12:
                raise InputError(
                    f"expected a pure_epsilon that bounds the privacy loss of this noise, got {self.pure_epsilon:g}, and the "
                    f"density has a loss of {at_ends.max():g}; inf claims nothing"
                )
            found.append(
                (mass, other, np.minimum(np.nan_to_num(largest, nan=np.inf, posinf=np.inf), self.pure_epsilon))
            )
        return found


def _beyond(losses: FloatArray, reached: FloatArray, mass: FloatArray, other: FloatArray) -> FloatArray:
    """Sum of ``mass - e^epsilon other`` over the cells whose loss exceeds each epsilon."""
    order = np.argsort(-reached)
    count = np.searchsorted(-reached[order], -losses, side="left")
    sums = (np.concatenate([[0.0], np.cumsum(one[order])])[count] for one in (mass, other))
    first, second = sums
    return np.asarray(first - np.exp(np.minimum(losses, LARGEST_LOG)) * second)


def _masses(noise: Any, ends: FloatArray) -> FloatArray:
    """Probability of each cell, by the tail that is the smaller one."""
    below, above = np.asarray(noise.cdf(ends)), np.asarray(noise.sf(ends))
    return np.asarray(np.maximum(np.where(below[1:] < 0.5, np.diff(below), -np.diff(above)), 0.0))
