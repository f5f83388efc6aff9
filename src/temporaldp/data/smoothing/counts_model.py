"""Model of counts of people who move by a public chain, under several sizes of error of the chain.

Notation: K models, n states.

=========  ==========================================================================================
``m``      (K, n) mean of the counts under each model
``V``      (K, n, n) their covariance; ``V 1 = 0``, since the total is public and exact
``P``      (n, n) the chain's matrix over one step: row = the state now, column = the state after
``N``      the public total of a step
``w``      (K,) factor of each model on the chain's covariance; inf for a model without a chain
``b``      (K, n) running mean of the errors of predictions, release less mean, and ``B`` its variance if the chain is right
=========  ==========================================================================================

People who move independently by P have counts with mean ``c P`` and covariance ``diag(c P) - P' diag(c) P``, given the counts
c before (Theory, section 15). It is linear in c, so that its mean is taken at the mean of c. Real people are not alike
and do not move by one chain: the models multiply this covariance, and the last one forgets the past altogether. Where people
move otherwise at some times or in some states alone, as in a rush hour, predictions are off in one direction for several steps:
the excess of ``b^2`` over ``B`` is added to the variance of the state's next count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.values import BoolArray, FloatArray

WIDENINGS = (1.0, 1.7, 3.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 2500.0, 10000.0, np.inf)
"""What the models multiply the chain's covariance with. With 2 between neighbours, intervals differ by no more than a fifth in
width from those of the multiple between them."""

POWER = 0.3

PRIOR = np.array([min(wide, 40_000.0) ** -POWER for wide in WIDENINGS])
"""How likely each is before anything is released, up to a factor. The power decides where releases say little: it was chosen so
that intervals hold 93 to 97 % of the counts of the data sets in docs/measured/counts.md, as nearly as one number can."""

ERROR_MEMORY = 0.6
"""What one more step leaves of the running mean of prediction errors. With a longer memory (0.9), intervals in the busiest
states of commuters hold 2 to 5 % fewer counts; with a shorter one, intervals and errors grow where the noise is large."""


@dataclass(frozen=True, slots=True)
class Belief:
    """Mean and covariance of the counts of one step, under each model."""

    mean: FloatArray
    covariance: FloatArray

    def only(self, kept: BoolArray) -> Belief:
        """Under some of the models."""
        return Belief(self.mean[kept], self.covariance[kept])


@dataclass(frozen=True, slots=True)
class PredictionErrors:
    """The running mean of the errors of predictions (b) and its variance where the chain is right (B), under each model.

    Zeros before the first prediction.
    """

    mean: FloatArray
    variance: FloatArray

    def only(self, kept: BoolArray) -> PredictionErrors:
        """Under some of the models."""
        return PredictionErrors(self.mean[kept], self.variance[kept])

    def with_step(self, error: FloatArray, variance: FloatArray) -> PredictionErrors:
        """Errors after one more release, with this error, and this variance if the chain is right."""
        new = 1.0 - ERROR_MEMORY
        return PredictionErrors(
            ERROR_MEMORY * self.mean + new * error, ERROR_MEMORY**2 * self.variance + new**2 * variance
        )

    def widened(self, expected: Belief) -> Belief:
        """The next counts, with the variance of the errors that the chain does not explain added; totals stay exact.

        Covariance of independent errors of these variances, given that they sum to 0.
        """
        excess = np.maximum(np.square(self.mean) - self.variance, 0.0)
        share = excess / np.maximum(excess.sum(axis=1, keepdims=True), 1e-300)
        added = -share[:, :, None] * excess[:, None, :]
        at = range(excess.shape[1])
        added[:, at, at] += excess
        return Belief(expected.mean, expected.covariance + added)


def unknown_counts(total: float, n_states: int, n_models: int) -> Belief:
    """Counts before the first release: every table of counts with this total is equally likely."""
    even = np.full((n_models, n_states), total / n_states)
    spread = np.eye(n_states) / n_states - 1.0 / n_states**2
    return Belief(even, np.tile(spread * (total**2 / (n_states + 1.0)), (n_models, 1, 1)))


def first_counts(initial: ArrayLike | None, n_states: int, widenings: FloatArray, total: float) -> Belief:
    """Counts before the first release, where other people began with the counts `initial`, if that is known.

    Shares are estimated from these people, and one more who is spread evenly.
    """
    if initial is None:
        return unknown_counts(total, n_states, widenings.size)
    began = np.asarray(initial, dtype=np.float64)
    others = float(began.sum())
    shares = (began + 1.0 / n_states) / (others + 1.0)
    spread = total * (1.0 + total / (others + 1.0)) * (np.diag(shares) - np.outer(shares, shares))
    covariance = np.where(np.isfinite(widenings), widenings, 0.0)[:, None, None] * spread
    return _by_chain(total * shares, covariance, widenings, total)


def next_counts(now: Belief, P: FloatArray, widenings: FloatArray, total: float, total_after: float) -> Belief:
    """Counts one step later, with the public total of that step.

    People who leave or arrive are assumed to be like all others: with a share f that stays, the covariance is that of
    sampling without replacement; those who arrive are drawn from the shares of the step.
    """
    n = now.mean.shape[1]
    present = np.maximum(now.mean, 0.0)
    present *= (total / np.maximum(present.sum(axis=1), 1e-300))[:, None]
    mean, moved = now.mean @ P, present @ P
    own = -(P.T * present[:, None, :]) @ P
    own[:, range(n), range(n)] += moved
    covariance = P.T @ now.covariance @ P + np.where(np.isfinite(widenings), widenings, 0.0)[:, None, None] * own
    if total_after != total:
        mean, covariance = _with_total(mean, covariance, moved / max(total, 1e-300), total, total_after)
    return _by_chain(mean, 0.5 * (covariance + covariance.transpose(0, 2, 1)), widenings, total_after)


def _by_chain(mean: FloatArray, covariance: FloatArray, widenings: FloatArray, total: float) -> Belief:
    """The counts under the models with a chain; under a model without one, only the total is given."""
    chained, unknown = np.isfinite(widenings), unknown_counts(total, covariance.shape[-1], widenings.size)
    return Belief(
        np.where(chained[:, None], mean, unknown.mean),
        np.where(chained[:, None, None], covariance, unknown.covariance),
    )


def _with_total(
    mean: FloatArray, covariance: FloatArray, shares: FloatArray, total: float, total_after: float
) -> tuple[FloatArray, FloatArray]:
    """The counts after people left or came."""
    scale = total_after / max(total, 1e-300)
    spread = -shares[:, :, None] * shares[:, None, :]
    n = mean.shape[1]
    spread[:, range(n), range(n)] += shares
    changed = (total_after - total) if scale > 1.0 else scale * (1.0 - scale) * total
    return mean * scale, covariance * scale**2 + changed * spread
