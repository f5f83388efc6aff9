"""Leakage at a delta of releases that are given, verified by simulation: confidence bounds of delta, from both sides."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.curve.curves import checked_delta
from temporaldp.accounting.curve.method import ApproximateDP
from temporaldp.accounting.curve.pair_evidence import PairLeakageCurves
from temporaldp.accounting.series import temporal_leakage
from temporaldp.accounting.simulation.importance import SHARE, WeighedDraws, proposals_for, weighed_draws
from temporaldp.accounting.simulation.mean_bounds import mean_at_least, mean_at_most
from temporaldp.accounting.simulation.verified_draws import simulated
from temporaldp.accounting.simulation.verified_values import ABOVE, BELOW, StepValues, values_of_steps
from temporaldp.correlation import Adversary
from temporaldp.errors import BudgetError, InputError
from temporaldp.mechanisms.events import releases_of
from temporaldp.mechanisms.simulation import require_simulated
from temporaldp.progress import part
from temporaldp.values import compared_by_value, positive, whole_number

FloatArray = NDArray[np.float64]


class Verified(ApproximateDP):
    """The accounting method of a release that simulation verified to satisfy a level, which upper bounds alone do not show."""

    name = "verified"

    @property
    def sentence(self) -> str:
        """How leakage was computed."""
        return f"Leakage at delta = {self.delta:g} is bounded by simulation: the level is satisfied unless the draws mislead."


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
    ``x <- P m x``. Means are bounded by bets on them, and a union bound over bets, sides, steps and pairs: all of it holds with
    a probability of at least ``1 - failure``. Of Gaussian noise the pairs that may be worst are drawn by importance sampling
    too, which raises `lower` (docs/theory.md, section 16).

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
        series = temporal_leakage(adversary, mechanisms, accounting=ApproximateDP(level, pairwise=True))
    assert isinstance(series.evidence, PairLeakageCurves)
    each = epsilons(series.worst)
    whole_number(draws, "draws", least=1)
    share = failure / len(each)
    rate = _log(len(releases), len(series.evidence.states), share, ABOVE) / draws
    steps = values_of_steps(series.evidence, each, rate)
    proposals = proposals_for(adversary, releases, steps, each)
    end = math.inf if seconds is None else time.monotonic() + seconds
    with part(0.3, 0.9, "simulated leakage"):
        sums, drawn = simulated(adversary, releases, steps, each, draws, end, seed)
    with part(0.9, 1.0, "weighed draws"):
        weighed = weighed_draws(proposals, steps, each, level, math.ceil(SHARE * draws), end, seed)
    return [
        bounded(adversary.states or (), epsilon, level, share, steps, which, sums[which], drawn, weighed)
        for which, epsilon in enumerate(each)
    ]


def bounded(
    states: tuple[str, ...],
    epsilon: float,
    delta: float,
    failure: float,
    steps: Sequence[StepValues],
    which: int,
    sums: FloatArray,
    drawn: NDArray[np.int64],
    weighed: Sequence[WeighedDraws],
) -> VerifiedLeakage:
    """What sums of shape (ABOVE + BELOW, T, n, n), and weighed draws of some pairs, say of delta at one of the epsilons."""
    rest, certified, stakes = (
        np.array([getattr(one, name)[which] for one in steps]) for name in ("rest", "certified", "stakes")
    )
    n, T = len(states), len(drawn)
    N, stakes = np.maximum(drawn, 1)[:, :, None], np.moveaxis(stakes, -1, 0)
    upper = mean_at_most(sums[:ABOVE], N, stakes[:ABOVE], _log(T, n, failure, ABOVE)).min(axis=0)
    plain, shifted = (failure / 2.0, failure / 2.0) if weighed else (failure, 0.0)
    lower = mean_at_least(sums[ABOVE:], N, stakes[ABOVE:], _log(T, n, plain, BELOW)).max(axis=0)
    for one in weighed:
        log = math.log(2.0 * len(weighed) * len(one.stakes) / shifted)
        seen = mean_at_least(one.logs[which], max(one.draws, 1), one.stakes, log).max()
        lower[(one.step, *one.pair)] = max(lower[(one.step, *one.pair)], seen)
    upper = np.where(np.eye(n, dtype=bool), 0.0, np.minimum(np.minimum(upper + rest, 1.0), certified))
    return VerifiedLeakage(states, epsilon, delta, failure, upper, lower, certified, drawn)


def _log(n_steps: int, n: int, failure: float, bets: int) -> float:
    """Of one bet on one side, for every step and pair; each side has half of the failure probability."""
    return math.log(2.0 * bets * n_steps * n * (n - 1) / failure)
