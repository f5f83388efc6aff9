"""Simulated counts, and the error of their smoothed estimates: of people like those of a history, or who move by a chain."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from temporaldp.base.errors import MatrixError
from temporaldp.base.values import FloatArray
from temporaldp.core.correlation import TransitionMatrix
from temporaldp.core.planning.histogram_noise import Noise, noise_variance
from temporaldp.data.smoothing.count_filter import StepRelease, smooth_steps
from temporaldp.data.smoothing.public_correlation import PublicCorrelation


@dataclass(frozen=True, slots=True)
class SimulatedCounts:
    """Counts of populations, and quantiles of their noise.

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

    def smoothed_error(self, scales: FloatArray, noise: Noise) -> float:
        """Mean absolute error of a smoothed count, in people, with noise of one scale, or of one for each step.

        A step with an infinite scale is not drawn.
        """
        each = np.broadcast_to(np.asarray(scales, dtype=np.float64), self.counts.shape[1:2])
        drawn, total = np.isfinite(each), float(self.counts[0, 0].sum())
        each = np.where(drawn, each, 1.0)
        known = {scale: noise_variance(scale, noise) for scale in set(each.tolist())}
        variances = [known[scale] for scale in each.tolist()]
        smoothed = [
            smooth_steps(
                [
                    StepRelease(y if is_drawn else None, variance, 1.0, total)
                    for y, variance, is_drawn in zip(one, variances, drawn, strict=True)
                ],
                self.correlation,
            )[0].counts
            for one in self.counts + noise_at_quantiles(self.draws, each[:, None], noise)
        ]
        return float(np.abs(np.array(smoothed) - self.counts).mean())


def similar_counts(
    past: FloatArray, correlation: PublicCorrelation, *, n_people: int, horizon: int, repetitions: int, seed: int
) -> SimulatedCounts:
    """Scale the counts of other people, shape (T, n), to a number of people, from the first step or, if unknown, from several.

    They move as people do, and not by the chain that smooths them.
    """
    last = 0 if correlation.initial is not None else len(past) - horizon
    starts = np.linspace(0, last, repetitions).astype(int).tolist()
    shares = past / past.sum(axis=1, keepdims=True)
    counts = n_people * np.array([shares[start : start + horizon] for start in starts])
    draws = np.random.default_rng(seed).uniform(1e-12, 1.0 - 1e-12, counts.shape)
    return SimulatedCounts(counts, draws, correlation)


def simulated_counts(
    correlation: PublicCorrelation, *, n_people: int, horizon: int, repetitions: int, seed: int
) -> SimulatedCounts:
    """Simulate populations that begin as other people did, where that is known; else with the chain's stationary shares.

    With equal shares where it has none.
    """
    generator = np.random.default_rng(seed)
    n, began = len(correlation.states), correlation.initial
    shares = (
        _first_shares(correlation.matrix(0) if horizon > 1 else None, n)
        if began is None
        else np.array(began) / sum(began)
    )
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
    with suppress(MatrixError):  # several closed classes: where people are depends on where they began
        if chain is not None:
            found = chain.stationary_distribution()
            return np.asarray(found / found.sum())
    return np.full(n, 1.0 / n)


def noise_at_quantiles(draws: FloatArray, scale: float | FloatArray, noise: Noise) -> FloatArray:
    """Discrete noise at these quantiles; for simulation only: released noise is drawn by OpenDP."""
    if noise == "gaussian":
        from scipy.special import ndtri

        return np.asarray(np.rint(ndtri(draws) * scale))
    ratio = np.exp(-1.0 / scale)
    outside = np.minimum(draws, 1.0 - draws)  # P(noise <= -k) = ratio^k / (1 + ratio)
    size = np.maximum(np.floor(np.log(outside * (1.0 + ratio)) / np.log(ratio)), 0.0)
    return np.asarray(np.where(draws < 0.5, -size, size))
