"""Confidence bounds of delta, from above and from below, for given releases, by simulation."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from temporaldp.accounting.curve.arrivals import checked_delta
from temporaldp.accounting.curve.evidence import LeakageCurves
from temporaldp.accounting.curve.method import ApproximateDP
from temporaldp.accounting.series import temporal_leakage
from temporaldp.correlation import Adversary
from temporaldp.display import number
from temporaldp.errors import BudgetError, InputError
from temporaldp.mechanisms.events import releases_of
from temporaldp.mechanisms.simulation import require_simulated
from temporaldp.progress import part
from temporaldp.values import FloatArray, IntArray, compared_by_value, positive, real_number, whole_number
from temporaldp.verification.draws import simulated
from temporaldp.verification.values import (
    ABOVE,
    BELOW,
    StepValues,
    mean_at_least,
    mean_at_most,
    values_of_steps,
)


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VerifiedLeakage:
    """Confidence bounds of delta for every pair of states at every step, at one epsilon.

    The bounds hold jointly, except with a probability of at most `failure`.

    Parameters
    ----------
    states : tuple of str
    epsilon, delta, failure : float
        Arguments of `verify_leakage`; epsilon in nats.
    upper, lower : array, shape (T, n, n)
        Bounds of delta for each step and ordered pair of states; `upper` is at most `certified`.
    certified : array, shape (T, n, n)
        Upper bounds by the curves of all pairs, without simulation.
    draws : array of int, shape (T, n)
        Number of draws given each state at each step; at most the number requested, fewer for rare states.
    """

    states: tuple[str, ...]
    epsilon: float
    delta: float
    failure: float
    upper: FloatArray
    lower: FloatArray
    certified: FloatArray
    draws: IntArray

    @property
    def holds(self) -> bool:
        """Whether (epsilon, delta)-DP_T is certified, or verified except with probability `failure`."""
        return bool(self.upper.max() <= self.delta)

    @property
    def is_certified(self) -> bool:
        """Whether (epsilon, delta)-DP_T is certified without simulation."""
        return bool(self.certified.max() <= self.delta)

    @property
    def is_refuted(self) -> bool:
        """Whether the release itself leaks more, except with probability `failure`."""
        return bool(self.lower.max() > self.delta)

    def __repr__(self) -> str:
        return f"VerifiedLeakage({self.verdict})"

    @property
    def verdict(self) -> str:
        """The result as a sentence."""
        level = f"{self.epsilon:g} nats at delta {self.delta:g}"
        low = number(float(self.lower.max()), down=True, digits=3)
        high, certified = (number(float(one.max()), up=True, digits=3) for one in (self.upper, self.certified))
        between = f"the release's own delta is between {low} and {high}"
        but = f", but with a probability of at most {self.failure:g}"
        if self.is_certified:
            return f"at most {level}, certified by the curves of all pairs; {between}{but}"
        if self.holds:
            return f"at most {level}, verified by simulation{but}: {between}"
        if self.is_refuted:
            return f"more than {level}{but}: {between}"
        return (
            f"not verified to be at most {level}: {between}{but}. The certified bound of delta is "
            f"{certified}; give more draws, more time, a larger epsilon or more noise"
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
    """Estimate confidence bounds of delta at an epsilon by simulation, for every step and pair of states.

    States are drawn from the chains and outputs from the mechanisms; likelihood ratios are exact, by the recursion
    ``x <- P m x``. Means are bounded by bets on them, and a union bound over bets, sides, steps and pairs: all of it holds with
    a probability of at least ``1 - failure`` (Theory, section 16).

    Parameters
    ----------
    adversary : Adversary
        One adversary, with a correlation.
    mechanisms : sequence of T mechanisms
        As for `temporal_leakage`: one per step, or None. Noise on a histogram or a table of outputs; a `PrivacyGuarantee` does
        not determine the outputs, and is refused.
    delta : float
        From 1e-9.
    epsilon : float, > 0
        In nats.
    failure : float
        Probability, below delta, that a bound is wrong; a plan that depends on it adds it to delta.
    draws : int
        Trajectories in each direction of time.
    seconds : float, optional
        Time limit. The bounds are those of the draws up to then, so that the seed no longer determines them.
    seed : int

    Returns
    -------
    VerifiedLeakage

    Raises
    ------
    InputError
        A mechanism that cannot be simulated, an adversary without a correlation, a failure probability above delta.

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
    """Estimate confidence bounds at several epsilons by the same draws, which hold jointly except with probability `failure`.

    `epsilons` are chosen from the certified leakage, before the first draw.
    """
    if not isinstance(adversary, Adversary) or adversary.states is None:
        raise InputError("expected one Adversary with a correlation: without one, states cannot be drawn")
    level = checked_delta(delta)
    real_number(failure, "failure, which adds to delta,", gt=0.0, lt=level, error=BudgetError)
    if seconds is not None and not seconds > 0.0:
        raise InputError(f"expected seconds > 0, got {seconds!r}")
    releases = releases_of(mechanisms)
    adversary = adversary.over(len(releases))
    for release in set(releases):
        require_simulated(release, len(adversary.states or ()))
    with part(0.0, 0.3, "certified bounds"):
        series = temporal_leakage(adversary, mechanisms, accounting=ApproximateDP(level, pairwise=True))
    assert isinstance(series.evidence, LeakageCurves)
    each = epsilons(series.worst)
    whole_number(draws, "draws", least=1)
    share = failure / len(each)
    rate = _log(len(releases), len(series.evidence.states), share, ABOVE) / draws
    steps = values_of_steps(series.evidence, each, rate)
    end = math.inf if seconds is None else time.monotonic() + seconds
    with part(0.3, 1.0, "simulated leakage"):
        sums, drawn = simulated(adversary, releases, steps, each, draws, end, seed)
    return [
        bounded(adversary.states or (), epsilon, level, share, steps, which, sums[which], drawn)
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
    drawn: IntArray,
) -> VerifiedLeakage:
    """Return the bounds of delta at one of the epsilons from sums of shape (ABOVE + BELOW, T, n, n)."""
    rest, certified, stakes = (
        np.array([getattr(one, name)[which] for one in steps]) for name in ("rest", "certified", "stakes")
    )
    n, T = len(states), len(drawn)
    N, stakes = np.maximum(drawn, 1)[:, :, None], np.moveaxis(stakes, -1, 0)
    upper = mean_at_most(sums[:ABOVE], N, stakes[:ABOVE], _log(T, n, failure, ABOVE)).min(axis=0)
    lower = mean_at_least(sums[ABOVE:], N, stakes[ABOVE:], _log(T, n, failure, BELOW)).max(axis=0)
    upper = np.where(np.eye(n, dtype=bool), 0.0, np.minimum(np.minimum(upper + rest, 1.0), certified))
    return VerifiedLeakage(states, epsilon, delta, failure, upper, lower, certified, drawn)


def _log(n_steps: int, n: int, failure: float, bets: int) -> float:
    """Return the threshold of one bet on one side; each side has half of the failure probability."""
    return math.log(2.0 * bets * n_steps * n * (n - 1) / failure)


@dataclass(frozen=True, slots=True)
class OwnLeakage:
    """Confidence bounds of the largest leakage of a release itself, in nats.

    Parameters
    ----------
    delta, failure : float
        Both bounds hold except with probability `failure`.
    lower, upper : float
        In nats. `upper` is `certified` where nothing smaller was verified, `lower` 0 where nothing was refuted.
    certified : float
        Upper bound by the curves of all pairs, without simulation.
    """

    delta: float
    failure: float
    lower: float
    upper: float
    certified: float

    @property
    def ratio(self) -> float:
        """Upper bound of the ratio of the certified bound to the leakage of the release itself; inf if `lower` is 0."""
        return self.certified / self.lower if self.lower > 0.0 else math.inf

    @property
    def sentence(self) -> str:
        """The bounds as a sentence."""
        low, high = math.floor(1e3 * self.lower) / 1e3, math.ceil(1e3 * self.upper) / 1e3
        bounds = f"between {low:g} and {high:g}, except with probability {self.failure:g}"
        if math.isinf(self.ratio):
            return f"{bounds}; too few draws to compare the bound with it"
        return f"{bounds}; the bound is at most {math.ceil(100.0 * self.ratio) / 100.0:g} times as much"


def own_leakage(
    adversary: Adversary,
    mechanisms: Sequence[Any],
    *,
    delta: float,
    failure: float | None = None,
    draws: int = 400_000,
    seconds: float | None = None,
    seed: int = 0,
) -> OwnLeakage:
    """Estimate confidence bounds of the largest leakage of a release itself at a delta, to compare with `temporal_leakage`.

    At several fractions of the certified leakage, fixed before the first draw, the tests of `verify_leakage` decide from the
    same draws whether the release leaks more or less; the failure probability is split between them.

    Parameters
    ----------
    adversary : Adversary
    mechanisms, delta, draws, seconds, seed
        As for `verify_leakage`.
    failure : float, optional
        Probability, below delta, that a bound is wrong. Default: a thousandth of delta.

    Returns
    -------
    OwnLeakage
        Lower and upper bounds in nats.

    Raises
    ------
    InputError, BudgetError
        As `verify_leakage`.

    Examples
    --------
    >>> from temporaldp import Adversary, GaussianNoise, TransitionMatrix
    >>> walk = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]))
    >>> found = own_leakage(walk, [GaussianNoise(4.0, sensitivity=1.0)] * 3, delta=1e-2, draws=40_000)
    >>> found.lower < found.upper <= found.certified, found.ratio < 1.5
    (True, True)
    """
    # Default failure probability, as a share of delta
    chance = 1e-3 * delta if failure is None else failure

    def looked_at(certified: float) -> list[float]:
        # Shares of the certified leakage at which a simulation tests whether the release leaks more, or less
        return [share * certified for share in (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)]

    found = verified_at(
        adversary, mechanisms, delta, looked_at, failure=chance, draws=draws, seconds=seconds, seed=seed
    )
    certified = found[-1].epsilon
    lower = max((one.epsilon for one in found if one.is_refuted), default=0.0)
    upper = min((one.epsilon for one in found if one.holds), default=certified)
    return OwnLeakage(delta, chance, lower, upper, certified)
