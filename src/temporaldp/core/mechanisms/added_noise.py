"""Noise of any distribution that is known by its density, on one number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.values import FloatArray, positive
from temporaldp.core.mechanisms.events import LOST_IN_SUMS
from temporaldp.core.mechanisms.protocol import LARGEST_LOG, Mechanism, checked_profile, probabilities_of

BEYOND = 1e-13
"""Probability of noise on either side that no cell covers; it counts as lost."""


@dataclass(frozen=True)
class AddedNoise(Mechanism):
    """Continuous noise on one number, made by `Mechanism.from_density`.

    The line is divided into cells. Delta is at least that of the mechanism that reports the cell alone, and at most that of one
    whose privacy loss in each cell is the largest at its ends and middle, which a density with one mode takes there but for
    the cell of the mode, where it is the larger of its neighbours. From above and from below, in both orders of two states.

    Parameters
    ----------
    noise : object with `logpdf`, `cdf`, `sf` and `ppf`
    sensitivity : float, > 0
    pure_epsilon : float
        In nats; inf where it is unknown.
    """

    noise: Any
    sensitivity: float
    pure_epsilon: float = math.inf

    def __post_init__(self) -> None:
        positive(self.sensitivity, "sensitivity")
        missing = [name for name in ("logpdf", "cdf", "sf", "ppf") if not callable(getattr(self.noise, name, None))]
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
            low = np.maximum(low, _beyond(losses, np.nan_to_num(ratios, nan=-np.inf), mass, other) - LOST_IN_SUMS)
            up = np.maximum(up, _beyond(losses, largest, mass, mass * np.exp(-largest)) + self.limit)
        return probabilities_of(np.where(losses < self.pure_epsilon, low, 0.0)), probabilities_of(up)

    @property
    def limit(self) -> float:
        """What no cell covers, and what sums lose."""
        return 2.0 * BEYOND + LOST_IN_SUMS

    @cached_property
    def _cells(self) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Probability of each cell without and with the shift, and the largest privacy loss in it; for both directions."""
        # Half of equal probability, and half closer together in the tails; delta is known to about the share of a cell
        shares = np.concatenate([np.geomspace(BEYOND, 0.5, 10_000), np.linspace(0.0, 0.5, 10_000)[1:-1]])
        left, right = (np.asarray(self.noise.ppf(one), dtype=np.float64) for one in (shares, 1.0 - shares))
        found = []
        for shift in (self.sensitivity, -self.sensitivity):
            ends = np.concatenate([left, right])
            ends = np.unique(np.concatenate([ends, ends + shift]))
            ends = ends[np.isfinite(ends)]
            mass, other = (_masses(self.noise, ends - moved) for moved in (0.0, shift))
            points = np.column_stack([ends[:-1], 0.5 * (ends[:-1] + ends[1:]), ends[1:]])
            with np.errstate(invalid="ignore", divide="ignore"):
                loss = np.nan_to_num(self.noise.logpdf(points) - self.noise.logpdf(points - shift), nan=np.inf)
            largest = loss.max(axis=1)
            if not largest.max() <= self.pure_epsilon * (1.0 + 1e-9):
                raise InputError(
                    f"expected a pure_epsilon that bounds the privacy loss of this noise, got {self.pure_epsilon:g}, and the "
                    f"density has a loss of {largest.max():g}; inf claims nothing"
                )
            around = np.maximum(largest, np.maximum(np.append(largest[1:], -np.inf), np.append(-np.inf, largest[:-1])))
            found.append((mass, other, np.minimum(around, self.pure_epsilon)))
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
