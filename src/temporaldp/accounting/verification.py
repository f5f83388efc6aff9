"""Leakage at a delta of releases that are given, verified by simulation: confidence bounds of delta, from both sides.

Notation (docs/theory.md, section 16)
--------
s        log likelihood ratio of two values by everything before a step and after it, drawn given the first value
own      the release's curve at that step, ``E_g`` of its outputs: known in closed form, and not simulated
cut      s is cut off there, so that what is averaged is at most ``own(epsilon - cut)``; the rest is bounded by certified curves
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import grid
from temporaldp.accounting.curves import Side, checked_delta
from temporaldp.accounting.pair_leakage_curves import PairLeakageCurves
from temporaldp.accounting.series import temporal_leakage
from temporaldp.correlation import Adversary
from temporaldp.correlation.adversary import Correlation, known_at
from temporaldp.errors import BudgetError, InputError
from temporaldp.leakage.kernels import n_threads
from temporaldp.mechanisms.events import releases_of
from temporaldp.mechanisms.protocol import Mechanisms
from temporaldp.mechanisms.simulation import drawn_likelihoods, require_simulated
from temporaldp.progress import part, progressed
from temporaldp.values import compared_by_value, positive, whole_number

FloatArray = NDArray[np.float64]
Sums: TypeAlias = tuple[FloatArray, NDArray[np.int64]]
"""Shape (m, 2 + 2 CAPS, T, n, n): what is averaged and its squares, from above, and from below with each cap, added up, at each
of m epsilons; and how many draws that is, shape (T, n)."""

BATCH = 20_000
"""Trajectories that are drawn at once. Each batch has a seed of its own, so that threads change no number."""

FINER = 8
"""Points of a table of the release's curve for each one of the grid: a ratio is moved to the next one on the safe side."""

CAP_SHARES = (0.1, 1.0, 10.0, 100.0)
"""Of delta: caps of values from below, besides one that the certified curves choose."""

CAPS = len(CAP_SHARES) + 1

RANGE = 7.0 / 3.0
"""Share of the largest value, times the logarithm over the number of draws, in the inequality of Maurer and Pontil."""


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VerifiedLeakage:
    """Confidence bounds of the delta of every pair of values at every step, at one epsilon; from `verify_leakage`.

    All of them hold together, but with a probability of at most `failure` that the draws deceive.

    Parameters
    ----------
    states : tuple of str
    epsilon, delta, failure : float
        What was asked for; epsilon in nats.
    upper, lower : array, shape (T, n, n)
        Bounds of delta for each step, value, and value that it is told from; `upper` is no more than `certified`.
    certified : array, shape (T, n, n)
        Upper bounds by the curves of all pairs, which no draw can deceive.
    draws : array of int, shape (T, n)
        Draws given each value at each step; no more than were asked for, fewer for rare values.
    """

    states: tuple[str, ...]
    epsilon: float
    delta: float
    failure: float
    upper: FloatArray
    lower: FloatArray
    certified: FloatArray
    draws: NDArray[np.int64]

    @property
    def holds(self) -> bool:
        """Whether (epsilon, delta)-DP_T is certified, or verified but with a probability of `failure`."""
        return bool(self.upper.max() <= self.delta)

    @property
    def is_certified(self) -> bool:
        """Whether it holds without any simulation."""
        return bool(self.certified.max() <= self.delta)

    @property
    def is_refuted(self) -> bool:
        """Whether the release itself leaks more, but with a probability of `failure`."""
        return bool(self.lower.max() > self.delta)

    def __repr__(self) -> str:
        return f"VerifiedLeakage({self.verdict})"

    @property
    def verdict(self) -> str:
        """What was found, in words."""
        level = f"{self.epsilon:g} nats at delta {self.delta:g}"
        between = f"the release's own delta is between {self.lower.max():.3g} and {self.upper.max():.3g}"
        but = f", but with a probability of at most {self.failure:g}"
        if self.is_certified:
            return f"at most {level}, certified by the curves of all pairs; {between}{but}"
        if self.holds:
            return f"at most {level}, verified by simulation{but}: {between}"
        if self.is_refuted:
            return f"more than {level}{but}: {between}"
        return (
            f"not verified to be at most {level}: {between}{but}. The certified bound of delta is "
            f"{self.certified.max():.3g}; give more draws, more time, a larger epsilon or more noise"
        )


def verify_leakage(
    adversary: Adversary,
    mechanisms: Sequence[Any],
    *,
    delta: float,
    epsilon: float,
    failure: float = 1e-9,
    draws: int = 2_000_000,
    seconds: float | None = None,
    seed: int = 0,
) -> VerifiedLeakage:
    """Confidence bounds of delta at an epsilon, for every step and pair of values, of mechanisms that are simulated.

    Values are drawn from the chains and outputs from the mechanisms; likelihood ratios are exact, by the recursion
    ``x <- P m x``. What is averaged is bounded by an empirical Bernstein inequality, and a union bound over both sides, all
    steps and all pairs: all of it holds with a probability of at least ``1 - failure`` (docs/theory.md, section 16).

    Parameters
    ----------
    adversary : Adversary
        One, with a correlation.
    mechanisms : sequence of T mechanisms
        As for `temporal_leakage`: one a step, or None. Noise on a histogram or a table of outputs; a `PrivacyGuarantee` does
        not say what comes out, and is refused.
    delta : float
        From 1e-9.
    epsilon : float, > 0
        In nats.
    failure : float
        Below delta: it is what a plan that rests on this adds to delta.
    draws : int
        Trajectories in each direction of time.
    seconds : float, optional
        A limit of time. What was drawn by then counts, so that the answer is no longer that of the seed alone.
    seed : int

    Returns
    -------
    VerifiedLeakage

    Raises
    ------
    InputError
        A mechanism that cannot be simulated, an adversary who knows nothing, failure above delta.

    Examples
    --------
    >>> from temporaldp import Adversary, GaussianNoise, TransitionMatrix
    >>> walk = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]))
    >>> found = verify_leakage(walk, [GaussianNoise(4.0, sensitivity=1.0)] * 3, delta=1e-3, epsilon=1.0, draws=20_000)
    >>> found.holds, bool((found.lower <= found.upper).all())
    (True, True)
    """
    alpha = positive(epsilon, "epsilon")
    (found,) = verified_at(
        adversary, mechanisms, delta, lambda _: [alpha], failure=failure, draws=draws, seconds=seconds, seed=seed
    )
    return found


def verified_at(
    adversary: Adversary,
    mechanisms: Sequence[Any],
    delta: float,
    epsilons: Callable[[float], Sequence[float]],
    *,
    failure: float,
    draws: int,
    seconds: float | None,
    seed: int,
) -> list[VerifiedLeakage]:
    """Confidence bounds at several epsilons, by the same draws: all of them hold together, but with probability `failure`.

    `epsilons` are chosen by the certified leakage, before anything is drawn.
    """
    if not isinstance(adversary, Adversary) or adversary.states is None:
        raise InputError("expected one Adversary with a correlation: without one, values cannot be drawn")
    level = checked_delta(delta)
    if not 0.0 < failure < level:
        raise BudgetError(
            f"expected failure between 0 and delta = {level:g}, got {failure!r}: it is added to delta by whoever relies on it"
        )
    if seconds is not None and not seconds > 0.0:
        raise InputError(f"expected seconds > 0, got {seconds!r}")
    releases = releases_of(mechanisms)
    adversary = adversary.over(len(releases))
    for release in set(releases):
        require_simulated(release, len(adversary.states or ()))
    with part(0.0, 0.3, "certified bounds"):
        series = temporal_leakage(adversary, mechanisms=mechanisms, delta=level, bound="pair_curve")
    assert isinstance(series.evidence, PairLeakageCurves)
    each = epsilons(series.worst)
    whole_number(draws, "draws", least=1)
    rate = _log(len(releases), len(series.evidence.states), failure / len(each)) / draws
    averages = _averages(series.evidence, each, rate)
    with part(0.3, 1.0, "simulated leakage"):
        sums, drawn = _simulated(adversary, releases, averages, each, draws, seconds, seed)
    share = failure / len(each)
    return [
        _bounds(adversary.states or (), epsilon, level, share, _stacked(averages, which), sums[which], drawn)
        for which, epsilon in enumerate(each)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _OwnCurves:
    """Delta of a release at ``lowest + k h``, from both sides: shape (n, n, K), or (1, 1, K) if all pairs are alike."""

    lowest: float
    h: float
    above: FloatArray
    below: FloatArray

    @classmethod
    def of(cls, evidence: PairLeakageCurves, release: Mechanisms, lowest: float, highest: float) -> _OwnCurves:
        """Between two epsilons."""
        pairs = evidence.pairs
        h, own = pairs.h / FINER, pairs.own(release)
        epsilons = np.arange(lowest, highest + h, h)
        alike = own.ndim == 1 or (len(own) == 1 and not (release and hasattr(release[0], "pair_bounds")))
        n = 1 if alike else len(evidence.states)
        above, below = np.zeros((n, n, epsilons.size)), np.zeros((n, n, epsilons.size))
        lower = Side(pairs.h, pairs.delta, up=False)
        for a in range(n):
            for b in range(n):
                if a != b or alike:
                    above[a, b] = _signed(own, a, b, pairs.h, epsilons)
                    below[a, b] = _from_below(lower, release, a, b, epsilons)
        return cls(lowest, h, above, below)


@dataclass(frozen=True, slots=True, eq=False)
class _Average:
    """Of one step, at each of m epsilons: what is averaged for each pair, and what the average leaves out; shape (m, n, n).

    From above the ratio s is cut off at ``cut``, where the value is ``most``, and ``rest`` bounds what lies beyond; from below
    values are cut off at each of ``caps``, shape (m, n, n, CAPS), which may leave out anything.
    """

    own: _OwnCurves
    cut: FloatArray
    most: FloatArray
    rest: FloatArray
    certified: FloatArray
    caps: FloatArray

    @classmethod
    def of(
        cls, evidence: PairLeakageCurves, step: int, own: _OwnCurves, epsilons: Sequence[float], rate: float
    ) -> _Average:
        """Cuts are chosen by the certified curves alone, before anything is drawn; `rate` is the logarithm over the draws."""
        pairs, n = evidence.pairs, len(evidence.states)
        arrived = pairs.composed(evidence.past[step], evidence.future[step])
        both = pairs.composed(arrived, pairs.own(evidence.releases[step]))
        cut, most, rest, certified = (np.zeros((len(epsilons), n, n)) for _ in range(4))
        caps = np.zeros((len(epsilons), n, n, CAPS))
        levels = own.lowest + own.h * np.arange(own.above.shape[-1])
        for a in range(n):
            for b in set(range(n)) - {a}:
                certified[:, a, b] = _signed(both, a, b, pairs.h, np.array(epsilons))
                value, curve = _pair(own.above, a, b)[::-FINER], _pair(arrived, a, b)
                for which, epsilon in enumerate(epsilons):
                    s = np.asarray(epsilon - levels[::-FINER])
                    tails = _tails(value, s, curve, pairs.h)
                    kept = np.maximum(certified[which, a, b] - tails, 0.0)
                    width = RANGE * value * (n * rate) + np.sqrt(2.0 * value * kept * (n * rate))
                    k = int(np.argmin(tails + width))
                    cut[which, a, b], most[which, a, b], rest[which, a, b] = s[k], value[k], tails[k]
                    caps[which, a, b, 0] = value[int(np.argmax(kept - width))]
        caps[..., 1:] = np.array(CAP_SHARES) * pairs.delta
        return cls(own, cut, most, rest, certified, caps)


def _averages(evidence: PairLeakageCurves, epsilons: Sequence[float], rate: float) -> list[_Average]:
    """One for each step; steps at which nothing changes share theirs, and steps with the same release its curves."""
    pairs = evidence.pairs
    sizes = [curves.shape[-1] for side in (evidence.past, evidence.future) for curves in side]
    reach = (2 * max(sizes) + max(pairs.own(release).shape[-1] for release in set(evidence.releases))) * pairs.h
    lowest, highest = min(epsilons) - reach, max(epsilons) + reach
    own = {release: _OwnCurves.of(evidence, release, lowest, highest) for release in set(evidence.releases)}
    known: dict[Any, _Average] = {}
    found = []
    for t, release in enumerate(evidence.releases):
        progressed("certified tails", t / len(evidence))
        key = (id(evidence.past[t]), id(evidence.future[t]), release)
        if key not in known:
            known[key] = _Average.of(evidence, t, own[release], epsilons, rate)
        found.append(known[key])
    return found


def _pair(curves: FloatArray, a: int, b: int) -> FloatArray:
    """The curve of one pair, on its grid."""
    return curves if curves.ndim == 1 else np.asarray(curves[a % len(curves), b % len(curves)])


def _signed(curves: FloatArray, a: int, b: int, h: float, epsilons: FloatArray) -> FloatArray:
    """Delta of one pair at any epsilon, below 0 by the other order; an upper bound."""
    first, second = (grid.interpolated(_pair(curves, *pair), h, np.abs(epsilons)) for pair in ((a, b), (b, a)))
    fallen = np.exp(np.minimum(epsilons, 0.0))
    found: FloatArray = np.where(epsilons < 0.0, (1.0 - fallen) + fallen * second, first)
    return np.minimum(found * (1.0 + 1e-12) + 1e-15, 1.0)


def _from_below(lower: Side, release: Mechanisms, a: int, b: int, epsilons: FloatArray) -> FloatArray:
    """Delta of one pair at any epsilon, a lower bound: by the mechanism's own bounds there, which are exact to rounding."""
    if not release:
        return np.maximum(-np.expm1(epsilons), 0.0)
    mechanism: Any = release[0]
    levels = np.abs(epsilons)
    if hasattr(mechanism, "pair_bounds"):
        first, second = (mechanism.pair_bounds(*pair, levels)[0] for pair in ((a, b), (b, a)))
    else:
        first = second = grid.interpolated(lower.own(release), lower.h, levels)
    fallen = np.exp(np.minimum(epsilons, 0.0))
    found = np.where(epsilons < 0.0, (1.0 - fallen) + fallen * second, first)
    return np.asarray(np.maximum(found * (1.0 - 1e-12) - 1e-15, 0.0))


def _tails(value: FloatArray, s: FloatArray, arrived: FloatArray, h: float) -> FloatArray:
    """For each s as the cut: the most that ratios beyond it add to the mean, by the certified curve of what arrives.

    In r = e^-s the value is convex, so that its chords lie above; they are a sum of ``weight (r_k - r)^+``, whose means are the
    curve at ``1 / r_k``. Beyond the last point, up to r = 0, the chord to 1.
    """
    r = np.exp(-s)
    steepness = np.append(np.diff(value) / (r[:-1] - r[1:]), (1.0 - value[-1]) / r[-1])
    before = np.concatenate(([0.0], steepness[:-1]))
    levels = np.abs(s)
    delta = grid.interpolated(arrived, h, levels)
    mean = np.where(s >= 0.0, r * delta, 1.0)  # below 0 no cut is sought
    kinks = np.maximum(steepness - before, 0.0) * mean
    later = np.append(np.cumsum(kinks[::-1])[::-1][1:], 0.0)
    return np.asarray((steepness * mean + later) * (1.0 + 1e-9))


def _simulated(
    user: Adversary,
    releases: Sequence[Mechanisms],
    averages: Sequence[_Average],
    epsilons: Sequence[float],
    draws: int,
    seconds: float | None,
    seed: int,
) -> Sums:
    """The sums over all batches, in their order; until the time is over."""
    n_batches = -(-draws // BATCH)
    seeds = np.random.SeedSequence(seed).spawn(n_batches)
    counts = [min(BATCH, draws - k * BATCH) for k in range(n_batches)]
    n, T = len(user.states or ()), len(releases)
    total, drawn = np.zeros((len(epsilons), 2 + 2 * CAPS, T, n, n)), np.zeros((T, n), np.int64)
    end = math.inf if seconds is None else time.monotonic() + seconds
    threads = n_threads()
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, n_batches, threads):
            some = range(first, min(first + threads, n_batches))
            for sums, counted in pool.map(
                lambda k: _batch(user, releases, averages, epsilons, counts[k], seeds[k]), some
            ):
                total += sums
                drawn += counted
            progressed("simulated leakage", some[-1] / n_batches)
            if time.monotonic() > end:
                break
    return total, drawn


def _batch(
    user: Adversary,
    releases: Sequence[Mechanisms],
    averages: Sequence[_Average],
    epsilons: Sequence[float],
    count: int,
    seed: np.random.SeedSequence,
) -> Sums:
    """Trajectories in both directions of time; those with one value at a step are paired, as they are independent given it."""
    from temporaldp.accounting.verification_compiled import add_values

    rng = np.random.default_rng(seed)
    n, T = len(user.states or ()), len(releases)
    past = _drawn(user.backward, releases, n, count, rng)
    future = [drawn[::-1] for drawn in _drawn(_reversed(user.forward), releases[::-1], n, count, rng)]
    sums, drawn = np.zeros((T, n, len(epsilons), 2 + 2 * CAPS, n)), np.zeros((T, n), np.int64)
    levels = np.array(epsilons)
    for t, average in enumerate(averages):
        own = average.own
        for a in range(n):
            before, after = (np.flatnonzero(one[0][t] == a) for one in (past, future))
            size = min(before.size, after.size)
            drawn[t, a] = size
            known = past[1][t][before[:size]] + future[1][t][after[:size]]
            tables = (own.lowest, own.h, own.above, own.below)
            add_values(known, a, tables, levels, average.cut[:, a], average.most[:, a], average.caps[:, a], sums[t, a])
    return sums.transpose(2, 3, 0, 1, 4), drawn


def _reversed(correlation: Correlation) -> Correlation:
    return correlation[::-1] if isinstance(correlation, tuple) else correlation


def _drawn(
    correlation: Correlation, releases: Sequence[Mechanisms], n: int, count: int, rng: np.random.Generator
) -> list[Any]:
    """[values, log likelihoods of what arrives], one array a step each, for `count` trajectories.

    Values are drawn from the last step back, the last of them uniformly: given the value at a step, those before it are then
    as the chain says, whatever comes later.
    """
    T = len(releases)
    values = np.empty((T, count), np.int64)
    values[-1] = rng.integers(n, size=count)
    arrived = np.zeros((T, count, n))
    if correlation is None:
        for t in range(T - 1):
            values[t] = rng.integers(n, size=count)
        return [values, arrived]
    rows = [known_at(correlation, t).dense() for t in range(T - 1)]
    for t in range(T - 2, -1, -1):
        limits = np.cumsum(rows[t], axis=1)
        here = values[t + 1]
        values[t] = (rng.random(count)[:, None] * limits[here, -1:] >= limits[here]).sum(axis=1)
        np.minimum(values[t], n - 1, out=values[t])
    for t in range(T - 1):
        known = arrived[t] + drawn_likelihoods(releases[t], values[t], n, rng)
        top = known.max(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            arrived[t + 1] = np.log(np.exp(known - top) @ rows[t].T)
    return [values, arrived]


def _log(n_steps: int, n: int, failure: float) -> float:
    """Of both tails of the inequality, on both sides, for every step and pair."""
    return math.log(2.0 * 2.0 * n_steps * n * (n - 1) / failure)


def _stacked(averages: Sequence[_Average], which: int) -> list[FloatArray]:
    """At one epsilon the largest values, what is left out, what is certified, each of shape (T, n, n), and the caps."""
    return [np.array([getattr(one, name)[which] for one in averages]) for name in ("most", "rest", "certified", "caps")]


def _bounds(
    states: tuple[str, ...],
    epsilon: float,
    delta: float,
    failure: float,
    known: Sequence[FloatArray],
    sums: FloatArray,
    drawn: NDArray[np.int64],
) -> VerifiedLeakage:
    """Empirical Bernstein from both sides, each with the same share of the failure probability (Maurer, Pontil, COLT 2009)."""
    (highest, rest, certified, caps), n, T = known, len(states), len(drawn)
    N = np.maximum(drawn, 2)[:, :, None].astype(np.float64)
    log = _log(T, n, failure)
    apart, enough = ~np.eye(n, dtype=bool), drawn[:, :, None] > 1

    def bounded(k: int, most: FloatArray, log: float) -> tuple[FloatArray, FloatArray]:
        mean = sums[k] / N
        variance = np.maximum(sums[k + 1] / N - np.square(mean), 0.0) * N / (N - 1.0) + 1e-15 * most * mean
        return mean, np.sqrt(2.0 * variance * log / N) + RANGE * most * log / (N - 1.0)

    mean, width = bounded(0, highest, log)
    upper = np.where(enough, np.minimum(mean + width + rest, 1.0), 1.0)
    each = [bounded(2 + 2 * c, caps[..., c], log + math.log(CAPS)) for c in range(CAPS)]
    lower = np.where(enough & apart, np.max([mean - width for mean, width in each], axis=0), 0.0)
    lower = np.maximum(lower, 0.0)
    upper = np.where(apart, np.minimum(upper, certified), 0.0)
    return VerifiedLeakage(states, epsilon, delta, failure, upper, lower, certified, drawn)
