"""Smoothed histograms: estimates from released counts and a public correlation, with an interval for every count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.base.arrow import Table
from temporaldp.base.errors import InputError
from temporaldp.base.values import FloatArray, compared_by_value, copy_in, real_array
from temporaldp.core.correlation import Provenance
from temporaldp.core.correlation.provenance import UNSTATED
from temporaldp.core.planning.histogram_noise import Noise, noise_quantile, noise_variance
from temporaldp.data.counts.released import ReleasedHistograms
from temporaldp.data.smoothing import (
    CountEstimate,
    PublicCorrelation,
    StepRelease,
    estimates,
    require_public,
    smooth_steps,
)
from temporaldp.data.smoothing.intervals import COVERAGE

Seen: TypeAlias = Literal["all releases", "past releases", "each release"]


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SmoothedHistograms(CountEstimate, Table):
    """Estimated counts of every step with an interval for each, from released counts and public knowledge alone.

    Parameters
    ----------
    counts : array, shape (T, n)
        Non-negative means, which sum to the total of every step.
    lower, upper : array, shape (T, n)
        Approximate 95 % interval of each count. It is widened by the error of the chain, which is estimated from the releases,
        and for each state from the errors of the last predictions.
        Measured in docs/measured/counts.md.
    states : tuple of n names
    times : tuple of T labels
    totals : array, shape (T,)
        Public totals.
    published : bool array, shape (T,)
        Whether the step was released; the other steps are estimated from their neighbours.
    provenance : Provenance
        Where the correlation comes from.
    seen : {"all releases", "past releases", "each release"}
        Releases that an estimate uses: all (smoother), those up to the step (filter), or that of the step alone.
    movement : float or None
        Variance of the moves of people, estimated from the releases, relative to that of the chain: 1 if the chain fits, inf if
        it does not fit at all. None for steps from a ledger.
    """

    states: tuple[str, ...]
    times: tuple[str, ...]
    totals: FloatArray
    published: NDArray[np.bool_]
    provenance: Provenance
    seen: Seen
    movement: float | None = None

    def __post_init__(self) -> None:
        copy_in(self, "counts", "lower", "upper", "totals")
        copy_in(self, "published", kind=bool)
        for field in ("counts", "lower", "upper"):
            real_array(getattr(self, field), field, shape=(len(self.times), len(self.states)))

    def __repr__(self) -> str:
        return f"SmoothedHistograms({len(self.times)} steps, {len(self.states)} states, from {self.seen})"

    @property
    def used(self) -> str:
        """Data that were used, in a sentence."""
        if self.seen == "each release":
            return "each release by itself and the public number of people; nothing else of the protected table."
        return (
            f"{self.seen}, the public number of people, and a correlation; nothing else of the protected table. "
            f"The correlation: {self.provenance.sentence}"
        )

    @property
    def fit(self) -> str:
        """Fit of the chain to the releases, in words."""
        if self.seen == "each release":
            return ""
        if self.movement is None:
            return "The intervals of each step are widened by the prediction errors of the chain up to that step."
        if not np.isfinite(self.movement):
            return "The chain does not fit at all, and is not used."
        if self.movement <= 2.0:
            return "The releases are consistent with the moves of people under the chain."
        return f"People move with {self.movement:.2g} times the variance of the chain; the intervals are widened accordingly."

    def of(self, released: ReleasedHistograms) -> ReleasedHistograms:
        """The released histograms with these estimates, of steps that were not drawn, too."""
        if missing := set(released.times) - set(self.times):
            raise InputError(f"expected released counts of these steps, got time {sorted(missing)[0]!r}")
        at, n_steps = [self.times.index(time) for time in released.times], len(self.times)
        counts, spent, scales = np.zeros(self.counts.shape, dtype=np.int64), np.zeros(n_steps), np.full(n_steps, np.inf)
        counts[at], spent[at], scales[at] = released.counts, released.epsilons, released.scales
        found = CountEstimate(self.counts, self.lower, self.upper)
        return replace(released, counts=counts, epsilons=spent, scales=scales, times=self.times, estimates=found)

    def columns(self) -> dict[str, list[Any]]:
        """Columns in long form, one entry per time and state: time, state, estimate, low, high, published."""
        n = len(self.states)
        return {
            "time": [time for time in self.times for _ in range(n)],
            "state": list(self.states) * len(self.times),
            "estimate": self.counts.ravel().tolist(),
            "low": self.lower.ravel().tolist(),
            "high": self.upper.ravel().tolist(),
            "published": np.repeat(self.published, n).tolist(),
        }


def smooth(
    released: ReleasedHistograms,
    correlation: PublicCorrelation | None,
    *,
    total: ArrayLike,
    times: Sequence[str] | None = None,
) -> SmoothedHistograms:
    """Estimate the true counts from released ones, public totals and a public correlation; at no privacy cost.

    Counts of people who move independently by a chain are a linear state space (Theory, section 15): a Kalman filter
    forward and a smoother back, with the public total as an exact observation. The error of the chain is estimated from the
    releases alone; where it does not fit, estimates are the released counts, made consistent with the total.

    Parameters
    ----------
    released : ReleasedHistograms
        As drawn, not post-processed.
    correlation : PublicCorrelation or None
        Public correlation, or one learned with differential privacy; no other is accepted. None: each step by itself.
    total : int, or sequence of T of them
        Public number of people, of all steps or of each.
    times : sequence of T labels, optional
        All steps, including those that were not published. Default: the published ones, one step apart each.

    Returns
    -------
    SmoothedHistograms

    Raises
    ------
    InputError
        The correlation is not public, the counts were post-processed, or the totals are not admissible.
    StateError
        The correlation is of other states.
    BudgetError
        The correlation is of fewer steps.

    Examples
    --------
    >>> from temporaldp import Adversary, Trajectories, load_sample, plan_budget, release_histograms
    >>> sample = load_sample()
    >>> people = Trajectories(sample.codes, states=sample.states, times=sample.times)
    >>> history, protected = people[:75], people[75:]
    >>> correlation = PublicCorrelation.from_history(history, name="the first 75 people")
    >>> plan = plan_budget(Adversary(forward=correlation.forward), alpha=1.0, horizon=47)
    >>> released = release_histograms(protected, plan)
    >>> found = smooth(released, correlation, total=protected.n_users)
    >>> truth = protected.histogram()
    >>> bool(abs(found.counts - truth).mean() < 0.7 * abs(released.counts - truth).mean())
    True
    """
    public = None if correlation is None else require_public(correlation).reordered(released.states)
    labels = released.times if times is None else tuple(times)
    position = {label: t for t, label in enumerate(released.times) if released.drawn[t]}
    if missing := set(released.times) - set(labels):
        raise InputError(f"expected times that hold every released one, but {sorted(missing)[0]!r} is not among them")
    totals = checked_totals(total, len(labels))
    _require_possible(released, dict(zip(labels, totals.tolist(), strict=True)))
    steps = [
        step_release(released.counts[position[label]], released.scales[position[label]], released.noise, each)
        if label in position
        else StepRelease(None, 1.0, 1.0, each)
        for label, each in zip(labels, totals.tolist(), strict=True)
    ]
    if public is None:
        found, movement = _each_by_itself(steps), None
    else:
        found, movement = smooth_steps(steps, public)
    return SmoothedHistograms(
        found.counts,
        found.lower,
        found.upper,
        states=released.states,
        times=labels,
        totals=totals,
        published=np.array([label in position for label in labels]),
        provenance=UNSTATED if public is None else public.provenance,
        seen="each release" if public is None else "all releases",
        movement=movement,
    )


def _each_by_itself(steps: Sequence[StepRelease]) -> CountEstimate:
    """Estimates without a chain: the released counts, made non-negative with the public total."""
    if any(step.counts is None for step in steps):
        raise InputError("expected every step to be released: those in between are estimated by a public correlation")
    mean = np.array([step.counts for step in steps])
    return estimates(mean, np.array([[step.variance] * mean.shape[1] for step in steps]), steps)


def checked_totals(total: ArrayLike, n_steps: int) -> FloatArray:
    """The public total of each step: whole numbers >= 1, one or one per step."""
    totals = real_array(total, "the public number of people", ge=1.0)
    if totals.ndim == 0:
        totals = np.full(n_steps, totals)
    if totals.shape != (n_steps,) or (totals != np.floor(totals)).any():
        raise InputError(f"expected a whole number of people, or one for each of {n_steps} steps, got {total!r}")
    return totals


def _require_possible(released: ReleasedHistograms, totals: dict[str, float]) -> None:
    """Refuse totals that the released counts cannot have come from."""
    n = len(released.states)
    for counts, scale, time in zip(released.counts, released.scales.tolist(), released.times, strict=True):
        if scale == np.inf:
            continue
        deviation = float(np.sqrt(noise_variance(scale, released.noise) * n))
        off = abs(float(counts.sum()) - totals[time])
        # Laplace noise on a count is 12 standard deviations away with a probability of e^-17, that on several less often.
        if off > 12.0 * deviation + 1.0:
            raise InputError(
                f"the counts released at time {time!r} sum to {counts.sum()}, {off:.0f} away from the public total "
                f"{totals[time]:g}, and noise of scale {scale:g} on {n} counts has a standard deviation of {deviation:.3g}; "
                "give the number of people of this very step, or the scale that was used"
            )


def step_release(counts: NDArray[np.int64], scale: float, noise: Noise, total: float) -> StepRelease:
    """Public data of a released step."""
    variance = noise_variance(scale, noise)
    # Beside that of normal noise, of which 95 % lie within 1.96 standard deviations. Discrete noise of a small scale has few
    # values, and its quantile jumps: hence no more than 1.25.
    reach = (
        noise_quantile(scale, COVERAGE, noise) / (1.959963984540054 * np.sqrt(variance)) if noise == "laplace" else 1.0
    )
    return StepRelease(counts.astype(np.float64), variance, float(np.clip(reach, 1.0, 1.25)), total)
