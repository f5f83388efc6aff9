"""Smoothed histograms on disk: Parquet, with what they were made from in the metadata, or CSV."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from temporaldp.files.columns import save_columns
from temporaldp.release.released import release_suffix
from temporaldp.release.smoothed import SmoothedHistograms


def save_smoothed(smoothed: SmoothedHistograms, path: str | Path) -> None:
    """Write smoothed histograms: Parquet (with what was used in its metadata) or CSV, one row per time and state.

    Raises
    ------
    InputError
        The suffix is neither .parquet nor .csv.
    OutputError
        The file cannot be written; what stood there is untouched.
    """
    release_suffix(path)
    save_columns(smoothed.columns(), path, _used(smoothed))


def _used(smoothed: SmoothedHistograms) -> dict[str, Any]:
    return {
        "kind": "smoothed histograms (post-processing)",
        "used": smoothed.used,
        "seen": smoothed.seen,
        "fit": smoothed.fit,
        "source": asdict(smoothed.source),
        "totals": smoothed.totals.tolist(),
        "intervals": "95 %, of each count by itself",
    }
