"""Choice of alpha: guarantees, leakage and errors of counts for a range of noise.

Every step has the same noise. A plan (`plan_budget`, `plan_noise`) for the chosen alpha has slightly less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.display import draw
from temporaldp.base.errors import BudgetError, InputError, MatrixError
from temporaldp.base.progress import progressed
from temporaldp.base.values import FloatArray, positive, refuse, whole_number
from temporaldp.core.accounting import LeakageSeries, temporal_leakage
from temporaldp.core.accounting.curve.method import ApproximateDP
from temporaldp.core.accounting.monotone_search import bisected
from temporaldp.core.correlation import Adversaries, TransitionMatrix
from temporaldp.core.planning.histogram_noise import (
    HISTOGRAM_SENSITIVITY,
    Noise,
    checked_noise,
    histogram_profile,
    laplace_scales,
    mean_absolute_noise,
    noise_variance,
)
from temporaldp.data.smoothing.count_filter import StepRelease, smooth_steps
from temporaldp.data.smoothing.public_correlation import PublicCorrelation, require_public

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class TradeoffPoint:
    """Guarantees and errors of one amount of noise at every step.

    Parameters
    ----------
    scale : float
        Scale of the noise of a count, in people.
    epsilon : float
        Epsilon of a step by itself, in nats (at delta, if it is positive); an upper bound.
    alpha : float
        The largest temporal leakage of any step, in nats: exact for delta = 0, an upper bound otherwise.
    window_level, user_level : float
        Epsilon of the same noise for all states of a window of w steps (w-event level), and for all states of a person
        (user level), in nats, for every correlation.
    error, smoothed_error : float
        Mean absolute error of a count, in people, as released and smoothed; simulated, for people who move by the chain.
    """

    scale: float
    epsilon: float
    alpha: float
    window_level: float
    user_level: float
    error: float
    smoothed_error: float


@dataclass(frozen=True, slots=True)
class NoiseAtLevel:
    """Noise that another definition of privacy needs for a level, with its errors; see `TradeoffPoint`."""

    scale: float
    error: float
    smoothed_error: float


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """Guarantees, leakage and errors for a range of noise, from `tradeoff`.

    Parameters
    ----------
    points : tuple of TradeoffPoint
        By increasing alpha.
    window_points, user_points : tuple of NoiseAtLevel
        For each point, the noise that w-event privacy and plain user-level privacy at the same number alpha need; empty under
        approximate DP.
    within : TradeoffPoint or None
        The smallest alpha whose smoothed counts have at most the largest error.
    within_released : TradeoffPoint or None
        The smallest alpha whose released counts have at most the largest error.
    n_people, horizon, window : int
    delta : float
    noise : {"laplace", "gaussian"}
    """

    points: tuple[TradeoffPoint, ...]
    window_points: tuple[NoiseAtLevel, ...]
    user_points: tuple[NoiseAtLevel, ...]
    within: TradeoffPoint | None
    within_released: TradeoffPoint | None
    n_people: int
    horizon: int
    window: int
    delta: float
    noise: Noise
    largest_error: float | None

    def plot(self, *, ax: Axes | None = None) -> Any:
        """Draw the error of a count over alpha (needs Matplotlib); `ax` and the result are as of `LeakageSeries.plot`."""
        return draw(self, ax=ax)


@dataclass(frozen=True, slots=True)
class _Setting:
    """Parameters other than the noise."""

    adversary: Adversaries
    simulated: SimulatedCounts
    horizon: int
    window: int
    delta: float
    noise: Noise

    def leakage(self, scale: float, n_steps: int) -> LeakageSeries:
        """Leakage of this number of steps with this noise."""
        if self.delta:
            profiles = [histogram_profile(self.noise, scale)] * n_steps
            return temporal_leakage(self.adversary, profiles, accounting=ApproximateDP(self.delta))
        return temporal_leakage(self.adversary, np.full(n_steps, HISTOGRAM_SENSITIVITY / scale))

    def point(self, scale: float, series: LeakageSeries | None = None) -> TradeoffPoint:
        """The point with this noise at every step; `series` is its leakage, if known."""
        found = self.leakage(scale, self.horizon) if series is None else series
        window = self.window * float(found.epsilons[0])
        if self.delta:
            window = self.leakage(scale, self.window).user_level
        levels = (float(found.epsilons.max()), found.worst, window, found.user_level)
        return TradeoffPoint(scale, *levels, self.released_error(scale), self.smoothed_error(scale))

    def point_at(self, alpha: float, budget: float) -> TradeoffPoint:
        """The point with the least Laplace noise, to 0.4 % of the budget, that satisfies alpha; searched from `budget`.

        Leakage grows at least in proportion to the budget, so that no step passes the answer by much.
        """
        half = 2e-3
        target, before = math.log(alpha) - half, (0.0, 0.0)
        slope, at = 1.0, math.log(budget)
        # Attempts to find a budget close to an alpha; three or four are usual
        for attempt in range(20):
            scale = HISTOGRAM_SENSITIVITY / math.exp(at)
            series = self.leakage(scale, self.horizon)
            leaked = math.log(series.worst)
            if abs(leaked - target) <= half:
                return self.point(scale, series)
            if attempt and at != before[0]:
                slope = min(max((leaked - before[1]) / (at - before[0]), 1.0), 4.0)
            before, at = (at, leaked), at + (target - leaked) / slope
        # alpha / T a step: what leaks is no more than the sum
        return self.point(HISTOGRAM_SENSITIVITY * self.horizon / alpha)

    def released_error(self, scale: float) -> float:
        """Error of counts as released."""
        return mean_absolute_noise([scale], self.noise)

    def smoothed_error(self, scale: float) -> float:
        """Error of smoothed counts."""
        return self.simulated.smoothed_error(scale, self.noise)

    def within(self, error: Callable[[float], float], largest: float) -> TradeoffPoint | None:
        """The point with the largest scale, to a hundredth, that has at most this error; None if there is none."""

        def holds(exponent: float) -> bool:
            return error(math.exp(exponent)) <= largest

        # Counts: noise of this scale is 0 but for one count in a hundred
        low, width = math.log(0.2), 2.0
        if not holds(low):
            return None
        # Noise of a scale of nine million counts: the chain alone is as accurate, and no release is needed
        while low + width <= 16.0 and holds(low + width):
            low += width
        if low + width <= 16.0:
            low = bisected(holds, low, low + width, 0.0, most=8)
        return self.point(math.exp(low))


def tradeoff(
    adversary: Adversaries,
    correlation: PublicCorrelation,
    *,
    n_people: int,
    horizon: int,
    alphas: Sequence[float] | None = None,
    epsilons: ArrayLike | None = None,
    scales: Sequence[float] | None = None,
    delta: float = 0.0,
    noise: Noise | None = None,
    window: int | None = None,
    largest_error: float | None = None,
    seed: int = 0,
) -> Tradeoff:
    """Compute guarantees, leakage and errors for a range of noise, from public knowledge alone.

    Errors are simulated, with populations of `n_people` who move by the chain, noise, and the smoother of `smooth`. Where
    people do not move by the chain, smoothed counts have larger errors, and wider intervals.

    Parameters
    ----------
    adversary : Adversary, or several
        Adversaries of the leakage.
    correlation : PublicCorrelation
        Public chain for simulation and smoothing; no protected data are used.
    n_people, horizon : int
        Number of people and of steps.
    alphas : sequence of float, optional
        Levels, in nats, each satisfied by the same budget at every step (not under approximate DP).
    epsilons, scales : sequence of float, optional
        In place of levels: the budget of each step, or the scale of the noise of a count.
    delta : float
        Leakage is then an epsilon at this delta.
    noise : {"gaussian", "laplace"}, optional
        Under approximate DP; default "gaussian".
    window : int, optional
        Steps of w-event privacy. Default: 10, or the horizon.
    largest_error : float, optional
        Largest error of a count, in people, for `within` and `within_released`.
    seed : int
        Seed of the simulation.

    Raises
    ------
    InputError
        The correlation is not public, or several ranges are given.
    BudgetError
        A level, budget or scale is not admissible.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix
    >>> chain = TransitionMatrix([[0.9, 0.1], [0.2, 0.8]])
    >>> known = PublicCorrelation(chain, provenance="a survey")
    >>> found = tradeoff(Adversary(chain, chain), known, n_people=500, horizon=20, alphas=[0.5, 1.0], largest_error=5.0)
    >>> [point.smoothed_error < point.error for point in found.points]
    [True, True]
    >>> found.within.smoothed_error <= 5.0 and found.within.alpha < found.within_released.alpha
    True
    """
    public = require_public(correlation)
    people = whole_number(n_people, "n_people", least=1)
    n_steps = whole_number(horizon, "horizon", least=1, error=BudgetError)
    kind = checked_noise(noise or ("gaussian" if delta else "laplace"))
    if kind == "gaussian" and not delta:
        raise BudgetError("Gaussian noise has no epsilon with delta = 0: give a delta, such as 1e-6")
    # Default number of steps of a window of w-event privacy
    width = min(10, n_steps) if window is None else whole_number(window, "window", least=1)
    counts = n_steps * len(public.states)
    # 2,000 counts at least are simulated, in up to four populations if one has fewer.
    repetitions = min(max(2_000 // counts, 1), 4)
    simulated = simulated_counts(public, n_people=people, horizon=n_steps, repetitions=repetitions, seed=seed)
    setting = _Setting(adversary, simulated, n_steps, min(width, n_steps), delta, kind)
    points = sorted(_points(setting, alphas, epsilons, scales), key=lambda point: point.alpha)
    windows, users = (() if delta else _at_level(setting, points, n) for n in (setting.window, n_steps))
    most = None if largest_error is None else positive(largest_error, "largest_error")
    within, within_released = (
        None if most is None else setting.within(error, most)
        for error in (setting.smoothed_error, setting.released_error)
    )
    return Tradeoff(
        tuple(points),
        windows,
        users,
        within,
        within_released,
        n_people=people,
        horizon=n_steps,
        window=setting.window,
        delta=delta,
        noise=kind,
        largest_error=largest_error,
    )


def _points(
    setting: _Setting, alphas: Sequence[float] | None, epsilons: ArrayLike | None, scales: Sequence[float] | None
) -> list[TradeoffPoint]:
    refuse(
        (
            sum(one is not None for one in (alphas, epsilons, scales)) > 1,
            InputError("expected one of alphas, epsilons and scales, got several"),
        ),
        (
            setting.delta > 0.0 and (alphas is not None or epsilons is not None),
            InputError("under approximate DP, give scales of noise: leakage and guarantees are computed for each"),
        ),
    )
    by_scale = epsilons is not None or scales is not None or setting.delta > 0.0
    levels = sorted(positive(one, "alpha") for one in ((0.1, 0.2, 0.5, 1.0, 2.0, 5.0) if alphas is None else alphas))
    asked, points = _scales(epsilons, scales) if by_scale else levels, list[TradeoffPoint]()
    for one in asked:
        share = points[-1].epsilon / points[-1].alpha if points else 1.0 / min(setting.horizon, 6)
        points.append(setting.point(one) if by_scale else setting.point_at(one, one * share))
        progressed("simulating", len(points) / len(asked))
    return points


def _scales(epsilons: ArrayLike | None, scales: Sequence[float] | None) -> list[float]:
    if epsilons is None:
        # Scales at a delta, in counts
        return [positive(one, "scale") for one in ((2.0, 4.0, 8.0, 16.0, 32.0, 64.0) if scales is None else scales)]
    asked = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
    return [float(scale) for scale in laplace_scales([positive(one, "epsilon") for one in asked.tolist()])]


def _at_level(setting: _Setting, points: Sequence[TradeoffPoint], n_steps: int) -> tuple[NoiseAtLevel, ...]:
    """Cost of the same levels for all states of so many steps together, whose epsilons add up."""
    scales = [HISTOGRAM_SENSITIVITY * n_steps / point.alpha for point in points]
    return tuple(NoiseAtLevel(scale, setting.released_error(scale), setting.smoothed_error(scale)) for scale in scales)


@dataclass(frozen=True, slots=True)
class SimulatedCounts:
    """Counts of populations that move by the chain, and quantiles of their noise.

    The same draws serve every scale of noise, so that errors rise with the scale.

    Parameters
    ----------
    counts : array, shape (R, T, n)
        Counts of R populations.
    draws : array, shape (R, T, n)
        Quantile of the noise of each count, between 0 and 1.
    correlation : PublicCorrelation
    """

    counts: FloatArray
    draws: FloatArray
    correlation: PublicCorrelation

    def smoothed_error(self, scale: float, noise: Noise) -> float:
        """Mean absolute error of a smoothed count, in people, with noise of this scale."""
        added = noise_at_quantiles(self.draws, scale, noise)
        variance, total = noise_variance(scale, noise), float(self.counts[0, 0].sum())
        smoothed = [
            smooth_steps([StepRelease(y, variance, 1.0, total) for y in one], self.correlation)[0].counts
            for one in self.counts + added
        ]
        return float(np.abs(np.array(smoothed) - self.counts).mean())


def simulated_counts(
    correlation: PublicCorrelation, *, n_people: int, horizon: int, repetitions: int, seed: int
) -> SimulatedCounts:
    """Simulate populations that begin with the chain's stationary shares, or with equal ones where it has none."""
    generator = np.random.default_rng(seed)
    n = len(correlation.states)
    shares = _first_shares(correlation.matrix(0) if horizon > 1 else None, n)
    counts = np.empty((repetitions, horizon, n))
    for one in counts:
        # More people change nothing that is shown
        one[0] = generator.multinomial(min(n_people, 2_000_000_000), shares)
        for t in range(1, horizon):
            rows = correlation.matrix(t - 1).dense()
            moves = [
                generator.multinomial(int(c), row / row.sum()) for c, row in zip(one[t - 1], rows, strict=True) if c
            ]
            one[t] = np.sum(moves, axis=0)
    return SimulatedCounts(counts, generator.uniform(1e-12, 1.0 - 1e-12, counts.shape), correlation)


def _first_shares(chain: TransitionMatrix | None, n: int) -> FloatArray:
    with suppress(MatrixError):  # several closed classes: where people are depends on where they began
        if chain is not None:
            found = chain.stationary_distribution()
            return np.asarray(found / found.sum())
    return np.full(n, 1.0 / n)


def noise_at_quantiles(draws: FloatArray, scale: float, noise: Noise) -> FloatArray:
    """Discrete noise at these quantiles; for simulation only: released noise is drawn by OpenDP."""
    if noise == "gaussian":
        from scipy.special import ndtri

        return np.asarray(np.rint(ndtri(draws) * scale))
    ratio = np.exp(-1.0 / scale)
    outside = np.minimum(draws, 1.0 - draws)  # P(noise <= -k) = ratio^k / (1 + ratio)
    size = np.maximum(np.floor(np.log(outside * (1.0 + ratio)) / np.log(ratio)), 0.0)
    return np.asarray(np.where(draws < 0.5, -size, size))
