"""Common parts of `release` and `smooth`: writing smoothed counts, and describing them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from temporaldp import PublicCorrelation, SmoothedHistograms
from temporaldp.release import save_smoothed, save_synthetic, synthetic_traces

if TYPE_CHECKING:
    from temporaldp.project.settings import Settings


def save_all(
    smoothed: SmoothedHistograms, correlation: PublicCorrelation, output: Path, settings: Settings
) -> list[tuple[str, str]]:
    """Write the smoothed counts, and synthetic traces if asked; return the lines that describe both."""
    synthetic = settings.release.synthetic
    save_smoothed(smoothed, output, **settings.traces.own_names)
    width = float(np.median(smoothed.upper - smoothed.lower)) / 2.0
    rows = [
        (
            "smoothed counts",
            f"{output}, from {smoothed.seen}, with 95 % intervals (half of them within {width:.3g} people)",
        ),
        ("made from", smoothed.used),
        ("fit", smoothed.fit),
    ]
    if synthetic is not None:
        made = synthetic_traces(smoothed, correlation)
        save_synthetic(made, synthetic)
        rows.append(("synthetic traces", f"{synthetic}. {made.note}"))
    return rows


def smoothed_document(smoothed: SmoothedHistograms, output: Path) -> dict[str, Any]:
    """Smoothed counts as JSON values."""
    return {
        "smoothed_output": output,
        "seen": smoothed.seen,
        "used": smoothed.used,
        "fit": smoothed.fit,
        "smoothed": smoothed.counts,
        "lower": smoothed.lower,
        "upper": smoothed.upper,
    }
