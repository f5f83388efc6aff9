"""What `release --smooth` and `temporaldp smooth` share: a correlation that is public, and what is said of smoothed counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from temporaldp import (
    InputError,
    PublicCorrelation,
    SmoothedHistograms,
    save_smoothed,
    save_synthetic,
    synthetic_traces,
)
from temporaldp.cli import options as o
from temporaldp.cli.inputs import Inputs, gather


def public_correlation(
    traces: Path | None,
    reading: o.TraceOptions,
    known: o.CorrelationOptions,
    states: tuple[str, ...] | None,
    *,
    same_start: bool,
) -> PublicCorrelation:
    """The correlation of --history or of given matrices; refused if it was learnt from the protected traces."""
    if all(path is None for path in known.files) and known.stays is None:
        raise InputError(
            "counts are smoothed by a correlation that is public or paid for: give --history with other traces, --correlation "
            "with a file from `temporaldp learn`, or --forward with a matrix. It is not learnt from the "
            "traces that are released: that would publish something about them outside of the guarantee"
        )
    return public_part(gather(traces, reading, known, states), same_start=same_start)


def public_part(inputs: Inputs, *, same_start: bool) -> PublicCorrelation:
    """What of the inputs may be published with: the one correlation for all, if it is public, and how a history begins."""
    if len(inputs.adversaries) > 1:
        raise InputError("counts of everybody are smoothed by one correlation for all: leave out --per-user")
    initial = None
    if same_start:
        if inputs.learnt_from is None:
            raise InputError("--same-start says that the release begins as a history does: give --history too")
        initial = inputs.learnt_from.histogram()[0]
    return PublicCorrelation.of(inputs.adversaries[0], inputs.source, initial=initial)


def save_all(
    smoothed: SmoothedHistograms, correlation: PublicCorrelation, output: Path, synthetic: Path | None
) -> list[tuple[str, str]]:
    """Write the smoothed counts, and synthetic traces if asked; what to say of both."""
    save_smoothed(smoothed, output)
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
        "smoothed_output": str(output),
        "seen": smoothed.seen,
        "used": smoothed.used,
        "fit": smoothed.fit,
        "smoothed": smoothed.counts.tolist(),
        "lower": smoothed.lower.tolist(),
        "upper": smoothed.upper.tolist(),
    }
