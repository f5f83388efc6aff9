"""Noise on the counts of a histogram: its kinds, its scale under a budget, how large it is, and its privacy profile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.values import FloatArray
from temporaldp.core.mechanisms import DiscreteGaussianNoise, DiscreteLaplaceNoise

Noise: TypeAlias = Literal["gaussian", "laplace"]

HISTOGRAM_SENSITIVITY = 2
"""L1 sensitivity of a histogram when one person's state is replaced: one count falls by 1, another rises by 1."""


def checked_noise(noise: str) -> Noise:
    """Return the kind of noise; `InputError` for an unknown one."""
    if noise not in get_args(Noise):
        raise InputError(f"expected the noise to be 'gaussian' or 'laplace', got {noise!r}")
    return "gaussian" if noise == "gaussian" else "laplace"


def histogram_profile(noise: Noise, scale: float) -> DiscreteGaussianNoise | DiscreteLaplaceNoise:
    """Mechanism of a histogram with this noise: replacing a person's state changes one count by -1, another by +1."""
    return DiscreteGaussianNoise(scale) if noise == "gaussian" else DiscreteLaplaceNoise(scale)


def laplace_scales(epsilons: Sequence[float] | FloatArray) -> FloatArray:
    """The scale of a histogram's discrete Laplace noise for each budget; inf for a budget of 0."""
    with np.errstate(divide="ignore"):
        return HISTOGRAM_SENSITIVITY / np.asarray(epsilons, dtype=np.float64)


def noise_quantile(scale: float, probability: float, noise: Noise = "laplace") -> float:
    """Half-width w with ``Pr(|noise| <= w) >= probability`` for one count; for error bars."""
    if noise == "gaussian":
        within = np.cumsum(_gaussian(scale) * np.where(np.arange(_reach(scale)) == 0, 1.0, 2.0))
        return float(np.searchsorted(within, probability * within[-1]))
    # Pr(|Z| > k) = 2 r^(k + 1) / (1 + r) with r = exp(-1 / scale).
    ratio = math.exp(-1.0 / scale)
    return max(0.0, math.ceil(math.log((1.0 - probability) * (1.0 + ratio) / 2.0) / math.log(ratio) - 1.0))


def noise_variance(scale: float, noise: Noise = "laplace") -> float:
    """Variance of the noise of one count; discrete Laplace ``2 r / (1 - r)^2`` with ``r = exp(-1 / scale)``."""
    if noise == "gaussian":
        return 2.0 * float(_gaussian(scale) @ np.square(np.arange(_reach(scale)))) / _total(scale)
    return float(0.5 / np.sinh(0.5 / scale) ** 2)


def mean_absolute_noise(scales: Sequence[float] | FloatArray, noise: Noise = "laplace") -> float:
    """Expected absolute noise of one count, averaged over the steps that are published (those with a finite scale).

    Discrete Laplace: ``2 r / (1 - r^2)``, ``r = exp(-1 / scale)``. Discrete Gaussian: by its probabilities.
    """
    each = np.asarray(scales, dtype=np.float64)
    each = each[np.isfinite(each)]
    if noise == "laplace":
        return float(np.mean(1.0 / np.sinh(1.0 / each)))
    found, times = np.unique(each, return_counts=True)
    means = [2.0 * float(_gaussian(scale) @ np.arange(_reach(scale))) / _total(scale) for scale in found.tolist()]
    return float(np.average(means, weights=times))


def _reach(scale: float) -> int:
    return math.ceil(12.0 * scale) + 2


def _gaussian(scale: float) -> FloatArray:
    """Discrete Gaussian weights of 0, 1, 2, ... up to 12 scales."""
    return np.asarray(np.exp(-0.5 * np.square(np.arange(_reach(scale)) / scale)))


def _total(scale: float) -> float:
    return 2.0 * float(_gaussian(scale).sum()) - 1.0
