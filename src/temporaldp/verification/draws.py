"""Simulation of states and outputs, and the contribution of likelihood ratios to bounds of their means."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from temporaldp.correlation import Adversary
from temporaldp.correlation.adversary import exactly_known
from temporaldp.correlation.protocol import Correlation
from temporaldp.kernels.compilation import kernel
from temporaldp.kernels.threads import n_threads, workers
from temporaldp.mechanisms.protocol import Mechanisms
from temporaldp.mechanisms.simulation import arriving_likelihoods, drawn_likelihoods, drawn_paths
from temporaldp.progress import progressed
from temporaldp.values import FloatArray, IntArray
from temporaldp.verification.values import ABOVE, BELOW, StepValues

Sums: TypeAlias = tuple[FloatArray, IntArray]
"""Shape (m, ABOVE + BELOW, T, n, n): the logarithms of `values`, added up, at each of m epsilons, for each stake; and how
many draws that is, shape (T, n)."""

SMALL = 1e-5
"""Below it a logarithm is replaced by three terms of its series, on the safe side."""

BATCH = 20_000
"""Trajectories that are drawn at once. Each batch has a seed of its own, so that threads change no number."""


def simulated(
    user: Adversary,
    releases: Sequence[Mechanisms],
    steps: Sequence[StepValues],
    epsilons: Sequence[float],
    draws: int,
    end: float,
    seed: int,
) -> Sums:
    """Return the sums over all batches, in order, up to the time limit."""
    n_batches = -(-draws // BATCH)
    seeds = np.random.SeedSequence(seed).spawn(n_batches)
    counts = [min(BATCH, draws - k * BATCH) for k in range(n_batches)]
    n, T = len(user.states or ()), len(releases)
    total, drawn = np.zeros((len(epsilons), ABOVE + BELOW, T, n, n)), np.zeros((T, n), np.int64)
    threads = n_threads()
    with workers(threads) as pool:
        for first in range(0, n_batches, threads):
            some = range(first, min(first + threads, n_batches))
            for sums, counted in pool.map(lambda k: batch(user, releases, steps, epsilons, counts[k], seeds[k]), some):
                total += sums
                drawn += counted
            progressed("simulated leakage", some[-1] / n_batches)
            if time.monotonic() > end:
                break
    return total, drawn


def batch(
    user: Adversary,
    releases: Sequence[Mechanisms],
    steps: Sequence[StepValues],
    epsilons: Sequence[float],
    count: int,
    seed: np.random.SeedSequence,
) -> Sums:
    """Draw trajectories in both directions of time, paired by the state at a step, given which they are independent."""
    rng = np.random.default_rng(seed)
    n, T = len(user.states or ()), len(releases)
    past = _drawn(user.backward, releases, n, count, rng)
    future = [drawn[::-1] for drawn in _drawn(user.forward.in_reverse(), releases[::-1], n, count, rng)]
    sums, drawn = np.zeros((T, n, len(epsilons), ABOVE + BELOW, n)), np.zeros((T, n), np.int64)
    levels = np.array(epsilons)
    for t, step in enumerate(steps):
        own = step.own
        for a in range(n):
            before, after = (np.flatnonzero(one[0][t] == a) for one in (past, future))
            size = min(before.size, after.size)
            drawn[t, a] = size
            known = past[1][t][before[:size]] + future[1][t][after[:size]]
            tables = (own.lowest, own.h, own.above, own.below)
            add_values(known, a, tables, levels, step.cut[:, a], step.most[:, a], step.stakes[:, a], ABOVE, sums[t, a])
    return sums.transpose(2, 3, 0, 1, 4), drawn


def _drawn(
    correlation: Correlation, releases: Sequence[Mechanisms], n: int, count: int, rng: np.random.Generator
) -> list[Any]:
    """Draw states and log likelihoods of the incoming releases, one array for each step, for `count` trajectories.

    States are drawn from the last step back, the last of them uniformly: given the state at a step, those before it are then
    by the chain, whatever comes later.
    """
    T = len(releases)
    last = rng.integers(n, size=count)
    if not correlation:
        return [[*rng.integers(n, size=(T - 1, count)), last], np.zeros((T, count, n))]
    rows = [exactly_known(correlation.at(t)).dense() for t in range(T - 1)]
    values = drawn_paths(rows, rows, T - 1, last, count, rng)
    own = (drawn_likelihoods(releases[t], values[t], n, rng) for t in range(T - 1))
    return [values, arriving_likelihoods(rows, own, np.zeros((count, n)))]


@kernel
def add_values(known, state, own, epsilons, cut, most, stakes, n_above, sums):
    """Add to ``sums[w, :, b]`` the logarithms of bets on the mean of a state and b at epsilon w.

    `known` are log likelihoods of all states for m draws given `state`, shape (m, n). `own` are the lowest epsilon, the spacing
    and the two tables of a release's curve. From above, with the first `n_above` of ``stakes[w, b]``, a ratio s is cut off at
    ``cut[w, b]``, whose value is ``most[w, b]``. The value at ``epsilons[w] - s`` is taken from the point of the table below or
    above, on the safe side.
    """
    lowest, h, above, below = own
    n_alike, last = above.shape[0], above.shape[2] - 1
    for b in range(known.shape[1]):
        if b == state:
            continue
        high_at, low_at = above[state % n_alike, b % n_alike], below[state % n_alike, b % n_alike]
        for w in range(epsilons.size):
            for r in range(known.shape[0]):
                s = math.inf
                if known[r, b] > -math.inf:
                    s = known[r, state] - known[r, b]
                at = (epsilons[w] - min(s, cut[w, b]) - lowest) / h
                high = min(high_at[min(max(math.floor(at), 0), last)], most[w, b])
                at = max((epsilons[w] - s - lowest) / h, 0.0)
                low = 0.0
                if at <= last:
                    low = low_at[math.ceil(at)]
                for c in range(n_above):
                    x = stakes[w, b, c] * high
                    sums[w, c, b] += math.log1p(-x) if x > SMALL else -x * (1.0 + 0.5 * x * (1.0 + x))
                for c in range(n_above, stakes.shape[2]):
                    x = stakes[w, b, c] * low
                    sums[w, c, b] += math.log1p(x) if x > SMALL else x * (1.0 - 0.5 * x)
