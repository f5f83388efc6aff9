"""Counts of a step from the releases up to it (filtered), or from those of all steps (smoothed).

Filtered counts are what a continual release publishes beside the noisy counts.

The innovations show which multiple of the chain's covariance fits: every model keeps the density of the releases so far,
and counts by it (a Bayesian average of the models, each as likely as the others at first). Where people move by the chain,
that is soon the chain itself; where they do not, what is published falls back to the noisy counts and the public total. Where
they do not at some times or in some states alone, the errors of the last predictions widen the next one (`PredictionErrors`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from temporaldp.base.progress import progressed
from temporaldp.base.values import BoolArray, FloatArray, compared_by_value
from temporaldp.data.smoothing.counts_model import (
    PRIOR,
    WIDENINGS,
    Belief,
    LaterReleases,
    PredictionErrors,
    first_counts,
    next_counts,
    observe,
)
from temporaldp.data.smoothing.intervals import intervals, with_total
from temporaldp.data.smoothing.public_correlation import PublicCorrelation


@dataclass(frozen=True, slots=True)
class StepRelease:
    """Public data of one step.

    Parameters
    ----------
    counts : array, shape (n,), or None
        The released counts; None for a step that was not published.
    variance : float
        Of the noise of each count.
    tail : float
        Ratio of the 95 % interval of the noise to that of normal noise with this variance.
    total : float
        The public total.
    """

    counts: FloatArray | None
    variance: float
    tail: float
    total: float


@dataclass(frozen=True, slots=True)
class FilterState:
    """State of the filter after some steps: the counts of the last one under each remaining model, and the fit of each.

    Parameters
    ----------
    belief : Belief
    errors : PredictionErrors
        Of the last steps that were released.
    widenings : array, shape (K,)
        Factor of each model on the chain's covariance.
    fit : array, shape (K,)
        Logarithm of the density of all releases so far.
    total : float
        Of the last step.
    n_steps : int
    """

    belief: Belief
    errors: PredictionErrors
    widenings: FloatArray
    fit: FloatArray
    total: float
    n_steps: int

    @property
    def weights(self) -> FloatArray:
        """Posterior weight of each model, shape (K,)."""
        shares = np.exp(self.fit - self.fit.max())
        return np.asarray(shares / shares.sum())

    @property
    def kept(self) -> BoolArray:
        """Mask of models that are not far worse than the best."""
        # Nats below the best model's density from which on a model is left out: it would count for less than 1e-13
        return np.asarray(self.fit > self.fit.max() - 30.0)

    def only(self, kept: BoolArray) -> FilterState:
        """The state with some of the models."""
        belief = Belief(self.belief.mean[kept], self.belief.covariance[kept])
        errors = PredictionErrors(self.errors.mean[kept], self.errors.variance[kept])
        return FilterState(belief, errors, self.widenings[kept], self.fit[kept], self.total, self.n_steps)


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class CountEstimate:
    """Counts with their 95 % intervals, each of shape (n,) for one step, or (T, n); those of a step sum to its total."""

    counts: FloatArray
    lower: FloatArray
    upper: FloatArray

    @property
    def half_width(self) -> float:
        """Median of half the width of the intervals, in people."""
        return float(np.median(self.upper - self.lower)) / 2.0

    @property
    def n_people(self) -> int:
        """Number of people at a step, which the counts sum to; of several steps, the average."""
        return round(float(self.counts.sum(axis=-1).mean()))

    def mapped(self, change: Callable[..., FloatArray], *others: CountEstimate) -> CountEstimate:
        """The estimate after a change of its counts and both ends, each of them given with those of other estimates."""
        parts = ((one.counts, one.lower, one.upper) for one in (self, *others))
        return CountEstimate(*map(change, *parts))


def advance(state: FilterState | None, step: StepRelease, correlation: PublicCorrelation) -> FilterState:
    """The state after one more step; None stands for the state before the first."""
    if state is None:
        widenings, fit, done = np.array(WIDENINGS), np.log(PRIOR), 0
        expected = first_counts(correlation.initial, len(correlation.states), widenings, step.total)
        errors = PredictionErrors(np.zeros(expected.mean.shape), np.zeros(expected.mean.shape))
    else:
        widenings, fit, done, errors = state.widenings, state.fit, state.n_steps, state.errors
        P = correlation.matrix(done - 1).dense()
        expected = errors.widened(next_counts(state.belief, P, widenings, state.total, step.total))
    if step.counts is None:
        return FilterState(expected, errors, widenings, fit, step.total, done + 1)
    belief, density, error, variance = observe(expected, step.counts, step.variance)
    if done:  # the first counts are not a prediction by the chain
        errors = errors.with_step(error, variance)
    return FilterState(belief, errors, widenings, fit + density, step.total, done + 1)


def averaged(belief: Belief, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and variance of each count over the weighted models, shape (n,) each."""
    mean = weights @ belief.mean
    own = np.diagonal(belief.covariance, axis1=1, axis2=2)
    return mean, weights @ (np.maximum(own, 0.0) + np.square(belief.mean - mean))


def estimates(mean: FloatArray, variance: FloatArray, steps: Sequence[StepRelease]) -> CountEstimate:
    """Published counts of steps: non-negative, with the sum of the total, inside their intervals; shape (T, n) each."""
    totals = np.array([step.total for step in steps])[:, None]
    # What is left of the noise in an estimate has the noise's tails: all of them where the release alone is believed.
    noise = np.array([np.inf if step.counts is None else step.variance for step in steps])[:, None]
    tails = np.array([step.tail for step in steps])[:, None]
    widened = 1.0 + (tails - 1.0) * np.clip(variance / noise, 0.0, 1.0)
    expected, lower, upper = intervals(mean, variance, totals, widened=widened)
    counts = np.stack([with_total(*each) for each in zip(expected, variance, totals[:, 0].tolist(), strict=True)])
    return CountEstimate(counts, np.minimum(lower, counts), np.maximum(upper, counts))


def smooth_steps(steps: Sequence[StepRelease], correlation: PublicCorrelation) -> tuple[CountEstimate, float]:
    """Smooth the counts of all steps, for the models that remain at the end.

    Returns the counts, shape (T, n), and the variance of the moves of people relative to that of the chain: the harmonic mean
    of the widenings, by the weights of the models.
    """
    states = _forward(steps, correlation)
    last = states[-1]
    later = LaterReleases(np.zeros(last.belief.mean.shape), np.zeros(last.belief.covariance.shape))
    chained = np.isfinite(last.widenings).astype(np.float64)
    shape = (len(steps), len(correlation.states))
    mean, variance = np.empty(shape), np.empty(shape)
    for t in range(len(steps) - 1, -1, -1):
        step, filtered = steps[t], states[t].belief
        mean[t], variance[t] = averaged(later.smoothed(filtered), last.weights)
        if step.counts is not None:
            later = later.with_release(filtered, step.counts, step.variance)
        if t:
            change = step.total / max(steps[t - 1].total, 1e-300)
            later = later.one_step_before(correlation.matrix(t - 1).dense(), chained * change)
        progressed("smoothing", 1.0 - 0.5 * t / len(steps))
    with np.errstate(divide="ignore"):
        movement = float(1.0 / (last.weights @ (1.0 / last.widenings)))
    return estimates(mean, variance, steps), movement


def _forward(steps: Sequence[StepRelease], correlation: PublicCorrelation) -> list[FilterState]:
    """The filter's state after each step; models that fall far behind are left out, of the steps before too."""
    states: list[FilterState] = []
    state: FilterState | None = None
    for t, step in enumerate(steps):
        state = advance(state, step, correlation)
        kept = state.kept
        if not kept.all():
            state = state.only(kept)
            states = [one.only(kept) for one in states]
        states.append(state)
        progressed("smoothing", 0.5 * (t + 1) / len(steps))
    return states
