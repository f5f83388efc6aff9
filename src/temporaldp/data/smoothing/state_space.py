"""The linear state space of counts and their releases: the Kalman filter forward, the smoother back, for K models at once.

Notation as in counts_model.py, and for each step

=========  ==========================================================================================
``y``      (n,) the released counts: the counts plus independent noise of variance R each
``F``      (K, n, n) covariance of ``y`` before it is seen: ``V + R I``, never singular where R > 0
``u, U``   (K, n), (K, n, n) evidence of later releases: smoothed mean ``m + V u``, covariance ``V - V U V``
=========  ==========================================================================================

The backward recursion is that of Bryson and Frazier (Durbin and Koopman, "Time Series Analysis by State Space Methods", 2012,
section 4.4): it inverts F alone. The usual recursion of Rauch, Tung and Striebel inverts V, which is singular because the total
is known. It starts from the filtered m and V of a step, for which ``F^-1 = (I - V / R) / R`` and, m0 being the mean before the
release, ``F^-1 (y - m0) = (y - m) / R``: nothing more needs to be kept, and nothing large cancels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temporaldp.base.values import FloatArray
from temporaldp.data.smoothing.counts_model import Belief


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
