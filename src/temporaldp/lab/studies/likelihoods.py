"""Likelihood of all published counts for each state of one person at each step, given the states of all other people.

Given the state at a step, the releases before it, at it and after it are independent, so that their likelihoods multiply;
those of the releases before and after follow by the recursion ``x <- P (m x)``, m the likelihoods of one release.
"""

from __future__ import annotations

import numpy as np

from temporaldp.base.values import FloatArray, IntArray
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.adversary import exactly_known
from temporaldp.core.correlation.protocol import Correlation
from temporaldp.core.planning.histogram_noise import Noise


def of_one_release(noise: Noise, scales: FloatArray, drawn: FloatArray) -> FloatArray:
    """Return the log likelihood of each state of a person, up to a constant, by the true state: shape (T, n + 1, n).

    `drawn` is the noise of each count, shape (T, n); a scale of infinity is a step without a release. The last row is for
    a person who was not counted at the step, and has no effect.
    """
    n_steps, n = drawn.shape
    seen = drawn[:, None, :] + np.eye(n)
    each = scales[:, None, None]
    by_laplace = (np.abs(seen) - np.abs(seen - 1.0)) / each
    found = by_laplace if noise == "laplace" else (2.0 * seen - 1.0) / (2.0 * np.square(each))
    return np.concatenate((found, np.zeros((n_steps, 1, n))), axis=1)


def of_all_releases(adversary: Adversary, codes: IntArray, likelihoods: FloatArray) -> FloatArray:
    """Return the log likelihood of all releases for each state at each step, up to a constant: shape (T, n_people, n)."""
    own = np.stack([likelihoods[t][codes[:, t]] for t in range(codes.shape[1])])
    future = _arriving(adversary.forward.in_reverse(), own[::-1])[::-1]
    return np.asarray(_arriving(adversary.backward, own) + own + future)


def _arriving(correlation: Correlation, own: FloatArray) -> FloatArray:
    """Return the log likelihood of the releases before each step, given its state, by ``x <- P (m x)``."""
    found = np.zeros_like(own)
    for t in range(len(own) - 1) if correlation else ():
        known = found[t] + own[t]
        top = known.max(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            found[t + 1] = np.log(np.exp(known - top) @ exactly_known(correlation.at(t)).dense().T)
    return found
