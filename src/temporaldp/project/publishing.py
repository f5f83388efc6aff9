"""Counts of a release by its settings: drawn and smoothed; smoothed ones are written and described."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from temporaldp.correlation import Traces
from temporaldp.counts import (
    ReleasedHistograms,
    SmoothedHistograms,
    consistent_counts,
    load_released,
    save_smoothed,
    save_synthetic,
    smooth,
    synthetic_traces,
)
from temporaldp.errors import InputError, OutputError
from temporaldp.project.recipe import note_recipe
from temporaldp.project.release import ReleaseSetup
from temporaldp.release import ContinualRelease, filtered_histograms, release_histograms
from temporaldp.smoothing import PublicCorrelation

if TYPE_CHECKING:
    from temporaldp.project.settings import Settings


@dataclass(frozen=True, slots=True)
class Smoothing:
    """Smoothed counts, the correlation that smoothed them, and the settings, which name the files to write."""

    found: SmoothedHistograms
    correlation: PublicCorrelation
    settings: Settings

    def save(self) -> list[tuple[str, str]]:
        """Write the smoothed counts, and synthetic traces if asked; return the lines that describe both."""
        found, output, synthetic = self.found, self.settings.release.smoothed, self.settings.release.synthetic
        assert output is not None
        save_smoothed(found, output, **self.settings.traces.own_names)
        width = float(np.median(found.upper - found.lower)) / 2.0
        rows = [
            (
                "smoothed counts",
                f"{output}, from {found.seen}, with 95 % intervals (half of them within {width:.3g} people)",
            ),
            ("made from", found.used),
            ("fit", found.fit),
        ]
        if synthetic is not None:
            made = synthetic_traces(found, self.correlation)
            save_synthetic(made, synthetic)
            rows.append(("synthetic traces", f"{synthetic}. {made.note}"))
        return rows

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


def refuse_existing(output: Path, data: Traces, stream: ContinualRelease[Any, Any] | None, overwrite: bool) -> None:
    """Raise `OutputError` if the file exists, unless it may be overwritten, or all of it is released again from the ledger."""
    if not output.exists() or overwrite or (stream is not None and _is_earlier(output, stream, data)):
        return
    raise OutputError(
        f"{output} exists; releasing the same data twice spends the budgets twice. If that file was never shared, "
        "overwrite it (--overwrite); otherwise keep it"
    )


def _is_earlier(output: Path, stream: ContinualRelease[Any, Any], data: Traces) -> bool:
    """Whether a file contains only earlier counts of a ledger that are released again, so that replacing it loses nothing."""
    try:
        old = load_released(output)
    except InputError:
        return False
    if not set(old.times) <= set(data.times) or set(old.states) != set(data.states):
        return False
    for time, counts in zip(old.times, old.reordered(data.states).counts, strict=True):
        kept = stream.published(time)
        if not isinstance(kept, np.ndarray):
            return False
        total = sum(counts.tolist())  # Python's: a foreign file may hold anything
        if not np.array_equal(counts, kept) and (
            total < 0 or not np.array_equal(counts, consistent_counts(kept, total=total))
        ):
            return False
    return True


def publish(setup: ReleaseSetup, stream: ContinualRelease[Any, Any] | None) -> ReleasedHistograms:
    """Draw the counts of a plan, or those that a ledger lacks, which first notes from what they are computed."""
    if stream is not None and setup.recipe is not None:
        note_recipe(stream.ledger, setup.recipe)
    drawn_by = setup.plan if stream is None else stream
    assert drawn_by is not None
    return release_histograms(setup.data, drawn_by, consistent=setup.settings.release.consistent)


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
        found = filtered_histograms(data, stream)
    return Smoothing(found, setup.public, setup.settings)
