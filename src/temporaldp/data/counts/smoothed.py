"""Smoothed histograms: estimates from released counts and a public correlation, with an interval for every count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.base.arrow import Table
from temporaldp.base.errors import InputError
from temporaldp.base.values import FloatArray, compared_by_value, copy_in, real_array
from temporaldp.core.correlation import Provenance
from temporaldp.core.planning.histogram_noise import Noise, noise_quantile, noise_variance
from temporaldp.data.counts.released import ReleasedHistograms, release_suffix
from temporaldp.data.files.columns import save_columns, with_names
from temporaldp.data.smoothing import PublicCorrelation, StepRelease, require_public, smooth_steps
from temporaldp.data.smoothing.intervals import COVERAGE

Seen: TypeAlias = Literal["all releases", "past releases"]


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SmoothedHistograms(Table):
    """The counts of every step with an interval for each, from released counts, public totals and a public correlation alone.

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
    seen : {"all releases", "past releases"}
        Releases that an estimate uses: all (smoother), or those up to the step (filter).
    movement : float or None
        Variance of the moves of people, estimated from the releases, relative to that of the chain: 1 if the chain fits, inf if
        it does not fit at all. None for steps from a ledger.
    """

    counts: FloatArray
    lower: FloatArray
    upper: FloatArray
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
        return (
            f"{self.seen.capitalize()}, the public number of people, and a correlation; no protected data. "
            f"The correlation: {self.provenance.sentence}"
        )

    @property
    def fit(self) -> str:
        """Fit of the chain to the releases, in words."""
        if self.movement is None:
            return "the intervals of each step are widened by the prediction errors of the chain up to that step"
        if not np.isfinite(self.movement):
            return "the chain does not fit at all, and is not used"
        if self.movement <= 2.0:
            return "the releases are consistent with the moves of people under the chain"
        return f"people move with {self.movement:.2g} times the variance of the chain; the intervals are widened accordingly"

    def columns(self) -> dict[str, list[Any]]:
        """Columns in long form, one entry per time and state: time, state, smoothed, lower, upper, published."""
        n = len(self.states)
        return {
            "time": [time for time in self.times for _ in range(n)],
            "state": list(self.states) * len(self.times),
            "smoothed": self.counts.ravel().tolist(),
            "lower": self.lower.ravel().tolist(),
            "upper": self.upper.ravel().tolist(),
            "published": np.repeat(self.published, n).tolist(),
        }


def smooth(
    released: ReleasedHistograms,
    correlation: PublicCorrelation,
    *,
    total: ArrayLike,
    times: Sequence[str] | None = None,
) -> SmoothedHistograms:
    """Estimate the true counts from released ones and a public correlation; at no privacy cost.

    Counts of people who move independently by a chain are a linear state space (Theory, section 15): a Kalman filter
    forward and a smoother back, with the public total as an exact observation. The error of the chain is estimated from the
    releases alone; where it does not fit, estimates are the released counts, made consistent with the total.

    Parameters
    ----------
    released : ReleasedHistograms
        As drawn, not post-processed.
    correlation : PublicCorrelation
        Public correlation, or one learned with differential privacy; no other is accepted.
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
    public = require_public(correlation).reordered(released.states)
    if released.consistent:
        raise InputError(
            "expected counts as they were drawn, got counts that were clipped and rescaled: their noise is not known any more. "
            "Release without consistent=True (release.consistent); smoothed counts are consistent anyway"
        )
    labels = released.times if times is None else tuple(times)
    position = {label: t for t, label in enumerate(released.times)}
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
    found, movement = smooth_steps(steps, public)
    return SmoothedHistograms(
        found.counts,
        found.lower,
        found.upper,
        states=released.states,
        times=labels,
        totals=totals,
        published=np.array([label in position for label in labels]),
        provenance=public.provenance,
        seen="all releases",
        movement=movement,
    )


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


def save_smoothed(smoothed: SmoothedHistograms, path: str | Path, *, time: str = "time", state: str = "state") -> None:
    """Write smoothed histograms: Parquet (with what was used in its metadata) or CSV, one row per time and state.

    Parameters
    ----------
    smoothed : SmoothedHistograms
    path : path
    time, state : str
        Names of the first two columns.

    Raises
    ------
    InputError
        The suffix is neither .parquet nor .csv.
    OutputError
        The file cannot be written; what stood there is untouched.
    """
    release_suffix(path)
    used = {
        "kind": "smoothed histograms (post-processing)",
        "used": smoothed.used,
        "seen": smoothed.seen,
        "fit": smoothed.fit,
        "provenance": asdict(smoothed.provenance),
        "totals": smoothed.totals.tolist(),
        "intervals": "95 %, of each count by itself",
    }
    save_columns(with_names(smoothed.columns(), time, state), path, used)
