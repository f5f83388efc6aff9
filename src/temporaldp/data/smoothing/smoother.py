"""The counts of every step from all releases, before and after: forward with the filter, back with the smoother."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from temporaldp.base.progress import progressed
from temporaldp.base.values import FloatArray
from temporaldp.data.smoothing.count_filter import (
    CountEstimate,
    FilterState,
    StepRelease,
    advance,
    averaged,
    estimates,
)
from temporaldp.data.smoothing.public_correlation import PublicCorrelation
from temporaldp.data.smoothing.state_space import LaterReleases

DOING = "smoothing"


@dataclass(frozen=True, slots=True)
class SmoothedSteps:
    """Counts of all steps, shape (T, n), and the models: `widenings` and their `weights`, shape (K,) each."""

    found: CountEstimate
    widenings: FloatArray
    weights: FloatArray


def smooth_steps(steps: Sequence[StepRelease], correlation: PublicCorrelation) -> SmoothedSteps:
    """Smooth the counts of all steps, for the models that remain at the end."""
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
        progressed(DOING, 1.0 - 0.5 * t / len(steps))
    return SmoothedSteps(estimates(mean, variance, steps), last.widenings, last.weights)


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
        progressed(DOING, 0.5 * (t + 1) / len(steps))
    return states
