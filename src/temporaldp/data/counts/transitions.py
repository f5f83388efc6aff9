"""Noisy counts of transitions, to which each person contributes a few, and intervals of the correlation from them alone.

Notation
--------
l        transitions that each person contributes at most, drawn at random
n        number of states; N the table of those transitions, shape (n, n)
E        epsilon, for all states of a person together; scale 2 l / E: a person who is replaced takes away up to l
         transitions and adds up to l, an L1 distance of 2 l
Z        discrete Laplace noise on every cell of N
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.display import number
from temporaldp.base.values import REPLACE_PERSON, FloatArray, IntArray, positive
from temporaldp.core.correlation import Adversary, IntervalMatrix, Provenance
from temporaldp.data.counts.histogram import granted_scale, with_noise
from temporaldp.data.tables.estimation import clopper_pearson
from temporaldp.data.tables.traces import Traces, transitions_of


@dataclass(frozen=True, slots=True)
class TransitionHistogram:
    """Mechanism: exact discrete Laplace noise on a table of transitions, to which each person contributes at most l.

    epsilon-DP for all states of a person together (user level), under replacement of the person.

    Parameters
    ----------
    n_states : int
    contributed : int, >= 1
        l.
    rng : numpy Generator or seed, optional
        Source of the key by which the transitions of each person are chosen.
    """

    n_states: int
    contributed: int
    rng: np.random.Generator | int | None = field(default=None, repr=False)
    ledger_terms: ClassVar[dict[str, str]] = {"neighboring_relation": REPLACE_PERSON}

    def scale(self, epsilon: float) -> float:
        """Scale of the noise: 2 l / epsilon, raised by ulps until OpenDP's own map grants at most epsilon."""
        return granted_scale(2 * self.contributed, positive(epsilon, "epsilon"))

    def __call__(self, trajectories: Traces, epsilon: float) -> IntArray:
        """Noisy counts, shape (n, n), integers that may be negative; OpenDP draws the noise."""
        return with_noise(limited_transitions(trajectories, self.contributed, self.rng), self.scale(epsilon))


def limited_transitions(
    trajectories: Traces, contributed: int, rng: np.random.Generator | int | None = None
) -> IntArray:
    """Transitions, at most `contributed` per person, drawn at random without replacement, shape (n, n). Private.

    A transition is ranked by a hash of its user and time under a key from `rng`: the choice for one user does not depend on
    the data of another, as it would if one sequence of random numbers ran over the transitions of all.
    """
    people, times, before, after = transitions_of(trajectories)
    key = np.random.default_rng(rng).bytes(32)
    rank = _mixed(_hashed(trajectories.users, key)[people] + _hashed(trajectories.times, key)[times])
    order = np.lexsort((rank, people))
    ranked = people[order]
    first = np.searchsorted(ranked, ranked)
    kept = order[np.arange(len(ranked)) - first < contributed]
    n = trajectories.n_states
    return np.bincount(before[kept] * n + after[kept], minlength=n * n).reshape(n, n)


def _hashed(names: Sequence[str], key: bytes) -> NDArray[np.uint64]:
    """A keyed hash of every name."""
    digests = (hashlib.blake2b(name.encode(errors="surrogatepass"), key=key, digest_size=8).digest() for name in names)
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix 64 bits (the last step of SplitMix64), which makes hashes of the sums of two hashes."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def adversary_of(
    noisy: IntArray,
    trajectories: Traces,
    mechanism: TransitionHistogram,
    epsilon: float,
    confidence: float,
) -> Adversary:
    """Intervals from a noisy table: post-processing, at no further cost."""
    scale, states = mechanism.scale(epsilon), trajectories.states
    risk = (1.0 - confidence) / 2.0  # for each of the two directions
    most = mechanism.contributed * trajectories.n_users
    backward, forward = (noisy_intervals(table, scale, most, risk) for table in (noisy.T, noisy))
    unsure = [states[k] for low, high in (backward, forward) for k in np.flatnonzero((high - low).min(axis=1) > 0.5)]
    sentence = (
        f"Learned from the protected traces with {epsilon:g}-differential privacy for all states of a person together "
        f"({mechanism.contributed} transitions each, discrete Laplace noise of scale {scale:.4g}), "
        f"all entries at {confidence:.4g} confidence for a stationary Markov chain."
    )
    note = (
        ""
        if not unsure
        else f" Too few transitions beside the noise for {', '.join(dict.fromkeys(unsure))}: hardly anything is known."
    )
    spend = hashlib.sha256(sentence.encode() + noisy.tobytes()).hexdigest()[:16]
    provenance = Provenance("learnt", f"{sentence}{note} Spend {spend}.", ((spend, epsilon),))
    warned = replace(provenance, warning=contradiction_of(noisy, scale, most, risk, states))
    return Adversary(
        IntervalMatrix(*backward, states, provenance=warned), IntervalMatrix(*forward, states, provenance=provenance)
    )


def contradiction_of(noisy: IntArray, scale: float, most: int, risk: float, states: tuple[str, ...]) -> str | None:
    """The warning where the states before and after transitions have different shares, as in no stationary chain.

    Bounds of each of the two distributions fail with a probability of at most `risk`.
    """
    n = len(noisy)
    before, after = (
        np.concatenate(noisy_intervals(sums[None], scale, most, risk, n)) for sums in (noisy.sum(1), noisy.sum(0))
    )
    gaps = np.maximum(before[0] - after[1], after[0] - before[1])
    state = int(gaps.argmax())
    if gaps[state] <= 0.0:
        return None
    shares = [
        f"{number(low, down=True)} to {number(high, up=True)}" for low, high in (before[:, state], after[:, state])
    ]
    return (
        f"the traces contradict stationarity, which the backward intervals assume: state {states[state]!r} has a share of "
        f"{shares[0]} before a transition and of {shares[1]} after it. The backward intervals may not contain the truth. "
        "Estimate the correlation from public or historical data at a confidence (correlation.confidence), which has backward "
        "intervals of each step, or leave room: plan with a smaller alpha"
    )


def noisy_intervals(
    noisy: IntArray, scale: float, most: int, risk: float, summed: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Joint bounds of the distribution of each row from noisy counts; any fails with a probability of at most `risk`.

    Half of the risk is that some noise is larger than allowed for: two-sided bounds of each cell's noise, and of the sum of the
    others in its row, by Bonferroni. The other half is that of Clopper and Pearson, from the fewest hits and the most misses
    for the lower bound, the other way round for the upper one.

    Parameters
    ----------
    noisy : array, shape (m, n)
    scale : float
    most : int
        Largest possible number of transitions.
    risk : float
    summed : int
        Cells of the noisy table in each count, each with its own noise.
    """
    n = noisy.shape[1]
    each = 0.5 * risk / (2 * noisy.size)
    own, others = sum_of_noise(scale, summed, each), sum_of_noise(scale, summed * (n - 1), each)
    rest = noisy.sum(axis=1, keepdims=True) - noisy
    hits = np.clip(noisy - own, 0.0, most), np.clip(noisy + own, 0.0, most)
    misses = np.clip(rest - others, 0.0, most), np.clip(rest + others, 0.0, most)
    low, high = clopper_pearson(hits, misses, 0.5 * risk / noisy.size)
    # Where noise was larger than allowed for, a row may hold no distribution: then nothing is known of it.
    empty = (low.sum(axis=1) > 1.0) | (high.sum(axis=1) < 1.0)
    low[empty], high[empty] = 0.0, 1.0
    return low, high


def sum_of_noise(scale: float, count: int, risk: float) -> float:
    """A whole w with ``Pr(|Z_1 + ... + Z_count| > w) <= risk`` for independent discrete Laplace noise.

    One: by its tail. Several: Chernoff's bound, with the moment generating function ``(1 - r)^2 / ((1 - r e^s)(1 - r e^-s))``,
    ``r = e^(-1 / scale)``, at the best of some s; or the sum of single tails where that is smaller.
    """
    single = _tail(scale, risk / count)
    s = np.linspace(0.01, 0.99, 99) / scale
    # log(1 - r e^s) by expm1, which keeps its digits where the scale is large.
    log_moment = count * (
        2.0 * np.log(-np.expm1(-1.0 / scale)) - np.log(-np.expm1(s - 1.0 / scale)) - np.log(-np.expm1(-s - 1.0 / scale))
    )
    chernoff = float(np.min((log_moment + math.log(2.0 / risk)) / s))
    return float(min(math.ceil(chernoff), count * single))


def _tail(scale: float, risk: float) -> int:
    """The smallest w with ``Pr(|Z| > w) = 2 r^(w + 1) / (1 + r) <= risk``, ``r = e^(-1 / scale)``."""
    return max(0, math.ceil(-scale * math.log(risk * (1.0 + math.exp(-1.0 / scale)) / 2.0) - 1.0))
