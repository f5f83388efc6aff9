"""Spending the plan: mechanisms, and the release of a sequence of histograms."""

from temporaldp.planning.histogram_noise import HISTOGRAM_SENSITIVITY
from temporaldp.release.consistent import consistent_counts
from temporaldp.release.continual import Release, release
from temporaldp.release.histogram import DiscreteLaplaceHistogram, NoisyHistogram
from temporaldp.release.histograms import release_histograms
from temporaldp.release.ledger import Ledger
from temporaldp.release.released import ReleasedHistograms, load_released, save_released
from temporaldp.release.stream import ContinualRelease

__all__ = [
    "HISTOGRAM_SENSITIVITY",
    "ContinualRelease",
    "DiscreteLaplaceHistogram",
    "Ledger",
    "NoisyHistogram",
    "Release",
    "ReleasedHistograms",
    "consistent_counts",
    "load_released",
    "release",
    "release_histograms",
    "save_released",
]
