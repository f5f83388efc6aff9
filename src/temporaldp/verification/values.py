"""Random variables whose means bound delta: functions of likelihood ratios, and the omitted tails.

Notation (Theory, section 16)
--------
s        log likelihood ratio of two states by everything before a step and after it, drawn given the first state
own      the release's curve at that step, ``E_g`` of its outputs: known in closed form, and not simulated
cut      s is cut off there, so that what is averaged is at most ``own(epsilon - cut)``; the rest is bounded by certified curves
stake    of a bet on the mean (below): the first ones bound it from above, the others from below

Confidence bounds of a mean of draws
------------------------------------
Let X >= 0 be drawn N times, independently, with mean p, and let c > 0 be a stake that is chosen before. The products of ``(1 +
c X) / (1 + c p)`` and, where c X < 1 always, of ``(1 - c X) / (1 - c p)`` have mean 1. So each reaches ``1 / failure`` with at
most the probability `failure` (Markov); otherwise

    log(1 + c p) >= mean of log(1 + c X) - log(1 / failure) / N
    log(1 - c p) >= mean of log(1 - c X) - log(1 / failure) / N

The first bounds p from below, whatever the largest X may be, and the second from above. The best stake depends on the second
moment of X, so that several are tried, each with a share of the failure probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from temporaldp.accounting.curve import grid
from temporaldp.accounting.curve.arrivals import SingleCurve
from temporaldp.accounting.curve.evidence import LeakageCurves, Run, curve_of_pair
from temporaldp.mechanisms.protocol import Mechanisms
from temporaldp.progress import progressed
from temporaldp.values import FloatArray

FINER = 8
"""Points of a table of the release's curve for each one of the grid: a ratio is moved to the next one on the safe side."""

SHARES_ABOVE = (0.98, 0.3, 0.1)
"""Stakes from above, times the largest value, which they may not reach."""

SHARES_BELOW = (0.1, 1.0, 10.0, 100.0)
"""Shares of delta at which stakes from below stop to gain, besides one that the certified curves determine."""

ABOVE, BELOW = len(SHARES_ABOVE), len(SHARES_BELOW) + 1

ROUNDING = 1e-9
"""Relative; adding 10^7 numbers loses less."""


@dataclass(frozen=True, slots=True, eq=False)
class OwnCurves:
    """Bounds of the delta of a release at ``lowest + k h``: shape (n, n, K), or (1, 1, K) if all pairs are alike."""

    lowest: float
    h: float
    above: FloatArray
    below: FloatArray

    @classmethod
    def of(cls, evidence: LeakageCurves, release: Mechanisms, lowest: float, highest: float) -> OwnCurves:
        """Return the curves of a release, interpolated between two epsilons."""
        pairs = pairs_of(evidence).curves
        h, own = pairs.h / FINER, pairs.own(release)
        epsilons = np.arange(lowest, highest + h, h)
        alike = own.ndim == 1 or (len(own) == 1 and not (release and hasattr(release[0], "pair_bounds")))
        n = 1 if alike else len(evidence.states)
        above, below = np.zeros((n, n, epsilons.size)), np.zeros((n, n, epsilons.size))
        lower = SingleCurve(pairs.h, pairs.delta, up=False)
        for a in range(n):
            for b in range(n):
                if a != b or alike:
                    above[a, b] = _signed(own, a, b, pairs.h, epsilons)
                    below[a, b] = _from_below(lower, release, a, b, epsilons)
        return cls(lowest, h, above, below)


@dataclass(frozen=True, slots=True, eq=False)
class StepValues:
    """Averaged values and omitted tails of one step, at each of m epsilons, for each pair: shape (m, n, n).

    From above the ratio s is cut off at ``cut``, where the value is ``most``, and ``rest`` bounds what lies beyond; from below
    nothing is. ``stakes`` has the shape (m, n, n, ABOVE + BELOW).
    """

    own: OwnCurves
    cut: FloatArray
    most: FloatArray
    rest: FloatArray
    certified: FloatArray
    stakes: FloatArray

    @classmethod
    def of(
        cls, evidence: LeakageCurves, step: int, own: OwnCurves, epsilons: Sequence[float], rate: float
    ) -> StepValues:
        """Values with cuts from the certified curves, chosen before the first draw; `rate` is the logarithm over the draws."""
        run, n = pairs_of(evidence), len(evidence.states)
        pairs = run.curves
        arrived = pairs.composed(run.past[step], run.future[step])
        both = pairs.composed(arrived, pairs.own(evidence.releases[step]))
        cut, most, rest, certified = (np.zeros((len(epsilons), n, n)) for _ in range(4))
        stakes = np.zeros((len(epsilons), n, n, ABOVE + BELOW))
        levels = own.lowest + own.h * np.arange(own.above.shape[-1])
        for a in range(n):
            for b in set(range(n)) - {a}:
                certified[:, a, b] = _signed(both, a, b, pairs.h, np.array(epsilons))
                value, curve = curve_of_pair(own.above, a, b)[::-FINER], curve_of_pair(arrived, a, b)
                for which, epsilon in enumerate(epsilons):
                    s = np.asarray(epsilon - levels[::-FINER])
                    tails = _tails(value, s, curve, pairs.h)
                    kept = np.maximum(certified[which, a, b] - tails, 0.0)
                    width = value * (n * rate) + np.sqrt(2.0 * value * kept * (n * rate))
                    k = int(np.argmin(tails + width))
                    cut[which, a, b], most[which, a, b], rest[which, a, b] = s[k], value[k], tails[k]
                    stakes[which, a, b, :ABOVE] = np.array(SHARES_ABOVE) / value[k]
                    stakes[which, a, b, ABOVE] = 1.0 / value[int(np.argmax(kept - width))]
                    stakes[which, a, b, ABOVE + 1 :] = 1.0 / (np.array(SHARES_BELOW) * pairs.delta)
        return cls(own, cut, most, rest, certified, stakes)


def values_of_steps(evidence: LeakageCurves, epsilons: Sequence[float], rate: float) -> list[StepValues]:
    """Return the values of each step; equal steps share them, and steps with the same release share its curves."""
    run = pairs_of(evidence)
    pairs = run.curves
    sizes = [curves.shape[-1] for side in (run.past, run.future) for curves in side]
    reach = (2 * max(sizes) + max(pairs.own(release).shape[-1] for release in set(evidence.releases))) * pairs.h
    lowest, highest = min(epsilons) - reach, max(epsilons) + reach
    own = {release: OwnCurves.of(evidence, release, lowest, highest) for release in set(evidence.releases)}
    known: dict[Any, StepValues] = {}
    found = []
    for t, release in enumerate(evidence.releases):
        progressed("certified tails", t / len(evidence))
        key = (id(run.past[t]), id(run.future[t]), release)
        if key not in known:
            known[key] = StepValues.of(evidence, t, own[release], epsilons, rate)
        found.append(known[key])
    return found


def pairs_of(evidence: LeakageCurves) -> Run:
    """Return the curves of all pairs of states, the start of a simulation."""
    assert evidence.pairs is not None
    return evidence.pairs


def _signed(curves: FloatArray, a: int, b: int, h: float, epsilons: FloatArray) -> FloatArray:
    """Return an upper bound of the delta of one pair at any epsilon; below 0 by the reversed pair."""
    first, second = (grid.interpolated(curve_of_pair(curves, *pair), h, np.abs(epsilons)) for pair in ((a, b), (b, a)))
    fallen = np.exp(np.minimum(epsilons, 0.0))
    found: FloatArray = np.where(epsilons < 0.0, (1.0 - fallen) + fallen * second, first)
    return np.minimum(found * (1.0 + 1e-12) + 1e-15, 1.0)


def _from_below(lower: SingleCurve, release: Mechanisms, a: int, b: int, epsilons: FloatArray) -> FloatArray:
    """Return a lower bound of the delta of one pair at any epsilon, from the bounds of the mechanism."""
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
    """Return, for each cut s, a bound on the contribution of larger ratios, by the certified curve of incoming leakage.

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


def mean_at_most(logs: Any, draws: Any, stake: Any, log: float) -> FloatArray:
    """Return an upper bound from the sum of ``log(1 - stake X)``; at a stake of 0, X is always 0."""
    bound = -np.expm1((np.asarray(logs) * (1.0 + ROUNDING) - log) / draws)
    return np.asarray(
        np.divide(bound, stake, out=np.zeros(np.broadcast_shapes(bound.shape, np.shape(stake))), where=stake > 0.0)
    )


def mean_at_least(logs: Any, draws: Any, stake: Any, log: float) -> FloatArray:
    """Return a lower bound from the sum of ``log(1 + stake X)``; at least 0."""
    bound = np.expm1(np.maximum((np.asarray(logs) * (1.0 - ROUNDING) - log) / draws, 0.0))
    return np.asarray(
        np.divide(bound, stake, out=np.zeros(np.broadcast_shapes(bound.shape, np.shape(stake))), where=stake > 0.0)
    )
