"""Noisy counts and sums, and what is computed from them alone: consistent and smoothed counts."""

from temporaldp.counts.bounded import ClampedMean, ClampedSum
from temporaldp.counts.consistent import consistent_counts
from temporaldp.counts.histogram import DiscreteLaplaceHistogram, NoisyHistogram
from temporaldp.counts.released import ReleasedHistograms, load_released, save_released
from temporaldp.counts.shared_budget import SharedBudget
from temporaldp.counts.smoothed import SmoothedHistograms, save_smoothed, smooth
from temporaldp.planning.histogram_noise import HISTOGRAM_SENSITIVITY

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
    "save_smoothed",
    "smooth",
]
