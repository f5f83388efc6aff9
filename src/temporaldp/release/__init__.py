"""Releases: mechanisms, ledgers, and the release of a sequence of histograms."""

from temporaldp.planning.histogram_noise import HISTOGRAM_SENSITIVITY
from temporaldp.release.adopting import adopt_correlation
from temporaldp.release.bounded import ClampedMean, ClampedSum
from temporaldp.release.consistent import consistent_counts
from temporaldp.release.export import export_ledger
from temporaldp.release.histogram import DiscreteLaplaceHistogram, NoisyHistogram
from temporaldp.release.histograms import filtered_histograms, release_histograms
from temporaldp.release.learning import learn_correlation
from temporaldp.release.ledger import Ledger
from temporaldp.release.released import ReleasedHistograms, load_released, save_released
from temporaldp.release.several_tables import SharedBudget
from temporaldp.release.shared_account import SharedRelease
from temporaldp.release.smoothed import SmoothedHistograms, save_smoothed, smooth
from temporaldp.release.snapshots import Release, release_snapshots
from temporaldp.release.stream import ContinualRelease
from temporaldp.release.synthetic import SyntheticTraces, save_synthetic, synthetic_traces

__all__ = [
    "HISTOGRAM_SENSITIVITY",
    "ClampedMean",
    "ClampedSum",
    "ContinualRelease",
    "DiscreteLaplaceHistogram",
    "Ledger",
    "NoisyHistogram",
    "Release",
    "ReleasedHistograms",
    "SharedBudget",
    "SharedRelease",
    "SmoothedHistograms",
    "SyntheticTraces",
    "adopt_correlation",
    "consistent_counts",
    "export_ledger",
    "filtered_histograms",
    "learn_correlation",
    "load_released",
    "release_histograms",
    "release_snapshots",
    "save_released",
    "save_smoothed",
    "save_synthetic",
    "smooth",
    "synthetic_traces",
]
