"""Noisy counts and sums, and what is computed from them alone: consistent and smoothed counts."""

from temporaldp.core.planning.histogram_noise import HISTOGRAM_SENSITIVITY
from temporaldp.data.counts.bounded import ClampedMean, ClampedSum
from temporaldp.data.counts.consistent import consistent_counts
from temporaldp.data.counts.histogram import DiscreteLaplaceHistogram, NoisyHistogram
from temporaldp.data.counts.released import ReleasedHistograms, load_released, save_released
from temporaldp.data.counts.shared_budget import SharedBudget
from temporaldp.data.counts.smoothed import SmoothedHistograms, smooth

__all__ = [
    "HISTOGRAM_SENSITIVITY",
    "ClampedMean",
    "ClampedSum",
    "DiscreteLaplaceHistogram",
    "NoisyHistogram",
    "ReleasedHistograms",
    "SharedBudget",
    "SmoothedHistograms",
    "consistent_counts",
    "load_released",
    "save_released",
    "smooth",
]
