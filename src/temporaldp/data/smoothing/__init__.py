"""Counts worth publishing: released counts and a public correlation put together, after the noise and at no privacy cost."""

from temporaldp.data.smoothing.count_filter import (
    CountEstimate,
    FilterState,
    StepRelease,
    advance,
    averaged,
    estimates,
    smooth_steps,
)
from temporaldp.data.smoothing.public_correlation import PublicCorrelation, require_public
from temporaldp.data.smoothing.tradeoff import NoiseAtLevel, Tradeoff, TradeoffPoint, tradeoff

__all__ = [
    "CountEstimate",
    "FilterState",
    "NoiseAtLevel",
    "PublicCorrelation",
    "StepRelease",
    "Tradeoff",
    "TradeoffPoint",
    "advance",
    "averaged",
    "estimates",
    "require_public",
    "smooth_steps",
    "tradeoff",
]
