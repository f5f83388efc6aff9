"""Errors of smoothed counts for people who move by a public chain, by simulation: no data are needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temporaldp.base.errors import MatrixError
from temporaldp.base.values import FloatArray
from temporaldp.core.correlation import TransitionMatrix
from temporaldp.core.planning.histogram_noise import Noise, noise_variance
from temporaldp.data.smoothing.count_filter import StepRelease
from temporaldp.data.smoothing.public_correlation import PublicCorrelation
from temporaldp.data.smoothing.smoother import smooth_steps


@dataclass(frozen=True, slots=True)
class SimulatedCounts:
    """Counts of populations that move by the chain, and quantiles of their noise.

    The same draws serve every scale of noise, so that errors rise with the scale.

    Parameters
    ----------
    counts : array, shape (R, T, n)
        Counts of R populations.
    draws : array, shape (R, T, n)
        Quantile of the noise of each count, between 0 and 1.
    correlation : PublicCorrelation
    """

    counts: FloatArray
    draws: FloatArray
    correlation: PublicCorrelation

    def smoothed_error(self, scale: float, noise: Noise) -> float:
        """Mean absolute error of a smoothed count, in people, with noise of this scale."""
        added = noise_at_quantiles(self.draws, scale, noise)
        variance, total = noise_variance(scale, noise), float(self.counts[0, 0].sum())
        smoothed = [
            smooth_steps([StepRelease(y, variance, 1.0, total) for y in one], self.correlation).found.counts
            for one in self.counts + added
        ]
        return float(np.abs(np.array(smoothed) - self.counts).mean())


def simulated_counts(
    correlation: PublicCorrelation, *, n_people: int, horizon: int, repetitions: int, seed: int
) -> SimulatedCounts:
    """Simulate populations that begin with the chain's stationary shares, or with equal ones where it has none."""
    generator = np.random.default_rng(seed)
    n = len(correlation.states)
    shares = _first_shares(correlation.matrix(0) if horizon > 1 else None, n)
    counts = np.empty((repetitions, horizon, n))
    for one in counts:
        # More people change nothing that is shown
        one[0] = generator.multinomial(min(n_people, 2_000_000_000), shares)
        for t in range(1, horizon):
            rows = correlation.matrix(t - 1).dense()
            moves = [
                generator.multinomial(int(c), row / row.sum()) for c, row in zip(one[t - 1], rows, strict=True) if c
            ]
            one[t] = np.sum(moves, axis=0)
    return SimulatedCounts(counts, generator.uniform(1e-12, 1.0 - 1e-12, counts.shape), correlation)


def _first_shares(chain: TransitionMatrix | None, n: int) -> FloatArray:
    if chain is None:
        return np.full(n, 1.0 / n)
    try:
        found = chain.stationary_distribution()
    except MatrixError:  # several closed classes: where people are depends on where they began
        return np.full(n, 1.0 / n)
    return np.asarray(found / found.sum())


def noise_at_quantiles(draws: FloatArray, scale: float, noise: Noise) -> FloatArray:
    """Discrete noise at these quantiles; for simulation only: released noise is drawn by OpenDP."""
    if noise == "gaussian":
        from scipy.special import ndtri

        return np.asarray(np.rint(ndtri(draws) * scale))
    ratio = np.exp(-1.0 / scale)
    outside = np.minimum(draws, 1.0 - draws)  # P(noise <= -k) = ratio^k / (1 + ratio)
    size = np.maximum(np.floor(np.log(outside * (1.0 + ratio)) / np.log(ratio)), 0.0)
    return np.asarray(np.where(draws < 0.5, -size, size))
