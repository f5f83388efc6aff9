"""Likelihoods of the outputs of a matrix mechanism, summed over all paths.

Notation
--------
b        bandwidth: an output depends on the b last states at most
word     the last b states, or all up to a step if there are fewer; an array has one axis for each of them, the oldest first
A_s      likelihood of the outputs up to step s, with the words that end there, given the state at s
G_s      likelihood of the outputs after step s given the word that ends there
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.protocol import SIDES
from temporaldp.correlated_noise.coupling import matrices_of, published_at
from temporaldp.correlation import Adversary
from temporaldp.errors import InputError
from temporaldp.mechanisms.simulation import drawn_paths
from temporaldp.values import FloatArray

MOST_WORDS = 1 << 16
"""Words above which likelihoods are not computed."""

CHUNK = 1 << 18
"""Numbers of one array. If doubled: simulations take twice the memory."""


class PathLikelihoods:
    """Outputs of ``C x + noise`` about one step, and their likelihoods given each state there.

    Parameters
    ----------
    user : Adversary
        With exactly known matrices. In a direction without a correlation every step has the first state.
    strategy : array, shape (m, T)
    sigma : float
    step : int

    Raises
    ------
    InputError
        There are too many words.
    """

    def __init__(self, user: Adversary, strategy: FloatArray, sigma: float, step: int) -> None:
        self.n, self._sigma, self._step, self._strategy = len(user.states or "01"), sigma, step, strategy
        self._published = published_at(strategy)
        depends = strategy != 0.0
        self._bandwidth = int((self._published - np.argmax(depends, axis=1))[depends.any(axis=1)].max()) + 1
        if self.n**self._bandwidth > MOST_WORDS:
            raise InputError(
                f"expected a mechanism with at most {MOST_WORDS} words of {self.n} states, got outputs that depend on "
                f"{self._bandwidth} steps; take fewer steps or a banded matrix"
            )
        T = strategy.shape[1]
        first = np.tile(np.eye(self.n)[0], (self.n, 1))
        self._backward, self._forward = (matrices_of(user, side, T) or [first] * (T - 1) for side in SIDES)

    def drawn(self, state: int, draws: int, rng: np.random.Generator) -> FloatArray:
        """Log likelihoods of outputs that are drawn given a state, shape (1, draws, n), up to a number for each draw."""
        size = max(CHUNK // self.n ** (self._bandwidth + 1), 1)
        return np.concatenate([self._some(state, min(size, draws - k), rng) for k in range(0, draws, size)])[None]

    def _some(self, state: int, draws: int, rng: np.random.Generator) -> FloatArray:
        paths = drawn_paths(self._backward, self._forward, self._step, state, draws, rng)
        outputs = np.einsum("rt,tdx->drx", self._strategy, np.eye(self.n)[paths])
        outputs += self._sigma * rng.standard_normal(outputs.shape)
        past, future = self._until(outputs), self._after(outputs)
        while future.ndim < past.ndim:
            future = future[:, None]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log((past * future).sum(axis=tuple(range(1, past.ndim - 1)))))

    def _until(self, outputs: FloatArray) -> FloatArray:
        """A at the step."""
        found = self._likelihood(outputs, 0)
        for t in range(1, self._step + 1):
            found = found[..., None] * self._backward[t - 1].T
            if found.ndim - 1 > self._bandwidth:
                found = found.sum(axis=1)
            found = found * self._likelihood(outputs, t)
            found /= found.max(axis=tuple(range(1, found.ndim)), keepdims=True)
        return found

    def _after(self, outputs: FloatArray) -> FloatArray:
        """G at the step."""
        T = self._strategy.shape[1]
        found = np.ones((len(outputs),) + (1,) * min(self._bandwidth, T))
        for t in range(T - 1, self._step, -1):
            both = found * self._likelihood(outputs, t)
            if both.ndim == 2:
                both = both[:, None]
            found = (both * self._forward[t - 1]).sum(axis=-1)
            found /= found.max(axis=tuple(range(1, found.ndim)), keepdims=True)
            while found.ndim - 1 < min(self._bandwidth, t):
                found = found[:, None]
        return found

    def _likelihood(self, outputs: FloatArray, t: int) -> FloatArray:
        """Likelihood of the outputs that are published at a step, given each word that ends there."""
        rows, means = self._means[t]
        words = means.shape[: means.ndim - 2]
        flat = means.reshape(self.n ** len(words), rows.size * self.n)
        logs = outputs[:, rows].reshape(len(outputs), -1) @ flat.T - 0.5 * (flat**2).sum(axis=1)
        logs /= self._sigma**2
        return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)).reshape(-1, *words))

    @cached_property
    def _means(self) -> list[tuple[NDArray[np.int64], FloatArray]]:
        """Rows published at each step, and their means given each word, shape (n, ..., n, rows, n)."""
        found = []
        for t in range(self._strategy.shape[1]):
            rows = np.flatnonzero(self._published == t)
            first = max(t - self._bandwidth + 1, 0)
            means = np.zeros((self.n,) * (t - first + 1) + (rows.size, self.n))
            for k in range(first, t + 1):
                one = self._strategy[rows, k][None, :, None] * np.eye(self.n)[:, None, :]
                means += one.reshape((1,) * (k - first) + (self.n,) + (1,) * (t - k) + one.shape[1:])
            found.append((rows, means))
        return found
