"""Counts of a release by its settings: drawn and smoothed; smoothed ones are written and described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from temporaldp.counts import (
    ReleasedHistograms,
    SmoothedHistograms,
    save_smoothed,
    save_synthetic,
    smooth,
    synthetic_traces,
)
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


def publish(setup: ReleaseSetup, stream: ContinualRelease[Any, Any] | None) -> ReleasedHistograms:
    """Draw the counts of a plan, or those that a ledger lacks."""
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
