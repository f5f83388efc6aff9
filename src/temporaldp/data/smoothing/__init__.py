"""Counts worth publishing: released counts and a public correlation put together, after the noise and at no privacy cost."""

from temporaldp.data.smoothing.comparison import GuaranteeComparison, GuaranteeRow
from temporaldp.data.smoothing.count_filter import (
    CountEstimate,
    FilterState,
    StepRelease,
    advance,
    averaged,
    estimates,
    smooth_steps,
)
from temporaldp.data.smoothing.guarantees import compare_guarantees, level_for_error
from temporaldp.data.smoothing.public_correlation import PublicCorrelation, require_public

__all__ = [
    "CountEstimate",
    "FilterState",
    "GuaranteeComparison",
    "GuaranteeRow",
    "PublicCorrelation",
    "StepRelease",
    "advance",
    "averaged",
    "compare_guarantees",
    "estimates",
    "level_for_error",
    "require_public",
    "smooth_steps",
]
