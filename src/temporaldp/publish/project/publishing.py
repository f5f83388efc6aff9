"""Counts of a release by its settings: drawn and smoothed; smoothed ones are written and described."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from temporaldp.base.errors import InputError, OutputError
from temporaldp.data.counts import (
    ReleasedHistograms,
    SmoothedHistograms,
    consistent_counts,
    load_released,
    save_smoothed,
    smooth,
)
from temporaldp.data.smoothing import PublicCorrelation
from temporaldp.data.tables import Traces
from temporaldp.data.tables.moments import moment
from temporaldp.publish.project.recipe import note_recipe
from temporaldp.publish.project.release import BOTH_TOGETHER, ReleaseSetup, named_times, published_times
from temporaldp.publish.release import ContinualRelease, filtered_histograms, release_histograms
from temporaldp.publish.release.key_and_marks import require_decision

if TYPE_CHECKING:
    from temporaldp.publish.project.settings import Settings


@dataclass(frozen=True, slots=True)
class Smoothing:
    """Smoothed counts, the correlation that smoothed them, and the settings, which name the files to write."""

    found: SmoothedHistograms
    correlation: PublicCorrelation
    settings: Settings

    def save(self) -> list[tuple[str, str]]:
        """Write the smoothed counts; return the lines that describe them."""
        found, output = self.found, self.settings.release.smoothed
        assert output is not None
        save_smoothed(found, output, **self.settings.traces.own_names)
        width = float(np.median(found.upper - found.lower)) / 2.0
        return [
            (
                "smoothed counts",
                f"{output}, from {found.seen}, with 95 % intervals (half of them within {width:.3g} people)",
            ),
            ("made from", found.used),
            ("fit", found.fit),
        ]

    @property
    def document(self) -> dict[str, Any]:
        """Smoothed counts as JSON values."""
        return {
            "smoothed_output": self.settings.release.smoothed,
            "seen": self.found.seen,
            "used": self.found.used,
            "fit": self.found.fit,
            "smoothed": self.found.counts,
            "lower": self.found.lower,
            "upper": self.found.upper,
        }


def earlier_counts(
    output: Path, data: Traces, stream: ContinualRelease[Any, Any] | None, overwrite: bool
) -> ReleasedHistograms | None:
    """Counts of the output that a run keeps there, because all of them are its ledger's; None if there are none.

    Raises
    ------
    OutputError
        The file exists and has others, and may not be overwritten.
    """
    found = None if stream is None or not output.exists() else _of_ledger(output, stream, data)
    if found is None and output.exists() and not overwrite:
        raise OutputError(
            f"{output} exists, and not all of it is released again: name another output, or replace it (--overwrite)"
        )
    return found


def require_unpublished(output: Path, data: Traces, *, begin_anew: bool) -> None:
    """Refuse to draw times of the data again without a ledger, unless an owner begins anew.

    Raises
    ------
    OutputError
        The output contains a time of the data.
    InputError
        The owner begins anew, although the output contains none.
    """
    drawn = {moment(time) for time in data.times}
    lost = [time for time in published_times(output) if moment(time) in drawn]
    refusal = OutputError(
        f"{output} has published counts of {named_times(lost)} of these data, and releasing the same data twice spends the "
        f"budgets twice: they would be drawn again with new noise, and {BOTH_TOGETHER}"
    )
    require_decision(refusal if lost else None, begin_anew=begin_anew)


def _of_ledger(output: Path, stream: ContinualRelease[Any, Any], data: Traces) -> ReleasedHistograms | None:
    """The counts of a file, if a ledger published all of them."""
    try:
        old = load_released(output)
    except InputError:
        return None
    if set(old.states) != set(data.states):
        return None
    old = old.reordered(data.states)
    for time, counts in zip(old.times, old.counts, strict=True):
        kept = stream.published(time)
        if not isinstance(kept, np.ndarray):
            return None
        total = sum(counts.tolist())  # Python's: a foreign file may hold anything
        if not np.array_equal(counts, kept) and (
            total < 0 or not np.array_equal(counts, consistent_counts(kept, total=total))
        ):
            return None
    return old


def with_earlier(
    released: ReleasedHistograms, earlier: ReleasedHistograms | None, stream: ContinualRelease[Any, Any] | None
) -> ReleasedHistograms:
    """Counts of a run and those that its output had before, in the order of the ledger."""
    if earlier is None or stream is None:
        return released
    step_of = {stream.row(time).step: k for k, time in enumerate(released.times)}
    others = [k for k, time in enumerate(earlier.times) if stream.row(time).step not in step_of]
    rows = [stream.row(earlier.times[k]) for k in others]
    as_drawn = [stream.published(row.time) for row in rows]
    spent = np.array([row.epsilon for row in rows])
    scales = stream.guard.drawn_scales([row.step for row in rows], spent)
    counts = [*released.counts, *(earlier.counts[others] if released.consistent else as_drawn)]
    order = np.argsort([*step_of, *(row.step for row in rows)])
    times = (*released.times, *(row.time for row in rows))
    return replace(
        released,
        counts=np.array(counts)[order],
        epsilons=np.append(released.epsilons, spent)[order],
        scales=np.append(released.scales, scales)[order],
        times=tuple(times[k] for k in order),
        consistent=released.consistent and (earlier.consistent or not others),
    )


def publish(setup: ReleaseSetup, stream: ContinualRelease[Any, Any] | None) -> ReleasedHistograms:
    """Draw the counts of a plan, or those that a ledger lacks, which first notes from what they are computed."""
    if stream is not None and setup.recipe is not None:
        note_recipe(stream.ledger, setup.recipe)
    drawn_by = setup.plan if stream is None else stream
    assert drawn_by is not None
    asked = setup.settings.release
    released = release_histograms(setup.data, drawn_by, consistent=asked.consistent, reached=asked.reached)
    # A run that was stopped before it wrote its output may have recorded it
    if (
        stream is not None
        and stream.ledger.disregarded
        and not any(one.kind == "begin anew" for one in stream.ledger.events)
    ):
        raise InputError(
            "--begin-anew is recorded with the first step that is drawn, and the ledger has all steps of these data: give data "
            "that are released anew, or leave it out. No file was written"
        )
    return released


def smoothed(
    released: ReleasedHistograms, setup: ReleaseSetup, stream: ContinualRelease[Any, Any] | None
) -> Smoothing | None:
    """Smooth the counts of a plan, or filter those that a ledger stores; None if that is not asked."""
    data = setup.data
    if setup.public is None:
        return None
    if stream is None:
        totals = data.histogram().sum(axis=1)
        found = smooth(released, setup.public, total=totals, times=data.times)
    else:
        found = filtered_histograms(data, stream, times=released.times)
    return Smoothing(found, setup.public, setup.settings)
