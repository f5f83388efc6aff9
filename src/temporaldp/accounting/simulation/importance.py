"""Draws that seldom happen and tell much, weighed: lower bounds of delta where plain draws hardly ever see it.

Notation (docs/theory.md, section 16)
--------
x, y      coupled walks from the two values of a pair, away from a step: one walk each, which go together once they meet
kappa     how far the noise is shifted, from y towards x and beyond: its mean is ``x + kappa (x - y)``
V         expected weight of what is still to come, by the pair (x, y)
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.simulation.verified_values import OwnCurves, StepValues
from temporaldp.correlation import Adversary
from temporaldp.correlation.adversary import exactly_known
from temporaldp.kernels.kernels import n_threads
from temporaldp.mechanisms.noise import GaussianNoise
from temporaldp.mechanisms.protocol import Mechanisms

FloatArray = NDArray[np.float64]

N_PAIRS = 4
"""Pairs of values that are looked at, those with the largest certified delta, at the step where that is largest."""

SHARE = 1 / 40
"""Of the plain draws is their number for each of these pairs."""

SHARES_OF_DELTA = (1.0, 10.0, 100.0, 1000.0)
"""Values at which stakes stop to gain."""

BATCH = 5_000
"""Draws with a seed of their own."""

MOST_VALUES = 12
"""Tables of pairs of values have the fourth power of their number."""

SHIFTS = np.geomspace(0.1, 100.0, 31)

LARGEST = 300.0
"""Exponents stay below it, so that no weight overflows."""


@dataclass(frozen=True, slots=True, eq=False)
class Walks:
    """Coupled walks away from a step, in one direction of time, for one shift.

    Parameters
    ----------
    chains : array, shape (k, n, n)
        The chain's rows from each of k steps to the next one away.
    means : array, shape (k,)
        Of each release: how far apart two values are, in standard deviations.
    chances : array, shape (k, n^2, n^2)
        Of each next pair of values.
    densities : array, shape (k, n^2, n^2)
        The same, over the normalizing constant of the shifted noise.
    log_weight : array, shape (n^2,)
        Logarithm of V before the first step.
    """

    chains: FloatArray
    means: FloatArray
    chances: FloatArray
    densities: FloatArray
    log_weight: FloatArray

    @classmethod
    def of(cls, chains: FloatArray, means: FloatArray, kappa: float) -> Walks:
        """Of given chains and releases, nearest first."""
        n = chains.shape[1]
        size = n * n
        apart = ~np.eye(n, dtype=bool).ravel()
        chances, densities = np.zeros((2, len(chains), size, size))
        log_weight = np.zeros(size)
        for k in reversed(range(len(chains))):
            coupled = _coupled(chains[k])
            shift = 0.5 * means[k] ** 2 * kappa * (kappa + 1.0) * apart
            exponents = np.where(coupled > 0.0, log_weight + shift, -np.inf)
            top = exponents.max(axis=1, keepdims=True)
            weighed = coupled * np.exp(exponents - top)
            total = weighed.sum(axis=1, keepdims=True)
            chances[k], densities[k] = weighed / total, weighed / total * np.exp(-shift)
            log_weight = (np.log(total) + top)[:, 0]
        return cls(chains, means, chances, densities, log_weight)


def _coupled(rows: FloatArray) -> FloatArray:
    """Both walks' next values: the same one as often as can be, else each by what is left of its row; shape (n^2, n^2)."""
    n = len(rows)
    same = np.minimum(rows[:, None], rows[None])
    left, right = rows[:, None] - same, rows[None] - same
    rest = left.sum(axis=2)
    inverse = np.divide(1.0, rest, out=np.zeros_like(rest), where=rest > 0.0)
    found = left[..., :, None] * right[..., None, :] * inverse[..., None, None]
    each = np.arange(n)
    found[..., each, each] += same
    return np.asarray(found.reshape(n * n, n * n))


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """How trajectories around a step are drawn to see a pair of values told apart."""

    step: int
    pair: tuple[int, int]
    kappa: float
    past: Walks
    future: Walks

    @classmethod
    def of(
        cls,
        adversary: Adversary,
        releases: Sequence[Mechanisms],
        own: OwnCurves,
        step: int,
        pair: tuple[int, int],
        epsilon: float,
    ) -> Proposal | None:
        """With the shift for which the largest weighed value is bounded best; None where draws cannot be shifted."""
        n = len(adversary.states or ())
        others = [release for t, release in enumerate(releases) if t != step and release]
        if n > MOST_VALUES or not others or not all(isinstance(release[0], GaussianNoise) for release in others):
            return None
        sides = [_side(adversary, releases, step, way) for way in (-1, 1)]
        loudest = max(float(means.max(initial=0.0)) for _, means in sides)
        levels = own.lowest + own.h * np.arange(1, own.above.shape[-1] + 1)
        a, b = pair
        value = own.above[a % len(own.above), b % len(own.above)]
        seen = value > 1e-12
        best: tuple[float, Proposal] | None = None
        for kappa in SHIFTS[SHIFTS * loudest * (loudest + 16.0) < LARGEST].tolist():
            past, future = (Walks.of(*side, kappa) for side in sides)
            weights = past.log_weight[a * n + b] + future.log_weight[a * n + b]
            bound = float((np.log(value[seen]) + kappa * levels[seen]).max() - kappa * epsilon + weights)
            if best is None or bound < best[0]:
                best = bound, cls(step, pair, kappa, past, future)
        return best[1] if best else None

    def drawn(self, count: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Log likelihood ratios of the pair, and the logarithms of their weights: shape (count,) each."""
        from temporaldp.accounting.simulation.kernels import add_shifted

        ratios, weights = np.zeros((2, count))
        for side in (self.past, self.future):
            if len(side.chains):
                chances = np.cumsum(side.chances, axis=2)
                args = (*self.pair, side.chains, side.means, chances, side.densities, self.kappa)
                add_shifted(rng, *args, ratios, weights)
        return ratios, weights


@dataclass(frozen=True, slots=True, eq=False)
class WeighedDraws:
    """Logarithms of bets on the delta of one pair at one step (`mean_bounds`), added up.

    Parameters
    ----------
    step : int
    pair : tuple of int
    stakes : array, shape (k,)
    logs : array, shape (m, k)
        At each of m epsilons, for each stake.
    draws : int
    """

    step: int
    pair: tuple[int, int]
    stakes: FloatArray
    logs: FloatArray
    draws: int


def proposals_for(
    adversary: Adversary, releases: Sequence[Mechanisms], steps: Sequence[StepValues], epsilons: Sequence[float]
) -> list[Proposal]:
    """For the pairs that the certified curves let be worst, chosen before anything is drawn."""
    middle = len(epsilons) // 2
    certified = np.array([step.certified[middle] for step in steps])
    step = int(np.argmax(certified.max(axis=(1, 2))))
    n = certified.shape[-1]
    worst = np.argsort(-certified[step], axis=None, kind="stable")[: min(N_PAIRS, n * (n - 1))]
    pairs = [(int(k) // n, int(k) % n) for k in worst]
    made = (Proposal.of(adversary, releases, steps[step].own, step, pair, epsilons[middle]) for pair in pairs)
    return [proposal for proposal in made if proposal is not None]


def weighed_draws(
    proposals: Sequence[Proposal],
    steps: Sequence[StepValues],
    epsilons: Sequence[float],
    delta: float,
    draws: int,
    end: float,
    seed: int,
) -> list[WeighedDraws]:
    """So many draws for each proposal, until the time is over."""
    stakes = 1.0 / (np.array(SHARES_OF_DELTA) * delta)
    n_batches = -(-draws // BATCH)
    seeds = np.random.SeedSequence(seed, spawn_key=(1,)).spawn(len(proposals) * n_batches)
    found = []

    def batch(which: int, k: int) -> tuple[FloatArray, int]:
        if time.monotonic() > end:
            return np.zeros((len(epsilons), len(stakes))), 0
        proposal, count = proposals[which], min(BATCH, draws - k * BATCH)
        ratios, weights = proposal.drawn(count, np.random.default_rng(seeds[which * n_batches + k]))
        own, weights = steps[proposal.step].own, np.exp(weights)
        values = (weights * own.from_below(proposal.pair, epsilon - ratios) for epsilon in epsilons)
        return np.array([np.log1p(stakes[:, None] * value).sum(axis=1) for value in values]), count

    with ThreadPoolExecutor(n_threads()) as pool:
        for which, proposal in enumerate(proposals):
            each = list(pool.map(batch, [which] * n_batches, range(n_batches)))
            logs, counts = np.sum([logs for logs, _ in each], axis=0), sum(count for _, count in each)
            found.append(WeighedDraws(proposal.step, proposal.pair, stakes, logs, counts))
    return found


def _side(adversary: Adversary, releases: Sequence[Mechanisms], step: int, way: int) -> tuple[FloatArray, FloatArray]:
    """Chains and releases of one direction of time, nearest first; none where it gives nothing away."""
    n = len(adversary.states or ())
    correlation = adversary.backward if way < 0 else adversary.forward
    if not correlation:
        return np.zeros((0, n, n)), np.zeros(0)
    steps = range(step - 1, -1, -1) if way < 0 else range(step + 1, len(releases))
    chains = [exactly_known(correlation.at(k if way < 0 else k - 1)).dense() for k in steps]
    means = [_apart(releases[k]) for k in steps]
    return np.array(chains).reshape(-1, n, n), np.array(means)


def _apart(release: Mechanisms) -> float:
    if not release:
        return 0.0
    (noise,) = release
    assert isinstance(noise, GaussianNoise)
    return noise.sensitivity / noise.standard_deviation
