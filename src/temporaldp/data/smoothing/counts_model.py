"""State space of counts of people who move by a public chain, under several sizes of error of the chain, and their releases.

Notation: K models, n states.

=========  ==========================================================================================
``m``      (K, n) mean of the counts under each model
``V``      (K, n, n) their covariance; ``V 1 = 0``, since the total is public and exact
``P``      (n, n) the chain's matrix over one step: row = the state now, column = the state after
``N``      the public total of a step
``w``      (K,) factor of each model on the chain's covariance; inf for a model without a chain
``b``      (K, n) running mean of the errors of predictions, release less mean, and ``B`` its variance if the chain is right
``y``      (n,) the released counts: the counts plus independent noise of variance R each
``F``      (K, n, n) covariance of ``y`` before it is seen: ``V + R I``, never singular where R > 0
``u, U``   (K, n), (K, n, n) evidence of later releases: smoothed mean ``m + V u``, covariance ``V - V U V``
=========  ==========================================================================================

People who move independently by P have counts with mean ``c P`` and covariance ``diag(c P) - P' diag(c) P``, given the counts
c before (Theory, section 15). It is linear in c, so that its mean is taken at the mean of c. Real people are not alike
and do not move by one chain: the models multiply this covariance, and the last one forgets the past altogether. Where people
move otherwise at some times or in some states alone, as in a rush hour, predictions are off in one direction for several steps:
the excess of ``b^2`` over ``B`` is added to the variance of the state's next count.

The Kalman filter goes forward, the smoother back, for all models at once.
The backward recursion is that of Bryson and Frazier (Durbin and Koopman, "Time Series Analysis by State Space Methods", 2012,
section 4.4): it inverts F alone. The usual recursion of Rauch, Tung and Striebel inverts V, which is singular because the total
is known. It starts from the filtered m and V of a step, for which ``F^-1 = (I - V / R) / R`` and, m0 being the mean before the
release, ``F^-1 (y - m0) = (y - m) / R``: nothing more needs to be kept, and nothing large cancels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.values import FloatArray

WIDENINGS = (1.0, 1.7, 3.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 2500.0, 10000.0, np.inf)
"""What the models multiply the chain's covariance with. With 2 between neighbours, intervals differ by no more than a fifth in
width from those of the multiple between them."""

PRIOR = np.array([min(wide, 40_000.0) ** -0.3 for wide in WIDENINGS])
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


@dataclass(frozen=True, slots=True)
class PredictionErrors:
    """The running mean of the errors of predictions (b) and its variance where the chain is right (B), under each model.

    Zeros before the first prediction.
    """

    mean: FloatArray
    variance: FloatArray

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
    """Counts before the first release: shares of the total that are uniform on the simplex."""
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
    return _by_chain(mean, _symmetric(covariance), widenings, total_after)


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


def observe(
    expected: Belief, released: FloatArray, variance: float
) -> tuple[Belief, FloatArray, FloatArray, FloatArray]:
    """A step given its release, with noise of this variance, under each model.

    Returns the counts; the logarithm of the release's density, shape (K,); the error of the prediction of each released count,
    and its variance by the model, shape (K, n) each.
    """
    n = released.size
    F = expected.covariance + variance * np.eye(n)
    inverse = np.asarray(np.linalg.inv(F), dtype=np.float64)
    surprise = released - expected.mean
    weighed = _times(inverse, surprise)
    density = -0.5 * (np.einsum("ki,ki->k", surprise, weighed) + np.linalg.slogdet(F)[1] + n * np.log(2.0 * np.pi))
    mean = expected.mean + _times(expected.covariance, weighed)
    found = Belief(mean, _symmetric(variance * (inverse @ expected.covariance)))
    return found, density, surprise, np.einsum("kii->ki", F)


@dataclass(slots=True)
class LaterReleases:
    """Evidence of the releases after a step about its counts, in the backward recursion; zeros after the last step."""

    u: FloatArray
    U: FloatArray

    def smoothed(self, filtered: Belief) -> Belief:
        """The counts of the step, given all releases."""
        V = filtered.covariance
        return Belief(filtered.mean + _times(V, self.u), V - V @ self.U @ V)

    def with_release(self, filtered: Belief, released: FloatArray, variance: float) -> LaterReleases:
        """Add the step's own release."""
        kept = np.eye(released.size) - filtered.covariance / variance  # R F^-1
        u = (released - filtered.mean) / variance + _times(kept, self.u)
        return LaterReleases(u, _symmetric(kept / variance + kept @ self.U @ kept))

    def one_step_before(self, P: FloatArray, scale: FloatArray) -> LaterReleases:
        """Evidence one step before; `scale`, shape (K,), is the change of the total, 0 for a model without a chain."""
        return LaterReleases((self.u @ P.T) * scale[:, None], (P @ self.U @ P.T) * (scale**2)[:, None, None])


def _times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])


def _symmetric(matrices: FloatArray) -> FloatArray:
    return 0.5 * (matrices + matrices.transpose(0, 2, 1))
